#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""readers: what it costs to look at one profile, beside those who do it otherwise, on the same stacks.

    tests/bench/readers.py [--seconds 20] [--rounds 5] [--smoke] [--write docs/BENCHMARKS.md]

`perf record -g` records a program with ever other stacks; `perf script` gives them to `sonde import`, and `sonde export pprof`
to Go. So all three hold the same samples, which is looked at first. Then each answers from its own file, taking turns: which
functions, and sonde its pages too. CPU time (user and system, with what was started), wall
time and peak memory of one process.
"""
import argparse
import json
import os
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

import bench

TRIES = 3
SONDE = os.path.join(bench.BUILD, "bin", "sonde")


def run(argv, **kw):
    return subprocess.run([str(a) for a in argv], check=True, stdin=subprocess.DEVNULL, stderr=subprocess.DEVNULL, **kw)


def prepare(folder, seconds):
    """perf.data, a store and a pprof file of the same samples; where the time ends."""
    chain = f"{folder}/chain"
    run(["gcc", "-O2", "-fno-omit-frame-pointer", "-o", chain, os.path.join(bench.ROOT, "tests", "bench", "mix", "chain.c")])
    for attempt in range(TRIES):  # perf 6.1 aborts where BPF programs come and go, and on a file with an odd build-id
        try:
            run(["perf", "record", "--no-bpf-event", "-B", "-N", "-e", "cpu-clock", "-F", "1999", "-g", "-o", f"{folder}/perf.data", chain, seconds, 40,
                 "varied"], stdout=subprocess.DEVNULL)
            with open(f"{folder}/x.perf", "w") as out:
                run(["perf", "script", "-i", f"{folder}/perf.data"], stdout=out)
            break
        except subprocess.CalledProcessError:
            if attempt == TRIES - 1:
                raise
    run([SONDE, "import", f"{folder}/x.perf", "--store", f"{folder}/store"], stdout=subprocess.DEVNULL)
    run([SONDE, "export", "pprof", "-q", "--store", f"{folder}/store", "-o", f"{folder}/x.pb.gz"], stdout=subprocess.DEVNULL)


def measure(argv):
    t0 = time.monotonic()
    child = subprocess.Popen([str(a) for a in argv], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, stdin=subprocess.DEVNULL)
    _, status, usage = os.wait4(child.pid, 0)
    assert status == 0, argv
    return {"cpu": usage.ru_utime + usage.ru_stime, "wall": time.monotonic() - t0, "peak": usage.ru_maxrss / 1024}


def shares(folder):
    """What each says of the leaf, in percent; the samples."""
    out = {}
    text = run(["perf", "report", "--stdio", "--no-children", "-g", "none", "-i", f"{folder}/perf.data"], stdout=subprocess.PIPE).stdout.decode()
    out["perf"] = float(re.search(r"([\d.]+)%.*\] leaf\b", text).group(1))
    text = run([SONDE, "stacks", "--json", "--store", f"{folder}/store"], stdout=subprocess.PIPE).stdout.decode()
    told = json.loads(text)
    out["sonde"] = next(100 * r["self_ns"] / told["cpu_ns"] for r in told["rows"] if r["function"] == "leaf")
    text = run(["go", "tool", "pprof", "-top", f"{folder}/x.pb.gz"], stdout=subprocess.PIPE).stdout.decode()
    out["pprof"] = float(re.search(r"([\d.]+)% +[\d.]+% +\S+ +[\d.]+% +leaf\b", text).group(1))
    return out


def table(opts, folder):
    same = shares(folder)
    assert max(same.values()) - min(same.values()) < 0.5, same
    questions = [
        ("perf report --stdio", ["perf", "report", "--stdio", "--no-children", "-i", f"{folder}/perf.data"]),
        ("go tool pprof -top", ["go", "tool", "pprof", "-top", f"{folder}/x.pb.gz"]),
        ("sonde stacks", [SONDE, "stacks", "-q", "--store", f"{folder}/store"]),
        ("go tool pprof -svg, where dot is there", ["go", "tool", "pprof", "-svg", "-output", f"{folder}/p.svg", f"{folder}/x.pb.gz"]),
        ("sonde flame -o x.html", [SONDE, "flame", "-q", "--store", f"{folder}/store", "-o", f"{folder}/x.html"]),
        ("sonde report -o x.html", [SONDE, "report", "-q", "--store", f"{folder}/store", "-o", f"{folder}/r.html"]),
    ]
    if not shutil.which("dot"):
        questions = [q for q in questions if "-svg" not in q[1]]
    rows = {title: [] for title, _ in questions}
    for _ in range(opts.rounds):
        for title, argv in questions:
            rows[title].append(measure(argv))
    samples = run([SONDE, "sql", "--csv", "select sum(samples) from cpu_samples", "--store", f"{folder}/store"],
                  stdout=subprocess.PIPE).stdout.decode().split()[-1]
    lines = [f"Machine: {bench.machine()}. Date: {time.strftime('%Y-%m-%d')}. Command: `{bench.command()}` "
             f"({samples} samples; of {opts.rounds} rounds, taking turns, the median, then lowest-highest). The leaf's share: "
             + ", ".join(f"{k} {v:.2f} %" for k, v in same.items()) + ".", "",
             "| question | CPU ms | wall ms | peak MB |", "|---|---|---|---|"]
    for title, got in rows.items():
        cells = []
        for key, scale in (("cpu", 1000), ("wall", 1000), ("peak", 1)):
            v = sorted(r[key] * scale for r in got)
            cells.append(f"{statistics.median(v):.0f} ({v[0]:.0f}-{v[-1]:.0f})")
        lines.append(f"| `{title}` | {' | '.join(cells)} |")
    return "\n".join(lines)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=int, default=20)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--smoke", action="store_true")
    parser.add_argument("--write", help="put the table between the markers of this file")
    opts = parser.parse_args()
    if opts.smoke:
        opts.seconds, opts.rounds = 2, 2
    missing = [p for p in ("perf", "go", "gcc") if not shutil.which(p)]
    if missing:
        print("missing: " + ", ".join(missing))
        return 77
    folder = tempfile.mkdtemp(prefix="sonde-readers-")
    try:
        try:
            prepare(folder, opts.seconds)
        except subprocess.CalledProcessError as e:
            print(f"missing: a perf that reads what it recorded: {e}")
            return 77
        text = table(opts, folder)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    print(text)
    if opts.write:
        bench.put_between(opts.write, "readers", text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
