# SPDX-License-Identifier: Apache-2.0
"""What sonde-offcpu says of threads beside what others say of the same ones in the same run: the kernel's accounts (schedstat,
taskstats), and bpftrace. (perf sched: test_waits_live.py)"""
import json
import os
import select
import subprocess
import sys
import time

import pytest
import taskstats
from conftest import WORKLOADS, Capture, need, need_root, sql_all, stolen_ns

pytestmark = pytest.mark.live
INTERRUPTS_NS = 40_000  # of each turn, most: the kernel leaves them out of a thread's account


def ran_so_long(seen, charged, turns, stolen):
    """What a hypervisor took from a thread on its CPU is in what was seen, not in what was charged."""
    apart = 0.02 * charged + INTERRUPTS_NS * turns
    return charged - apart <= seen <= charged + apart + stolen


# each works for 0.3 s of CPU time beside the other two, naps and reads between, and then waits to be told
HELD_UP = """
import mmap, os, sys, time
os.sched_setaffinity(0, {0})
with open(sys.argv[1], "rb") as f: data = os.open(f.name, os.O_RDONLY | os.O_DIRECT)
page = mmap.mmap(-1, 65536)
end = time.process_time() + 0.3
i = 0
while time.process_time() < end:
    sum(range(20000))
    i += 1
    if i % 20 == 0: time.sleep(0.002)
    if i % 5 == 0: os.preadv(data, [page], i % 16 * 65536)
print("done", flush=True)
sys.stdin.read()
"""


def totals(store, pid):
    return {r["state"]: (r["n"], r["ns"]) for r in sql_all(
        store, "SELECT state, sum(count) AS n, sum(total_ns) AS ns FROM wait_totals WHERE pid = ? GROUP BY 1", (pid,))}


def asleep(pid):
    with open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace") as f:
        return f.read().rsplit(")", 1)[1].split()[0] == "S"


@pytest.fixture(scope="module")
def accounted(tmp_path_factory):
    """Three processes whose whole life was watched, and what the kernel accounted for each of them."""
    need_root()
    folder = tmp_path_factory.mktemp("peers")
    (folder / "data").write_bytes(os.urandom(1 << 20))
    comm = os.path.basename(sys.executable)[:15]
    c = Capture(str(folder / "store"), "--comm", comm, program="sonde-offcpu").start()
    children, before = [], stolen_ns()
    try:
        children = [subprocess.Popen([sys.executable, "-c", HELD_UP, str(folder / "data")], stdin=subprocess.PIPE,
                                     stdout=subprocess.PIPE) for _ in range(3)]
        told = {}
        for p in children:
            assert select.select([p.stdout], [], [], 60)[0]
            assert p.stdout.readline() == b"done\n"
        for p in children:
            end = time.monotonic() + 30
            while not asleep(p.pid):
                assert time.monotonic() < end
                time.sleep(0.01)
            with open(f"/proc/{p.pid}/schedstat", encoding="ascii") as f:
                told[p.pid] = (tuple(map(int, f.read().split())), taskstats.of_thread(p.pid))
        stolen = stolen_ns() - before
        c.stop()
    finally:
        for p in children:
            p.kill()
            p.wait()
            p.stdin.close()
            p.stdout.close()
        c.close()
    return str(folder / "store"), told, stolen


def test_each_process_ran_and_was_ready_as_long_as_schedstat_says(accounted):
    store, told, stolen = accounted
    for pid, ((ran, delayed, turns), _) in told.items():
        mine = totals(store, pid)
        assert ran_so_long(mine["running"][1], ran, turns, stolen), (mine, ran, turns, stolen)
        assert abs(mine["ready"][1] - delayed) <= 0.02 * delayed + 5000 * turns, (mine, delayed, turns)
        assert delayed > 0.2 * ran, "nobody had to wait: the test says nothing"


def test_each_process_ran_and_was_ready_as_long_as_taskstats_says(accounted):
    store, told, stolen = accounted
    for pid, (_, stats) in told.items():
        mine, turns = totals(store, pid), stats["cpu_count"]
        assert ran_so_long(mine["running"][1], stats["cpu_ns"], turns, stolen), (mine, stats, stolen)
        assert abs(mine["ready"][1] - stats["cpu_delay_ns"]) <= 0.02 * stats["cpu_delay_ns"] + 5000 * turns, (mine, stats)
        assert abs(mine["ready"][0] - turns) <= 2 + 0.02 * turns, (mine, stats)


def test_each_process_waited_for_its_disk_as_long_as_delay_accounting_says(accounted):
    store, told, _ = accounted
    with open("/proc/sys/kernel/task_delayacct", encoding="ascii") as f:
        if f.read().strip() == "0":
            pytest.skip("missing: delay accounting (sysctl kernel.task_delayacct=1)")
    for pid, (_, stats) in told.items():
        mine = sql_all(store, "SELECT sum(count) AS n, sum(total_ns) AS ns FROM wait_totals WHERE pid = ? AND state = 'blocked' "
                              "AND reason = 'disk'", (pid,))[0]
        n, ns = stats["blkio_count"], stats["blkio_delay_ns"]
        # the kernel's ends when the thread runs again
        assert n and ns - totals(store, pid)["ready"][1] - 5000 * n <= mine["ns"] <= 1.02 * ns + 5000 * n, (mine, stats)


