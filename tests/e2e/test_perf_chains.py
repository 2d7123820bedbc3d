# SPDX-License-Identifier: Apache-2.0
"""Stacks of Debian's own programs beside perf's `--call-graph dwarf` in the same seconds, by function and by who calls whom. Names
play no part: a function is an entry of readelf's .eh_frame, a root one whose return address it calls undefined. Two
perf recordings of those seconds are the floor."""
import bisect
import collections
import glob
import os
import re
import subprocess
import sys
import time

import pytest

import servers
from conftest import ROOT, need, need_root, sql_all
from publishing import publisher, wait_indexed

sys.path.insert(0, os.path.join(ROOT, "tests", "rows"))
import oracle  # noqa: E402

POINTS = 0.02
FREQ = 499
SECONDS = 8


class Code:
    """The functions of one file, by readelf."""

    def __init__(self, path):
        fdes = sorted((f.lo, f.hi, any(r[4] == "u" for r in f.rows)) for f in oracle.frames(path).get(".eh_frame", []))
        self.fdes, self.starts = fdes, [f[0] for f in fdes]
        said = subprocess.run(["readelf", "-lW", path], capture_output=True, text=True, check=True).stdout
        self.loads = [tuple(int(x, 16) for x in m) for m in re.findall(r"LOAD +(\S+) (\S+) \S+ (\S+) ", said)]

    def function(self, offset):
        """(start, is it a root) of what stands at this place in the file; None: nothing is said of it."""
        vaddr = next((offset - at + v for at, v, size in self.loads if at <= offset < at + size), -1)
        i = bisect.bisect_right(self.starts, vaddr) - 1
        return (self.fdes[i][0], self.fdes[i][2]) if i >= 0 and vaddr < self.fdes[i][1] else None


class Process:
    """The functions of all files that a process has mapped."""

    def __init__(self, pid):
        with open(f"/proc/{pid}/maps", encoding="utf-8") as f:
            mapped = set(re.findall(r"^\S+ ..x. .* (/.+)$", f.read(), re.M))
        files = {os.path.basename(path): path for path in mapped}
        self.code = {name: Code(path) for name, path in files.items() if os.path.exists(path)}

    def at_offset(self, module, offset):
        found = self.code[module].function(offset) if module in self.code else None
        return (module, *found) if found else None


class Stacks:
    """Shares of functions, and of pairs of a caller and whom it calls, by samples."""

    def __init__(self):
        self.n = self.complete = 0
        self.counts = collections.Counter()

    def add(self, stack, n=1):
        """Leaf first."""
        known = [f for f in stack if f]
        if not known:
            return
        self.n += n
        self.complete += n * known[-1][2]
        for key in {f[:2] for f in known} | {(a[:2], b[:2]) for a, b in zip(stack, stack[1:]) if a and b}:
            self.counts[key] += n

    def share(self, key):
        return self.counts[key] / self.n


def perf_record(pid, out):
    return subprocess.Popen(["perf", "record", "-B", "-N", "-k", "realtime", "-F", str(FREQ), "-p", str(pid), "--call-graph", "dwarf,65528", "-o",
                             out, "--", "sleep", str(SECONDS)], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                            stdin=subprocess.DEVNULL)


def perf_stacks(path, process):
    """[(time, stack)], leaf first."""
    done = subprocess.run(["perf", "script", "--no-inline", "-i", path, "-F", "time,ip,sym,dso"], capture_output=True, text=True,
                          errors="replace", timeout=300, stdin=subprocess.DEVNULL)
    if done.returncode:
        pytest.skip(f"missing: a perf that works here ({done.stderr.strip()[-200:]})")
    found = []
    for block in done.stdout.split("\n\n"):
        at = re.match(r"\s*(\d+\.\d+):", block)
        # in user space perf prints offsets in the file; a return address may be the first byte of the next function
        places = re.findall(r"^\s+([0-9a-f]+) .*\((.*?)\)$", block, re.M)
        user = [(os.path.basename(dso), int(ip, 16)) for ip, dso in places if len(ip) < 16]
        if at and user:
            found.append((float(at.group(1)), [process.at_offset(dso, ip - (i > 0)) for i, (dso, ip) in enumerate(user)]))
    return found


