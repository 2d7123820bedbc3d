# SPDX-License-Identifier: Apache-2.0
"""What sonde itself may take: over a limit, families do less, the dearest first, then are stopped, each step is told, and all comes
back when there is room, the most valued first."""
import contextlib
import glob
import os
import shutil
import signal
import subprocess
import sys
import time

import pytest

from conftest import BIN, WORKLOADS, comm_of, need_root, sql_all
from sonded import Sonded, until


@pytest.fixture(autouse=True)
def as_root():
    need_root()


def configure(scratch, limits):
    with open(os.path.join(scratch, "sonde.conf"), "w", encoding="ascii") as f:
        f.write("[record]\nfamilies = cpu,goheap\nfreq = 40\n[limits]\n" + limits)


def steps(d):
    return [(s["limit"], s["family"], s["what"], s["hz"]) for s in d.ask(do="status")["sonded"]["steps"]]


DOWN = [("cpu", "cpu", "is slowed", 10), ("cpu", "cpu", "is slowed", 5), ("cpu", "goheap", "is stopped", None),
        ("cpu", "cpu", "is stopped", None)]  # goheap earlier where it is dearer
UP = [("cpu", "cpu", "records again", 40), ("cpu", "goheap", "records again", None)]


@pytest.mark.long
def test_over_its_limit_of_cpu_sonde_samples_less_then_stops_and_comes_back_when_there_is_room(store, scratch, sonde):
    configure(scratch, "cpu = 0\nmemory = 0\n")
    # no limit by flag: the file is to decide
    with Sonded(store, "--config", scratch, env={"SONDE_PATIENCE": "500ms"}, limit=None) as d:
        assert d.running("cpu") and d.running("goheap"), d.said()
        configure(scratch, "cpu = 0.000001\nmemory = 0\n")
        d.child.send_signal(signal.SIGHUP)
        assert until(lambda: len(steps(d)) == len(DOWN), 40), (steps(d), d.said())
        assert sorted(steps(d), key=str) == sorted(DOWN, key=str) and steps(d)[-1] == DOWN[-1]
        assert [s for s in steps(d) if s[1] == "cpu"] == [s for s in DOWN if s[1] == "cpu"]
        assert until(lambda: d.service("cpu")["state"] == "off" and d.service("goheap")["state"] == "off"), d.said()
        text = sonde("status", store=store, check=True).stdout
        assert "over its cpu limit, cpu is stopped" in text and "over its cpu limit, goheap is stopped" in text
        assert d.said().count("its limit is 0.00 %") == len(DOWN)
        configure(scratch, "cpu = 0\nmemory = 0\n")
        d.child.send_signal(signal.SIGHUP)
        assert until(lambda: len(steps(d)) == len(DOWN + UP), 40), (steps(d), d.said())
        assert steps(d)[len(DOWN):] == UP and d.ask(do="status")["sonded"]["step"] == 0
        assert until(lambda: d.running("cpu") and d.service("cpu")["hz"] == 40), d.said()
        assert "  limit " not in sonde("status", store=store, check=True).stdout.split("\n", 1)[1]
        d.stop()
    # the store knows at which rate each was sampled
    periods = {round(1e9 / r["period_ns"]) for r in sql_all(store, "select period_ns from run_period p join run r on r.id = p.run "
                                                                  "where r.family = 'cpu' and period_ns > 0")}
    assert 40 in periods and periods <= {5, 10, 40}


