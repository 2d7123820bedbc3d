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


def test_rules_that_are_none_are_refused_with_the_line(sonde, scratch):
    with open(os.path.join(scratch, "sonde.conf"), "w", encoding="ascii") as f:
        f.write("[targets]\nexclude = command:vault\ninclude = pid:7\n")
    done = sonde("config", "check", env={"SONDE_CONFIG": scratch})
    assert done.returncode == 2 and "sonde.conf:3" in done.stderr and "container:" in done.stderr, done.stderr
