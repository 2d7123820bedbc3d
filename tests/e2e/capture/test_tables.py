# SPDX-License-Identifier: Apache-2.0
"""What sonde-maps publishes for the probes: the slices are /proc/PID/maps, row distances are what readelf says, what ends
gives its room back, and a killed sonde-maps costs nothing of it. Read through descriptors of the maps (--dump-tables)."""
import contextlib
import ctypes
import json
import mmap
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
import _ctypes

import procfs
import pytest

from conftest import BIN, WORKLOADS, need, need_root, scale

PENDING, READY, REFUSED = 1, 2, 3
MASK = (1 << 64) - 1


@pytest.fixture(autouse=True)
def as_root():
    need_root()


class Tables:
    """A sonde-maps that listens, what it tells of its costs, and what is in its maps."""

    def __init__(self, scratch, store, *args):
        self.path = os.path.join(scratch, "tables-socket")
        self.child = subprocess.Popen([f"{BIN}/sonde-maps", "--socket", self.path, "--print", "--json", "--store", store,
                                       *args], stdout=subprocess.PIPE, text=True)
        self.watermark, self.cost = 0, {}
        self.thread = threading.Thread(target=self.read)
        self.thread.start()
        self.until(lambda: self.watermark and os.path.exists(self.path))

    def read(self):
        for line in self.child.stdout:
            if '"watermark"' in line:
                self.watermark = json.loads(line)["time_ns"]
            elif '"cost"' in line:
                self.cost = json.loads(line)

    def until(self, what, timeout=90):
        end = time.monotonic() + timeout
        while not what():
            assert time.monotonic() < end and self.child.poll() is None, "it did not come"
            time.sleep(0.02)

    def settle(self):
        """Until all that happened up to now has been read and published."""
        now = time.clock_gettime_ns(time.CLOCK_BOOTTIME)
        self.until(lambda: self.watermark > now)

    def dump(self, pid=0):
        done = subprocess.run([f"{BIN}/sonde-maps", "--socket", self.path, "--dump-tables", str(pid)], capture_output=True,
                              text=True, check=True)
        return json.loads(done.stdout)

    def process(self, pid):
        p = self.dump(pid)["process"]
        for m in p["mappings"] if p else []:
            for k in ("start", "end", "to_offset", "to_row"):
                m[k] = int(m[k], 16)
        return p

    def fresh_cost(self):
        """A cost told from now on; one is told each second."""
        self.cost = {}
        self.until(lambda: self.cost)
        return self.cost

    def close(self):
        self.child.terminate()
        self.child.wait()
        self.thread.join()
        self.child.stdout.close()


@pytest.fixture
def tables(scratch, store):
    running = []

    def begin(*args):
        running.append(Tables(scratch, store, *args))
        return running[-1]

    yield begin
    for t in running:
        t.close()


def proc_maps(pid):
    """Executable mappings: start -> (end, offset, path)."""
    out = {}
    with open(f"/proc/{pid}/maps", encoding="utf-8", errors="surrogateescape") as f:
        for line in f:
            m = re.match(r"([0-9a-f]+)-([0-9a-f]+) ..x. ([0-9a-f]+) \S+ \d+ *(.*)", line)
            if m and m[4] not in ("[uprobes]", "[vsyscall]"):
                out[int(m[1], 16)] = (int(m[2], 16), int(m[3], 16), m[4])
    return out


def text_segments(path):
    """(vaddr, offset, size) of each executable segment, as readelf says."""
    said = subprocess.run(["readelf", "-lW", path], capture_output=True, text=True, check=True).stdout
    return [(int(m[2], 16), int(m[1], 16), int(m[3], 16)) for m in
            re.finditer(r"LOAD +(0x[0-9a-f]+) (0x[0-9a-f]+) 0x[0-9a-f]+ (0x[0-9a-f]+) 0x[0-9a-f]+ R.E", said)]


def expected_row(start, end, offset, path):
    """The row address of `start`: from the page of the lowest executable address."""
    segments = text_segments(path)
    base = min(s[0] for s in segments) & ~0xfff

    def shared(s):
        return min(s[1] + s[2], offset + end - start) - max(s[1], offset)

    best = max(segments, key=shared)
    return best[0] + offset - best[1] - base


def check_against_proc(p, pid):
    """Every executable mapping of the process is published, with its file offset; returns how many had rows."""
    real, rows = proc_maps(pid), 0
    told = {m["start"]: m for m in p["mappings"]}
    assert sorted(told) == [m["start"] for m in p["mappings"]]
    for start, (end, offset, path) in real.items():
        m = told[start]
        assert m["end"] == end, path
        if not path.startswith("/"):
            assert path == "[vdso]" or m["slot"] == 0, path
            continue
        assert (start + m["to_offset"]) & MASK == offset, path
        assert m["slot"] and m["image"]
        if m["state"] == READY and os.path.exists(path):
            rows += 1
            assert (start + m["to_row"]) & MASK == expected_row(start, end, offset, path), path
    return rows


