# SPDX-License-Identifier: Apache-2.0
"""The short form of tests/drowning: the first recording into a new store, of programs that nobody has seen before."""
import collections
import json
import os
import shutil
import subprocess

import pytest

from conftest import WORKLOADS, need, need_root, sql_all

PROGRAMS = 12
#: all of it is below these; between them is what the C library calls main through
CHAIN = ("_start;", ";main;burn_thread;")


@pytest.fixture
def fresh(scratch):
    """Copies of a program without frame pointers that differ in their last bytes, all running: no cache knows them."""
    need_root()
    need("workload burn-nofp (make workloads)", os.path.join(WORKLOADS, "burn-nofp"))
    running = []
    for i in range(PROGRAMS):
        path = os.path.join(scratch, f"fresh{i}")
        shutil.copy(os.path.join(WORKLOADS, "burn-nofp"), path)
        with open(path, "ab") as f:
            f.write(f"fresh {i}".encode())
        running.append(subprocess.Popen([path, "60000"], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, start_new_session=True))
    yield {p.pid for p in running}
    for p in running:
        p.kill()
        p.wait()


def test_the_first_recording_has_fresh_programs_whole_and_named(sonde, store, fresh):
    done = sonde("record", "-d", "3s", "--json", store=store, check=True)
    row = json.loads(done.stdout)["rows"][0]
    assert not sum(row["lost"].values()), row
    marks = ",".join("?" * len(fresh))
    stacks = sql_all(store, f"""SELECT s.folded, sum(c.samples) AS n FROM cpu_samples c JOIN stacks s ON s.id = c.stack_id
        WHERE c.pid IN ({marks}) GROUP BY 1""", list(fresh))
    seen = collections.Counter()
    for r in stacks:
        seen[r["folded"].startswith(CHAIN[0]) and CHAIN[1] in r["folded"] and "+0x" not in r["folded"]] += r["n"]
    assert seen.total() >= 3 * PROGRAMS and not seen[False], (seen, stacks)
