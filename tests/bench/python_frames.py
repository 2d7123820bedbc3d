#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""python_frames: what Python frames cost a sample, and how many are right.

1. A recursion of so many Python functions at 4999 Hz, beside one of none: what the program takes for a stack, by its own clock, and so for
   a frame. To reach: 6 us for a stack of 40 frames, warm.
2. At 99 Hz with both CPUs busy in Python: what walking them adds, in cores: the difference of 1 by the samples a second. To reach: 0.5 %.
3. tests/workloads/pyshares.py: samples whole and right. To reach: 98 %, none wrong (tests/e2e/test_python_frames.py judges).
"""
import argparse
import json
import os
import subprocess
import sys
import tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
LOADER = os.path.join(os.environ.get("B", os.path.join(ROOT, "build")), "bin", "sonde-cpu")
DEEP = """
import sys, time
sys.setrecursionlimit(5000)
def spin(until):
    while time.time() < until:
        for i in range(20000): pass
def deep(n, until):
    return deep(n - 1, until) if n else spin(until)
sys.stdout.write("x"); sys.stdout.flush()
deep(int(sys.argv[1]), time.time() + float(sys.argv[2]))
"""


def sample(python, depth, freq, seconds, store, programs=1):
    """sonde-cpu's last word on programs of that depth."""
    running = [subprocess.Popen([python, "-c", DEEP, str(depth), str(seconds + 4)], stdout=subprocess.PIPE) for _ in range(programs)]
    for p in running:
        p.stdout.read(1)
    pids = [a for p in running for a in ("--pid", str(p.pid))]
    read, write = os.pipe()
    done = subprocess.run([LOADER, "--freq", str(freq), "--store", store, "--duration", f"{seconds}s", *pids, "--progress-fd", str(write)],
                          pass_fds=[write], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    os.close(write)
    with os.fdopen(read) as f:
        told = [json.loads(line) for line in f]
    for p in running:
        p.kill()
        p.wait()
        p.stdout.close()
    assert done.returncode == 0
    return next(t for t in told if t["event"] == "done")


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--python", default="/usr/bin/python3")
    p.add_argument("--smoke", action="store_true")
    a = p.parse_args()
    seconds, rounds = (1, 1) if a.smoke else (3, 5)
    with tempfile.TemporaryDirectory(prefix="sonde-bench-") as store:
        sample(a.python, 37, 99, 1, store)  # the indexes
        flat = sorted(sample(a.python, 0, 4999, seconds, store)["probe_ns"] for _ in range(rounds))[0]
        deep = sorted(sample(a.python, 37, 4999, seconds, store)["probe_ns"] for _ in range(rounds))[0]
        slow = sample(a.python, 37, 99, 2 * seconds, store, os.cpu_count())
        slow_flat = sample(a.python, 0, 99, 2 * seconds, store, os.cpu_count())
    frame = (deep - flat) / 37
    added = (slow["probe_ns"] - slow_flat["probe_ns"]) * slow["samples"] / (slow["to"] - slow["from"]) / 1e9
    print(f"warm, 4999 Hz: {deep / 1000:.1f} us a stack of 40 Python frames and some 13 native ones; {flat / 1000:.1f} us with 3; "
          f"{frame:.0f} ns a frame (least of {rounds} rounds)")
    print(f"99 Hz, {os.cpu_count()} CPUs busy: {slow['probe_ns'] / 1000:.1f} us a stack, {slow_flat['probe_ns'] / 1000:.1f} us with 3: "
          f"{100 * added:.3f} % of a core added")
    return 0 if a.smoke or (deep <= 6000 and added <= 0.005) else 1


if __name__ == "__main__":
    sys.exit(main())
