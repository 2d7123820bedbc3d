#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""indexing: what reading new large files takes from a busy host, and when the rows of one that is sampled are there.

    tests/bench/indexing.py [--seconds 120] [--files 40] [--rounds 1] [--smoke] [--write docs/BENCHMARKS.md]

Processes hold the executable segments of the machine's largest programs and libraries (Go, C++), of which no index is kept; all
CPUs are kept busy by twice as many programs, one of them a large one (the C compiler), and sampled.
1. The CPU time of sonde-index, from /proc each second: in the first ten seconds, in the busiest minute, in all. How far
   CPUs were idle meanwhile stands beside it: on a host that is not busy more is allowed (loaders/lib/host/budget/cpushare.h).
2. From the start of sonde-cpu to that program's first complete stack in the store.
3. The same files by sonde-index alone, one after another: ms a MB of .eh_frame for rows and symbols (no lines), of those that have
   at least 256 KB of it. With it the start of a process for each.
"""
import argparse
import glob
import os
import re
import resource
import shutil
import signal
import sqlite3
import subprocess
import sys
import tempfile
import threading
import time

import bench
import files
import stacks

PLACES = ("/usr/bin/*", "/usr/sbin/*", "/usr/local/bin/*", "/usr/local/go/bin/*", "/usr/lib/x86_64-linux-gnu/*.so*",
          "/usr/lib/llvm-*/lib/*.so*", "/usr/lib/jvm/*/lib/server/*.so", "/usr/lib/gcc/x86_64-linux-gnu/*/cc1*", "/usr/lib/chromium/chromium")


def large(count):
    """[(path, size and offset of its code, bytes of .eh_frame)], the largest files first."""
    paths = {os.path.realpath(p) for place in PLACES for p in glob.glob(place)}
    found = []
    for path in sorted((p for p in paths if os.path.isfile(p)), key=os.path.getsize, reverse=True):
        said = subprocess.run(["readelf", "-lSW", path], capture_output=True, text=True, check=False).stdout
        code = re.search(r"LOAD +0x(\S+) \S+ \S+ 0x(\S+) \S+ R E", said)
        eh = re.search(r"\.eh_frame +\S+ +\S+ \S+ (\S+)", said)
        if code and int(code[1], 16) % 4096 == 0:
            found.append((path, int(code[2], 16), int(code[1], 16), int(eh[1], 16) if eh else 0))
        if len(found) == count:
            break
    return found


def alone(chosen, folder):
    """ms a MB of .eh_frame."""
    chosen = [c for c in chosen if c[3] >= 256 << 10]
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    for path, *_ in chosen:
        subprocess.run([f"{bench.BIN}/sonde-index", path, "-o", f"{folder}/index", "--no-lines"], stdout=subprocess.DEVNULL, check=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    took = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return 1000 * took / (sum(c[3] for c in chosen) / 2**20)


def idle_s():
    with open("/proc/uptime", encoding="ascii") as f:
        return float(f.read().split()[1])


class Watch:
    """[(time, CPU seconds of sonde-index, idle seconds of the host)], each second, of the sonde-maps below that process."""

    def __init__(self, pid):
        self.costs, self.pid, self.done = [(time.monotonic(), 0, idle_s())], pid, False
        threading.Thread(target=self.watch, daemon=True).start()

    def watch(self):
        while not self.done:
            time.sleep(1)
            ticks = 0
            for pid in bench.tree(self.pid):
                try:
                    with open(f"/proc/{pid}/stat", encoding="ascii") as f:
                        comm, rest = f.read().split("(", 1)[1].rsplit(")", 1)
                except OSError:
                    continue
                own, waited = (sum(map(int, rest.split()[i:i + 2])) for i in (11, 13))
                ticks += own if comm == "sonde-index" else waited if comm == "sonde-maps" else 0
            self.costs.append((time.monotonic(), max(ticks / bench.TICK, self.costs[-1][1]), idle_s()))


def first_complete(folder, comm, until):
    """When a stack of this program was stored that goes from its own code through all of it to the C library's beginning."""
    while time.monotonic() < until:
        for path in glob.glob(f"{folder}/*.db"):
            try:
                with sqlite3.connect(f"file:{path}?mode=ro", uri=True, timeout=0) as db:
                    if db.execute("SELECT 1 FROM cpu_samples c JOIN stacks s ON s.id = c.stack_id WHERE c.comm = ? AND s.folded GLOB "
                                  "'*__libc_start_call_main;*' LIMIT 1", (comm,)).fetchone():
                        return time.monotonic()
            except sqlite3.OperationalError:  # it is being made
                pass
        time.sleep(0.02)
    return float("nan")


