# SPDX-License-Identifier: Apache-2.0
"""Go programs that were not made for this: Debian's, under load. Where one serves /debug/pprof/heap, that is the oracle:
the same records with the same values and names, when the collection that it is of is the one that was read."""
import collections
import itertools
import os
import re
import signal
import subprocess

import pytest

import golive
from conftest import BIN, need_root, sql_all
from goheap import Program
from servers import Missing
from test_goheap import ended, loader, readings, wait_for

DEEPEST = 32
TRIES = 60


class Reader(Program):
    """Program's reading, of a process that somebody else started."""

    def __init__(self, pid, path, folder):
        self.index = os.path.join(folder, "index")
        subprocess.run([os.path.join(BIN, "sonde-index"), path, "-o", self.index], check=True, capture_output=True)
        self.process = collections.namedtuple("Process", "pid")(pid)
        self.reader = self.reading()

    def end(self):
        self.reader.stdin.close()
        self.reader.wait(timeout=120)
        self.reader.stdout.close()


@pytest.fixture(params=golive.PROGRAMS)
def live(request, scratch):
    need_root()
    try:
        program = golive.PROGRAMS[request.param](scratch)
    except Missing as e:
        pytest.skip(f"missing: {e}")
    program.name = request.param
    yield program
    program.stop()


def told(text):
    """/debug/pprof/heap?debug=1: (stack, its four values) -> names of its frames."""
    records, names = [], None
    for line in text.splitlines():
        m = re.match(r"(\d+): (\d+) \[(\d+): (\d+)\] @((?: 0x[0-9a-f]+)+)$", line)
        if m:
            names = []
            records.append((tuple(int(pc, 16) for pc in m.group(5).split())[:DEEPEST], tuple(int(v) for v in m.groups()[:4]), names))
        elif names is not None and line.startswith("#\t0x"):
            names.append(re.sub(r"\+0x[0-9a-f]+$", "", line.split("\t")[2]))
        elif line.startswith("# runtime.MemStats"):
            break
    return [r for r in records if any(r[1])]  # of one that is all zeros nothing is published yet


def read(buckets):
    records = []
    for b in buckets:
        if b["kind"] == 1 and any(b["published"]):
            allocs, frees, alloc_bytes, free_bytes = b["published"]
            records.append((tuple(b["pcs"][:DEEPEST]), (allocs - frees, alloc_bytes - free_bytes, allocs, alloc_bytes),
                            [name for name, _, _ in b["frames"]]))
    return records


def seen_at_once(live, reader):
    """Its own report between two readings of the same collection; it collects again and again meanwhile."""
    for _ in range(TRIES):
        first = reader.read()
        own = told(live.get(live.profile + "?debug=1"))
        second = reader.read()
        cycles = {*first["cycles"], *second["cycles"]}
        if len(cycles) == 1 and not first["dropped"] and not second["dropped"] and not second["nothing_published"]:
            assert second["cycle_known"]
            return own, read(second["buckets"])
    raise AssertionError(f"{live.name}: its garbage was collected during each of {TRIES} readings")


def without_runtime(names):
    """What the report shows: without the frames of an allocation in the runtime, where goroutines end, types of generics."""
    names = [re.sub(r"\[.*\]", "[...]", n or "?") for n in names]
    outer = next((i for i, n in enumerate(names) if not n.startswith("runtime.")), 0)
    return [n for n in names[outer:] if n != "runtime.goexit" and not re.search(r"\.(defer|go)wrap[0-9]+$", n)][:DEEPEST]


@pytest.mark.live
def test_it_is_read_and_equals_what_it_serves_itself(live, scratch):
    reader = Reader(live.pid, live.path, scratch)
    try:
        wait_for(lambda: live.done >= 3, 60)
        if not live.profile:
            got = reader.read()
            assert got["states"][:2] == [0, 0], got["text"]
            assert got["counts"][0] > 20 and not got["dropped"]
            return
        own, mine = seen_at_once(live, reader)
    finally:
        reader.end()
    assert len(own) >= 5
    assert collections.Counter(r[:2] for r in own) == collections.Counter(r[:2] for r in mine)
    names = {pcs: without_runtime(n) for pcs, _, n in mine if len(pcs) < DEEPEST}
    wrong = [(n, names[pcs]) for pcs, _, n in own if pcs in names and without_runtime(n) != names[pcs]]
    assert not wrong, f'{len(wrong)} of {len(own)}: ' + '\n'.join(f'{a} | {b}' for a, b in itertools.zip_longest(*wrong[0]))


@pytest.mark.live
def test_the_loader_has_its_profile(live, store):
    running = loader(store, "--pid", str(live.pid), "--interval", "1s")
    wait_for(lambda: (readings(store, live.pid) or [0])[0] >= 3, 60)
    running.send_signal(signal.SIGINT)
    status, said = ended(running)
    assert status == 0, said
    (row,) = sql_all(store, "SELECT state, reason FROM go_processes")
    assert row["state"] == "read", row
    (row,) = sql_all(store, "SELECT total(inuse_bytes) AS held, count(DISTINCT stack_id) AS stacks,"
                            " total(function IS NULL) AS nameless FROM go_heap")
    assert row["held"] > 0 and row["stacks"] >= 5 and row["nameless"] == 0, row
