#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""scrape: what family scrape takes, always on, with PROGRAMS Go programs of which each is asked for heap, goroutines, block and mutex each minute, and
what it takes of a program to be asked (make bench-scrape). The programs are tests/workloads/go/scrapework.go at rest.

PROGRAMS=20 SECONDS=190
"""
import glob
import os
import signal
import sqlite3
import subprocess
import sys
import tempfile
import time

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
BUILD = os.environ.get("B", os.path.join(ROOT, "build"))
PROGRAMS, SECONDS = (int(os.environ.get(k, d)) for k, d in (("PROGRAMS", "20"), ("SECONDS", "190")))


def cpu_s(pid):
    with open(f"/proc/{pid}/stat", encoding="ascii", errors="replace") as f:
        fields = f.read().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def costs(store):
    """{program: (CPU seconds, most resident MB)}, after the start of each."""
    out = {}
    for path in glob.glob(f"{store}/*.db"):
        with sqlite3.connect(path) as db:
            for program, ns, rss in db.execute("SELECT program, sum(cpu_ns), max(rss_bytes) FROM cost GROUP BY 1"):
                out[program] = (ns / 1e9, (rss or 0) / 1e6)
    return out


def main():
    with tempfile.TemporaryDirectory() as folder:
        running = [subprocess.Popen([f"{BUILD}/tests/workloads/scrapework-go", "-rest", folder], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
                   for _ in range(PROGRAMS)]
        try:
            for p in running:
                p.stdout.readline()
            before = sum(cpu_s(p.pid) for p in running)
            began = time.monotonic()
            store = f"{folder}/store"
            loader = subprocess.Popen([f"{BUILD}/bin/sonde-scrape", "--store", store, "--bucket", "10s"], stderr=subprocess.DEVNULL)
            time.sleep(SECONDS)
            loader.send_signal(signal.SIGINT)
            loader.wait(30)
            took = time.monotonic() - began
            asked = sum(cpu_s(p.pid) for p in running) - before
        finally:
            for p in running:
                p.kill()
                p.wait()
        spent = costs(store)
        stored = sum(os.path.getsize(p) for p in glob.glob(f"{store}/*.db"))
    print(f"{PROGRAMS} programs, {took:.0f} s, {os.cpu_count()} CPUs, load {os.getloadavg()[0]:.1f}")
    for program, (seconds, mb) in sorted(spent.items()):
        print(f"  {program}: {seconds:.3f} s of CPU, {100 * seconds / took:.3f} % of a core, {mb:.1f} MB")
    print(f"  the programs, all together: {asked:.2f} s of CPU, {1000 * asked / PROGRAMS / (took / 60):.1f} ms each a minute")
    print(f"  stored: {stored / 1024:.0f} KiB")
    return 0


if __name__ == "__main__":
    sys.exit(main())
