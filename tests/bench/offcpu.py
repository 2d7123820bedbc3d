#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""offcpu: what watching every switch costs, beside those who watch it too, in the same run.

    tests/bench/offcpu.py [--seconds 10] [--rounds 3] [--smoke] [--load work|fast|cold|pairs] [--offcputime FILE]
                         [--write docs/BENCHMARKS.md]

The load (mix/pingpong.c) hands a byte back and forth on every CPU: with work between, as much as makes 50 000 switches a
second on each when nobody watches, and as fast as it can, the worst there is. In turns, round by round: nobody watches;
sonde-offcpu without stacks, with the defaults, and with a stack of each switch; `offcputime` (of libbpf-tools); `perf sched
record`.

1. Throughput lost against nobody: the load's own count of switches a second.
2. CPU seconds of the recorder's processes while the load ran, for each million switches; apart from that, those of its start
   (two seconds of it: sonde begins with no index of any file) and of its end. And the bytes that it leaves.
3. ns a switch in the recorder's BPF programs, all of them together, and ns a run of sonde's two that work here: the kernel's
   count (kernel.bpf_stats_enabled, which adds its own reading of the clock to each run), under the same load once more, for a
   shorter time. A stack of each switch means one of who leaves at sched_switch and one of who wakes it at sched_waking.
