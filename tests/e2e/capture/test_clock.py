# SPDX-License-Identifier: Apache-2.0
"""Clocks that are set while sonde records, and a machine that sleeps. This machine's clock is left alone: clockshim.so tells
the programs another one (tests/workloads/clockshim.c)."""
import contextlib
import json
import os
import re
import shutil
import sqlite3
import struct
import subprocess
import tempfile
import time

import pytest
from conftest import BIN, WORKLOADS, need, need_root, segments, sql_all
from sonded import Sonded, alive, until

NS = 1_000_000_000


@pytest.fixture
def clock(scratch):
    """set(utc seconds, boot seconds): what is added to the clocks of programs started with `env`."""
    need_root()
    shim = os.path.join(WORKLOADS, "clockshim.so")
    need("clockshim.so (make workloads)", shim)
    path = os.path.join(scratch, "clock")

    class Clock:
        env = dict(os.environ, LD_PRELOAD=shim, CLOCKSHIM=path)

        def set(self, utc=0, boot=0):
            with open(path, "r+b" if os.path.exists(path) else "wb") as f:
                f.write(struct.pack("=qq", int(utc * NS), int(boot * NS)))
    c = Clock()
    c.set()
    return c


@pytest.mark.long
def test_a_clock_that_jumps_back_and_forth_loses_and_misplaces_nothing(clock, capture, work, sonde, store):
    jumps = [0, 3600, -7200]
    cap = capture("--freq", "499", "--verbose", env=clock.env)
    done = []
    for i, jump in enumerate(jumps):
        clock.set(utc=jump)
        assert until(lambda n=i: cap.said().count("the wall clock was set by") >= n), cap.said()
        at = time.time()
        told = work("burn", "300", "1", f"jump{jump}").told()
        done.append((jump, told["pid"], at + jump, time.time() + jump))
    last = cap.stop()
    assert last["samples"] > 300
    # nothing is lost: in sums, and to whoever asks for all of it
    stored = sum(r["n"] or 0 for r in sql_all(store, "select sum(n) n from sample"))
    lost = sum(r["n"] or 0 for r in sql_all(store, "select sum(n) n from loss_row"))
    # a run goes on in the next segment, with what it had accounted for; a set-back begins another one
    accounted = {}
    for r in sql_all(store, "select token, accounted n from run"):
        accounted[r["token"]] = max(r["n"], accounted.get(r["token"], 0))
    assert stored + lost == sum(accounted.values())
    for jump, pid, begin, end in done:
        # nothing is misplaced: each burn stands where the clock of its time said
        rows = sql_all(store, "select min(x.ts + m.value) a, max(x.ts + m.value) z, sum(x.n) n from sample x join series e on"
                       " e.id = x.series join task t on t.id = e.task join process p on p.id = t.process join meta m on"
                       f" m.key = 't0' where p.pid = {pid}")
        n = sum(r["n"] or 0 for r in rows)
        assert n > 75, (jump, n, rows)
        assert min(r["a"] for r in rows if r["n"]) >= begin - 2 and max(r["z"] for r in rows if r["n"]) <= end + 2, (jump, rows)
        # and a question about that time finds it there
        window = ["--from", str(int(begin) - 3), "--to", str(int(end) + 4)]
        ps = json.loads(sonde("ps", "--json", "--pid", str(pid), *window, store=store, check=True).stdout)
        assert sum(r["samples"] for r in ps["rows"]) == n, (jump, n, ps)
    # the offsets by which kernel stamps became UTC are on record
    offsets = [r["boot_offset_ns"] / NS for r in sql_all(store, "select boot_offset_ns from clock order by rowid")]
    base = time.time() - time.clock_gettime(time.CLOCK_BOOTTIME)
    for jump in jumps:
        assert any(abs(o - base - jump) < 1 for o in offsets), (jump, base, offsets)


@pytest.mark.parametrize("jump", [-3600, -20, 3600])
@pytest.mark.long
def test_a_recording_during_which_the_clock_is_set_is_whole_and_says_how_long_it_took(clock, work, sonde, store, jump):
    work("burn", "100", "12", "set")
    begun = time.time()
    said = tempfile.TemporaryFile("w+", encoding="utf-8")
    with subprocess.Popen([f"{BIN}/sonde", "record", "--families", "cpu", "-d", "6s", "--freq", "199", "--store", store], env=clock.env,
                          stdout=said, stderr=said) as p:
        assert until(lambda: segments(store)), "no store"
        time.sleep(max(0.0, begun + 4 - time.time()))
        clock.set(utc=jump)
        assert p.wait(60) == 0
    said.seek(0)
    text = said.read()
    took = re.search(r"processes? in (-?[0-9.]+) s;", text)
    assert took and 5 < float(took[1]) < 8, text
    stored = json.loads(sonde("sql", "--json", "select sum(samples) n from cpu_samples", store=store, check=True).stdout)["rows"][0]["n"]
    (row,) = [line for line in sonde("status", store=store, check=True).stdout.splitlines() if re.match(r" +1 +[0-9:]+ ", line)]
    assert re.match(r" +1 +[0-9:]+ +[5-7](\.\d+)? s  ended", row), row
    for range_ in ([], ["--rec", "1"]):
        sonde("flame", *range_, "--self", "-o", f"{store}.folded", store=store, check=True)
        with open(f"{store}.folded", encoding="utf-8") as f:
            assert sum(int(line.rsplit(" ", 1)[1]) for line in f) == stored > 500, (jump, range_, text)


