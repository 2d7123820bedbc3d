#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""realdays: questions to days that were captured, not generated, and archived.

    tests/bench/realdays.py KEPT [--days 14] [--rounds 7] [--write docs/BENCHMARKS.md]

KEPT is what `tests/bench/seal.py --keep` left: a capture of a build. It is put into a store as the newest of so many days, once
for each, the same hour a day earlier each time, and all are archived. What each question takes is the median of the rounds, which go through
all questions in turn.
"""
import argparse
import datetime
import glob
import os
import shutil
import sqlite3
import statistics
import subprocess
import sys
import tempfile
import time

import bench

DAY = 86400
NANO = 10**9
LATER = 10**18 # ns since 1970 are more, lengths of time are less
SONDE = os.path.join(bench.BIN, "sonde")


def earlier(path, days):
    """The file's times, so many days back; when it began, in seconds since 1970."""
    db = sqlite3.connect(path)
    columns = db.execute("SELECT m.name, p.name FROM sqlite_master m JOIN pragma_table_info(m.name) p"
                         " WHERE m.type = 'table' AND p.name LIKE '%\\_ns' ESCAPE '\\'").fetchall()
    for table, column in columns:
        db.execute(f'UPDATE "{table}" SET "{column}" = "{column}" - ?1 WHERE "{column}" > ?2', (days * DAY * NANO, LATER))
    db.execute("UPDATE meta SET value = value - ?1 WHERE key = 't0'", (days * DAY,))
    db.execute("UPDATE meta SET value = value - ?1 WHERE key = 'created_ns'", (days * DAY * NANO,))
    db.commit()
    began = db.execute("SELECT value FROM meta WHERE key = 't0'").fetchone()[0]
    db.close()
    return int(began)


def name_at(second):
    return datetime.datetime.fromtimestamp(second, datetime.timezone.utc).strftime("%Y%m%dT%H%M%SZ-0001.db")


def store_of(kept, folder, days):
    """All days, archived; when the newest one's hour began, the CPU time of archiving, and the bytes."""
    segment, = glob.glob(f"{kept}/store/*-0001.db")
    shutil.copytree(f"{kept}/store", folder, ignore=shutil.ignore_patterns("*.db"))
    newest = 0
    for back in range(days):
        shutil.copy(segment, f"{folder}/copy")
        began = earlier(f"{folder}/copy", back)
        os.rename(f"{folder}/copy", f"{folder}/{name_at(began)}")
        newest = max(newest, began)
    bench.end_segment(folder)
    child = subprocess.Popen([f"{bench.BIN}/sonde-seal", "--store", folder, "--quiet"])
    usage = os.wait4(child.pid, 0)[2]
    archived = bench.archives(folder)
    assert len(archived) == days, f"{len(archived)} of {days} days are archived"
    return newest, usage.ru_utime + usage.ru_stime, sum(os.path.getsize(f) for f in archived)


def timed(argv):
    t0 = time.monotonic()
    subprocess.run([SONDE, *argv], check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, stdin=subprocess.DEVNULL)
    return time.monotonic() - t0


def table(opts, base):
    folder = f"{base}/store"
    began, cpu, size = store_of(opts.kept, folder, opts.days)
    ten = ["--store", folder, "--from", str(began + 600), "--to", str(began + 1200)]
    day = ["--store", folder, "--from", str(began - DAY // 2), "--to", str(began + DAY // 2)]
    questions = (("flame of ten minutes", "0.2", ["flame", "-o", f"{base}/x.html", *ten]),
                 ("the twenty hottest functions of the day", "0.5", ["stacks", "-n", "20", *day]),
                 ("diff of two windows of ten minutes", "", ["diff", *ten]),
                 (f"status of {opts.days} days", "0.05", ["status", "--store", folder]))
    took = {name: [] for name, _, _ in questions}
    for _ in range(opts.rounds):
        for name, _, argv in questions:
            took[name].append(timed(argv))
    out = [f"Machine: {bench.machine()}. Date: {datetime.date.today()}. Command: `{bench.command()}` ({opts.days} days in {size / 1e6:.1f} MB, "
           f"{cpu / opts.days:.1f} s of CPU to archive one; {opts.rounds} rounds, the median).", "",
           "| question | wall s (lowest-highest) | to reach |", "|---|---|---|"]
    for name, asked, _ in questions:
        v = took[name]
        out.append(f"| {name} | {statistics.median(v):.3f} ({min(v):.3f}-{max(v):.3f}) | {asked} |")
    return "\n".join(out)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("kept")
    parser.add_argument("--days", type=int, default=14)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--write", help="put the table between the markers of this file")
    opts = parser.parse_args()
    base = tempfile.mkdtemp(prefix="sonde-days-")
    try:
        text = table(opts, base)
    finally:
        shutil.rmtree(base, ignore_errors=True)
    print(text)
    if opts.write:
        bench.put_between(opts.write, "realdays", text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
