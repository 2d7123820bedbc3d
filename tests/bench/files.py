#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""files: what a start costs where many different ELF files are mapped and run.

    tests/bench/files.py [--files 200] [--rounds 5] [--smoke] [--write docs/BENCHMARKS.md]

Processes hold the executable segments of the machine's largest libraries (8 each, of at most 8 MB), and a program without frame
pointers keeps both CPUs busy with varied stacks of 40 frames.
1. From the start of sonde-cpu to the first complete stack of that program in the store, read there every 5 ms: with no index made
   before (cold), and with all made (warm).
2. sonde-maps alone with all indexes made: the CPU time that it says it took to get the rows from their indexes into its maps
   (opening, checksums, the copy), and the rows then in use, less both of a run beside the same processes, which hold no library.
3. The kernel's memory of all BPF maps of a capture.
"""
import argparse
import glob
import json
import os
import re
import shutil
import signal
import sqlite3
import subprocess
import sys
import tempfile
import time

import bench
import stacks

HOLD = """
import mmap, sys
held = []
for path, size, offset in zip(*[iter(sys.argv[1:])] * 3):
    with open(path, "rb") as f:
        held.append(mmap.mmap(f.fileno(), int(size), flags=mmap.MAP_PRIVATE, prot=mmap.PROT_READ | mmap.PROT_EXEC, offset=int(offset)))
