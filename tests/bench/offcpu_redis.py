#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""offcpu_redis: what watching every switch takes from a server at full load.

    tests/bench/offcpu_redis.py [--seconds 5] [--rounds 8] [--smoke] [--write docs/BENCHMARKS.md]

Debian's redis-server without persistence, on a socket of the loopback, and redis-benchmark's GET by 50 clients: each has a
CPU where there are two. Nobody watches, and sonde-offcpu with its defaults does, taking turns. Requests a second as
redis-benchmark counts them, and what was lost as pairs.py says.
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
        n = int(requests(50000) * opts.seconds)
        found = pairs.ask(opts.rounds, lambda: requests(n), lambda: watched(folder, n))
    finally:
        server.terminate()
        server.wait()
        shutil.rmtree(folder, ignore_errors=True)
    text = (f"Machine: {bench.machine()}. Date: {time.strftime('%Y-%m-%d')}. Command: `{bench.command()}` ({opts.rounds} "
            f"rounds of {opts.seconds} s, taking turns; median, then lowest-highest; lost: mean, and its 95 % interval).\n\n"
            "| Redis at full load | requests a second | lost, % | to reach |\n|---|---|---|---|\n"
            f"| nobody | {bench.spread(found, 'nobody')} | - | - |\n"
            f"| sonde, defaults | {bench.spread(found, 'sonde')} | {pairs.lost(found)} | 3 |")
    print(text)
    if opts.write:
        bench.put_between(opts.write, "offcpu-redis", text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
