# SPDX-License-Identifier: Apache-2.0
"""JavaScript frames in recorded stacks of Node programs that were started without any option: against what a program says of its own
(tests/workloads/nodeshares.js)."""
import json
import math
import os
import signal
import subprocess

import pytest

from conftest import ROOT, need, need_root
from scripting import NODES, node_of, stacks

SHARES = os.path.join(ROOT, "tests", "workloads", "nodeshares.js")
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
        assert b"recording" in record.stdout.readline()
        child.stdin.write(b"\n")
        child.stdin.flush()
        self.told.update(json.loads(child.stdout.readline()))
        record.send_signal(signal.SIGINT)
        self.said = record.communicate(timeout=60)[0].decode()  # the process is still there, in which names are read
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


@pytest.mark.live
@pytest.mark.parametrize("options", [[], *TIERS])
@pytest.mark.parametrize("version", NODES)
def test_recorded_frames_of_each_node_are_what_the_program_says(sonde, store, version, options):
    need_root()
    node = node_of(version)
    if subprocess.run([node, *options, "-e", "0"], capture_output=True).returncode:
        pytest.skip(f"missing: {options} in Node {version}")
    check(sonde, store, [node, *options])


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
    found = [[(f, line) for runtime, f, file, line in reversed(frames) if runtime == "javascript" and file == path] for frames, _ in stacks(store, "offcpu")]
    waits = [f for f in found if f and f[0][0] == "rests"]
    assert waits
    for frames in waits:
        assert frames == [("rests", 2), ("inner", 5), ("inner", 4), ("inner", 4), ("inner", 4), ("(anonymous)", 10), ("(anonymous)", 9)]
