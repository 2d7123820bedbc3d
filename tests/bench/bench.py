#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""bench: what a capture costs, beside perf and bpftrace in the same run, and how fast the store answers.

    tests/bench/bench.py [--seconds 60] [--rounds 3] [--smoke] [--start] [--write docs/BENCHMARKS.md]

Both CPUs are kept busy by the mix (C recursion, Python recursion, a Go HTTP server with its clients). The recorders
take turns, round by round, each over the same length. CPU is what the kernel's own accounting says of the processes
(utime + stime, children waited for included); memory is smaps_rollup's private part; BPF figures are the kernel's (fdinfo), with
kernel.bpf_stats_enabled on for all of them alike. --smoke: one short round that only proves that everything runs.
--start: the start alone, cold and warm: when the first sample is stored, and what all processes took until then.
"""
import argparse
import contextlib
import glob
import json
import os
import platform
import shutil
import signal
import sqlite3
import statistics
import subprocess
import sys
import tempfile
import time

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
BUILD = os.path.join(ROOT, os.environ.get("B", "build"))
BIN = os.path.join(BUILD, "bin")
TICK = os.sysconf("SC_CLK_TCK")
MIX = os.path.join(BUILD, "tests", "bench")


def build_mix():
    os.makedirs(MIX, exist_ok=True)
    src = os.path.join(ROOT, "tests", "bench", "mix")
    subprocess.run(["gcc", "-O2", "-fno-optimize-sibling-calls", "-o", f"{MIX}/recurse",
                    f"{src}/recurse.c"], check=True)
    mix = [[f"{MIX}/recurse"], [sys.executable, f"{src}/recurse.py"]]
    if shutil.which("go"):
        env = dict(os.environ, GO111MODULE="off", CGO_ENABLED="0")
        subprocess.run(["go", "build", "-o", f"{MIX}/server", f"{src}/server/main.go"], check=True, env=env)
        mix.append([f"{MIX}/server"])
    return mix


class Mix:
    def __init__(self, mix, seconds):
        self.children = [subprocess.Popen(m + [str(seconds)], stdout=subprocess.DEVNULL) for m in mix]

    def __enter__(self):
        time.sleep(1)
        return self

    def __exit__(self, *_):
        for child in self.children:
            child.kill()
            child.wait()


def stat_ns(pid):
    """utime + stime of a process and of the children it has waited for, in ns."""
    with open(f"/proc/{pid}/stat", "rb") as f:
        fields = f.read().rsplit(b")", 1)[1].split()
    return sum(int(v) for v in fields[11:15]) * 1_000_000_000 // TICK


def tree(pid):
    """The process and all that descend from it."""
    out, todo = [], [pid]
    while todo:
        p = todo.pop()
        out.append(p)
        for path in glob.glob(f"/proc/{p}/task/*/children"):
            try:
                with open(path, encoding="ascii") as f:
                    todo += [int(c) for c in f.read().split()]
            except OSError:
                pass
    return out


def cpu_ns(pid):
    """The process's own CPU clock: exact, where /proc counts ticks. 0: it has ended."""
    try:
        return time.clock_gettime_ns((~pid << 3) | 2)
    except OSError:
        return 0


def private_bytes(pid):
    """What is this process's own. Pages of files that it maps shared (MAP_SHARED) are page cache, given back when memory is
    short, whoever else maps them or not: they do not count, for none of the recorders."""
    total, shared = 0, False
    with open(f"/proc/{pid}/smaps", encoding="utf-8", errors="replace") as f:
        for line in f:
            word = line.split(None, 2)
            if not word[0].endswith(":"):
                shared = word[1][3] == "s"
            elif word[0] in ("Private_Clean:", "Private_Dirty:") and not shared:
                total += int(word[1]) * 1024
    return total


def tree_usage(pid):
    cpu = memory = 0
    for p in tree(pid):
        try:
            cpu += stat_ns(p)
            memory += private_bytes(p)
        except OSError:
            pass
    return cpu, memory


def bpf_state(pids):
    """(programs: {id: (ns, runs)}, bytes of maps) that these processes hold: what the kernel says of their descriptors."""
    progs, maps = {}, {}
    for path in [p for pid in pids for p in glob.glob(f"/proc/{pid}/fdinfo/*")]:
        try:
            with open(path, encoding="ascii", errors="replace") as f:
                info = dict(line.split(":", 1) for line in f if ":" in line)
        except OSError:
            continue
        number = {k: int(v) for k, v in info.items() if v.strip().isdigit()}
        if "run_time_ns" in number:
            progs[number["prog_id"]] = (number["run_time_ns"], number["run_cnt"])
        elif "map_id" in number:
            maps[number["map_id"]] = number.get("memlock", 0)
    return progs, sum(maps.values())


