#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""ratchet: what a sample, a process, a switch and a request cost, held against the figures in ratchet.tsv.

    tests/bench/ratchet.py [--rounds 2] [--more 4] [--only NAME...] [--fixed] [--repeat N] [--write]

The work is fixed, and each figure is counted in the way that a busy machine changes least:

    fixed-*        instructions of the user-space work (tests/bench/fixed), by valgrind: within 2 % the same in each run.
                   A process that is never sampled, through sonde-maps and a loader; a sample of 40 native frames, and one with scripts,
                   through naming and store. --fixed runs these alone: no root, some ten seconds
    *-bpf          the kernel's run time of the BPF programs (BPF_ENABLE_STATS), for each event, in windows of a tenth of a second: the
                   least of all windows, so that what others do in most of them does not count. For samples: the program's own sum,
                   for each sample taken
    *-user         CPU time of the loader's processes for each event, in windows of a second, the same way
    idle-maps      BPF maps of sonded with all families where little happens, in kB: what the kernel says of them
    idle-*         CPU time of the same where nothing happens, and how often a second its threads wake up: only where this host is idle

Each figure but the instructions is divided by what a loop of known work (calibrate) took in the same round as against the recorded
one: a slower clock makes both dearer. One that is more than 15 % above the recorded one gets up to --more further rounds; one that
is still above it fails (exit 1). --write records what was found; --repeat N says how far N runs lie apart.

    sample-native      sonde-cpu of a C program without frame pointers, 40 frames: the program's run, and the loader a sample
    sample-python      the same of a recursion of Python, with its script frames
    process            fork, exec and exit of a process that is never sampled: a run of each of sonde-maps' programs; sonde-maps and sonde-cpu
    process-host       the same with sonde-host, which has a row of sums of it
    switch             sonde-offcpu's programs at a switch of two processes that hand a byte back and forth; the loader
    http, redis        sonde-l7's programs at a request, both ends on this host; loader and parser

Instructions are instructions; everything else is CPU time, in ns an event; idle is microseconds a second. idle-maps and idle-wakes are
not held against the calibration.
"""
import argparse
import collections
import contextlib
import ctypes
import glob
import json
import os
import platform
import shutil
import re
import signal
import struct
import subprocess
import sys
import tempfile
import threading
import time

import bench

HERE = os.path.dirname(os.path.abspath(__file__))
RECORDED = os.path.join(HERE, "ratchet.tsv")
MIX = os.path.join(bench.ROOT, "build", "tests", "bench")  # whatever build is measured
ABOVE = 1.15
WINDOW, WINDOWS_USER = 0.1, 10  # seconds; windows in one of user-space time
PLAIN = ("fixed-", "idle-maps", "idle-wakes")  # whatever the machine's speed
RUNS_LEAST = 20                 # of an event in a window that counts
PYTHON = "/usr/bin/python3" if os.path.exists("/usr/bin/python3") else sys.executable
PROCESSES, PROCESS_RATE = 1600, 400
FIXED, FIXED_N = os.path.join(bench.BUILD, "tests", "fixed"), 400
TALLY = "QQQQQQQ32Q"  # struct sample_tally of probes/lib/tally.h: run_ns is the seventh, then the slots
SYS_BPF = {"x86_64": 321, "aarch64": 280}.get(platform.machine())
BPF_MAP_LOOKUP_ELEM, BPF_MAP_GET_FD_BY_ID, BPF_OBJ_GET_INFO_BY_FD, BPF_ENABLE_STATS = 1, 14, 15, 32
LIBC = ctypes.CDLL(None, use_errno=True)


def bpf_call(command, attr):
    """bpf(2) with these bytes."""
    buffer = ctypes.create_string_buffer(attr.ljust(128, b"\0"), 128)
    done = LIBC.syscall(SYS_BPF, command, ctypes.byref(buffer), 128)
    if done < 0:
        raise OSError(ctypes.get_errno(), f"bpf(2), command {command}")
    return done


def enable_stats():
    """The kernel counts run times as long as this descriptor is open; kernel.bpf_stats_enabled stays as it is."""
    return bpf_call(BPF_ENABLE_STATS, b"")


def map_open(pid, name, size):
    """A descriptor of the process's map of that name, whose values have that size."""
    for path in glob.glob(f"/proc/{pid}/fdinfo/*"):
        with contextlib.suppress(OSError), open(path, encoding="ascii", errors="replace") as f:
            number = next((int(line.split()[1]) for line in f if line.startswith("map_id:")), None)
            if number is None:
                continue
            fd, info = bpf_call(BPF_MAP_GET_FD_BY_ID, struct.pack("I", number)), ctypes.create_string_buffer(256)
            bpf_call(BPF_OBJ_GET_INFO_BY_FD, struct.pack("IIQ", fd, len(info), ctypes.addressof(info)))
            if info.raw[24:40].rstrip(b"\0") == name.encode() and struct.unpack_from("I", info, 12)[0] == size:
                return fd
            os.close(fd)
    raise RuntimeError(f"process {pid} has no map {name} with values of {size} bytes")


