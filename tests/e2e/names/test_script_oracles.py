# SPDX-License-Identifier: Apache-2.0
"""Shares of functions in recorded stacks against what other profilers say of the same program: V8's own (node --cpu-prof), and py-spy, which reads Python's
memory from outside."""
import collections
import glob
import json
import math
import os
import signal
import subprocess

import pytest

import test_node_frames
import test_python_frames
from conftest import need, need_root
from scripting import begun, stacks
from test_pstack_python import installed

pytestmark = pytest.mark.live

FREQ = 499


def agree(ours, theirs, names):
    """Shares of these, within 2 points beyond what two samplers differ by chance."""
    n, m = sum(ours.values()), sum(theirs.values())
    print({name: (round(ours[name] / n, 3), round(theirs[name] / m, 3)) for name in names}, n, m)
    if min(n, m) < 200:
        pytest.skip(f"missing: time for this program ({n} and {m} samples)")
    for name in names:
        a, b = ours[name] / n, theirs[name] / m
        p = (a * n + b * m) / (n + m)
        assert abs(a - b) <= 0.02 + 3 * math.sqrt(p * (1 - p) * (1 / n + 1 / m)), (name, ours, theirs)


def by_v8(folder, path):
    """Samples by the function that they were in, of the program's own file."""
    [profile] = glob.glob(os.path.join(folder, "*.cpuprofile"))
    with open(profile, encoding="utf-8") as f:
        nodes = json.load(f)["nodes"]
    found = collections.Counter()
    for node in nodes:
        if node["callFrame"]["url"] == f"file://{path}":
            found[node["callFrame"]["functionName"]] += node["hitCount"]
    return found


def recorded(sonde, store, command):
    """What the program says when it has been recorded; samples by the functions of its own file, innermost first."""
    child = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    try:
        child.stdout.read(1)
        sonde("pstack", "-p", child.pid, store=store, check=True)
        record = subprocess.Popen(["sonde", "record", "--store", store, "--families", "cpu", "--freq", str(FREQ), "--duration", "2m", "--pid", str(child.pid)],
                                  stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        begun(record)
        child.stdin.write(b"\n")
        child.stdin.flush()
        said = child.stdout.readline()
        record.send_signal(signal.SIGINT)
        record.communicate(timeout=360)
    finally:
        child.kill()
        child.wait(20)
        child.stdin.close()
        child.stdout.close()
    ours = collections.Counter()
    for frames, n in stacks(store, "cpu"):
        mine = tuple(f for runtime, f, file, _ in reversed(frames) if runtime == "javascript" and file == command[-1])
        ours.update({mine: n} if mine else {})
    return said, ours


SAYS = "fs.writeSync(1, JSON.stringify(did) + '\\n');\nfs.readSync(0, Buffer.alloc(1));\n"


def program(scratch, seconds):
    """The program of test_node_frames, which also says how long it was in each of its two loops."""
    text = test_node_frames.INLINED.replace("turns(cpu() + 0.6)", f"did.fill(0);\nturns(cpu() + {seconds})")
    text = text.replace("let out = 0;", "let out = 0;\nconst did = [0, 0];")
    text = text.replace("    for (const w of words)", "    const a = cpu();\n    for (const w of words)")
    text = text.replace("    out = (out + sum", "    const b = cpu();\n    out = (out + sum").replace("(numbers)) | 0;", "(numbers)) | 0;\n    did[0] += b - a, did[1] += cpu() - b;")
    end = text.rindex("fs.writeSync")
    path = os.path.join(scratch, "parts.js")
    with open(path, "w", encoding="utf-8") as f:
        f.write(text[:end] + SAYS)
    return path


def test_shares_of_javascript_functions_are_those_of_v8_s_own_profiler(sonde, store, scratch):
    """Without inlining: what is inlined into a loop that runs already V8 itself counts as the function that has the loop."""
    need_root()
    need("node")
    path, apart = program(scratch, 2), "--max-inlined-bytecode-size=0"
    subprocess.run(["node", apart, "--cpu-prof", f"--cpu-prof-dir={scratch}/prof", path], input=b"\n\n", check=True, capture_output=True, timeout=120)
    theirs = by_v8(f"{scratch}/prof", path)
    ours = collections.Counter()
    for names, n in recorded(sonde, store, ["node", apart, path])[1].items():
        ours[names[0]] += n
    for counts in (ours, theirs):
        for other in set(counts) - {"hash", "sum", "add"}:
            del counts[other]
    agree(ours, theirs, ["hash", "sum", "add"])


def test_shares_of_inlined_functions_are_what_the_program_says(sonde, store, scratch):
    need_root()
    need("node")
    said, ours = recorded(sonde, store, ["node", program(scratch, 2)])
    cpu = json.loads(said)
    parts = [sum(n for names, n in ours.items() if part in names) for part in ("hash", "sum")]
    print(dict(ours), cpu)
    if sum(parts) < 200:
        pytest.skip(f"missing: time for this program ({sum(parts)} samples)")
    did = cpu[0] / sum(cpu)
    assert abs(parts[0] / sum(parts) - did) <= 0.02 + 3 * math.sqrt(did * (1 - did) / sum(parts)), (ours, cpu)


@pytest.mark.parametrize("program", ["/usr/bin/python3", *test_python_frames.PYENV[-2:]])
def test_shares_of_python_functions_are_those_of_py_spy(sonde, store, scratch, program):
    """Both at once, of one process."""
    need_root()
    need(program, program)
    spy = os.path.join(installed("py-spy==0.4.2"), "bin", "py-spy")
    child = subprocess.Popen([program, test_python_frames.SHARES, "5"], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    try:
        child.stdout.readline()
        sonde("pstack", "-p", child.pid, store=store, check=True)
        record = subprocess.Popen(["sonde", "record", "--store", store, "--families", "cpu", "--freq", "199", "--duration", "2m", "--pid", str(child.pid)],
                                  stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        begun(record)
        beside = subprocess.Popen([spy, "record", "--format", "raw", "--rate", "199", "--duration", "60", "--nonblocking", "-o", f"{scratch}/raw",
                                   "--pid", str(child.pid)], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        child.stdin.write(b"\n")
        child.stdin.close()
        child.stdout.readline()
        record.send_signal(signal.SIGINT)
        record.communicate(timeout=360)
        child.wait(20)
        beside.wait(60)
    finally:
        child.kill()
        child.wait(20)
        child.stdout.close()
    ours, theirs = collections.Counter(), collections.Counter()
    for frames, n in stacks(store, "cpu"):
        ours.update({f: n for runtime, f, _, _ in frames if runtime == "python" and f in test_python_frames.CALLS})
    with open(f"{scratch}/raw", encoding="utf-8") as f:
        for line in f:
            names, n = line.rsplit(" ", 1)
            theirs.update({name: int(n) for name in test_python_frames.CALLS if f";{name} (" in names})
    agree(ours, theirs, sorted(test_python_frames.CALLS))