def bpf_stats(on):
    path = "/proc/sys/kernel/bpf_stats_enabled"
    with open(path, encoding="ascii") as f:
        before = f.read().strip()
    with open(path, "w", encoding="ascii") as f:
        f.write(str(on))
    return before


def ready(child, fd, event, timeout=30):
    """Read the loader's progress until `event`; returns it and what came with it."""
    buffer, end = b"", time.monotonic() + timeout
    while time.monotonic() < end:
        data = os.read(fd, 65536)
        if not data:
            raise RuntimeError(f"sonde-cpu ended early ({child.poll()})")
        *lines, buffer = (buffer + data).split(b"\n")
        for line in lines:
            e = json.loads(line)
            if e.get("event") == event:
                return e
    raise RuntimeError(f"no '{event}' within {timeout} s")


def drain(fd):
    data = b""
    while True:
        more = os.read(fd, 65536)
        if not more:
            return [json.loads(l) for l in data.split(b"\n") if l.startswith(b"{")]
        data += more


def store_bytes(folder):
    return sum(os.path.getsize(p) for p in glob.glob(f"{folder}/*.db*"))


def start_sonde(folder, *args):
    read_fd, write_fd = os.pipe()
    child = subprocess.Popen([f"{BIN}/sonde-cpu", "--store", folder, "--progress-fd", str(write_fd), *args],
                             pass_fds=[write_fd], stderr=subprocess.DEVNULL, stdin=subprocess.DEVNULL)
    os.close(write_fd)
    return child, read_fd


def run_sonde(seconds, folder):
    child, fd = start_sonde(folder, "--freq", "99", "--bucket", "10s")
    ready(child, fd, "first")
    time.sleep(3)  # start-up is stated apart: indexes are read, the seed is told
    pids = set(tree(child.pid))
    cpu0, _ = tree_usage(child.pid)
    progs0, _ = bpf_state(pids)
    t0 = time.monotonic()
    time.sleep(seconds)
    took = time.monotonic() - t0
    cpu1, memory = tree_usage(child.pid)
    progs1, maps = bpf_state(pids)
    child.send_signal(signal.SIGINT)
    events = drain(fd)
    child.wait()
    done = next(e for e in events if e.get("event") == "done")
    bpf_ns = sum(progs1[n][0] - progs0.get(n, (0, 0))[0] for n in progs1)
    per = {n: (progs1[n][0] - progs0.get(n, (0, 0))[0], progs1[n][1] - progs0.get(n, (0, 0))[1]) for n in progs1}
    sample = max(per.values(), key=lambda v: v[0], default=(0, 0))
    return {"cpu %": 100 * (cpu1 - cpu0) / 1e9 / took, "bpf %": 100 * bpf_ns / 1e9 / took,
            "us a sample": sample[0] / max(1, sample[1]) / 1000, "private MB": memory / 1e6, "maps MB": maps / 1e6,
            "p99 us": done["probe_p99_ns"] / 1000,
            "samples": done["samples"], "lost": sum((done.get("lost") or {}).values()),
            "bytes a sample": store_bytes(folder) / max(1, done["samples"])}


def run_perf(seconds, folder):
    out = os.path.join(folder, "perf.data")
    child = subprocess.Popen(["perf", "record", "-F", "99", "-a", "-g", "-o", out, "--", "sleep", str(seconds)],
                             stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, stdin=subprocess.DEVNULL)
    time.sleep(max(1, seconds - 1))
    _, memory = tree_usage(child.pid)
    _, _, usage = os.wait4(child.pid, 0)
    t0 = time.monotonic()
    script = subprocess.run(["perf", "script", "-i", out, "-F", "comm,ip,sym"], stdout=subprocess.PIPE,
                            stderr=subprocess.DEVNULL, stdin=subprocess.DEVNULL)
    took = time.monotonic() - t0
    samples = script.stdout.count(b"\n\n")
    if not samples:  # Debian's perf may abort on a foreign build-id
        return {"cpu %": 100 * (usage.ru_utime + usage.ru_stime) / seconds, "private MB": memory / 1e6}
    return {"cpu %": 100 * (usage.ru_utime + usage.ru_stime) / seconds, "private MB": memory / 1e6,
            "samples": samples, "bytes a sample": os.path.getsize(out) / max(1, samples), "script s": took}