def cpus_possible():
    with open("/sys/devices/system/cpu/possible", encoding="ascii") as f:
        return int(re.split("[-,]", f.read().strip())[-1]) + 1


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
        self.fd, self.named = read_fd, {}
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
        state, programs = bench.bpf_state(pids)[0], {}
        if not set(state) <= set(self.named):
            self.named = {number: None for number in state} | names()
        for number, (ns, runs) in state.items():
            before = programs.get(self.named[number], (0, 0))
            programs[self.named[number]] = (before[0] + ns, before[1] + runs)
        return programs, sum(bench.cpu_ns(p) for p in pids)


class Sampler(Loader):
    """sonde-cpu at work. The kernel runs its program for the samples of all processes; `taken` are those of the capture's scope, as the
    program counts them itself."""
    def __enter__(self):
        self.tally = map_open(self.child.pid, "tally", struct.calcsize(TALLY))
        return self

    def __exit__(self, *args):
        os.close(self.tally)
        super().__exit__(*args)

    def look(self):
        key, values = ctypes.c_uint32(0), ctypes.create_string_buffer(struct.calcsize(TALLY) * cpus_possible())
        bpf_call(BPF_MAP_LOOKUP_ELEM, struct.pack("IIQQQ", self.tally, 0, ctypes.addressof(key), ctypes.addressof(values), 0))
        each = list(struct.iter_unpack(TALLY, values.raw))
        return {"taken": (sum(v[6] for v in each), sum(sum(v[7:]) for v in each))}, super().look()[1]


def comm(pid):
    try:
        with open(f"/proc/{pid}/comm", encoding="ascii", errors="replace") as f:
            return f.read().strip()
    except OSError:
        return ""


class Watch:
    """What the loader takes in each window while a thread of ours looks; `with` ends it."""
    def __init__(self, loader):
        self.loader, self.looks, self.over = loader, [loader.look()], threading.Event()
        self.thread = threading.Thread(target=self.run)

    def run(self):
        while not self.over.wait(WINDOW):
            self.looks.append(self.loader.look())

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.over.set()
        self.thread.join()
        self.looks.append(self.loader.look())

    def windows(self, length=1):
        """[({program's name: (ns, runs)}, ns of CPU)]"""
        found = []
        for (before, cpu), (after, cpu_after) in zip(self.looks[:-length], self.looks[length:]):
            found.append(({n: (v[0] - before.get(n, (0, 0))[0], v[1] - before.get(n, (0, 0))[1]) for n, v in after.items()}, cpu_after - cpu))
        return found

    def least(self, bpf, events):
        """(ns of programs, ns of user space) an event: each the least of its windows. `bpf(ran)` is a window's figure, None: too few;
        `events(ran)` is how many there were."""
        programs = [v for v in (bpf(ran) for ran, _ in self.windows()) if v is not None]
        length = min(WINDOWS_USER, len(self.looks) - 1)
        user = [cpu / events(ran) for ran, cpu in self.windows(length) if events(ran) >= RUNS_LEAST * length]
        if not programs or not user:
            raise RuntimeError("too few events in each window: is this host too busy?")
        return min(programs), min(user)