# as runqlat, but from where the waker begins: on a guest some time may pass until the thread is in the queue
RUNQLAT = """
tracepoint:sched:sched_waking, tracepoint:sched:sched_wakeup_new { if (!@q[args->pid]) { @q[args->pid] = nsecs; } }
tracepoint:sched:sched_switch {
    if (args->prev_state == 0) { @q[args->prev_pid] = nsecs; } else { delete(@q[args->prev_pid]); }
    $from = @q[args->next_pid];
    if ($from) { @late[args->next_pid] = hist(nsecs - $from); @sum[args->next_pid] = sum(nsecs - $from); }
    delete(@q[args->next_pid]);
}
BEGIN { printf("begun\\n"); }
END { clear(@q); }
"""


def bpftrace(program, work):
    """What its maps hold at the end, and what work() returned meanwhile."""
    p = subprocess.Popen(["bpftrace", "-B", "line", "-f", "json", "-e", program], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    try:
        assert "attached_probes" in p.stdout.readline()
        while "begun" not in (line := p.stdout.readline()):
            assert line
        done = work()
        p.send_signal(2)
        said, _ = p.communicate(timeout=360)
    finally:
        p.kill()
        p.wait()
        p.stdout.close()
    maps = {}
    for line in said.splitlines():
        if line.startswith("{"):
            for name, held in json.loads(line)["data"].items():
                maps.setdefault(name, held)
    return maps, done


def rank(hist, part):
    """The slot (as log2 of ns) in which that part of all lies."""
    left = part * sum(h["count"] for h in hist)
    for h in hist:
        left -= h["count"]
        if left <= 0:
            return max(h["min"], 1).bit_length() - 1
    return 63


def test_the_run_queues_histogram_is_that_of_runqlat(sonde, capture, store, scratch):
    need("bpftrace")
    need_root()
    c = capture("--comm", "waits-nofp", program="sonde-offcpu")

    def work():
        burners = [subprocess.Popen([os.path.join(WORKLOADS, "burn"), "600000"], stdout=subprocess.DEVNULL) for _ in range(2)]
        try:
            done = subprocess.run([os.path.join(WORKLOADS, "waits-nofp"), "run", "sleep:2:300:2", "pipe:2:300:2", "poll:2:300:2"],
                                  capture_output=True, text=True, timeout=120, check=True, cwd=scratch)
        finally:
            for b in burners:
                b.kill()
                b.wait()
        return json.loads(next(x for x in done.stdout.splitlines() if x.startswith("{")))

    theirs, told = bpftrace(RUNQLAT, work)
    c.stop()
    answer = sonde("waits", "--rec", "last", "--json", "-n", 10000, "--by", "thread", "--idle", "--pid", told["pid"], store=store,
                   check=True)
    mine = {r["thread"]: r for r in json.loads(answer.stdout)["rows"] if r["reason"] == "run queue" and not r["partial"]}
    for t in told["threads"]:
        hist, row = theirs["@late"][str(t["tid"])], mine[t["name"]]
        n = sum(h["count"] for h in hist)
        assert abs(row["count"] - n) <= 3 + 0.02 * n, (t, row, n)
        # a guest's kernel leaves a switch out of its traces now and then
        slack = 0.02 * theirs["@sum"][str(t["tid"])] + 5000 * n + 2 * row["max_ns"]
        assert abs(row["total_ns"] - theirs["@sum"][str(t["tid"])]) <= slack, (t, row, theirs["@sum"][str(t["tid"])])
        for part, key in ((0.5, "p50_ns"), (0.95, "p95_ns")):
            slots = {rank(hist, max(0.0, part - 0.02)), rank(hist, min(1.0, part + 0.02))}
            slot = row[key].bit_length() - 1
            assert min(slots) - 1 <= slot <= max(slots) + 1, (t, key, row, hist)


def of_the_kernel():
    """pid -> (ns ready, turns) of the kernel's own threads."""
    found = {}
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace") as f:
                parent = f.read().rsplit(")", 1)[1].split()[1]
            with open(f"/proc/{pid}/schedstat", encoding="ascii") as f:
                _, delayed, turns = map(int, f.read().split())
        except OSError:  # it ended meanwhile
            continue
        if parent == "2":
            found[int(pid)] = delayed, turns
    return found


def test_who_sleeps_long_is_not_ready_meanwhile(tmp_path):
    """Not every wake-up is traced (ftrace misses them as well): a wait whose end nobody saw is no wait for a CPU."""
    need_root()
    c = Capture(str(tmp_path / "store"), program="sonde-offcpu")
    before = of_the_kernel()
    c.start()
    try:
        time.sleep(8)
        c.stop()
    finally:
        c.close()
    after, checked = of_the_kernel(), 0
    for row in sql_all(c.store, "SELECT pid, sum(total_ns) AS ns FROM wait_totals WHERE state = 'ready' GROUP BY pid"):
        if row["pid"] in before and row["pid"] in after:
            delayed, turns = (b - a for a, b in zip(before[row["pid"]], after[row["pid"]]))
            # the kernel begins to count when the CPU that was asked has taken notice
            assert row["ns"] <= 1.02 * delayed + 100_000 * turns + 100_000_000, (row, delayed, turns)
            checked += 1
    assert checked >= 5
