# SPDX-License-Identifier: Apache-2.0
"""The flight ring: sonded records seconds beside the store, and puts them into it when a person asks or a process is killed for memory."""
import glob
import json
import os
import re
import signal
import sqlite3
import subprocess
import sys
import time

import pytest
from conftest import BIN, need_root
from sonded import Sonded, until
from test_events import HOLDS, contained, memory

SONDE = os.path.join(BIN, "sonde")
SPIN = "import sys, time\nend = time.time() + float(sys.argv[1])\nwhile time.time() < end: pass"
pytestmark = pytest.mark.long


def ask(store, *words):
    return subprocess.run([SONDE, *words, "--store", store], capture_output=True, text=True, timeout=120)


def rows(store, sql):
    said = ask(store, "sql", "--json", sql)
    assert said.returncode == 0, said.stderr
    return json.loads(said.stdout)["rows"]


def spin_by_second(store, comm):
    return {r["ts"]: r["n"] for r in rows(store, f"SELECT ts, sum(samples) AS n FROM cpu_samples WHERE comm = '{comm}' GROUP BY ts")}


def spun(folder, seconds, name="spinner"):
    path = os.path.join(folder, name)
    if not os.path.exists(path):
        os.symlink("/usr/bin/python3", path)
    return subprocess.Popen([path, "-c", SPIN, str(seconds)])


def kept(d):
    return d.ask(do="status")["store"]["flight"]


def test_what_is_kept_has_seconds_counts_once_and_says_why(store, tmp_path):
    need_root()
    with Sonded(store, "--families", "cpu,host", "--flight", "on", "--cpu", "0") as d:
        assert until(lambda: d.running("cpu"), 60), d.said()
        time.sleep(22)  # the ring begins with a whole step of the store
        child = spun(tmp_path, 4)  # at most five seconds of the clock
        began = time.time()
        child.wait()
        used = os.times().children_user + os.times().children_system
        assert until(lambda: time.time() > began + 25, 60)
        before = rows(store, "SELECT sum(cpu_ns) AS ns FROM cpu_samples WHERE comm = 'spinner'")[0]["ns"]
        assert ask(store, "keep", "--last", "60s", "--why", "it was slow").returncode == 0
        assert until(lambda: "it was slow" in kept(d)["last_why"], 150), (kept(d), d.said())
        after = rows(store, "SELECT sum(cpu_ns) AS ns FROM cpu_samples WHERE comm = 'spinner'")[0]["ns"]
        said = ask(store, "status").stdout
    assert re.search(r"flight +ring of .*; .* windows? kept .*it was slow", said), said
    assert [r for r in rows(store, "SELECT name, detail FROM events WHERE kind = 'kept'") if r["name"] == "flight ring" and "it was slow" in r["detail"]]
    seconds = spin_by_second(store, "spinner")
    assert len(seconds) >= 4 and max(seconds) - min(seconds) <= 8, seconds  # and not steps of ten
    assert used > 0 and before and abs(after - before) < 0.35 * before, (before, after)
    assert not glob.glob(os.path.join(store, "keeping*"))


def test_a_kill_for_memory_keeps_the_window(store):
    need_root()
    with contained(**memory(32)) as (_, prefix, _), Sonded(store, "--families", "cpu,host", "--flight", "on", "--cpu", "0") as d:
        assert until(lambda: d.running("cpu"), 60), d.said()
        time.sleep(15)
        done = subprocess.run([*prefix, "sh", "-c", f"{sys.executable} -c '{HOLDS.format(200)}'; exit 3"], capture_output=True,
                              stdin=subprocess.DEVNULL, check=False)
        assert done.returncode == 3
        assert until(lambda: kept(d)["pending"], 30), d.said()
        assert until(lambda: kept(d)["windows"] == 1, 120), (kept(d), d.said())
        assert "out of memory: " in kept(d)["last_why"]


def test_of_a_ring_whose_loader_is_killed_ten_seconds_are_missing_at_most(store, tmp_path):
    need_root()
    with Sonded(store, "--families", "cpu", "--flight", "on", "--cpu", "0") as d:
        assert until(lambda: d.running("cpu"), 60), d.said()
        child = spun(tmp_path, 60)
        time.sleep(40)
        killed = time.time()
        for pid in d.pids():
            os.kill(pid, signal.SIGKILL)
        child.kill()
        child.wait()
    last = 0
    for path in glob.glob(os.path.join(store, "flight", "*.db")):
        with sqlite3.connect(path) as db:
            last = max(last, db.execute("SELECT max(to_ns) FROM run").fetchone()[0] or 0)
    assert killed - last / 1e9 < 14, killed - last / 1e9
    with Sonded(store, "--families", "cpu", "--flight", "on", "--cpu", "0") as d:
        assert until(lambda: d.running("cpu"), 60), d.said()
        assert ask(store, "keep", "--last", "90s").returncode == 0
        assert until(lambda: kept(d)["windows"] == 1, 90), (kept(d), d.said())
    assert len(spin_by_second(store, "spinner")) >= 10


def test_without_a_ring_it_says_how_to_have_one_and_removes_what_was_there(store):
    need_root()
    os.makedirs(os.path.join(store, "flight"))
    old = os.path.join(store, "flight", "20260101T000000Z-0001.db")
    with open(old, "w", encoding="ascii"):
        pass
    with Sonded(store, "--families", "host") as d:
        said = ask(store, "keep")
        assert said.returncode == 4 and "flight = on" in said.stderr, said
        assert not os.path.exists(old) and not kept(d)["on"]