def test_offcpu_is_told_to_take_fewer_stacks_while_it_runs_before_it_is_stopped_and_the_store_has_when(store, scratch, sonde):
    def limit(cpu):
        with open(os.path.join(scratch, "sonde.conf"), "w", encoding="ascii") as f:
            f.write(f"[record]\nfamilies = cpu,offcpu\nfreq = 40\n[limits]\nmemory = 0\ncpu = {cpu}\n")

    def of_offcpu(d):
        return [(s["what"], s["step"]) for s in d.ask(do="status")["sonded"]["steps"] if s["family"] == "offcpu"]

    limit(0)
    with Sonded(store, "--config", scratch, env={"SONDE_PATIENCE": "2s"}, limit=None) as d:
        pid = d.running("offcpu")
        assert pid and d.running("cpu"), d.said()
        limit(0.000001)
        d.child.send_signal(signal.SIGHUP)
        assert until(lambda: of_offcpu(d) == [("is slowed", 2), ("is slowed", 3)], 20), (of_offcpu(d), d.said())
        assert until(lambda: d.service("offcpu")["step"] == 3, 5, 0.01), d.said()
        assert d.service("offcpu")["pid"] == pid  # no restart
        assert "step 3 of 3" in sonde("status", store=store, check=True).stdout
        assert until(lambda: d.service("offcpu")["state"] == "off", 20), d.said()
        limit(0)
        d.child.send_signal(signal.SIGHUP)
        assert until(lambda: of_offcpu(d)[2:] == [("is stopped", 0), ("records again", 0)], 20), (of_offcpu(d), d.said())
        assert d.running("offcpu", other_than=pid) and d.service("offcpu")["step"] == 0
        d.stop()
    rows = sql_all(store, "SELECT family, step, stack_rate FROM slowed")
    assert rows and all(r["family"] == "offcpu" for r in rows)
    assert {(r["step"], r["stack_rate"]) for r in rows} <= {(2, 62), (3, 0)}


@pytest.mark.long
def test_over_its_limit_of_memory_sonde_stops_a_family_then_begins_anew_and_comes_back(store, scratch):
    configure(scratch, "cpu = 0\nmemory = 0\n")
    with Sonded(store, "--config", scratch, env={"SONDE_PATIENCE": "500ms"}, limit=None) as d:
        assert d.running("cpu") and d.running("goheap"), d.said()
        configure(scratch, "cpu = 0\nmemory = 1M\n")
        d.child.send_signal(signal.SIGHUP)
        assert until(lambda: ("memory", "all", "is restarted", None) in steps(d), 60), (steps(d), d.said())
        assert steps(d)[0] == ("memory", "goheap", "is stopped", None)
        configure(scratch, "cpu = 0\nmemory = 0\n")
        d.child.send_signal(signal.SIGHUP)
        assert until(lambda: steps(d)[-1] == ("memory", "goheap", "records again", None)), (steps(d), d.said())
        assert d.running("cpu") and d.running("goheap"), d.said()


@pytest.fixture
def bpf_stats():
    """The kernel measures the run time of every BPF program."""
    with open("/proc/sys/kernel/bpf_stats_enabled", "r+", encoding="ascii") as f:
        before = f.read()
        f.seek(0)
        f.write("1")
        f.flush()
        yield
        f.seek(0)
        f.write(before)


SWITCHES = """import os
a, b = os.pipe(), os.pipe()
if not os.fork():
    while os.read(a[0], 1):
        os.write(b[1], b"x")
while os.write(a[1], b"x"):
    os.read(b[0], 1)
"""


@contextlib.contextmanager
def load():
    """Both a busy CPU and many switches: what costs the families most is in the kernel."""
    todo = [[sys.executable, "-c", SWITCHES], [os.path.join(WORKLOADS, "burn"), "60000"]]
    children = [subprocess.Popen(argv, stdout=subprocess.DEVNULL, start_new_session=True) for argv in todo]
    try:
        yield
    finally:
        for child in children:
            os.killpg(child.pid, signal.SIGKILL)
            child.wait()


def tree(pid):
    out, todo = [], [pid]
    while todo:
        out.append(todo.pop())
        for path in glob.glob(f"/proc/{out[-1]}/task/*/children"):
            with contextlib.suppress(OSError), open(path, encoding="ascii") as f:
                todo += [int(c) for c in f.read().split()]
    return out


