# SPDX-License-Identifier: Apache-2.0
"""`sonde check`: each check that ships finds what it is for, in a store that has it, and nothing in one that has not."""
import glob
import json
import os
import re
import socket
import sqlite3
import subprocess
import threading
import time

import pytest

from conftest import BIN, ROOT
from livedin import put

TO = 1795144200 // 60 * 60
FILES = {os.path.basename(f)[:-4]: f for f in glob.glob(f"{ROOT}/tools/checks/queries/**/*.sql", recursive=True)}
SHIPPED = sorted(FILES)
HOST = {"fact": "host_row", "cpus": 2, "mem_total": 8 << 30, "mem_available": 4 << 30, "user_us": 1000000, "nice_us": 0, "system_us": 0, "irq_us": 0,
        "softirq_us": 0, "steal_us": 0, "swap_in": 0, "swap_out": 0, "psi_mem_us": 0, "psi_cpu_us": 0, "running": 1}
WEB = {"fact": "cgroup_row", "cgroup": "/docker/web", "container": "web", "container_id": "web", "user_us": 1000000, "system_us": 0, "working": 100 << 20,
       "mem": 120 << 20, "mem_limit": 512 << 20, "periods": 100, "throttled": 0, "throttled_us": 0, "cpu_limit_m": 1000, "psi_cpu_us": 0, "psi_mem_us": 0}
ROOTFS = {"fact": "fs_row", "mount": "/", "source": "/dev/sda1", "fstype": "ext4", "size": 100 << 30, "free": 50 << 30, "available": 50 << 30,
          "inodes": 1000, "inodes_free": 500, "read_only": 0, "hangs": 0}
DISK = {"fact": "disk_row", "disk": "sda", "reads": 10, "read_bytes": 4096, "read_us": 1000, "writes": 10, "write_us": 1000, "busy_us": 100000}


def minutes(begin, end, *rows, **more):
    """A reading of each thing every ten seconds."""
    for at in range(begin, end, 10):
        for row in rows:
            yield {**row, **more, "at": at}


def well(begin=TO - 7200, end=TO):
    """Two hours in which all is well."""
    yield {"run": "l7", "from": begin, "to": end, "bucket_s": 10}
    yield {"run": "gpu", "from": begin, "to": end, "bucket_s": 10}
    yield from gpus(begin, end)
    yield {"run": "disk", "from": begin, "to": end, "bucket_s": 10}
    yield from minutes(begin, end, BLOCK, SYNC)
    yield {"run": "logs", "from": begin, "to": end, "bucket_s": 10}
    yield from minutes(begin, end, LOGGED, SAID)
    yield {"run": "host", "from": begin, "to": end, "bucket_s": 10}
    yield from minutes(begin, end, HOST, WEB, ROOTFS, DISK, JVM)


def event(at, kind, subject, name, detail="", **process):
    return {"fact": "event_row", "at": at, **process, "columns": {"kind": kind, "subject": subject, "name": name, "detail": detail, "which": name, "n": 1,
                                                                 "at_us": at * 1000000}}


def growing(begin, end, first_mib, per_hour):
    for at in range(begin, end, 10):
        yield {**WEB, "at": at, "working": int(first_mib * (1 << 20) + per_hour * (1 << 20) * (at - begin) / 3600)}


def lost(n):
    return [{"loss": "ring", "at": TO - 100, "n": n}]


def asked(ms, failed):
    """A service that is asked ten times each ten seconds; of the run at hand."""
    for at in range(HALF, TO, 10):
        for result, n in ((0, 10 - failed), (1, failed)):
            if n:
                yield {"request": "GET /x", "service": "10.0.0.1:80", "status": "500" if result else "200", "result": result, "side": 2, "at": at, "n": n, "pid": 7,
                       "comm": "app", "total_ns": n * ms * 1000000, "max_ns": ms * 1000000, "request_bytes": 10, "response_bytes": 10}


def open_from(begin, end, answered=None):
    """A request without an answer: a row of it when it is two seconds old, each ten, after a minute each sixty, and one when it is answered."""
    for at in [*range(begin + 2, begin + 60, 10), *range(begin + 112, end, 60), *([answered] if answered else [])]:
        if at < end or at == answered:
            yield {"fact": "request_running_row", "at": at, "pid": 7, "comm": "app", "columns": {
                "side": "server", "id": 5, "protocol": "http", "service": "10.0.0.1:80", "operation": "GET /x", "client": "10.0.0.2", "port": 4000, "trace": "",
                "at_us": begin * 1000000, "seen_us": at * 1000000, **({"end_us": at * 1000000, "result": "ok"} if at == answered else {"result": ""})}}


GPU = {"uuid": "GPU-1", "gpu": "0", "name": "A100", "busy_us": 1000000, "mem_used": 1 << 30, "mem_total": 1 << 34, "temperature_m": 61000,
       "temperature_limit_m": 90000, "throttle_reasons": 4}
JVM = {"fact": "jvm_row", "pid": 7, "comm": "app", "collector": "G1", "version": "17", "young_gcs": 1, "young_gc_us": 100000, "full_gcs": 0, "full_gc_us": 0,
       "old_used": 1 << 20, "old_max": 1 << 30}


BLOCK = {"fact": "block_row", "pid": 7, "comm": "app", "disk": "sda", "op": "write", "requests": 100, "bytes": 100 << 12, "errors": 0, "queue_us": 100, "device_us": 9000}
SYNC = {"fact": "sync_row", "pid": 7, "comm": "app", "file": "/data/a", "call": "fsync", "calls": 10, "errors": 0, "us": 20000}
OPENS = {"fact": "open_row", "pid": 7, "comm": "app", "path": "/none", "error": "ENOENT", "opens": 1}
LOGGED = {"fact": "log_row", "source": "web", "level": "error", "lines": 1, "messages": 1, "bytes": 40}
SAID = {"fact": "log_pattern_row", "source": "web", "level": "error", "pattern": "cannot reach *", "sample": "ERROR cannot reach db", "messages": 1}
HELD = {"fact": "held_row", "pid": 7, "comm": "app", "file": "/data/gone", "ino": 12, "mount": "/data", "bytes": 2 << 30, "holders": 1}