def runs_of(name):
    return lambda ran: sum(runs for n, (_, runs) in ran.items() if n and n.startswith(name))


def all_by(name):
    """The time of all programs for each run of that one."""
    def figure(ran):
        runs = runs_of(name)(ran)
        return total(ran) / runs if runs >= RUNS_LEAST else None
    return figure


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


def figures(name, found):
    return {f"{name}-bpf": found[0], f"{name}-user": found[1]}


def sample(name, argv, folder):
    """One program, pinned, sampled at 999 Hz by its pid."""
    with running(argv, os.cpu_count() - 1) as child:
        time.sleep(0.3)
        with Sampler("cpu", f"{folder}/{name}", "--freq", "999", "--pid", str(child.pid)) as loader, Watch(loader) as watch:
            time.sleep(4)
    return figures(name, watch.least(all_by("taken"), runs_of("taken")))


def native(folder):
    return sample("sample-native", [f"{MIX}/recurse", "60"], folder)


def python(folder):
    return sample("sample-python", [PYTHON, f"{HERE}/mix/recurse.py", "60"], folder)


def spawn():
    subprocess.run([f"{MIX}/spawner", str(PROCESSES / PROCESS_RATE), str(PROCESS_RATE), "/bin/true"], check=True, stdout=subprocess.DEVNULL)


def steps(ran):
    """A run of each program of sonde-maps: others' threads do not change it."""
    each = [next((ns / runs for n, (ns, runs) in ran.items() if n and n.startswith(step) and runs >= RUNS_LEAST), None)
            for step in ("on_fork", "on_exec", "on_exit", "on_free")]
    return None if None in each else sum(each)


def spawned(family, folder, *args):
    with Loader(family, folder, *args) as loader, Watch(loader) as watch:
        spawn()
        time.sleep(0.6)
    return watch.least(steps, runs_of("on_exec"))  # all of this host's: sonde-maps reads those of others, too


def process(folder):
    """Nothing is in the capture's scope: no process has a sample."""
    return figures("process", spawned("cpu", f"{folder}/process", "--comm", "no such command"))


def process_host(folder):
    return {"process-host-user": spawned("host", f"{folder}/host")[1]}


def switch(folder):
    with Loader("offcpu", f"{folder}/offcpu") as loader, Watch(loader) as watch:
        subprocess.run([f"{MIX}/pingpong", "3", "400"], check=True, stdout=subprocess.DEVNULL)
        time.sleep(0.6)
    return figures("switch", watch.least(all_by("offcpu_switch"), runs_of("offcpu_switch")))


def requests(protocol, folder, n=15000, times=4):
    found = []
    with Loader("l7", f"{folder}/l7") as loader:
        for _ in range(times):
            with running([f"{MIX}/exchange", protocol, str(n), "16"]) as child:
                time.sleep(0.5)
                before, cpu = loader.look()
                child.communicate("x\n")
                time.sleep(0.6)
                after, cpu_after = loader.look()
                found.append(((total(after) - total(before)) / n, (cpu_after - cpu) / n))
    return figures(protocol, [min(f[i] for f in found) for i in (0, 1)])


def http(folder):
    return requests("http", folder)


def redis(folder):
    return requests("redis", folder)


# ---- instructions ----

def instructions(*args):
    """Of build/tests/fixed over that work: what more of it adds, so that its start is not in it."""
    def counted(n):
        said = subprocess.run(["valgrind", "--tool=cachegrind", "--cache-sim=no", "--cachegrind-out-file=/dev/null",
                               FIXED, args[0], str(n), *args[1:]], capture_output=True, text=True, check=False)
        refs = re.search(r"I\s+refs:\s+([\d,]+)", said.stderr)
        if said.returncode or not refs:
            raise RuntimeError(f"{FIXED} {args[0]}: {said.stderr.strip()[-300:]}")
        return int(refs[1].replace(",", ""))
    return (counted(4 * FIXED_N) - counted(FIXED_N)) / (3 * FIXED_N)