def run_bpftrace(seconds, folder):
    out = os.path.join(folder, "bpftrace.txt")
    child = subprocess.Popen(["bpftrace", "-o", out, "-e", "profile:hz:99 { @[kstack, ustack, comm] = count(); }"],
                             stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, stdin=subprocess.DEVNULL)
    time.sleep(5)
    pids = {child.pid}
    cpu0, _ = tree_usage(child.pid)
    progs0, _ = bpf_state(pids)
    time.sleep(seconds)
    cpu1, memory = tree_usage(child.pid)
    progs1, _ = bpf_state(pids)
    child.send_signal(signal.SIGINT)
    try:
        child.wait(30)  # it resolves its stacks now
    except subprocess.TimeoutExpired:
        child.kill()
        child.wait()
    ns = sum(progs1[n][0] - progs0.get(n, (0, 0))[0] for n in progs1)
    runs = sum(progs1[n][1] - progs0.get(n, (0, 0))[1] for n in progs1)
    return {"cpu %": 100 * (cpu1 - cpu0) / 1e9 / seconds, "bpf %": 100 * ns / 1e9 / seconds,
            "us a sample": ns / max(1, runs) / 1000, "private MB": memory / 1e6}


def first_sample(folder, cold):
    if cold:
        shutil.rmtree(folder, ignore_errors=True)
    t0 = time.monotonic()
    child, fd = start_sonde(folder, "--bucket", "1s")
    ready(child, fd, "first")
    took = time.monotonic() - t0
    cpu, _ = tree_usage(child.pid)
    child.send_signal(signal.SIGINT)
    drain(fd)
    child.wait()
    return {"s": took, "cpu s": cpu / 1e9}


def start_bench(folder, rounds):
    """The table of the start alone."""
    rows = {"cold (no index, no symbols)": [first_sample(folder, True) for _ in range(rounds)],
            "warm": [first_sample(folder, False) for _ in range(rounds)]}
    return "\n".join([
        f"Machine: {machine()}. Date: {time.strftime('%Y-%m-%d')}. Command: `{command()}` (median, then lowest-highest).", "",
        "| start, both CPUs busy with the mix | until the first sample is stored, s | CPU of all processes until then, s |",
        "|---|---|---|",
        *(f"| {name} | {spread(r, 's')} | {spread(r, 'cpu s')} |" for name, r in rows.items())]) + "\n"


def warm_up(folder, quiet_s=12, limit_s=120):
    """Capture until no image index was made for a while; the CPU that took, and how many there are."""
    child, fd = start_sonde(folder, "--freq", "99", "--bucket", "10s")
    ready(child, fd, "first")
    began = changed = time.monotonic()
    state = None
    while time.monotonic() - changed < quiet_s and time.monotonic() - began < limit_s:
        time.sleep(0.5)
        now = {(e.name, e.stat().st_ino) for e in os.scandir(f"{folder}/images")}
        if now != state:
            state, changed = now, time.monotonic()
    cpu, _ = tree_usage(child.pid)
    child.send_signal(signal.SIGINT)
    drain(fd)
    child.wait()
    return {"cpu s": cpu / 1e9, "indexes": len(state), "MB": sum(e.stat().st_size for e in os.scandir(f"{folder}/images")) / 1e6}


def timed(*argv):
    t0 = time.monotonic()
    done = subprocess.run(argv, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, stdin=subprocess.DEVNULL)
    assert done.returncode == 0, f"{argv}: exit {done.returncode}"
    return time.monotonic() - t0


def build_bench(seconds, folder, mix):
    """make -j2 of this very project under a capture: bytes a sample, and CPU while processes come and go."""
    del mix
    child, fd = start_sonde(folder, "--freq", "99", "--bucket", "1s")
    ready(child, fd, "first")
    time.sleep(2)
    cpu0, _ = tree_usage(child.pid)
    t0 = time.monotonic()
    tmp = tempfile.mkdtemp(prefix="sonde-bench-build-")
    while time.monotonic() - t0 < seconds:
        subprocess.run(["make", "-s", "-j2", f"B={tmp}/b", "all"], cwd=ROOT, stdout=subprocess.DEVNULL,
                       stderr=subprocess.DEVNULL, stdin=subprocess.DEVNULL)
        shutil.rmtree(f"{tmp}/b", ignore_errors=True)
    took = time.monotonic() - t0
    cpu1, memory = tree_usage(child.pid)
    child.send_signal(signal.SIGINT)
    done = next(e for e in drain(fd) if e.get("event") == "done")
    child.wait()
    shutil.rmtree(tmp, ignore_errors=True)
    return {"cpu %": 100 * (cpu1 - cpu0) / 1e9 / took, "private MB": memory / 1e6, "samples": done["samples"],
            "lost": sum((done.get("lost") or {}).values()), "bytes a sample": store_bytes(folder) / done["samples"]}