4. The same two with a stack of each switch while both CPUs are busy with the mix of bench.py: switches are rare, caches cold.
5. Throughput lost with work between the switches and sonde's defaults, by pairs.py: the rounds of 1. do not tell a few percent.
"""
import argparse
import json
import os
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time

import bench
import pairs

LOAD = os.path.join(bench.MIX, "pingpong")
PACE = 50000  # switches a second on each CPU
START_S = 2
LOADS = {"work": ("work between switches", {"no stacks": "400", "defaults": "loss 5 %"}),
         "fast": ("as fast as it can", {"no stacks": "400", "each a stack": "4000"})}
SONDE = {"no stacks": ("--stack-rate", "0"), "defaults": (), "each a stack": ("--stack-rate", "1000000")}


def build():
    os.makedirs(bench.MIX, exist_ok=True)
    src = os.path.join(bench.ROOT, "tests", "bench", "mix", "pingpong.c")
    subprocess.run(["gcc", "-O2", "-o", LOAD, src], check=True)


def load(seconds, loops):
    """Switches a second, as the load counts them."""
    n, ns = map(int, subprocess.run([LOAD, str(seconds), str(loops)], capture_output=True, text=True, check=True).stdout.split())
    return n / (ns / 1e9)


def paced():
    """Loops of work with which nobody watching makes PACE switches on each CPU: what a switch takes grows with them evenly."""
    some = 5000
    each = [statistics.median(os.cpu_count() / load(1, loops) for _ in range(3)) for loops in (0, some)]
    return max(0, round((1 / PACE - each[0]) / (each[1] - each[0]) * some))


def cpu_s(pid):
    """CPU seconds of a process and all that descend from it, and of those that they waited for."""
    total = 0
    for p in bench.tree(pid):
        total += bench.cpu_ns(p) / 1e9
        try:
            with open(f"/proc/{p}/stat", "rb") as f:
                total += sum(map(int, f.read().rsplit(b")", 1)[1].split()[13:15])) / bench.TICK
        except OSError:
            pass
    return total


def ended(child):
    """Its CPU seconds, with those of its children that it waited for."""
    child.send_signal(signal.SIGINT)
    _, _, usage = os.wait4(child.pid, 0)
    child.returncode = 0
    return usage.ru_utime + usage.ru_stime


def ran_since(pids, before):
    """{id: (ns, runs)} of their programs, since bench.bpf_state said `before` of them."""
    return {prog: (ns - before.get(prog, (0, 0))[0], runs - before.get(prog, (0, 0))[1])
            for prog, (ns, runs) in bench.bpf_state(pids)[0].items()}


PROGRAMS = {"offcpu_switch": "switch ns", "offcpu_waking": "waking ns"}


def by_program(ran):
    """ns a run of those that have a name here. {id: (ns, runs)} -> {what: ns}"""
    said = subprocess.run(["bpftool", "prog", "show", "-j"], capture_output=True, text=True, check=True).stdout
    names = {p["id"]: p.get("name") for p in json.loads(said)}
    return {PROGRAMS[names[i]]: ns / runs for i, (ns, runs) in ran.items() if names.get(i) in PROGRAMS and runs}


def bpf_ns(child, loops):
    """ns a switch in all programs that the recorder holds, and by_program; {}: it holds none."""
    pids = bench.tree(child.pid)
    stats = bench.bpf_stats(1)
    try:
        before = bench.bpf_state(pids)[0]
        switches = 2 * load(2, loops)
        ran = ran_since(pids, before)
        return ran and {"ns": sum(ns for ns, _ in ran.values()) / switches, **by_program(ran)}
    finally:
        bench.bpf_stats(stats)


def watched(child, seconds, loops):
    """What the load did meanwhile, and what it took to watch."""
    start = cpu_s(child.pid)
    rate = load(seconds, loops)
    meanwhile = cpu_s(child.pid) - start
    ns = bpf_ns(child, loops)
    before = cpu_s(child.pid)
    out = {"rate": rate, "cpu s": meanwhile / (rate * seconds) * 1e6, "start s": start, "end s": ended(child) - before,
           "switches": rate * (seconds + 2)}
    return out | ns


def start_sonde(store, args):
    """(child, descriptor of its progress), at work for START_S."""
    shutil.rmtree(store, ignore_errors=True)
    read_fd, write_fd = os.pipe()
    child = subprocess.Popen([f"{bench.BIN}/sonde-offcpu", "--store", store, "--progress-fd", str(write_fd), *args],
                             pass_fds=[write_fd], stderr=subprocess.DEVNULL, stdin=subprocess.DEVNULL)
    os.close(write_fd)
    bench.ready(child, read_fd, "ready")
    time.sleep(START_S)
    return child, read_fd


def sonde(folder, seconds, loops, args):
    store = folder + "/store"
    child, read_fd = start_sonde(store, args)
    out = watched(child, seconds, loops)
    done = next(e for e in bench.drain(read_fd) if e.get("event") == "done")
    os.close(read_fd)
    return dict(out, bytes=bench.store_bytes(store) / out["switches"] * 1e6, lost=done["lost_total"] / max(1, done["seen"]))


def peer(folder, seconds, loops, argv, out):
    """One that says nothing when it is ready."""
    with open(f"{folder}/peer.out", "wb") as f:
        child = subprocess.Popen(argv, stdout=f, stderr=subprocess.DEVNULL, stdin=subprocess.DEVNULL)
        time.sleep(START_S)
        if child.poll() is not None:
            return None
        did = watched(child, seconds, loops)
    return dict(did, bytes=os.path.getsize(out) / did["switches"] * 1e6)


def offcputime(given):
    return given or next((p for p in map(shutil.which, ("offcputime", "offcputime-bpfcc")) if p), None)


def measure(opts, folder, loops):
    rows = {name: [] for name in ("no recorder", *SONDE, "offcputime", "perf sched record")}
    for _ in range(opts.rounds):
        rows["no recorder"].append({"rate": load(opts.seconds, loops)})
        for name, args in SONDE.items():
            rows[name].append(sonde(folder, opts.seconds, loops, args))
        tool = offcputime(opts.offcputime)
        rows["offcputime"].append(tool and peer(folder, opts.seconds, loops, [tool], f"{folder}/peer.out"))
        data = f"{folder}/perf.data"
        rows["perf sched record"].append(shutil.which("perf") and peer(
            folder, opts.seconds, loops, ["perf", "sched", "record", "-a", "-o", data], data))
        for name, all_of_it in rows.items():
            if all_of_it[-1]:
                print(name, {k: round(v, 4) for k, v in all_of_it[-1].items()}, file=sys.stderr, flush=True)
    return {name: [r for r in some if r] for name, some in rows.items()}


def cold(opts, folder):
    """What a stack costs where switches are rare."""
    rows = []
    with bench.Mix(bench.build_mix(), 86400):
        for _ in range(opts.rounds):
            child, read_fd = start_sonde(folder + "/store", SONDE["each a stack"])
            pids = bench.tree(child.pid)
            stats = bench.bpf_stats(1)
            before, began = bench.bpf_state(pids)[0], time.monotonic()
            time.sleep(opts.seconds)
            ran, took = ran_since(pids, before), time.monotonic() - began
            bench.bpf_stats(stats)
            rows.append(by_program(ran) | {"rate": max(runs for _, runs in ran.values()) / took})
            ended(child)
            os.close(read_fd)
    s = bench.spread
    return "\n".join(["", "| both CPUs busy with the mix, a stack of each switch | us a run | to reach |", "|---|---|---|",
                      f"| at sched_switch, of {s(rows, 'rate')} a second | {s([{'us': r['switch ns'] / 1000} for r in rows], 'us')} | 12 |",
                      f"| at sched_waking | {s([{'us': r['waking ns'] / 1000} for r in rows], 'us')} | |"])


def paired(opts, folder):
    """What the defaults take from a load that works between its switches."""
    loops = paced()

    def watched():
        child, read_fd = start_sonde(folder + "/store", SONDE["defaults"])
        rate = load(opts.seconds, loops)
        ended(child)
        os.close(read_fd)
        time.sleep(1)  # the kernel takes its maps away meanwhile
        return rate
    found = pairs.ask(opts.rounds, lambda: load(opts.seconds, loops), watched)
    s = bench.spread
    return "\n".join(["", "| work between switches, in pairs | switches a second | lost, % (mean, 95 % interval) | to reach |", "|---|---|---|---|",
                      f"| no recorder | {s(found, 'no recorder')} | - | - |", f"| sonde, defaults | {s(found, 'sonde')} | {pairs.lost(found)} | 5 |"])


def lost(rows, name):
    """Each round against nobody's of the same round."""
    values = sorted(100 * (1 - r["rate"] / base["rate"]) for r, base in zip(rows[name], rows["no recorder"]))
    return f"{statistics.median(values):.1f} ({values[0]:.1f}-{values[-1]:.1f})" if values else "-"


