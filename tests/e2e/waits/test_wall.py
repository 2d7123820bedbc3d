# SPDX-License-Identifier: Apache-2.0
"""sonde flame --type wall: on and off CPU in one picture. On stores of known contents to the nanosecond; on a recording
against the wall time that each thread knows it had."""
import collections
import json
import os
import re
import shutil
import subprocess

import pytest
from conftest import BUILD, Capture, Work, need, need_root, scale

AT = 1795144200  # 2026-11-20T03:10:00Z
MS = 1_000_000
RANGE = ("--from", AT, "--to", AT + 10)
WORKER = {"pid": 7, "comm": "app", "thread": "worker", "tid": 8}
WAITER = {"pid": 7, "comm": "app", "thread": "waiter", "tid": 9}
OTHER = {"pid": 40, "comm": "other", "thread": "other", "tid": 40}


def wait(who, reason, n, ms, flags=0, at=3):
    return dict(who, wait=reason, flags=flags, at=AT + at, n=n, total_ns=ms * MS, max_ns=ms * MS // n)


def stack(who, kind, label, n, ms, frames, at=3):
    return dict(who, kind=kind, at=AT + at, label=label, n=n, value=ms * MS, max=ms * MS // n, stack=frames)


LINES = [
    {"run": "offcpu", "from": AT, "to": AT + 10, "bucket_s": 1},
    # the worker: 4 s running, 3 s of locks in two places (2 : 1), 1 s of sleep that was not over, 2 s ready
    wait(WORKER, 32, 100, 4000), wait(WORKER, 1, 30, 1000), wait(WORKER, 1, 60, 2000, at=5),
    wait(WORKER, 6, 1, 1000, flags=2), wait(WORKER, 17, 50, 2000),
    stack(WORKER, "offcpu", 1, 10, 20, ["main", "handle", "pthread_mutex_lock", "futex_wait"]),
    stack(WORKER, "offcpu", 1, 10, 10, ["main", "flush", "futex_wait"]),
    stack(WORKER, "runqueue", 17, 10, 10, ["main", "handle", "parse"]),
    # the waiter has no samples of what it ran, and waits in an event loop; PostgreSQL's rule makes of some a lock
    wait(WAITER, 32, 5, 10), wait(WAITER, 5, 10, 9990),
    stack(WAITER, "offcpu", 5, 3, 200, ["main", "loop", "epoll_wait"]),
    stack(WAITER, "offcpu", 5, 1, 100, ["main", "ProcSleep", "epoll_wait"]),
    wait(OTHER, 6, 1, 10000, flags=3),
    {"run": "cpu", "from": AT, "to": AT + 10, "bucket_s": 1, "period_ns": 10 * MS},
    dict(WORKER, kind="cpu", at=AT + 3, n=30, stack=["main", "handle", "parse"]),
    dict(WORKER, kind="cpu", at=AT + 5, n=10, stack=["main", "handle", "reply"]),
]


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    program, path = os.path.join(BUILD, "tests", "putstore"), str(tmp_path_factory.mktemp("wall") / "store")
    need("build/tests/putstore", program)
    subprocess.run([program, path], input="".join(json.dumps(x) + "\n" for x in LINES), text=True, check=True)
    return path


def folded(sonde, store, path, *args):
    sonde("flame", *args, "--type", "wall", "-o", path, store=store, check=True)
    with open(path, encoding="utf-8") as f:
        return {line.rsplit(" ", 1)[0]: int(line.rsplit(" ", 1)[1]) for line in f}


def test_each_threads_time_stands_where_its_stacks_say(sonde, made, tmp_path):
    assert folded(sonde, made, tmp_path / "x.folded", *RANGE) == {
        "app (7) worker (8);main;handle;parse": 3000 * MS,
        "app (7) worker (8);main;handle;reply": 1000 * MS,
        "app (7) worker (8);main;handle;parse;[ready: preempted]": 2000 * MS,
        "app (7) worker (8);main;handle;pthread_mutex_lock;futex_wait;[waits: lock]": 2000 * MS,
        "app (7) worker (8);main;flush;futex_wait;[waits: lock]": 1000 * MS,
        "app (7) worker (8);[waits: sleep, not over]": 1000 * MS,
        "app (7) waiter (9);[on CPU]": 10 * MS,
        "app (7) waiter (9);main;loop;epoll_wait;[idle: poll]": 6660 * MS,
        "app (7) waiter (9);main;ProcSleep;epoll_wait;[waits: lock]": 3330 * MS,
        "other (40) other (40);[waits: sleep, not over]": 10000 * MS}


def test_callers_in_common_are_shared_and_off_cpu_is_marked_from_where_nothing_ran(sonde, made):
    answer = json.loads(sonde("flame", *RANGE, "--type", "wall", "--json", store=made, check=True).stdout)
    assert (answer["type"], answer["unit"], answer["value"]) == ("wall", "ns", 30_000 * MS)
    rows = {r["id"]: r for r in answer["rows"]}

    def origins(row):
        return [] if row["parent"] is None else origins(rows[row["parent"]]) + [(row["name"], row["origin"])]

    at = {";".join(n for n, _ in o): [x for _, x in o] for o in map(origins, rows.values())}
    worker = "app (7) worker (8);main;handle;"
    assert at[worker + "parse;[ready: preempted]"] == ["group", "native", "native", "native", "off"]
    assert at[worker + "pthread_mutex_lock;futex_wait;[waits: lock]"] == ["group", "native", "native", "off", "off", "off"]
    assert at["app (7) waiter (9);main;loop;epoll_wait;[idle: poll]"] == ["group"] + ["off"] * 4


def test_groups_filters_and_forms_hold_the_same_sums(sonde, made, tmp_path):
    def sums(*args):
        return sum(folded(sonde, made, tmp_path / "y.folded", *RANGE, *args).values())

    assert sums() == sums("--group", "process") == sums("--group", "none") == 30_000 * MS
    assert sums("--pid", 7) == 20_000 * MS and sums("--comm", "other") == 10_000 * MS
    by_process = folded(sonde, made, tmp_path / "z.folded", *RANGE, "--group", "process")
    assert sum(v for k, v in by_process.items() if k.startswith("app (7);")) == 20_000 * MS
    text = sonde("flame", *RANGE, "--type", "wall", "--text", store=made, check=True).stdout
    assert re.search(r"100\.0% +30 s .* all$", text, re.M) and "[waits: lock]" in text
    for name, holds in (("x.svg", b"[waits: lock]"), ("x.html", b"Time on and off CPU"), ("x.pb.gz", b"\x1f\x8b")):
        sonde("flame", *RANGE, "--type", "wall", "-o", tmp_path / name, store=made, check=True)
        assert holds in (tmp_path / name).read_bytes()
    if shutil.which("go"):
        done = subprocess.run(["go", "tool", "pprof", "-raw", tmp_path / "x.pb.gz"], capture_output=True, text=True, check=True)
        assert "events/count wall/nanoseconds" in done.stdout


def test_what_cannot_be_answered_says_so(sonde, made, tmp_path):
    done = sonde("flame", *RANGE, "--type", "wall", "--unit", "events", "-o", tmp_path / "x.svg", store=made)
    assert done.returncode == 2 and "wall" in done.stderr
    done = sonde("flame", "--from", AT + 100, "--to", AT + 110, "--type", "wall", "-o", tmp_path / "x.svg", store=made)
    assert done.returncode == 4 and not os.path.exists(tmp_path / "x.svg")
    assert sonde("diff", "--type", "wall", store=made).returncode == 2


@pytest.mark.long
def test_the_picture_adds_up_to_the_wall_time_that_each_thread_had(sonde, tmp_path):
    need_root()
    store = str(tmp_path / "store")
    captures = [Capture(store, "--comm", "waits", program=p).start() for p in ("sonde-offcpu", "sonde-cpu")]
    try:
        told = Work("waits", "run", *(f"{k}:2:{scale(150, 1500)}:3" for k in ("sleep", "futex", "pipe", "poll", "recv")),
                    cwd=str(tmp_path)).told()
        for c in captures:
            c.stop()  # stacks may be lost where the host is too busy, sums not
    finally:
        for c in captures:
            c.close()
    sums, kinds = collections.Counter(), collections.Counter()
    for path, ns in folded(sonde, store, tmp_path / "x.folded", "--last", "10m", "--pid", told["pid"]).items():
        tid = int(re.match(r"[^;]*\((\d+)\)(;|$)", path).group(1))
        sums[tid] += ns
        kinds[tid, re.sub(r".*;\[(\w+).*", r"\1", path) if path.endswith("]") else "ran"] += ns
    for thread in told["threads"]:
        # its own clock begins after it was made and got a CPU, and ends before it ends
        assert thread["wall_ns"] * 0.99 <= sums[thread["tid"]] <= thread["wall_ns"] * 1.02 + 100 * MS + thread["delay_ns"], thread
        ran = kinds[thread["tid"], "ran"] + kinds[thread["tid"], "on"]
        allowed = 5 * MS + 0.05 * thread["ran_ns"] + 20_000 * (thread["switches"] + thread["preempted"])
        before = max(thread["cpu_ns"] - thread["ran_ns"], 0)  # until its counter was there
        assert -allowed <= ran - thread["ran_ns"] <= allowed + before, (ran, thread)
        waited = kinds[thread["tid"], "waits"] + kinds[thread["tid"], "idle"]
        # it also waits for its counter, to be opened and closed, which takes as long as the kernel's other work lets it
        most = max(thread["ns"] + 20 * MS, thread["wall_ns"] - thread["ran_ns"])
        least = 0.97 * thread["ns"] - thread["delay_ns"] - max(thread["ran_ns"] - thread["cpu_ns"], 0) - 50_000 * thread["count"]
        assert least <= waited <= most, (waited, least, most, thread)
