#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""offcpu_redis: what watching every switch takes from a server at full load.

    tests/bench/offcpu_redis.py [--seconds 5] [--rounds 8] [--smoke] [--write docs/BENCHMARKS.md]

Debian's redis-server without persistence, on a socket of the loopback, and redis-benchmark's GET by 50 clients: each is held on
a CPU of its own where there are two, or its rate would say most of where the scheduler puts it.

1. Requests a second as redis-benchmark counts them: nobody watches, and sonde-offcpu with its defaults does, taking turns; what
   was lost as pairs.py says.
2. What sonde has of the CPU time meanwhile, its processes (SCHEDSTAT) and its BPF programs (the kernel's count, in runs of their
   own, as it slows them): what a server cannot have had. It sways far less than 1.
"""
import argparse
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time

import bench
import pairs

PORT = "16399"


def on_cpu(nth):
    """For Popen: the child's CPU."""
    cpus = sorted(os.sched_getaffinity(0))
    return lambda: os.sched_setaffinity(0, {cpus[nth % len(cpus)]})


def requests(n):
    """GETs a second."""
    out = subprocess.run(["redis-benchmark", "-p", PORT, "-t", "get", "-c", "50", "-n", str(n), "--csv"], capture_output=True,
                         text=True, check=True, preexec_fn=on_cpu(1)).stdout
    return float(out.strip().splitlines()[-1].split(",")[1].strip('"'))


class Watching:
    """sonde-offcpu with its defaults, behind its start."""

    def __init__(self, folder):
        self.read_fd, write_fd = os.pipe()
        self.child = subprocess.Popen([f"{bench.BIN}/sonde-offcpu", "--store", folder + "/store", "--progress-fd", str(write_fd)],
                                      pass_fds=[write_fd], stderr=subprocess.DEVNULL, stdin=subprocess.DEVNULL)
        os.close(write_fd)

    def __enter__(self):
        bench.ready(self.child, self.read_fd, "ready")
        time.sleep(2)
        return bench.tree(self.child.pid)

    def __exit__(self, *_):
        self.child.send_signal(signal.SIGINT)
        bench.drain(self.read_fd)
        os.close(self.read_fd)
        self.child.wait()


def watched(folder, n):
    with Watching(folder):
        return requests(n)


def busy_ns(pids):
    """Of its processes, and of its programs."""
    return sum(bench.cpu_ns(p) for p in pids), sum(ns for ns, _ in bench.bpf_state(pids)[0].values())


def taken(folder, n):
    """What it has of the CPUs' time while the load runs, in percent."""
    with Watching(folder) as pids:
        stats = bench.bpf_stats(1)
        before, began = busy_ns(pids), time.monotonic_ns()
        requests(n)
        after, took = busy_ns(pids), time.monotonic_ns() - began
        bench.bpf_stats(stats)
    processes, programs = (100 * (b - a) / took / os.cpu_count() for a, b in zip(before, after))
    return {"processes": processes, "programs": programs, "all": processes + programs}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=int, default=5)
    parser.add_argument("--rounds", type=int, default=8)
    parser.add_argument("--smoke", action="store_true")
    parser.add_argument("--write", help="put the table between the markers of this file")
    opts = parser.parse_args()
    if opts.smoke:
        opts.seconds, opts.rounds = 1, 1
    missing = [name for name in ("redis-server", "redis-benchmark") if not shutil.which(name)]
    if os.geteuid() != 0 or missing:
        print("missing: " + (", ".join(missing) or "root"))
        return 77
    folder = tempfile.mkdtemp(prefix="sonde-bench-")
    server = subprocess.Popen(["redis-server", "--port", PORT, "--bind", "127.0.0.1", "--save", "", "--dir", folder],
                              stdout=subprocess.DEVNULL, preexec_fn=on_cpu(0))
    try:
        time.sleep(1)
        n = int(requests(50000) * opts.seconds)
        found = pairs.ask(opts.rounds, lambda: requests(n), lambda: watched(folder, n))
        shares = [taken(folder, n) for _ in range(max(1, opts.rounds // 3))]
    finally:
        server.terminate()
        server.wait()
        shutil.rmtree(folder, ignore_errors=True)
    text = (f"Machine: {bench.machine()}. Date: {time.strftime('%Y-%m-%d')}. Command: `{bench.command()}` ({opts.rounds} "
            f"rounds of {opts.seconds} s, taking turns; median, then lowest-highest; lost: mean, and its 95 % interval).\n\n"
            "| Redis at full load | requests a second | lost, % | to reach |\n|---|---|---|---|\n"
            f"| no recorder | {bench.spread(found, 'no recorder')} | - | - |\n"
            f"| sonde, defaults | {bench.spread(found, 'sonde')} | {pairs.lost(found)} | 3 |\n\n"
            "| what sonde has of the CPUs' time meanwhile, % | to reach |\n|---|---|\n"
            f"| its processes {bench.spread(shares, 'processes')}, its programs {bench.spread(shares, 'programs')}, "
            f"together {bench.spread(shares, 'all')} | 3 |")
    print(text)
    if opts.write:
        bench.put_between(opts.write, "offcpu-redis", text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
