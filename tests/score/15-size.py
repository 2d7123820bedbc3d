# SPDX-License-Identifier: Apache-2.0
"""The store grows by at most 50 MiB a day, and is never 1 % above its budget"""
import glob
import os
import sqlite3
import subprocess
import time

from common import BUILD, Scratch, check, e2e, holds, need_root, tests

LOG = (4 << 20) + (1 << 18)  # what is committed is folded in at 4 MiB, and the log's file used again from its start
A_DAY = 24  # segments of an hour; as archives they take a fifth

need_root()


def held(store):
    """What the segments hold: the log's file grows to its bound and stays there, whatever is committed."""
    pages = 0
    for path in glob.glob(os.path.join(store, "*.db")):
        db = sqlite3.connect(f"file:{path}?mode=ro", uri=True)
        pages += db.execute("PRAGMA page_count").fetchone()[0] * db.execute("PRAGMA page_size").fetchone()[0]
        db.close()
    return pages


def written(daemon):
    """What sonde-cpu has given to write(), the log above all."""
    with open(f"/proc/{daemon.pid}/task/{daemon.pid}/children", encoding="ascii") as f:
        for pid in f.read().split():
            with open(f"/proc/{pid}/comm", encoding="ascii") as c, open(f"/proc/{pid}/io", encoding="ascii") as io:
                if c.read().strip() == "sonde-cpu":
                    return int(io.read().split("wchar: ")[1].split()[0])
    return 0


said = tests(e2e("test_prune.py"), "-k", "budget_holds")
with Scratch() as folder:
    store = os.path.join(folder, "store")
    load = subprocess.Popen([os.path.join(BUILD, "tests", "workloads", "burn"), "600000", "1"], stdout=subprocess.DEVNULL)
    daemon = subprocess.Popen([os.path.join(BUILD, "bin", "sonded"), "--store", store], stderr=subprocess.DEVNULL)
    try:
        time.sleep(60)  # names of the host's programs, once
        first, wrote, began = held(store), written(daemon), time.monotonic()
        time.sleep(90)
        last, wrote, took = held(store), written(daemon) - wrote, time.monotonic() - began
        logs = [os.path.getsize(p) for p in glob.glob(os.path.join(store, "*-wal"))]
    finally:
        daemon.terminate()
        daemon.wait(20)
        load.kill()
        load.wait()
    day = (last - first) / took * 86400 + A_DAY * first
    check(day <= 50 << 20, f"{day / 2**20:.0f} MiB a day ({first >> 10} KiB a segment at first, {(last - first) >> 10} KiB more in {took:.0f} s)")
    check(logs and max(logs) <= LOG, f"the log is {logs} bytes")
    holds(f"{day / 2**20:.0f} MiB a day before it is archived ({first >> 10} KiB a segment at first, {(last - first) >> 10} KiB more in "
          f"{took:.0f} s; {wrote / took * 86400 / 2**20:.0f} MiB a day written); {said}")