def gpus(begin, end, **more):
    """Of the run at hand: family gpu's own where all is well."""
    return [{"fact": "gpu_row", "at": at, "columns": {**GPU, **more}} for at in range(begin, end, 10)]


HALF = TO - 660  # eleven minutes
# check -> (subject, rows that are put on top of what is well, and replace what it says of the same bucket)
BAD = {
    "memory-limit": ("web", minutes(HALF, TO, WEB, working=500 << 20)),
    "memory-leak": ("web", growing(TO - 5400, TO, 100, 60)),
    "memory-full-soon": ("web", growing(TO - 5400, TO, 100, 20)),
    "oom": ("web", [event(TO - 600, "oom kill", "container", "web", "met the limit")]),
    "restart-loop": ("web", [e for i in range(4) for e in (event(TO - 300 + 60 * i, "stopped", "container", "web", "exit 1"),
                                                           event(TO - 299 + 60 * i, "restarted", "container", "web"))]),
    "stopped": ("web", [event(TO - 600, "stopped", "container", "web", "exit 1")]),
    "throttled": ("web", minutes(HALF, TO, WEB, throttled=40, throttled_us=100000)),
    "cpu-delay": ("web", minutes(HALF, TO, WEB, psi_cpu_us=6000000)),
    "cpu-limit": ("web", minutes(HALF, TO, WEB, user_us=9500000)),
    "host-cpu": ("host", minutes(HALF, TO, HOST, user_us=18500000)),
    "cpu-queue": ("host", minutes(HALF, TO, HOST, running=60)),
    "jvm-gc": ("app 7", minutes(HALF, TO, JVM, young_gc_us=1000000, full_gc_us=3000000)),
    "gpu-throttled": ("GPU 0", gpus(HALF, TO, throttle_reasons=64)),
    "gpu-hot": ("GPU 0", gpus(HALF, TO, temperature_m=88000)),
    "gpu-memory": ("GPU 0", gpus(HALF, TO, mem_used=(1 << 34) - 1) +
                   [{"fact": "gpu_process_row", "at": TO - 60, "pid": 7, "comm": "app", "uuid": "GPU-1", "gpu": "0", "mem": 1 << 33, "busy_us": 0}]),
    "steal": ("host", minutes(HALF, TO, HOST, steal_us=3000000)),
    "host-memory": ("host", minutes(HALF, TO, HOST, mem_available=100 << 20)),
    "memory-pressure": ("host", minutes(HALF, TO, HOST, psi_mem_us=1000000)),
    "swap-thrash": ("host", minutes(HALF, TO, HOST, swap_in=5000, swap_out=6000)),
    "disk-space": ("/", minutes(HALF, TO, ROOTFS, available=1 << 30)),
    "disk-full-soon": ("/", ({**ROOTFS, "at": at, "available": (50 << 30) - (at - TO + 7200) * (1 << 20)} for at in range(TO - 7200, TO, 10))),
    "inodes": ("/", minutes(HALF, TO, ROOTFS, inodes_free=3)),
    "read-only": ("/", [event(TO - 3000, "read-only", "file system", "/")]),
    "file-system-hangs": ("/srv", minutes(HALF, TO, {"fact": "fs_row", "mount": "/srv", "source": "nas:/", "fstype": "nfs4", "hangs": 1})),
    "disk-busy": ("sda", minutes(HALF, TO, DISK, busy_us=9900000, write_us=2000000)),
    "descriptors": ("app", minutes(HALF, TO, {"fact": "fds_row", "pid": 7, "comm": "app", "fds": 1000, "fds_limit": 1024})),
    "unhealthy": ("web", [event(TO - 3000, "unhealthy", "container", "web", "no answer")]),
    "requests-failing": ("10.0.0.1:80", asked(10, 3)),
    "requests-slow": ("10.0.0.1:80", asked(3000, 0)),
    "requests-running": ("10.0.0.1:80 GET /x", open_from(HALF, TO)),
    "disk-errors": ("sda", minutes(TO - 600, TO - 590, BLOCK, errors=3)),
    "deleted-files": ("app", ({**HELD, "at": at} for at in range(HALF, TO, 60))),
    "fsync-slow": ("app", minutes(HALF, TO, SYNC, us=3000000)),
    "opens-failing": ("app", minutes(HALF, TO, OPENS, opens=5000)),
    "log-errors": ("web", minutes(HALF, TO, LOGGED, SAID, messages=100)),
    "log-new-error": ("web", [{**SAID, "at": TO - 300, "pattern": "no space left on *", "sample": "ERROR no space left on /data"}]),
    "sonde-losses": ("host", lost(9000)),
    "sonde-recording": ("cpu", [{"run": "cpu", "from": TO - 4000, "to": TO - 1000, "bucket_s": 10}]),
}
BAD = {name: (subject, list(rows)) for name, (subject, rows) in BAD.items()}


def merged(rows, more):
    """Rows of `more` take the place of those of the same thing and bucket."""
    def key(r):
        return r.get("fact"), r.get("at"), r.get("cgroup"), r.get("disk"), r.get("mount"), r.get("columns", {}).get("uuid") or json.dumps(r.get("columns"))
    more = list(more)
    over = {key(r) for r in more if "fact" in r}
    return [r for r in rows if "fact" not in r or key(r) not in over] + more


def check(store, *words, at=TO, env=None, config="/nonexistent"):
    done = subprocess.run([f"{BIN}/sonde", "check", *words, "--at", str(at), "--json"], capture_output=True, text=True, timeout=60,
                          env={**os.environ, "SONDE_STORE": store, "SONDE_CONFIG": config, **(env or {})})
    assert done.returncode in (0, 1), done.stderr
    return done.returncode, json.loads(done.stdout)


def bad(answer):
    return {(r["check"], r["subject"]) for r in answer["rows"] if r["state"] == "bad"}


