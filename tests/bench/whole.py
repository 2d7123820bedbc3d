#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""whole: what all of sonde takes, by what is switched on, on an idle host and on a busy one (the load of always.py).

    tests/bench/whole.py [--seconds 40] [--settle 120] [--cases N...] [--smoke] [--write docs/BENCHMARKS.md]

CPU is that of the cgroup that sonded and its children are in and the run time of its BPF programs; memory what these processes
have for themselves and the kernel's maps of theirs, at the end; the store what the recorded time comes to, archived, in a day.
No limit is set: what sonded does about one that is reached is another table (bench-always).
"""
import argparse
import contextlib
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time

import always
import bench

sys.path[:0] = [os.path.join(bench.ROOT, "tests", "e2e", d) for d in ("", "lib", "lib/servers")]
from sonded import Sonded  # noqa: E402

DEFAULT = "cpu,host"  # as sonde config show has it
ALL = DEFAULT + ",offcpu,net,l7,goheap,mem,disk"
CASES = [("idle", DEFAULT), ("idle", DEFAULT + ",offcpu"), ("idle", ALL), ("busy", "cpu"), ("busy", DEFAULT),
         ("busy", DEFAULT + ",offcpu"), ("busy", DEFAULT + ",offcpu,net"), ("busy", DEFAULT + ",offcpu,net,l7"), ("busy", ALL)]


def memory(pid):
    """(processes, maps) in MB."""
    pids = bench.tree(pid)
    own = 0
    for p in pids:
        with contextlib.suppress(OSError):
            own += bench.private_bytes(p)
    return own / 1e6, bench.bpf_state(pids)[1] / 1e6


def a_day(store, settle, seconds):
    """MB, of two files, one of `settle` and one of `seconds`: what a file has however long it is, and what a second adds. A day is 24 files.
    Of the day as it is archived, and as it is once it is old (minutes: fine-age in sonde.conf(5))."""
    days = []
    bench.end_segment(store)
    for fine in ((), ("--fine", "1s")):
        subprocess.run([f"{bench.BIN}/sonde-seal", "--store", store, "--quiet", *fine], check=True)
        first, second = [os.path.getsize(path) / 1e6 for path in bench.archives(store)][:2]
        each = max(0.0, (first - second) / (settle - seconds))
        days.append(24 * (max(0.0, first - each * settle) + 3600 * each))
        time.sleep(2)
    return days


def measure(opts, busy, families, burner, folder):
    groups = always.Groups()
    groups.make("own")
    store = os.path.join(folder, "store")
    try:
        with always.load(groups, burner, opts) if busy else contextlib.nullcontext():
            with Sonded(store, "--families", families, "--seal", "no", prefix=always.inside("own"), limit="0") as d:
                time.sleep(opts.settle)
                subprocess.run([f"{bench.BIN}/sonde", "rotate", "--store", store], check=True, stdout=subprocess.DEVNULL)
                before = always.Look(d)
                time.sleep(opts.seconds)
                r = always.between(before, always.Look(d))
                r["own"], r["maps"] = memory(d.child.pid)
                d.stop()
        r["day"] = a_day(store, opts.settle, opts.seconds)
        return r
    finally:
        groups.close()
        shutil.rmtree(store, ignore_errors=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=40)
    parser.add_argument("--settle", type=float, default=120, help="until what runs is read")
    parser.add_argument("--rate", type=int, default=25, help="requests a second in each container")
    parser.add_argument("--cases", type=int, nargs="*", help="which of them: 0 to 8")
    parser.add_argument("--smoke", action="store_true")
    parser.add_argument("--write", help="put the table between the markers of this file")
    opts = parser.parse_args()
    if os.geteuid() != 0:
        print("missing: root")
        return 77
    if opts.smoke:
        opts.seconds, opts.settle = 1, 2
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    folder = tempfile.mkdtemp(prefix="sonde-bench-")
    burner, stats, rows = always.build(), bench.bpf_stats(1), []
    try:
        for host, families in CASES[:1] + CASES[-1:] if opts.smoke else [CASES[i] for i in opts.cases or range(len(CASES))]:
            r = measure(opts, host == "busy", families, burner, folder)
            rows.append(f"| {host} | {families.replace(',', ', ')} | {r['group'] + r['bpf']:.2f} | {r['group']:.2f} | {r['bpf']:.2f} | "
                        f"{r['own']:.0f} | {r['maps']:.0f} | {r['day'][0]:.0f} | {r['day'][1]:.0f} | {r['switches']:.0f} |")
            print(rows[-1], flush=True)
    finally:
        bench.bpf_stats(stats)
        shutil.rmtree(folder, ignore_errors=True)
    text = "\n".join([
        f"Machine: {bench.machine()}. Date: {time.strftime('%Y-%m-%d')}. Command: `{bench.command()}` ({opts.seconds:.0f} s each, after "
        f"{opts.settle:.0f} s).", "",
        "| host | families | CPU, % of one core | processes | BPF programs | memory, MB | BPF maps, MB | store a day, MB | as minutes, MB | switches a second |",
        "|---|---|---|---|---|---|---|---|---|---|", *rows])
    if opts.write:
        bench.put_between(opts.write, "whole", text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
