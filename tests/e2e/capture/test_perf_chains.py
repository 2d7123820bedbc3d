# SPDX-License-Identifier: Apache-2.0
"""Debian's own programs beside perf's `--call-graph dwarf` in the same seconds: where their time goes by function (self), and,
where perf's own stacks are whole, by functions on the stack and by who calls whom. Names play no part in user space: a function is an
entry of readelf's .eh_frame, a root one whose return address it calls undefined. Two perf recordings of those seconds are the floor.

How they are put beside each other, and what happens otherwise (seen with nginx and mariadb):
1. Each recorder has a rate of its own. At one rate they keep their distance in time, so that one of them always meets a program that
   the one before has just stopped for 20 us: its peer sleeps by then, and to wake it costs more. At 4999 Hz each, nginx had 8.6 % of
   its time at the end of a wake-up by sonde, 12.8, 13.7 and 15.1 % by three perfs; at four rates 18.5 % and 17.4 to 18.1 %.
2. perf samples the CPU that the program is held on, as sonde does, not the program (-p): timers of a task are stopped and started at
   each of its switches, which costs time there and counts it. With two `perf record -p` mariadb spent 17 and 18 % at the end of a
   switch by perf and 13 % by sonde; beside two of the CPU both said 12 %, and a `-p` 14 %.
3. perf asks for build-ids in its records (--buildid-mmap), as sonde-maps does. Else the kernel (5.12 to 6.18) marks perf's records as
   having one because it has just written one for sonde-maps (the flag stays in the header that all events of a CPU share), and
   `perf script` 6.1 takes an inode's number for the build-id's length and aborts.
4. perf 6.1 has no stack at all, not even its first place, for samples in a file of two executable segments that lie at different
   distances from their addresses (Rust's librustc_driver, which BOLT has rewritten): a quarter of rustc's samples. Those are
   placed by their own address.
5. `perf script` 6.1 gives up at the record of a BPF program that comes or goes (type 17, KSYMBOL), and others' do at any time: these
   records are made such that it passes over them (82, FINISHED_INIT).
6. A share is known as well as its samples allow: within 2 points, or 4 standard deviations where these are more.
"""
import bisect
import collections
import glob
import mmap
import os
import re
import signal
import struct
import subprocess
import sys
import time

import pytest

import servers
from conftest import ROOT, need, need_root, scale, sql_all
from publishing import publisher, wait_indexed

sys.path.insert(0, os.path.join(ROOT, "tests", "rows"))
import oracle  # noqa: E402

POINTS = 0.02
RATES = (499, 467, 433)  # sonde's, the perfs'
SECONDS, LONGEST = scale(12, 60), scale(24, 120)  # of a recording; longer than the first where the program gets little of a CPU
WORK, LITTLE = scale(1, 10), 0.3  # seconds of CPU that a recording waits for; with less than the latter nothing can be said


class Code:
    """The functions of one file, by readelf."""

    def __init__(self, path):
        frames = oracle.frames(path)
        fdes = frames.get(".eh_frame") or frames.get(".debug_frame") or []
        self.fdes = sorted((f.lo, f.hi, any(r[4] == "u" for r in f.rows)) for f in fdes)
        self.starts = [f[0] for f in self.fdes]
        said = subprocess.run(["readelf", "-lW", path], capture_output=True, text=True, check=True).stdout
        self.loads = [tuple(int(x, 16) for x in m) for m in re.findall(r"LOAD +(\S+) (\S+) \S+ (\S+) ", said)]

    def function(self, offset):
        """(start, is it a root) of what stands at this place in the file; None: nothing is said of it."""
        vaddr = next((offset - at + v for at, v, size in self.loads if at <= offset < at + size), -1)
        i = bisect.bisect_right(self.starts, vaddr) - 1
        return (self.fdes[i][0], self.fdes[i][2]) if i >= 0 and vaddr < self.fdes[i][1] else None


