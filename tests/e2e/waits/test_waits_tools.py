# SPDX-License-Identifier: Apache-2.0
"""What sonde-offcpu says of threads beside libbpf-tools' offcputime and runqlat (at tp_btf, as they load here without kprobes),
which watch the same ones in the same run."""
import json
import os
import re
import select
import subprocess
import time

import pytest

from conftest import WORKLOADS, Capture, need, need_root, sql_all
from test_waits_peers import rank

pytestmark = pytest.mark.live
PLAN = ["sleep:2:300:3", "futex:2:300:3", "pipe:2:300:3", "poll:2:300:3"]
EVENT_NS = 5000


def off_cpu(said):
    """{tid: ns}: behind each stack "-  COMM (TID)", and how many us."""
    out = {}
    for tid, us in re.findall(r"^ +- +.* \((\d+)\)\n +(\d+)$", said, re.M):
        out[int(tid)] = out.get(int(tid), 0) + 1000 * int(us)
    return out


def run_queues(said):
    """{tid: [{"min": ns, "count": n}]}: under "tid = TID NAME" lines "LOW -> HIGH : COUNT |***|", in us."""
    out = {}
    for part in re.split(r"^tid = ", said, flags=re.M)[1:]:
        out[int(part.split()[0])] = [{"min": 1000 * int(low), "count": int(n)}
                                     for low, n in re.findall(r"^ +(\d+) -> \d+ +: (\d+) ", part, re.M)]
    return out


@pytest.fixture(scope="module")
def watched(tmp_path_factory):
    """(store, what the workload told, offcputime's totals, runqlat's histograms). All wait for the workload, which waits for us."""
    need_root()
    need("offcputime")
    need("runqlat")
    folder = tmp_path_factory.mktemp("tools")
    burners = [subprocess.Popen([os.path.join(WORKLOADS, "burn"), "600000"], stdout=subprocess.DEVNULL) for _ in range(2)]
    work = subprocess.Popen(["sh", "-c", 'read x; exec "$@"', "sh", os.path.join(WORKLOADS, "waits-nofp"), "run", *PLAN],
                            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=folder)
    tools = []
    c = Capture(str(folder / "store"), "--comm", "waits-nofp", program="sonde-offcpu").start()
    try:
        for argv in (["offcputime", "-p", str(work.pid)], ["runqlat", "-L", "-p", str(work.pid)]):
            tools.append(subprocess.Popen(argv, stdout=open(folder / argv[0], "w+"), stderr=subprocess.PIPE, text=True))
        time.sleep(2)  # they do not say when they are ready
        for p in tools:
            if p.poll() is not None:
                pytest.skip(f"missing: a kernel on which {p.args[0]} loads ({p.stderr.read().strip()[-200:]})")
        work.stdin.write("\n")
        work.stdin.flush()
        assert select.select([work.stdout], [], [], 90)[0]
        told = json.loads(work.stdout.readline())
        work.wait(30)
        for p in tools:
            p.send_signal(2)
            p.communicate(timeout=360)
        c.stop()
    finally:
        for p in (*tools, *burners, work):
            p.kill()
            p.wait()
        c.close()
    return (str(folder / "store"), told, off_cpu((folder / "offcputime").read_text("utf-8", "replace")),
            run_queues((folder / "runqlat").read_text("utf-8", "replace")))


def of_states(store, tid):
    """{state: [count, ns, longest]}"""
    return {r["state"]: (r["n"], r["ns"], r["longest"]) for r in sql_all(
        store, "SELECT state, sum(count) AS n, sum(total_ns) AS ns, max(max_ns) AS longest FROM wait_totals WHERE tid = ? GROUP BY 1", (tid,))}


def test_each_thread_was_off_the_cpu_as_long_as_offcputime_says(watched):
    store, told, theirs, _ = watched
    for t in told["threads"]:
        sums = of_states(store, t["tid"])
        mine = sums["blocked"][1] + sums["ready"][1]
        print(f"{t['name']}: {mine / theirs[t['tid']]:.4f} of offcputime's")
        # it begins when a thread first leaves a CPU: how that came to its first one is left out
        assert 0.98 * theirs[t["tid"]] <= mine <= 1.02 * theirs[t["tid"]] + sums["ready"][2], (t, mine, theirs[t["tid"]])


def test_run_queues_are_those_of_runqlat(sonde, watched):
    """It begins at sched_wakeup, when the thread is in the queue; sonde where the waker begins to put it there."""
    store, told, _, theirs = watched
    answer = sonde("waits", "--rec", "last", "--json", "-n", 10000, "--by", "thread", "--idle", "--pid", told["pid"], store=store, check=True)
    rows = {r["thread"]: r for r in json.loads(answer.stdout)["rows"] if r["reason"] == "run queue" and not r["partial"]}
    for t in told["threads"]:
        hist, row = theirs[t["tid"]], rows[t["name"]]
        n = sum(h["count"] for h in hist)
        print(f"{t['name']}: {row['count']} times ready, {n} by runqlat")
        assert abs(row["count"] - n) <= 3 + 0.02 * n, (t, row, n)
        for part, key in ((0.5, "p50_ns"), (0.95, "p95_ns"), (0.99, "p99_ns")):
            slots = {rank(hist, max(0.0, part - 0.02)), rank(hist, min(1.0, part + 0.02))}
            slot = (row[key] + EVENT_NS).bit_length() - 1, (max(1000, row[key] - EVENT_NS)).bit_length() - 1
            assert min(slots) - 1 <= slot[0] and slot[1] <= max(slots) + 1, (t, key, row, hist)
