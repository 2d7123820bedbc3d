#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""ratchet: what a sample, a process, a switch and a request cost, held against the figures in ratchet.tsv.

    tests/bench/ratchet.py [--rounds 3] [--more 4] [--only NAME...] [--repeat N] [--write]

The work is fixed, and what is counted is what a busy machine does not change much: the kernel's run time of the BPF programs
(by their descriptors, for this run alone: BPF_ENABLE_STATS) and the CPU time of the loader's processes, for each event. Each figure
is the least of --rounds, divided by what a loop of known work (calibrate) took in the same round as against the recorded one: a slower
clock makes both dearer. A figure that is more than 15 % above the recorded one gets up to --more further rounds; one that is still above
it fails (exit 1). --write records what was found; --repeat N says how far N runs lie apart.

    sample-native      sonde-cpu of a C program without frame pointers, 40 frames: the program's run, and the loader a sample
    sample-python      the same of a recursion of Python, with its script frames
    process            fork, exec and exit of a process that is never sampled: a run of each of sonde-maps' programs; sonde-maps and sonde-cpu
    process-host       the same with sonde-host, which has a row of sums of it
    switch             sonde-offcpu's programs at a switch of two processes that hand a byte back and forth; the loader
    http, redis        sonde-l7's programs at a request, both ends on this host; loader and parser
    idle               sonded with all families where nothing happens: only where this host is idle

