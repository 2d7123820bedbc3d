# SPDX-License-Identifier: Apache-2.0
"""Stacks taken before their tables were there: they go through the ring `late` and reach their root all the same."""
import json
import os
import shutil
import subprocess
import time

import pytest

from conftest import BIN, WORKLOADS, need, need_root, sql_all

CHAIN = "_start;__libc_start_main;__libc_start_call_main;main;burn_thread;burn_middle;burn_leaf"


@pytest.fixture(autouse=True)
def as_root():
    need_root()


def endings(store, like):
    rows = sql_all(store, "SELECT reason, complete, sum(samples) AS n FROM unwinding WHERE executable LIKE ? AND complete IS NOT NULL GROUP BY 1, 2",
                   (like,))
    return sum(r["n"] for r in rows if r["complete"]), sum(r["n"] for r in rows), rows


@pytest.mark.long
def test_a_process_of_60_ms_without_frame_pointers_reaches_its_root(capture, store, scratch):
    """Each is a file that nobody has seen before: no sample of it can find its rows when it is taken."""
    need("workload burn-nofp (make workloads)", os.path.join(WORKLOADS, "burn-nofp"))
    c = capture("--freq", 299)
    pids = []
    for i in range(8):
        path = os.path.join(scratch, f"fresh{i}")
        shutil.copy(os.path.join(WORKLOADS, "burn-nofp"), path)
        pids.append(json.loads(subprocess.run([path, "60"], stdout=subprocess.PIPE, check=True).stdout)["pid"])
    until = time.monotonic() + 20
    while endings(store, "%/fresh_")[1] < 8 * 16 and time.monotonic() < until:  # what waits is not in the store
        time.sleep(0.2)
    done = c.stop()
    complete, all_, rows = endings(store, "%/fresh_")
    assert all_ >= 8 * 14, rows
    assert complete >= 0.95 * all_, rows
    marks = ",".join("?" * len(pids))
    stacks = sql_all(store, f"""SELECT s.folded, sum(c.samples) AS n FROM cpu_samples c JOIN stacks s ON s.id = c.stack_id
        WHERE c.pid IN ({marks}) AND c.comm LIKE 'fresh%' AND s.folded LIKE '%burn_leaf%' GROUP BY 1""", pids)
    assert sum(r["n"] for r in stacks) >= 8 * 10
    assert sum(r["n"] for r in stacks if r["folded"].startswith(CHAIN)) >= 0.95 * sum(r["n"] for r in stacks), stacks
    assert done["seen"] == done["samples"] + done["lost_total"]
    assert done["user_complete"] <= done["user_samples"] <= done["samples"]


@pytest.mark.long
def test_how_stacks_ended_is_counted_for_each_user_sample(capture, work, store):
    c = capture("--freq", 499)
    work("burn", 500, 2).told()
    done = c.stop()
    complete, all_, _ = endings(store, "%")
    assert (complete, all_) == (done["user_complete"], done["user_samples"])


def test_without_sonde_index_the_stacks_are_kept_and_the_reason_is_counted(capture, work, store, scratch):
    """sonde-maps looks for sonde-index beside itself: a folder without it has no rows for what it has not seen."""
    for name in ("sonde-cpu", "sonde-maps"):
        shutil.copy(os.path.join(BIN, name), scratch)
    c = capture("--freq", 997, program=os.path.join(scratch, "sonde-cpu"))
    told = work("burn-nofp", 200).told()
    done = c.stop()
    assert done["seen"] == done["samples"] + done["lost_total"]
    mine = sql_all(store, "SELECT sum(samples) AS n FROM cpu_samples WHERE pid = ?", (told["pid"],))
    assert mine[0]["n"] >= 150
    complete, all_, rows = endings(store, "%/burn-nofp")
    assert complete == 0 and all_ >= 150, rows