print("held", flush=True)
sys.stdin.read()
"""


def libraries(count):
    """[(path, size and offset of its code, bytes of .eh_frame)], the largest first."""
    found = []
    paths = {os.path.realpath(p) for p in glob.glob("/usr/lib/x86_64-linux-gnu/**/*.so*", recursive=True)}
    for path in sorted((p for p in paths if os.path.getsize(p) <= 8 << 20), key=os.path.getsize, reverse=True):
        said = subprocess.run(["readelf", "-lSW", path], capture_output=True, text=True, check=False).stdout
        code = re.search(r"LOAD +0x(\S+) \S+ \S+ 0x(\S+) \S+ R E", said)
        eh = re.search(r"\.eh_frame +PROGBITS +\S+ \S+ (\S+)", said)
        if code and eh and int(code[1], 16) % 4096 == 0:
            found.append((path, int(code[2], 16), int(code[1], 16), int(eh[1], 16)))
        if len(found) == count:
            break
    return found


class Held:
    def __init__(self, chosen, nothing=False):
        self.chosen, self.nothing = chosen, nothing

    def __enter__(self):
        self.children = []
        for i in range(0, len(self.chosen), 8):
            args = [str(w) for path, size, offset, _ in self.chosen[i:i + 8] for w in (path, size, offset) if not self.nothing]
            self.children.append(subprocess.Popen([sys.executable, "-c", HOLD, *args], stdin=subprocess.PIPE, stdout=subprocess.PIPE))
        for child in self.children:
            child.stdout.readline()

    def __exit__(self, *_):
        for child in self.children:
            child.stdin.close()
            child.wait()


def is_complete(folder):
    for path in glob.glob(f"{folder}/*.db"):
        try:
            with sqlite3.connect(f"file:{path}?mode=ro", uri=True, timeout=0) as db:
                if db.execute("SELECT 1 FROM cpu_samples c JOIN stacks s ON s.id = c.stack_id WHERE c.comm = ? AND "
                              "s.folded GLOB '_start;*' LIMIT 1", (os.path.basename(stacks.CHAIN),)).fetchone():
                    return True
        except sqlite3.OperationalError:  # it is being made
            pass
    return False


def first_complete(folder):
    """Seconds, and bytes of BPF maps."""
    began = time.monotonic()
    child, fd = bench.start_sonde(folder, "--bucket", "1s")
    while not is_complete(folder):
        if time.monotonic() > began + 30 or child.poll() is not None:
            raise RuntimeError("no complete stack came")
        time.sleep(0.005)
    took = time.monotonic() - began
    _, maps = bench.bpf_state(set(bench.tree(child.pid)))
    child.send_signal(signal.SIGINT)
    bench.drain(fd)
    child.wait()
    for path in glob.glob(f"{folder}/*.db*"):  # the indexes stay
        os.unlink(path)
    return took, maps


def published(folder):
    """What sonde-maps tells of its costs (each second) once no more rows come and no index is made."""
    child = subprocess.Popen([f"{bench.BIN}/sonde-maps", "--socket", f"{folder}/socket", "--print", "--json", "--store", folder],
                             stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    costs = []
    for line in child.stdout:
        if '"cost"' in line:
            costs.append(json.loads(line))
            if len({(c["rows_used"], c["index_cpu_ns"]) for c in costs[-3:]}) == 1 and len(costs) > 3:
                break
    child.terminate()
    child.stdout.close()
    child.wait()
    return costs[-1]


def measure(opts, folder):
    chosen = libraries(opts.files)
    rows = {k: [] for k in ("cold", "warm", "publish", "maps", "rows", "build")}
    for i in range(opts.rounds):
        store = f"{folder}/{i}"
        os.mkdir(store)
        with Held(chosen, nothing=True):
            published(store)  # makes the indexes of all else
            none = published(store)
        with Held(chosen):
            built = published(store)
            with_all = published(store)
            mb = 8 * (with_all["rows_used"] - none["rows_used"]) / 2**20
            rows["publish"].append({"v": (with_all["rows_cpu_ns"] - none["rows_cpu_ns"]) / 1e6 / mb})
            rows["rows"].append({"v": mb})
            rows["build"].append({"v": (built["index_cpu_ns"] - with_all["index_cpu_ns"]) / 1e6 / (sum(c[3] for c in chosen) / 2**20)})
            with stacks.Load(*[[stacks.CHAIN, "600", "40", "varied"]] * os.cpu_count()):
                rows["warm"].append({"v": 1000 * first_complete(store)[0]})
                shutil.rmtree(store)
                took, maps = first_complete(store)
                rows["cold"].append({"v": 1000 * took})
                rows["maps"].append({"v": maps / 2**20})
        shutil.rmtree(store)
        print({k: round(v[-1]["v"], 2) for k, v in rows.items()}, file=sys.stderr, flush=True)
    return len(chosen), sum(c[3] for c in chosen) / 2**20, rows


def table(opts, count, eh_mb, rows):
    return "\n".join([
        f"Machine: {bench.machine()}. Date: {time.strftime('%Y-%m-%d')}. Command: `{bench.command()}` "
        f"({opts.rounds} rounds; median, then lowest-highest).", "",
        f"| {count} libraries with {eh_mb:.1f} MB of .eh_frame, both CPUs busy | value | to reach |", "|---|---|---|",
        *(f"| {what} | {bench.spread(rows[key], 'v')} | {asked} |" for what, key, asked in (
            ("first complete stack stored, warm, ms", "warm", "300"), ("the same, cold, ms", "cold", "1500"),
            ("BPF maps, MB", "maps", "32"), ("rows of these libraries, MB", "rows", ""),
            ("publishing from indexes: CPU of sonde-maps, ms a MB of rows", "publish", "1"),
            ("making the indexes, rows and symbols: CPU of sonde-index, ms a MB of .eh_frame", "build", "")))])


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--files", type=int, default=200)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--smoke", action="store_true")
    parser.add_argument("--write", help="put the table between the markers of this file")
    opts = parser.parse_args()
    if opts.smoke:
        opts.files, opts.rounds = 20, 1
    if os.geteuid() != 0:
        print("missing: root")
        return 77
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    folder = tempfile.mkdtemp(prefix="sonde-bench-")
    try:
        stacks.build()
        text = table(opts, *measure(opts, folder))
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    print(text)
    if opts.write:
        bench.put_between(opts.write, "files", text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
