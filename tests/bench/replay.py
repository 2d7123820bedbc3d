#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""replay: how many requests a second of CPU time `sonde replay` finds in captures of redis-benchmark -P 16, h2load (HTTP/1.1 and
HTTP/2), pgbench and sysbench, and tshark's time for the same.

    tests/bench/replay.py [--n REQUESTS]
"""
import argparse
import os
import resource
import subprocess
import sys
import tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path[:0] = [os.path.join(ROOT, "tests", "e2e", d) for d in ("", "lib", "lib/servers")]
import talks  # noqa: E402

ROUNDS = 5
DISSECTORS = {"redis": "resp", "http": "http", "http2": "http2", "postgres": "pgsql", "mysql": "mysql"}


def cpu(argv):
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(argv, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--n", type=int, default=100000)
    opts = parser.parse_args()
    program = os.path.join(ROOT, os.environ.get("B", "build"), "bin", "sonde-replay")
    print("| capture | MB | requests | CPU s (median of 5) | requests a second | tshark, CPU s |\n|---|---|---|---|---|---|")
    for name, n in (("redis", opts.n), ("http", opts.n), ("http2", opts.n), ("postgres", opts.n // 100), ("mysql", opts.n // 100)):
        with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
            os.chmod(folder, 0o755)
            path = os.path.join(folder, "x.pcap")
            port = talks.ALL[name](folder, path, n)["port"]
            count = sum(r["count"] for r in talks.replay(path)["rows"])
            took = sorted(cpu([program, path]) for _ in range(ROUNDS))[ROUNDS // 2]
            theirs = cpu(["tshark", "-r", path, "-d", f"tcp.port=={port},{DISSECTORS[name]}", "-Y", DISSECTORS[name], "-T", "fields", "-e", "frame.number"])
            print(f"| {name} | {os.path.getsize(path) / 1e6:.0f} | {count} | {took:.3f} | {count / took:,.0f} | {theirs:.1f} |", flush=True)


if __name__ == "__main__":
    main()
