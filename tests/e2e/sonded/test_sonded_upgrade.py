# SPDX-License-Identifier: Apache-2.0
"""sonded replaced by another one while it records, held to its limits, and asked how it is."""
import time

import pytest
from conftest import need_root, sql_all
from sonded import Sonded, alive, until


@pytest.fixture(autouse=True)
def root():
    need_root()


@pytest.mark.long
def test_a_sonded_that_is_replaced_ends_in_order_and_the_gap_is_short_and_on_record(store, work):
    burn = work("burn", "60000", "1")
    with Sonded(store, "--freq", "99") as old:
        assert old.running("cpu"), old.said()
        assert until(lambda: old.service("cpu")["samples"] > 50), old.said()
        children = old.pids()
        with Sonded(store, "--freq", "99", "--replace", ready=False) as new:  # as yet the old one answers
            assert until(lambda: f"took the store over from pid {old.child.pid}" in new.said()), new.said()
            assert old.child.wait(5) == 0, old.said()
            assert not [p for p in children if alive(p)]
            assert until(new.is_ready) and until(lambda: new.service("cpu")["samples"] > 50), new.said()
            new.stop()
    burn.close()
    runs = [r for r in sql_all(store, "select token, min(from_ns) a, max(to_ns) z, max(accounted) n, max(state) s from run"
                                      " group by token order by a")]
    assert len(runs) == 2 and [r["s"] for r in runs] == [1, 1], runs
    gap = (runs[1]["a"] - runs[0]["z"]) / 1e9
    print(f"{gap:.2f} s without samples")
    assert 0 <= gap < 8, runs  # 2 s for the loaders to write, and a start; more where the machine is busy
    stored = sum(r["n"] or 0 for r in sql_all(store, "select sum(n) n from sample"))
    lost = sum(r["n"] or 0 for r in sql_all(store, "select sum(n) n from loss_row"))
    assert stored + lost == sum(r["n"] for r in runs)


@pytest.mark.long
def test_status_is_told_at_once_with_what_all_of_sonde_takes_and_may_take(store):
    with Sonded(store, "--memory", "300M") as d:
        assert d.running("cpu"), d.said()
        took = []
        for _ in range(50):
            began = time.monotonic()
            d.ask(do="status")
            took.append(time.monotonic() - began)
        assert until(lambda: d.ask(do="status")["sonded"]["private_bytes"] > 1 << 20, 20)
        told = d.ask(do="status")["sonded"]
    took.sort()
    print(f"status: {1000 * took[25]:.1f} ms, at most {1000 * took[-1]:.1f}")
    assert took[25] <= 0.05, took
    assert told["limit_bytes"] == 300 << 20 and told["private_bytes"] < 300 << 20 and told["memory_step"] == 0
