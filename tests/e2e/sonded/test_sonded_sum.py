# SPDX-License-Identifier: Apache-2.0
"""Months in seconds: loaders and sonded killed, files of the store left and removed, the disk filled by somebody else. What
was made (counted by who made it) is what is stored, what was removed with its files, and what is counted as lost."""
import contextlib
import glob
import json
import os
import random
import shutil
import signal
import sqlite3
import struct
import subprocess
import threading
import time

import pytest
from conftest import BIN, BUILD, need_root, scale, segments
from sonded import Sonded, alive, until


BUDGET = 3 << 20


@pytest.fixture
def small_disk(scratch):
    need_root()
    where = os.path.join(scratch, "disk")
    os.mkdir(where)
    if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=48m,mode=755", "tmpfs", where], check=False).returncode:
        pytest.skip("missing: the right to mount a tmpfs")
    yield where
    subprocess.run(["umount", "-l", where], check=True)


@pytest.fixture
def counting(scratch, small_disk):
    """A sonded whose cpu loader counts."""
    where = os.path.join(scratch, "bin")
    os.mkdir(where)
    for name in ("sonded", "sonde-maps", "sonde-index", "sonde-prune"):
        shutil.copy(os.path.join(BIN, name), where)
    shutil.copy(os.path.join(BUILD, "tests", "countload"), os.path.join(where, "sonde-cpu"))
    counts = os.path.join(scratch, "counts")
    os.mkdir(counts)
    return where, counts, os.path.join(small_disk, "store")


def made(counts):
    """(done, begun) of all countloads."""
    done = begun = 0
    for path in glob.glob(os.path.join(counts, "*")):
        with open(path, "rb") as f:
            b, d = struct.unpack("=QQ", f.read(16))
        done, begun = done + d, begun + b
    return done, begun


def one(path, query):
    db = sqlite3.connect(f"file:{path}?mode=ro", uri=True, timeout=20)
    try:
        assert db.execute("pragma integrity_check").fetchone() == ("ok",), path
        return db.execute(query).fetchone()[0] or 0
    finally:
        db.close()


def removed(store):
    """Events and losses in the account of removals, read as removed.h specifies it (the larger sequence holds)."""
    path = os.path.join(store, "removed")
    if not os.path.exists(path):
        return 0, 0
    with open(path, "rb") as f:
        pages = [f.read(4096), f.read(4096)]
    pages = [p for p in pages if p[:8] == b"sonderem"]
    page = max(pages, key=lambda p: struct.unpack_from("=Q", p, 16)[0])
    n_families, _, gone = struct.unpack_from("=IQQ", page, 12)
    events = sum(sum(struct.unpack_from("=QQ", page, 56 + 48 * i + 32)) for i in range(n_families))
    return events, gone


class Watch(threading.Thread):
    """The most that a folder takes, as du counts, while this runs."""

    def __init__(self, where):
        super().__init__(daemon=True)
        self.where, self.most, self.over = where, 0, threading.Event()

    def run(self):
        while not self.over.wait(0.02):
            size = 0
            for folder, _, files in os.walk(self.where):
                for name in [*files, "."]:
                    with contextlib.suppress(OSError):
                        size += os.lstat(os.path.join(folder, name)).st_blocks * 512
            self.most = max(self.most, size)

    def stop(self):
        self.over.set()
        self.join()


@pytest.mark.long
def test_made_is_stored_and_removed_and_lost_whatever_is_killed(counting, small_disk):
    where, counts, store = counting
    random.seed(6)
    filler = os.path.join(small_disk, "filler")
    args = ["--budget", str(BUDGET), "--reserve", "6M", "--segment-age", "2s", "--families", "cpu", "--seal", "no"]
    end, restarts = time.monotonic() + scale(10, 600), 0
    watch = Watch(store)

    def start():
        return Sonded(store, *args, env={"COUNTLOAD_DIR": counts}, program=os.path.join(where, "sonded"))
    d = start()
    watch.start()
    try:
        while time.monotonic() < end:
            if not (pid := d.running("cpu", seconds=30)):
                raise AssertionError(d.said())
            time.sleep(random.uniform(0.3, 1.5))
            turn = random.random()
            if turn < 0.55:
                with contextlib.suppress(ProcessLookupError):  # one that ended by itself meanwhile, the disk being full
                    os.kill(pid, signal.SIGKILL)
            elif turn < 0.7:
                subprocess.run(["fallocate", "-l", f"{random.randint(20, 40)}M", filler], check=False, stderr=subprocess.DEVNULL)
            elif turn < 0.85 and os.path.exists(filler):
                os.unlink(filler)
            elif turn < 0.95:
                d.stop(signal.SIGKILL)
                d = start()
                restarts += 1
        if os.path.exists(filler):
            os.unlink(filler)
        pids = d.pids()
        d.stop()
        assert d.child.returncode == 0, d.said()
    finally:
        d.__exit__()
        watch.stop()
    assert until(lambda: not [p for p in pids if alive(p)], 5)
    # whoever opens the store next settles the account of the killed; here it is one more pass of retention
    subprocess.run([os.path.join(BIN, "sonde-prune"), "--store", store, "--budget", str(BUDGET), "--reserve", "1", "--quiet"], check=True)
    stored = sum(one(p, "select sum(n) from sample") for p in segments(store))
    lost = sum(one(p, "select sum(n) from loss_row") for p in segments(store))
    gone, files = removed(store)
    done, begun = made(counts)
    told = json.dumps({"stored": stored, "lost": lost, "removed": gone, "files": files, "done": done, "begun": begun, "most": watch.most,
                       "sonded killed": restarts})
    print(told)
    assert done <= stored + lost + gone <= begun, told
    assert begun - done <= len(os.listdir(counts)), told
    assert files > 0 and gone > 0, told
    assert watch.most <= BUDGET * 1.01, told
    assert not glob.glob(os.path.join(store, "writers", "*")), told
