#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""scale: what each verb takes over hours, days and a fortnight of a large host (makescale), in CPU seconds and peak memory.

    tests/bench/scale.py [--hours 24] [--keep DIR] [--store DIR] [--ranges 1,24] [--verbs WORD...] [--write docs/BENCHMARKS.md]
    tests/bench/scale.py --deep          one file with 200 000 stacks that are 200 deep
    tests/bench/scale.py --hours 336 --differ 4 --ranges 1,24,336        a fortnight of four hours again and again, whose stacks repeat

--keep: leave the store there. --store: ask one that is there. Options of makescale go after --.
"""
import argparse
import contextlib
import datetime
import glob
import os
import shutil
import sqlite3
import subprocess
import sys
import tempfile

import bench

SONDE = os.path.join(bench.BIN, "sonde")
HOUR = 3600
END = 1795140000  # 2026-11-20 02:00 UTC

QUESTIONS = {
    "status": ["status"],
    "timeline": ["timeline"],
    "stacks": ["stacks"],
    "flame html": ["flame", "-o", "{}/x.html"],
    "flame json": ["flame", "--json"],
    "pprof": ["flame", "-o", "{}/x.pb.gz"],
    "ps": ["ps"],
    "containers": ["containers"],
    "requests": ["requests"],
    "waits": ["waits"],
    "map": ["map"],
    "top": ["top", "--once"],
    "events": ["events"],
    "check": ["check"],
    "explain": ["explain"],
    "report": ["report", "-o", "/dev/null"],
}
NO_RANGE = {"status", "check", "explain"}


def name_at(second):
    return datetime.datetime.fromtimestamp(second, datetime.timezone.utc).strftime("%Y%m%dT%H%M%SZ-0001.db")


def copy_at(path, seconds, to):
    """The archive, so many seconds later. Times since 1970 are only in tables of an archive that are rows; processes stay those that they are."""
    shutil.copyfile(path, to)
    with contextlib.closing(sqlite3.connect(to)) as db:
        db.execute("UPDATE meta SET value = value + ?1 WHERE key = 't0'", (seconds,))
        db.execute("UPDATE run SET from_ns = from_ns + ?1, to_ns = to_ns + ?1", (seconds * 10**9,))
        db.commit()


def make_one(folder, began, seconds, extra):
    with tempfile.TemporaryDirectory(dir=os.path.dirname(folder)) as one:
        subprocess.run([os.path.join(bench.BUILD, "tests", "makescale"), one, str(began + seconds), "--seconds", str(seconds), *extra], check=True)
        (path,) = glob.glob(f"{one}/*.db")
        os.rename(path, f"{folder}/{name_at(began)}")


def make(folder, hours, differ, extra):
    """So many hours, archived, of which those after the first `differ` are copies of these, and a newest one of a minute, which stays as it is."""
    first, differ = END - hours * HOUR, differ or hours
    os.makedirs(folder, exist_ok=True)
    make_one(folder, END, 60, extra)
    for n in range(differ):
        make_one(folder, first + n * HOUR, HOUR, extra)
        seal(folder)
    for n in range(differ, hours):
        back = n // differ * differ * HOUR
        copy_at(f"{folder}/{name_at(first + n * HOUR - back)}", back, f"{folder}/{name_at(first + n * HOUR)}")
    return seal(folder)


def seal(folder):
    child = subprocess.Popen([f"{bench.BIN}/sonde-seal", "--store", folder, "--quiet"])
    usage = os.wait4(child.pid, 0)[2]
    return usage.ru_utime + usage.ru_stime


def asked(argv):
    with open(os.devnull, "w", encoding="ascii") as null:
        child = subprocess.Popen([SONDE, *argv], stdin=subprocess.DEVNULL, stdout=null, stderr=subprocess.PIPE)
        said = child.stderr.read().decode(errors="replace")
        _, status, usage = os.wait4(child.pid, 0)
    child.returncode = os.waitstatus_to_exitcode(status)
    return usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024, child.returncode, said.strip().splitlines()


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--hours", type=int, default=24)
    p.add_argument("--differ", type=int, default=0, help="hours that differ; 0: all")
    p.add_argument("--deep", action="store_true")
    p.add_argument("--keep")
    p.add_argument("--store")
    p.add_argument("--ranges", default="1,24")
    p.add_argument("--verbs", nargs="*")
    p.add_argument("--write")
    p.add_argument("extra", nargs="*")
    a = p.parse_args()
    base = None
    if a.deep:
        a.hours, a.ranges, a.extra = 1, "1", ["--stacks", "200000", "--depth", "200", *a.extra]
    if a.store:
        folder = a.store
    else:
        base = tempfile.mkdtemp(prefix="sonde-scale-")
        folder = os.path.abspath(a.keep) if a.keep else f"{base}/store"
        make(folder, a.hours, a.differ, a.extra)
    try:
        rows = table(folder, [int(r) for r in a.ranges.split(",")], a.verbs)
    finally:
        if base:
            shutil.rmtree(base, ignore_errors=True)
    if a.write:
        bench.put_between(a.write, "scale", rows)
    return 0


def table(folder, ranges, verbs):
    size = sum(os.path.getsize(f) for f in glob.glob(f"{folder}/*.db"))
    out = [f"Machine: {bench.machine()}. Date: {datetime.date.today()}. Command: `{bench.command()}` ({size / 1e6:.0f} MB).", "",
           "| verb | " + " | ".join(f"{r} h: CPU s, MB" for r in ranges) + " |", "|---" * (1 + len(ranges)) + "|"]
    print(out[0])
    for name, argv in QUESTIONS.items():
        if verbs and name not in verbs:
            continue
        cells = []
        for hours in ranges:
            span = [] if name in NO_RANGE else ["--from", str(END - hours * HOUR), "--to", str(END)]
            with tempfile.TemporaryDirectory() as made:
                cpu, peak, rc, said = asked([*(word.format(made) for word in argv), "--store", folder, *span])
            cells.append(f"{cpu:.2f}, {peak:.0f}" + (f" (exit {rc}: {said[-1][:80] if said else ''})" if rc else ""))
        out.append(f"| {name} | " + " | ".join(cells) + " |")
        print(out[-1], flush=True)
    return "\n".join(out)


if __name__ == "__main__":
    sys.exit(main())
