# SPDX-License-Identifier: Apache-2.0
"""sonded has the finished files of days that are over packed, in the background, says so, and answers as before."""
import os
import subprocess
import time

import pytest
from conftest import BIN, need_root
from sonded import Sonded, alive, until
from test_seal import lines, put, say


def yesterday(folder):
    """Three segments that were begun on the day before today."""
    os.mkdir(folder)
    day = time.time() // 86400 * 86400 - 86400
    for nth in range(3):
        alone = f"{folder}-{nth}"
        put(alone, lines(int(day) + 3600 * (10 + nth), nth))
        name = next(n for n in os.listdir(alone) if n.endswith(".db"))
        os.rename(os.path.join(alone, name), os.path.join(folder, time.strftime("%Y%m%dT", time.gmtime(day)) + f"{10 + nth}0000Z-0001.db"))
    return ["--from", str(int(day)), "--to", str(int(day) + 86400)]


def days(store):
    return sorted(n for n in os.listdir(store) if "-d0" in n)


@pytest.mark.long
def test_finished_days_are_sealed_while_sonded_records(store):
    need_root()
    window = yesterday(store)
    ask = ["stacks", "--json", *window]
    before = say(store, *ask)
    assert before[0] == 0, before
    with Sonded(store, "--segment-age", "20s", "--families", "cpu") as d:
        assert until(lambda: d.ask(do="status")["store"]["sealing"]["segments"] == 3, 30), (d.said(), d.ask(do="status"))
        assert len(days(store)) == 1 and "sealed 3 segments" in d.said()
        assert say(store, *ask) == before
        said = subprocess.run([os.path.join(BIN, "sonde"), "status", "--store", store], capture_output=True, text=True, check=True).stdout
        assert "sealing " in said and "3 segments packed" in said, said


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
    with Sonded(store, "--segment-age", "20s", "--families", "cpu", "--seal", "no") as d:
        assert d.ask(do="status")["store"]["sealing"]["state"] == "off"
    with Sonded(store, "--segment-age", "20s", "--families", "cpu", program=str(program)) as d:
        assert until(lambda: "sonde-seal" in d.said(), 30), d.said()
        assert d.ask(do="status")["store"]["sealing"]["state"] == "failed"
        pids = d.pids()
        d.stop()
        assert until(lambda: not [p for p in pids if alive(p)], 10)
    assert not days(store)
