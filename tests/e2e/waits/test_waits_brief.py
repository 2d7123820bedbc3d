# SPDX-License-Identifier: Apache-2.0
"""What sonde waits, neighbours and wakers tell people first: which rows, in which order, and the sentence above, on stores of
known contents, and on workloads that know what they waited for."""
import json
import os
import re
import subprocess
import sys
import time

import pytest
import servers
from conftest import need, need_root
from test_waits import AT, LINES, MS, RANGE, put, rows, stack, wait

ID = "4be1" * 16
RUN = LINES[0]


def shown(sonde, store, verb, *args):
    """(sentences above, [cells of each row by title], what is said beside)"""
    done = sonde(verb, *RANGE, "--wide", *args, store=store, check=True)
    lines = done.stdout.splitlines()
    top = next(i for i, x in enumerate(lines) if re.match(" *PID  ", x))
    ends = [m.span() for m in re.finditer(r"\S+(?: \S+)*", lines[top])]
    table = []
    for line in lines[top + 1:]:
        cells = re.split(r" {2,}", line.strip())
        if len(cells) == len(ends):
            table.append(dict(zip([lines[top][a:b] for a, b in ends], cells)))
    return lines[:top], table, done.stderr


def backend(pid, **kw):
    return {"pid": pid, "comm": "postgres", "thread": "postgres", "tid": pid, "container": "db", **kw}


def test_backends_of_one_service_are_one_row_that_says_how_many(sonde, tmp_path):
    store = put(tmp_path / "store", [RUN, *(wait(backend(100 + i), 2, 2, 20, 23) for i in range(300)),
                                     wait(backend(7, container=""), 2, 1, 1, 19)])
    said, table, _ = shown(sonde, store, "waits")
    assert [(r["PID"], r["CONTAINER"], r["TIMES"], r["TOTAL"]) for r in table] == [
        ("300 procs", "db", "600", "6 s"), ("7", "-", "1", "1 ms")]
    assert said == ["db waited 6 s for the disk"]
    _, table, _ = shown(sonde, store, "waits", "--by", "process", "-n", 400)
    assert len(table) == 301
    assert len(rows(sonde, store, "waits", "-n", 400)["rows"]) == 301  # JSON keeps a row a process
    assert [r["processes"] for r in rows(sonde, store, "waits", "--by", "command")["rows"]] == [300, 1]


def test_what_is_in_the_way_comes_before_sleeps_what_is_not_over_and_what_is_idle(sonde, tmp_path):
    who = {"pid": 7, "comm": "app", "thread": "app", "tid": 7}
    store = put(tmp_path / "store", [
        RUN, wait(who, 5, 1, 9000, 33), wait(who, 6, 1, 8000, 32), wait(who, 1, 1, 7000, flags=3), wait(who, 2, 1, 30, 24),
        wait(who, 4, 1, 6000, flags=3), wait(who, 9, 1, 5000, 32)])
    said, table, beside = shown(sonde, store, "waits")
    assert [r["WAITED FOR"] for r in table] == ["disk", "sleep", "child", "lock, not over"]
    assert said == ["app waited 30 ms for the disk"]
    assert "1 row of idle waits (9 s) hidden" in beside and "1 row of waits that are not over (6 s)" in beside
    _, table, beside = shown(sonde, store, "waits", "--idle")
    assert [r["WAITED FOR"] for r in table][-2:] == ["pipe, not over", "poll, idle"] and "hidden" not in beside
    assert {r["reason"]: r["background"] for r in rows(sonde, store, "waits", "--idle")["rows"]} == {
        "poll": True, "sleep": False, "lock": False, "disk": False, "pipe": True, "child": False}


def test_threads_of_the_kernel_and_of_go_that_nobody_woke_are_idle(sonde, tmp_path):
    kernel = {"pid": 30, "ppid": 2, "comm": "rcu_gp", "thread": "rcu_gp", "tid": 30, "exe": ""}
    go = {"pid": 40, "comm": "dockerd", "thread": "dockerd", "tid": 40, "lang": "go"}
    store = put(tmp_path / "store", [RUN, wait(kernel, 0, 1, 9000, 33), wait(kernel, 2, 1, 5, 22), wait(go, 1, 9, 9000, 29),
                                     stack(go, 1, 9, 9000, 29, ["runtime.mcall", "runtime.futex"]), wait(go, 16, 9, 100, 23)])
    found = {(r["comm"], r["reason"]): r["idle"] for r in rows(sonde, store, "waits", "--idle")["rows"]}
    assert found == {("rcu_gp", "other"): True, ("rcu_gp", "disk"): False, ("dockerd", "lock"): True, ("dockerd", "run queue"): False}


