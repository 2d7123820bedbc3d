#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""supervisor: what sonded itself takes, its children apart, among 500 processes of which 50 a second are started, and how long
`sonde status` takes.

    tests/bench/supervisor.py [--seconds 30] [--smoke] [--write docs/BENCHMARKS.md]

Twice: with sonde-cpu alone, and with sonde-goheap too, for which it hears of every process and compares it with [targets].
"""
import argparse
import os
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time

import bench

sys.path[:0] = [os.path.join(bench.ROOT, "tests", "e2e", d) for d in ("", "lib", "lib/servers")]
from sonded import Sonded  # noqa: E402

STARTS = 50  # a second


def sleepers(n):
    return [subprocess.Popen(["/bin/sleep", "1000"]) for _ in range(n)]


def start_and_reap(seconds):
    """50 programs a second, begun in step with the clock."""
    began, n = time.monotonic(), 0
    while time.monotonic() - began < seconds:
        os.posix_spawn("/bin/true", ["true"], {})
        n += 1
        while True:
            try:
                if os.waitpid(-1, os.WNOHANG) == (0, 0):
                    break
            except ChildProcessError:
                break
        time.sleep(max(0, began + n / STARTS - time.monotonic()))
    return n


def private_mb(pid):
    return bench.private_bytes(pid) / 1e6


def statuses(store, often):
    """Seconds of each `sonde status`, the program's start with it."""
    out = []
    for _ in range(often):
        began = time.monotonic()
        subprocess.run([os.path.join(bench.BIN, "sonde"), "status", "--store", store], check=True, stdout=subprocess.DEVNULL)
        out.append(time.monotonic() - began)
    return out


def answers(d, often):
    """Seconds of each answer of sonded's."""
    out = []
    for _ in range(often):
        began = time.monotonic()
        d.ask(do="status")
        out.append(time.monotonic() - began)
    return out


def measure(opts, families):
    folder = tempfile.mkdtemp(prefix="sonde-bench-")
    try:
        with Sonded(os.path.join(folder, "store"), "--families", families) as d:
            start_and_reap(opts.settle)
            before, began = bench.cpu_ns(d.child.pid), time.monotonic()
            n = start_and_reap(opts.seconds)
            took = time.monotonic() - began
            cpu = (bench.cpu_ns(d.child.pid) - before) / 1e9 / took
            return {"cpu": 100 * cpu, "memory": private_mb(d.child.pid), "starts": n / took,
                    "status": statuses(d.store, opts.often), "answer": answers(d, opts.often)}
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def row(name, values, to_reach):
    return f"| {name} | " + " | ".join(values) + f" | {to_reach} |"


def table(opts, got):
    def ms(what):
        return [f"{1e3 * statistics.median(g[what]):.1f}, {1e3 * max(g[what]):.1f}" for g in got]
    return "\n".join([
        f"Machine: {bench.machine()}. Date: {time.strftime('%Y-%m-%d')}. Command: `make bench-supervisor` "
        f"({opts.processes} more processes asleep, {opts.seconds:.0f} s each; `status` {opts.often} times: median, highest).", "",
        "| sonded alone | cpu | cpu and goheap | to reach |", "|---|---|---|---|",
        row("CPU, % of one core", [f"{g['cpu']:.3f}" for g in got], "0.2"),
        row("private memory, MB", [f"{g['memory']:.1f}" for g in got], "20"),
        row("programs started a second meanwhile", [f"{g['starts']:.0f}" for g in got], ""),
        row("its answer to status, ms", ms("answer"), "50"),
        row("`sonde status`, which reads the store too, ms", ms("status"), "50")])


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=30)
    parser.add_argument("--smoke", action="store_true")
    parser.add_argument("--write", help="put the table between the markers of this file")
    opts = parser.parse_args()
    opts.processes, opts.settle, opts.often = 500, 10, 30
    if opts.smoke:
        opts.processes, opts.settle, opts.often, opts.seconds = 20, 1, 3, 2
    if os.geteuid() != 0:
        print("missing: root")
        return 77
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    others = sleepers(opts.processes)
    try:
        text = table(opts, [measure(opts, families) for families in ("cpu", "cpu,goheap")])
    finally:
        for child in others:
            child.kill()
        for child in others:
            child.wait()
    print(text)
    if opts.write:
        bench.put_between(opts.write, "supervisor", text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
