# SPDX-License-Identifier: Apache-2.0
"""What happened: to containers, file systems and the host, each caused here, and what `sonde events` and `sonde oom` say of it."""
import contextlib
import json
import os
import secrets
import shutil
import signal
import subprocess
import sys
import time

import procfs
import pytest

from conftest import need, need_root, sql_all
from containers import cgroups, engine
from sonded import until
from test_clock import clock  # noqa: F401 (a fixture)
from test_engines import process_called
from test_host import all_roots, first_row, mounted, rounds, text, two_rounds_later

HOLDS = "x = bytearray({} << 20); print(1, flush=True); input()"


@contextlib.contextmanager
def contained(**limits):
    """(id, prefix, write): a cgroup of Docker's form with limits {file: text}, of those files that there are; write() sets one."""
    container_id = secrets.token_hex(32)
    with cgroups({root: f"docker/{container_id}" for root in all_roots()}) as (made, prefix):
        if not made:
            pytest.skip("missing: a cgroup hierarchy that can be written")

        def write(**files):
            done = [f"{d}/{name.replace('__', '.')}" for d in made for name in files if os.path.exists(f"{d}/{name.replace('__', '.')}")]
            for path in done:
                with open(path, "w", encoding="ascii") as f:
                    f.write(files[os.path.basename(path).replace(".", "__")])
            return done
        if limits and not write(**limits):
            pytest.skip(f"missing: a controller that has {', '.join(limits)}")
        # unshare is the container's runtime here: its child is number 1 in a pid namespace
        yield container_id, [*prefix, "unshare", "-pf", "--kill-child"], write


def memory(mib):
    return {"memory__limit_in_bytes": str(mib << 20), "memory__max": str(mib << 20)}


def events(store, where="1"):
    return sql_all(store, f"SELECT * FROM events WHERE {where} ORDER BY at_ns") if first_row(store) else []


def of(store, container_id, kind):
    return events(store, f"which = '{container_id}' AND kind = '{kind}'")


def test_a_container_that_is_killed_at_its_limit_is_explained(capture, sonde, store):
    with contained(**memory(32)) as (container_id, prefix, _):
        cap = capture(program="sonde-host")
        assert until(lambda: first_row(store), 20)
        before = time.time()
        done = subprocess.run([*prefix, "sh", "-c", f"{sys.executable} -c '{HOLDS.format(200)}'; exit 3"], capture_output=True,
                              stdin=subprocess.DEVNULL, check=False)
        assert done.returncode == 3
        assert until(lambda: of(store, container_id, "stopped"), 20)
        cap.stop()
    name = container_id[:12]
    (started,), (stopped,), (kill,) = (of(store, container_id, kind) for kind in ("started", "stopped", "oom kill"))
    assert stopped["detail"] == "exit 3" and started["comm"] == "sh" and started["pid"] == stopped["pid"] and started["name"] == name
    assert before - 1 <= started["ts"] <= kill["ts"] <= stopped["ts"] <= time.time()
    assert kill["comm"].startswith("python") and kill["name"] == name and kill["container"] == name
    assert kill["detail"] == "met its limit, 32 MiB"
    assert not events(store, "kind = 'oom kill' AND subject = 'process'"), "its end is told once"
    (row,) = sql_all(store, "SELECT * FROM oom_kills")
    assert row["pid"] == kill["pid"] and row["mem_limit"] == 32 << 20 and 24 << 20 < row["anon"] <= 32 << 20
    tasks = sql_all(store, f"SELECT comm, pid, rss FROM oom_tasks WHERE process_id = {row['process_id']} ORDER BY rss DESC")
    assert tasks[0]["pid"] == kill["pid"] and {"sh", "unshare"} <= {t["comm"] for t in tasks}
    (counted,) = sql_all(store, f"SELECT sum(oom_kills) AS n FROM container_stats WHERE cgroup = '/docker/{container_id}'")
    assert counted["n"] == 1, "as many as there are events, gone or not"

    (story,) = json.loads(sonde("oom", "--json", store=store, check=True).stdout)["rows"]
    assert story["pid"] == kill["pid"] and story["limit_bytes"] == 32 << 20 and story["own_limit"] and story["container"] == name
    assert story["tasks"][0]["pid"] == kill["pid"]
    said = sonde("oom", store=store, check=True).stdout
    assert f"{name} reached its memory limit of 32 MiB" in said and "largest of" in said