def index(folder):
    made = f"{folder}/index"
    if not os.path.exists(made):
        subprocess.run([f"{bench.BIN}/sonde-index", "--no-lines", f"{bench.BIN}/sonde", "-o", made], check=True, stdout=subprocess.DEVNULL)
    return made


def fixed_process(folder):
    del folder
    return {"fixed-process": instructions("processes")}


def fixed_native(folder):
    return {"fixed-sample-native": instructions("samples", index(folder))}


def fixed_scripts(folder):
    return {"fixed-sample-scripts": instructions("scripts", index(folder))}


def host_load():
    """(forks since the boot, seconds of CPU since the boot)"""
    with open("/proc/stat", encoding="ascii") as f:
        words = [line.split() for line in f]
    cpu = next(w for w in words if w[0] == "cpu")
    return int(next(w for w in words if w[0] == "processes")[1]), sum(int(cpu[i]) for i in (1, 2, 3, 6, 7)) / bench.TICK


def wakes(pids):
    """How often threads of these processes have gone to sleep."""
    n = 0
    for path in [p for pid in pids for p in glob.glob(f"/proc/{pid}/task/*/status")]:
        with contextlib.suppress(OSError), open(path, encoding="ascii", errors="replace") as f:
            n += next(int(line.split()[1]) for line in f if line.startswith("voluntary_ctxt_switches"))
    return n


def idle(folder, settle=40, seconds=20):
    """Where the host was not idle: idle-maps alone."""
    sys.path[:0] = [os.path.join(bench.ROOT, "tests", "e2e", d) for d in ("", "lib")]
    from sonded import Sonded  # pylint: disable=import-outside-toplevel
    with Sonded(f"{folder}/idle", "--families", "cpu,offcpu,host,l7,net,goheap,mem,disk", "--seal", "no", limit="0") as d:
        time.sleep(settle)
        pids = bench.tree(d.child.pid)
        forks, busy = host_load()
        before = {p: bench.cpu_ns(p) for p in pids}
        programs, slept = bench.bpf_state(pids)[0], wakes(pids)
        time.sleep(seconds)
        own = collections.Counter()  # some have a child of the same name
        for p in pids:
            own[comm(p)] += max(0, bench.cpu_ns(p) - before[p])
        state, maps = bench.bpf_state(pids)
        bpf = sum(ns - programs.get(i, (0, 0))[0] for i, (ns, _) in state.items())
        slept = (wakes(pids) - slept) / seconds
        forks_after, busy_after = host_load()
    print("idle:", {n: f"{ns / seconds / 1e7:.3f} %" for n, ns in own.items()}, f"bpf {bpf / seconds / 1e7:.3f} %", f"{slept:.0f} wakes/s",
          f"maps {maps / 1e6:.1f} MB", file=sys.stderr)
    found = {"idle-maps": maps / 1000}
    if forks_after - forks > 3 * seconds or busy_after - busy > 0.05 * seconds:
        print(f"idle: not counted: {(forks_after - forks) / seconds:.0f} processes and threads began a second, {(busy_after - busy) / seconds:.2f} CPUs were "
              "busy", file=sys.stderr)
        return found
    return {**found, "idle-user": sum(own.values()) / seconds / 1000, "idle-bpf": bpf / seconds / 1000, "idle-wakes": slept}