def test_each_check_that_ships_has_a_store_in_which_it_is_bad():
    assert set(BAD) == set(SHIPPED)


@pytest.fixture(scope="module")
def fine(tmp_path_factory):
    store = str(tmp_path_factory.mktemp("s") / "fine")
    put(store, well())
    return store


def test_where_all_is_well_nothing_is_bad_and_the_exit_code_is_0(fine):
    code, answer = check(fine)
    assert code == 0 and not bad(answer) and answer["not_measured"] == 0 and answer["checks"] == len(SHIPPED)
    assert {r["state"] for r in answer["rows"]} == {"fine"}


@pytest.mark.parametrize("name, rows", [("cpu-queue", minutes(TO - 120, TO, HOST, running=60)), ("disk-busy", minutes(TO - 120, TO, DISK, busy_us=9900000, write_us=2000000)),
                                        ("requests-failing", None)])
def test_what_fails_for_less_time_than_it_must_is_pending_and_says_for_how_long(name, rows, tmp_path):
    store = str(tmp_path / "store")
    put(store, merged(list(well()), rows or [r for r in asked(10, 3) if r["at"] >= TO - 120]))
    code, answer = check(store)
    found = [r for r in answer["rows"] if r["state"] == "pending"]
    assert code == 0 and not bad(answer) and answer["pending"] == 1 == len(found), answer
    assert (found[0]["check"], found[0]["lasted_minutes"]) == (name, 2) and f"; for 2 of {found[0]['for_minutes']} min" in found[0]["text"], found
    screen = subprocess.run([f"{BIN}/sonde", "--store", store, "--from", str(TO - 900), "--to", str(TO)], capture_output=True, text=True, timeout=60,
                            env={**os.environ, "SONDE_CONFIG": "/nonexistent"}).stdout
    assert re.search(r"wrong   nothing yet: of \d+ checks 1 fails, but not for long", screen) and f"pending  {name}: " in screen, screen
    code, answer = check(store, at=TO - 120)  # before it began
    assert not answer["pending"] and not bad(answer), answer


@pytest.mark.parametrize("name", SHIPPED)
def test_a_check_finds_what_it_is_for_with_its_evidence_and_the_next_command(name, tmp_path):
    subject, rows = BAD[name]
    store = str(tmp_path / "store")
    put(store, merged(list(well()), rows))
    if name == "sonde-recording":
        for path in tmp_path.glob("store/*.db"):
            with sqlite3.connect(path) as db:
                db.execute("UPDATE run SET state = 2 WHERE family = 'cpu'")
    code, answer = check(store, name)
    assert code == 1 and (name, subject) in bad(answer), answer
    row = next(r for r in answer["rows"] if r["state"] == "bad" and r["subject"] == subject)
    with open(FILES[name], encoding="utf-8") as f:
        has_evidence = len(re.findall(r";$", f.read(), re.M)) > 1
    assert row["command"].startswith("sonde ") and "{" not in row["command"] and (row["evidence"] if has_evidence else True)
    _, all_of_it = check(store)
    others = {c for c, _ in bad(all_of_it)} - {name}
    assert others <= {"memory-limit": {"memory-leak", "memory-full-soon"}, "memory-leak": {"memory-full-soon"}, "disk-space": {"disk-full-soon"}}.get(name, set()), others
    assert check(store, name, at=TO - 6000)[1]["bad"] == 0, "it was not yet"


# ---- by the clock: a state that begins at T fails from T + FOR on, and is over one bucket after its end ----

T = TO - 3 * 3600 + 370  # within a minute
FDS = {"fact": "fds_row", "pid": 7, "comm": "app", "fds": 600, "fds_limit": 1024}
NAS = {"fact": "fs_row", "mount": "/srv", "source": "nas:/", "fstype": "nfs4", "hangs": 0}
RATES = {  # bucket by bucket
    "throttled": (WEB, {"throttled": 40, "throttled_us": 100000}),
    "cpu-delay": (WEB, {"psi_cpu_us": 6000000}),
    "cpu-limit": (WEB, {"user_us": 9500000}),
    "host-cpu": (HOST, {"user_us": 18500000}),
    "cpu-queue": (HOST, {"running": 11}),
    "steal": (HOST, {"steal_us": 3000000}),
    "memory-pressure": (HOST, {"psi_mem_us": 1000000}),
    "swap-thrash": (HOST, {"swap_in": 5000, "swap_out": 6000}),
    "disk-busy": (DISK, {"busy_us": 9900000, "write_us": 2000000}),
    "jvm-gc": (JVM, {"young_gc_us": 1000000, "full_gc_us": 3000000}),
    "fsync-slow": (SYNC, {"us": 3000000}),
    "opens-failing": (OPENS, {"opens": 5000}),
    "log-errors": (LOGGED, {"messages": 100}),
    "gpu-throttled": (GPU, {"throttle_reasons": 64}),
    "gpu-hot": (GPU, {"temperature_m": 88000}),
    "gpu-memory": (GPU, {"mem_used": (1 << 34) - 1}),
}
READINGS = {  # what does not change is stored once a minute
    "memory-limit": (WEB, {"working": 500 << 20}),
    "host-memory": (HOST, {"mem_available": 100 << 20}),
    "disk-space": (ROOTFS, {"available": 1 << 30}),
    "inodes": (ROOTFS, {"inodes_free": 3}),
    "file-system-hangs": (NAS, {"hangs": 1}),
    "descriptors": (FDS, {"fds": 1000}),
}
SLACK = {"jvm-gc": 60, "log-errors": 60}  # a collection is seldom, and so is an error: a mean of a minute is all there is


def number_of(name, key):
    with open(FILES[name], encoding="utf-8") as f:
        return int(re.search(rf"^-- {key} = (\d+)", f.read(), re.M)[1])


def reading(row, at, more):
    return {"fact": "gpu_row", "at": at, "columns": {**row, **more}} if row is GPU else {**row, **more, "at": at}


