# SPDX-License-Identifier: Apache-2.0
"""Recording costs at most 1 % of one core and 64 MiB, at 99 Hz for 30 s"""
import os

from common import Scratch, check, holds, need_root, run, sonde
from conftest import sql_all

need_root()
with Scratch() as folder:
    store = os.path.join(folder, "store")
    done = sonde("record", "-d", "30s", "-q", store=store)
    check(done.returncode == 0, done.stderr)
    # the start (indexes of files that nobody read before) is told apart from the steady state
    rows = sql_all(store, "SELECT ts, program, cpu_ns, private_bytes, rss_bytes FROM cost")
    begin = min(r["ts"] for r in rows) + 5
    later = [r for r in rows if r["ts"] >= begin]
    seconds = max(r["ts"] for r in later) - begin + 1
    cpu = sum(r["cpu_ns"] for r in later) / 1e9 / seconds
    memory = sum(max(r["private_bytes"] for r in rows if r["program"] == p) for p in {r["program"] for r in rows})
    check(cpu <= 0.01, f"{cpu:.2%} of one core (load {os.getloadavg()[0]:.1f})")
    check(memory <= 64 << 20, f"{memory >> 20} MiB")
    holds(f"{cpu:.2%} of one core, {memory >> 20} MiB private memory of all its programs, over {seconds} s")
