# SPDX-License-Identifier: Apache-2.0
"""Months in minutes (make long-sonded, SOAK_SECONDS=600): sonded with real probes and a loader that counts, on both CPUs busy,
short processes without end, containers that come and go, loaders killed each few seconds, sonded killed each minute, a new file
each 20 s, finished ones archived, and a small disk that another program fills and frees.
Archiving has a hundredth of a CPU that others want, and ends with the sonded that started it: what a minute's life leaves of it is
told; once the CPUs are idle, sonded has to have archived something within a minute and a half."""
import contextlib
import glob
import json
import os
import random
import re
import shutil
import signal
import sqlite3
import struct
import subprocess
import threading
import time

import pytest
from conftest import BIN, BUILD, WORKLOADS, is_charged, need_root, segments, sql_all, stolen_ns
from containers import engine
from sonded import Sonded, alive, until
from test_sonded_sum import Watch, made

pytestmark = pytest.mark.soak

SECONDS = int(os.environ.get("SONDE_SOAK_SECONDS", "600"))
BUDGET, DISK, RESERVE = 40 << 20, 104, "12M" # half of it stays rows while it is new
HZ, BUCKET_NS = 99, 10_000_000_000
AFTER_S = 25


def account(store):
    """{family: events and losses in removed files}, files, and since when (UTC ns) nothing is missing (removed.h)."""
    path = os.path.join(store, "removed")
    if not os.path.exists(path):
        return {}, 0, 0
    with open(path, "rb") as f:
        pages = [p for p in (f.read(4096), f.read(4096)) if p[:8] == b"sonderem"]
    page = max(pages, key=lambda p: struct.unpack_from("=Q", p, 16)[0])
    n, _, files, uncounted, _, history = struct.unpack_from("=IQQQQq", page, 12)
    assert uncounted == 0
    rows = [struct.unpack_from("=24sQQQ", page, 56 + 48 * i) for i in range(n)]
    return {name.rstrip(b"\0").decode(): events + lost for name, _, events, lost in rows}, files, history


class Burner:
    """One CPU kept busy, its CPU time looked at often: (UTC, CPU, what was stolen from the host) in seconds."""

    def __init__(self):
        self.child = subprocess.Popen([os.path.join(WORKLOADS, "burn"), "1000000000"], stdout=subprocess.DEVNULL)
        self.seen = []

    def look(self):
        with open(f"/proc/{self.child.pid}/schedstat", encoding="ascii") as f:
            cpu = int(f.read().split()[0]) / 1e9
        self.seen.append((time.time(), cpu, stolen_ns() / 1e9))

    def at(self, t):
        before = max((s for s in self.seen if s[0] <= t), default=self.seen[0])
        after = min((s for s in self.seen if s[0] > t), default=self.seen[-1])
        share = (t - before[0]) / (after[0] - before[0]) if after[0] > before[0] else 0
        return [b + (a - b) * share for b, a in zip(before[1:], after[1:])]

    def between(self, a, z):
        """(CPU, stolen) of that time."""
        return [y - x for x, y in zip(self.at(a), self.at(z))]

    def end(self):
        self.child.kill()
        self.child.wait()


class Load(threading.Thread):
    """Both CPUs busy, short processes, containers; looks at the burners."""

    def __init__(self, docker):
        super().__init__(daemon=True)
        self.docker, self.over, self.containers = docker, threading.Event(), 0
        self.burners = [Burner() for _ in range(os.cpu_count() or 2)]
        self.storm = subprocess.Popen(["sh", "-c", "while :; do /bin/true; /bin/true; /bin/true; sleep 0.02; done"])
        self.engine = threading.Thread(target=self.contain, daemon=True)

    def contain(self):
        while self.docker and not self.over.wait(1):
            e, image = self.docker
            done = e.docker("run", "--rm", "--network", "none", "--name", f"soak{self.containers}", image, "/bin/burn-static", 200)
            self.containers += done.returncode == 0

    def run(self):
        self.engine.start()
        while not self.over.wait(0.1):
            for b in self.burners:
                b.look()

    def burn(self, on):
        for b in self.burners:
            b.child.send_signal(signal.SIGCONT if on else signal.SIGSTOP)

    def end(self):
        self.over.set()
        self.join()
        self.engine.join(60)
        self.storm.kill()
        self.storm.wait()
        for b in self.burners:
            b.end()


def descriptors(pid):
    return len(os.listdir(f"/proc/{pid}/fd"))


def memory(pid):
    with open(f"/proc/{pid}/status", encoding="ascii", errors="replace") as f:
        return next(int(line.split()[1]) << 10 for line in f if line.startswith("VmRSS"))


@pytest.fixture
def disk(scratch):
    need_root()
    where = os.path.join(scratch, "disk")
    os.mkdir(where)
    if subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={DISK}m,mode=755", "tmpfs", where], check=False).returncode:
        pytest.skip("missing: the right to mount a tmpfs")
    yield where
    subprocess.run(["umount", "-l", where], check=True)


