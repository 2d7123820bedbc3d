# SPDX-License-Identifier: Apache-2.0
"""Script frames of PHP and Ruby in recorded stacks: against what a program says of its own (tests/workloads/scripts/phpshares.php, rubyshares.rb),
of this Debian's interpreters every day, of other suites' among the live tests."""
import json
import math
import os
import subprocess

import pytest

import test_pstack_php
import test_pstack_ruby
from conftest import ROOT, need, need_root
from scripting import stacks, unpacked
from test_pstack_php import JIT, PHP, SUITES as PHP_SUITES, need_php
from test_pstack_ruby import RUBY, SUITES as RUBY_SUITES, as_ruby_says

# the program; the frame that all of its work has, outermost; functions beside those of its chains
PROGRAMS = {"php": ("phpshares.php", "{main}", {"turn", "cpu", "getrusage", "microtime", "json", "implode", "addcslashes"}),
            "ruby": ("rubyshares.rb", "block in <main>",
                     {"block (2 levels) in turn", "block in turn", "turn", "clock", "clock_gettime", "times", "each", "fetch", "send", "json", "block in json", "map", "join",
                      "inspect", "to_s", "puts", "write"})}


class Run:
    """A program while sonde records it; its families' stacks are in `stacks`."""

    def __init__(self, sonde, store, runtime, command, seconds=4, family="cpu"):
        path = os.path.join(ROOT, "tests", "workloads", "scripts", PROGRAMS[runtime][0])
        self.runtime = runtime
        child = subprocess.Popen([*command, path, str(seconds)], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.told = json.loads(child.stdout.readline())
        sonde("pstack", "-p", child.pid, store=store, check=True)  # makes the indexes, as a host that records always has them
        record = subprocess.Popen(["sonde", "record", "--store", store, "--families", family, "--freq", "499", "--duration", f"{seconds}s",
                                   "--pid", str(child.pid)], stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        child.stdin.write(b"\n")
        child.stdin.close()
        self.told.update(json.loads(child.stdout.readline()))
        child.wait(20)
        child.stdout.close()
        self.said = record.communicate(timeout=360)[0].decode()
        self.stacks = [(self.script(frames), n) for frames, n in stacks(store, family)]

    def script(self, frames):
        """Innermost first, as the program says them."""
        found = [[f, file or None, line or None] for runtime, f, file, line in reversed(frames) if runtime == self.runtime]
        return as_ruby_says(found) if self.runtime == "ruby" else found


def fits(mine, chain):
    """Is it the outer part of the chain? The innermost frame may stand at any line of its function."""
    return len(mine) <= len(chain) and [f[0] for f in mine] == [f[0] for f in chain[-len(mine):]] and \
        mine[1:] == chain[len(chain) - len(mine) + 1:]


def judge(run):
    """(whole and right, without script frames, others; with the line of their innermost frame; samples by chain). Asserts that nothing in
    any stack is wrong."""
    _, outermost, others = PROGRAMS[run.runtime]
    chains = {name: chain[:[f[0] for f in chain].index(name) + 1] for name, chain in run.told["chains"].items()}
    first, last = run.told["spins"]
    whole, none, partly, told, by = 0, 0, 0, 0, dict.fromkeys(chains, 0)
    for seen, n in run.stacks:
        names = [f[0] for f in seen]
        if not seen:
            none += n
            continue
        assert all(first <= (f[2] or first) <= last for f in seen if f[0] == "spin"), seen
        begins = [name for name in chains if name in names]
        told += n * all(f[2] for f in seen if f[0] == "spin")
        mine = seen[:names.index(begins[0]) + 1] if begins else []
        mine = mine[1:] if mine and mine[0][0] == "new" else mine  # it is not in it when the chain is told
        assert set(names[(names.index(begins[0]) + 1 if begins else 0):]) <= others | {outermost, "<main>"}, seen
        assert not begins or fits(mine, chains[begins[0]]), f"{mine} is no part of {chains}"
        assert names.count("<main>") <= 1, seen
        if outermost in names or names[-1] == "<main>":
            whole += n
        else:
            partly += n
        if begins:
            by[begins[0]] += n
    return whole, none, partly, told, by


def check(sonde, store, runtime, command):
    run = Run(sonde, store, runtime, command)
    whole, none, partly, told, by = judge(run)
    walked, cpu = whole + partly, run.told["cpu"]
    if walked < 100:
        pytest.skip(f"missing: time for this program ({walked} samples)")
    assert whole >= 0.95 * walked and told >= 0.95 * walked, run.said
    assert none <= 0.1 * walked, run.said  # before its tables were there; where a machine is busy that is long
    for name, seconds in cpu.items():
        did = seconds / sum(cpu.values())
        assert abs(by[name] / sum(by.values()) - did) <= 0.02 + 3 * math.sqrt(did * (1 - did) / sum(by.values())), (by, cpu)
    print(f"{command}: {whole} of {walked + none} samples whole and right, {none} without script frames")
    return run


def test_recorded_php_frames_are_what_the_program_says(sonde, store):
    need_php()
    check(sonde, store, "php", [PHP, "-n"])
    flame = json.loads(sonde("flame", "--json", store=store, check=True).stdout)["rows"]
    assert {r["runtime"] for r in flame if r["origin"] == "script"} == {"php"}
    assert not [r for r in flame if r["name"] == "execute_ex" and r["total_samples"] > 0.1 * flame[0]["total_samples"]]
    assert "$x += $i;" in sonde("lines", "^spin$", store=store, check=True).stdout
    assert ";{main};turn;alpha;deep;deep;" in sonde("export", "folded", store=store, check=True).stdout


def test_recorded_ruby_frames_are_what_the_program_says(sonde, store):
    need_root()
    need("ruby", RUBY)
    check(sonde, store, "ruby", [RUBY, "--disable-gems"])
    assert "i += 1" in sonde("lines", "^spin$", store=store, check=True).stdout
    assert ";alpha;deep;deep;" in sonde("export", "folded", store=store, check=True).stdout


@pytest.mark.live
@pytest.mark.parametrize("version", PHP_SUITES)
def test_recorded_frames_of_each_php_are_what_the_program_says(sonde, store, version):
    need_root()
    suite, packages, runs = PHP_SUITES[version]
    check(sonde, store, "php", [*runs(unpacked(suite, packages), f"php{version}"), "-n"])


@pytest.mark.live
@pytest.mark.parametrize("version", RUBY_SUITES)
def test_recorded_frames_of_each_ruby_are_what_the_program_says(sonde, store, version):
    need_root()
    suite, packages, runs = RUBY_SUITES[version]
    check(sonde, store, "ruby", [*runs(unpacked(suite, packages), f"ruby{version}"), "--disable-gems"])


@pytest.mark.live
@pytest.mark.parametrize("command", [[PHP, *JIT, "opcache.jit=tracing"], [PHP, *JIT, "opcache.jit=function"], [RUBY, "--yjit", "--disable-gems"]])
def test_no_name_is_wrong_with_a_jit(sonde, store, command):
    need_root()
    if not command[0] or not os.path.exists(command[0]):
        pytest.skip("missing: its interpreter")
    judge(Run(sonde, store, "ruby" if command[0] == RUBY else "php", command))


@pytest.mark.live
@pytest.mark.parametrize("runtime,lying,loop", [("php", test_pstack_php.lying, "execute_ex"), ("ruby", test_pstack_ruby.lying, "vm_exec_core")])
def test_a_recorded_process_that_lies_about_its_interpreter_is_not_believed(sonde, store, scratch, runtime, lying, loop):
    """Frames in circles: they have no names, and its native ones are there."""
    need_root()
    need("gcc")
    child = subprocess.Popen([lying(scratch), "busy"], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    try:
        child.stdout.read(1)
        sonde("record", "--families", "cpu", "--freq", "499", "--duration", "1s", "--pid", child.pid, store=store, check=True)
    finally:
        child.kill()
        child.wait(20)
        child.stdin.close()
        child.stdout.close()
    found = [frames for frames, _ in stacks(store, "cpu")]
    assert any({"main", loop} <= {f[1] for f in frames} for frames in found)
    assert not [f for frames in found for f in frames if f[0] == runtime and f[1] and not f[1].startswith("[")]
