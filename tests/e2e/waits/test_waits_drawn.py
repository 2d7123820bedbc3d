# SPDX-License-Identifier: Apache-2.0
"""Waits that are drawn by their length (docs/decisions/0255): sums by stack against programs that know how long they waited where."""
import json
import math
import os
import subprocess
import sys

import pytest
from conftest import Capture, Work, need_root, sql_all
from sonded import Sonded

WARM = 5  # runs in which the tables for its stacks are made, on a machine that is busy
REASON = {"sleep": "sleep", "futex": "lock"}


@pytest.fixture(autouse=True)
def as_root():
    need_root()


def by_way(store, pid, thread):
    """{way: (count, ns, variance of ns in us^2)} of one thread's waits by stack; "": below neither way. With buckets of 10 s threads
    have no number."""
    out = {}
    for r in sql_all(store, "SELECT k.folded, w.reason, sum(w.count) AS n, sum(w.total_ns) AS ns, sum(w.total_us_variance) AS v FROM waits w"
                            " LEFT JOIN stacks k ON k.id = w.stack_id WHERE w.pid = ? AND w.thread = ? AND w.reason = ? GROUP BY 1, 2",
                     (pid, thread["name"], REASON[thread["kind"]])):
        way = next((w for w in "ab" if f";way_{w};" in (r["folded"] or "")), "")
        n, ns, v = out.get(way, (0, 0, 0))
        out[way] = n + r["n"], ns + r["ns"], v + r["v"]
    return out


def exact(store, thread):
    """Of all processes of the program: those that came and went between two readings are one."""
    rows = sql_all(store, "SELECT sum(count) AS n, sum(total_ns) AS ns FROM wait_totals WHERE thread = ? AND reason = ?"
                   " AND NOT unfinished", (thread["name"], REASON[thread["kind"]]))
    return rows[0]["n"] or 0, rows[0]["ns"] or 0


def did(thread, way=""):
    """The least and the most that its waits can have been, by its own clock, which has its way in and out and its waits for a CPU: on a
    busy machine all of these may have been on one way."""
    ns = thread[f"{way}_ns" if way else "ns"]
    return ns - (thread["delay_ns"] + thread["ran_ns"] + 50_000 * thread["count"]), ns + 50_000


@pytest.mark.long
@pytest.mark.alone
def test_always_recorded_sleeps_and_lock_waits_are_right_by_stack_in_each_of_twenty_runs(store):
    """As sonded does by default: 100 sleeps and 50 waits for a lock, of 20 ms each, two thirds of them by one way. Exact by thread, and by
    stack within 5 %, counts too."""
    with Sonded(store, families="cpu,offcpu") as d:
        assert d.running("offcpu"), d.said()
        ran = [Work("waits", "run", "sleep:1:100:20", "futex:1:50:20").told() for _ in range(WARM + 20)]
        d.stop()
    off, drawn = [], 0
    for i in range(2):
        n, ns = exact(store, ran[0]["threads"][i])
        of = [told["threads"][i] for told in ran]
        assert 0.98 * sum(t["count"] for t in of) <= n <= 1.02 * sum(t["count"] for t in of), (n, of)
        assert sum(did(t)[0] for t in of) <= ns <= sum(did(t)[1] for t in of), (ns, of)
    for told in ran[WARM:]:
        for t in told["threads"]:
            ways = by_way(store, told["pid"], t)
            drawn += sum(w[2] > 0 for w in ways.values())
            for way in "ab":
                n, ns, variance = ways.get(way, (0, 0, 0))
                least, most = did(t, way)
                part = max(0, ns - most, least - ns) / most
                if variance:  # a machine on which hundreds wait: which of two equal waits is drawn is chance
                    part = max(0, part - 4 * math.sqrt(variance) * 1000 / most)
                else:
                    part = max(part, abs(n / t[f"{way}_count"] - 1))
                off.append((part, told["pid"], t["kind"], way, n, ns, least, most))
    print(f"furthest off {100 * max(off)[0]:.2f} %; {drawn} of {len(off)} are estimates")
    assert max(off)[0] <= 0.05, sorted(off)[-5:]


