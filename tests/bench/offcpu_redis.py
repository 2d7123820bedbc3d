#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""offcpu_redis: what watching every switch takes from a server at full load.

    tests/bench/offcpu_redis.py [--seconds 5] [--rounds 8] [--smoke] [--write docs/BENCHMARKS.md]

Debian's redis-server without persistence, on a socket of the loopback, and redis-benchmark's GET by 50 clients: each has a
CPU where there are two. Nobody watches, and sonde-offcpu with its defaults does, taking turns in each round, each first in
every other one. Requests a second as redis-benchmark counts them; what was lost is each round's own ratio, their mean with
its 95 % interval (Student's t).
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

PORT = "16399"
STUDENT = {1: 12.7, 2: 4.30, 3: 3.18, 4: 2.78, 5: 2.57, 6: 2.45, 7: 2.36, 8: 2.31, 9: 2.26, 11: 2.20, 15: 2.13, 19: 2.09}


def requests(n):
    """GETs a second."""
    out = subprocess.run(["redis-benchmark", "-p", PORT, "-t", "get", "-c", "50", "-n", str(n), "--csv"], capture_output=True,
                         text=True, check=True).stdout
    return float(out.strip().splitlines()[-1].split(",")[1].strip('"'))


def watched(folder, n):
    store = folder + "/store"
    read_fd, write_fd = os.pipe()
    child = subprocess.Popen([f"{bench.BIN}/sonde-offcpu", "--store", store, "--progress-fd", str(write_fd)],
                             pass_fds=[write_fd], stderr=subprocess.DEVNULL, stdin=subprocess.DEVNULL)
    os.close(write_fd)
    bench.ready(child, read_fd, "ready")
    time.sleep(2)  # its start is not what is measured
    rate = requests(n)
    child.send_signal(signal.SIGINT)
    bench.drain(read_fd)
    os.close(read_fd)
    child.wait()
    return rate


def measure(opts, folder):
    n = int(requests(50000) * opts.seconds)
    plain, with_sonde = [], []
    for i in range(opts.rounds):
        for turn in (0, 1) if i % 2 else (1, 0):
            if turn:
                plain.append(requests(n))
            else:
                with_sonde.append(watched(folder, n))
        print(f"nobody {plain[-1]:.0f}, sonde {with_sonde[-1]:.0f} a second", file=sys.stderr, flush=True)
    return plain, with_sonde


def lost(plain, with_sonde):
    each = [100 * (1 - b / a) for a, b in zip(plain, with_sonde)]
    if len(each) < 2:
        return f"{each[0]:.1f}"
    t = STUDENT[max(k for k in STUDENT if k <= len(each) - 1)]
    half = t * statistics.stdev(each) / len(each) ** 0.5
    return f"{statistics.mean(each):.1f} ({statistics.mean(each) - half:.1f} to {statistics.mean(each) + half:.1f})"


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
                              stdout=subprocess.DEVNULL)
    try:
        time.sleep(1)
        plain, with_sonde = measure(opts, folder)
    finally:
        server.terminate()
        server.wait()
        shutil.rmtree(folder, ignore_errors=True)
    s = [{"nobody": a, "sonde": b} for a, b in zip(plain, with_sonde)]
    text = (f"Machine: {bench.machine()}. Date: {time.strftime('%Y-%m-%d')}. Command: `{bench.command()}` ({opts.rounds} "
            f"rounds of {opts.seconds} s, taking turns; median, then lowest-highest; lost: mean, and its 95 % interval).\n\n"
            "| Redis at full load | requests a second | lost, % | to reach |\n|---|---|---|---|\n"
            f"| nobody | {bench.spread(s, 'nobody')} | - | - |\n"
            f"| sonde, defaults | {bench.spread(s, 'sonde')} | {lost(plain, with_sonde)} | 3 |")
    print(text)
    if opts.write:
        bench.put_between(opts.write, "offcpu-redis", text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
