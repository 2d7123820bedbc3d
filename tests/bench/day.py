#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""day: questions to a day of 50 million samples (tests/bench/makers/makeday.c): time and peak memory, beside what is to be reached.

    tests/bench/day.py [--hours N] [--keep DIR] [--rounds N] [--archived] [--write docs/BENCHMARKS.md]
"""
import argparse
import contextlib
import json
import os
import shutil
import sqlite3
import statistics
import subprocess
import sys
import tempfile
import time

import bench

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
BUILD = os.path.join(ROOT, os.environ.get("B", "build"))
AT = 1795144200
ROWS = 800000
FORTNIGHT_MB = 500
SAMPLE_BYTES = 1.0
NAMED = ("hottest", "lines", "who", "threads", "commands", "kernel", "unnamed", "minutes")


def run(*argv):
    """(seconds of wall time, of CPU, peak MB)"""
    t0 = time.monotonic()
    child = subprocess.Popen(argv, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, stdin=subprocess.DEVNULL)
    said = child.stderr.read()
    _, status, usage = os.wait4(child.pid, 0)
    took = time.monotonic() - t0
    assert status == 0, f"{argv}: {said.decode()}"
    return took, usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024


def seal(store):
    """All of it. A line of the table; too late?"""
    bench.end_segment(store)
    wall, cpu, peak = run(f"{BUILD}/bin/sonde-seal", "--store", store, "--quiet")
    files, rows = bench.archives(store), 0
    assert files, "nothing was archived"
    for path in files:
        with contextlib.closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True)) as db:
            rows += db.execute("SELECT coalesce(sum(rows), 0) FROM packed_table WHERE name = 'sample'").fetchone()[0]
    said = subprocess.run([f"{BUILD}/bin/sonde", "sql", "--store", store, "--json", "SELECT sum(n) AS n FROM run_count WHERE kind = 1"],
                          capture_output=True, text=True, check=True).stdout
    samples = json.loads(said)["rows"][0]["n"]
    size = sum(map(os.path.getsize, files))
    print(f"archived: {len(files)} files, {size / 1e6:.1f} MB, {cpu:.1f} s of CPU ({wall:.1f} s), {peak:.0f} MB at most")
    share = ROWS / rows
    return ((f"| archiving: of {rows / 1e6:.1f} million rows in {size / 1e6:.1f} MB, for {ROWS} | {wall * share:.3f} | {cpu * share:.3f} | "
             f"{peak:.0f} | 0.5 s  |", cpu * share > 0.5),
            (f"| bytes a sample ({len(files)} archives) | {size / samples:.2f} | | | {SAMPLE_BYTES} |", size > SAMPLE_BYTES * samples))


def fortnight(base):
    """14 days of a host whose 16 CPUs are busy, at 19 Hz: 14 times one. A line of the table; too much?"""
    store = f"{base}/sixteen"
    subprocess.run([f"{BUILD}/tests/makeday", store, "--raw", str(16 * 19 * 10), "--hz", "19"], check=True)
    seal(store)
    size = 14 * sum(map(os.path.getsize, bench.archives(store))) / 1e6
    return f"| 14 days of 16 busy CPUs at 19 Hz (14 times a generated one of 26 million samples), MB | {size:.0f} | | | {FORTNIGHT_MB} MB |", size > FORTNIGHT_MB


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--hours", type=int, default=24)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--archived", action="store_true", help="archived before it is asked")
    parser.add_argument("--write", help="put the table between the markers of this file")
    parser.add_argument("--keep", help="a store made before, or to be kept")
    opts = parser.parse_args()
    base = tempfile.mkdtemp(prefix="sonde-day-")
    store = opts.keep or f"{base}/store"
    try:
        fresh = not os.path.exists(store)
        if fresh:
            t0 = time.monotonic()
            subprocess.run([f"{BUILD}/tests/makeday", store, "--hours", str(opts.hours)], check=True)
            print(f"{opts.hours} h made in {time.monotonic() - t0:.0f} s: "
                  f"{sum(os.path.getsize(f'{store}/{f}') for f in os.listdir(store) if '.db' in f) / 1e6:.0f} MB")
        sealing = seal(store) if opts.archived and fresh else ()
        at = ["--store", store, "--to", str(AT)]
        questions = [
            ("flame of ten minutes", 0.2, 256, ["flame", "-o", f"{base}/x.html", *at, "--from", str(AT - 600)]),
            ("stacks of ten minutes", None, None, ["stacks", *at, "--from", str(AT - 600)]),
            ("diff of two windows of ten minutes", None, 256, ["diff", *at, "--from", str(AT - 600)]),
            ("diff of two hours, one with the other", 0.4 if opts.archived else 2.0, 256, ["diff", *at, "--from", str(AT - 3600)]),
            ("the same, as JSON", 0.4 if opts.archived else 2.0, 256, ["diff", "--json", *at, "--from", str(AT - 3600)]),
            ("timeline of all of it", 0.5 if opts.archived else 4.0, 256, ["timeline", *at, "--from", str(AT - 3600 * opts.hours)]),
            ("the twenty hottest functions of all of it", 0.5 if opts.archived else 4.0, 256,
             ["stacks", "-n", "20", *at, "--from", str(AT - 3600 * opts.hours)]),
            ("ps of a minute", 0.1, 256, ["ps", *at, "--from", str(AT - 60)]),
            ("explain of a minute against ten", 1.0, 256, ["explain", *at, "--from", str(AT - 60)]),
            ("status", 0.05, None, ["status", "--store", store]),
            *((f"sql @{name}", 1.0 if name == "minutes" else 0.5, None, ["sql", "--store", store, f"@{name}"]) for name in NAMED if opts.archived),
        ]
        lines = [f"Machine: {bench.machine()}. Date: {time.strftime('%Y-%m-%d')}. Command: `{bench.command()}` (a day of "
                 f"{opts.hours} hours{', archived' if opts.archived else ''}; {opts.rounds} rounds, the median).", "",
                 "| question | wall s (lowest-highest) | CPU s | peak MB | to reach |", "|---|---|---|---|---|"]
        late = 0
        for line, bad in sealing + ((fortnight(base),) if sealing and opts.hours == 24 else ()):
            lines.append(line)
            late += bad
        for title, most, memory, argv in questions:
            rows = [run(f"{BUILD}/bin/sonde", *argv) for _ in range(opts.rounds)]
            wall, cpu, peak = (statistics.median(r[k] for r in rows) for k in range(3))
            late += bool(most and wall > most) + bool(memory and peak > memory)
            lines.append(f"| {title} | {wall:.3f} ({min(r[0] for r in rows):.3f}-{max(r[0] for r in rows):.3f}) | {cpu:.3f} | {peak:.0f} | "
                  f"{f'{most} s' if most else ''} {f'{memory} MB' if memory else ''} |")
        print("\n".join(lines))
        if opts.write:
            bench.put_between(opts.write, "day", "\n".join(lines) + "\n")
    finally:
        shutil.rmtree(base, ignore_errors=True)
    return 1 if late else 0


if __name__ == "__main__":
    sys.exit(main())