class Files:
    """The functions of all files in which perf has met somebody, by the file's name."""

    def __init__(self):
        self.code = {}

    def at(self, path, offset):
        """(module, start, is it a root), or None."""
        module = os.path.basename(path)
        if module not in self.code and path.startswith("/"):
            self.code[module] = Code(path) if os.path.exists(path) else None
        found = self.code[module].function(offset) if self.code.get(module) else None
        return (module, *found) if found else None


class Shares:
    """By samples: where they were taken (self), and what was on their user stacks, functions and pairs of caller and called."""

    def __init__(self):
        self.n = self.users = self.complete = 0
        self.self, self.on_stack = collections.Counter(), collections.Counter()

    def add(self, kernel, user, n=1):
        """Leaf first: names of the kernel, (module, start, root) or None of the program."""
        self.n += n
        leaf = ("[kernel]", kernel[0]) if kernel else user[0][:2] if user and user[0] else None
        self.self[leaf] += n
        known = [f for f in user if f]
        if not known:
            return
        self.users += n
        self.complete += n * known[-1][2]
        for key in {f[:2] for f in known} | {(a[:2], b[:2]) for a, b in zip(user, user[1:]) if a and b}:
            self.on_stack[key] += n


def perf_record(rate, cpu, out):
    command = ["perf", "record", "--buildid-mmap", "-N", "--no-bpf-event", "--proc-map-timeout", "5000", "-k", "realtime", "-m", "64M",
               "-F", str(rate), "-C", str(cpu), "--call-graph", "dwarf,65528", "-o", out]
    return subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, stdin=subprocess.DEVNULL)


def pass_over_symbols(path):
    with open(path, "r+b") as f, mmap.mmap(f.fileno(), 0) as data:
        at, size = struct.unpack_from("QQ", data, 40)  # the header: magic, its size, an attribute's size, where they are, where the records are
        end = at + size
        while at < end:
            kind, _, size = struct.unpack_from("IHH", data, at)
            if kind == 17:
                struct.pack_into("I", data, at, 82)
            assert size >= 8, "not as perf writes its data"
            at += size


def perf_script(path, *args):
    done = subprocess.run(["perf", "script", "--no-inline", "--ns", "-i", path, *args], capture_output=True, text=True,
                          errors="replace", timeout=300, stdin=subprocess.DEVNULL)
    if done.returncode:
        pytest.skip(f"missing: a perf that works here (exit {done.returncode}: {done.stderr.strip()[-200:]})")
    return done.stdout


MAPPED = re.compile(r"PERF_RECORD_MMAP2 (\d+)/\d+: \[0x([0-9a-f]+)\(0x([0-9a-f]+)\) @ (\w+) .*?\]: ..x. (/.*)")


def perf_places(path, pids):
    """{(pid, time): (file, offset)}: where each sample was taken, by its own address and perf's records of what was mapped."""
    mapped, found = collections.defaultdict(list), {}
    for line in perf_script(path, "-G", "--show-mmap-events", "-F", "pid,time,ip").splitlines():
        if at := MAPPED.search(line):
            pid, start, size, offset = int(at[1]), int(at[2], 16), int(at[3], 16), int(at[4], 16)
            mapped[pid].append((start, start + size, offset, at[5]))
        elif (at := re.match(r"\s*(\d+)\s+(\d+\.\d+):\s+([0-9a-f]+)$", line)) and int(at[1]) in pids:
            ip = int(at[3], 16)
            found[at[1], at[2]] = next(((file, ip - start + offset) for start, end, offset, file in reversed(mapped[int(at[1])])
                                        if start <= ip < end), None)
    return found


def perf_samples(path, pids, files):
    """[(time, kernel, user)] of these processes, leaf first."""
    leaves = perf_places(path, pids)
    found = []
    for block in perf_script(path, "-F", "pid,time,ip,sym,dso").split("\n\n"):
        at = re.match(r"\s*(\d+)\s+(\d+\.\d+):", block)
        if not at or int(at.group(1)) not in pids:
            continue
        # in user space perf prints offsets in the file; a return address may be the first byte of the next function; a line of
        # ffffffffffffffff is nobody's: its stack ends there
        places = [p for p in re.findall(r"^\s+([0-9a-f]+) (.*) \((.*?)\)$", block, re.M) if p[0] != "f" * 16]
        kernel = [sym for ip, sym, _ in places if ip.startswith("ffffff")]
        user = [(dso, int(ip, 16)) for ip, _, dso in places if not ip.startswith("ffffff")]
        if not places and leaves.get(at.groups()):
            user = [leaves[at.groups()]]
        found.append((float(at.group(2)), kernel, [files.at(dso, ip - (i > 0)) for i, (dso, ip) in enumerate(user)]))
    return found