def charged(pid):
    """By the kernel: (ns of processor time and of run time of BPF programs, bytes of memory and of BPF maps) of all that
    descends from `pid`."""
    cpu, memory, programs, maps = 0, 0, {}, {}
    for p in tree(pid):
        with contextlib.suppress(OSError):
            with open(f"/proc/{p}/stat", "rb") as f:
                waited_for = f.read().rsplit(b")", 1)[1].split()[13:15]
            cpu += time.clock_gettime_ns((~p << 3) | 2) + sum(map(int, waited_for)) * 10**9 // os.sysconf("SC_CLK_TCK")
            with open(f"/proc/{p}/smaps_rollup", encoding="ascii") as f:
                memory += next(int(line.split()[1]) << 10 for line in f if line.startswith("Anonymous:"))
        for path in glob.glob(f"/proc/{p}/fdinfo/*"):
            with contextlib.suppress(OSError), open(path, encoding="ascii", errors="replace") as f:
                info = dict(line.split(":", 1) for line in f if ":" in line)
                if "run_time_ns" in info:
                    programs[info["prog_id"]] = int(info["run_time_ns"])
                elif "map_id" in info:
                    maps[info["map_id"]] = int(info["memlock"])
    return cpu, sum(programs.values()), memory, sum(maps.values())


@pytest.mark.long
def test_what_all_of_sonde_is_said_to_take_is_what_the_kernel_charges_for_it(store, bpf_stats):
    with load(), Sonded(store, "--families", "cpu,offcpu", "--freq", "199", env={"SONDE_PATIENCE": "9s"}) as d:
        assert d.running("cpu") and d.running("offcpu"), d.said()

        def look():
            """Once it has just looked: what it says, and what the kernel does."""
            last = d.ask(do="status")["sonded"]["cpu_ns"]
            assert until(lambda: d.ask(do="status")["sonded"]["cpu_ns"] != last, 10, 0.02)
            return d.ask(do="status")["sonded"], charged(d.child.pid)
        assert until(lambda: not any(comm_of(p).startswith("sonde-index") for p in tree(d.child.pid)), 30)  # files are read at the start
        time.sleep(1)  # the first figures of all of them
        said, (cpu, bpf, _, _) = look()
        time.sleep(8)
        later, (cpu_later, bpf_later, memory, maps) = look()
        rates = {s["name"]: s["cores"] for s in d.ask(do="status")["services"]}
    took, programs = later["cpu_ns"] - said["cpu_ns"], bpf_later - bpf
    real = cpu_later - cpu + programs
    print(f"said {took / 1e6:.1f} ms of {real / 1e6:.1f}, BPF programs {programs / 1e6:.1f}; "
          f"said {later['private_bytes'] >> 20} MiB of {(memory + maps) >> 20}, maps {maps >> 20}; {rates}")
    assert programs > 0.25 * real  # or leaving them out would not show
    assert took == pytest.approx(real, rel=0.2)
    assert maps > 0.3 * (memory + maps)
    assert later["private_bytes"] == pytest.approx(memory + maps, rel=0.25)
    assert rates["offcpu"] > rates["cpu"] > 0


@pytest.mark.long
def test_what_keeps_the_store_is_shown_apart_and_slows_no_family(store, scratch):
    for name in ("sonded", "sonde-maps", "sonde-index", "sonde-cpu"):
        shutil.copy(os.path.join(BIN, name), scratch)
    with open(os.path.join(scratch, "sonde-prune"), "w", encoding="ascii") as f:
        f.write(f"#!/bin/sh\nexec {WORKLOADS}/burn 2000\n")
    os.chmod(f.name, 0o755)
    with Sonded(store, program=os.path.join(scratch, "sonded"), env={"SONDE_PATIENCE": "1s"}, limit="30") as d:
        assert d.running("cpu"), d.said()
        d.ask(do="prune")
        assert until(lambda: d.ask(do="status")["sonded"]["store_cores"] > 0.3, 5), d.ask(do="status")
        assert until(lambda: d.ask(do="status")["sonded"]["store_cores"] == 0, 10), d.ask(do="status")
        assert d.ask(do="status")["sonded"]["cpu_ns"] > 1.5e9
        assert not steps(d) and d.running("cpu")