@pytest.fixture
def docker():
    """A Docker engine, or None where there is none: the rest of the soak needs none."""
    try:
        e = engine()
    except pytest.skip.Exception as why:
        print(f"without containers: {why}")
        yield None
        return
    yield e, e.image()
    e.stop()


class Chaos:
    """What is done to sonded and its children, in turns chosen by chance."""

    def __init__(self, start, filler):
        self.start, self.filler = start, filler
        self.d, self.born = start(), time.monotonic()
        self.kills = self.restarts = self.fillings = self.archived = self.rotations = 0
        self.fresh = None  # (descriptors, memory) of the sonded that runs, once it has settled

    def kill_child(self):
        name = random.choices(["goheap", "maps", "cpu"], [6, 2, 2])[0]
        pid = self.d.running(name, seconds=40)
        assert pid, self.d.said()
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
            self.kills += 1

    def count_archived(self):
        """Segments, as the sonded that runs says."""
        self.archived += sum(int(n) for n in re.findall(r"archived (\d+) segment", self.d.said()))

    def kill_sonded(self):
        self.count_archived()
        pids = self.d.pids()
        self.d.stop(signal.SIGKILL)
        assert until(lambda: not [p for p in pids if alive(p)], 20)
        self.d, self.born, self.fresh = self.start(), time.monotonic(), None
        self.restarts += 1

    def fill(self):
        if os.path.exists(self.filler):
            os.unlink(self.filler)
            return
        self.fillings += 1
        disk = os.statvfs(os.path.dirname(self.filler))
        left = disk.f_bavail * disk.f_frsize - random.choice([0, 0, 64 << 10, 1 << 20, 8 << 20])
        subprocess.run(["fallocate", "-l", str(max(left, 1 << 20)), self.filler], check=False, stderr=subprocess.DEVNULL)

    def no_leak(self):
        """Ten descriptors and 6 MiB more than soon after its start would be a leak: it has done hundreds of things since."""
        pid, age = self.d.child.pid, time.monotonic() - self.born
        if age > 15 and not self.fresh:
            self.fresh = descriptors(pid), memory(pid)
        if self.fresh:
            assert descriptors(pid) < self.fresh[0] + 10 and memory(pid) < self.fresh[1] + (6 << 20), (self.fresh, descriptors(pid), memory(pid))
            assert memory(pid) < 20 << 20

    def turn(self):
        if time.monotonic() - self.born > 60:
            self.kill_sonded()
        elif random.random() < 0.35:
            self.fill()
        elif random.random() < 0.1:
            self.rotations += "segment" in self.d.ask(do="rotate")  # not of a full disk
        else:
            self.kill_child()
        self.no_leak()


def windows(store, since):
    """When cpu samples were taken and are stored, as `runs` says: (from, to) in seconds."""
    rows = sql_all(store, "select token, min(from_ns) a, max(to_ns) z from run where family = 'cpu' group by token")
    spans = {}
    for r in rows:  # of all files
        a, z = spans.get(r["token"], (r["a"], r["z"]))
        spans[r["token"]] = min(a, r["a"]), max(z, r["z"])
    return [(max(a, since) / 1e9, z / 1e9) for a, z in spans.values() if z > max(a, since)]


def cpu_sampled(store, pids, since):
    """Seconds of CPU time of these processes by samples, from `since` (whole buckets)."""
    marks = ",".join(str(p) for p in pids)
    query = (f"select coalesce(sum(x.samples), 0) from sonde_samples x where x.ts >= {since // 10**9} and x.process_id in (select id from process"
             f" where pid in ({marks})) and x.run_id in (select id from run where family = 'cpu')")
    return sum(to_the_bucket(p, query) for p in segments(store)) / HZ


def to_the_bucket(path, query):
    """One number from a segment or an archive, through sonde's extension."""
    with contextlib.closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True)) as db:
        db.enable_load_extension(True)
        db.load_extension(os.path.join(BUILD, "lib", "sonde.so"))
        return db.execute(query).fetchone()[0]


def archived(path):
    with contextlib.closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True)) as db:
        return db.execute("select exists (select 1 from packed_table)").fetchone()[0]


