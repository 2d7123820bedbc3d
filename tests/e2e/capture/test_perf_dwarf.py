# SPDX-License-Identifier: Apache-2.0
"""Whole stacks of a program without frame pointers beside perf's `--call-graph dwarf`, in the same seconds: how much of the
time each function is on the stack. Two perf recordings of those seconds are the floor."""
import collections
import os
import re
import subprocess
import time

import pytest

from conftest import ROOT, need, need_root, scale

POINTS = 0.02
FREQ = 499


def perf_record(pid, seconds, out):
    return subprocess.Popen(["perf", "record", "--buildid-mmap", "-N", "-F", str(FREQ), "-p", str(pid), "--call-graph", "dwarf,65528", "-o",
                             out, "--", "sleep", str(seconds)], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                            stdin=subprocess.DEVNULL)


def perf_stacks(path):
    """Stacks as sets of function names; those without main are not complete."""
    done = subprocess.run(["perf", "script", "--no-inline", "-i", path, "-F", "ip,sym"], capture_output=True, text=True,
                          errors="replace", timeout=300, stdin=subprocess.DEVNULL)
    if done.returncode:
        pytest.skip(f"missing: a perf that works here ({done.stderr.strip()[-200:]})")
    stacks = []
    for block in done.stdout.split("\n\n"):
        names = {m.group(1).split("@@")[0] for m in re.finditer(r"^\s*[0-9a-f]+ (\S+)", block, re.M)}
        if names:
            stacks.append(names)
    return stacks


def inclusive(stacks):
    counts = collections.Counter(name for s in stacks for name in s)
    return {name: n / len(stacks) for name, n in counts.items()}


def sonde_stacks(sonde, store):
    done = sonde("export", "folded", "--no-inline", store=store, check=True)
    stacks = []
    for line in done.stdout.splitlines():
        frames, n = line.rsplit(" ", 1)
        stacks += [set(frames.split(";"))] * int(n)
    return stacks


@pytest.mark.long
@pytest.mark.parametrize("compiler", ["gcc", "clang"])
def test_inclusive_shares_are_those_of_perf_with_dwarf(compiler, capture, sonde, store, scratch):
    need_root()
    need("perf")
    need(compiler)
    program = os.path.join(scratch, "chain")
    subprocess.run([compiler, "-O2", "-g", "-o", program, os.path.join(ROOT, "tests", "bench", "mix", "chain.c")], check=True)
    seconds = scale(6, 30)
    load = subprocess.Popen([program, str(seconds + 20), "30", "varied"])
    try:
        time.sleep(0.5)
        c = capture("--freq", FREQ, "--pid", load.pid)
        perfs = [perf_record(load.pid, seconds, f"{scratch}/{i}.data") for i in range(2)]
        status = [p.wait(seconds + 60) for p in perfs]
        c.stop()
    finally:
        load.kill()
        load.wait()
    if any(status):
        pytest.skip(f"missing: a perf that works here (exit {status})")
    one, two = (perf_stacks(f"{scratch}/{i}.data") for i in range(2))
    ours = sonde_stacks(sonde, store)
    assert len(ours) > 200 and len(one) > 200, (len(ours), len(one))
    whole = sum("main" in s for s in one) / len(one)
    if whole < 0.99:
        pytest.skip(f"missing: a perf that completes its stacks ({100 * whole:.1f} % of them)")
    assert sum("_start" in s for s in ours) / len(ours) >= 0.995
    a, b, mine = inclusive(one), inclusive(two), inclusive(ours)
    floor = max(abs(a.get(f, 0) - b.get(f, 0)) for f in {*a, *b})
    noise = 3 * (0.25 / len(ours)) ** 0.5  # sonde's own samples fall at other moments than perf's
    big = [f for f in a if a[f] > 0.02 and f != "[unknown]"]
    assert len(big) >= 18, a
    for name in big:
        assert mine.get(name, 0) == pytest.approx(a[name], abs=POINTS + max(floor, noise)), (name, floor, noise)
