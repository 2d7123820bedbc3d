# SPDX-License-Identifier: Apache-2.0
"""A fine recording during an always-on capture: CPU time stays right, nothing counts twice, nobody vanishes."""
import time

import pytest

from conftest import is_charged, need_root, scale, sql_all, stolen_ns, tolerance


@pytest.fixture(autouse=True)
def as_root():
    need_root()


def cpu_ns(store, pid, from_ts=0, to_ts=1 << 40):
    return sum(r["ns"] or 0 for r in sql_all(store, "SELECT sum(cpu_ns) AS ns FROM cpu_samples "
                                                    "WHERE pid = ? AND ts >= ? AND ts < ?", (pid, from_ts, to_ts)))


def charged(pid):
    """(monotonic ns, CPU ns that the scheduler has charged the process's one thread)."""
    with open(f"/proc/{pid}/schedstat", encoding="ascii") as f:
        return time.monotonic_ns(), int(f.read().split()[0])


@pytest.mark.long
@pytest.mark.parametrize("narrow", [False, True], ids=["whole-host", "one-process"])
def test_a_fine_recording_during_an_always_on_capture(capture, work, store, sonde, narrow):
    before, fine_s, after = scale((12, 11, 12), (30, 60, 30))
    length = before + fine_s + after
    always = capture("--freq", 99, bucket="10s")
    before_all = stolen_ns()
    a, b = (work("shares", length) for _ in range(2))
    time.sleep(before)
    fine = capture("--freq", 499, *(["--pid", a.pid] if narrow else []), bucket="1s")
    began, before_fine = {w.pid: charged(w.pid) for w in (a, b)}, stolen_ns()
    time.sleep(fine_s)
    ended, stolen_fine = {w.pid: charged(w.pid) for w in (a, b)}, stolen_ns() - before_fine
    window = fine.stop()
    told = {w.pid: w.told() for w in (a, b)}
    stolen = stolen_ns() - before_all
    always.stop()

    # all of the time around it: every process has the CPU time that the kernel charged it, once
    for pid, t in told.items():
        seen, allowed = cpu_ns(store, pid), tolerance(0.01, t["cpu_ns"], length * 1e9, 99)
        assert is_charged(seen, t["cpu_ns"], allowed, stolen), ("the whole time", seen, t, allowed, stolen)
    # the window itself, asked for as a person does: it lies inside the fine recording, so all of it is that one's
    from_ts, to_ts = int(window["from"]) + 1, int(window["to"]) - 1
    for pid in [a.pid] if narrow else told:
        wall = ended[pid][0] - began[pid][0]
        cores = (ended[pid][1] - began[pid][1]) / wall
        done = sonde("export", "folded", "--pid", pid, "--from", from_ts, "--to", to_ts, store=store, check=True)
        samples = sum(int(line.rsplit(" ", 1)[1]) for line in done.stdout.splitlines())
        seen = samples / 499 / (to_ts - from_ts)
        # (a process that others push off its CPU has no even rate: then only that nothing is counted twice or missing)
        alone = cores > 0.95
        allowed = tolerance(0.01, cores * wall, wall, 499) if alone else 0.25
        assert is_charged(seen, cores, allowed, stolen_fine / wall), ("the window", seen, cores, allowed, stolen_fine / wall)
    if narrow:  # every other process is still there, in buckets of ten seconds
        done = sonde("stacks", "--pid", b.pid, "--from", from_ts - 10, "--to", to_ts + 10, store=store, check=True)
        assert "leaf_parse" in done.stdout
    # and the tool, which chooses runs by itself, says the same as the views
    done = sonde("sql", "--json", "SELECT sum(cpu_ns) AS ns FROM cpu_samples WHERE pid = %d" % a.pid, store=store)
    assert done.returncode == 0, done.stderr
    assert str(cpu_ns(store, a.pid)) in done.stdout