def spread(rows, key, unit=""):
    values = sorted(r[key] for r in rows if key in r)
    if not values:
        return "-"
    text = f"{statistics.median(values):.3g}"
    return f"{text}{unit} ({values[0]:.3g}-{values[-1]:.3g})" if len(values) > 1 else text + unit


def command():
    """As it was called: what stands beside figures must give them again."""
    return " ".join([os.path.relpath(sys.argv[0], ROOT), *sys.argv[1:]])


def end_segment(store):
    """A segment is finished where there is a newer one, which a capture of nothing begins."""
    subprocess.run([f"{BIN}/sonde-cpu", "--store", store, "-d", "2s", "--segment-bytes", "1", "--comm", "no such command"], check=False,
                   stderr=subprocess.DEVNULL)


def archives(store):
    """The files of the store that are archives."""
    out = []
    for path in sorted(glob.glob(f"{store}/*.db")):
        with contextlib.closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True)) as db:
            out += [path] * db.execute("SELECT EXISTS (SELECT 1 FROM packed_table)").fetchone()[0]
    return out


def put_between(path, name, text):
    """Replaces the text between the markers of that name. A file without them gets both at its end: no measured table is lost."""
    begin, end = f"<!-- {name} -->\n", f"<!-- /{name} -->"
    with open(path, encoding="utf-8") as f:
        whole = f.read()
    if begin not in whole or end not in whole.split(begin, 1)[1]:
        whole += f"\n{begin}{end}\n"
    head, rest = whole.split(begin, 1)
    with open(path, "w", encoding="utf-8") as f:
        f.write(head + begin + text + "\n" + end + rest.split(end, 1)[1])


