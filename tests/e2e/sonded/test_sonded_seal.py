# SPDX-License-Identifier: Apache-2.0
"""sonded has finished segments archived while it records, the newest of them later than the others, says so, and answers as before."""
import os
import re
import subprocess
import time

import pytest
from conftest import BIN, need_root
from sonded import Sonded, alive, until
from test_archive import build
from test_seal import files, packed, put, say

BUDGET = 24 << 20  # a quarter of it stays as it is


def yesterday(folder):
    """Eight segments of the day before today, twice as many bytes as stay."""
    os.mkdir(folder)
    day = time.time() // 86400 * 86400 - 86400
    for nth in range(8):
        alone = f"{folder}-{nth}"
        put(alone, build(int(day) + 3600 * (10 + nth), nth, 9000))
        path = os.path.join(folder, time.strftime("%Y%m%dT", time.gmtime(day)) + f"{10 + nth}0000Z-0001.db")
        os.rename(files(alone)[0], path)
        os.utime(path, (day + 3600 * (11 + nth),) * 2)
    assert 2 * BUDGET / 4 < sum(map(os.path.getsize, files(folder))) < 3 * BUDGET / 4, [os.path.getsize(f) for f in files(folder)]
    return ["--from", str(int(day)), "--to", str(int(day) + 86400)]


def test_finished_segments_are_archived_while_sonded_records_and_the_newest_stay(store):
    need_root()
    window = yesterday(store)
    sizes = dict(zip(files(store), map(os.path.getsize, files(store))))
    ask = ["stacks", "--json", *window]
    before = say(store, *ask)
    assert before[0] == 0, before
    with Sonded(store, "--segment-age", "20s", "--families", "cpu", "--budget", str(BUDGET)) as d:
        assert until(lambda: d.ask(do="status")["store"]["sealing"]["segments"] >= 4, 240), (d.said(), d.ask(do="status"))
        assert re.search(r"archived \d segments", d.said()) and d.running("cpu")
        assert say(store, *ask) == before
        said = subprocess.run([os.path.join(BIN, "sonde"), "status", "--store", store], capture_output=True, text=True, check=True).stdout
        assert "sealing " in said and " segments archived, " in said, said
    there = files(store)
    done = [bool(packed(f)) for f in there]
    n = sum(done)
    assert set(sizes) <= set(there) and done == [True] * n + [False] * (len(there) - n)
    assert all(os.path.getsize(f) < sizes[f] / 2 for f in there[:n] if f in sizes)
    assert sum(sizes.get(f, 0) for f in there[n:]) > BUDGET / 8  # of the newest no more than had to be


@pytest.mark.long
def test_one_that_is_switched_off_leaves_them_and_a_missing_helper_is_said(store, tmp_path):
    need_root()
    yesterday(store)
    for name in ("sonded", "sonde-maps", "sonde-index", "sonde-prune", "sonde-cpu"):
        os.symlink(os.path.join(BIN, name), tmp_path / name)
    program = tmp_path / "sonded"
    program.unlink()
    program.write_bytes(open(os.path.join(BIN, "sonded"), "rb").read())
    program.chmod(0o755)
    args = ["--segment-age", "20s", "--families", "cpu", "--budget", str(BUDGET)]
    with Sonded(store, *args, "--seal", "no") as d:
        assert d.ask(do="status")["store"]["sealing"]["state"] == "off"
    with Sonded(store, *args, program=str(program)) as d:
        assert until(lambda: "sonde-seal" in d.said(), 30), d.said()
        assert d.ask(do="status")["store"]["sealing"]["state"] == "failed"
        pids = d.pids()
        d.stop()
        assert until(lambda: not [p for p in pids if alive(p)], 10)
    assert not any(map(packed, files(store)))