def asked_from(begin, end, ms, failed):
    for at in range(begin, end, 10):
        for result, n in ((0, 10 - failed), (1, failed)):
            if n:
                yield {"request": "GET /x", "service": "10.0.0.1:80", "status": "500" if result else "200", "result": result, "side": 2, "at": at, "n": n,
                       "pid": 7, "comm": "app", "total_ns": n * ms * 1000000, "max_ns": ms * 1000000, "request_bytes": 10, "response_bytes": 10}


def runs(begin, end):
    return [{"run": family, "from": begin, "to": end, "bucket_s": 10} for family in ("l7", "logs", "gpu", "disk", "host")]


def state_of(store, name, at):
    return {r["state"] for r in check(store, name, at=at)[1]["rows"]}


def holds_the_clock(store, name, begins, end, after=10):
    slack = SLACK.get(name, 0)
    assert "bad" not in state_of(store, name, begins - slack - 10), "too early"
    assert "bad" in state_of(store, name, begins + 30), "too late"
    assert "bad" in state_of(store, name, end), "it lasts"
    assert "bad" not in state_of(store, name, end + max(after, slack)), "it is over"


@pytest.mark.parametrize("name, step", [(n, 10) for n in (*RATES, *READINGS)] + [(n, 60) for n in READINGS])
def test_a_state_fails_from_its_minutes_on_and_is_over_a_bucket_after_its_end(name, step, tmp_path):
    row, more = {**RATES, **READINGS}[name]
    begins = T + 60 * number_of(name, "for")
    end = begins + 600
    store = str(tmp_path / "store")
    put(store, [*runs(T - 3600, end + 600), *(reading(row, at, more if T <= at < end else {})
                                              for at in sorted({*range(T - 3600, T, step), *range(T, end, step), *range(end, end + 600, step)}))])
    holds_the_clock(store, name, begins, end)


@pytest.mark.parametrize("name, ms, failed", [("requests-failing", 10, 3), ("requests-slow", 3000, 0)])
def test_requests_fail_a_check_by_the_same_clock(name, ms, failed, tmp_path):
    begins = T + 60 * number_of(name, "for")
    end = begins + 600
    store = str(tmp_path / "store")
    put(store, [runs(T - 3600, end + 600)[0], *asked_from(T - 3600, T, 10, 0), *asked_from(T, end, ms, failed), *asked_from(end, end + 600, 10, 0)])
    holds_the_clock(store, name, begins, end)


@pytest.mark.parametrize("before, errors, found", [(0, 100, True), (30, 100, False), (100, 100, False), (1, 3, False), (1, 1, False)])
def test_errors_of_half_an_hour_are_not_what_is_usual_and_those_of_each_hour_are(before, errors, found, tmp_path):
    """Each ten seconds, from an hour before."""
    store = str(tmp_path / "store")
    put(store, [*runs(TO - 5400, TO)[1:2], *minutes(TO - 5400, TO - 1800, LOGGED, messages=before), *minutes(TO - 1800, TO, LOGGED, messages=errors)])
    assert [check(store, "log-errors", at=TO - later)[1]["bad"] for later in (1500, 600, 0)] == [found] * 3


def test_errors_are_not_many_before_it_is_known_how_many_are_usual(tmp_path):
    """Two recordings, and half an hour between them."""
    store = str(tmp_path / "store")
    put(store, [x for begin, end in ((TO - 4000, TO - 3000), (TO - 1200, TO))
                for x in ({"run": "logs", "from": begin, "to": end, "bucket_s": 10}, *minutes(max(begin, TO - 1000), end, LOGGED, messages=100))])
    assert not check(store, "log-errors")[1]["bad"]


def test_a_request_without_an_answer_fails_a_check_by_the_same_clock(tmp_path):
    store = str(tmp_path / "store")
    put(store, [runs(T - 3600, T + 1200)[0], *asked_from(T - 3600, T + 1200, 10, 0), *open_from(T, T + 600, T + 600)])
    holds_the_clock(store, "requests-running", T + 60 * number_of("requests-running", "for"), T + 600)


@pytest.mark.parametrize("name", ["memory-leak", "memory-full-soon", "disk-full-soon"])
def test_a_growth_fails_once_it_has_lasted_and_is_over_once_it_is_given_back(name, tmp_path):
    begins = T + 60 * number_of(name, "for")
    end = begins + 600
    memory = {"memory-leak": 60, "memory-full-soon": 20}.get(name)
    grows = growing(T, end, 100, memory) if memory else ({**ROOTFS, "at": at, "available": (50 << 30) - (at - T) * (1 << 20)}
                                                                     for at in range(T, end, 10))
    store = str(tmp_path / "store")
    put(store, [*runs(T, end + 600), *grows, *minutes(end, end + 600, {**WEB, "working": 60 << 20} if memory else ROOTFS)])
    holds_the_clock(store, name, begins, end)


def test_an_archive_gives_the_same_answers(tmp_path):
    """Of a segment that ended before most checks' windows only the views of the others are made."""
    store, hour = str(tmp_path / "store"), 3600
    os.mkdir(store)
    for i, begin in enumerate(range(TO - 6 * hour, TO, 2 * hour)):
        end, part = begin + 2 * hour, str(tmp_path / f"part{i}")
        put(part, [*runs(begin, end), *minutes(begin, end, HOST, WEB, *({"fact": "process_row", "pid": 100 + k, "comm": f"idle-{k}", "user_us": 0, "rss": k << 20} for k in range(8))),
                   *({**ROOTFS, "at": at, "available": (80 << 30) - (at - TO + 6 * hour) * (3 << 20)} for at in range(begin, end, 10))])
        (made,) = glob.glob(f"{part}/2*.db")
        os.rename(made, f"{store}/2020010{i + 1}T000000Z-0001.db")
    plain = check(store, "--all")
    assert ("disk-full-soon", "/") in bad(plain[1])
    done = subprocess.run([f"{BIN}/sonde", "seal", "--json", "--store", store], capture_output=True, text=True, check=True)
    assert json.loads(done.stdout)["segments"] == 2, done.stdout
    assert check(store, "--all") == plain