def test_a_lock_is_what_a_function_calls_so_and_a_timer_ends_no_lock(sonde, tmp_path):
    def one(pid, comm, frames, **kw):
        who = {"pid": pid, "comm": comm, "thread": comm, "tid": pid}
        return [wait(who, 1, 10, 1000, 26), stack(who, 1, 10, 1000, 26, ["main", *frames]),
                dict(who, wake=1, at=AT + 3, n=10, total_ns=1000 * MS, **kw)]

    store = put(tmp_path / "store", [RUN, *one(11, "mutex", ["pthread_mutex_lock", "futex_wait"], context=0, by=backend(9)),
                                     *one(12, "bare", ["syscall", "futex_wait"], context=0, by=backend(9)),
                                     *one(13, "ticker", ["syscall", "futex_wait"], context=1, by=backend(9))])
    said, table, _ = shown(sonde, store, "waits")
    assert said == ["bare waited 1 s in futexes, mutex 1 s for locks"]
    assert [(r["NAME"], r["WAITED FOR"]) for r in table] == [("bare", "lock"), ("mutex", "lock"), ("ticker", "lock, timed")]
    assert {r["comm"]: r["timer_ns"] for r in rows(sonde, store, "waits")["rows"]} == {"mutex": 0, "bare": 0, "ticker": 1000 * MS}
    said, table, _ = shown(sonde, store, "wakers")
    assert said[0] == "mutex's waits (lock): 1 s, ended by postgres of db (100 %)"
    assert [(r["NAME"], r["WOKEN BY"]) for r in table] == [("mutex", "postgres"), ("bare", "postgres"),
                                                           ("ticker", "[timer or device]")]
    assert {r["by_comm"] for r in rows(sonde, store, "wakers")["rows"]} == {"postgres"}  # JSON says who was on the CPU


def test_containers_go_by_name_and_without_one_by_twelve_digits(sonde, tmp_path):
    named = {"pid": 5, "comm": "burn", "thread": "burn", "tid": 5, "container": "throttled", "container_id": ID}
    other = {"pid": 6, "comm": "burn", "thread": "burn", "tid": 6, "container_id": ID[::-1]}
    store = put(tmp_path / "store", [
        RUN, wait(named, 17, 5, 500, 26), wait(other, 17, 5, 400, 26), dict(named, culprit=0, at=AT + 3, n=5, total_ns=400 * MS, by=other),
        {"throttle": f"/docker/{ID}", "at": AT + 3, "periods": 500, "throttled": 480, "throttled_ns": 51_000 * MS},
        {"throttle": f"/docker/{ID[::-1]}/sub", "at": AT + 3, "periods": 50, "throttled": 4, "throttled_ns": 100 * MS}])
    short = ID[::-1][:12]
    for verb in ("waits", "neighbours"):
        done = sonde(verb, *RANGE, "--wide", store=store, check=True)
        assert ("throttled lost 51 s to its CPU quota, in 480 of 500 periods,"
                f" {short} lost 100 ms to its CPU quota, in 4 of 50 periods") in done.stdout, done.stdout
        assert not re.search("[0-9a-f]{13}", done.stdout), done.stdout
        (mine, _) = rows(sonde, store, verb)["throttled"]
        assert mine["container"] == "throttled" and mine["cgroup"] == f"/docker/{ID}"
    # whose quota it is: of another one's waits it is no cause
    assert "lost" not in "".join(shown(sonde, put(tmp_path / "two", [RUN, wait(backend(3), 2, 1, 50, 25), wait(named, 17, 5, 500, 26), {
        "throttle": f"/docker/{ID}", "at": AT + 3, "periods": 5, "throttled": 4, "throttled_ns": 510 * MS}]),
        "waits", "--container", "db")[0])


