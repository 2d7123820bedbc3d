#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""memory: what family mem costs, always on (buckets of 10 s): of its BPF programs by the kernel's run times, of the loader by its CPU clock.

    tests/bench/memory/memory.py [--seconds 15] [--processes 8] [--mib 1024] [--smoke] [--write docs/BENCHMARKS.md]

1. A program that rests, and one that touches 20 000 fresh pages a second. The recording covers that program alone.
   The same with two huge pages a second beside them: then a program runs at allocations, too, in a part of the seconds.
2. Processes that hold memory and go on touching some: each is read twice a minute, for half a minute. They touch as many
   pages as the one of 1. What reading 100 of them once a minute would take is reckoned from the difference.
3. All pages of the host (--pages), while that program touches 100 000 a second and gives them back.
"""
import argparse
import contextlib
import json
import os
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
import bench  # noqa: E402
import ratchet  # noqa: E402

FAULTS = os.path.join(bench.MIX, "faults")


def build():
    os.makedirs(bench.MIX, exist_ok=True)
    subprocess.run(["gcc", "-O2", "-o", FAULTS, f"{bench.ROOT}/tests/bench/mix/faults.c"], check=True)


def only_at_times():
    """Programs, by id, that run only while any thread of the host waits for memory, or gets huge pages."""
    done = subprocess.run(["bpftool", "prog", "show", "--json"], capture_output=True, text=True, check=False)
    return {p["id"] for p in json.loads(done.stdout or "[]") if p.get("name", "").startswith(("mem_sleep_", "mem_stall_", "mem_huge_"))}


def spent(pid):
    progs, _ = bench.bpf_state([pid])
    apart = only_at_times() & set(progs)
    own = [p for i, p in progs.items() if i not in apart]
    return bench.cpu_ns(pid), sum(ns for ns, _ in own), sum(runs for _, runs in own), sum(progs[i][0] for i in apart)


def measure(loader, programs, seconds, settle):
    """% of a core: of the loader and of its programs; their runs a second, ns a run."""
    children = [subprocess.Popen([FAULTS, *map(str, p)]) for p in programs]
    try:
        time.sleep(settle)
        before, began = spent(loader.pid), time.monotonic()
        time.sleep(seconds)
        after, wall = spent(loader.pid), (time.monotonic() - began) * 1e9
    finally:
        for child in children:
            child.kill()
            child.wait()
    cpu, ns, runs, apart = (b - a for a, b in zip(before, after))
    return {"loader": 100 * cpu / wall, "programs": 100 * ns / wall, "apart": 100 * apart / wall, "runs": runs / (wall / 1e9), "ns": ns / max(1, runs),
            "memory": bench.private_bytes(loader.pid) / 1e6}


@contextlib.contextmanager
def loading(opts, folder, *args):
    loader = subprocess.Popen([f"{bench.BIN}/sonde-mem", "--store", folder, "--bucket", "10s", "--interval", "30s", *args],
                              stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        time.sleep(2 if opts.smoke else 20)  # it reads the kernel's symbols
        yield loader
    finally:
        loader.kill()
        loader.wait()


def measure_all(opts, folder):
    with loading(opts, os.path.join(folder, "faults"), "--comm", "faults") as loader:
        figures = [measure(loader, [(0, 1)], opts.seconds, 1), measure(loader, [(20000, 1)], opts.seconds, 2),
                   measure(loader, [(20000, 1, 2)], opts.seconds, 15),
                   measure(loader, [(20000 // opts.processes, opts.mib)] * opts.processes, 2 * opts.seconds, 20)]
    with loading(opts, os.path.join(folder, "pages"), "--pages", "on") as loader:
        return [*figures, measure(loader, [(100000, 1)], opts.seconds, 2)]


def table(opts, rest, busy, huge, many, pages):
    yield (f"Machine: {bench.machine()}. Date: {time.strftime('%Y-%m-%d')}. Command: `{bench.command()}` ({opts.seconds} s each; load average "
           f"{os.getloadavg()[0]:.0f}, of other work).\n")
    yield "| family mem, % of one core | its BPF programs | runs a second, ns each | loader | to reach, both | programs while any other waits for memory or gets huge pages |\n|---|---|---|---|---|---|"
    for what, m, reach in (("nothing happens", rest, "0.05"), ("20 000 page faults a second", busy, "0.1"),
                           ("the same, and two huge pages a second", huge, ""),
                           (f"{opts.processes} processes of {opts.mib} MiB, each read twice a minute, {20000 // opts.processes} faults a second each", many, ""),
                           ("`--pages`: 100 000 pages a second, and those of the host's other work", pages, "3")):
        yield f"| {what} | {m['programs']:.3f} | {m['runs']:.0f}, {m['ns']:.0f} | {m['loader']:.3f} | {reach} | {m['apart']:.3f} |"
    read = max(0, many["loader"] - busy["loader"]) * 100 / opts.processes / 2
    yield f"| of 100 such processes, each read once a minute: what reading the {opts.processes} took, in proportion |  |  | {read:.3f} | 0.1 |  |"
    yield "\nThe recordings, but for the last one, cover these programs alone: what other work on the host made the programs run for, to leave it out, is in the figures."
    yield f"Private memory of the loader: {rest['memory']:.1f} MB, with those processes {many['memory']:.1f} MB."


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=int, default=15)
    parser.add_argument("--processes", type=int, default=8)
    parser.add_argument("--mib", type=int, default=1024)
    parser.add_argument("--smoke", action="store_true", help="short: only proves that everything runs")
    parser.add_argument("--write", help="put the table between the markers of this file")
    opts = parser.parse_args()
    if opts.smoke:
        opts.seconds, opts.processes, opts.mib = 2, 2, 4
    build()
    stats = ratchet.enable_stats()
    with tempfile.TemporaryDirectory(prefix="sonde-bench-") as folder:
        rest, busy, huge, many, pages = measure_all(opts, folder)
    os.close(stats)
    text = "\n".join(table(opts, rest, busy, huge, many, pages))
    print(text)
    if opts.write:
        bench.put_between(opts.write, "memory", text)


if __name__ == "__main__":
    main()
