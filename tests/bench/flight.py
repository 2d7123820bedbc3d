#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""flight: what the flight ring adds to sonded on the busy host of whole.py, how large it is, and what a kept window takes in the store.

    tests/bench/flight.py [--rounds 4] [--seconds 60] [--settle 40] [--warm 120] [--window 630] [--families LIST] [--smoke]
                          [--write docs/BENCHMARKS.md]

The load runs from the beginning to the end. Over it sonded runs without the ring and with it in turn, and once more without it at the
end: each run with the ring is compared with the mean of the two next to it, so that what drifts evenly falls out. Each has a store of its own
and finds the images of the host's programs indexed, as a first run of sonded, which is not measured, has left them. A last run with the ring lasts until it
is full, states how large it was at most, and keeps a whole window (630 s: ten minutes and 30 s).

CPU is that of the cgroup that sonded and its children are in, by the kernel, and the run time of their BPF programs
(kernel.bpf_stats_enabled, whose own reading of the clock is in it). What the interrupts of sampling take outside of the programs is in neither.
"""
import argparse
import os
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time

import always
import bench
import pairs
import whole

sys.path[:0] = [os.path.join(bench.ROOT, "tests", "e2e", d) for d in ("", "lib", "lib/servers")]
from sonded import Sonded, until  # noqa: E402

FAMILIES = whole.ALL + ",logs"
TO_REACH = {"all": "1.5 more"}
MIB = 1 << 20


def sonded(store, families, ring):
    return Sonded(store, "--families", families, "--seal", "no", "--flight", "on" if ring else "off", prefix=always.inside("own"), limit="0")


def indexed(warm, store):
    """A new store that has the indexes of the other one."""
    os.makedirs(store, mode=0o750)
    if warm:
        shutil.copytree(f"{warm}/images", f"{store}/images", symlinks=True)


def run(opts, folder, warm, ring):
    """What one run took while it was looked at."""
    store = os.path.join(folder, "store")
    indexed(warm, store)
    with sonded(store, opts.families, ring) as d:
        time.sleep(opts.settle)
        before = always.Look(d)
        time.sleep(opts.seconds)
        r = always.between(before, always.Look(d))
        r["own"], r["maps"] = whole.memory(d.child.pid)
        r["all"] = r["group"] + r["bpf"]
        missing = [s["name"] for s in d.ask(do="status")["services"] if s["state"] != "running"]
    assert not missing, f"not running: {missing}"
    shutil.rmtree(store)
    print("ring" if ring else "coarse", {k: round(r[k], 2) for k in ("all", "group", "bpf", "own", "maps", "switches")}, file=sys.stderr, flush=True)
    return r


def window(opts, folder, warm):
    """A ring from its begin until it is full, and what is kept of it."""
    store = os.path.join(folder, "store")
    indexed(warm, store)
    largest = 0
    with sonded(store, opts.families, True) as d:
        def flight():
            return d.ask(do="status")["store"]["flight"]
        end = time.monotonic() + opts.settle + opts.window
        while time.monotonic() < end:
            time.sleep(min(5, max(0, end - time.monotonic())))
            largest = max(largest, flight()["bytes"])
        began = time.time()
        done = subprocess.run([f"{bench.BIN}/sonde", "keep", "--last", f"{opts.window}s", "--why", "bench", "--store", store], check=False,
                              capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        until(lambda: flight()["windows"] or "could not be kept" in d.said(), 60, 1)
        took, kept = time.time() - began, flight()
        assert kept["windows"], d.said()
    seconds = (kept["last_to_ns"] - kept["last_from_ns"]) / 1e9
    size = sum(os.path.getsize(e.path) for e in os.scandir(store) if e.name.endswith(".db") and int(e.name.split("-")[1].split(".")[0]) >= 5000)
    shutil.rmtree(store)
    return {"ring": largest, "seconds": seconds, "kept": kept["kept_bytes"], "files": size, "took": took}


def beside(coarse, ring, value):
    """The values of both, and those of the pairs."""
    without, with_ring = [value(r) for r in coarse], [value(r) for r in ring]
    return without, with_ring, [w - (a + b) / 2 for a, w, b in zip(without, with_ring, without[1:])]


def table(opts, coarse, ring, kept):
    rows = []
    for key, name in (("all", "all of sonde, % of one core"), ("group", "of it its processes"), ("bpf", "of it BPF programs"),
                      ("own", "memory, MB"), ("maps", "BPF maps, MB")):
        without, with_ring, added = beside(coarse, ring, lambda r, key=key: r[key])
        rows.append((name, without, with_ring, added, TO_REACH.get(key, "")))
    for name in sorted({n for r in coarse + ring for n in r["parts"]}):
        without, with_ring, added = beside(coarse, ring, lambda r, name=name: r["parts"].get(name, 0))
        if abs(statistics.mean(added)) >= 0.02:
            rows.append((f"- {name}", without, with_ring, added, ""))

    def spread(values):
        return f"{statistics.mean(values):.2f} ({min(values):.2f}-{max(values):.2f})"
    text = [f"Machine: {bench.machine()}. Date: {time.strftime('%Y-%m-%d')}. Command: `{bench.command()}` ({len(ring)} pairs of {opts.seconds:.0f} s, each "
            f"after {opts.settle:.0f} s; families {opts.families.replace(',', ', ')}; {statistics.mean(r['switches'] for r in coarse):.0f} switches a second). "
            "Mean (lowest-highest), of the difference its 95 % interval.", "",
            "| | without the ring | with it | difference | to reach |", "|---|---|---|---|---|",
            *(f"| {name} | {spread(a)} | {spread(b)} | {pairs.interval(c, 2)} | {reach} |" for name, a, b, c, reach in rows)]
    if kept:
        text += [f"| the ring at its largest, MiB | | {kept['ring'] / MIB:.1f} | | 128 |",
                 f"| a kept window of {kept['seconds']:.0f} s, archived, MB | | {kept['files'] / 1e6:.1f} | | 20 |"]
    return "\n".join(text)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=4)
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--settle", type=float, default=40)
    parser.add_argument("--warm", type=float, default=120, help="until the images of the load are indexed")
    parser.add_argument("--window", type=int, default=630, help="seconds of the window that is kept (0: none)")
    parser.add_argument("--rate", type=int, default=25, help="requests a second in each container")
    parser.add_argument("--families", default=FAMILIES)
    parser.add_argument("--smoke", action="store_true")
    parser.add_argument("--write", help="put the table between the markers of this file")
    opts = parser.parse_args()
    if os.geteuid() != 0:
        print("missing: root")
        return 77
    if opts.smoke:
        opts.rounds, opts.seconds, opts.settle, opts.warm, opts.window = 1, 2, 5, 5, 30
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    folder, groups = tempfile.mkdtemp(prefix="sonde-bench-"), always.Groups()
    burner, stats = always.build(), bench.bpf_stats(1)
    try:
        groups.make("own")
        whole_time = argparse.Namespace(rate=opts.rate, settle=opts.warm + opts.settle + opts.window + 600,
                                        seconds=(2 * opts.rounds + 1) * (opts.settle + opts.seconds + 60))
        with always.load(groups, burner, whole_time):
            warm = os.path.join(folder, "warm")
            indexed(None, warm)
            with sonded(warm, opts.families, True):
                time.sleep(opts.warm)
            coarse, ring = [run(opts, folder, warm, False)], []
            for _ in range(opts.rounds):
                ring.append(run(opts, folder, warm, True))
                coarse.append(run(opts, folder, warm, False))
            kept = window(opts, folder, warm) if opts.window else None
    finally:
        bench.bpf_stats(stats)
        groups.close()
        shutil.rmtree(folder, ignore_errors=True)
    text = table(opts, coarse, ring, kept)
    print(text)
    if kept:
        print(f"kept in {kept['took']:.0f} s; sonde says {kept['kept'] / 1e6:.1f} MB", file=sys.stderr)
    if opts.write:
        bench.put_between(opts.write, "flight", text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