def table(title, rows, reach):
    s = bench.spread
    out = ["", f"| {title} | switches a second | throughput lost, % | ns a switch in BPF | ns a run at sched_switch, at sched_waking "
               "| to reach | CPU s a million | CPU s of the start, the end | bytes a million |", "|---|---|---|---|---|---|---|---|---|"]
    for name, some in rows.items():
        out.append(f"| {'sonde, ' + name if name in SONDE else name} | {s(some, 'rate')} | "
                   f"{lost(rows, name) if name != 'no recorder' else '-'} | {s(some, 'ns')} | "
                   f"{s(some, 'switch ns')}, {s(some, 'waking ns')} | {reach.get(name, '-')} | "
                   f"{s(some, 'cpu s')} | {s(some, 'start s')}, {s(some, 'end s')} | {s(some, 'bytes')} |")
    return "\n".join(out)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=int, default=10)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--load", action="append", choices=[*LOADS, "cold", "pairs"], help="only this one")
    parser.add_argument("--smoke", action="store_true")
    parser.add_argument("--offcputime", help="where it is, if not in the path")
    parser.add_argument("--write", help="put the table between the markers of this file")
    opts = parser.parse_args()
    if opts.smoke:
        opts.seconds, opts.rounds = 1, 1
    if os.geteuid() != 0:
        print("missing: root")
        return 77
    folder = tempfile.mkdtemp(prefix="sonde-bench-")
    try:
        build()
        for kind in opts.load or [*LOADS, "cold", "pairs"]:
            if kind in ("cold", "pairs"):
                figures = (cold if kind == "cold" else paired)(opts, folder)
            else:
                figures = table(LOADS[kind][0], measure(opts, folder, paced() if kind == "work" else 0), LOADS[kind][1])
            text = (f"Machine: {bench.machine()}. Date: {time.strftime('%Y-%m-%d')}. Command: `{bench.command()}` "
                    f"({opts.rounds} rounds of {opts.seconds} s, taking turns; median, then lowest-highest).\n"
                    + figures)
            print(text)
            if opts.write:
                bench.put_between(opts.write, f"offcpu-{kind}", text)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
