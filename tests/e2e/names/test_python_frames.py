# SPDX-License-Identifier: Apache-2.0
"""Script frames of CPython in recorded stacks: against what a program says of its own (tests/workloads/scripts/pyshares.py), of Debian's interpreter
every day, of all that can be had among the live tests."""
import glob
import json
import math
import os
import subprocess

import pytest

from conftest import BUILD, ROOT, need, need_root
from scripting import begun, stacks
from test_pstack_python import SUITES, lying, unpacked

SHARES = os.path.join(ROOT, "tests", "workloads", "scripts", "pyshares.py")
PYENV = sorted(glob.glob(os.path.expanduser("~/.pyenv/versions/*/bin/python")))
DEBIAN = "/usr/bin/python3"
CALLS = {"alpha", "beta", "gamma"}


def script(frames):
    """Innermost first, as the program says them."""
    return [[f, file, line] for runtime, f, file, line in reversed(frames) if runtime == "python"]


class Run:
    """pyshares.py under one interpreter while sonde records it."""

    def __init__(self, sonde, store, command, seconds=5, env=None):
        child = subprocess.Popen([*command, SHARES, str(seconds)], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                 env=dict(os.environ, PYTHONDONTWRITEBYTECODE="1", **(env or {})))
        self.told = json.loads(child.stdout.readline())
        sonde("pstack", "-p", child.pid, store=store, check=True)  # makes the indexes, as a host that records always has them
        record = subprocess.Popen(["sonde", "record", "--store", store, "--families", "cpu", "--freq", "499", "--duration", "2m",
                                   "--pid", str(child.pid)], stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        begun(record)
        child.stdin.write(b"\n")
        child.stdin.close()
        self.told.update(json.loads(child.stdout.readline()))
        child.wait(20)
        child.stdout.close()
        self.said = record.communicate(timeout=360)[0].decode()
        self.store = store


def judge(run):
    """(whole and right, without script frames, others; samples by chain). Asserts that nothing in any stack is wrong."""
    chains = run.told["chains"]
    first, last = run.told["spins"]
    # in the thread that works, what is above turn_of(): run() and turn() in its place
    below = {name: chain[:[f[0] for f in chain].index("turn_of")] for name, chain in chains.items()}
    known = {(f, file) for chain in chains.values() for f, file, _ in chain} | {("note", SHARES), ("turn", SHARES), ("run", SHARES),
                                                                                ("main", SHARES), ("spin", SHARES)}
    whole, none, partly, by = 0, 0, 0, dict.fromkeys(chains, 0)
    for frames, n in stacks(run.store, "cpu"):
        seen = script(frames)
        if not seen:
            none += n
            continue
        for f, file, line in seen:
            assert (f, file) in known or file.endswith(("threading.py", "json/__init__.py", "json/encoder.py")), seen
            assert file != SHARES or f != "spin" or first <= line <= last, seen
        inner = [f for f in seen if f[1] == SHARES]
        names = [f[0] for f in inner]
        if "turn" not in names:
            partly += n if not seen[-1][0].endswith(("_bootstrap", "__bootstrap", "<module>")) else 0
            whole += n if seen[-1][0].endswith(("_bootstrap", "__bootstrap", "<module>")) else 0
            continue
        assert seen[-1][0].endswith(("_bootstrap", "__bootstrap")) and names[names.index("turn") + 1] == "run", seen
        mine = inner[:names.index("turn")]
        if not mine:
            whole += n
            continue
        # a stack is the outer part of a chain; the innermost frame may stand at any line of its function
        fits = [name for name, chain in below.items() if len(mine) <= len(chain) and
                [f[0] for f in mine] == [f[0] for f in chain[-len(mine):]] and mine[1:] == chain[len(chain) - len(mine) + 1:]]
        assert fits, f"{mine} is no part of {below}"
        whole += n
        by[fits[0]] += n
    return whole, none, partly, by


def check(sonde, store, command, env=None):
    run = Run(sonde, store, command, env=env)
    whole, none, partly, by = judge(run)
    walked, cpu = whole + partly, run.told["cpu"]
    if walked < 200:
        pytest.skip(f"missing: time for this program ({walked} samples)")
    assert whole >= 0.98 * walked, run.said
    assert none <= 0.1 * walked, run.said  # before its tables were there; where a machine is busy that is long
    for name, seconds in cpu.items():
        did = seconds / sum(cpu.values())
        assert abs(by[name] / sum(by.values()) - did) <= 0.02 + 3 * math.sqrt(did * (1 - did) / sum(by.values())), (by, cpu)
    print(run.said)
    print(f"{command}: {whole} of {walked + none} samples whole and right, {none} without script frames")
    return run


def test_recorded_python_frames_are_what_the_program_says(sonde, store):
    """Debian's interpreter: linked statically, stripped."""
    need_root()
    need(DEBIAN, DEBIAN)
    check(sonde, store, [DEBIAN])
    flame = json.loads(sonde("flame", "--json", store=store, check=True).stdout)["rows"]
    assert {r["runtime"] for r in flame if r["origin"] == "script"} == {"python"}
    assert not [r for r in flame if r["name"] == "_PyEval_EvalFrameDefault" and r["total_samples"] > 0.1 * flame[0]["total_samples"]]
    shown = json.loads(sonde("flame", "--json", "--interpreter", store=store, check=True).stdout)["rows"]
    assert [r for r in shown if r["name"] == "_PyEval_EvalFrameDefault"]
    assert shown[0]["total_samples"] == flame[0]["total_samples"]
    text = sonde("lines", "^spin$", store=store, check=True).stdout
    assert "while i < n: i += 1" in text
    folded = sonde("export", "folded", store=store, check=True).stdout
    assert ";run;turn;alpha;deep;deep;" in folded.replace("Thread.", "")
    rows = json.loads(sonde("sql", "--json", "SELECT DISTINCT runtime, module FROM frames WHERE function = 'spin'", store=store, check=True).stdout)
    assert [list(r.values()) if isinstance(r, dict) else r for r in rows["rows"]] == [["python", "scripts/pyshares.py"]]


@pytest.mark.live
@pytest.mark.parametrize("program", PYENV or [None])
def test_recorded_frames_of_each_version_are_what_the_program_says(sonde, store, program):
    if not program:
        pytest.skip("missing: interpreters of pyenv")
    need_root()
    check(sonde, store, [program])


def of_suite(suite, version):
    """(command, environment) of Debian's interpreter in another suite; 3.14 and 3.15 of sid are built of tail calls."""
    usr = unpacked(suite)
    loader = [f"{usr}/lib64/ld-linux-x86-64.so.2", "--library-path", f"{usr}/lib/x86_64-linux-gnu"] if SUITES[suite][1] else []
    return [*loader, f"{usr}/bin/python{version}"], {"PYTHONHOME": usr}


@pytest.mark.live
@pytest.mark.parametrize("suite,version", [(s, v) for s in SUITES for v in SUITES[s][0]])
def test_recorded_frames_of_debian_s_other_suites_are_what_the_program_says(sonde, store, suite, version):
    need_root()
    command, env = of_suite(suite, version)
    check(sonde, store, command, env)


WAITING = """
import sys, time
def wait(n):
    time.sleep(0.002)
def deep(n):
    if n: return deep(n - 1)
    return sorted([1], key=wait)
sys.stdout.write("x"); sys.stdout.flush(); sys.stdin.readline()
for _ in range(int(sys.argv[1])):
    deep(20)
"""


def waits_of(sonde, store, scratch, command, env=None):
    """Of the waits in time.sleep: (whole and right in each function, file and line, others)."""
    path = os.path.join(scratch, "waiting.py")
    with open(path, "w", encoding="utf-8") as f:
        f.write(WAITING)
    child = subprocess.Popen([*command, path, "600"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=dict(os.environ, **(env or {})))
    child.stdout.read(1)
    sonde("pstack", "-p", child.pid, store=store, check=True)  # makes the indexes, as a host that records always has them
    record = subprocess.Popen(["sonde", "record", "--store", store, "--families", "offcpu", "--duration", "2m", "--pid", str(child.pid)],
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    begun(record)
    child.stdin.write(b"\n")
    child.stdin.close()
    child.wait(60)
    child.stdout.close()
    record.communicate(timeout=360)
    expected = [["wait", path, 4], *[["deep", path, 7]], *[["deep", path, 6]] * 20, ["<module>", path, 10]]
    right = others = 0
    for frames, n in stacks(store, "offcpu"):
        seen = script(frames)
        if not any("nanosleep" in (f or "") or "select" in (f or "") for _, f, _, _ in frames):  # 3.10 and before wait in select()
            continue
        assert not seen or seen == expected, seen
        right += n * (seen == expected and frames[0][0] != "python")
        others += n * (not seen or frames[0][0] == "python")
    return right, others


@pytest.mark.live
@pytest.mark.parametrize("suite,version", [("bookworm", "3.11"), *[(s, v) for s in SUITES for v in SUITES[s][0]]])
def test_waits_have_each_frame_of_the_script(sonde, store, scratch, suite, version):
    need_root()
    command, env = ([DEBIAN], None) if suite == "bookworm" else of_suite(suite, version)
    right, others = waits_of(sonde, store, scratch, command, env)
    print(f"{version}: {right} of {right + others} waits whole and right")
    assert right + others > 20 and right >= 0.98 * (right + others)


REUSED = """
import sys, time
sys.stdout.write("x"); sys.stdout.flush()
until, i = time.time() + float(sys.argv[1]), 0
while time.time() < until:
    source = "\\n" * (i % 50) + "def gen_%d(n):\\n  i = 0\\n  while i < n: i += 1\\ngen_%d(40000)\\n" % (i, i)
    exec(compile(source, "/gen-%d.py" % i, "exec"), {})
    i += 1
"""


def test_a_function_that_was_freed_lends_its_name_to_no_other(sonde, store):
    """Code objects come and go at the same addresses: each has a name, a file and a line that belong together."""
    need_root()
    need(DEBIAN, DEBIAN)
    child = subprocess.Popen([DEBIAN, "-c", REUSED, "6"], stdout=subprocess.PIPE)
    child.stdout.read(1)
    sonde("record", "--families", "cpu", "--freq", "997", "--duration", "4s", "--pid", child.pid, store=store, check=True)
    child.wait(30)
    child.stdout.close()
    seen = set()
    for frames, _ in stacks(store, "cpu"):
        for f, file, line in script(frames):
            if not f.startswith("gen_"):
                continue
            number = int(f[4:])
            seen.add(number)
            assert file == f"/gen-{number}.py", (f, file)
            assert number % 50 + 1 <= line <= number % 50 + 3, (f, line)
    assert len(seen) > 10


GIL = """
import sys, threading, time
def busy():
    until, x = time.time() + float(sys.argv[1]), 0
    while time.time() < until: x += 1
threads = [threading.Thread(target=busy) for _ in range(3)]
for t in threads: t.start()
sys.stdout.write("x"); sys.stdout.flush()
for t in threads: t.join()
"""


def test_waits_for_the_gil_are_told_with_the_line_that_waits(sonde, store):
    need_root()
    need(DEBIAN, DEBIAN)
    child = subprocess.Popen([DEBIAN, "-c", GIL, "120"], stdout=subprocess.PIPE)
    child.stdout.read(1)
    try:
        sonde("pstack", "-p", child.pid, store=store, check=True)  # makes the indexes, as a host that records always has them
        sonde("record", "--families", "offcpu", "--duration", "4s", "--pid", child.pid, store=store, check=True)
    finally:
        child.kill()
        child.wait()
        child.stdout.close()
    rows = json.loads(sonde("sql", "--json", "SELECT DISTINCT object FROM wait_objects", store=store).stdout)["rows"]
    assert "the GIL" in json.dumps(rows), rows
    waits = sonde("waits", "--idle", store=store, check=True).stdout
    assert any("lock" in line and " busy " in line and "the GIL" in line for line in waits.splitlines()), waits
    folded = sonde("export", "folded", "--type", "offcpu", store=store, check=True).stdout
    assert any(";busy;" in line and "futex" in line for line in folded.splitlines()), folded


def test_short_scripts_have_their_names(sonde, store):
    """Forty of 50 ms each, gone when their samples are named."""
    need_root()
    need(DEBIAN, DEBIAN)
    code = "import time\ndef fifty():\n  until = time.process_time() + 0.05\n  while time.process_time() < until: pass\nfifty()"
    run = f"for i in $(seq 40); do {DEBIAN} -S -E -c '{code}'; done"
    subprocess.run([DEBIAN, "-S", "-E", "-c", code], check=True)
    sonde("record", "--families", "cpu", "--freq", "997", "--", "sh", "-c", run, store=store, check=True)
    named = running = 0
    for frames, n in stacks(store, "cpu"):
        if any(f == "fifty" for f, _, _ in script(frames)):
            named += n
        if any(f in ("_PyEval_EvalFrameDefault", "PyEval_EvalCode") for _, f, _, _ in frames):
            running += n
    assert named > 40
    print(f"{named} of {running} samples in the interpreter's loop name the script's function")


BRIEF = """
import sys, threading, time
def spin():
    until = time.thread_time() + 0.004
    while time.thread_time() < until: pass
sys.stdout.write("x"); sys.stdout.flush()
until = time.time() + float(sys.argv[1])
while time.time() < until:
    t = threading.Thread(target=spin)
    t.start(); t.join()
"""


@pytest.mark.live
@pytest.mark.parametrize("program", [DEBIAN, *PYENV])
def test_threads_that_come_and_go_at_one_address_have_their_script(sonde, store, program):
    """A thread a request: each has the stack of the one before, and an interpreter's state of its own."""
    need_root()
    need(program, program)
    child = subprocess.Popen([program, "-c", BRIEF, "300"], stdout=subprocess.PIPE)
    child.stdout.read(1)
    try:
        sonde("pstack", "-p", child.pid, store=store)  # none of its threads may wait; it makes the indexes, as a host that records always has them
        sonde("record", "--families", "cpu", "--freq", "499", "--duration", "3s", "--pid", child.pid, store=store, check=True)
    finally:
        child.kill()
        child.wait()
        child.stdout.close()
    running = shown = 0
    for frames, n in stacks(store, "cpu"):
        if any(f in ("_PyEval_EvalFrameDefault", "PyEval_EvalCode") for _, f, _, _ in frames):
            running += n
            shown += n * (script(frames) != [])
    print(f"{program}: {shown} of {running} samples in the interpreter's loop have script frames")
    assert running > 50 and shown >= 0.98 * running


@pytest.mark.live
def test_a_greenlet_s_recorded_frames_are_its_own(sonde, store):
    need_root()
    folder = os.path.join(BUILD, "pythons", "greenlet==3.0.3")
    if not os.path.isdir(folder):
        pytest.skip("missing: greenlet (test_pstack_python.py fetches it)")
    code = """
import greenlet, sys, time
def spin(until):
    x = 0
    while time.time() < until: x += 1
def inner(until): sorted([1], key=lambda k: spin(until))
def outer():
    sys.stdout.write("x"); sys.stdout.flush()
    greenlet.greenlet(inner).switch(time.time() + 6)
outer()
"""
    child = subprocess.Popen([DEBIAN, "-c", code], stdout=subprocess.PIPE, env=dict(os.environ, PYTHONPATH=folder))
    child.stdout.read(1)
    sonde("record", "--families", "cpu", "--freq", "499", "--duration", "3s", "--pid", child.pid, store=store, check=True)
    child.wait(30)
    child.stdout.close()
    seen = {tuple(f for f, _, _ in script(frames)) for frames, _ in stacks(store, "cpu")} - {()}
    assert seen <= {("spin", "inner.<locals>.<lambda>", "inner"), ("inner.<locals>.<lambda>", "inner"), ("inner",)}, seen
    assert seen


def test_a_recorded_process_that_lies_about_its_interpreter_is_not_believed(sonde, store, scratch):
    """Interpreters, threads and frames in circles, a code object that is none: its stacks are native ones, whole."""
    need_root()
    need("gcc")
    child = subprocess.Popen([lying(scratch), "busy"], stdout=subprocess.PIPE)
    try:
        child.stdout.read(1)
        sonde("record", "--families", "cpu", "--freq", "499", "--duration", "1s", "--pid", child.pid, store=store, check=True)
    finally:
        child.kill()
        child.wait(20)
        child.stdout.close()
    found = [frames for frames, _ in stacks(store, "cpu")]
    assert any("main" in [f[1] for f in frames] for frames in found)
    assert not [frames for frames in found if any(f[0] == "python" for f in frames)]
