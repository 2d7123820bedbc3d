# SPDX-License-Identifier: Apache-2.0
"""A recording during which the wall clock was set: its range is that of its rows, so every verb and SQL have one sum. The stores are made
(tests/workloads/putstore.c)."""
import json
import os
import random
import sqlite3
import subprocess
import time

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


# --- two recordings at once, as loaders record now: a run of its own for each stretch of the clock ---

class Clock:
    """Seconds that it shows at each second of a capture, of which `steps` are {second: it is set by}."""

    def __init__(self, steps):
        self.steps = dict(steps)

    def at(self, second):
        return AT + second + sum(by for at, by in self.steps.items() if at <= second)


def loader(clock, begin, end, options, n=lambda second: 1):
    """What a loader with these options writes of [begin, end), one process that is sampled n(second) times: it looks at the clock each second."""
    out, seen = [{"run": "cpu", "from": clock.at(begin), "to": clock.at(begin), "period_ns": MS * 10**6, **options}], clock.at(begin)
    for second in range(begin, end):
        if second and (by := clock.steps.get(second)) and second > begin:
            out.append({"clock": by, "at": clock.at(second)})
        if clock.at(second) < seen:
            out.append({"runs_at": clock.at(second)})
        seen = clock.at(second)
        out += [{"runs_at": seen}, {"kind": "cpu", "at": seen + 0.5, "n": n(second), "pid": 100, "comm": "app", "stack": ["main", f"work{second % 3}"]}]
        out.append({"until": seen + 1})
    return out


ALWAYS, ONCE = {"bucket_s": 10}, {"bucket_s": 1, "recording": 7}
EVER = ["--from", str(AT - 10**7), "--to", str(AT + 10**7)]


def every_sum(sonde, store, *args):
    """{how: samples}"""
    sql = json.loads(sonde("sql", "--json", "select (select sum(samples) from cpu_samples) n, (select sum(samples) from win_cpu_samples) w",
                           *args, store=store, check=True).stdout)["rows"][0]
    timeline = json.loads(sonde("timeline", "--json", *args, store=store, check=True).stdout)
    stacks = json.loads(sonde("stacks", *args, "--json", store=store, check=True).stdout)
    sonde("flame", *args, "-o", f"{store}.folded", store=store, check=True)
    with open(f"{store}.folded", encoding="utf-8") as f:
        folded = f.read()
    return {"cpu_samples": sql["n"], "win_cpu_samples": sql["w"], "stacks": sum(r["self_samples"] for r in stacks["rows"]),
            "flame": sum(int(line.rsplit(" ", 1)[1]) for line in folded.splitlines()),
            "timeline": sum(filter(None, timeline["cpu_by_column_ns"])) // (MS * 10**6)}


def overlapped(dice, clock):
    """sonded for a minute, a recording within it, each written by its own loader into one store."""
    begin = dice.randrange(0, 40)
    end = begin + dice.randrange(3, 20)
    weights = [dice.randrange(1, 9) for _ in range(60)]
    return [loader(clock, 0, 60, ALWAYS, weights.__getitem__), loader(clock, begin, end, ONCE, weights.__getitem__)], weights


@pytest.mark.parametrize("seed", range(12))
def test_what_two_recordings_saw_while_the_clock_was_set_counts_once(sonde, tmp_path, seed):
    """No second of the wall clock comes twice, so that the sum is what there was; and it is one sum, whoever asks."""
    dice = random.Random(4400 + seed)
    clock = Clock({dice.randrange(1, 60): dice.choice((-3600, -7200, 3600, -86400)) * dice.randrange(1, 5) for _ in range(dice.randrange(1, 4))})
    shown = [clock.at(s) // 100 for s in range(60)]
    captures, weights = overlapped(dice, clock)
    store = str(tmp_path / "store")
    for lines in captures:
        put(store, lines)
    sums_ = every_sum(sonde, store, *EVER)
    assert len(set(sums_.values())) == 1, (clock.steps, sums_)
    if len({clock.at(s) for s in range(60)}) == 60 and all(a <= b or b not in shown[:i] for i, (a, b) in enumerate(zip(shown, shown[1:]))):
        assert set(sums_.values()) == {sum(weights)}, (clock.steps, sums_, sum(weights))


@pytest.mark.parametrize("seed", range(12))
def test_a_wall_clock_that_shows_a_time_twice_counts_nothing_twice(sonde, tmp_path, seed):
    """Verbs take sonded's rows where it covers the whole range (choice.h, rule 0). Else the finer recording's are taken, and those that sonded has of
    both times that the clock showed then are left out."""
    dice = random.Random(9900 + seed)
    clock = Clock({dice.randrange(1, 60): -dice.randrange(2, 50) for _ in range(dice.randrange(1, 4))})
    captures, weights = overlapped(dice, clock)
    store = str(tmp_path / "store")
    for lines in captures:
        put(store, lines)
    sums_ = every_sum(sonde, store, *EVER)
    assert sums_["cpu_samples"] == sums_["win_cpu_samples"] <= sum(weights), (clock.steps, sums_)
    assert sums_["stacks"] == sums_["flame"] == sums_["timeline"] in (sum(weights), sums_["cpu_samples"]), (clock.steps, sums_)


@pytest.mark.parametrize("by", [-3600, -20, -3, 3600])
def test_a_recording_of_several_runs_is_one_and_whole(sonde, tmp_path, by):
    """The range of --rec, its sums and its cores are of the ten seconds that it took."""
    store = put(str(tmp_path / "store"), loader(Clock({5: by}), 0, 10, ONCE, lambda second: 10 if second < 5 else 7))
    assert sums(sonde, store, "--rec", "1") == sums(sonde, store) == {85}
    stacks = json.loads(sonde("stacks", "--rec", "1", "--json", store=store, check=True).stdout)
    assert by == -3 or sum(r["self_cores"] for r in stacks["rows"]) == pytest.approx(0.085, rel=0.12)
    assert sonde("stacks", "--rec", "2", store=store).returncode == 2


def test_what_records_always_is_asked_of_now_after_the_clock_was_set_back(sonde, tmp_path):
    """A host that began with a clock in the future: the last 15 minutes are those of its clock as it is now."""
    now = int(time.time())
    lines = [{"run": "cpu", "from": now + 86400, "to": now + 86410, "bucket_s": 10, "period_ns": MS * 10**6},
             {"kind": "cpu", "at": now + 86400, "n": 5, "pid": 100, "comm": "early", "stack": ["main"]},
             {"clock": -86400, "at": now - 60}, {"runs_at": now - 60},
             {"kind": "cpu", "at": now - 50, "n": 7, "pid": 101, "comm": "late", "stack": ["main"]}]
    store = put(str(tmp_path / "store"), lines)
    with sqlite3.connect(next(str(tmp_path / "store" / f) for f in os.listdir(store) if f.endswith(".db"))) as db:
        db.execute("update run set state = 0")  # it goes on
    rows = json.loads(sonde("ps", "--json", store=store, check=True).stdout)["rows"]
    assert {r["comm"] for r in rows} == {"late"}, rows
