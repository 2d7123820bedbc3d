# SPDX-License-Identifier: Apache-2.0
"""PostgreSQL held up in two ways that look alike from outside: by a neighbour on its CPU, and by a lock of its own."""
import json
import os
import select
import shutil
import subprocess
import time

import pytest
import servers
from conftest import WORKLOADS, need, need_root, sql_all

pytestmark = pytest.mark.live
HELD_S = 2.5
SPAN_S = 8  # of each time that `explain` compares
MS = 1_000_000


def rows(sonde, store, verb, *args):
    done = sonde(verb, "--rec", "last", "--json", "-n", 10000, *args, store=store)
    return [] if done.returncode == 4 else json.loads(done.stdout)["rows"]


def start(scratch, **kw):
    need_root()
    try:
        return servers.postgres(scratch, **kw)
    except servers.Missing as e:
        pytest.skip(f"missing: {e}")


class Session:
    """psql, a statement at a time."""

    def __init__(self, at):
        self.p = subprocess.Popen(["psql", "-X", "-q", "-A", "-t", *at], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                  stderr=subprocess.DEVNULL, text=True, bufsize=1)
        self.pid = int(self.ask("SELECT pg_backend_pid();"))

    def say(self, sql):
        self.p.stdin.write(sql + "\n")
        self.p.stdin.flush()

    def ask(self, sql):
        self.say(sql)
        assert select.select([self.p.stdout], [], [], 60)[0], sql
        return self.p.stdout.readline().strip()

    def close(self):
        self.p.stdin.close()
        self.p.wait(30)
        self.p.stdout.close()


def test_a_lock_convoy_is_a_lock_and_its_holders_backend_is_named(sonde, capture, store, scratch):
    need("psql")
    server = start(scratch, load=False)
    sessions = []
    try:
        sessions = [Session(server.at) for _ in range(3)]
        holder, *waiters = sessions
        c = capture(program="sonde-offcpu")
        holder.ask("BEGIN; UPDATE pgbench_branches SET bbalance = 1 WHERE bid = 1 RETURNING bid;")
        for w in waiters:
            w.say("UPDATE pgbench_branches SET bbalance = bbalance + 1 WHERE bid = 1 RETURNING bid;")
        end = time.monotonic() + 30
        while int(holder.ask("SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock';")) < 2:
            assert time.monotonic() < end
        began = time.monotonic()
        holder.ask(f"SELECT 1 FROM pg_sleep({HELD_S}); COMMIT;")
        held = (time.monotonic() - began) * 1e9
        for w in waiters:
            assert select.select([w.p.stdout], [], [], 60)[0]
            w.p.stdout.readline()
        c.stop()
    finally:
        for s in sessions:
            s.close()
        server.stop()
    for w in waiters:
        mine = rows(sonde, store, "waits", "--by", "thread", "--pid", w.pid)
        locks = [r for r in mine if r["reason"] == "lock"]
        assert 0.9 * held <= sum(r["total_ns"] for r in locks) <= 1.2 * held + 500 * MS, mine
        queued = sum(r["total_ns"] for r in mine if r["reason"] == "run queue")
        assert queued < 0.2 * held, mine
    # the longest waits of the first in the queue end with the holder's commit (the others were ended by a timer that looks
    # for deadlocks); who comes next is woken by the one before
    pids = {s.pid for s in sessions}
    by = [(w.pid, r["by_pid"], r["total_ns"], r["reason"]) for w in waiters for r in rows(sonde, store, "wakers", "--pid", w.pid)
          if r["by_pid"] in pids and r["context"] == "thread"]  # a row for each kind of wait
    assert max((ns for _, waker, ns, _ in by if waker == holder.pid), default=0) > 0.5 * (held - 1e9), by


def cpu_of(pid):
    with open(f"/proc/{pid}/schedstat") as f:
        return list(map(int, f.read().split()[:2]))


def backends(server):
    """Those of pgbench's load: they live as long as it does."""
    top = server.started[0][0].pid
    with open(f"/proc/{top}/task/{top}/children") as f:
        pids = f.read().split()
    found = []
    for pid in pids:
        with open(f"/proc/{pid}/cmdline") as f:
            if "127.0.0.1(" in f.read():  # "postgres: postgres postgres 127.0.0.1(54321) SELECT"
                found.append(int(pid))
    return found


def test_a_noisy_neighbour_is_named_and_is_no_lock(sonde, capture, store, scratch):
    """Server and load on one CPU, then a burner there too: how long they were ready the kernel tells, how long the burner
    ran its own account."""
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {0})
    server = burner = None
    try:
        server = start(scratch)
        end = time.monotonic() + 30
        while len(backends(server)) < 2:
            assert time.monotonic() < end
            time.sleep(0.05)
        shutil.copy(os.path.join(WORKLOADS, "burn"), os.path.join(scratch, "burner"))
        burner = subprocess.Popen([os.path.join(scratch, "burner"), "600000"], stdout=subprocess.DEVNULL)
        os.setpriority(os.PRIO_PROCESS, burner.pid, -10)  # whatever else the host does, it is the noisiest there
        os.sched_setaffinity(0, before)
        victims = backends(server)
        first = {pid: cpu_of(pid) for pid in [*victims, burner.pid]}
        c = capture(program="sonde-offcpu")
        time.sleep(3)  # as long as it is watched: nothing else ends it
        c.stop()
        last = {pid: cpu_of(pid) for pid in first}
    finally:
        os.sched_setaffinity(0, before)
        if burner:
            burner.kill()
            burner.wait()
        if server:
            server.stop()
    ran = last[burner.pid][0] - first[burner.pid][0]
    for pid in victims:
        mine = rows(sonde, store, "waits", "--by", "thread", "--idle", "--pid", pid)
        queued = sum(r["total_ns"] for r in mine if r["reason"] == "run queue")
        # the account was read before the capture began, and after it ended
        assert 0 < queued <= 1.1 * (last[pid][1] - first[pid][1]) + 20 * MS, (pid, queued, first, last)
        assert sum(r["total_ns"] for r in mine if r["reason"] == "lock") < 0.2 * queued, mine
        found = rows(sonde, store, "neighbours", "--pid", pid)
        assert abs(sum(r["share"] for r in found) - 1) < 1e-6
        noisy = sum(r["total_ns"] for r in found if r["by_pid"] == burner.pid)
        own = {r["by_comm"] for r in found} & {"postgres", "pgbench"}
        others = [r for r in found if r["by_comm"] not in ("postgres", "pgbench") and r["by_pid"] not in (None, burner.pid)]
        assert own and 0 < noisy <= 1.1 * ran + 20 * MS, (noisy, ran, found)
        assert noisy > max((r["total_ns"] for r in others), default=0), found