Everything is CPU time, in ns an event; idle is microseconds a second.
"""
import argparse
import contextlib
import ctypes
import json
import os
import platform
import shutil
import signal
import subprocess
import sys
import tempfile
import time

import bench

HERE = os.path.dirname(os.path.abspath(__file__))
RECORDED = os.path.join(HERE, "ratchet.tsv")
MIX = os.path.join(bench.ROOT, "build", "tests", "bench")  # whatever build is measured
ABOVE = 1.15
PYTHON = "/usr/bin/python3" if os.path.exists("/usr/bin/python3") else sys.executable
PROCESSES, PROCESS_RATE = 1600, 400
SYS_BPF = {"x86_64": 321, "aarch64": 280}.get(platform.machine())
BPF_ENABLE_STATS = 32


def enable_stats():
    """The kernel counts run times as long as this descriptor is open; kernel.bpf_stats_enabled stays as it is."""
    attr = (ctypes.c_uint32 * 32)()
    fd = ctypes.CDLL(None, use_errno=True).syscall(SYS_BPF, BPF_ENABLE_STATS, ctypes.byref(attr), ctypes.sizeof(attr))
    if fd < 0:
        raise OSError(ctypes.get_errno(), "BPF_ENABLE_STATS")
    return fd


def build():
    os.makedirs(MIX, exist_ok=True)
    for name, flags in (("recurse", ["-fno-optimize-sibling-calls", "-fomit-frame-pointer"]), ("spawner", []), ("exchange", []), ("pingpong", [])):
        subprocess.run(["gcc", "-O2", *flags, "-o", f"{MIX}/{name}", f"{HERE}/mix/{name}.c"], check=True)


def calibrate():
    """ns of CPU that a fixed piece of work takes: the least of five."""
    def once():
        began = time.thread_time_ns()
        table = list(range(4096))
        x = 1
        for i in range(60000):
            x = (x * 1103515245 + table[x & 4095]) & 0x7fffffff
        return time.thread_time_ns() - began
    return min(once() for _ in range(9))


def names():
    said = subprocess.run(["bpftool", "prog", "show", "-j"], capture_output=True, text=True, check=False).stdout
    return {p["id"]: p.get("name", "?") for p in json.loads(said or "[]")}


class Loader:
    """sonde-FAMILY at work; `with` ends it."""
    def __init__(self, family, store, *args):
        read_fd, write_fd = os.pipe()
        self.child = subprocess.Popen([f"{bench.BIN}/sonde-{family}", "--store", store, "--bucket", "10s", "--progress-fd", str(write_fd), *args],
                                      pass_fds=[write_fd], stderr=subprocess.DEVNULL, stdin=subprocess.DEVNULL)
        os.close(write_fd)
        self.fd = read_fd
        bench.ready(self.child, read_fd, "ready")
        self.settle()

    def settle(self, seconds=12):
        """Until it has read what runs: the start has its own figures."""
        end, calm = time.monotonic() + seconds, 0
        while calm < 2 and time.monotonic() < end:
            before = sum(bench.cpu_ns(p) for p in bench.tree(self.child.pid))
            time.sleep(0.5)
            calm = calm + 1 if sum(bench.cpu_ns(p) for p in bench.tree(self.child.pid)) - before < 15_000_000 else 0

    def __enter__(self):
        return self

    def __exit__(self, *_):
        with contextlib.suppress(OSError):
            self.child.send_signal(signal.SIGINT)
        self.done = next((e for e in bench.drain(self.fd) if e.get("event") == "done"), {})
        os.close(self.fd)
        self.child.wait()

    def look(self):
        """({program's name: (ns, runs)}, ns of CPU of the loader, its sonde-maps and its parser)"""
        pids = [p for p in bench.tree(self.child.pid) if "sonde-index" not in comm(p)]
        named, programs = names(), {}
        for number, (ns, runs) in bench.bpf_state(pids)[0].items():
            before = programs.get(named.get(number), (0, 0))
            programs[named.get(number)] = (before[0] + ns, before[1] + runs)
        return programs, sum(bench.cpu_ns(p) for p in pids)


def comm(pid):
    try:
        with open(f"/proc/{pid}/comm", encoding="ascii", errors="replace") as f:
            return f.read().strip()
    except OSError:
        return ""


def watched(loader, work, seconds=0.0):
    """({name: (ns, runs)}, ns of CPU): of `work`, and of the loader's next tick behind it."""
    programs, cpu = loader.look()
    if work:
        work()
    time.sleep(seconds)
    after, cpu_after = loader.look()
    ran = {n: (v[0] - programs.get(n, (0, 0))[0], v[1] - programs.get(n, (0, 0))[1]) for n, v in after.items()}
    return ran, cpu_after - cpu


def total(ran):
    return sum(ns for ns, _ in ran.values())


@contextlib.contextmanager
def running(argv, cpu=None):
    pin = (lambda: os.sched_setaffinity(0, {cpu})) if cpu is not None else None
    child = subprocess.Popen(argv, stdout=subprocess.PIPE, stdin=subprocess.PIPE, preexec_fn=pin, text=True)
    try:
        yield child
    finally:
        child.kill()
        child.communicate()


def sample(name, argv, folder):
    """One program, pinned, sampled at 999 Hz by its pid."""
    with running(argv, os.cpu_count() - 1) as child:
        time.sleep(0.3)
        with Loader("cpu", f"{folder}/{name}", "--freq", "999", "--pid", str(child.pid)) as loader:
            ran, cpu = watched(loader, None, 3)
    ns, runs = ran["cpu_sample"]
    return {f"{name}-bpf": ns / runs, f"{name}-user": cpu / runs}


def native(folder):
    return sample("sample-native", [f"{MIX}/recurse", "60"], folder)


def python(folder):
    return sample("sample-python", [PYTHON, f"{HERE}/mix/recurse.py", "60"], folder)


def spawn():
    subprocess.run([f"{MIX}/spawner", str(PROCESSES / PROCESS_RATE), str(PROCESS_RATE), "/bin/true"], check=True, stdout=subprocess.DEVNULL)


def execs_of(ran):
    """All of this host's: sonde-maps reads those of others, too."""
    return sum(runs for n, (_, runs) in ran.items() if n.startswith("on_exec"))


def process(folder):
    """Nothing is in the capture's scope: no process has a sample."""
    with Loader("cpu", f"{folder}/process", "--comm", "no such command") as loader:
        ran, cpu = watched(loader, spawn, 0.6)
    steps = [next((ns / runs for n, (ns, runs) in ran.items() if n.startswith(step) and runs), 0) for step in ("on_fork", "on_exec", "on_exit", "on_free")]
    return {"process-bpf": sum(steps), "process-user": cpu / execs_of(ran)}


def process_host(folder):
    with Loader("host", f"{folder}/host") as loader:
        ran, cpu = watched(loader, spawn, 0.6)
    return {"process-host-user": cpu / execs_of(ran)}


def switch(folder):
    with Loader("offcpu", f"{folder}/offcpu") as loader:
        ran, cpu = watched(loader, lambda: subprocess.run([f"{MIX}/pingpong", "2", "400"], check=True, stdout=subprocess.DEVNULL), 0.6)
    switches = sum(runs for n, (_, runs) in ran.items() if n.startswith("offcpu_switch"))
    return {"switch-bpf": total(ran) / switches, "switch-user": cpu / switches}


def requests(protocol, folder, n=40000):
    with Loader("l7", f"{folder}/l7") as loader, running([f"{MIX}/exchange", protocol, str(n), "16"]) as child:
        time.sleep(0.5)
        asked = []
        ran, cpu = watched(loader, lambda: asked.append(int(child.communicate("x\n")[0])), 0.6)
    return {f"{protocol}-bpf": total(ran) / asked[0], f"{protocol}-user": cpu / asked[0]}


def http(folder):
    return requests("http", folder)


def redis(folder):
    return requests("redis", folder)


def host_load():
    """(forks since the boot, seconds of CPU since the boot)"""
    with open("/proc/stat", encoding="ascii") as f:
        words = [line.split() for line in f]
    cpu = next(w for w in words if w[0] == "cpu")
    return int(next(w for w in words if w[0] == "processes")[1]), sum(int(cpu[i]) for i in (1, 2, 3, 6, 7)) / bench.TICK


def idle(folder, settle=20, seconds=20):
    """{}: the host was not idle."""
    sys.path[:0] = [os.path.join(bench.ROOT, "tests", "e2e", d) for d in ("", "lib")]
    from sonded import Sonded  # pylint: disable=import-outside-toplevel
    with Sonded(f"{folder}/idle", "--families", "cpu,offcpu,host,l7,net,goheap", "--seal", "no", limit="0") as d:
        time.sleep(settle)
        pids = bench.tree(d.child.pid)
        forks, busy = host_load()
        before = {p: bench.cpu_ns(p) for p in pids}
        programs = bench.bpf_state(pids)[0]
        time.sleep(seconds)
        own = {comm(p): bench.cpu_ns(p) - before[p] for p in pids if bench.cpu_ns(p)}
        bpf = sum(ns - programs.get(i, (0, 0))[0] for i, (ns, _) in bench.bpf_state(pids)[0].items())
        forks_after, busy_after = host_load()
    print("idle:", {n: f"{ns / seconds / 1e7:.3f} %" for n, ns in own.items()}, f"bpf {bpf / seconds / 1e7:.3f} %", file=sys.stderr)
    if forks_after - forks > 3 * seconds or busy_after - busy > 0.05 * seconds:
        print(f"idle: not counted: {(forks_after - forks) / seconds:.0f} processes and threads began a second, {(busy_after - busy) / seconds:.2f} CPUs were "
              "busy", file=sys.stderr)
        return {}
    return {"idle-user": sum(own.values()) / seconds / 1000, "idle-bpf": bpf / seconds / 1000}


ROWS = {"sample-native": native, "sample-python": python, "process": process, "process-host": process_host, "switch": switch, "http": http, "redis": redis,
        "idle": idle}


def recorded():
    """{figure: (value, calibration)}"""
    with open(RECORDED, encoding="ascii") as f:
        lines = [line.split() for line in f if line.strip() and not line.startswith("#")]
    return {w[0]: (float(w[1]), float(w[2])) for w in lines}


def one(row, folder):
    """{figure: (value, calibration)} of one round."""
    before = calibrate()
    found = ROWS[row](folder)
    speed = min(before, calibrate())
    return {name: (value, speed) for name, value in found.items()}


def scaled(value, speed, to):
    return value * to / speed


def least(a, b):
    """Of two (value, calibration): the one that would be lower on one machine."""
    return b if a is None or b[0] / b[1] < a[0] / a[1] else a


def measure(row, folder, opts, limits):
    """{figure: (value, calibration)}: the least of its rounds."""
    best = {}
    for i in range(opts.rounds + opts.more):
        for name, found in one(row, folder).items():
            best[name] = least(best.get(name), found)
        if i + 1 >= opts.rounds and all(n in limits and scaled(*best[n], limits[n][1]) <= limits[n][0] * ABOVE for n in best):
            break
        if i + 1 >= opts.rounds and opts.write:
            break
    return best


def write(found):
    kept = recorded() if os.path.exists(RECORDED) else {}
    kept.update(found)
    with open(RECORDED, "w", encoding="ascii") as f:
        f.write("# What an event costs, in ns (idle: microseconds a second), and what calibrate() took in the same round. Written by ratchet.py --write.\n"
                f"# Machine: {bench.machine()}. Date: {time.strftime('%Y-%m-%d')}.\n")
        for name, (value, speed) in kept.items():
            f.write(f"{name}\t{value:.0f}\t{speed:.0f}\n")


def compare(found, limits):
    """How many figures are above what is recorded."""
    above = 0
    for name, (value, speed) in found.items():
        if name not in limits:
            print(f"{name:20} {value:9.0f}  (not recorded)")
            continue
        was, at = limits[name]
        now = scaled(value, speed, at)
        bad = now > was * ABOVE
        above += bad
        print(f"{name:20} {value:9.0f}  at the recorded machine's speed {now:9.0f}, recorded {was:9.0f}  {100 * (now / was - 1):+5.0f} %{'  ABOVE' if bad else ''}")
    return above


def apart(rows, folder, opts):
    runs = []
    for i in range(opts.repeat):
        runs.append({})
        for row in rows:
            runs[-1].update(measure(row, folder, opts, {}))
        print(f"run {i + 1}:", {n: round(v) for n, (v, _) in runs[-1].items()}, file=sys.stderr, flush=True)
    for name in runs[0]:
        plain = sorted(r[name][0] for r in runs if name in r)
        by_speed = sorted(r[name][0] / r[name][1] for r in runs if name in r)
        print(f"{name:20} {plain[0]:9.0f} to {plain[-1]:9.0f}: {100 * (plain[-1] / plain[0] - 1):4.1f} %, by the calibration {100 * (by_speed[-1] / by_speed[0] - 1):4.1f} %")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--more", type=int, default=4)
    parser.add_argument("--only", nargs="*", choices=ROWS)
    parser.add_argument("--repeat", type=int, help="compare nothing: say how far so many runs lie apart")
    parser.add_argument("--write", action="store_true")
    opts = parser.parse_args()
    if os.geteuid() != 0 or not SYS_BPF:
        print("missing: root" if SYS_BPF else "missing: the number of bpf(2) on this machine")
        return 77
    opts.more = 0 if opts.repeat else opts.more
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    build()
    rows, found = opts.only or list(ROWS), {}
    folder, stats = tempfile.mkdtemp(prefix="sonde-bench-"), enable_stats()
    try:
        for row in ("sample-native", "sample-python"):  # indexes are made once
            ROWS[row](folder) if row in rows else None
        if opts.repeat:
            apart(rows, folder, opts)
            return 0
        limits = recorded() if os.path.exists(RECORDED) and not opts.write else {}
        for row in rows:
            found.update(measure(row, folder, opts, limits))
        if opts.write:
            write(found)
        above = compare(found, recorded())
        if above:
            print(f"{above} of {len(found)} figures are more than {100 * (ABOVE - 1):.0f} % above what is recorded in tests/bench/ratchet.tsv.\n"
                  "fix: find what became dearer (git bisect run tests/bench/ratchet.py --only ROW); where it is worth that: tests/bench/ratchet.py --write")
        return 1 if above else 0
    finally:
        os.close(stats)
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    sys.exit(main())
