# SPDX-License-Identifier: Apache-2.0
"""kill -9 of each program in the middle of its work, again and again: the store stays whole, and what was lost is
counted. Full length (100 times each) in `make long-soak`."""
import contextlib
import os
import random
import shutil
import signal
import sqlite3
import subprocess
import time

import pytest

from conftest import BIN, Capture, need_root, scale, segments, sql_all


@pytest.fixture(autouse=True)
def as_root():
    need_root()


def children(pid):
    """{name: pid} of all that descend from it, and live; of a name the eldest: what is forked has its parent's until it is another program."""
    out, todo = {}, [pid]
    while todo:
        parent = todo.pop()
        done = subprocess.run(["ps", "-o", "pid=,stat=,comm=", "--ppid", str(parent)], capture_output=True, text=True)
        for line in done.stdout.splitlines():
            child, state, name = line.split(None, 2)
            if state[0] != "Z":
                out.setdefault(name, int(child))
                todo.append(int(child))
    return out


def assert_whole(store):
    for path in segments(store):
        with sqlite3.connect(f"file:{path}?mode=ro", uri=True, timeout=20) as db:
            assert db.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
        db.close()
    assert not [f for f in os.listdir(store) if f.endswith(".bad")]


def books(store):
    """Of each run: what it accounts for, and what really is there as samples and as losses."""
    return sql_all(store, """SELECT r.id, r.state, r.accounted,
        (SELECT coalesce(sum(n), 0) FROM sample x JOIN series e ON e.id = x.series JOIN task t ON t.id = e.task
         WHERE t.run = r.id) AS stored,
        (SELECT coalesce(sum(n), 0) FROM loss_row l WHERE l.run = r.id) AS lost FROM run r""")


@pytest.mark.long
def test_kill_sonde_cpu_the_store_stays_whole_and_what_it_held_is_counted(capture, work, store):
    times = scale(6, 100)
    load = work("burn", 3600000, 2)
    capture("--duration", "1s").wait()
    for _ in range(times):
        c = capture("--freq", 997)
        time.sleep(random.uniform(0.3, scale(1.2, 3)))
        c.kill()
        assert_whole(store)
    time.sleep(0.5)
    capture("--duration", "1s").wait()
    load.close()
    assert_whole(store)
    rows = books(store)
    killed = [r for r in rows if r["state"] == 2]
    assert len(killed) >= 0.5 * times  # one killed before its first commit has left no run
    for r in rows:
        assert r["stored"] + r["lost"] == r["accounted"], r
        assert r["state"] != 0, "a run that goes on without a program"
    # what was held is less than a second or two of samples: one batch
    assert all(r["lost"] <= 2 * 997 * 2.5 for r in killed), killed
    assert sum(r["lost"] for r in killed) > 0


def named_before(capture, store, pid):
    """An earlier capture, that lasts until this process has names: what it runs has an index then."""
    c = capture("--freq", 499)
    end = time.monotonic() + 60
    while not sql_all(store, "SELECT 1 FROM cpu_samples WHERE pid = ? AND function LIKE 'leaf_%' LIMIT 1", (pid,)):
        assert time.monotonic() < end, "never named"
        time.sleep(0.1)
    c.stop()


@pytest.mark.long
def test_kill_sonde_maps_the_capture_goes_on_and_names_again(capture, work, store):
    times = scale(4, 100)
    load = work("shares", 3600)
    named_before(capture, store, load.pid)
    c = capture("--freq", 499)
    hits, end = 0, time.monotonic() + scale(25, 180)
    while hits < times and time.monotonic() < end:
        pid = children(c.pid).get("sonde-maps")
        if pid:
            with contextlib.suppress(ProcessLookupError):  # still dying of the kill before
                os.kill(pid, signal.SIGKILL)
                hits += 1
            time.sleep(random.uniform(0.2, 1.0))
        else:
            time.sleep(0.05)
    time.sleep(2.5)
    done = c.stop()
    load.close()
    assert hits == times
    assert_whole(store)
    assert done["samples"] + sum(done["lost"].values()) == done["seen"]
    # after the last restart the workload is named again
    last = sql_all(store, "SELECT function, sum(samples) AS n FROM cpu_samples WHERE pid = ? AND ts >= "
                          "(SELECT max(ts) - 1 FROM cpu_samples) GROUP BY 1 ORDER BY n DESC LIMIT 1", (load.pid,))
    assert last and last[0]["function"].startswith("leaf_"), last