def machine():
    cpu = next((l.split(":", 1)[1].strip() for l in open("/proc/cpuinfo", encoding="utf-8")
                if l.startswith("model name")), platform.machine())
    return f"{os.cpu_count()} x {cpu}, Linux {platform.release()} (a virtual machine without hardware counters)"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=int, default=60)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--rows", type=int, default=1000000)
    parser.add_argument("--smoke", action="store_true")
    parser.add_argument("--start", action="store_true", help="the start alone")
    parser.add_argument("--write", help="put the table between the markers of this file")
    opts = parser.parse_args()
    if opts.smoke:
        opts.seconds, opts.rounds, opts.rows = 5, 1, 100000
    if os.geteuid() != 0:
        print("missing: root")
        return 77
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # so that what was changed is changed back
    base = tempfile.mkdtemp(prefix="sonde-bench-")
    before = bpf_stats(1)
    out = []
    try:
        mix = build_mix()
        if opts.start:
            with Mix(mix, 86400):
                text = start_bench(f"{base}/first", opts.rounds)
            print(text)
            if opts.write:
                put_between(opts.write, "start", text)
            return 0
        runners = {"sonde": run_sonde}
        if shutil.which("perf"):
            runners["perf record -g"] = run_perf
        if shutil.which("bpftrace"):
            runners["bpftrace"] = run_bpftrace
        rows = {name: [] for name in runners}
        with Mix(mix, 86400):  # an idle host has no first sample to wait for
            cold = [first_sample(f"{base}/first", True)["s"] for _ in range(opts.rounds)]
            warm = [first_sample(f"{base}/first", False)["s"] for _ in range(opts.rounds)]
            # the steady state is what counts; what indexes cost once is told apart (lines are made at nice 19: they take their time)
            start = warm_up(f"{base}/server", 12 if opts.smoke else 40)
            print("indexes", start, file=sys.stderr, flush=True)
            for i in range(opts.rounds):
                for name, runner in runners.items():
                    folder = f"{base}/{name.split()[0]}-{i}"
                    os.makedirs(folder)
                    if name == "sonde":
                        shutil.copytree(f"{base}/server/images", f"{folder}/images", symlinks=True,
                                        dirs_exist_ok=True)
                    rows[name].append(runner(opts.seconds, folder))
                    print(name, {k: round(v, 3) for k, v in rows[name][-1].items()}, file=sys.stderr, flush=True)
        built = build_bench(min(opts.seconds, 30), f"{base}/build", mix)
        print("build", built, file=sys.stderr, flush=True)
        subprocess.run([f"{BUILD}/tests/makestore", f"{base}/million", "--rows", str(opts.rows)], check=True,
                       stdout=subprocess.DEVNULL)
        sonde = f"{BIN}/sonde"
        all_of_it = ["--store", f"{base}/million", "--from", "1970-01-02", "--to", "2099-01-01"]
        flame = [timed(sonde, "flame", *all_of_it, "-o", f"{base}/x.html") for _ in range(5)]
        stacks = [timed(sonde, "stacks", *all_of_it) for _ in range(5)]

        out.append(f"Machine: {machine()}. Date: {time.strftime('%Y-%m-%d')}. Command: `{command()}` "
                   f"({opts.rounds} rounds of {opts.seconds} s, taking turns; median, then lowest-highest).\n")
        out.append("| both CPUs busy with the mix, 99 Hz | sonde | perf record -g | bpftrace profile |")
        out.append("|---|---|---|---|")
        for title, key in (("CPU of all its processes, % of one core", "cpu %"),
                           ("run time of its BPF programs, % of one core", "bpf %"),
                           ("a sample in the kernel, us", "us a sample"), ("private memory, MB", "private MB"),
                           ("BPF maps, MB", "maps MB"), ("bytes stored a sample", "bytes a sample"),
                           ("samples", "samples"), ("lost", "lost"), ("`perf script` afterwards, s", "script s")):
            out.append(f"| {title} | " + " | ".join(
                spread(rows.get(n, []), key) for n in ("sonde", "perf record -g", "bpftrace")) + " |")
        out.append("")
        out.append("| other | value | to reach |")
        out.append("|---|---|---|")
        total = [r["cpu %"] + r["bpf %"] for r in rows["sonde"]]
        out.append(f"| a sample in the kernel, mean, us | {spread(rows['sonde'], 'us a sample')} | 12 |")
        out.append(f"| its 99th percentile, from the program's own histogram, below, us | {spread(rows['sonde'], 'p99 us')} | 66 |")
        out.append(f"| programs + all processes, % of one core | {statistics.median(total):.3g} "
                   f"({min(total):.3g}-{max(total):.3g}) | 0.4 |")
        out.append(f"| first stored sample, cold, s | {statistics.median(cold):.2f} ({min(cold):.2f}-{max(cold):.2f}) | 1.5 |")
        out.append(f"| first stored sample, warm, s | {statistics.median(warm):.2f} ({min(warm):.2f}-{max(warm):.2f}) | 0.3 |")
        out.append(f"| indexes of all that runs and is mapped, made once: CPU, s | {start['cpu s']:.1f} for {start['indexes']} files, "
                   f"{start['MB']:.0f} MB | |")
        out.append(f"| `make -j2` of this project: CPU, % of one core | {built['cpu %']:.3g} | |")
        out.append(f"| the same: bytes a sample | {built['bytes a sample']:.3g} | 80 |")
        out.append(f"| the same: private memory, MB | {built['private MB']:.3g} | 40 |")
        out.append(f"| the same: samples, lost | {built['samples']}, {built['lost']} | |")
        out.append(f"| `flame -o x.html` over {opts.rows} rows, ms | {1000 * statistics.median(flame):.0f} "
                   f"({1000 * min(flame):.0f}-{1000 * max(flame):.0f}) | 300 |")
        out.append(f"| `stacks` over {opts.rows} rows, ms | {1000 * statistics.median(stacks):.0f} "
                   f"({1000 * min(stacks):.0f}-{1000 * max(stacks):.0f}) | 300 |")
    finally:
        bpf_stats(before)
        shutil.rmtree(base, ignore_errors=True)
    text = "\n".join(out) + "\n"
    print(text)
    if opts.write and not opts.smoke:
        with open(opts.write, encoding="utf-8") as f:
            head, _, rest = f.read().partition("<!-- bench -->\n")
            _, _, foot = rest.partition("<!-- /bench -->\n")
        with open(opts.write, "w", encoding="utf-8") as f:
            f.write(f"{head}<!-- bench -->\n{text}<!-- /bench -->\n{foot}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