def test_what_was_for_the_wal_is_told_as_that(sonde, tmp_path):
    flush = ["main", "PostgresMain", "XLogFlush", "fdatasync"]
    store = put(tmp_path / "store", [
        RUN, wait(backend(41), 2, 30, 3000, 26), stack(backend(41), 2, 3, 290, 26, flush), stack(backend(41), 2, 1, 10, 23, ["main", "read"]),
        wait(backend(41), 1, 10, 100, 23), stack(backend(41), 1, 10, 100, 23, ["main", "XLogFlush", "LWLockAcquireOrWait", "sem_wait"])])
    said, table, _ = shown(sonde, store, "waits")
    assert said == ["db waited 3 s for its WAL", "all of container db"]
    assert [r["WAITED FOR"] for r in table] == ["disk: WAL", "lock: WAL"]
    assert {r["reason"]: (r["purpose"], r["purpose_ns"]) for r in rows(sonde, store, "waits")["rows"]} == {
        "disk": ("WAL", 2900 * MS), "lock": ("WAL", 100 * MS)}


def test_a_column_that_says_nothing_is_not_drawn(sonde, tmp_path):
    store = put(tmp_path / "store", [RUN, wait(backend(41), 2, 3, 300), wait(backend(41), 4, 3, 200)])
    done = sonde("waits", *RANGE, store=store, check=True)
    said, head = done.stdout.splitlines()[:3], done.stdout.splitlines()[2]
    assert said[1] == "all of container db"
    assert head.split() == ["PID", "NAME", "WAITED", "FOR", "TIMES", "TOTAL", "LONGEST"]
    assert "all of" not in sonde("waits", *RANGE, "-q", store=store, check=True).stdout


def test_who_ran_is_five_names_and_a_rest_that_adds_up(sonde, tmp_path):
    who = backend(41)
    by = [dict(who, culprit=0, at=AT + 3, n=1, total_ns=(60 - i) * MS, by={"pid": 200 + i, "comm": f"c{i}", "thread": "x", "tid": 200 + i})
          for i in range(40)]
    twice = [dict(who, culprit=0, at=AT + 3, n=1, total_ns=500 * MS, by={"pid": 300 + i, "comm": "twin", "thread": "x", "tid": 300 + i})
             for i in range(2)]
    store = put(tmp_path / "store", [RUN, wait(who, 16, 50, 3000, 26), *by, *twice])
    said, _, _ = shown(sonde, store, "neighbours")
    whole = sum(60 - i for i in range(40)) + 1000
    assert said[0] == f"postgres of db waited at least {whole / 1000:.2f} s for a CPU, meanwhile had by twin ({1000 / whole:.0%}".replace("%", " %") + ")"
    lines = sonde("neighbours", *RANGE, "--wide", store=store, check=True).stdout.splitlines()[3:]
    assert len(lines) == 6 and "2 procs" in lines[0] and "twin" in lines[0] and "[36 others]" in lines[5]
    assert abs(sum(float(re.search(r"([\d.]+) %", x)[1]) for x in lines) - 100) < 0.5
    assert len(rows(sonde, store, "neighbours", "-n", 100)["rows"]) == 42
    always = put(tmp_path / "always", [dict(RUN, bucket_s=10), wait(who, 16, 50, 3000, 26), *by, *twice])  # who ran is looked for at moments
    assert f" waited about {whole / 1000:.2f} s for a CPU" in shown(sonde, always, "neighbours")[0][0]


def test_waits_that_are_idle_have_no_wakers_worth_a_row(sonde, tmp_path):
    client = {"pid": 3, "comm": "bench", "thread": "bench", "tid": 3}
    store = put(tmp_path / "store", [
        RUN, wait(backend(41), 5, 30, 900, 24), stack(backend(41), 5, 30, 900, 24, ["main", "secure_read", "epoll_wait"]),
        dict(backend(41), wake=5, context=0, at=AT + 3, n=30, total_ns=900 * MS, by=client), wait(backend(41), 2, 1, 20, 24),
        dict(backend(41), wake=2, context=0, at=AT + 3, n=1, total_ns=20 * MS, by=client)])
    _, table, beside = shown(sonde, store, "wakers")
    assert [r["WAITED FOR"] for r in table] == ["disk"] and "1 row of idle waits (900 ms) hidden" in beside
    _, table, _ = shown(sonde, store, "wakers", "--idle")
    assert {r["WAITED FOR"] for r in table} == {"disk", "poll"}
    assert {r["reason"]: r["idle"] for r in rows(sonde, store, "wakers")["rows"]} == {"poll": True, "disk": False}
    assert sonde("wakers", *RANGE, "--by", "thread", store=store).returncode == 2


