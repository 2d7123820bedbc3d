#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""offcpu: what watching every switch costs, beside those who watch it too, in the same run.

    tests/bench/offcpu.py [--seconds 10] [--rounds 3] [--smoke] [--offcputime FILE] [--write docs/BENCHMARKS.md]

The load (mix/pingpong.c) hands a byte back and forth on every CPU: with work between, so that there are about 50 000
switches a second on each, and as fast as it can, the worst there is. In turns, round by round: nobody watches; sonde-offcpu without stacks, with the defaults, and
with a stack of each switch; `offcputime` (of libbpf-tools, or bpfcc-tools); `perf sched record`.

1. ns a switch in sonde's programs: run time by the program's own clock, by the switches of the whole host (/proc/stat).
2. Throughput lost against nobody: the load's own count of switches a second.
3. CPU seconds of the recorder's processes, and bytes that it leaves, for each million switches.
"""
import argparse
import os
import shutil
import signal
import sqlite3
import statistics
import subprocess
import sys
import tempfile
import time

import bench

LOAD = os.path.join(bench.MIX, "pingpong")
WORK_NS = 17000  # and about 3 us for the switch itself: 50 000 a second
SONDE = {"no stacks": ("--stack-rate", "0"), "defaults": (), "each a stack": ("--stack-rate", "1000000")}


def build():
    os.makedirs(bench.MIX, exist_ok=True)
    src = os.path.join(bench.ROOT, "tests", "bench", "mix", "pingpong.c")
    subprocess.run(["gcc", "-O2", "-o", LOAD, src], check=True)


def host_switches():
    with open("/proc/stat", encoding="ascii") as f:
        return int(next(line for line in f if line.startswith("ctxt")).split()[1])


def load(seconds, work):
    """Switches a second, as the load counts them."""
    n, ns = map(int, subprocess.run([LOAD, str(seconds), str(work)], capture_output=True, text=True, check=True).stdout.split())
    return n / (ns / 1e9)


def ended(child):
    """Its CPU seconds, with those of its children that it waited for."""
    child.send_signal(signal.SIGINT)
    _, _, usage = os.wait4(child.pid, 0)
    child.returncode = 0
    return usage.ru_utime + usage.ru_stime


def sonde(folder, seconds, work, args):
    store = folder + "/store"
    shutil.rmtree(store, ignore_errors=True)
    read_fd, write_fd = os.pipe()
    child = subprocess.Popen([f"{bench.BIN}/sonde-offcpu", "--store", store, "--progress-fd", str(write_fd), *args],
                             pass_fds=[write_fd], stderr=subprocess.DEVNULL, stdin=subprocess.DEVNULL)
    os.close(write_fd)
    bench.ready(child, read_fd, "ready")
    before = host_switches()
    rate = load(seconds, work)
    switches = host_switches() - before
    cpu = ended(child)
    done = next(e for e in bench.drain(read_fd) if e.get("event") == "done")
    os.close(read_fd)
    return {"rate": rate, "cpu s": cpu / (rate * seconds) * 1e6, "bytes": bench.store_bytes(store) / (rate * seconds) * 1e6,
            "ns": bpf_ns(store) / switches, "lost": done["lost_total"] / max(1, done["seen"])}


def bpf_ns(store):
    total = 0
    for name in os.listdir(store):
        if name.endswith(".db"):
            db = sqlite3.connect(f"file:{store}/{name}?mode=ro", uri=True)
            total += db.execute("SELECT coalesce(sum(cpu_ns), 0) FROM cost WHERE program = 'bpf:offcpu'").fetchone()[0]
            db.close()
    return total


def peer(folder, seconds, work, argv, out):
    """One that says nothing when it is ready: it is given three seconds."""
    with open(f"{folder}/peer.out", "wb") as f:
        child = subprocess.Popen(argv, stdout=f, stderr=subprocess.DEVNULL, stdin=subprocess.DEVNULL)
        time.sleep(3)
        if child.poll() is not None:
            return None
        rate = load(seconds, work)
        cpu = ended(child)
    return {"rate": rate, "cpu s": cpu / (rate * seconds) * 1e6, "bytes": os.path.getsize(out) / (rate * seconds) * 1e6}


def offcputime(given):
    return given or next((p for p in map(shutil.which, ("offcputime", "offcputime-bpfcc")) if p), None)


def measure(opts, folder, work):
    rows = {name: [] for name in ("nobody", *SONDE, "offcputime", "perf sched record")}
    for _ in range(opts.rounds):
        rows["nobody"].append({"rate": load(opts.seconds, work)})
        for name, args in SONDE.items():
            rows[name].append(sonde(folder, opts.seconds, work, args))
        tool = offcputime(opts.offcputime)
        rows["offcputime"].append(tool and peer(folder, opts.seconds, work, [tool], f"{folder}/peer.out"))
        data = f"{folder}/perf.data"
        rows["perf sched record"].append(shutil.which("perf") and peer(
            folder, opts.seconds, work, ["perf", "sched", "record", "-a", "-o", data], data))
        for name, all_of_it in rows.items():
            if all_of_it[-1]:
                print(name, {k: round(v, 4) for k, v in all_of_it[-1].items()}, file=sys.stderr, flush=True)
    return {name: [r for r in some if r] for name, some in rows.items()}


def lost(rows, name):
    """Each round against nobody's of the same round."""
    values = sorted(100 * (1 - r["rate"] / base["rate"]) for r, base in zip(rows[name], rows["nobody"]))
    return f"{statistics.median(values):.1f} ({values[0]:.1f}-{values[-1]:.1f})" if values else "-"


def table(title, rows, reach):
    s = bench.spread
    out = ["", f"| {title} | switches a second | throughput lost, % | ns a switch in BPF | to reach | CPU s a million | "
               "bytes a million |", "|---|---|---|---|---|---|---|"]
    for name, some in rows.items():
        out.append(f"| {'sonde, ' + name if name in SONDE else name} | {s(some, 'rate')} | "
                   f"{lost(rows, name) if name != 'nobody' else '-'} | {s(some, 'ns')} | {reach.get(name, '-')} | "
                   f"{s(some, 'cpu s')} | {s(some, 'bytes')} |")
    return "\n".join(out)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=int, default=10)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--smoke", action="store_true")
    parser.add_argument("--offcputime", help="where it is, if not in the path")
    parser.add_argument("--write", help="put the table between the markers of this file")
    opts = parser.parse_args()
    if opts.smoke:
        opts.seconds, opts.rounds = 2, 1
    if os.geteuid() != 0:
        print("missing: root")
        return 77
    folder = tempfile.mkdtemp(prefix="sonde-bench-")
    try:
        build()
        paced, fast = measure(opts, folder, WORK_NS), measure(opts, folder, 0)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    text = (f"Machine: {bench.machine()}. Date: {time.strftime('%Y-%m-%d')}. Command: `{bench.command()}` ({opts.rounds} "
            f"rounds of {opts.seconds} s, taking turns; median, then lowest-highest).\n"
            + table("work between switches", paced, {"no stacks": "400", "defaults": "loss 5 %"}) + "\n"
            + table("as fast as it can", fast, {"no stacks": "400", "each a stack": "4000"}))
    print(text)
    if opts.write:
        bench.put_between(opts.write, "offcpu", text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
