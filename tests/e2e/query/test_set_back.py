# SPDX-License-Identifier: Apache-2.0
"""A recording during which the wall clock was set: its range is that of its rows, so every verb and SQL have one sum. The stores are made
(tests/workloads/putstore.c)."""
import json
import os
import subprocess

import pytest

from conftest import BUILD, need

AT = 1_800_000_000
MS = 10  # of one sample


def put(store, lines):
    program = os.path.join(BUILD, "tests", "putstore")
    need("build/tests/putstore", program)
    subprocess.run([program, store], input="\n".join(map(json.dumps, lines)), text=True, check=True)
    return store


def sampled(at, seconds, n, **more):
    return [{"kind": "cpu", "at": at + i, "n": n, "pid": 100, "comm": "app", "stack": ["main", "work"], **more} for i in range(seconds)]


def recorded(by):
    """Ten seconds of a recording; after five of them the clock is set by `by` seconds."""
    return [{"run": "cpu", "from": AT, "to": AT + 5, "bucket_s": 1, "period_ns": MS * 10**6, "recording": 7}, *sampled(AT, 5, 10),
            {"clock": by, "at": AT + 5 + by}, *sampled(AT + 5 + by, 5, 7)]


def sums(sonde, store, *args):
    """By stacks, flame's folded text, pprof, and JSON of ps."""
    stacks = json.loads(sonde("stacks", *args, "--json", store=store, check=True).stdout)
    sonde("flame", *args, "-o", f"{store}.folded", store=store, check=True)
    with open(f"{store}.folded", encoding="utf-8") as f:
        folded = f.read()
    ps = json.loads(sonde("ps", *args, "--json", store=store, check=True).stdout)
    return {sum(r["self_samples"] for r in stacks["rows"]), sum(int(line.rsplit(" ", 1)[1]) for line in folded.splitlines()),
            sum(r["samples"] for r in ps["rows"])}


@pytest.mark.parametrize("by", [-3600, -20, -3, 20, 3600])
def test_a_recording_during_which_the_clock_was_set_is_whole(sonde, tmp_path, by):
    store = put(str(tmp_path / "store"), recorded(by))
    sql = json.loads(sonde("sql", "--json", "select sum(samples) n from cpu_samples", store=store, check=True).stdout)
    assert sql["rows"][0]["n"] == 85
    assert sums(sonde, store, "--rec", "1") == {85}, by
    assert sums(sonde, store) == {85}, by


def test_a_set_back_in_an_earlier_file_of_the_recording_is_known(sonde, tmp_path):
    """The recording goes on in a second file, all of whose rows are from before its begin."""
    lines = [*recorded(-3600), {"flush": True}]
    store = put(str(tmp_path / "store"), lines)
    import sqlite3  # pylint: disable=import-outside-toplevel
    [segment] = [str(tmp_path / "store" / f) for f in os.listdir(store) if f.endswith(".db")]
    second = segment.replace(os.path.basename(segment), "20990101T000000Z-0001.db")
    with open(segment, "rb") as a, open(second, "wb") as b:
        b.write(a.read())
    with sqlite3.connect(segment) as db:
        t0 = db.execute("select value from meta where key = 't0'").fetchone()[0]
        low = db.execute("select min(boot_offset_ns) from clock").fetchone()[0]
        db.execute("delete from sample where ts + ? < ?", (t0, AT))
        db.execute("delete from clock where boot_offset_ns = ?", (low,))
    with sqlite3.connect(second) as db:
        db.execute("delete from sample where ts + ? >= ?", (t0, AT))
        db.execute("delete from clock where boot_offset_ns > ?", (low,))
    assert sums(sonde, store, "--rec", "1") == {85}


def test_what_began_earlier_in_the_same_file_does_not_widen_a_recording(sonde, tmp_path):
    """Others' rows before the recording began are not its rows, and a clock that was never set back leaves its begin alone."""
    before = [{"run": "cpu", "from": AT - 600, "to": AT - 590, "bucket_s": 1, "period_ns": MS * 10**6, "recording": 6}, *sampled(AT - 600, 10, 3)]
    store = put(str(tmp_path / "store"), before + recorded(20))
    ps = json.loads(sonde("ps", "--rec", "2", "--json", store=store, check=True).stdout)
    assert ps["from"].startswith("2027-01-15T07:59:59") or ps["from"].startswith("2027-01-15T08:00:00"), ps["from"]
    store = put(str(tmp_path / "other"), before + recorded(-20))
    ps = json.loads(sonde("ps", "--rec", "2", "--json", store=store, check=True).stdout)
    assert ps["from"].startswith("2027-01-15T07:59:4"), ps["from"]


@pytest.mark.parametrize("by", [-3600, 3600])
def test_cores_are_of_the_time_that_it_took(sonde, tmp_path, by):
    """85 samples of 10 ms in 10 s, not in the hour that no clock showed."""
    store = put(str(tmp_path / "store"), recorded(by))
    stacks = json.loads(sonde("stacks", "--rec", "1", "--json", store=store, check=True).stdout)
    assert sum(r["self_cores"] for r in stacks["rows"]) == pytest.approx(0.085, rel=0.12), by
