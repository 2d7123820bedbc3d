# SPDX-License-Identifier: Apache-2.0
"""JavaScript frames in recorded stacks of Node programs that were started without any option: against what a program says of its own
(tests/workloads/scripts/nodeshares.js)."""
import json
import math
import os
import signal
import subprocess

import pytest

from conftest import ROOT, need, need_root
from scripting import NODES, begun, node_of, stacks

SHARES = os.path.join(ROOT, "tests", "workloads", "scripts", "nodeshares.js")
LOOPS = os.path.join(ROOT, "tests", "workloads", "scripts", "nodeloops.js")
OTHERS = {"turn", "main", "cpu"}
TIERS = [["--no-opt", "--no-sparkplug"], ["--no-opt", "--always-sparkplug"], ["--maglev", "--no-opt"], ["--max-inlined-bytecode-size=0"],
         ["--interrupt-budget=1000"]]


class Run:
    def __init__(self, sonde, store, command, seconds=0.6, family="cpu", args=()):
        child = subprocess.Popen([*command, SHARES, str(seconds), *args], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.told = json.loads(child.stdout.readline())
        sonde("pstack", "-p", child.pid, store=store, check=True)  # makes the indexes, as a host that records always has them
        record = subprocess.Popen(["sonde", "record", "--store", store, "--families", family, "--freq", "499", "--duration", "2m",
                                   "--pid", str(child.pid)], stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        begun(record)
        child.stdin.write(b"\n")
        child.stdin.flush()
        self.told.update(json.loads(child.stdout.readline()))
        record.send_signal(signal.SIGINT)
        self.said = record.communicate(timeout=360)[0].decode()  # the process is still there, in which names are read
        child.stdin.close()
        child.wait(20)
        child.stdout.close()
        self.all = stacks(store, family)
        self.stacks = [([[f, file, line or None] for runtime, f, file, line in reversed(frames) if runtime == "javascript" and file], frames, n)
                       for frames, n in self.all]


def fits(mine, chain):
    """Is it the outer part of the chain? The innermost frame may stand at any line of its function, or at none that is known."""
    outer = chain[len(chain) - len(mine):]
    return len(mine) <= len(chain) and [f[:2] for f in mine] == [f[:2] for f in outer] and mine[1:] == outer[1:]


def lacks(mine, chain):
    """Is it the chain without some of its frames? A caller whose inlined functions could not be had has no line."""
    left = iter(chain)
    return all(any(f[:2] == g[:2] and f[2] in (g[2], None) for g in left) for f in mine[1:]) and mine[-1][:2] == chain[-1][:2]


def judge(run):
    """(samples of the work: whole and right, others; by chain; with the line of their innermost frame). Asserts that nothing in any stack is wrong."""
    first, last = run.told["spins"]
    chains = {name: chain[:[f[0] for f in chain].index("one") + 1] for name, chain in run.told["chains"].items()}
    outer = {f[0] for f in run.told["chains"]["alpha"]} - {f[0] for chain in chains.values() for f in chain} | OTHERS
    whole, partly, by, lines = 0, 0, dict.fromkeys(chains, 0), 0
    for seen, frames, n in run.stacks:
        names = [f[0] for f in seen]
        if "one" not in names:
            partly += n * (not names and "Builtins_JSEntry" in [f[1] for f in frames])  # other threads run no JavaScript
            continue
        assert all(first <= (f[2] or first) <= last for f in seen if f[0] == "spin"), seen
        at = names.index("one")
        assert names[at + 1] == "turn" and set(names[at + 1:]) <= outer, seen
        mine = seen[:at + 1]
        found = [name for name, chain in chains.items() if fits(mine, chain)]
        if not found and any(lacks(mine, chain) for chain in chains.values()):
            partly += n
            continue
        assert found, f"{mine} is no part of {chains}"
        whole += n
        lines += n * bool(mine[0][2])
        if len(mine) > 1:
            by[found[0]] += n
    return whole, partly, by, lines


def check(sonde, store, command, shares=False, **more):
    """`shares`: where nothing is inlined into the code that was interrupted, whose functions nobody tells."""
    run = Run(sonde, store, command, **more)
    whole, partly, by, lines = judge(run)
    print(f"{command}: {whole} of {whole + partly} samples whole and right, {lines} with the line of the innermost frame; {by} {run.told['cpu']}")
    if whole + partly < 100:
        pytest.skip(f"missing: time for this program ({whole + partly} samples)")
    assert whole >= 0.95 * (whole + partly), run.said
    cpu = run.told["cpu"]
    for name, seconds in cpu.items():
        did = seconds / sum(cpu.values())
        assert not shares or abs(by[name] / sum(by.values()) - did) <= 0.02 + 3 * math.sqrt(did * (1 - did) / sum(by.values())), (by, cpu)
    assert not shares or lines >= 0.8 * whole
    return run


def test_recorded_javascript_frames_are_what_the_program_says(sonde, store):
    """Interpreted and baseline code: each line is known. In a worker thread."""
    need_root()
    need("node")
    check(sonde, store, ["node", "--no-opt"], args=["worker"], shares=True)
    assert "(x >> 7)" in sonde("lines", "^spin$", store=store, check=True).stdout
    assert ";one;alpha;deep;deep;" in sonde("export", "folded", store=store, check=True).stdout


def test_recorded_frames_of_optimised_code_are_what_the_program_says(sonde, store):
    need_root()
    need("node")
    check(sonde, store, ["node"])
    flame = json.loads(sonde("flame", "--json", store=store, check=True).stdout)["rows"]
    assert {r["runtime"] for r in flame if r["origin"] == "script"} == {"javascript"}


def check_loops(sonde, store, command, compiler, inlining):
    """A function with a loop, inlined twice over by that compiler: each sample in it has the chain of all three."""
    with subprocess.Popen([*command, "--trace-opt", f"--trace-{inlining}-inlining", LOOPS], stdout=subprocess.PIPE, text=True) as child:
        said = list(iter(lambda: child.stdout.readline().rstrip("\n"), "begun"))
        try:
            assert any("outer" in line and f"target {compiler}" in line for line in said), said
            assert any("nlining" in line and "SharedFunctionInfo middle>" in line for line in said), said
            sonde("record", "-d", "1s", "--pid", child.pid, store=store, check=True)  # its file's index is kept from now on
            sonde("record", "--freq", "499", "-d", "3s", "--pid", child.pid, store=store, check=True)
        finally:
            child.kill()
            child.stdout.close()
    whole = others = 0
    for frames, n in stacks(store, "cpu"):
        mine = [f[1] for f in frames if f[0] == "javascript" and f[1] in ("outer", "middle", "inner")]
        assert mine == ["outer", "middle", "inner"][:len(mine)], frames
        whole += n * (len(mine) == 3)
        others += n * (0 < len(mine) < 3)
    print(f"{command}: {whole} of {whole + others} samples have the innermost function")
    assert whole > 20 and whole >= 0.9 * (whole + others)  # outer's own loop, and its calls of Date.now, have a few


def test_a_function_with_a_loop_that_turbofan_inlined_is_named(sonde, store):
    need_root()
    need("node")
    check_loops(sonde, store, ["node"], "TURBOFAN", "turbo")


@pytest.mark.live
@pytest.mark.parametrize("version", ["24.21.0", "26.12.1"])
def test_a_function_with_a_loop_that_maglev_inlined_is_named(sonde, store, version):
    need_root()
    check_loops(sonde, store, [node_of(version), "--no-turbofan"], "MAGLEV", "maglev")


@pytest.mark.live
@pytest.mark.parametrize("options", [[], *TIERS])
@pytest.mark.parametrize("version", NODES)
def test_recorded_frames_of_each_node_are_what_the_program_says(sonde, store, version, options):
    need_root()
    node = node_of(version)
    if subprocess.run([node, *options, "-e", "0"], capture_output=True).returncode:
        pytest.skip(f"missing: {options} in Node {version}")
    check(sonde, store, [node, *options])


INLINED = """
const fs = require('fs');
function hash(text) {
  let h = 7;
  for (let i = 0; i < text.length; i++)
    h = (h * 31 + text.charCodeAt(i)) | 0;
  return h;
}
function add(a, b) {
  return a + b;
}
function sum(numbers) {
  let t = 0;
  for (const x of numbers)
    t = add(t, x);
  return t;
}
const cpu = () => Number(fs.readFileSync('/proc/thread-self/schedstat', 'utf8').split(' ')[0]) / 1e9;
const words = Array.from({ length: 50 }, (_, i) => 'word number ' + i + '.'.repeat(4000));
const numbers = Array.from({ length: 100000 }, (_, i) => i);
let out = 0;
function turns(until) {
  while (cpu() < until) {
    for (const w of words)
      out = (out + hash(w)) | 0;
    out = (out + sum(numbers)) | 0;
  }
}
turns(cpu() + 0.3);
fs.writeSync(1, 'x');
fs.readSync(0, Buffer.alloc(1));
turns(cpu() + 0.6);
fs.writeSync(1, 'x');
fs.readSync(0, Buffer.alloc(1));
"""


def check_inlined(sonde, store, scratch, node):
    """Of optimised code that was interrupted between calls: what was inlined there, in the order and at the lines of its calls."""
    path = os.path.join(scratch, "inlined.js")
    with open(path, "w", encoding="utf-8") as f:
        f.write(INLINED)
    child = subprocess.Popen([node, path], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    try:
        child.stdout.read(1)
        sonde("pstack", "-p", child.pid, store=store, check=True)
        record = subprocess.Popen(["sonde", "record", "--store", store, "--families", "cpu", "--freq", "499", "--duration", "2m", "--pid", str(child.pid)],
                                  stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        begun(record)
        child.stdin.write(b"\n")
        child.stdin.flush()
        child.stdout.read(1)
        record.send_signal(signal.SIGINT)
        record.communicate(timeout=360)
    finally:
        child.kill()
        child.wait(20)
        child.stdin.close()
        child.stdout.close()
    told, untold = 0, 0
    for frames, n in stacks(store, "cpu"):
        mine = [(f, line or None) for runtime, f, file, line in reversed(frames) if runtime == "javascript" and file == path]
        if not mine or "cpu" in [f for f, _ in mine]:
            continue
        names = [f for f, _ in mine]
        if names == ["(anonymous)"]:  # it has returned, and writes that it has
            continue
        assert names[-2:] == ["turns", "(anonymous)"] and mine[-1][1] in (29, 32), mine
        if len(names) == 2:
            untold += n
            continue
        assert names[:-2] in (["hash"], ["sum"], ["add", "sum"]), mine
        told += n
        at = names.index("turns")
        assert mine[at][1] == (25 if names[at - 1] == "hash" else 26), mine
        assert names[0] != "add" or mine[1][1] in (15, None), mine
    print(f"{node}: {told} of {told + untold} samples with what was inlined")
    if told + untold < 100:
        pytest.skip(f"missing: time for this program ({told + untold} samples)")
    assert told >= 0.6 * (told + untold)


def test_a_function_that_was_inlined_is_told_where_it_was_interrupted(sonde, store, scratch):
    need_root()
    need("node")
    check_inlined(sonde, store, scratch, "node")


@pytest.mark.live
@pytest.mark.parametrize("version", NODES)
def test_a_function_that_was_inlined_is_told_by_each_node(sonde, store, scratch, version):
    need_root()
    check_inlined(sonde, store, scratch, node_of(version))


WAITS = """
function rests() { Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 3); }
function inner(n) {
  return n ? inner(n - 1) :
    rests();
}
require('fs').writeSync(1, 'x');
for (let stop = false; !stop;)
  [1].forEach(() =>
    inner(3));
"""


def test_waits_of_node_programs_have_their_javascript_frames(sonde, store, scratch):
    need_root()
    need("node")
    path = os.path.join(scratch, "waits.js")
    with open(path, "w", encoding="utf-8") as f:
        f.write(WAITS)
    child = subprocess.Popen(["node", path], stdout=subprocess.PIPE)
    try:
        child.stdout.read(1)
        sonde("pstack", "-p", child.pid, store=store, check=True)
        sonde("record", "--families", "offcpu", "--duration", "1s", "--pid", child.pid, store=store, check=True)
    finally:
        child.kill()
        child.wait(20)
        child.stdout.close()
    found = [([(f, line) for runtime, f, file, line in reversed(frames) if runtime == "javascript" and file == path], n) for frames, n in stacks(store, "offcpu")]
    waits = [f for f in found if f[0] and f[0][0][0] == "rests"]
    assert waits
    below = [("inner", 5), ("inner", 4), ("inner", 4), ("inner", 4), ("(anonymous)", 10), ("(anonymous)", 9)]
    for frames, _ in waits:
        # that of an optimised function which had its CPU taken away, and did not call, is not known (v8.h)
        assert frames[1:] == below and frames[0] in (("rests", 2), ("rests", 0)), frames
    assert sum(n for f, n in waits if f[0][1] == 0) <= 0.05 * sum(n for _, n in waits), waits
