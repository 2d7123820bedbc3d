#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""goheap: what it costs to have the heap profile of a Go program, beside asking the program for /debug/pprof/heap.

    tests/bench/goheap.py [--rounds 10] [--seconds 5] [--smoke] [--write docs/BENCHMARKS.md]

1. One collection of a program with 10 000 and with 100 000 known buckets, and one fetch from the same program: system
   calls, bytes, time, CPU of the reader and of the program itself (its own CPU clock).
2. 50 Go processes, each read once a minute: CPU of sonde-goheap, beside its own with no such process, and of it and its
   sonde-maps.
3. Answers a second of an HTTP server at full load, and its CPU for each: alone, read each second by sonde-goheap, fetched
   each second. The three take turns; the difference to "alone" of the same round, its mean and 95 % confidence interval.
"""
import argparse
import http.client
import json
import math
import os
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import threading
import time

import bench

SERVER = os.path.join(bench.MIX, "heapserver")
T95 = {1: 12.706, 2: 4.303, 3: 3.182, 4: 2.776, 5: 2.571, 6: 2.447, 7: 2.365, 8: 2.306, 9: 2.262, 14: 2.145, 19: 2.093}


def build():
    os.makedirs(bench.MIX, exist_ok=True)
    env = dict(os.environ, GO111MODULE="off", CGO_ENABLED="0")
    subprocess.run(["go", "build", "-o", SERVER, f"{bench.ROOT}/tests/bench/mix/heapserver/main.go"], check=True, env=env)


class Server:
    def __init__(self, sites):
        self.process = subprocess.Popen([SERVER, "-sites", str(sites)], stdout=subprocess.PIPE, text=True)
        self.pid, self.port = self.process.pid, int(self.process.stdout.readline())

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait()
        self.process.stdout.close()

    def fetch(self):
        """Bytes of its own heap profile."""
        c = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        c.request("GET", "/debug/pprof/heap")
        size = len(c.getresponse().read())
        c.close()
        return size

    def load(self, seconds):
        """At full load: answers a second, and the server's own CPU for each, in us."""
        before = bench.cpu_ns(self.pid)
        n = int(subprocess.run([SERVER, "-to", str(self.port), "-seconds", str(seconds)], check=True, capture_output=True,
                               text=True).stdout)
        return n / seconds, (bench.cpu_ns(self.pid) - before) / 1e3 / n


# ---- 1: a collection beside a fetch ----

class Reader:
    """tests/goheap_read: collections without anything else."""

    def __init__(self, server, folder):
        index = os.path.join(folder, "heapserver.index")
        subprocess.run([os.path.join(bench.BIN, "sonde-index"), SERVER, "-o", index], check=True, capture_output=True)
        self.process = subprocess.Popen([os.path.join(bench.BUILD, "tests", "goheap_read"), str(server.pid), index],
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
                                        env=dict(os.environ, QUIET="1"))

    def collect(self):
        self.process.stdin.write("\n")
        self.process.stdin.flush()
        return json.loads(self.process.stdout.readline())

    def memory_mb(self):
        return bench.private_bytes(self.process.pid) / 1e6

    def close(self):
        self.process.stdin.close()
        self.process.wait()
        self.process.stdout.close()


def collections(opts, server, folder):
    reader = Reader(server, folder)
    first = reader.collect()
    rows = []
    for _ in range(opts.collections):
        before = bench.cpu_ns(server.pid)
        got = reader.collect()
        rows.append({"calls": got["reads"], "bytes": got["read_bytes"], "cpu ms": got["cpu_ms"],
                     "program ms": (bench.cpu_ns(server.pid) - before) / 1e6})
    memory = reader.memory_mb()
    reader.close()
    return {"buckets": sum(first["counts"]), "first calls": first["reads"], "first ms": first["cpu_ms"], "memory": memory}, rows


def fetches(opts, server):
    rows = []
    for _ in range(opts.fetches):
        before, began = bench.cpu_ns(server.pid), time.monotonic()
        size = server.fetch()
        rows.append({"bytes": size, "ms": (time.monotonic() - began) * 1e3, "program ms": (bench.cpu_ns(server.pid) - before) / 1e6})
    return rows


def measure_one(opts, sites, folder):
    with Server(sites) as server:
        about, read = collections(opts, server, folder)
        return {"about": about, "read": read, "fetch": fetches(opts, server)}


# ---- 2: many processes ----