FIXED_ROWS = {"fixed-process": fixed_process, "fixed-native": fixed_native, "fixed-scripts": fixed_scripts}
ROWS = {**FIXED_ROWS, "sample-native": native, "sample-python": python, "process": process, "process-host": process_host, "switch": switch, "http": http, "redis": redis,
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


def scaled(name, value, speed, to):
    return value if name.startswith(PLAIN) else value * to / speed


def least(a, b):
    """Of two (value, calibration): the one that would be lower on one machine."""
    return b if a is None or b[0] / b[1] < a[0] / a[1] else a


def measure(row, folder, opts, limits):
    """{figure: (value, calibration)}: the least of its rounds."""
    best = {}
    for i in range(opts.rounds + opts.more):
        for name, found in one(row, folder).items():
            best[name] = least(best.get(name), found)
        if row in FIXED_ROWS or i + 1 >= opts.rounds and all(n in limits and scaled(n, *best[n], limits[n][1]) <= limits[n][0] * ABOVE for n in best):
            break
        if i + 1 >= opts.rounds and opts.write:
            break
    return best


def write(found):
    """The rows that were measured; all others stay as they are, with the date and the machine of their own."""
    rows = {}
    if os.path.exists(RECORDED):
        with open(RECORDED, encoding="ascii") as f:
            rows = {line.split()[0]: line for line in f if line.strip() and not line.startswith("#")}
    for name, (value, speed) in found.items():
        rows[name] = f"{name}\t{value:.0f}\t{speed:.0f}\t{time.strftime('%Y-%m-%d')}\t{bench.machine()}\n"
    with open(RECORDED, "w", encoding="ascii") as f:
        f.write("# What an event costs, in ns (idle: microseconds a second, idle-maps kB, idle-wakes a second), what calibrate() took in the same round, "
                "the date, and the machine. Written by ratchet.py --write.\n")
        f.writelines(rows.values())


def compare(found, limits):
    """How many figures are above what is recorded."""
    n_above = 0
    for name, (value, speed) in found.items():
        if name not in limits:
            print(f"{name:20} {value:9.0f}  (not recorded)")
            continue
        was, at = limits[name]
        now = scaled(name, value, speed, at)
        bad = now > was * ABOVE
        n_above += bad
        print(f"{name:20} {value:9.0f}  at the recorded machine's speed {now:9.0f}, recorded {was:9.0f}  {100 * (now / was - 1):+5.0f} %{'  ABOVE' if bad else ''}")
    return n_above


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


def missing(rows):
    """What these rows lack here; None: nothing."""
    if set(rows) & set(FIXED_ROWS) and not shutil.which("valgrind"):
        return "valgrind (sh scripts/deps.sh bench)"
    if set(rows) & set(FIXED_ROWS) and not os.access(FIXED, os.X_OK):
        return f"{os.path.relpath(FIXED, bench.ROOT)} (make {os.path.relpath(FIXED, bench.ROOT)})"
    if set(rows) - set(FIXED_ROWS) and (os.geteuid() != 0 or not SYS_BPF):
        return "root" if SYS_BPF else "the number of bpf(2) on this machine"
    return None


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--more", type=int, default=4)
    parser.add_argument("--only", nargs="*", choices=ROWS)
    parser.add_argument("--fixed", action="store_true", help="instructions alone")
    parser.add_argument("--repeat", type=int, help="compare nothing: say how far so many runs lie apart")
    parser.add_argument("--write", action="store_true")
    opts = parser.parse_args()
    rows = list(FIXED_ROWS) if opts.fixed else opts.only or list(ROWS)
    lacks = missing(rows)
    if lacks:
        print(f"missing: {lacks}")
        return 77
    opts.more = 0 if opts.repeat else opts.more
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    build()
    found, folder = {}, tempfile.mkdtemp(prefix="sonde-bench-")
    stats = -1 if set(rows) <= set(FIXED_ROWS) else enable_stats()
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
        n_above = compare(found, recorded())
        if n_above:
            print(f"{n_above} of {len(found)} figures are above what is recorded in tests/bench/ratchet.tsv by more than {100 * (ABOVE - 1):.0f} %.\n"
                  "fix: find what became dearer (git bisect run tests/bench/ratchet.py --only ROW); where it is worth that: tests/bench/ratchet.py --write")
        return 1 if n_above else 0
    finally:
        if stats >= 0:
            os.close(stats)
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    sys.exit(main())
