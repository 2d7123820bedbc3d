# SPDX-License-Identifier: Apache-2.0
"""[targets]: which processes are gone into. sonded gives sonde-goheap the Go programs that the configuration allows, and takes
them back when they have ended or the configuration changes."""
import os
import shutil
import signal
import subprocess

import pytest

from conftest import WORKLOADS, need, need_root, sql_all
from sonded import Sonded, until


@pytest.fixture(autouse=True)
def as_root():
    need_root()


@pytest.fixture
def go_programs(scratch):
    """Two Go programs, by two names: {name: process}."""
    program = os.path.join(WORKLOADS, "heapwork-go")
    need("build/tests/workloads/heapwork-go (a Go compiler)", program)
    running = {}
    for name in ("open-go", "closed-go"):
        shutil.copy(program, os.path.join(scratch, name))
        os.mkdir(os.path.join(scratch, "of-" + name))
        running[name] = subprocess.Popen([os.path.join(scratch, name), os.path.join(scratch, "of-" + name)], stdin=subprocess.PIPE,
                                         stdout=subprocess.DEVNULL)
    yield running
    for child in running.values():
        child.kill()
        child.wait()
        child.stdin.close()


def given(d):
    return d.service("goheap").get("targets")


def read(store):
    return {r["comm"] for r in sql_all(store, "SELECT DISTINCT comm FROM process_notes WHERE family = 'goheap'")}


def test_a_loader_goes_into_the_processes_that_the_configuration_allows(store, scratch, go_programs):
    conf = os.path.join(scratch, "sonde.conf")

    def configure(targets):
        with open(conf, "w", encoding="ascii") as f:
            f.write("[record]\nfamilies = goheap\n[targets]\n" + targets)
    configure("include = command:open-* command:closed-*\nexclude = command:closed-go\n")
    with Sonded(store, "--config", scratch) as d:
        assert d.running("goheap"), d.said()
        assert until(lambda: given(d) == 1), (d.service("goheap"), d.said())
        assert until(lambda: "open-go" in read(store), 40), d.said()
        assert read(store) == {"open-go"}
        configure("include = command:open-* command:closed-*\n")
        d.child.send_signal(signal.SIGHUP)
        assert until(lambda: given(d) == 2), d.said()
        assert until(lambda: read(store) == {"open-go", "closed-go"}, 40), (read(store), d.said())
        go_programs["open-go"].kill()
        assert until(lambda: given(d) == 1), d.said()
        d.stop()


def pair(scratch):
    """Two processes that burn and sleep by turns, by two names."""
    running = {}
    for name in ("open-burn", "closed-burn"):
        with open(os.path.join(scratch, name), "w", encoding="ascii") as f:
            f.write("import time, sys\nwhile True:\n  end = time.process_time() + 0.02\n  while time.process_time() < end: pass\n"
                    "  time.sleep(0.02)\n")
        shutil.copy("/usr/bin/python3", os.path.join(scratch, name + "-exe"))
        running[name] = subprocess.Popen([os.path.join(scratch, name + "-exe"), os.path.join(scratch, name)],
                                         stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
    return running


def test_what_the_configuration_excludes_is_counted_and_nothing_is_told_of_it(store, scratch):
    with open(os.path.join(scratch, "sonde.conf"), "w", encoding="ascii") as f:
        f.write("[record]\nfamilies = cpu,offcpu\nfreq = 199\n[targets]\nexclude = command:closed-*\n")
    running = pair(scratch)
    try:
        with Sonded(store, "--config", scratch) as d:
            assert d.running("cpu") and d.running("offcpu"), d.said()
            for kind in ("cpu_samples", "amounts"):
                assert until(lambda k=kind: {"open-burn-exe", "[excluded]"} <= {r["comm"] for r in sql_all(
                    store, f"SELECT DISTINCT comm FROM {k}")}, 40), (kind, d.said())
            d.stop()
    finally:
        for child in running.values():
            child.kill()
            child.wait()
    told = sql_all(store, "SELECT DISTINCT pid, comm, exe, args FROM processes")
    assert not [r for r in told if r["pid"] == running["closed-burn"].pid or "closed" in r["comm"] + r["exe"]], told
    assert [r for r in told if r["pid"] == running["open-burn"].pid]
    # no thread, no id, no stack of it; and of the open one all of that
    rows = sql_all(store, "SELECT DISTINCT c.thread, c.tid, s.folded FROM cpu_samples c JOIN stacks s ON s.id = c.stack_id "
                          "WHERE c.comm = '[excluded]'")
    assert rows and all((r["thread"], r["tid"]) == ("", 0) and "[excluded]" in r["folded"] for r in rows), rows
    text = subprocess.run(["grep", "-l", "-r", "--include=*.db", "closed-burn", store], capture_output=True, text=True, check=False)
    assert not text.stdout, text.stdout


def test_rules_that_are_none_are_refused_with_the_line(sonde, scratch):
    with open(os.path.join(scratch, "sonde.conf"), "w", encoding="ascii") as f:
        f.write("[targets]\nexclude = command:vault\ninclude = pid:7\n")
    done = sonde("config", "check", env={"SONDE_CONFIG": scratch})
    assert done.returncode == 2 and "sonde.conf:3" in done.stderr and "container:" in done.stderr, done.stderr
