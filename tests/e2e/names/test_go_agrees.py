# SPDX-License-Identifier: Apache-2.0
"""A Go program's stacks beside its own runtime/pprof profile of the same seconds: how much of the time each function is on
the stack, as `go tool pprof` counts both."""
import collections
import os
import re
import subprocess

import pytest

import servers
from conftest import need_root, scale

POINTS = 0.02
GO = {"go-1.19": "/usr/lib/go-1.19/bin/go", "go-1.26": "/usr/local/go/bin/go"}


def inclusive(go, folder, profile):
    """{function: share of the time it is on the stack}, by go tool pprof."""
    env = dict(os.environ, HOME=folder, PPROF_TMPDIR=folder)
    done = subprocess.run([go, "tool", "pprof", "-top", "-cum", "-nodecount=400", "-sample_index=cpu", "-unit=ms", profile],
                          capture_output=True, text=True, env=env, check=True)
    total = float(re.search(r"([0-9.]+)ms total", done.stdout).group(1))
    shares = collections.Counter()
    for line in done.stdout.splitlines():
        found = re.match(r"\s*[0-9.]+(?:ms)?\s+[0-9.]+%\s+[0-9.]+%\s+([0-9.]+)(?:ms)?\s+[0-9.]+%\s+(.+?)(?: \(inline\))?$", line)
        if found:
            shares[found.group(2)] += float(found.group(1)) / total
    return shares, total


@pytest.mark.live
@pytest.mark.parametrize("version", sorted(GO))
def test_inclusive_shares_are_those_of_the_programs_own_profile(version, capture, sonde, store, scratch):
    need_root()
    go = GO[version]
    if not os.path.exists(go):
        pytest.skip(f"missing: {go}")
    program = servers.go_build(scratch, go)
    seconds = scale(12, 60)
    own = os.path.join(scratch, "own.pb.gz")
    load = subprocess.Popen([program, own, f"{seconds}s"], stderr=subprocess.DEVNULL)
    try:
        c = capture("--freq", 499, "--pid", load.pid)
        assert load.wait(seconds + 60) == 0
        c.stop()
    finally:
        load.kill()
        load.wait()
    ours = os.path.join(scratch, "ours.pb.gz")
    sonde("export", "pprof", "-o", ours, store=store, check=True)
    theirs, their_ms = inclusive(go, scratch, own)
    mine, _ = inclusive(go, scratch, ours)
    noise = 3 * (0.25 / (their_ms / 10)) ** 0.5  # its own profile has 100 samples a second
    # a thread that comes back to its CPU finds the preemption's signal and the profile's waiting: Go books that as asyncPreempt
    big = [f for f in theirs if theirs[f] > 0.05 and f != "runtime.asyncPreempt"]
    assert len(big) > 10, theirs
    bad = {f: (round(theirs[f], 3), round(mine.get(f, 0), 3)) for f in big if abs(theirs[f] - mine.get(f, 0)) > POINTS + noise}
    assert not bad, f"noise {noise:.3f}: {bad}"