def burning(scratch):
    """On CPU 0, for as long as it is left to."""
    path = os.path.join(scratch, "burner")
    if not os.path.exists(path):
        shutil.copy(os.path.join(WORKLOADS, "burn"), path)
    return subprocess.Popen(["taskset", "-c", "0", path, "600000"], stdout=subprocess.DEVNULL)


def changes(sonde, store, middle, end):
    """What `explain` says of postgres after `middle` against the time before: the host may have changed more."""
    done = sonde("explain", "--comm", "postgres", "--from", middle, "--to", end, "--before", f"{end - middle}s", "--json", "-n", 50, store=store, check=True)
    return json.loads(done.stdout)["rows"]


def of_postgres(found, kind, about):
    return [r for r in found if r["type"] == kind and r["about"] == about
            and "postgres" in (r["name"], (r["mostly"] or {}).get("who"))]


def test_explain_says_contention_of_a_neighbour_and_a_lock_of_a_convoy(sonde, capture, store, scratch):
    """Three times of the same length: a load pinned to one CPU, the same with a burner there, and without it two sessions of
    which one holds a row that the other one wants. All stacks are taken: fewer tell a change of so many waits later."""
    need("psql")
    before = os.sched_getaffinity(0)
    server = burner = None
    sessions, marks = [], []

    def mark():
        marks.append(int(time.time()) + 1)
        time.sleep(marks[-1] - time.time())

    def slept(sql, s=SPAN_S):
        end = time.monotonic() + s
        while time.monotonic() < end:
            sql() if sql else time.sleep(0.1)

    def convoy():
        holder, waiter = sessions
        holder.ask("BEGIN; UPDATE pgbench_branches SET bbalance = 1 WHERE bid = 1 RETURNING bid;")
        waiter.say("UPDATE pgbench_branches SET bbalance = bbalance + 1 WHERE bid = 1 RETURNING bid;")
        holder.ask("SELECT 1 FROM pg_sleep(0.3); COMMIT;")
        assert select.select([waiter.p.stdout], [], [], 60)[0]
        waiter.p.stdout.readline()

    try:
        os.sched_setaffinity(0, {0})
        server = start(scratch)
        os.sched_setaffinity(0, before)
        sessions = [Session(server.at) for _ in range(2)]
        c = capture("--bucket", "1s", "--stack-rate", 100000, program="sonde-offcpu")
        time.sleep(2)  # its tables are made meanwhile
        mark()
        slept(None)
        mark()
        burner = burning(scratch)
        slept(None)
        burner.kill()
        mark()
        slept(convoy)
        mark()
        c.stop()
    finally:
        os.sched_setaffinity(0, before)
        for s in sessions:
            s.close()
        if burner:
            burner.kill()
            burner.wait()
        if server:
            server.stop()
    calm, contended, locked, end = marks
    contention = changes(sonde, store, contended, locked)
    queue = of_postgres(contention, "runqueue", "command")
    ran = {r["by_comm"]: r["ns"] for r in sql_all(store, "SELECT by_comm, sum(total_ns) AS ns FROM neighbours WHERE comm = 'postgres'"
                                                         " AND ts >= ? AND ts < ? AND who = 'thread' GROUP BY 1", (calm, locked))}
    strangers = sum(ns for comm, ns in ran.items() if comm not in ("postgres", "pgbench", "burner"))
    if not queue and strangers > 0.2 * ran["burner"]:
        pytest.skip(f"missing: a machine for itself (others had the CPU for {strangers / 1e9:.1f} s)")
    assert queue and queue[0]["change"] in ("more", "began"), contention
    assert [(x["what"], x["name"]) for x in queue[0]["causes"]] == [("neighbour", "burner")], queue
    assert not [r for r in of_postgres(contention, "offcpu", "reason") if r["name"] == "lock" and r["difference"] > 0], contention
    convoyed = changes(sonde, store, locked, end)
    lock = [r for r in of_postgres(convoyed, "offcpu", "reason") if r["name"] == "lock"]
    assert lock and lock[0]["change"] in ("more", "began") and lock[0]["difference"] > 0.5, convoyed
    assert [(x["what"], x["name"], x["pid"]) for x in lock[0]["causes"]] == [("waker", "postgres", sessions[0].pid)], lock
    assert not [r for r in of_postgres(convoyed, "runqueue", "command") if r["difference"] > 0.3], convoyed
