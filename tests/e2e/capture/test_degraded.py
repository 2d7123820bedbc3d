# SPDX-License-Identifier: Apache-2.0
"""Hosts that offer less: sonde-maps where its own BPF programs do not load (here: no BTF within sight). It says so, and
tells processes and mappings from the side-band records and /proc alone."""
import os
import subprocess
import sys
import time

import pytest

from conftest import BIN, WORKLOADS, is_charged, need_root, scale, stolen_ns
from test_processes import one, wrong_and_unnamed

NO_BTF = ["unshare", "-m", "sh", "-c", 'mount -t tmpfs none /sys/kernel/btf && exec "$@"', "sh"]


@pytest.fixture
def degraded(scratch):
    """The socket of a sonde-maps without BPF programs."""
    need_root()
    path, said = os.path.join(scratch, "socket"), os.path.join(scratch, "said")
    with open(said, "w", encoding="utf-8") as f:
        child = subprocess.Popen([*NO_BTF, f"{BIN}/sonde-maps", "--socket", path], stderr=f)
    end = time.monotonic() + 10
    while not os.path.exists(path):
        assert time.monotonic() < end and child.poll() is None, open(said, encoding="utf-8").read()
        time.sleep(0.02)
    yield path, said
    child.terminate()
    child.wait()


def test_without_programs_of_its_own_sonde_maps_says_what_is_missing(degraded):
    with open(degraded[1], encoding="utf-8") as f:
        assert "no BPF program" in f.read()


def test_without_programs_of_its_own_what_runs_and_what_starts_is_named(degraded, capture, work, store, sql):
    before = work("burn", 60000)
    time.sleep(0.2)
    c = capture("--freq", 499, "--maps-socket", degraded[0])
    stolen = stolen_ns()
    told = work("burn", 1500, 1, "--note=later").told()
    stolen = stolen_ns() - stolen
    done = c.stop()
    assert done["samples"] + sum(done["lost"].values()) == done["seen"]
    for pid in (before.pid, told["pid"]):
        rows = sql(store, "SELECT s.folded, sum(c.samples) AS n FROM cpu_samples c JOIN stacks s ON s.id = c.stack_id "
                          "WHERE c.pid = ? AND c.comm = 'burn' GROUP BY 1", (pid,))
        good = sum(r["n"] for r in rows if "burn_thread;burn_middle;burn_leaf" in r["folded"])
        assert one(rows) >= 50 and good >= 0.9 * one(rows), rows
    ns = one(sql(store, "SELECT sum(cpu_ns) AS n FROM cpu_samples WHERE pid = ?", (told["pid"],)))
    assert is_charged(ns, told["cpu_ns"], 0.05, stolen), (ns, told, stolen)
    process = sql(store, "SELECT args FROM processes WHERE pid = ?", (told["pid"],))
    assert process[0]["args"].endswith("burn 1500 1 --note=later")


def test_without_programs_of_its_own_the_ends_of_processes_are_told_by_the_process_connector(degraded, capture, store, sql):
    c = capture("--freq", 499, "--maps-socket", degraded[0])
    burn = "import os,time\nwhile time.process_time() < 0.3: pass\n"
    told = {}
    for do, how, status in (("os._exit(7)", "exit", 7), ("os.kill(os.getpid(), 9)", "signal", 9)):
        child = subprocess.Popen([sys.executable, "-c", burn + do])
        child.wait(60)
        told[child.pid] = (how, status)
    c.stop()
    for pid, want in told.items():
        rows = sql(store, "SELECT how, status FROM processes WHERE pid = ? AND how <> 'exec'", (pid,))
        assert (rows[-1]["how"], rows[-1]["status"]) == want, rows


@pytest.mark.long
def test_without_programs_of_its_own_no_name_of_another_file_is_given(degraded, capture, work, store):
    """Two files by exec, at the same addresses, in one process: what cannot be told apart is not named wrongly."""
    seconds = scale(6, 60)
    red, blue = (os.path.join(WORKLOADS, n) for n in ("flip-red", "flip-blue"))
    c = capture("--freq", 997, "--maps-socket", degraded[0])
    until = int((time.clock_gettime(time.CLOCK_MONOTONIC) + seconds) * 1000)
    told = work("flip-red", blue, 50, until, argv0=red).told()
    c.stop()
    wrong, unnamed, all_ = wrong_and_unnamed(store, [told["pid"]], "flip-red", "flip-blue")
    assert all_ > 0.9 * 997 * told["cpu_ns"] / 1e9
    assert not wrong
    assert unnamed <= 0.02 * all_
