#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""seal: what a build takes on the disk: captured, then archived, beside perf.data of the same time and pprof.

    tests/bench/seal.py [--minutes 60] [--keep DIR] [--write docs/BENCHMARKS.md]

Both CPUs compile this source, for each of CONFIGURATIONS and over again if they end too soon (which is said: a build that is
repeated has its stacks again). `sonde-cpu` at 99 Hz in buckets of 10 s, as always-on, and `perf record -a -g -F 99` run beside each other. The
store is archived by sonde-seal; pprof.gz is one profile of all its samples. What half of the time had is archived by itself, too: an
hour is reckoned as straight from what was measured, and of the archive as going on as the second half did. With --keep a capture is
archived as often as wanted. The last rows are no format of sonde's but a measure: the same facts in columns, compressed (witness.py).
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
    """What it took before, and its archives."""
    bench.end_segment(store)
    before = bench.store_bytes(store)
    subprocess.run([SEAL, "--store", store, "--quiet"], check=True)
    files = bench.archives(store)
    assert files, os.listdir(store)
    return before, files


def parts_of(files):
    """Bytes by what they are for, stacks, samples."""
    out, stacks, samples = {}, 0, 0
    for path in files:
        db = witness.opened(path)
        for name, size in db.execute("SELECT iif(m.tbl_name = 'packed_block', 'columns', 'all else'), sum(pgsize) FROM dbstat s"
                                     " LEFT JOIN sqlite_master m ON m.name = s.name GROUP BY 1"):
            out[name] = out.get(name, 0) + size
        for name, size in db.execute("SELECT c.\"table\", sum(length(b.data)) FROM packed_column c JOIN packed_block b ON b.id >> 20 = c.id GROUP BY 1"):
            out[f"columns: {name}"] = out.get(f"columns: {name}", 0) + size
        stacks += db.execute("SELECT count(*) FROM stack").fetchone()[0]
        samples += db.execute("SELECT sum(n) FROM sample").fetchone()[0]
        db.close()
    return out, stacks, samples


def least_of(files):
    """By part: (zlib -9, xz -9e) of all files (witness.py)."""
    out = {}
    for path in files:
        for name, sizes in witness.sizes(path).items():
            out[name] = tuple(map(sum, zip(out.get(name, (0, 0)), sizes)))
    return out


def table(opts, told, base):
    minutes, rounds = told["minutes"], told["builds"]
    rested = (time.time() - told["ended"]) / 60
    before, files = seal(f"{base}/store")
    parts, stacks, samples = parts_of(files)
    whole = sum(map(os.path.getsize, files))
    subprocess.run([SONDE, "export", "pprof", "-q", "--store", f"{base}/store", "--last", f"{minutes + rested + 30:.0f}m", "-o", f"{base}/x.pb.gz"], check=True,
                   stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    least = least_of(files)
    half = sum(map(os.path.getsize, seal(f"{base}/half")[1]))
    rows = [("archived", whole), *((f"- {k}", v) for k, v in sorted(parts.items(), key=lambda x: -x[1])),
            ("plain segments, before", before), ("pprof.gz, one profile of all", os.path.getsize(f"{base}/x.pb.gz")),
            ("perf.data (`-a -g -F 99`, frame pointers)", told["perf.data"]),
            ("the same facts in plain columns, `zlib -9` each", sum(v[0] for v in least.values())),
            ("the same, `xz -9e` each", sum(v[1] for v in least.values())),
            *((f"- {name}", v[1]) for name, v in sorted(least.items(), key=lambda x: -x[1][1]))]
    out = [f"Machine: {bench.machine()}. Date: {datetime.date.today()}. Command: `{bench.command()}` ({minutes:g} minutes, "
           f"{rounds} build{'s' if rounds > 1 else ''} of {len(CONFIGURATIONS)} begun, {samples} samples, {stacks} stacks, "
           f"{told['lost']} samples lost; {len(files)} archive{'s' if len(files) > 1 else ''}).", "",
           "| what | MB | bytes a sample | MB an hour, reckoned |", "|---|---|---|---|"]
    out += [f"| {name} | {size / 1e6:.2f} | {size / samples:.2f} | {size / 1e6 * 60 / minutes:.1f} |" for name, size in rows]
    out += ["", f"The first half archived by itself: {half / 1e6:.2f} MB. An hour that goes on as the second half did: "
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