STORM = """
import os, time
a, b, c, d = *os.pipe(), *os.pipe()
end, left = time.monotonic() + float(os.sys.argv[1]), 3000
mine, other = ((b, c), (a, d)) if os.fork() else ((d, a), (b, c))
for fd in other: os.close(fd)
try:
    while (time.monotonic() < end or left > 0) and os.write(mine[0], b"x") and os.read(mine[1], 1): left -= 1
except BrokenPipeError:
    pass
os._exit(0)
"""


@pytest.fixture(scope="module")
def mixed(tmp_path_factory):
    """Some hundred thousand short waits, and among them some long ones, as they are always recorded."""
    need_root()
    folder = tmp_path_factory.mktemp("mixed")
    store, storms = str(folder / "store"), str(folder / "storms")
    os.symlink(sys.executable, storms)
    capture = Capture(store, "--bucket", "10s", program="sonde-offcpu").start()
    try:
        with subprocess.Popen([storms, "-c", STORM, "2.5"]):
            long = Work("waits", "run", "sleep:1:60:30").told()
        done = capture.stop()
    finally:
        capture.close()
    return store, long, done


def test_long_waits_in_a_storm_of_short_ones_are_exact_by_stack(mixed):
    store, long, done = mixed
    assert done["seen"] == done["samples"] + done["lost_total"]
    [t] = long["threads"]
    n, ns = exact(store, t)
    least, most = did(t)
    assert abs(n - t["count"]) <= 2 and least <= ns <= most, (n, ns, t)
    ways = by_way(store, long["pid"], t)
    error = math.sqrt(sum(w[2] for w in ways.values())) * 1000
    # a host with many long waits draws some of them, too, and says so
    assert abs(sum(w[1] for w in ways.values()) - ns) <= 0.01 * ns + 4 * error, (ways, ns)
    assert error <= 0.4 * ns, (ways, ns)


def test_short_waits_are_estimates_with_the_error_that_they_have(mixed):
    store = mixed[0]
    rows = sql_all(store, "SELECT sum(total_ns) AS ns, sum(count) AS n, sum(total_us_variance) AS v, sum(count_variance) AS c FROM waits"
                          " WHERE comm = 'storms' AND reason = 'pipe'")[0]
    true = sql_all(store, "SELECT sum(total_ns) AS ns, sum(count) AS n FROM wait_totals WHERE comm = 'storms' AND reason = 'pipe'"
                          " AND NOT began_before AND NOT unfinished")[0]
    assert true["n"] > 2 * 2500, "no storm"
    assert rows["v"] and rows["c"], "all were drawn: the test says nothing"
    assert abs(rows["ns"] - true["ns"]) <= 5 * math.sqrt(rows["v"]) * 1000 + 0.01 * true["ns"], (rows, true)
    assert math.sqrt(rows["v"]) * 1000 <= 0.5 * true["ns"], (rows, true)


def test_waits_and_flame_say_what_is_an_estimate_and_its_error(mixed, sonde):
    store, range_ = mixed[0], ("--comm", "storms")
    flame = json.loads(sonde("flame", *range_, "--type", "offcpu", "--json", store=store, check=True).stdout)
    [root] = [r for r in flame["rows"] if r["parent"] is None]
    assert root["total_error"] > 0 and root["total_error"] < root["total_value"]
    assert all(r["self_error"] <= r["total_error"] <= root["total_error"] for r in flame["rows"])
    text = sonde("flame", *range_, "--type", "offcpu", "--text", store=store, check=True)
    assert "ERROR" in text.stdout and "\u00b1" in text.stdout, text.stdout
    assert "these are estimates" in text.stderr and "standard error" in text.stderr, text.stderr
    rows = json.loads(sonde("waits", *range_, "--json", "--idle", store=store, check=True).stdout)["rows"]
    assert all(r["exact"] or r["total_error_ns"] < r["total_ns"] for r in rows), rows
    assert all(not r["exact"] or not r["total_error_ns"] for r in rows), rows
