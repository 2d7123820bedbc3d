# SPDX-License-Identifier: Apache-2.0
"""A fine recording during an always-on capture: CPU time stays right, nothing counts twice, nobody vanishes."""
import time

import pytest

from conftest import need_root, scale, sql_all


@pytest.fixture(autouse=True)
def as_root():
    need_root()


def cpu_ns(store, pid, from_ts=0, to_ts=1 << 40):
    return sum(r["ns"] or 0 for r in sql_all(store, "SELECT sum(cpu_ns) AS ns FROM cpu_samples "
                                                    "WHERE pid = ? AND ts >= ? AND ts < ?", (pid, from_ts, to_ts)))


@pytest.mark.parametrize("narrow", [False, True], ids=["whole-host", "one-process"])
def test_a_fine_recording_during_an_always_on_capture(capture, work, store, sonde, narrow):
    before, fine_s, after = scale((13, 12, 13), (30, 60, 30))
    always = capture("--freq", 99, bucket="10s")
    a, b = (work("burn", (before + fine_s + after) * 1000) for _ in range(2))
    time.sleep(before)
    fine = capture("--freq", 499, *(["--pid", a.pid] if narrow else []), bucket="1s")
    time.sleep(fine_s)
    window = fine.stop()
    told = {w.pid: w.told() for w in (a, b)}
    always.stop()

    # the minute around it: every process has the CPU time that the kernel charged it
    for pid, t in told.items():
        assert cpu_ns(store, pid) == pytest.approx(t["cpu_ns"], rel=0.01)
    # the window itself: whole seconds inside it, both CPUs busy
    from_ts, to_ts = int(window["from"]) + 1, int(window["to"])
    seen = sum(cpu_ns(store, pid, from_ts, to_ts) for pid in ([a.pid] if narrow else told))
    assert seen == pytest.approx((to_ts - from_ts) * 1e9 * (1 if narrow else 2), rel=0.02)
    # and the tool, which chooses runs by itself, says the same as the views
    done = sonde("sql", "--json", "SELECT sum(cpu_ns) AS ns FROM cpu_samples WHERE pid = %d" % a.pid, store=store)
    assert done.returncode == 0, done.stderr
    assert str(cpu_ns(store, a.pid)) in done.stdout