LOCKS = """
import json, threading, time
lock, waited, end = threading.Lock(), {}, time.monotonic() + 1
def work():
    mine = 0
    while time.monotonic() < end:
        begin = time.monotonic()
        lock.acquire()
        mine += time.monotonic() - begin
        time.sleep(0.02)
        lock.release()
        time.sleep(0.001)
    waited[threading.get_ident()] = mine
threads = [threading.Thread(target=work) for _ in range(4)]
for t in threads: t.start()
while any(t.is_alive() for t in threads): time.sleep(0.05)
print(json.dumps(sum(waited.values())))
"""


@pytest.mark.live
def test_a_fight_for_a_lock_is_told_as_long_as_the_threads_waited(sonde, capture, store):
    need_root()
    need("/usr/bin/python3", "/usr/bin/python3")
    c = capture("--stack-rate", 100000, program="sonde-offcpu")
    work = subprocess.Popen(["/usr/bin/python3", "-c", LOCKS], stdout=subprocess.PIPE, text=True)
    told = json.loads(work.communicate(timeout=360)[0])
    c.stop()
    answer = json.loads(sonde("waits", "--rec", "last", "--pid", work.pid, "--json", store=store, check=True).stdout)
    waited = sum(r["total_ns"] for r in answer["rows"] if r["reason"] == "lock" and not r["idle"] and not r["partial"]) / 1e9
    assert 0.8 * told <= waited <= 1.05 * told, (told, answer)
    said = re.search(r"python3\S* waited ([\d.]+) s for locks", answer["summary"])
    assert said and abs(float(said[1]) - waited) < 0.2 * waited, answer  # but what a timer ended, and stacks that tell no name


@pytest.mark.live
def test_a_database_waits_for_its_wal_as_long_as_it_says_itself(sonde, capture, store, scratch):
    """pg_stat_wal counts how long it synced and wrote: blocked on the disk, and then ready until it ran again."""
    need_root()
    need("psql")
    try:
        server = servers.postgres(scratch, load=False, settings=("fsync=on", "track_wal_io_timing=on"))
    except servers.Missing as e:
        pytest.skip(f"missing: {e}")

    def wal():
        """(syncs, ms): a backend tells at its end, or when it is idle"""
        said = subprocess.run(["psql", "-X", "-A", "-t", *server.at, "-c", "SELECT wal_sync, wal_sync_time + wal_write_time FROM pg_stat_wal"],
                              capture_output=True, text=True, check=True).stdout
        return list(map(float, said.strip().split("|")))

    try:
        before = wal()
        c = capture("--stack-rate", 100000, program="sonde-offcpu")
        subprocess.run(["pgbench", "-n", "-c", "1", "-t", "150", *server.at], check=True, capture_output=True)
        c.stop()
        end = time.monotonic() + 20
        while (after := wal())[0] - before[0] < 120 and time.monotonic() < end:
            time.sleep(0.2)
    finally:
        server.stop()
    syncs, ms = after[0] - before[0], after[1] - before[1]
    answer = json.loads(sonde("waits", "--rec", "last", "--comm", "postgres", "--idle", "--json", "-n", 1000, "--by", "command",
                              store=store, check=True).stdout)
    found = [r for r in answer["rows"] if r["purpose"] == "WAL" and not r["partial"]]
    waited = sum(r["purpose_ns"] for r in found) / MS
    queued = sum(r["total_ns"] for r in answer["rows"] if r["reason"] == "run queue") / MS
    if syncs < 120 or ms < 50:
        pytest.skip(f"missing: a disk that is synced ({syncs} syncs, {ms} ms)")
    assert waited <= 1.1 * ms + 20 and waited + queued >= 0.5 * ms, (waited, queued, ms, answer["rows"])
    # a fact of less than a twentieth of the largest is not told: on a busy host that is the wait for a CPU
    assert ("for its WAL" in answer["summary"]) == (waited >= 10 and waited * 20 >= queued), (waited, queued, answer["summary"])
