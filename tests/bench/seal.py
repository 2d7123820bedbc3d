#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""seal: what a build takes on the disk: captured, then sealed as it stands, beside perf.data of the same time and pprof.

    tests/bench/seal.py [--minutes 60] [--keep DIR] [--write docs/BENCHMARKS.md]

Both CPUs compile this source, for each of CONFIGURATIONS and over again if they end too soon (which is said: a build that is
repeated has its stacks again). `sonde-cpu` at 99 Hz in buckets of 10 s, as always-on, and `perf record -a -g -F 99` run beside each other. The
store is sealed as sonde-seal does it; pprof.gz is one profile of all its samples. What half of the time had is sealed by itself, too: an
hour is reckoned as straight from what was measured, and of the sealed file as going on as the second half did.
Stacks of the last hour are never folded as rare: what is captured is sealed at once, and so is longer than a day that is over. With --keep it is
sealed as often as wanted: more than an hour later as such a day is.
The last rows are no format of sonde's but a measure: the same facts in columns, compressed (witness.py).
"""
import argparse
import datetime
import glob
import json
import os
import shutil
import signal
import sqlite3
import subprocess
import sys
import tempfile
import threading
import time

import bench
import witness

CONFIGURATIONS = ("all", "workloads unit-tests", "SAN=1 all unit-tests", "CC=clang B=build/clang all unit-tests", "FUZZ=1 fuzzers",
                  "CFLAGS=-O3 B=build/o3 all unit-tests", "CFLAGS=-fanalyzer B=build/analyzer all", "CC=clang SAN=1 B=build/clang-san all unit-tests",
                  "CFLAGS=-Os B=build/os all unit-tests", "CFLAGS=-Og B=build/og all unit-tests", "CC=clang CFLAGS=-O3 B=build/clang-o3 all unit-tests")
SEAL = os.path.join(bench.BIN, "sonde-seal")
SONDE = os.path.join(bench.BIN, "sonde")


def copy_source(folder):
    names = subprocess.run(["git", "-C", bench.ROOT, "ls-files", "-z"], check=True, stdout=subprocess.PIPE).stdout
    for name in names.decode().strip("\0").split("\0"):
        os.makedirs(os.path.dirname(f"{folder}/{name}"), exist_ok=True)
        shutil.copy2(os.path.join(bench.ROOT, name), f"{folder}/{name}")


def build_for(folder, seconds):
    """Builds until the time is over; how many builds it began."""
    until, begun = time.monotonic() + seconds, 0
    while time.monotonic() < until:
        if not begun % len(CONFIGURATIONS):
            shutil.rmtree(f"{folder}/build", ignore_errors=True)
        env = {k: v for k, v in os.environ.items() if k != "B"}
        child = subprocess.Popen(["make", "-k", f"-j{os.cpu_count()}", "-C", folder, *CONFIGURATIONS[begun % len(CONFIGURATIONS)].split()],
                                 stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, stdin=subprocess.DEVNULL, env=env, start_new_session=True)
        begun += 1
        try:
            child.wait(until - time.monotonic())
        except subprocess.TimeoutExpired:
            os.killpg(child.pid, signal.SIGKILL)
            child.wait()
    return begun


def copy_store(store, to):
    """What it has by now."""
    os.mkdir(to)
    for path in glob.glob(f"{store}/*.db"):
        with sqlite3.connect(f"file:{path}?mode=ro", uri=True) as live, sqlite3.connect(f"{to}/{os.path.basename(path)}") as copy:
            live.backup(copy)


def capture(base, seconds):
    """Store and perf.data of the same time; how many builds began, and what sonde-cpu says at its end."""
    child, fd = bench.start_sonde(f"{base}/store", "--freq", "99", "--bucket", "10s")
    bench.ready(child, fd, "first")
    perf = subprocess.Popen(["perf", "record", "-F", "99", "-a", "-g", "-B", "-N", "--no-bpf-event", "-o", f"{base}/perf.data", "--",
                             "sleep", str(seconds)], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    half = threading.Timer(seconds / 2, copy_store, (f"{base}/store", f"{base}/half"))
    half.start()
    rounds = build_for(f"{base}/source", seconds)
    half.join()
    perf.wait()
    child.send_signal(signal.SIGINT)
    done = next(e for e in bench.drain(fd) if e.get("event") == "done")
    child.wait()
    return rounds, done


def seal(store):
    """The file of the day that has the capture: of two, where midnight was since, the larger one. A segment is finished where there is a newer one."""
    subprocess.run([f"{bench.BIN}/sonde-cpu", "--store", store, "-d", "2s", "--segment-bytes", "1", "--comm", "no such command"],
                   stderr=subprocess.DEVNULL, check=False)
    before = bench.store_bytes(store)
    subprocess.run([SEAL, "--store", store, "--today", "--grace", "0", "--quiet"], check=True)
    days = glob.glob(f"{store}/*-d*.db")
    assert days, os.listdir(store)
    return before, max(days, key=os.path.getsize)


def parts_of(day):
    """Bytes by what they are for."""
    db = witness.opened(day)
    kinds = {"sample_pack": "blocks", "sample": "sums by the hour", "stack": "stacks", "series": "series", "frame": "frames",
             "function": "functions", "process": "processes, threads, command lines", "task": "processes, threads, command lines",
             "text": "processes, threads, command lines", "packed_column": "columns", "hour_row": "sums by the hour", "hour_place": "sums by the hour",
             "hour_who": "sums by the hour"}
    out = {}
    for name, size in db.execute("SELECT coalesce(m.tbl_name, 'other'), sum(pgsize) FROM dbstat s LEFT JOIN sqlite_master m ON m.name = s.name"
                                 " GROUP BY 1"):
        out[kinds.get(name, "all else")] = out.get(kinds.get(name, "all else"), 0) + size
    for name, size in db.execute("SELECT \"table\", sum(length(data)) FROM packed_column GROUP BY 1"):
        out[f"columns: {name}"] = size
    stacks, samples = db.execute("SELECT (SELECT count(*) FROM stack), (SELECT sum(n) FROM sample_pack)").fetchone()
    db.close()
    return out, stacks, samples


def as_rows(day, path):
    """What the packed tables take as rows, with their indexes."""
    db = witness.opened(path, "rwc")
    db.execute("ATTACH ? AS day", (f"file:{day}?mode=ro",))
    for name, sql in db.execute("SELECT name, sql FROM day.packed_table").fetchall():
        db.executescript(sql)
        db.execute(f"INSERT INTO main.{name} SELECT * FROM day.{name}")
        db.commit()
    db.close()
    return os.path.getsize(path)


def table(opts, told, base):
    minutes, rounds = told["minutes"], told["builds"]
    rested = (time.time() - told["ended"]) / 60
    before, day = seal(f"{base}/store")
    parts, stacks, samples = parts_of(day)
    since = f"{minutes + rested + 30:.0f}m"
    subprocess.run([SONDE, "export", "pprof", "-q", "--store", day, "--last", since, "-o", f"{base}/x.pb.gz"], check=True,
                   stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    rows = [("sealed", os.path.getsize(day)), *((f"- {k}", v) for k, v in sorted(parts.items(), key=lambda x: -x[1])),
            ("plain segments, before", before), ("pprof.gz, one profile of all", os.path.getsize(f"{base}/x.pb.gz")),
            ("perf.data (`-a -g -F 99`, frame pointers)", told["perf.data"])]
    least = witness.sizes(day)
    half = os.path.getsize(seal(f"{base}/half")[1])
    rows.insert(1, ("- what is in columns, if it were rows", as_rows(day, f"{base}/rows.db")))
    rows += [("the day's facts in columns, `zlib -9` each", sum(v[0] for v in least.values())),
             ("the same, `xz -9e` each", sum(v[1] for v in least.values())),
             *((f"- {name}", v[1]) for name, v in sorted(least.items(), key=lambda x: -x[1][1]))]
    out = [f"Machine: {bench.machine()}. Date: {datetime.date.today()}. Command: `{bench.command()}` ({minutes:g} minutes, "
           f"{rounds} build{'s' if rounds > 1 else ''} of {len(CONFIGURATIONS)} begun, {samples} samples, {stacks} stacks, "
           f"{told['lost']} samples lost; sealed {rested:.0f} minutes after its end).", "",
           "| what | MB | bytes a sample | MB an hour, reckoned |", "|---|---|---|---|"]
    out += [f"| {name} | {size / 1e6:.2f} | {size / samples:.2f} | {size / 1e6 * 60 / minutes:.1f} |" for name, size in rows]
    whole = os.path.getsize(day)
    out += ["", f"The first half sealed by itself: {half / 1e6:.2f} MB. An hour that goes on as the second half did: "
            f"{(whole + (whole - half) * (60 - minutes) / (minutes / 2)) / 1e6:.1f} MB."]
    return "\n".join(out)


def captured(opts, base):
    """In the folder base: a capture, the one of --keep if there is one. What is known of it."""
    if opts.keep and os.path.exists(opts.keep):
        shutil.copytree(opts.keep, base, dirs_exist_ok=True)
        with open(f"{base}/told.json", encoding="utf-8") as f:
            return json.load(f)
    os.mkdir(f"{base}/source")
    copy_source(f"{base}/source")
    rounds, done = capture(base, opts.minutes * 60)
    shutil.rmtree(f"{base}/source")
    told = {"minutes": opts.minutes, "builds": rounds, "lost": sum((done.get("lost") or {}).values()), "ended": time.time(),
            "perf.data": os.path.getsize(f"{base}/perf.data")}
    os.unlink(f"{base}/perf.data")
    with open(f"{base}/told.json", "w", encoding="utf-8") as f:
        json.dump(told, f)
    if opts.keep:
        shutil.copytree(base, opts.keep)
    return told


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=float, default=60)
    parser.add_argument("--keep", help="a capture made before, or to be kept")
    parser.add_argument("--write", help="put the table between the markers of this file")
    opts = parser.parse_args()
    base = tempfile.mkdtemp(prefix="sonde-seal-")
    try:
        text = table(opts, captured(opts, base), base)
    finally:
        shutil.rmtree(base, ignore_errors=True)
    print(text)
    if opts.write:
        bench.put_between(opts.write, "seal", text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