def share(costs, begin, seconds):
    """The largest share of a core, in %, of any `seconds` from `begin` on."""
    best = 0
    for t, cpu, _ in costs:
        later = [c for c in costs if c[0] <= t + seconds + 0.5]
        if t >= begin and later[-1][0] >= t + seconds - 1.5:
            best = max(best, 100 * (later[-1][1] - cpu) / seconds)
    return best


def one(opts, folder, chosen):
    compiler = os.path.realpath(subprocess.run(["gcc", "-print-prog-name=cc1"], capture_output=True, text=True, check=True).stdout.strip())
    with open(f"{folder}.c", "w", encoding="ascii") as f:
        f.writelines(f"int f{i}(int a, int b) {{ int s = 0; for (int k = 0; k < a; k++) s += b * k ^ {i}; return s; }}\n" for i in range(20000))
    burn = [[stacks.CHAIN, "600", "40", "varied"]] * (2 * os.cpu_count() - 1)
    burn.append([sys.executable, "-c", "import subprocess, sys\nwhile True: subprocess.run(sys.argv[1:])", compiler, "-quiet", "-O2",
                 f"{folder}.c", "-o", "/dev/null"])
    with files.Held(chosen), stacks.Load(*burn):
        began = time.monotonic()
        child, fd = bench.start_sonde(folder, "--bucket", "1s")
        watch = Watch(child.pid)
        complete = first_complete(folder, os.path.basename(compiler), began + opts.seconds)
        time.sleep(max(0, began + opts.seconds - time.monotonic()))
        watch.done, costs = True, list(watch.costs)
        child.send_signal(signal.SIGINT)
        bench.drain(fd)
        child.wait()
    first = [c for c in costs if c[0] <= began + 10][-1]
    idle = (costs[-1][2] - costs[0][2]) / (costs[-1][0] - began)
    return {"first": 10 * first[1], "minute": share(costs, began, min(60, opts.seconds - 3)), "all": costs[-1][1],
            "idle": 100 * idle, "complete": complete - began}


def table(opts, chosen, rows):
    def spread(key):
        return bench.spread([{"v": r[key]} for r in rows], "v")

    lines = (("sonde-index, % of a core, in the busiest minute", "minute", "5"), ("the same in the first 10 s", "first", ""),
             ("the same in all, s of CPU time", "all", ""), ("CPUs idle meanwhile, % of a core", "idle", ""),
             ("first complete stack of a large sampled program stored, s", "complete", ""),
             ("sonde-index alone, ms a MB of .eh_frame", "alone", "25"))
    return "\n".join([
        f"Machine: {bench.machine()}. Date: {time.strftime('%Y-%m-%d')}. Command: `{bench.command()}` "
        f"({opts.rounds} rounds; median, then lowest-highest).", "",
        f"| {len(chosen)} new files of {sum(os.path.getsize(c[0]) for c in chosen) / 2**20:.0f} MB, busy host, {opts.seconds} s | value | to reach |",
        "|---|---|---|", *(f"| {what} | {spread(key)} | {asked} |" for what, key, asked in lines)])


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=int, default=120)
    parser.add_argument("--files", type=int, default=40)
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--smoke", action="store_true")
    parser.add_argument("--write", help="put the table between the markers of this file")
    opts = parser.parse_args()
    if opts.smoke:
        opts.files, opts.seconds = 5, 8
    if os.geteuid() != 0:
        print("missing: root")
        return 77
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    folder, rows = tempfile.mkdtemp(prefix="sonde-bench-"), []
    try:
        stacks.build()
        chosen = large(opts.files)
        for i in range(opts.rounds):
            os.mkdir(f"{folder}/{i}")
            rows.append({"alone": alone(chosen, folder), **one(opts, f"{folder}/{i}", chosen)})
            print({k: round(v, 2) for k, v in rows[-1].items()}, file=sys.stderr, flush=True)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    text = table(opts, chosen, rows)
    print(text)
    if opts.write:
        bench.put_between(opts.write, "indexing", text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