def loader(store, *args):
    return subprocess.Popen([os.path.join(bench.BIN, "sonde-goheap"), "--store", store, "--comm", "heapserver", *args],
                            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def ended(child):
    child.send_signal(signal.SIGINT)
    child.wait(60)


def measure_many(opts, folder, processes):
    servers = [Server(100) for _ in range(processes)]
    child = loader(os.path.join(folder, f"many-{processes}"), "--interval", f"{opts.interval}s")
    try:
        time.sleep(opts.interval * 1.5 if processes else 5)  # it reads at 0, 1, 3, 7 ... s at first
        all_of_it = bench.tree(child.pid)
        before, began = {p: bench.cpu_ns(p) for p in all_of_it}, time.monotonic()
        time.sleep(opts.interval * 2)
        spent = {p: max(0, bench.cpu_ns(p) - before[p]) for p in all_of_it}  # an index that was being made is start-up
        wall = (time.monotonic() - began) * 1e9
    finally:
        ended(child)
        for s in servers:
            s.__exit__()
    return {"loader": 100 * spent[child.pid] / wall, "with maps": 100 * sum(spent.values()) / wall}


# ---- 3: the program's throughput ----

class Fetching:
    def __init__(self, server):
        self.server, self.over = server, threading.Event()
        self.thread = threading.Thread(target=self.run)
        self.thread.start()

    def run(self):
        while not self.over.wait(1):
            self.server.fetch()

    def end(self):
        self.over.set()
        self.thread.join()


def measure_load(opts, folder):
    rows = {"alone": [], "sonde": [], "fetch": []}
    with Server(opts.sites) as server:
        server.load(opts.seconds)  # warm
        for i in range(opts.rounds):
            order = list(rows)[i % 3:] + list(rows)[:i % 3]
            for kind in order:
                child = loader(os.path.join(folder, "load"), "--interval", "1s") if kind == "sonde" else None
                if child:
                    time.sleep(2)  # it is begun
                fetching = Fetching(server) if kind == "fetch" else None
                rows[kind].append(server.load(opts.seconds))
                if child:
                    ended(child)
                if fetching:
                    fetching.end()
            print({k: [round(x, 1) for x in v[-1]] for k, v in rows.items()}, file=sys.stderr, flush=True)
    return rows


def difference(load, kind, which):
    """Percent more than alone in the same round: mean and half of the confidence interval."""
    d = [100 * (b[which] - a[which]) / a[which] for a, b in zip(load["alone"], load[kind])]
    n = len(d)
    if n < 2:
        return d[0], math.inf
    t = T95[max(k for k in T95 if k <= n - 1)]
    return statistics.mean(d), t * statistics.stdev(d) / math.sqrt(n)


def load_rows(opts, load):
    def row(what, kind, which, reach):
        mean, half = difference(load, kind, which)
        return f"| {what}, % more | {mean:+.2f} ± {half:.2f} | {reach} |"

    answers, cpu = (statistics.mean(r[i] for r in load["alone"]) for i in (0, 1))
    return [f"| a server's answers a second, alone ({opts.rounds} rounds of {opts.seconds} s) | {answers:.0f} | |",
            row("the same, read by sonde-goheap each second", "sonde", 0, "0 within the interval"),
            row("the same, its /debug/pprof/heap fetched each second", "fetch", 0, ""),
            f"| the server's CPU for one answer, alone, us | {cpu:.1f} | |",
            row("the same, read by sonde-goheap each second", "sonde", 1, "0 within the interval"),
            row("the same, its /debug/pprof/heap fetched each second", "fetch", 1, "")]


# ---- the table ----

def collection_rows(name, m):
    s, a = bench.spread, m["about"]
    return [f"| {name}: calls | {s(m['read'], 'calls')} | 1 request |",
            f"| {name}: bytes | {s(m['read'], 'bytes')} | {s(m['fetch'], 'bytes')} |",
            f"| {name}: CPU of who asks, or time, ms | {s(m['read'], 'cpu ms')} | {s(m['fetch'], 'ms')} |",
            f"| {name}: CPU of the program, ms | {s(m['read'], 'program ms')} | {s(m['fetch'], 'program ms')} |",
            f"| {name}: the first walk of {a['buckets']}: calls, ms; memory of the reader, MB | {a['first calls']}, "
            f"{a['first ms']:.0f}; {a['memory']:.1f} | - |"]


def table(opts, few, most, none, many, load):
    return "\n".join([
        f"Machine: {bench.machine()}. Date: {time.strftime('%Y-%m-%d')}. Command: `{bench.command()}` ({opts.collections} collections "
        f"and {opts.fetches} fetches; median, then lowest-highest).", "",
        "| one profile of one program at rest | sonde-goheap, known buckets | /debug/pprof/heap |", "|---|---|---|",
        *collection_rows(f"{opts.sites} buckets", few), *collection_rows(f"{opts.most} buckets", most), "",
        "| other | value | to reach |", "|---|---|---|",
        f"| {opts.sites} buckets: calls, CPU ms | {max(r['calls'] for r in few['read'])}, "
        f"{statistics.median(r['cpu ms'] for r in few['read']):.1f} | 32, 10 |",
        f"| {opts.processes} processes each {opts.interval} s: sonde-goheap, % of one core, more than with none of them | "
        f"{many['loader'] - none['loader']:.3f} | 0.1 |",
        f"| the same, all of it; with none of them | {many['loader']:.3f}; {none['loader']:.3f} | |",
        f"| the same with its sonde-maps, which follows the whole host | {many['with maps']:.3f} | |",
        *load_rows(opts, load)])


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("--seconds", type=float, default=5)
    parser.add_argument("--smoke", action="store_true")
    parser.add_argument("--write", help="put the table between the markers of this file")
    opts = parser.parse_args()
    opts.sites, opts.most, opts.processes, opts.interval, opts.collections, opts.fetches = 10000, 99000, 50, 60, 25, 10
    if opts.smoke:
        opts.seconds, opts.rounds = 0.5, 2
        opts.sites, opts.most, opts.processes, opts.interval, opts.collections, opts.fetches = 500, 2000, 4, 1, 3, 2
    if os.geteuid() != 0 or not shutil.which("go"):
        print("missing: root, or go")
        return 77
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    folder = tempfile.mkdtemp(prefix="sonde-bench-")
    try:
        build()
        text = table(opts, measure_one(opts, opts.sites, folder), measure_one(opts, opts.most, folder),
                     measure_many(opts, folder, 0), measure_many(opts, folder, opts.processes), measure_load(opts, folder))
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    print(text)
    if opts.write:
        bench.put_between(opts.write, "goheap", text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
