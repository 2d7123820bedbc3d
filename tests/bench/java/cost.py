#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What a Java program loses while family java records it, and after that (as root):

    tests/bench/java/cost.py [--pairs 5] [--java java] [--seconds 2]

One program is recorded and left by turns, and measured in both states, one pair after the other. A second one, which is never recorded, is measured by turns with
it once the last recording has ended: what remains. Each figure is the median of the pairs' quotients for the same work, with the least and the most: of the CPU
time of the threads that do it, of that of the whole program, with its collector, compiler and recorder, and of the time that passed, which says more of other work
on the machine."""
import argparse
import json
import os
import signal
import statistics
import subprocess
import sys
import tempfile
import time

ROOT = os.path.abspath(os.path.join(os.path.dirname(__file__), *[os.pardir] * 3))
BIN = os.path.join(os.path.abspath(os.environ.get("B", os.path.join(ROOT, "build"))), "bin")
HOWS = ("small", "arrays", "locks")


class Jvm:
    def __init__(self, java, folder):
        self.child = subprocess.Popen([java, "-Xmx256m", "-cp", folder, "JavaCost"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.child.stdout.readline()

    def do(self, how, n):
        self.child.stdin.write(f"{how} {n}\n")
        self.child.stdin.flush()
        return json.loads(self.child.stdout.readline())

    def warmed(self, seconds):
        """How much of each takes these seconds, once its code is compiled."""
        out = {}
        for how in HOWS:
            n = 100
            for _ in range(12):
                ns = self.do(how, n)["ns"]
                n = max(n, int(n * seconds * 1e9 / ns)) if ns < seconds * 0.8e9 else n
            out[how] = int(n * seconds * 1e9 / self.do(how, n)["ns"])
        return out


def recorded(folder, pid):
    with open(f"{folder}/said", "w", encoding="utf-8") as said:
        child = subprocess.Popen([f"{BIN}/sonde-java", "--store", f"{folder}/store", "--record-dir", f"{folder}/recorded", "--pid", str(pid)], stderr=said)
    for _ in range(1200):
        with open(f"{folder}/said", encoding="utf-8") as f:
            if "is recorded" in f.read():
                time.sleep(3)  # its classes are loaded and compiled
                return child
        time.sleep(0.1)
    sys.exit("no recording began")


def told(what, pairs):
    for clock, name in (("threads_ns", "CPU time of its threads"), ("cpu_ns", "CPU time"), ("ns", "time")):
        more = [100 * (b[clock] / a[clock] - 1) for a, b in pairs]
        print(f"{what}, {name}: {statistics.median(more):+.2f} % ({min(more):+.2f} to {max(more):+.2f})", flush=True)


def main():
    p = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    p.add_argument("--pairs", type=int, default=5)
    p.add_argument("--java", default="java")
    p.add_argument("--seconds", type=float, default=2)
    o = p.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        source = os.path.join(ROOT, "tests", "workloads", "scripts", "JavaCost.java")
        subprocess.run(["javac", "--release", "8", "-Xlint:-options", "-d", folder, source], check=True)
        mine, other = Jvm(o.java, folder), Jvm(o.java, folder)
        amount = mine.warmed(o.seconds)
        other.warmed(o.seconds)
        before = {how: [(other.do(how, amount[how]), mine.do(how, amount[how])) for _ in range(o.pairs)] for how in HOWS}
        pairs = {how: [] for how in HOWS}
        for _ in range(o.pairs):
            without = {how: mine.do(how, amount[how]) for how in HOWS}
            child = recorded(folder, mine.child.pid)
            for how in HOWS:
                pairs[how].append((without[how], mine.do(how, amount[how])))
            child.send_signal(signal.SIGTERM)
            child.wait()
        after = {how: [(other.do(how, amount[how]), mine.do(how, amount[how])) for _ in range(o.pairs)] for how in HOWS}
        for how in HOWS:
            told(f"{how}: the two programs before", before[how])
            told(f"{how}: while it is recorded", pairs[how])
            told(f"{how}: the two after the last recording", after[how])
        for j in (mine, other):
            j.child.stdin.close()
            j.child.wait()


if __name__ == "__main__":
    main()