def test_a_container_that_is_killed_says_by_whom(capture, sonde, store):
    with contained() as (container_id, prefix, _):
        cap = capture(program="sonde-host")
        assert until(lambda: first_row(store), 20)
        p = subprocess.Popen([*prefix, sys.executable, "-c", HOLDS.format(1)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        p.stdout.readline()
        inside = int(subprocess.run(["pgrep", "-P", str(p.pid)], capture_output=True, text=True, check=True).stdout)
        killer = subprocess.Popen([sys.executable, "-c", f"import os; os.kill({inside}, {int(signal.SIGKILL)})"])
        killer.wait()
        p.wait(20)
        assert until(lambda: of(store, container_id, "stopped"), 20)
        cap.stop()
    (stopped,) = of(store, container_id, "stopped")
    assert stopped["detail"] == "signal 9 (KILL)" and stopped["pid"] == inside
    assert stopped["caused_by"].startswith("SIGKILL from python") and stopped["caused_by"].endswith(f"({killer.pid})")
    (end,) = events(store, f"subject = 'process' AND pid = {inside}")
    assert end["kind"] == "killed" and end["caused_by"] == stopped["caused_by"]
    rows = json.loads(sonde("events", "--json", store=store, check=True).stdout)["rows"]
    assert [r["kind"] for r in rows if r["which"] == container_id or r["pid"] == inside] == ["started", "stopped"], "told once"


def test_a_restart_loop_is_one_row_with_a_count(capture, sonde, store):
    with contained() as (container_id, prefix, _):
        cap = capture(program="sonde-host")
        assert until(lambda: first_row(store), 20)
        for i in range(6):
            subprocess.run([*prefix, "sh", "-c", f"exit {1 if i else 4}"], check=False)
        assert until(lambda: sum(e["n"] for e in of(store, container_id, "stopped")) == 6, 20), of(store, container_id, "stopped")
        cap.stop()
    assert sum(e["n"] for e in of(store, container_id, "restarted")) == 5
    (row,) = [r for r in json.loads(sonde("events", "--json", store=store, check=True).stdout)["rows"] if r["which"] == container_id
              and r["kind"] != "started"]
    assert row["kind"] == "restart loop" and row["count"] == 5 and row["detail"] == "exit 1" and row["bad"]
    each = json.loads(sonde("events", "--all", "-n", "1000", "--json", store=store, check=True).stdout)["rows"]
    assert sum(r["count"] for r in each if r["kind"] == "restarted" and r["which"] == container_id) == 5


@pytest.mark.long
def test_each_of_two_hundred_stops_within_milliseconds_is_told(capture, store):
    """Rounds fall on the runtime's processes too, and on containers that live and die."""
    with contained() as (container_id, prefix, _):
        cap = capture(program="sonde-host")
        assert until(lambda: first_row(store), 20)
        for i in range(200):
            subprocess.run([*prefix, "sh", "-c", f"exit {i % 3}"], check=False)
        assert until(lambda: sum(e["n"] for e in of(store, container_id, "stopped")) >= 200, 20), of(store, container_id, "stopped")
        cap.stop()
    told = {k: sum(e["n"] for e in of(store, container_id, k)) for k in ("started", "restarted", "stopped")}
    assert told == {"started": 1, "restarted": 199, "stopped": 200}
    codes = {d: sum(e["n"] for e in of(store, container_id, "stopped") if e["detail"] == d) for d in ("exit 0", "exit 1", "exit 2")}
    assert codes == {"exit 0": 67, "exit 1": 67, "exit 2": 66}


def test_what_fills_a_file_system_is_told(capture, store, scratch):
    """A file that is written, a deleted one that a process holds, and a sparse one that fills nothing."""
    point = os.path.join(scratch, "filled")
    os.mkdir(point)
    with mounted(point, "tmpfs", data="size=64m"):
        os.mkdir(f"{point}/logs")
        with open(f"{point}/logs/app.log", "wb") as f:
            f.write(b"x" * (30 << 20))
        with open(f"{point}/sparse", "wb") as f:
            f.truncate(1 << 40)
        with subprocess.Popen(["sh", "-c", f"exec 3>{point}/gone; rm {point}/gone; head -c {25 << 20} /dev/zero >&3; echo ready; exec sleep 60"],
                              stdout=subprocess.PIPE) as holder:
            holder.stdout.readline()
            cap = capture("--bucket", "1s", program="sonde-host")
            assert until(lambda: len(events(store, f"name = '{point}' AND kind = 'fills'")) == 3, 40), (events(store, f"name = '{point}'"), cap.said())
            cap.stop()
            holder.kill()
    told = {e["detail"]: e["comm"] for e in events(store, f"name = '{point}' AND kind = 'fills'")}
    assert told == {f"file {point}/logs/app.log: 30 MiB, written to in the last hour": "",
                    f"folder {point}/logs: 30 MiB, written to in the last hour": "",
                    f"deleted file {point}/gone: 25 MiB, open in sleep ({holder.pid})": "sleep"}


@pytest.mark.long  # half a minute: it waits until it is told that it is over
def test_a_file_system_that_is_full_or_read_only_is_told_and_when_it_is_over(capture, store, scratch):
    point = os.path.join(scratch, "full")
    os.mkdir(point)

    def told(kind):
        return events(store, f"name = '{point}' AND kind = '{kind}'")
    with mounted(point, "tmpfs", data="size=4m,nr_inodes=64"):
        cap = capture("--bucket", "1s", program="sonde-host")
        assert until(lambda: first_row(store, "fs_row"), 20)
        assert until(lambda: sql_all(store, f"SELECT 1 FROM filesystem_stats WHERE mount = '{point}'"), 30)
        with open(f"{point}/file", "wb") as f:
            with contextlib.suppress(OSError):
                f.write(b"x" * (5 << 20))
        assert until(lambda: told("full"), 40)
        os.unlink(f"{point}/file")
        assert until(lambda: told("not full"), 40)
        subprocess.run(["mount", "-o", "remount,ro", point], check=True)
        assert until(lambda: told("read-only"), 40)
        cap.stop()
    kinds = [e["kind"] for e in events(store, f"name = '{point}'")]
    assert [k for k in kinds if k != "fills"] == ["full", "not full", "read-only"]


def test_a_limit_that_is_changed_and_one_that_throttles_are_told(capture, store):
    with contained(cpu__cfs_quota_us="-1", cpu__max="max 100000") as (container_id, prefix, write):
        cap = capture("--bucket", "1s", program="sonde-host")
        assert until(lambda: first_row(store), 20)
        p = subprocess.Popen([*prefix, sys.executable, "-c", "while True: pass"])
        try:
            two_rounds_later(store)
            two_rounds_later(store)
            write(cpu__cfs_quota_us="2000", cpu__max="2000 100000")
            assert until(lambda: of(store, container_id, "throttled"), 20)
            assert until(lambda: of(store, container_id, "limit changed"), 20)
            write(cpu__cfs_quota_us="-1", cpu__max="max 100000")
            assert until(lambda: of(store, container_id, "not throttled"), 20)
        finally:
            p.kill()
            p.wait()
        cap.stop()
    assert [e["detail"] for e in of(store, container_id, "limit changed")] == ["CPU 0.02, was none", "CPU none, was 0.02"]
    assert len(of(store, container_id, "throttled")) == 1


@pytest.mark.parametrize("mib, both, met", [(32, 32, "memory.memsw.failcnt"), (32, 48, "memory.failcnt"), (None, None, None)])
def test_each_time_that_a_container_of_v1_reaches_one_of_its_two_limits_is_counted(mib, both, met, capture, store):
    """Docker's --memory with an equal --memory-swap: the kernel then counts at the limit of memory and swap together."""
    root = next((r for r in all_roots() if os.path.exists(f"{r}/memory.memsw.failcnt")), None)
    if not root:
        pytest.skip("missing: the memory controller of cgroup v1, with memory.memsw.failcnt")

    def counts():
        return {n: int(text(f"{root}/docker/{container_id}/{n}")) for n in ("memory.failcnt", "memory.memsw.failcnt")}
    with contained() as (container_id, prefix, write):
        if mib:
            write(memory__limit_in_bytes=str(mib << 20), memory__memsw__limit_in_bytes=str(both << 20))
        cap = capture("--bucket", "1s", program="sonde-host")
        assert until(lambda: first_row(store), 20)
        before = counts()
        with subprocess.Popen([*prefix, "sh", "-c", f"{sys.executable} -c 'x = bytearray(200 << 20)' </dev/null; echo $?; read x"],
                              stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as p:
            assert (int(p.stdout.readline()) == 0) == (mib is None)
            two_rounds_later(store)
            grew = {n: now - before[n] for n, now in counts().items()}
            cap.stop()
            p.communicate("\n")
    rows = sql_all(store, "SELECT mem, mem_max, mem_limit, swap_limit FROM container_stats "
                          f"WHERE cgroup = '/docker/{container_id}' ORDER BY ts")
    if met == "memory.memsw.failcnt" and not any(grew.values()):  # Linux 6.18: killed at a limit that it does not count
        assert rows[-1]["mem_max"] is None
    else:
        assert grew[met] > 0 if met else not any(grew.values()), grew
        assert rows[-1]["mem_max"] is not None and sum(r["mem_max"] or 0 for r in rows) == sum(grew.values()), grew
    assert any(r["mem"] for r in rows)
    limits = {(r["mem_limit"], r["swap_limit"]) for r in rows if r["mem"] is not None}
    assert limits == {(mib << 20, (both - mib) << 20) if mib else (None, None)}


def test_a_clock_that_is_set_and_a_host_that_slept_are_told(clock, capture, store):  # noqa: F811
    cap = capture("--bucket", "1s", program="sonde-host", env={**clock.env, "CLOCKSHIM_ASLEEP": "sonde-host"})
    assert until(lambda: first_row(store), 20)
    clock.set(boot=600, utc=600)
    assert until(lambda: events(store, "kind = 'suspended'"), 20)
    before = len(rounds(store))
    clock.set(boot=600, utc=600 - 7200)
    assert until(lambda: len(rounds(store)) >= before + 2, 20)
    cap.stop()
    (slept,) = events(store, "kind = 'suspended'")
    assert 598 <= int(slept["detail"].split()[0]) <= 602 and slept["subject"] == "host"
    assert [e["detail"] for e in events(store, "kind = 'clock set'") if float(e["detail"].split()[0]) < -3000]


@pytest.mark.long
def test_what_the_rules_leave_out_is_in_no_event(capture, store):
    with contained(**memory(32)) as (container_id, prefix, _):
        cap = capture("--exclude", "command:python* command:sh", program="sonde-host")
        assert until(lambda: first_row(store), 20)
        subprocess.run([*prefix, "sh", "-c", f"{sys.executable} -c '{HOLDS.format(200)}'; exit 3"], capture_output=True, check=False)
        subprocess.run(["sh", "-c", f"{sys.executable} -c 'import os; os.kill({subprocess.Popen(['sleep', '100']).pid}, 9)'"], check=True)
        assert until(lambda: events(store, "kind = 'killed' AND comm = 'sleep'"), 20)
        two_rounds_later(store)
        cap.stop()
    assert not events(store, f"which = '{container_id}' OR comm LIKE 'python%' OR detail LIKE '%{container_id}%'")
    assert {e["caused_by"] for e in events(store, "comm = 'sleep'")} == {"SIGKILL from [excluded]"}
    assert not sql_all(store, "SELECT 1 FROM oom_tasks WHERE comm LIKE 'python%'")


# --- Docker's own word ---

@pytest.mark.docker
@pytest.mark.long
def log_record(text, stream="stderr", at=None):
    at = time.time() if at is None else at
    stamp = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(at)) + f".{int(at % 1 * 1e9):09d}Z"
    return json.dumps({"log": text, "stream": stream, "time": stamp}) + "\n"


@contextlib.contextmanager
def docker_of_files(folder, container_id, name):
    """An engine as far as sonde knows of it: a process called dockerd with a data root, where a container's files are. Its log's path."""
    own = f"{folder}/data/containers/{container_id}"
    os.makedirs(own)
    with open(f"{own}/config.v2.json", "w", encoding="utf-8") as f:
        json.dump({"Name": f"/{name}", "Config": {"Image": "shop:1"}, "State": {"Running": True}}, f)
    open(f"{own}/{container_id}-json.log", "w", encoding="utf-8").close()
    engine_ = process_called("dockerd", [f"--data-root={folder}/data"], "/")
    try:
        engine_.stdout.readline()
        yield f"{own}/{container_id}-json.log"
    finally:
        engine_.kill()
        engine_.wait()


def lines_of(store, container_id):
    return sql_all(store, f"SELECT line, cut, at_ns FROM event_logs WHERE which = '{container_id}' ORDER BY at_ns, nth")


OLDER = "".join(log_record(f"line {i}\n") for i in range(30))
LOG = "".join(log_record(f"line {i}\n") for i in range(30, 40)) + log_record("db postgres://app:hunter2@db/x\n") + log_record("y" * 9000) + \
    log_record("y\n") + log_record("no such table\n", "stdout")


def test_a_container_that_ends_badly_leaves_its_last_lines(capture, sonde, store, scratch):
    """Four containers: one's files are there, another one's are removed as it ends, and two end as they should."""
    commands = {"stays": "exit 3", "removed": "exit 3", "well": "exit 0", "asked": "kill -TERM $$"}
    ids, logs, running = {}, {}, {}
    with contextlib.ExitStack() as stack:
        for name in commands:
            ids[name], prefix, _ = stack.enter_context(contained())
            logs[name] = stack.enter_context(docker_of_files(f"{scratch}/{name}", ids[name], name))
            running[name] = [*prefix, "sh", "-c", f"trap 'exit 143' TERM; read x; {commands[name]}"]
        cap = capture(program="sonde-host")  # log lines are on by default
        assert until(lambda: first_row(store), 20)
        running = {name: subprocess.Popen(command, stdin=subprocess.PIPE) for name, command in running.items()}
        assert until(lambda: set(logs.values()) <= set(procfs.links(cap.pid)), 20)
        for name, path in logs.items():
            with open(path, "a", encoding="utf-8") as f:
                f.write(LOG if name == "stays" else OLDER + LOG)
        with open(f"{logs['stays']}.1", "w", encoding="utf-8") as f: # it was rotated
            f.write(OLDER)
        shutil.rmtree(os.path.dirname(logs["removed"]))
        for p in running.values():
            p.communicate(b"\n")
        assert until(lambda: all(of(store, i, "stopped") for i in ids.values()), 20)
        cap.stop()
    for name in ("stays", "removed"):
        lines = lines_of(store, ids[name])
        (stopped,) = of(store, ids[name], "stopped")
        assert {r["at_ns"] for r in lines} == {stopped["at_ns"]}
        assert [r["line"] for r in lines[:17]] == [f"line {i}" for i in range(23, 40)]
        assert [(r["line"], r["cut"]) for r in lines[17:]] == [("db postgres://app:***@db/x", 0), ("y" * 500, 1), ("no such table", 0)]
    assert not lines_of(store, ids["well"]) + lines_of(store, ids["asked"])
    rows = json.loads(sonde("events", "--json", "--all", "--kind", "stopped", "-n", 100000, "--last", "10m", store=store, check=True).stdout)["rows"]
    rows = [r for r in rows if r["which"] in ids.values()] # others' containers may end on this host, too
    assert {(r["which"], len(r["log"] or [])) for r in rows} == {(ids["stays"], 20), (ids["removed"], 20), (ids["well"], 0), (ids["asked"], 0)}, rows
    assert {r["log"][-1]["line"] for r in rows if r["log"]} == {"no such table"}
    assert "    | no such table\n" in sonde("events", "stays", "--last", "10m", store=store, check=True).stdout


@pytest.mark.docker
def test_dockers_log_of_a_container_that_is_removed_at_once_is_kept(capture, store):
    need_root()
    need("docker")
    e = engine()
    try:
        image = e.image()
        cap = capture("--bucket", "1s", "--log-lines", "on", program="sonde-host", prefix=e.prefix)
        assert until(lambda: first_row(store), 30)
        done = e.docker("run", "--rm", "--name", "web", "--network", "none", image, "/bin/sh", "-c", "echo begins; sleep 3; echo no such table >&2; exit 7")
        assert done.returncode == 7, done.stderr
        assert until(lambda: sql_all(store, "SELECT 1 FROM event_logs"), 30), events(store)
        cap.stop()
    finally:
        e.stop()
    (stopped,) = events(store, "kind = 'stopped'")
    assert stopped["detail"] == "exit 7" and [r["line"] for r in lines_of(store, stopped["which"])] == ["begins", "no such table"]


@pytest.mark.docker
def test_dockers_containers_are_told_from_their_creation_to_their_removal(capture, store):
    need_root()
    need("docker")
    e = engine()
    try:
        image = e.image()
        cap = capture("--bucket", "1s", program="sonde-host", prefix=e.prefix)
        assert until(lambda: first_row(store), 30)
        done = e.docker("run", "-d", "--name", "web", "--network", "none", "--restart", "on-failure:3", "--health-cmd", "test -e /tmp/well",
                        "--health-interval", "1s", "--health-retries", "1", image, "/bin/sh", "-c",
                        "[ -e /tmp/again ] && { touch /tmp/well; exec sleep 1000; }; touch /tmp/again; sleep 4; exit 7")
        assert done.returncode == 0, done.stderr
        container_id = done.stdout.strip()
        assert until(lambda: of(store, container_id, "healthy"), 60), events(store)
        e.docker("stop", "-t", "1", "web", check=True)
        e.docker("rm", "web", check=True)
        assert until(lambda: of(store, container_id, "removed"), 30), events(store)
        cap.stop()
    finally:
        e.stop()
    kinds = [r["kind"] for r in events(store, f"which = '{container_id}'") if r["kind"] not in ("healthy", "unhealthy")]
    assert kinds == ["created", "started", "stopped", "restarted", "stopped", "removed"], kinds
    assert {r["name"] for r in events(store, f"which = '{container_id}'")} == {"web"}
    (created,) = of(store, container_id, "created")
    assert created["detail"] == f"image {image}"
    first, second = of(store, container_id, "stopped")
    assert first["detail"] == "exit 7" and second["caused_by"].startswith(("SIGTERM from", "SIGKILL from"))
    assert of(store, container_id, "unhealthy")


@pytest.mark.docker
def test_podmans_containers_are_told_from_their_creation_to_their_removal_with_their_last_lines(capture, store, scratch):
    """By the log of its events, and its log of the container: no socket of Podman's is asked."""
    need_root()
    need("podman")
    need("runc")
    need("busybox")
    os.makedirs(f"{scratch}/root/bin")
    shutil.copy(shutil.which("busybox"), f"{scratch}/root/bin/sh")

    def podman(*args, **kw):
        return subprocess.run(["podman", "--runtime", shutil.which("runc"), "--cgroup-manager", "cgroupfs", "--events-backend", "file", *args],
                              capture_output=True, text=True, timeout=120, check=False, stdin=subprocess.DEVNULL, **kw)
    name = f"sonde-{secrets.token_hex(4)}"
    cap = capture("--bucket", "1s", "--log-lines", "on", program="sonde-host")
    assert until(lambda: first_row(store), 30)
    try:
        done = podman("run", "-d", "--name", name, "--network", "none", "--log-driver", "k8s-file", "--ulimit", "nofile=1024:1024", "--ulimit", "nproc=1000:1000",
                      "--restart", "on-failure:1", "--health-cmd", "test -e /well", "--health-interval", "disable", "--health-retries", "1",
                      "--rootfs", f"{scratch}/root", "/bin/sh", "-c", "echo begins; sleep 6; echo no such table >&2; exit 7")
        if done.returncode:
            pytest.skip(f"missing: a Podman that runs here: {done.stderr[-200:]}")
        container_id = done.stdout.strip().splitlines()[-1]
        podman("healthcheck", "run", name)
        podman("healthcheck", "run", name) # Podman 4.3 says with each check what the one before found
        assert until(lambda: len(of(store, container_id, "stopped")) == 2, 60), events(store, f"which = '{container_id}'")
    finally:
        podman("rm", "-f", name)
    assert until(lambda: of(store, container_id, "removed"), 30), events(store)
    cap.stop()
    told = events(store, f"which = '{container_id}'")
    kinds = [r["kind"] for r in told if r["kind"] not in ("healthy", "unhealthy")]
    assert kinds == ["created", "started", "stopped", "restarted", "stopped", "removed"], kinds
    assert {r["name"] for r in told} == {name}
    ends = of(store, container_id, "stopped")
    assert {r["detail"] for r in ends} == {"exit 7"}
    assert of(store, container_id, "unhealthy")
    lines = lines_of(store, container_id)
    assert [r["line"] for r in lines if r["at_ns"] == ends[0]["at_ns"]] == ["begins", "no such table"]
    assert [r["line"] for r in lines if r["at_ns"] == ends[1]["at_ns"]] == ["begins", "no such table"] * 2