def test_a_cache_that_grows_is_no_leak_and_a_leak_below_a_cache_is(tmp_path):
    for name, anon, file in (("cache", 0, 60), ("leak", 60, -60)):
        store = str(tmp_path / name)
        put(store, [*runs(TO - 7200, TO), *({**WEB, "at": at, "working": int((300 + (anon + file) * (at - TO) / 3600) * (1 << 20)), "kernel": 1 << 20,
                                             "anon": int((200 + anon * (at - TO) / 3600) * (1 << 20))} for at in range(TO - 7200, TO, 10))])
        assert check(store, "memory-leak")[0] == (name == "leak")


def test_memory_that_is_full_soon_says_when_and_by_which_line(tmp_path):
    """web grows by 20 MiB an hour, all of it in one line; another line goes up and down."""
    store = str(tmp_path / "store")
    web = {"pid": 70, "comm": "app", "container": "web", "container_id": "web", "start": TO - 9000}
    leak, cache = ({**web, "kind": "mem", "stack": ["main", [name, "app.c", line]]} for name, line in (("leaky", 12), ("cached", 40)))
    held = [{**of, "at": at, "n": mib * 256, "value": mib << 20} for at in range(TO - 7200, TO, 60)
            for of, mib in ((leak, 20 + (at - TO + 7200) // 180), (cache, 30 + at // 60 * 3 % 11))]
    put(store, [*merged(list(well()), growing(TO - 7200, TO, 100, 20)), {"run": "mem", "from": TO - 7200, "to": TO, "bucket_s": 10}, *held])
    (row,) = check(store, "memory-full-soon")[1]["rows"]
    assert row["state"] == "bad" and row["subject"] == "web"
    assert row["value"] == pytest.approx((512 - 140) / 20, rel=0.02)
    assert "full at about 2026-11-2" in row["text"] and "grew: leaky (app.c:12) of web by " in row["text"] and "cached" not in row["text"], row["text"]


def faster(begin, end, mib, a_minute, levels=0):
    """web's memory; `levels`: it stops to grow so many seconds before the end."""
    return [{**WEB, "at": at, "working": int((mib + a_minute * (min(at, end - levels) - begin) / 60) * (1 << 20))} for at in range(begin, end, 10)]


@pytest.mark.parametrize("since,a_minute,levels,bad_is", [(310, 40, 0, True), (250, 40, 0, False), (900, 5, 0, False), (900, 40, 110, False), (900, 20, 0, True)])
def test_memory_that_is_full_within_minutes_is_told_after_five(tmp_path, since, a_minute, levels, bad_is):
    """Of a limit of 512 MiB: full at once is no case for an hour's rate; a start that is over, or growth that takes an hour, is none."""
    store = str(tmp_path / "store")
    put(store, [*runs(TO - since, TO), *faster(TO - since, TO, 100, a_minute, levels)])
    rows = [r for r in check(store, "memory-full-soon")[1]["rows"] if r["state"] == "bad"]
    assert [r["subject"] for r in rows] == (["web"] if bad_is else []), rows
    if bad_is:
        left = (512 - (100 + a_minute * (since - 10) / 60)) / a_minute / 60
        assert rows[0]["value"] == pytest.approx(left, rel=0.1) and f"{a_minute} MiB more each minute in the last five" in rows[0]["text"], rows


COUNTED = {"disk-errors": lambda at: [{"run": "disk", "from": T - 3600, "to": T + 7200, "bucket_s": 10}, {**BLOCK, "at": at, "errors": 2}], "oom": lambda at: [event(at, "oom kill", "container", "web", "met the limit")], "sonde-losses": lambda at: [{"loss": "ring", "at": at, "n": 9000}],
           "log-new-error": lambda at: [{"run": "logs", "from": T - 3600, "to": T + 7200, "bucket_s": 10}, {**LOGGED, "at": T - 3600}, {**SAID, "at": at}]}


@pytest.mark.parametrize("name", COUNTED)
def test_what_is_counted_fails_at_once_and_as_long_as_it_counts(name, tmp_path):
    store = str(tmp_path / "store")
    put(store, [*runs(T - 3600, T + 7200)[-1:], *minutes(T - 3600, T + 7200, HOST), *COUNTED[name](T)])
    holds_the_clock(store, name, T + 10, T + 60 * number_of(name, "for"))


@pytest.mark.parametrize("name, kind, over", [("read-only", "read-only", "writable"), ("unhealthy", "unhealthy", "healthy")])
def test_what_is_told_by_events_fails_at_once_and_until_the_other_one(name, kind, over, tmp_path):
    store = str(tmp_path / "store")
    put(store, [*runs(T - 3600, T + 7200)[-1:], event(T, kind, "container", "x"), event(T + 1200, over, "container", "x")])
    holds_the_clock(store, name, T + 10, T + 1200)


@pytest.mark.parametrize("every", [20, 60, 300])
def test_a_loop_of_restarts_is_over_once_the_container_runs_for_twice_as_long(every, tmp_path):
    store = str(tmp_path / "store")
    ends = T + 4 * every
    put(store, [*runs(T - 3600, T + 7200)[-1:], *(e for at in range(T, ends + 1, every) for e in (event(at, "stopped", "container", "web", "exit 1"),
                                                                                                event(at, "restarted", "container", "web")))])
    holds_the_clock(store, "restart-loop", T + 2 * every + 10, ends + 10, after=max(120, 2 * every))


def test_a_container_that_ended_badly_fails_until_it_starts_again(tmp_path):
    store = str(tmp_path / "store")
    put(store, [*runs(T - 3600, T + 7200)[-2:], event(T, "stopped", "container", "web", "exit 1"), event(T + 1200, "started", "container", "web")])
    holds_the_clock(store, "stopped", T + 120, T + 1200)


@pytest.mark.parametrize("how, later", [("exit 0", None), ("exit 143", None), ("signal 15 (TERM)", None), ("", None), ("exit 1", "removed"), ("exit 1", "restarted")])
def test_a_container_that_ended_as_it_was_asked_or_is_gone_fails_no_check(how, later, tmp_path):
    store = str(tmp_path / "store")
    put(store, merged(list(well()), [event(TO - 900, "stopped", "container", "job", how), *([event(TO - 880, later, "container", "job")] if later else [])]))
    assert check(store, "stopped")[0] == 0


def test_a_segment_that_is_finished_is_no_recorder_that_stopped(tmp_path):
    """The newest run has stored something after the moment that is checked, as one that goes on has."""
    store = str(tmp_path / "store")
    put(store, [{"run": "cpu", "from": T - 3600, "to": T, "bucket_s": 10}, {"kind": "cpu", "at": T - 60, "n": 1, "pid": 7, "comm": "app", "stack": ["main"]},
                {"run": "cpu", "from": T, "to": T + 1200, "bucket_s": 10}, {"kind": "cpu", "at": T + 60, "n": 1, "pid": 7, "comm": "app", "stack": ["main"]}])
    for path in tmp_path.glob("store/*.db"):
        with sqlite3.connect(path) as db:
            db.execute(f"UPDATE run SET state = iif(to_ns < {T + 100} * 1000000000, 3, 0)")
    assert "bad" not in state_of(store, "sonde-recording", T + 900)


def test_a_recorder_that_stops_fails_after_its_minutes_and_until_it_stores_again(tmp_path):
    def cpu(begin, end):
        return [{"run": "cpu", "from": begin, "to": end, "bucket_s": 10}, {"kind": "cpu", "at": begin + 10, "n": 1, "pid": 7, "comm": "app", "stack": ["main"]}]
    for name, rows in (("stopped", cpu(T - 3600, T)), ("again", [*cpu(T - 3600, T), *cpu(T + 900, T + 1800)])):
        store = str(tmp_path / name)
        put(store, rows)
        for path in tmp_path.glob(f"{name}/*.db"):
            with sqlite3.connect(path) as db:
                db.execute("UPDATE run SET state = 2")
        seen = {at: "bad" in state_of(store, "sonde-recording", T + at) for at in ((290, 330, 890) if name == "stopped" else (1810,))}
        assert seen == ({290: False, 330: True, 890: True} if name == "stopped" else {1810: False})


def test_each_check_that_ships_is_held_to_the_clock():
    assert {*RATES, *READINGS, *COUNTED, "requests-failing", "requests-slow", "requests-running", "memory-leak", "memory-full-soon", "disk-full-soon", "read-only", "unhealthy", "restart-loop",
            "deleted-files", "stopped", "sonde-recording"} == set(SHIPPED)


def test_a_check_is_not_bad_before_its_minutes_are_over(tmp_path):
    store = str(tmp_path / "store")
    put(store, merged(list(well()), minutes(TO - 180, TO, WEB, throttled=40, throttled_us=100000)))
    assert check(store, "throttled")[0] == 0


def test_what_was_bad_an_hour_before_and_is_not_now_has_recovered(tmp_path):
    store = str(tmp_path / "store")
    put(store, merged(list(well()), minutes(TO - 4500, TO - 3500, WEB, throttled=40, throttled_us=100000)))
    code, answer = check(store, "throttled")
    assert code == 0 and [(r["state"], r["subject"]) for r in answer["rows"]] == [("recovered", "web")]


def test_what_was_not_recorded_is_not_measured_and_neither_bad_nor_fine(tmp_path):
    store = str(tmp_path / "store")
    put(store, [{"run": "cpu", "from": TO - 600, "to": TO, "bucket_s": 10}, {"kind": "cpu", "at": TO - 300, "n": 1, "pid": 7, "comm": "app", "stack": ["main"]}])
    code, answer = check(store)
    assert code == 0 and answer["not_measured"] > 10
    assert {r["check"] for r in answer["rows"] if r["state"] == "not measured"} >= {"memory-limit", "disk-space", "throttled"}


def test_what_is_recorded_later_measures_nothing_of_a_time_before(tmp_path):
    """Requests are recorded from ten minutes after the time that is asked about on."""
    store = str(tmp_path / "store")
    put(store, [{"run": "host", "from": TO - 600, "to": TO, "bucket_s": 10}, *minutes(TO - 600, TO, HOST, WEB),
                {"run": "l7", "from": TO + 600, "to": TO + 1200, "bucket_s": 10},
                {"request": "GET /x", "service": "10.0.0.1:80", "status": "200", "result": 0, "side": 2, "at": TO + 700, "n": 9, "pid": 7, "comm": "app",
                 "total_ns": 9000000, "max_ns": 1000000, "request_bytes": 10, "response_bytes": 10}])
    _, answer = check(store)
    states = {r["check"]: r["state"] for r in answer["rows"]}
    assert states["requests-slow"] == states["requests-failing"] == "not measured" and states["memory-limit"] == "fine", states


def test_a_check_of_ones_own_reads_any_column_of_the_minutes_asked(fine, tmp_path):
    """Columns that no other check reads; all of them; and none, only rows. Of two stretches of time, an hour apart, and not of what lies between."""
    own = tmp_path / "checks.d"
    own.mkdir()
    for name, select in (("one", "SELECT psi_cpu_us AS subject, cpu_limit_m AS value FROM container_stats c"),
                         ("all", "SELECT x.time AS subject, x.working AS value FROM (SELECT * FROM container_stats) x"),
                         ("rows", "SELECT count(*) || ' rows' AS subject, count(*) AS value FROM host_stats"),
                         ("span", "SELECT min(ts) || ' to ' || max(ts) AS subject, count(DISTINCT ts / 600) AS value FROM host_stats")):
        (own / f"{name}.sql").write_text(f"-- {name}: asks\n-- for = 2: minutes\n{select} LIMIT 1;\n")
    code, answer = check(fine, config=str(tmp_path))
    rows = {r["check"]: r for r in answer["rows"] if r["state"] == "bad" and r["check"] in ("one", "all", "rows", "span")}
    assert code == 1 and set(rows) == {"one", "all", "rows", "span"}, answer
    assert (rows["one"]["subject"], rows["one"]["value"]) == ("0", 1000) and rows["all"]["value"] == 100 << 20 and re.match(r"\d{4}-\d\d-\d\d \d\d:", rows["all"]["subject"])
    assert rows["rows"]["value"] > 12


def test_a_check_of_ones_own_is_asked_and_takes_the_place_of_one_that_ships(fine, tmp_path):
    own = tmp_path / "checks.d"
    own.mkdir()
    (own / "web-memory.sql").write_text("-- web-memory: web has more than it should\n-- threshold = 50.5: MiB\n-- unit = MiB\n-- for = 2: minutes\n"
                                        "-- next = sonde ps {subject}\n"
                                        "SELECT container AS subject, min(working) >> 20 AS value FROM container_stats\n"
                                        "WHERE ts >= :from AND ts < :to GROUP BY 1 HAVING value > :threshold;\n")
    (own / "disk-space.sql").write_text("-- disk-space: never\nSELECT 1 AS subject, 2 AS value WHERE 0;\n")
    code, answer = check(fine, config=str(tmp_path))
    assert code == 1 and bad(answer) == {("web-memory", "web")} and answer["checks"] == len(SHIPPED) + 1
    (row,) = [r for r in answer["rows"] if r["state"] == "bad"]
    assert row["value"] == 100 and row["command"] == "sonde ps web" and row["evidence"] is None


@pytest.mark.parametrize("text,says", [
    ("SELECT 1;", "the file must begin with"), ("-- x: y\n-- level = loud\nSELECT 1;", "x.sql:2: level must be"), ("-- x: y\n-- for = 0: m\nSELECT 1;", "x.sql:2: minutes"),
    ("-- x: y\n", "there is no query"), ("-- x: y\nSELECT 1 AS a;", "must return the columns subject and value"), ("-- x: y\nSELEKT;", "syntax error"),
    ("-- x: y\nDELETE FROM events;", "not authorized"), ("-- x: y\nATTACH '/tmp/x' AS y;", "not authorized"), ("-- x: y\nSELECT * FROM nowhere;", None),
])
def test_a_check_that_cannot_be_is_told_with_its_file(fine, tmp_path, text, says):
    own = tmp_path / "own"
    own.mkdir()
    (own / "x.sql").write_text(text)
    done = subprocess.run([f"{BIN}/sonde", "check", "x", "--checks", str(own), "--at", str(TO)], capture_output=True, text=True,
                          env={**os.environ, "SONDE_STORE": fine}, timeout=60)
    if says:
        assert done.returncode == 2 and says in done.stderr, done.stderr
    else:
        assert done.returncode == 0 and "1 not measured" in done.stdout


def notified(store, tmp_path, program, *words):
    """`sonde check --notify` at this moment."""
    return subprocess.run([f"{BIN}/sonde", "check", *words, "--notify", program, "--state", str(tmp_path / "state.json")], capture_output=True, text=True,
                          env={**os.environ, "SONDE_STORE": store, "SONDE_CONFIG": "/nonexistent"}, timeout=60)


def test_a_program_is_told_once_of_each_change_of_state_and_again_where_it_did_not_take_it(tmp_path):
    own = tmp_path / "own"
    own.mkdir()
    switch = own / "switch.sql"

    def set_bad(on):
        switch.write_text(f"-- switch: a switch\n-- unit = W\nSELECT 'lamp \"x\" $(id)' AS subject, 60 AS value, 'on' AS text WHERE {int(on)};")
    store, log = str(tmp_path / "store"), tmp_path / "log"
    put(store, well())
    words = ["switch", "--checks", str(own)]
    tell = f'read line; echo "$SONDE_STATE|$SONDE_CHECK|$SONDE_SUBJECT|$line" >>{log}'
    set_bad(False)
    assert notified(store, tmp_path, tell, *words).returncode == 0 and not log.exists()
    set_bad(True)
    failed = notified(store, tmp_path, "exit 3", *words)
    assert failed.returncode == 1 and "sent again" in failed.stderr
    for _ in range(3):
        assert notified(store, tmp_path, tell, *words).returncode == 1
    assert log.read_text() == 'bad|switch|lamp "x" $(id)|switch: lamp "x" $(id), 60 W (on)\n'
    set_bad(False)
    for _ in range(2):
        assert notified(store, tmp_path, tell, *words).returncode == 0
    assert log.read_text().splitlines()[1:] == ['recovered|switch|lamp "x" $(id)|switch: lamp "x" $(id) has recovered']


def test_people_are_shown_what_is_bad_first_and_how_many_were_asked(tmp_path):
    store = str(tmp_path / "store")
    put(store, merged(list(well()), BAD["disk-space"][1]))
    done = subprocess.run([f"{BIN}/sonde", "check", "--at", str(TO)], capture_output=True, text=True, timeout=60,
                          env={**os.environ, "SONDE_STORE": store, "SONDE_CONFIG": "/nonexistent", "TZ": "UTC"})
    assert done.returncode == 1
    assert done.stdout.startswith("CRITICAL      disk-space: /, 1 % (1024 of 102400 MiB left)\n")
    assert f"{len(SHIPPED)} checks at " in done.stdout.splitlines()[-1] and "2 failed" in done.stdout


# ---- what a service promises ----

def promised(tmp_path, text, *asked_):
    (tmp_path / "checks").mkdir()
    (tmp_path / "checks" / "shop.slo").write_text(text)
    store = str(tmp_path / "s")
    put(store, [{"run": "l7", "from": TO - 7 * 3600, "to": TO, "bucket_s": 10}, *(x for a in asked_ for x in a)])
    return store, str(tmp_path / "checks")


def served(begin, end, ms=10, failed=0, n=100, side=2, **more):
    for at in range(begin, end, 60):
        for result, k in ((0, n - failed), (1, failed)):
            if k:
                yield {"request": "GET /x", "service": "10.0.0.1:80", "status": "", "result": result, "side": side, "at": at, "n": k, "pid": 7, "comm": "app",
                       "total_ns": k * ms * 1000000, "max_ns": ms * 1000000, **more}


def burning(sonde, store, folder):
    out = sonde("check", "--store", store, "--at", TO, "--checks", folder, "--json")
    return {r["check"]: r for r in json.loads(out.stdout)["rows"] if r["state"] == "bad" and r["check"].startswith("shop-")}


@pytest.mark.parametrize("failed, names", [(0, set()), (1, {"slow"}), (2, {"fast", "slow"})])
def test_a_budget_of_failures_that_burns_too_fast_is_told_by_how_much(sonde, tmp_path, failed, names):
    store, folder = promised(tmp_path, "availability = 99.9 %  # of all\n", served(TO - 6 * 3600, TO, failed=failed))
    found = burning(sonde, store, folder)
    assert set(found) == {f"shop-availability-{x}" for x in names}
    for row in found.values():
        assert (row["subject"], row["value"], row["level"]) == ("shop", failed * 10, "critical" if row["check"].endswith("fast") else "warning"), row
        assert f"of {6000 if row['check'].endswith('fast') else 36000} requests failed" in row["text"]


def test_an_hour_of_failures_that_is_over_is_told_no_more(sonde, tmp_path):
    store, folder = promised(tmp_path, "availability = 99\n", served(TO - 3600, TO - 1900, failed=90), served(TO - 1900, TO))
    assert set(burning(sonde, store, folder)) == set(), "the short window is fine, of both"


def test_too_many_that_are_slow_are_told_and_what_is_in_time_is_not(sonde, tmp_path):
    slow, quick = served(TO - 6 * 3600, TO, ms=400, n=30), served(TO - 6 * 3600, TO, ms=100, n=70)
    store, folder = promised(tmp_path, "latency = 300ms\nlatency-target = 99\n", slow, quick)
    assert {k: v["value"] for k, v in burning(sonde, store, folder).items()} == {"shop-latency-fast": 30, "shop-latency-slow": 30}
    (tmp_path / "checks" / "shop.slo").write_text("latency = 500ms\n")
    assert not burning(sonde, store, folder)


def test_only_the_requests_that_are_meant_count(sonde, tmp_path):
    store, folder = promised(tmp_path, "availability = 99\noperation = GET /x\nservice = 10.0.0.1:80\n", served(TO - 6 * 3600, TO),
                             served(TO - 6 * 3600, TO, failed=100, request="GET /y"), served(TO - 6 * 3600, TO, failed=100, service="10.0.0.2:80"),
                             served(TO - 6 * 3600, TO, failed=100, side=1))
    assert not burning(sonde, store, folder)
    (tmp_path / "checks" / "shop.slo").write_text("availability = 99\noperation = GET /y\n")
    assert set(burning(sonde, store, folder)) == {"shop-availability-fast", "shop-availability-slow"}


@pytest.mark.parametrize("text, says", [("", "availability or latency is missing"), ("availability = 100\n", "shop.slo:1: a target must be a percentage"),
                                        ("availability = 99\nlatency = soon\n", "shop.slo:2: latency must be a time"), ("latency-target = 9\n", "latency-target needs latency"),
                                        ("availability 99\n", "a line must be key = value"), ("availability =\n", "the value is missing"), ("x = 1\n", "unknown key (known: availability"),
                                        ("availability = nan\n", "a target must be a percentage"), ("service = " + "x" * 300, "this is too long")])
def test_a_promise_that_makes_no_sense_is_refused_with_its_line(sonde, tmp_path, text, says):
    store, folder = promised(tmp_path, text)
    out = sonde("check", "--store", store, "--at", TO, "--checks", folder)
    assert out.returncode == 2 and says in out.stderr, out.stderr


def test_what_cannot_be_kept_changes_no_answer(tmp_path):
    """No sonded runs for the store."""
    store, now = str(tmp_path / "store"), int(time.time()) // 10 * 10
    put(store, [{"run": "host", "from": now - 3600, "to": now, "bucket_s": 10}, *minutes(now - 3600, now, HOST, running=60)])
    done = subprocess.run([f"{BIN}/sonde", "check", "cpu-queue", "--keep"], capture_output=True, text=True, timeout=60,
                          env={**os.environ, "SONDE_STORE": store, "SONDE_CONFIG": "/nonexistent"})
    assert done.returncode == 1 and "cpu-queue: host, 60 threads (for 2 CPUs)" in done.stdout, done
    assert "nothing is kept: no sonded is running" in done.stderr, done


def test_a_check_whose_text_ends_within_a_character_is_kept_and_so_are_those_after_it(sonde, tmp_path):
    """What sonded is asked is heard at its socket."""
    store, own, asked = str(tmp_path / "s"), tmp_path / "checks", []
    own.mkdir()
    now = int(time.time()) // 10 * 10
    put(store, [{"run": "host", "from": now - 300, "to": now, "bucket_s": 10}, *minutes(now - 300, now, HOST)])
    for name, subject in (("long", "a" + "ü" * 150), ("short", "b")):
        (own / f"{name}.sql").write_text(f"-- {name}: it is there\n-- level = warning\n-- threshold = 1: of it\n-- needs = host\n-- next = sonde status\n"
                                         f"SELECT '{subject}' AS subject, 9 AS value, '' AS text;\n")
    with socket.socket(socket.AF_UNIX) as s:
        s.bind(os.path.join(store, "control.sock"))
        s.listen(8)

        def answer():
            while len(asked) < 2:
                with s.accept()[0] as c:
                    asked.append(json.loads(c.recv(65536)))
                    c.sendall(b'{"to_ns":1}\n')
        told = threading.Thread(target=answer, daemon=True)
        told.start()
        done = subprocess.run([f"{BIN}/sonde", "check", "long", "short", "--checks", str(own), "--store", store, "--keep"], capture_output=True, text=True, timeout=60, check=False)
        told.join(10)
    assert done.returncode == 1 and "nothing is kept" not in done.stderr, done
    assert [(q["do"], q["cause"]) for q in asked] == [("keep", "check long"), ("keep", "check short")] and asked[0]["why"].startswith("long: a" + "ü" * 99), asked
