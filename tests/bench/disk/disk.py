#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""disk: what family disk takes, and whether its times are those of fio and of biolatency.

    tests/bench/disk/disk.py [--smoke] [--only latency|cost]

latency  fio reads and writes 16 KiB blocks of a loop device directly, while sonde-disk and, where it is installed, biolatency (libbpf-tools) record it: p50 and p99 as
         steps of powers of two. To reach: within one step of both; requests and bytes as /proc/diskstats and fio count them.
cost     the kernel's run time of the programs (BPF_ENABLE_STATS) in windows of a tenth of a second, the least of all windows (as ratchet.py does), over fixed work of fio: direct
         requests of a loop device, reads of a file in the page cache, and reads of a socket. An empty program, measured in the same run, says what the measuring itself takes. To reach: 0.6 us for
         a request, 250 ns for a call on a file, 0 for one on a socket; from these and the loader's CPU time under 2 000 requests and 50 000 calls a second 1 % of a core; 25 MB.
Exit 1 where something is missed (not with --smoke).
"""
import argparse
import contextlib
import glob
import json
import math
import os
import re
import socket
import sqlite3
import subprocess
import sys
import tempfile
import threading
import time

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
import bench  # noqa: E402
import ratchet  # noqa: E402

sys.path[:0] = [os.path.join(bench.ROOT, "tests", "e2e", d) for d in ("", "disk")]
import loops  # noqa: E402

SIZE = 64 << 20
REQUEST = ("disk_start", "disk_insert", "disk_issue", "disk_complete", "disk_merge")


def fio(path, *args):
    said = subprocess.run(["fio", "--name=t", f"--filename={path}", "--output-format=json", "--lat_percentiles=1", "--percentile_list=50:99", *args], capture_output=True, text=True, check=True).stdout
    return json.loads(said[said.index("{"):])["jobs"][0]


def step(us):
    return max(2, int(math.log2(max(us, 1))))


def quantile(hist, share):
    """{lower bound in us: n} -> the step in which that share lies."""
    want, below = share * sum(hist.values()), 0
    for us in sorted(hist):
        below += hist[us]
        if below >= want:
            return step(us)
    raise RuntimeError("nothing was recorded")


def histogram(text):
    """Of biolatency: `usecs : count distribution`, then a line for each range."""
    return {int(m[1]): int(m[2]) for m in re.finditer(r"^\s*(\d+) -> \d+\s*: (\d+)", text, re.M)}


def stored(store, disk, kind):
    said = subprocess.run([f"{bench.BIN}/sonde", "disk", "--json", "--store", store], capture_output=True, text=True, check=True).stdout
    (row,) = [r for r in json.loads(said)["rows"] if r["disk"] == disk]
    return row[f"{kind}s"], row[f"{kind}_bytes"], {h["us"] or 4: h["n"] for h in row[f"{kind}_hist"]}


def latency(how, runtime):
    """(whether all is as it should be, lines)"""
    kind = how.removeprefix("rand")
    with tempfile.TemporaryDirectory() as store, loops.device(SIZE) as (path, _):
        disk = os.path.basename(path)
        with open(path, "wb") as f:
            f.write(b"x" * SIZE)
            f.flush()
            os.fsync(f.fileno())  # nothing of it is written later
        peer = None
        with ratchet.Loader("disk", store, "--bucket", "1s"):
            with contextlib.suppress(FileNotFoundError):
                peer = subprocess.Popen(["biolatency", "-Q", "-d", disk], stdout=subprocess.PIPE, text=True)
                time.sleep(3)
            before = loops.counted(path)
            told = fio(path, f"--rw={how}", "--bs=16k", "--direct=1", "--ioengine=psync", f"--size={SIZE}", "--time_based", f"--runtime={runtime}")[kind]
            after = loops.counted(path)
            theirs = {}
            if peer:
                peer.send_signal(2)
                theirs = histogram(peer.communicate()[0])
        n, size, own = stored(store, disk, kind)
    at = 0 if kind == "read" else 2
    kernel = after[at] - before[at], after[at + 1] - before[at + 1]
    good = (n, size) == kernel and n >= told["total_ios"]
    lines = [f"{how}: {n} requests, {size} bytes; kernel {kernel[0]}, {kernel[1]}; fio {told['total_ios']}"]
    for share, key in ((0.5, "50.000000"), (0.99, "99.000000")):
        steps = {"sonde": quantile(own, share), "fio": step(told["lat_ns"]["percentile"][key] / 1000)}
        if theirs:
            steps["biolatency"] = quantile(theirs, share)
        good = good and max(steps.values()) - min(steps.values()) <= 1
        lines.append(f"  p{100 * share:g}: " + ", ".join(f"{who} {2 ** s} to {2 ** (s + 1)} us" for who, s in steps.items()))
    if not theirs:
        lines.append("  missing: biolatency (libbpf-tools)")
    return good, lines


def each(*names, of):
    """The time of these programs for each run of `of`."""
    def figure(ran):
        runs = sum(r for n, (_, r) in ran.items() if n and n.startswith(of))
        return sum(ns for n, (ns, _) in ran.items() if n and n.startswith(names)) / runs if runs >= ratchet.RUNS_LEAST else None
    return figure


def least(watch, figure):
    found = [v for v in (figure(ran) for ran, _ in watch.windows()) if v is not None]
    if not found:
        raise RuntimeError("too few events in each window: is this host too busy?")
    return min(found)


def empty():
    """ns of an empty program at a system call: what the kernel's measuring takes."""
    peer = subprocess.Popen(["bpftrace", "-e", "tracepoint:syscalls:sys_enter_getppid { }"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    found = []
    try:
        time.sleep(4)
        for _ in range(20):
            before = bench.bpf_state([peer.pid])[0]
            for _ in range(3000):
                os.getppid()
            after = bench.bpf_state([peer.pid])[0]
            found += [(after[i][0] - before[i][0]) / (after[i][1] - before[i][1]) for i in after if i in before and after[i][1] - before[i][1] >= 1000]
    finally:
        peer.kill()
        peer.wait()
    return min(found) if found else 0


def socket_reads(seconds):
    one, two = socket.socketpair()
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        for _ in range(200):
            one.send(b"x")
            os.read(two.fileno(), 1)


def held(store):
    """MB of memory of the loader and of its BPF maps, as it stores them itself."""
    (path,) = glob.glob(f"{store}/*.db")
    with contextlib.closing(sqlite3.connect(path)) as db:
        return sum(row[0] for row in db.execute("SELECT coalesce(max(private_bytes), 0) + coalesce(max(map_bytes), 0) FROM cost_row WHERE program IN ('sonde-disk', 'bpf:disk') GROUP BY program")) / 1e6


def cost(seconds):
    stats = ratchet.enable_stats()
    try:
        base = empty()
        with tempfile.TemporaryDirectory() as store, loops.device(SIZE) as (path, _), tempfile.NamedTemporaryFile(dir="/var/tmp") as file:
            file.write(b"x" * SIZE)
            file.flush()
            with ratchet.Loader("disk", store) as loader:
                with ratchet.Watch(loader) as requests:
                    fio(path, "--rw=randread", "--bs=4k", "--direct=1", "--ioengine=psync", f"--size={SIZE}", "--time_based", f"--runtime={seconds}")
                with ratchet.Watch(loader) as files:
                    fio(file.name, "--rw=randread", "--bs=4k", "--ioengine=psync", f"--size={SIZE}", "--time_based", f"--runtime={seconds}")
                with ratchet.Watch(loader) as sockets:
                    socket_reads(seconds)
                before = loader.look()[1]
                began = time.monotonic()
                load = threading.Thread(target=fio, args=(path, "--rw=randread", "--bs=4k", "--direct=1", "--ioengine=psync", f"--size={SIZE}", "--time_based", f"--runtime={2 * seconds}", "--rate_iops=2000"))
                load.start()
                told = fio(file.name, "--rw=randread", "--bs=4k", "--ioengine=psync", f"--size={SIZE}", "--time_based", f"--runtime={2 * seconds}", "--rate_iops=50000")["read"]
                load.join()
                user = (loader.look()[1] - before) / (time.monotonic() - began) / 1e7
            memory = held(store)
    finally:
        os.close(stats)
    request = least(requests, each(*REQUEST, of="disk_complete"))
    begin = least(files, each("read_begins", of="read_begins"))
    end = least(files, each("calls_end", of="calls_end"))
    idle = least(sockets, each("read_begins", of="read_begins")) + least(sockets, each("calls_end", of="calls_end"))
    figures = {"request, ns (600)": (request, request - 3 * base), "call on a file, ns (250)": (begin + end, begin + end - 2 * base), "call on a socket, ns (0)": (idle, idle - 2 * base)}
    shares = [100 * (2000 * figures["request, ns (600)"][i] + 50000 * figures["call on a file, ns (250)"][i]) / 1e9 for i in (0, 1)]
    lines = [f"an empty program: {base:.0f} ns, which is what the measuring takes"]
    lines += [f"{what}: {whole:.0f}, {net:.0f} without the measuring" for what, (whole, net) in figures.items()]
    lines.append(f"at 2 000 requests and 50 000 calls a second: programs {shares[0]:.2f} % of a core, {shares[1]:.2f} without the measuring; loader {user:.2f} % (at {told['iops']:.0f} calls a second); 1 % in sum")
    lines.append(f"memory: {memory:.1f} MB, with BPF maps (25)")
    nets = [net for _, net in figures.values()]
    return nets[0] <= 600 and nets[1] <= 250 and shares[1] + user <= 1 and memory <= 25, lines


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--smoke", action="store_true", help="that it runs")
    p.add_argument("--only", choices=("latency", "cost"))
    a = p.parse_args()
    good = True
    for part in ("latency", "cost"):
        if a.only in (None, part):
            told = [latency(how, 2 if a.smoke else 10) for how in ("randread", "randwrite")] if part == "latency" else [cost(2 if a.smoke else 8)]
            print("\n".join(line for _, lines in told for line in lines), flush=True)
            good = good and all(x for x, _ in told)
    return 0 if a.smoke or good else 1


if __name__ == "__main__":
    sys.exit(main())