def sonde_samples(store, processes, files):
    """[(second, kernel, user, samples)] of these processes, leaf first."""
    kernel, user = collections.defaultdict(list), collections.defaultdict(list)
    # without an interpreter's own frames, the script's, of which perf knows nothing
    for row in sql_all(store, "SELECT DISTINCT k.stack_id, j.key AS depth, f.function, f.module, f.offset FROM stack_list k JOIN json_each(k.frames) j"
                              " JOIN frames f ON f.id = j.value WHERE NOT f.inlined AND f.runtime = '' ORDER BY k.stack_id, depth DESC"):
        if row["module"].startswith("[kernel"):
            kernel[row["stack_id"]].append(row["function"])
        else:
            user[row["stack_id"]].append((row["module"], row["offset"]))
    found = []
    for row in sql_all(store, "SELECT ts, pid, stack_id, sum(samples) AS n FROM cpu_samples GROUP BY 1, 2, 3"):
        if row["pid"] in processes:
            places = enumerate(user[row["stack_id"]])
            found.append((row["ts"], kernel[row["stack_id"]],
                          [files.at(m, o - (i > 0)) if o is not None else None for i, (m, o) in places], row["n"]))
    return found


def of_the_same_seconds(ours, *perfs):
    """All as Shares, of the whole seconds in which each of the perfs was at work."""
    lo, hi = max(p[0][0] for p in perfs), min(p[-1][0] for p in perfs)
    lo, hi = int(lo) + 1, int(hi)
    found = [Shares() for _ in range(1 + len(perfs))]
    for ts, kernel, user, n in ours:
        if lo <= ts < hi:
            found[0].add(kernel, user, n)
    for perf, to in zip(perfs, found[1:]):
        for at, kernel, user in perf:
            if lo <= at < hi:
                to.add(kernel, user)
    return found


def hold(running):
    """What does the work on one CPU, the clients on another one: no more than one CPU has to be looked at. (It, all processes.)"""
    cpus, held = sorted(os.sched_getaffinity(0)), set()
    for i, (child, _) in enumerate(running.started):
        todo = [child.pid]
        while todo:
            pid = todo.pop()
            held.add(pid)
            for task in glob.glob(f"/proc/{pid}/task/*"):
                try:
                    os.sched_setaffinity(int(os.path.basename(task)), {cpus[0] if i == 0 else cpus[-1]})
                    with open(f"{task}/children", encoding="ascii") as f:
                        todo += [int(c) for c in f.read().split()]
                except OSError:  # it has ended
                    pass
    return cpus[0], held


def cpu_seconds(pid):
    """Of a process and of all that it has started."""
    own = 0
    try:
        with open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace") as f:
            own = sum(map(int, f.read().rsplit(")", 1)[1].split()[11:15])) / os.sysconf("SC_CLK_TCK")
        for path in glob.glob(f"/proc/{pid}/task/*/children"):
            with open(path, encoding="ascii") as f:
                own += sum(cpu_seconds(int(child)) for child in f.read().split())
    except OSError:  # it has ended: who waited for it has its time
        pass
    return own


def wait_worked(pid):
    """Until the recording is long enough, and the program has had its time on the CPU in it. That time."""
    begun, had = time.monotonic(), cpu_seconds(pid)
    while (past := time.monotonic() - begun) < SECONDS or (past < LONGEST and cpu_seconds(pid) - had < WORK):
        time.sleep(0.25)
    return cpu_seconds(pid) - had


def distance(a, na, b, nb):
    """Of two distributions: half the sum of what they differ by."""
    return sum(abs(a[k] / na - b[k] / nb) for k in {*a, *b}) / 2