def test_the_slice_of_a_process_is_its_proc_maps_and_its_rows_lie_where_readelf_says(tables):
    need("readelf")
    t = tables()
    children = [subprocess.Popen(c, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL) for c in
                (["/usr/bin/python3", "-c", "import ssl,sqlite3,ctypes;input()"], ["/bin/bash", "-c", "read x"], ["/bin/cat"],
                 ["/usr/bin/perl", "-e", "<STDIN>"])]
    try:
        time.sleep(0.5)

        def all_settled():
            return all(m["state"] != PENDING for c in children for m in t.process(c.pid)["mappings"] if m["slot"])

        t.settle()
        t.until(all_settled)
        rows = sum(check_against_proc(t.process(c.pid), c.pid) for c in children)
        assert rows > 20
    finally:
        for c in children:
            c.kill()
            c.wait()


def test_a_forked_worker_shares_its_parents_slice(tables):
    t = tables()
    code = ("import os,sys\npids=[os.fork() or (sys.stdin.read(),os._exit(0)) for _ in range(8)]\n"
            "print(os.getpid(),*pids,flush=True)\nsys.stdin.read()")
    p = subprocess.Popen(["/usr/bin/python3", "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    try:
        pids = [int(x) for x in p.stdout.readline().split()]
        t.settle()
        # until the rows of all they map are there they move, all nine together, to another slice
        t.until(lambda: len({t.process(pid)["first"] for pid in pids}) == 1)
        assert len({t.process(pid)["start_ns"] for pid in pids}) == 9
    finally:
        p.stdin.close()
        p.wait()
        p.stdout.close()


def back_to(t, before, slack):
    """Room that is given back is free after the grace."""
    def is_back():
        now = t.fresh_cost()
        return (t.dump()["state"]["processes"] <= before[0] + slack and
                now["mappings_used"] <= before[1] + slack * 200)
    t.until(is_back)


@pytest.mark.long
def test_five_thousand_processes_leave_nothing_behind(tables):
    t = tables()
    t.settle()
    before = (t.dump()["state"]["processes"], t.fresh_cost()["mappings_used"])
    n = scale(1500, 5000)
    subprocess.run(["/bin/bash", "-c", f"for ((i=0;i<{n // 3};i++)); do (:) & /bin/true; (:); wait; done"], check=True)
    t.settle()
    back_to(t, before, 60)
    assert t.fresh_cost()["tables_refused"] == 0


def test_dlopen_and_dlclose_in_a_loop_are_followed(tables, scratch):
    need("readelf")
    lib = os.path.join(scratch, "libloop.so")
    source = os.path.join(scratch, "loop.c")
    with open(source, "w", encoding="ascii") as f:
        f.write("int loop(int x) { return x + 1; }\n")
    subprocess.run(["cc", "-shared", "-fPIC", "-O2", "-o", lib, source], check=True)
    t = tables()
    for _ in range(scale(200, 2000)):
        handle = ctypes.CDLL(lib)
        _ctypes.dlclose(handle._handle)
    handle = ctypes.CDLL(lib)
    try:
        t.settle()

        def is_there():
            return any(m["state"] == READY and lib == proc_maps(os.getpid()).get(m["start"], (0, 0, ""))[2]
                       for m in t.process(os.getpid())["mappings"])

        t.until(is_there)
        check_against_proc(t.process(os.getpid()), os.getpid())
    finally:
        _ctypes.dlclose(handle._handle)


def test_mapping_and_unmapping_in_a_loop_costs_no_room(tables):
    t = tables()
    t.settle()
    with open("/bin/cat", "rb") as f:
        for _ in range(scale(2000, 50000)):
            with mmap.mmap(f.fileno(), 4096, flags=mmap.MAP_PRIVATE, prot=mmap.PROT_READ | mmap.PROT_EXEC):
                pass
            with mmap.mmap(-1, 8192, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS, prot=mmap.PROT_READ | mmap.PROT_EXEC):
                pass
    t.settle()
    used = t.fresh_cost()
    assert used["mappings_used"] < 200000 and used["tables_refused"] == 0
    check_against_proc(t.process(os.getpid()), os.getpid())


CHURNS = """
import mmap, sys, time
with open('/bin/cat', 'rb') as f:
    def one(): return mmap.mmap(f.fileno(), 4096, flags=mmap.MAP_PRIVATE, prot=mmap.PROT_READ | mmap.PROT_EXEC)
    held = [one() for _ in range(4000)]
    print('ready', flush=True)
    while True:
        for i in range(0, 4000, 8): held[i].close(); held[i] = one()
        time.sleep(0.02)
"""


def test_a_process_that_changes_thousands_of_mappings_without_end_takes_no_new_room_each_time(tables):
    """Freed room is not used for a second: were each state of it published, there would be none for others."""
    t = tables()
    with subprocess.Popen([sys.executable, "-c", CHURNS], stdout=subprocess.PIPE, text=True) as churns:
        try:
            assert churns.stdout.readline() == "ready\n"
            places, end = {}, time.monotonic() + 4
            while time.monotonic() < end:
                with contextlib.suppress(subprocess.CalledProcessError):  # it is busy
                    p = t.process(churns.pid) or {}
                    places[p.get("first"), p.get("as_of_ns")] = p.get("count")
            taken = sum(5 * count for count in places.values() if count and count > 3000)
            assert taken and taken <= 6 * 5 * 4096, places
            assert t.fresh_cost()["tables_refused"] == 0
        finally:
            churns.kill()


MAP_MANY = """
import mmap, re, subprocess, sys, glob, os
held = []
for f in sorted(glob.glob("/usr/lib/x86_64-linux-gnu/*.so*"), key=os.path.getsize, reverse=True):
    said = subprocess.run(["readelf", "-lW", f], capture_output=True, text=True).stdout
    m = re.search(r"LOAD +(0x[0-9a-f]+) 0x[0-9a-f]+ 0x[0-9a-f]+ (0x[0-9a-f]+) 0x[0-9a-f]+ R E", said)
    if not m or os.path.islink(f) or os.path.getsize(f) > 20 << 20:
        continue
    with open(f, "rb") as h:
        held.append(mmap.mmap(h.fileno(), int(m[2], 16), flags=mmap.MAP_PRIVATE, prot=mmap.PROT_READ | mmap.PROT_EXEC,
                              offset=int(m[1], 16)))
    if len(held) == 120:
        break
print(len(held), flush=True)
sys.stdin.read()
"""


@pytest.mark.long
def test_where_there_is_little_room_what_is_used_takes_it_from_what_is_not(tables, capture):
    """Three MiB for the rows, filled by libraries that nobody calls; then a program runs that was not there before."""
    need("readelf")
    t = tables("--rows-mb", "3")
    idle = subprocess.Popen(["/usr/bin/python3", "-c", MAP_MANY], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    busy = None
    try:
        idle.stdout.readline()
        t.until(lambda: t.fresh_cost()["rows_used"] > (3 << 17) - 15000, timeout=60)  # perl's take 18000
        busy = subprocess.Popen(["/usr/bin/perl", "-e", "while (1) { $x = $x * 7 + 1; }"])
        # of this one alone: what the rest of the host runs counts as unused then
        c = capture("--freq", 499, "--maps-socket", t.path, "--pid", busy.pid)

        def is_ready():
            p = t.process(busy.pid)
            real = proc_maps(busy.pid)
            return p and any(m["state"] == READY and real.get(m["start"], "   ")[2].startswith("/usr/bin/perl")
                             for m in p["mappings"])

        t.until(is_ready, timeout=60)
        c.stop()
        state, used = t.dump()["state"], t.fresh_cost()
        assert state["row_elements"] == 3 << 17
        assert used["rows_evicted"] > 0 and used["rows_used"] <= 3 << 17
    finally:
        idle.stdin.close()
        idle.wait()
        idle.stdout.close()
        if busy:
            busy.kill()
            busy.wait()


def map_ids(pid):
    """The BPF maps that a process holds, but for those that each sonde-maps makes for its own program."""
    sizes = (1 << 18, 16384, 32768, 21 << 17)
    return {int(m["map_id"]) for m in procfs.fdinfo(pid) if m.get("map_type") in ("1", "2") and int(m["max_entries"]) in sizes}


def child_of(pid, comm):
    with open(f"/proc/{pid}/task/{pid}/children", encoding="ascii") as f:
        for child in f.read().split():
            with open(f"/proc/{child}/comm", encoding="ascii") as g:
                if g.read() == comm + "\n":
                    return int(child)
    return None


@pytest.mark.long
def test_a_killed_sonde_maps_is_followed_by_one_that_takes_its_maps_over(capture, work, sql, store):
    c = capture("--freq", 499)
    w = work("burn", scale(6000, 20000))
    ids = []
    for _ in range(3):
        end = time.monotonic() + 5
        while not (child := child_of(c.pid, "sonde-maps")) or len(map_ids(child)) < 4:
            assert time.monotonic() < end
            time.sleep(0.02)
        ids.append(map_ids(child))
        time.sleep(1)
        os.kill(child, signal.SIGKILL)
        while child_of(c.pid, "sonde-maps") in (None, child):
            time.sleep(0.02)
    told = w.told()
    done = c.stop()
    assert ids[0] == ids[1] == ids[2] and len(ids[0]) == 4
    assert done["samples"] + sum(done["lost"].values()) == done["seen"]
    rows = sql(store, "SELECT function, sum(samples) AS n FROM cpu_samples WHERE pid = ? GROUP BY 1", (told["pid"],))
    assert sum(r["n"] for r in rows if "+0x" not in r["function"]) > 0.9 * sum(r["n"] for r in rows), rows
    ends = sql(store, "SELECT reason, sum(samples) AS n FROM unwinding WHERE executable = ? GROUP BY 1",
               (f"{WORKLOADS}/burn",))
    # at the very start its rows are not there yet; after a kill they are
    late = "the file's rows were not there yet"
    assert sum(e["n"] for e in ends if e["reason"] == "complete") > 0.9 * sum(e["n"] for e in ends if e["reason"] != late), ends
