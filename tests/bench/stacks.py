#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""stacks: what a stack without frame pointers costs, beside those who do it otherwise, in the same run.

    tests/bench/stacks.py [--seconds 10] [--rounds 3] [--program | --beside] [--smoke] [--write docs/BENCHMARKS.md]

1. In the program, from its own clock and histogram: 40 frames at 4999 Hz, one stack and varied ones; the same by
   bpftrace, whose stacks come from bpf_get_stackid, over a build with frame pointers.
2. At 99 Hz with both CPUs busy: 40 frames, and the mix of bench.py: mean and 99th percentile (its bucket's upper bound).
3. From capture to named stacks: sonde's CPU and bytes against `perf record --call-graph dwarf` (8 KB of each stack) + `perf script
   --no-inline` (with inlined functions it asks addr2line for minutes), mix as above. What sonde-index takes meanwhile, for files
   that nobody had mapped before (on a host that works there are some), stands apart, as sonde-maps tells it.
The recorders take turns, round by round. --program: 1 and 2 alone; --beside: 3 alone.
"""
import argparse
import glob
import json
import os
import shutil
import signal
import sqlite3
import subprocess
import sys
import tempfile
import time

import bench

CHAIN = os.path.join(bench.MIX, "chain")


def build():
    os.makedirs(bench.MIX, exist_ok=True)
    src = os.path.join(bench.ROOT, "tests", "bench", "mix", "chain.c")
    subprocess.run(["gcc", "-O2", "-o", CHAIN, src], check=True)
    subprocess.run(["gcc", "-O2", "-fno-omit-frame-pointer", "-o", CHAIN + "-fp", src], check=True)


class Load:
    def __init__(self, *commands):
        self.commands = commands

    def __enter__(self):
        self.children = [subprocess.Popen(c, stdout=subprocess.DEVNULL) for c in self.commands]
        time.sleep(0.5)
        return self

    def __exit__(self, *_):
        for child in self.children:
            child.kill()
            child.wait()


def index_cpu(folder):
    """Seconds that making indexes took, as the capture has booked them."""
    ns = 0
    for path in glob.glob(f"{folder}/*.db"):
        with sqlite3.connect(f"file:{path}?mode=ro", uri=True) as db:
            ns += db.execute("SELECT coalesce(sum(cpu_ns), 0) FROM cost WHERE program = 'sonde-index'").fetchone()[0]
    return ns / 1e9


def sonde(folder, seconds, *args):
    """The capture's last word, the share of its user stacks that reached a root, its CPU time (all processes) and bytes."""
    for path in glob.glob(f"{folder}/store/*.db*"):  # the indexes stay: made once, they are told apart (bench.py)
        os.unlink(path)
    child, fd = bench.start_sonde(folder + "/store", "--bucket", "1s", *args)
    bench.ready(child, fd, "first")
    start = sum(bench.cpu_ns(pid) for pid in bench.tree(child.pid))
    time.sleep(seconds)
    cpu, _ = bench.tree_usage(child.pid)
    child.send_signal(signal.SIGINT)
    done = next(e for e in bench.drain(fd) if e.get("event") == "done")
    _, _, usage = os.wait4(child.pid, 0)
    done["index_s"] = index_cpu(folder + "/store")
    done["start_s"] = start / 1e9
    done["cpu_s"] = max(cpu / 1e9, usage.ru_utime + usage.ru_stime) - done["index_s"]
    done["bytes"] = bench.store_bytes(folder + "/store")
    return done


def in_program(folder, seconds, *args):
    done = sonde(folder, seconds, *args)
    return {"us": done["probe_ns"] / 1000, "p99 us": done["probe_p99_ns"] / 1000, "samples": done["samples"],
            "frames": done["frames"] / max(1, done["samples"])}


def stackid(folder, seconds):
    """bpftrace's program: bpf_get_stackid of a user stack and one count, at the same rate."""
    child = subprocess.Popen(["bpftrace", "-o", f"{folder}/bpftrace.txt", "-e",
                              'profile:hz:4999 /comm == "chain-fp"/ { @[ustack] = count(); }'],
                             stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, stdin=subprocess.DEVNULL)
    time.sleep(3)
    progs0, _ = bench.bpf_state({child.pid})
    time.sleep(seconds)
    progs1, _ = bench.bpf_state({child.pid})
    child.send_signal(signal.SIGINT)
    try:
        child.wait(30)
    except subprocess.TimeoutExpired:
        child.kill()
        child.wait()
    ns = sum(progs1[n][0] - progs0.get(n, (0, 0))[0] for n in progs1)
    runs = sum(progs1[n][1] - progs0.get(n, (0, 0))[1] for n in progs1)
    # half of the runs are of the other CPU, where the filter said no: they cost next to nothing
    return {"us": ns / max(1, runs) / 1000 * os.cpu_count(), "runs": runs}


def perf_dwarf(folder, seconds):
    out = f"{folder}/perf.data"
    # --buildid-mmap saves perf a pass over its data, and `perf script` 6.1 an abort where another sonde runs (test_perf_chains)
    t = subprocess.Popen(["perf", "record", "--buildid-mmap", "-F", "99", "-a", "--call-graph", "dwarf", "-o", out, "--", "sleep",
                          str(seconds)], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                         stdin=subprocess.DEVNULL)
    _, _, record = os.wait4(t.pid, 0)
    size = os.path.getsize(out)
    t = subprocess.Popen(["perf", "script", "--no-inline", "-i", out, "-F", "comm,ip,sym"], stdout=subprocess.PIPE,
                         stderr=subprocess.DEVNULL, stdin=subprocess.DEVNULL)
    samples = t.stdout.read().count(b"\n\n")
    _, status, script = os.wait4(t.pid, 0)
    os.unlink(out)
    if status or not samples:  # Debian's perf may abort on a foreign build-id
        return None
    return {"cpu s": record.ru_utime + record.ru_stime + script.ru_utime + script.ru_stime, "bytes": size,
            "samples": samples}


def ratio(rows, top, bottom, key, other=None):
    other = other or key
    values = sorted(a[key] / b[other] for a, b in zip(rows[top], rows[bottom]) if a and b and b[other])
    return f"1/{1 / values[len(values) // 2]:.1f}" if values and values[len(values) // 2] < 1 else (
        f"{values[len(values) // 2]:.2f}" if values else "-")


def beside_perf(opts, folder, rows):
    done = sonde(folder, opts.seconds, "--freq", "99")
    n = done["samples"]
    rows["sonde"].append({"cpu s": done["cpu_s"] / n, "bytes": done["bytes"] / n, "start s": done["start_s"],
                          "later s": (done["cpu_s"] - done["start_s"]) / n, "index s": done["index_s"]})
    other = perf_dwarf(folder, opts.seconds) if shutil.which("perf") else None
    rows["perf"].append(other and {"cpu s": other["cpu s"] / other["samples"], "bytes": other["bytes"] / other["samples"]})


def tell(rows, i):
    for name, all_of_it in rows.items():
        if len(all_of_it) > i and all_of_it[i]:
            print(name, {k: round(v, 6) for k, v in all_of_it[i].items()}, file=sys.stderr, flush=True)


def measure_beside(opts, folder, mix):
    rows = {"sonde": [], "perf": []}
    with bench.Mix(mix, 86400):
        bench.warm_up(folder + "/store", limit_s=60)
        for i in range(opts.rounds):
            beside_perf(opts, folder, rows)
            tell(rows, i)
    return rows


def measure(opts, folder, mix):
    rows = {k: [] for k in ("one", "varied", "stackid", "busy40", "mix", "sonde", "perf")}
    second = [sys.executable, "-c", "while True: pass"]
    fast = ["--freq", "4999", "--comm", "chain"]
    for i in range(opts.rounds):
        with Load([CHAIN, "600", "40"]):
            rows["one"].append(in_program(folder, opts.seconds, *fast))
        with Load([CHAIN, "600", "40", "varied"]):
            rows["varied"].append(in_program(folder, opts.seconds, *fast))
        if shutil.which("bpftrace"):
            with Load([CHAIN + "-fp", "600", "40"]):
                rows["stackid"].append(stackid(folder, opts.seconds))
        with Load([CHAIN, "600", "40", "varied"], [CHAIN, "600", "40", "varied"]):
            rows["busy40"].append(in_program(folder, opts.seconds, "--freq", "99"))
        with bench.Mix(mix, 86400):
            rows["mix"].append(in_program(folder, opts.seconds, "--freq", "99"))
            if not opts.program:
                beside_perf(opts, folder, rows)
        tell(rows, i)
    return rows


def head(opts):
    return [f"Machine: {bench.machine()}. Date: {time.strftime('%Y-%m-%d')}. Command: `{bench.command()}` "
            f"({opts.rounds} rounds of {opts.seconds} s, taking turns; median, then lowest-highest).", ""]


def table(opts, rows):
    s = bench.spread
    return "\n".join(head(opts) + [
        "| in the program, us a sample | mean | p99 below | to reach | frames |", "|---|---|---|---|---|",
        f"| 4999 Hz, 40 frames, one stack | {s(rows['one'], 'us')} | {s(rows['one'], 'p99 us')} | 2.5 | {s(rows['one'], 'frames')} |",
        f"| 4999 Hz, 40 frames, varied | {s(rows['varied'], 'us')} | {s(rows['varied'], 'p99 us')} | 4 | {s(rows['varied'], 'frames')} |",
        f"| bpftrace, frame pointers, one stack | {s(rows['stackid'], 'us')} | - | - | 40 |",
        f"| 99 Hz, both CPUs busy, 40 frames varied | {s(rows['busy40'], 'us')} | {s(rows['busy40'], 'p99 us')} | 20, 66 | {s(rows['busy40'], 'frames')} |",
        f"| 99 Hz, both CPUs busy, the mix | {s(rows['mix'], 'us')} | {s(rows['mix'], 'p99 us')} | 12, 66 | {s(rows['mix'], 'frames')} |"])


def table_beside(opts, rows):
    s = bench.spread
    perf = [r for r in rows["perf"] if r]
    return "\n".join(head(opts) + [
        "| from capture to named stacks, the mix, 99 Hz, start-up included, indexes made apart | sonde | perf record --call-graph dwarf + script | ratio | to reach |",
        "|---|---|---|---|---|",
        f"| CPU s a sample | {s(rows['sonde'], 'cpu s')} | {s(perf, 'cpu s')} | {ratio(rows, 'sonde', 'perf', 'cpu s')} | 1/2 |",
        f"| - without sonde's start | {s(rows['sonde'], 'later s')} | {s(perf, 'cpu s')} | {ratio(rows, 'sonde', 'perf', 'later s', 'cpu s')} | |",
        f"| sonde's start, in all: CPU s | {s(rows['sonde'], 'start s')} | - | | |",
        f"| indexes made meanwhile, in all: CPU s | {s(rows['sonde'], 'index s')} | - | | |",
        f"| bytes a sample | {s(rows['sonde'], 'bytes')} | {s(perf, 'bytes')} | {ratio(rows, 'sonde', 'perf', 'bytes')} | 1/20 |"])


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=int, default=10)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--program", action="store_true", help="what a sample costs in the program, alone")
    parser.add_argument("--beside", action="store_true", help="from capture to named stacks beside perf, alone")
    parser.add_argument("--smoke", action="store_true")
    parser.add_argument("--write", help="put the tables between the markers of this file")
    opts = parser.parse_args()
    if opts.smoke:
        opts.seconds, opts.rounds = 2, 1
    if os.geteuid() != 0:
        print("missing: root")
        return 77
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    folder = tempfile.mkdtemp(prefix="sonde-bench-")
    before = bench.bpf_stats(1)
    try:
        build()
        rows = (measure_beside if opts.beside else measure)(opts, folder, bench.build_mix())
    finally:
        bench.bpf_stats(before)
        shutil.rmtree(folder, ignore_errors=True)
    texts = {"stacks": None if opts.beside else table(opts, rows), "compared": None if opts.program else table_beside(opts, rows)}
    for name, text in texts.items():
        if text:
            print(text + "\n")
        if text and opts.write:
            bench.put_between(opts.write, name, text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
