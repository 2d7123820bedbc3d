# SPDX-License-Identifier: Apache-2.0
"""A leak of 100 MB over two minutes in each language at once, in one recording of the whole host; beside each the same program that
leaks nothing, and takes and drops 1 GB in that time. SONDE_BUSY=56: while as many programs of tests/drowning are busy."""
import concurrent.futures
import contextlib
import json
import os
import subprocess
import sys
import time

import pytest

import servers
from conftest import ROOT, need_root, sql_all
from test_mem import FILE, RUN, SITE, ready, started
from test_mem_postgres import TUPLES, Session

sys.path.insert(0, os.path.join(ROOT, "tests/drowning"))
import load  # noqa: E402

BUSY = int(os.environ.get("SONDE_BUSY", 0))
SECONDS = 120
KIB, CHURN_KIB = 16, 192  # each 20 ms
NAMED_S = 300
CURSORS, CURSOR_ROWS = 250, 3000

# how memory is had, where that is not the language's usual way
WAYS = {"c mmap": ("c", "leaky", [str(KIB), str(SECONDS), "mmap"]), "c huge pages": ("c", "leaky", ["2048", str(SECONDS), "huge", "120"]),
        "java heap": ("java", "held", [str(KIB), str(SECONDS), "heap"])}
# printed, and not compared: pages of Java's heap are first touched by the collector that moves objects there
MOVED = ("java heap",)


class Program:
    """How to start one that leaks, and one that does not."""

    def __init__(self, name, scratch):
        self.name = name
        self.language, self.function, self.leaks = WAYS.get(name, (name, SITE.get(name, "leaky"), [str(KIB), str(SECONDS)]))
        self.folder = os.path.join(scratch, name.replace(" ", "-"))
        os.mkdir(self.folder)
        self.control = ready(self.language, self.folder)
        self.command = [x.replace("-Xmx64m", "-Xmx1g") if name in MOVED else x for x in self.control]
        self.churns = [str(CHURN_KIB), str(SECONDS), "none"]

    def is_line(self, row):
        return self.function in row["function"] and (row["file"] or "").endswith(FILE[self.language])


def rows_told(sonde, store, pid, *args):
    return json.loads(sonde("heap", "-p", pid, "--json", *args, store=store, check=True).stdout)["rows"]


def line_is_known(sonde, store, p, pid):
    """While it warms up nothing of it may be stored yet."""
    done = sonde("heap", "-p", pid, "--json", store=store)
    return not done.returncode and any(map(p.is_line, json.loads(done.stdout)["rows"][:3]))


def warmed(sonde, store, programs):
    """Small runs of all of them until the line of each is known (test_mem.warmed)."""
    end = time.monotonic() + NAMED_S
    left = list(programs)
    while left:
        assert time.monotonic() < end, f"lines of {[p.name for p in left]} are not known after {NAMED_S} s"
        pids = {p: subprocess.Popen([*p.command, "1024", "1", *p.leaks[2:3]], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE) for p in left}
        for child in pids.values():
            child.communicate()
        time.sleep(3)
        left = [p for p in left if p.name not in MOVED and not line_is_known(sonde, store, p, pids[p].pid)]


def backend(server):
    """A session that keeps a cursor more each half second, as long as the programs run."""
    session = Session(server)
    for i in range(CURSORS):
        session.keeps(f"c{i}", CURSOR_ROWS)
        time.sleep(SECONDS / CURSORS)
    assert session.answer("SELECT 1;") == "1"
    return session


def at_end(child):
    """What it says it has kept, and a moment after, when its last pages were read: on a busy host some take longer than others."""
    kept = int(child.stdout.readline())
    return kept, f"{time.time() + 3:.3f}"


def off(row, kept):
    return f"{100 * (row / kept - 1):+.0f} %"


@pytest.mark.long
@pytest.mark.live
def test_the_line_that_leaks_is_first_in_each_language_and_nothing_is_said_of_the_others(sonde, store, capture, scratch):
    need_root()
    programs, server, wrong = [], None, []
    for name in [*RUN, *WAYS]:
        with contextlib.suppress(pytest.skip.Exception):
            programs.append(Program(name, scratch))
    with contextlib.suppress(servers.Missing):
        server = servers.postgres(scratch, load=False)
    c = capture("--apart", program="sonde-mem")
    warmed(sonde, store, programs)
    if server:
        Session(server).close()
    try:
        with contextlib.ExitStack() as stack:
            if BUSY:
                stack.enter_context(load.Load(BUSY))
            since = ["--from", f"{time.time():.3f}"]
            leaks = {p: stack.enter_context(started([*p.command, *p.leaks])) for p in programs}
            churns = {p: stack.enter_context(started([*p.control, *p.churns])) for p in programs}
            pool = stack.enter_context(concurrent.futures.ThreadPoolExecutor(2 * len(programs)))
            ends = [{p: pool.submit(at_end, child) for p, child in each.items()} for each in (leaks, churns)]
            session = backend(server) if server else None
            session_to = f"{time.time():.3f}"
            leaked, churned = ({p: end.result() for p, end in each.items()} for each in ends)
            kept = {p: told for p, (told, _) in leaked.items()}
            with open("/proc/loadavg", encoding="ascii") as f:
                print("load", f.read().split()[0], "programs", len(programs))
            time.sleep(3)
            c.stop(90)
            if session:
                session.close()
    finally:
        if server:
            server.stop()
    for p in programs:
        rows = rows_told(sonde, store, leaks[p].pid, "--growth", *since, "--to", leaked[p][1])
        grown = sum(r["grown_bytes"] for r in filter(p.is_line, rows))  # two lines of one function may touch pages of a block
        print(p.name, kept[p], off(grown, kept[p]), [(r["function"], r["line"]) for r in rows[:1]])
        if p.name in MOVED:
            continue
        if not rows or not p.is_line(rows[0]) or grown != pytest.approx(kept[p], rel=0.15):
            wrong.append((p.name, kept[p], rows[:3]))
    for p in programs:
        said = rows_told(sonde, store, churns[p].pid, "--growth", *since, "--to", churned[p][1])
        assert sql_all(store, "SELECT 1 FROM amounts WHERE type = 'mem' AND pid = ? AND value > 0 LIMIT 1", (churns[p].pid,)), p.name
        if said:
            print(p.name, "does not leak:", [(r["function"], r["grown_bytes"]) for r in said])
            wrong.append((p.name, "does not leak", said))
    if session:
        rows = rows_told(sonde, store, session.pid, "--growth", *since, "--to", session_to)
        print("postgres", rows[:2])
        if not rows or rows[0]["function"] != TUPLES:
            wrong.append(("postgres", rows[:3]))
    assert not wrong, wrong