def far(what, ours, n, perfs, total):
    """{function: (perf, sonde)} of those above 2 % that lie too far from both perfs together."""
    out, worst = {}, 0
    big = {k for k in {*ours, *perfs} if k and max(ours[k] / n, perfs[k] / total) > POINTS}
    for k in big:
        p, q = (ours[k] + perfs[k]) / (n + total), abs(ours[k] / n - perfs[k] / total)
        worst = max(worst, q)
        if q > max(POINTS, 4 * (p * (1 - p) * (1 / n + 1 / total)) ** 0.5):
            out[k] = (round(perfs[k] / total, 3), round(ours[k] / n, 3))
    print(f"{what}: {len(big)} above 2 %, the furthest {100 * worst:.1f} points from perf")
    return out


def record(name, capture, store, scratch):
    """The program under load, by sonde and by two perfs; the processes that do the work, not those of others who run the same."""
    try:
        running = servers.PROGRAMS[name](scratch)
    except servers.Missing as e:
        pytest.skip(f"missing: {e}")
    try:
        with publisher(store, scratch, "--rows-mb", "42") as (maps_pid, maps):
            cpu, held = hold(running)
            c = capture("--freq", RATES[0], "--bucket", "1s", "--maps-socket", maps)
            time.sleep(3)
            wait_indexed(maps_pid)
            perfs = [perf_record(rate, cpu, f"{scratch}/{i}.data") for i, rate in enumerate(RATES[1:])]
            worked = wait_worked(running.started[0][0].pid)
            for p in perfs:
                p.send_signal(signal.SIGINT)
            status = [p.wait(60) for p in perfs]
            c.stop()
    finally:
        running.stop()
    for i in range(len(perfs)):
        pass_over_symbols(f"{scratch}/{i}.data")
    if worked < LITTLE:
        pytest.skip(f"missing: a CPU for {name} (it had {worked:.2f} s in {LONGEST} s)")
    if any(s not in (0, -signal.SIGINT) for s in status):
        pytest.skip(f"missing: a perf that works here (exit {status})")
    rows = sql_all(store, "SELECT pid, exe, args FROM processes")
    return {r["pid"] for r in rows if os.path.basename(r["exe"] or "") in running.executables and
            (r["pid"] in held or scratch in (r["args"] or ""))}


@pytest.mark.live
@pytest.mark.parametrize("name", sorted(servers.PROGRAMS))
def test_shares_are_those_of_perf_with_dwarf(name, capture, store, scratch):
    need_root()
    need("perf")
    need("readelf")
    pids = record(name, capture, store, scratch)
    files = Files()
    perfs = [perf_samples(f"{scratch}/{i}.data", pids, files) for i in range(2)]
    for path in glob.glob(f"{scratch}/*.data"):
        os.unlink(path)
    assert all(perfs), "perf has no samples"
    ours, one, two = of_the_same_seconds(sonde_samples(store, pids, files), *perfs)
    said = (f"{name}: {ours.n}, {one.n}, {two.n} samples; to a root: sonde {ours.complete} of {ours.users}, perf {one.complete} of "
            f"{one.users} and {two.complete} of {two.users}")
    print(said)
    assert min(ours.n, one.n, two.n) > 100, said
    assert ours.n / RATES[0] == pytest.approx(one.n / RATES[1], rel=0.05 + 4 * one.n ** -0.5), said
    between = distance(one.self, one.n, two.self, two.n)
    from_one = distance(ours.self, ours.n, one.self, one.n)
    print(f"self: distance to perf {100 * from_one:.1f} points, of two perfs {100 * between:.1f}")
    assert from_one <= between + max(0.01, 2 * ours.n ** -0.5), (from_one, between)
    assert not far("self", ours.self, ours.n, one.self + two.self, one.n + two.n)
    if min(one.complete / one.users, two.complete / two.users) >= 0.99:  # else perf's own stacks end early
        assert ours.complete / ours.users >= 0.995, said
        assert not far("on the stack", ours.on_stack, ours.users, one.on_stack + two.on_stack, one.users + two.users)