def strike(parent, name, seconds):
    """Kill the first child of this name that `parent` starts. Looks without a pause: it may live for 20 ms."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        found = []
        with contextlib.suppress(OSError):  # it may have ended: another one comes
            with open(f"/proc/{parent}/task/{parent}/children") as f:
                found = f.read().split()
        for pid in found:
            with contextlib.suppress(OSError):  # it may just have ended
                with open(f"/proc/{pid}/comm") as f:
                    if f.read().strip() == name:
                        os.kill(int(pid), signal.SIGKILL)
                        return True
    return False


@pytest.mark.long
def test_kill_sonde_index_the_capture_goes_on(capture, work, store):
    times = scale(4, 100)
    load = work("shares", 3600)
    named_before(capture, store, load.pid)
    c = capture("--freq", 499)
    hits, tried = 0, 0
    while hits < times and tried < 3 * times:
        # something new to index, that takes its time: a copy of python, at work
        copy = f"{store}-{tried}"
        shutil.copy("/usr/bin/python3", copy)
        busy = subprocess.Popen([copy, "-ISc", "while True: pass"], stdin=subprocess.DEVNULL)
        try:
            hits += strike(children(c.pid).get("sonde-maps", 0), "sonde-index", 5)
        finally:
            busy.kill()
            busy.wait()
            os.unlink(copy)
        tried += 1
    time.sleep(2.5)
    done = c.stop()
    load.close()
    assert hits == times, f"{hits} of {tried}"
    assert_whole(store)
    assert done["samples"] + sum(done["lost"].values()) == done["seen"]
    # who had been indexed before is named throughout, but for the seconds until its first name
    rows = sql_all(store, "SELECT function, sum(samples) AS n FROM cpu_samples WHERE pid = ?1 AND ts > (SELECT min(ts) FROM cpu_samples"
                          " WHERE pid = ?1 AND ts >= ?2 AND function LIKE 'leaf_%') GROUP BY 1", (load.pid, done["from"]))
    assert rows and sum(r["n"] for r in rows if r["function"].startswith("leaf_")) >= 0.95 * sum(r["n"] for r in rows), rows


KILLED_AT_FIRST = """#!/bin/sh
if [ "$(readlink /proc/self/fd/4)" = {file} ] && [ "$(cat {log} 2>/dev/null | wc -l)" -lt {times} ]; then
	echo >>{log}
	kill -9 $$
fi
exec {index} "$@"
"""


@pytest.mark.long
def test_kill_sonde_index_its_file_is_read_again_and_named_throughout(capture, store, scratch):
    fake, log, copy, socket = (os.path.join(scratch, name) for name in ("fake", "log", "busy", "socket"))
    times = scale(1, 2)  # the second pause takes ten seconds
    with open(fake, "w") as f:
        f.write(KILLED_AT_FIRST.format(file=copy, log=log, times=times, index=os.path.join(BIN, "sonde-index")))
    os.chmod(fake, 0o755)
    shutil.copy("/usr/bin/perl", copy)  # which nobody else runs here: who has its build-id has its index
    maps = subprocess.Popen([os.path.join(BIN, "sonde-maps"), "--socket", socket, "--store", store, "--index", fake],
                            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    busy = None
    try:
        end = time.monotonic() + 10
        while not os.path.exists(socket):
            assert time.monotonic() < end
            time.sleep(0.02)
        c = capture("--freq", 99, "--maps-socket", socket)
        busy = subprocess.Popen([copy, "-e", "1 while 1"], stdin=subprocess.DEVNULL)
        time.sleep(scale(5, 18))
        done = c.stop()
    finally:
        for child in (maps, busy):
            if child:
                child.kill()
                child.wait()
    with open(log) as f:
        assert len(f.read()) == times
    rows = sql_all(store, "SELECT function, sum(samples) AS n FROM cpu_samples WHERE pid = ? GROUP BY 1", (busy.pid,))
    assert sum(r["n"] for r in rows if r["function"].startswith("Perl_")) >= 0.9 * sum(r["n"] for r in rows) > 0, rows
    assert done["samples"] + sum(done["lost"].values()) == done["seen"]


@pytest.mark.long
def test_a_file_whose_reading_is_killed_each_time_is_read_three_times_and_not_remembered_as_refused(store, scratch):
    fake, log, copy = (os.path.join(scratch, name) for name in ("fake", "log", "busy"))
    with open(fake, "w") as f:
        f.write(f"#!/bin/sh\nreadlink /proc/self/fd/4 >>{log}\nkill -9 $$\n")
    os.chmod(fake, 0o755)
    shutil.copy("/usr/bin/sleep", copy)
    busy = subprocess.Popen([copy, "3600"])
    maps = subprocess.Popen([os.path.join(BIN, "sonde-maps"), "--store", store, "--print", "--index", fake],
                            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    time.sleep(25)
    for child in (maps, busy):
        child.terminate()
        child.wait()
    with open(log) as f:
        assert f.read().split("\n").count(copy) == 3
    assert not os.listdir(os.path.join(store, "images", "by-stat"))


@pytest.mark.long
def test_kill_sonde_record_the_loader_ends_cleanly(work, store):
    load = work("burn", 3600000, 1)
    for _ in range(scale(2, 100)):
        record = subprocess.Popen([os.path.join(BIN, "sonde"), "record", "-q", "-d", "60s", "--store", store],
                                  stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        time.sleep(random.uniform(1.5, 2.5))
        helpers = children(record.pid)
        record.kill()
        record.wait()
        assert "sonde-cpu" in helpers
        end = time.monotonic() + 10
        while time.monotonic() < end and os.path.exists(f"/proc/{helpers['sonde-cpu']}"):
            time.sleep(0.1)
        assert not os.path.exists(f"/proc/{helpers['sonde-cpu']}"), "the loader outlived its parent"
    load.close()
    assert_whole(store)
    rows = books(store)
    assert rows and all(r["state"] == 1 and r["stored"] + r["lost"] == r["accounted"] for r in rows), rows


@pytest.mark.long
def test_kill_sonde_cpu_under_sonde_record_is_said(work, store):
    load = work("burn", 3600000, 1)
    record = subprocess.Popen([os.path.join(BIN, "sonde"), "record", "-q", "-d", "60s", "--store", store],
                              stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    time.sleep(3)
    os.kill(children(record.pid)["sonde-cpu"], signal.SIGKILL)
    said, _ = record.communicate(timeout=120)
    load.close()
    assert record.returncode == 1 and "signal 9" in said
    assert sum(r["n"] for r in sql_all(store, "SELECT count(*) AS n FROM cpu_samples")) > 0
    Capture(store, "--duration", "1s").wait()
    assert_whole(store)