def sonde_stacks(store, process):
    """[(second, stack, samples)], leaf first."""
    frames = collections.defaultdict(list)
    for row in sql_all(store, "SELECT DISTINCT stack_id, depth, module, offset FROM stack_frames WHERE NOT inlined"
                              " AND module NOT LIKE '[kernel%' ORDER BY stack_id, depth DESC"):
        frames[row["stack_id"]].append((row["module"], row["offset"]))
    found = []
    for row in sql_all(store, "SELECT ts, stack_id, sum(samples) AS n FROM cpu_samples GROUP BY 1, 2"):
        stack = frames[row["stack_id"]]
        found.append((row["ts"], [process.at_offset(m, o - (i > 0)) if o is not None else None for i, (m, o) in enumerate(stack)],
                      row["n"]))
    return found


def of_the_same_seconds(ours, *perfs):
    """All as Stacks, of the whole seconds in which each of the perfs was at work."""
    lo, hi = max(p[0][0] for p in perfs), min(p[-1][0] for p in perfs)
    lo, hi = int(lo) + 1, int(hi)
    found = [Stacks() for _ in range(1 + len(perfs))]
    for ts, stack, n in ours:
        if lo <= ts < hi:
            found[0].add(stack, n)
    for perf, to in zip(perfs, found[1:]):
        for at, stack in perf:
            if lo <= at < hi:
                to.add(stack)
    return found


def worker(running):
    """The process that does the work: the server, or what it has started."""
    pid = running.started[0][0].pid
    children = [c for path in glob.glob(f"/proc/{pid}/task/*/children") for c in open(path, encoding="ascii").read().split()]
    return int(children[0]) if children else pid


def compare(one, two, ours):
    floor = max(abs(one.share(k) - two.share(k)) for k in {*one.counts, *two.counts})
    noise = 3 * (0.25 / ours.n + 0.25 / one.n) ** 0.5  # they fall at other moments
    big = [k for k in {*one.counts, *ours.counts} if max(one.share(k), ours.share(k)) > POINTS]
    far = {k: (one.share(k), two.share(k), ours.share(k)) for k in big
           if abs(ours.share(k) - one.share(k)) > POINTS + max(floor, noise)}
    worst = max(abs(ours.share(k) - one.share(k)) for k in big)
    print(f"{len(big)} functions and pairs above 2 %: furthest {100 * worst:.1f} points, two perfs {100 * floor:.1f}")
    return big, far


# nginx (7 points) and mariadb (10, where perf loses a tenth of its samples) lie further from perf than two perfs from each other.
# Why is open: a known failure, told as such.
OPEN = ("nginx", "mariadb")


@pytest.mark.live
@pytest.mark.parametrize("name", ["nginx", "redis", "python3", "mariadb", "node"])
def test_chains_are_those_of_perf_with_dwarf(name, capture, store, scratch):
    need_root()
    need("perf")
    need("readelf")
    try:
        running = servers.PROGRAMS[name](scratch)
    except servers.Missing as e:
        pytest.skip(f"missing: {e}")
    try:
        with publisher(store, scratch) as (maps_pid, maps):
            pid = worker(running)
            wait_indexed(maps_pid)
            c = capture("--freq", FREQ, "--bucket", "1s", "--pid", pid, "--maps-socket", maps)
            perfs = [perf_record(pid, f"{scratch}/{i}.data") for i in range(2)]
            status = [p.wait(SECONDS + 60) for p in perfs]
            c.stop()
        process = Process(pid)
    finally:
        running.stop()
    if any(status):
        pytest.skip(f"missing: a perf that works here (exit {status})")
    perfs = [perf_stacks(f"{scratch}/{i}.data", process) for i in range(2)]
    assert all(perfs), "perf has no samples"
    ours, one, two = of_the_same_seconds(sonde_stacks(store, process), *perfs)
    said = f"{name}: to a root: sonde {ours.complete} of {ours.n}, perf {one.complete} of {one.n} and {two.complete} of {two.n}"
    print(said)
    assert ours.n > 100 and one.n > 100, said
    assert ours.complete / ours.n >= min(0.995, one.complete / one.n), said
    if one.complete / one.n < 0.99:
        return  # perf's own stacks end early: there is nothing to hold ours against
    big, far = compare(one, two, ours)
    assert len(big) >= 10
    if far and name in OPEN:
        pytest.xfail(f"shares far from perf's, not understood yet: {far}")
    assert not far, far