def test_soak(scratch, disk, docker):
    where, counts, store = os.path.join(scratch, "bin"), os.path.join(scratch, "counts"), os.path.join(disk, "store")
    os.mkdir(where)
    os.mkdir(counts)
    for name in ("sonded", "sonde-maps", "sonde-index", "sonde-prune", "sonde-seal", "sonde-cpu"):
        shutil.copy(os.path.join(BIN, name), where)
    shutil.copy(os.path.join(BUILD, "tests", "countload"), os.path.join(where, "sonde-goheap"))
    seed = int.from_bytes(os.urandom(3), "little")
    random.seed(seed)
    args = ["--budget", str(BUDGET), "--reserve", RESERVE, "--segment-age", "20s", "--families", "cpu,goheap", "--freq", str(HZ)]

    def start():
        return Sonded(store, *args, env={"COUNTLOAD_DIR": counts, "COUNTLOAD_EVENTS": "200"}, program=os.path.join(where, "sonded"),
                      prefix=docker[0].prefix if docker else ())
    load, watch = Load(docker), Watch(store)
    chaos = None
    try:
        load.start()
        chaos = Chaos(start, os.path.join(disk, "filler"))
        watch.start()
        end = time.monotonic() + SECONDS
        while time.monotonic() < end:
            time.sleep(random.uniform(2, 5))
            chaos.turn()
        if os.path.exists(chaos.filler):
            os.unlink(chaos.filler)
        load.burn(False)
        assert until(lambda: chaos.d.ask(do="status")["store"]["sealing"]["segments"], 90, 0.5), (chaos.d.ask(do="status"), chaos.d.said())
        chaos.count_archived()
        load.burn(True)
        time.sleep(AFTER_S)  # what was before may all be in files that had to go
        assert chaos.d.running("cpu") and chaos.d.running("goheap"), chaos.d.said()
        pids = chaos.d.pids()
        took = chaos.d.stop()
        assert chaos.d.child.returncode == 0 and took < 8, (took, chaos.d.said())
        assert until(lambda: not [p for p in pids if alive(p)], 5)
    finally:
        if chaos:
            chaos.d.__exit__()
        load.end()
        watch.stop()
    judge(store, counts, load, watch, chaos, seed)


def judge(store, counts, load, watch, chaos, seed):
    # whoever opens the store next settles the accounts of the killed: here it is one more pass of retention
    subprocess.run([os.path.join(BIN, "sonde-prune"), "--store", store, "--budget", str(BUDGET), "--reserve", "1", "--quiet"], check=True)
    subprocess.run([os.path.join(BIN, "sonde-seal"), "--store", store, "--quiet"], check=True)  # what sonded did not come to
    gone, files, since = account(store)
    since = -(-since // BUCKET_NS) * BUCKET_NS  # the bucket before may stand in a removed file in part
    stored = sum(to_the_bucket(p, "select coalesce(sum(x.n), 0) from sample x join series e on e.id = x.series join task t on t.id = e.task"
                                  " join run r on r.id = t.run where r.family = 'goheap'") for p in segments(store))
    lost = sum(to_the_bucket(p, "select coalesce(sum(l.n), 0) from loss_row l join run r on r.id = l.run where r.family = 'goheap'") for p in segments(store))
    done, begun = made(counts)
    spans = windows(store, since)
    ran, stolen = map(sum, zip(*(b.between(a, z) for a, z in spans for b in load.burners)))
    sampled = cpu_sampled(store, [b.child.pid for b in load.burners], since)
    told = json.dumps({"seed": seed, "seconds": SECONDS, "done": done, "begun": begun, "stored": stored, "lost": lost,
                       "removed": gone.get("goheap", 0), "files removed": files, "children killed": chaos.kills,
                       "sonded killed": chaos.restarts, "disk filled": chaos.fillings, "files ended on demand": chaos.rotations, "containers": load.containers, "archived by sonded": chaos.archived,
                       "archives": sum(map(archived, segments(store))),
                       "most of budget": round(watch.most / BUDGET, 4), "cpu ran": round(ran, 2), "cpu sampled": round(sampled, 2)})
    print(told)
    assert done <= stored + lost + gone.get("goheap", 0) <= begun and begun - done <= len(os.listdir(counts)), told
    assert watch.most <= BUDGET * 1.01, told
    assert load.containers or not load.docker, told
    assert not glob.glob(os.path.join(store, "writers", "*")), told
    # 2 %, or three standard deviations of so few samples
    assert sampled > 0 and is_charged(sampled, ran, max(0.02, 3 / (sampled * HZ) ** 0.5), stolen / len(load.burners)), (told, stolen)


def cpu_seconds(pid):
    with open(f"/proc/{pid}/schedstat", encoding="ascii") as f:
        return int(f.read().split()[0]) / 1e9


def test_sonded_alone_takes_little_among_500_processes_and_50_starts_a_second(store):
    need_root()
    crowd = [subprocess.Popen(["sleep", "1000"]) for _ in range(500)]
    crowd.append(subprocess.Popen(["sh", "-c", "while :; do /bin/true; sleep 0.01; done"]))
    try:
        with Sonded(store) as d:
            assert d.running("cpu"), d.said()
            pid, cpu, began = d.child.pid, cpu_seconds(d.child.pid), time.monotonic()
            time.sleep(30)
            share = (cpu_seconds(pid) - cpu) / (time.monotonic() - began)
            print(f"sonded: {100 * share:.3f} % of a core, {memory(pid) / 1e6:.1f} MB")
            assert share <= 0.002 and memory(pid) <= 20e6
    finally:
        for p in crowd:
            p.kill()
            p.wait()