@pytest.mark.parametrize("jump", [-3600, -4])
@pytest.mark.long
def test_beside_sonded_a_recording_during_which_the_clock_is_set_back_counts_once(clock, work, sonde, store, jump):
    """What a process burned is what every answer has of it, though two loaders sampled it."""
    with Sonded(store, env=clock.env) as d:
        assert d.running("cpu")
        burn = work("burn", "6000", "1", "twice")
        time.sleep(2)
        with subprocess.Popen([f"{BIN}/sonde", "record", "--families", "cpu", "-d", "5s", "--freq", "199", "--store", store], env=clock.env,
                              stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as p:
            time.sleep(3)
            clock.set(utc=jump)
            assert p.wait(60) == 0
        told = burn.told()
        time.sleep(2)
    pid, used = told["pid"], sum(t["cpu_ns"] for t in told["threads"]) / NS if "threads" in told else told["cpu_ns"] / NS
    sql = json.loads(sonde("sql", "--json", f"select sum(cpu_ns) n from cpu_samples where pid = {pid}", store=store, check=True).stdout)["rows"][0]["n"] / NS
    ever = ["--from", str(int(time.time()) - 9000), "--to", str(int(time.time()) + 600)]
    stacks = json.loads(sonde("stacks", "--json", "--pid", str(pid), *ever, store=store, check=True).stdout)
    shown = sum(r["self_ns"] for r in stacks["rows"]) / NS
    # a host with more to do samples less often (sonded sheds), so that each sample stands for more
    most = used * (1.08 + 2 / stacks["samples"] ** 0.5)
    assert abs(shown - sql) < 0.02 and shown <= most, (used, sql, shown, most)
    # no run has rows from before its begin: with those of the other one they would count twice
    assert not sql_all(store, "SELECT t.run, x.ts + t0.value AS at, r.from_ns FROM sample x JOIN meta t0 ON t0.key = 't0' JOIN series e ON e.id = x.series"
                       " JOIN task t ON t.id = e.task JOIN run r ON r.id = t.run WHERE x.ts + t0.value + r.bucket_s < r.from_ns / 1000000000")
    assert jump > -60 or shown >= used * 0.75, (used, sql, shown)


def test_after_a_sleep_nobody_is_taken_to_hang(clock, store):
    clock.set()
    with Sonded(store, env=clock.env | {"CLOCKSHIM_ASLEEP": "sonded"}) as d:
        cpu, maps = d.running("cpu"), d.running("maps")
        clock.set(utc=7200, boot=7200)
        looked = d.ask(do="status")["sonded"]["for_seconds"]
        assert until(lambda: d.ask(do="status")["sonded"]["for_seconds"] > looked + 1.5)
        assert d.running("cpu") == cpu and d.running("maps") == maps and alive(cpu), d.said()
        assert "killed" not in d.said() and "no sign of life" not in d.said()


def older(path, days):
    """A copy of the file, in its folder, as one of so many days ago."""
    at = time.time() - 86400 * days
    to = os.path.join(os.path.dirname(path), time.strftime("%Y%m%dT%H%M%SZ-0001.db", time.gmtime(at)))
    shutil.copy(path, to)
    with contextlib.closing(sqlite3.connect(to)) as db, db:
        db.execute("update meta set value = value - ? where key = 't0'", (86400 * days,))
    return to


@pytest.mark.long
def test_soon_after_a_start_and_after_the_clock_was_set_nothing_goes_for_its_age(clock, capture, store):
    capture("--duration", "1s").wait()
    old = [older(segments(store)[-1], days) for days in (10, 11, 12, 13)]  # of two days all stays in any case

    def looked_at(d, seconds):
        before = d.ask(do="status")["sonded"]["for_seconds"]
        assert until(lambda: d.ask(do="status")["sonded"]["for_seconds"] > before + seconds)
        return all(map(os.path.exists, old))
    with Sonded(store, "--age", "1d", "--seal", "no", env=clock.env) as d:
        assert d.running("cpu") and looked_at(d, 3), d.said()
        clock.set(utc=3 * 86400)
        assert until(lambda: "no segment is removed by age" in d.said()), d.said()
        assert looked_at(d, 3), d.said()
