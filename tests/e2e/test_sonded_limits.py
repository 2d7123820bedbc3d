# SPDX-License-Identifier: Apache-2.0
"""What sonde itself may take: over a limit, families are slowed one by one, then stopped one by one, each step is told, and all
comes back when there is room."""
import os
import signal

import pytest

from conftest import need_root, sql_all
from sonded import Sonded, until


@pytest.fixture(autouse=True)
def as_root():
    need_root()


def configure(scratch, limits):
    with open(os.path.join(scratch, "sonde.conf"), "w", encoding="ascii") as f:
        f.write("[record]\nfamilies = cpu,goheap\nfreq = 40\n[limits]\n" + limits)


def steps(d):
    return [(s["limit"], s["family"], s["what"], s["hz"]) for s in d.ask(do="status")["sonded"]["steps"]]


DOWN = [("cpu", "cpu", "is slowed", 20), ("cpu", "cpu", "is slowed", 10), ("cpu", "cpu", "is slowed", 5),
        ("cpu", "goheap", "is stopped", None), ("cpu", "cpu", "is stopped", None)]
UP = [("cpu", "cpu", "records again", 5), ("cpu", "goheap", "records again", None), ("cpu", "cpu", "is less slowed", 10),
      ("cpu", "cpu", "is less slowed", 20), ("cpu", "cpu", "is less slowed", 40)]


def test_over_its_limit_of_cpu_sonde_samples_less_then_stops_and_comes_back_when_there_is_room(store, scratch, sonde):
    configure(scratch, "cpu = 0\nmemory = 0\n")
    # no limit by flag: the file is to decide
    with Sonded(store, "--config", scratch, env={"SONDE_PATIENCE": "500ms"}, limit=None) as d:
        assert d.running("cpu") and d.running("goheap"), d.said()
        configure(scratch, "cpu = 0.000001\nmemory = 0\n")
        d.child.send_signal(signal.SIGHUP)
        assert until(lambda: len(steps(d)) == len(DOWN), 40), (steps(d), d.said())
        assert steps(d) == DOWN
        assert until(lambda: d.service("cpu")["state"] == "off" and d.service("goheap")["state"] == "off"), d.said()
        text = sonde("status", store=store, check=True).stdout
        assert "over its cpu limit, cpu is stopped" in text and "over its cpu limit, goheap is stopped" in text
        assert d.said().count("its limit is 0.00 %") == len(DOWN)
        configure(scratch, "cpu = 0\nmemory = 0\n")
        d.child.send_signal(signal.SIGHUP)
        assert until(lambda: len(steps(d)) == len(DOWN + UP), 40), (steps(d), d.said())
        assert steps(d)[len(DOWN):] == UP and d.ask(do="status")["sonded"]["step"] == 0
        assert until(lambda: d.running("cpu") and d.service("cpu")["hz"] == 40), d.said()
        assert "limit" not in sonde("status", store=store, check=True).stdout.split("\n", 1)[1]
        d.stop()
    # the store knows at which rate each was sampled
    periods = {round(1e9 / r["period_ns"]) for r in sql_all(store, "select period_ns from run_period p join run r on r.id = p.run "
                                                                  "where r.family = 'cpu' and period_ns > 0")}
    assert 40 in periods and periods <= {5, 10, 20, 40}


@pytest.mark.long
def test_over_its_limit_of_memory_sonde_stops_a_family_then_begins_anew_and_comes_back(store, scratch):
    configure(scratch, "cpu = 0\nmemory = 0\n")
    with Sonded(store, "--config", scratch, env={"SONDE_PATIENCE": "500ms"}, limit=None) as d:
        assert d.running("cpu") and d.running("goheap"), d.said()
        configure(scratch, "cpu = 0\nmemory = 1M\n")
        d.child.send_signal(signal.SIGHUP)
        assert until(lambda: ("memory", "all", "begins anew", None) in steps(d), 60), (steps(d), d.said())
        assert steps(d)[0] == ("memory", "goheap", "is stopped", None)
        configure(scratch, "cpu = 0\nmemory = 0\n")
        d.child.send_signal(signal.SIGHUP)
        assert until(lambda: steps(d)[-1] == ("memory", "goheap", "records again", None)), (steps(d), d.said())
        assert d.running("cpu") and d.running("goheap"), d.said()
