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
    return subprocess.run([SONDE, *words, "--store", store], capture_output=True, text=True, timeout=400)


def rows(store, sql):
    said = ask(store, "sql", "--json", "--timeout", "5m", sql)  # on a busy host its store is large, and it has little of the CPUs
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


CONVOY = """import sys, threading, time
lock = threading.Lock()
end = time.time() + float(sys.argv[1])
def waits_its_turn():
    while time.time() < end:
        with lock:
            time.sleep(0.1)
all = [threading.Thread(target=waits_its_turn) for i in range(6)]
[t.start() for t in all]
[t.join() for t in all]
"""


def test_a_lock_convoy_is_there_by_the_second_with_its_stacks(store, tmp_path):
    """Six threads that hold one lock a tenth of a second each: five of them wait for it, at any time. With the ring each second has
    that, and where they wait, and no sum changes."""
    need_root()
    path = os.path.join(tmp_path, "convoy")
    os.symlink("/usr/bin/python3", path)
    waited = "SELECT sum(total_ns) AS ns, sum(count) AS n FROM wait_totals WHERE comm = 'convoy' AND reason = 'lock'"
    by_second = ("SELECT ts, sum(total_ns) AS ns, group_concat(DISTINCT function) AS functions FROM waits"
                 " WHERE comm = 'convoy' AND reason = 'lock' GROUP BY ts")
    with Sonded(store, "--families", "cpu,offcpu", "--flight", "on", "--cpu", "0") as d:
        assert until(lambda: d.running("offcpu") and d.running("cpu"), 60), d.said()
        time.sleep(22)  # the ring begins with a whole step of the store
        began = time.time()
        subprocess.run([path, "-c", CONVOY, "20"], check=True)
        ended = time.time()
        assert until(lambda: time.time() > ended + 25, 60)
        before = rows(store, waited)[0]
        assert ask(store, "keep", "--last", "90s", "--why", "a convoy").returncode == 0
        assert until(lambda: "a convoy" in kept(d)["last_why"], 150), (kept(d), d.said())
    assert rows(store, waited)[0] == before
    fine = {r["ts"]: r for r in rows(store, by_second)}
    seconds = range(int(began) + 2, int(ended) - 1)
    assert len(seconds) >= 15 and not [s for s in seconds if s not in fine], (sorted(fine), began, ended)
    for s in seconds:  # waits are of the second that they end in; each lasts half of one
        assert 2.5e9 < fine[s]["ns"] < 7.5e9 and fine[s]["functions"], fine[s]


def test_a_container_that_ends_badly_keeps_the_window_with_its_log_by_the_second(store, tmp_path):
    """Its program logs 3, 5 and 7 errors of two kinds in three seconds; each second has them, and the sums of logs are as before."""
    need_root()
    path = os.path.join(tmp_path, "shop.log")
    counts, wrote = [3, 5, 7], {}
    with open(path, "w", encoding="ascii") as f, contained() as (_, prefix, _), \
         Sonded(store, "--families", "cpu,host,logs", "--log-files", path, "--flight", "on", "--cpu", "0") as d:
        f.write("INFO begins\n")
        f.flush()
        assert until(lambda: d.running("cpu") and d.running("logs"), 60), d.said()
        time.sleep(22)
        for n in counts:
            time.sleep(1.1 - time.time() % 1)
            wrote[int(time.time())] = n
            f.write("".join(f"ERROR cannot reach db {i}\n" for i in range(n)) + "ERROR the till is shut\n")
            f.flush()
        assert subprocess.run([*prefix, "sh", "-c", "exit 3"], stdin=subprocess.DEVNULL, check=False).returncode == 3
        assert until(lambda: "container" in d.said() or "container" in kept(d)["last_why"], 30), d.said()
        assert until(lambda: kept(d)["windows"] and not kept(d)["pending"] and "container" in kept(d)["last_why"], 150), (kept(d), d.said())
    sums = rows(store, f"SELECT sum(lines) AS n FROM logs WHERE source = '{path}' AND level = 'error'")[0]["n"]
    words = rows(store, f"SELECT sum(messages) AS n, min(first_us) / 1000000 AS first, max(last_us) / 1000000 AS last FROM log_patterns WHERE source = '{path}' AND pattern LIKE '%reach%'")[0]
    assert sums == sum(counts) + len(counts) and words["n"] == sum(counts), (sums, words)
    # lines without a time are of when they are read: a second later, where the host is busy two or three
    assert min(wrote) <= words["first"] <= words["last"] <= max(wrote) + 3, (words, wrote)
    by_second = f"SELECT ts, sum(messages) AS n FROM log_seconds WHERE source = '{path}' AND level = 'error' AND pattern"
    reach = {r["ts"]: r["n"] for r in rows(store, f"{by_second} LIKE '%reach%' GROUP BY ts")}
    all_of = {r["ts"]: r["n"] for r in rows(store, f"{by_second} = '' GROUP BY ts")}
    assert sum(reach.values()) == sum(counts) and sum(all_of.values()) == sums, (reach, all_of)
    assert min(reach) == words["first"] and max(reach) == words["last"] and set(reach) <= set(all_of), (reach, all_of, words)


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


def test_a_sonded_that_is_killed_while_a_window_waits_keeps_it_when_it_is_back(store, tmp_path):
    """All of sonde is killed after something happened and before its window was kept: as an out-of-memory kill of its cgroup does it."""
    need_root()
    with Sonded(store, "--families", "cpu", "--flight", "on", "--cpu", "0") as d:
        assert until(lambda: d.running("cpu"), 60), d.said()
        child = spun(tmp_path, 60)
        time.sleep(35)
        assert ask(store, "keep", "--why", "before it was killed").returncode == 0
        time.sleep(5)
        pids, killed = d.pids(), time.time()
        for pid in [d.child.pid, *pids]:
            os.kill(pid, signal.SIGKILL)
        child.kill()
        child.wait()
    with Sonded(store, "--families", "cpu", "--flight", "on", "--cpu", "0") as d:
        assert until(lambda: kept(d)["windows"] == 1, 90), (kept(d), d.said())
        assert "before it was killed" in kept(d)["last_why"]
    seconds = spin_by_second(store, "spinner")
    # ten seconds were not handed over, and windows have whole steps of ten
    assert len(seconds) >= 10 and killed - max(seconds) < 34, (killed, seconds)


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
