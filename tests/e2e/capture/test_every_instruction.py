# SPDX-License-Identifier: Apache-2.0
"""The unwinder at every instruction that a program executes, from the first of its loader to its end, against the calls
that were watched while they happened (tests/unwind). Programs that do what makes stacks hard, built in many ways."""
import json
import os
import re
import shutil
import subprocess
import sys

import pytest

from conftest import BIN, BUILD, ROOT, need

sys.path.insert(0, os.path.join(ROOT, "tests", "rows"))
import oracle  # noqa: E402

SOURCES = os.path.join(ROOT, "tests", "unwind")
STEPPER = os.path.join(BUILD, "tests", "unwind", "stepper")

# where a stack may end short of its root, and why: what the file itself says cannot be told by four registers
EXCUSED = {
    # between two contexts: the return address stands in a structure, not on the stack
    "swapcontext", "setcontext", "__longjmp", "____longjmp_chk", "longjmp",
}
# musl has no call-frame information, its code is followed: vfork holds its return address in a register; the rest are single
# instructions of its start
MUSL = {"vfork", "__dls3", "_start_c"}
# the C runtime's own start files come without call-frame information: seen for some twenty instructions a program
CRT = {" _init", " _fini", " frame_dummy", " register_tm_clones", " deregister_tm_clones", " __do_global_dtors_aux",
       " __do_global_ctors_aux", " ?"}

BUILDS = {
    "gcc -O2": ("gcc", ["-O2"]),
    "gcc -O0": ("gcc", ["-O0"]),
    "gcc -O3 -flto": ("gcc", ["-O3", "-flto"]),
    "gcc -Os": ("gcc", ["-Os"]),
    "gcc -O2 stripped": ("gcc", ["-O2", "-s"]),
    "gcc -O2 lazy binding": ("gcc", ["-O2", "-Wl,-z,lazy"]),
    "gcc -O2 bound at start": ("gcc", ["-O2", "-Wl,-z,now"]),
    "gcc -O2 ibt plt": ("gcc", ["-O2", "-fcf-protection=full", "-Wl,-z,lazy", "-Wl,-z,ibtplt"]),
    "gcc -O2 static": ("gcc", ["-O2", "-static"]),
    "gcc -O2 static-pie": ("gcc", ["-O2", "-static-pie"]),
    "gcc -O3 avx2": ("gcc", ["-O3", "-mavx2", "-mstackrealign"]),
    "gcc -O2 frame pointers": ("gcc", ["-O2", "-fno-omit-frame-pointer"]),
    "clang -O2": ("clang", ["-O2"]),
    "clang -O1 stackrealign": ("clang", ["-O1", "-mstackrealign"]),
    "musl -O2": ("musl-gcc", ["-O2"]),
    "musl -O2 static": ("musl-gcc", ["-O2", "-static"]),
    "g++ -O2": ("g++", ["-O2"]),
    "g++ -O2 static": ("g++", ["-O2", "-static"]),
    "clang++ -O2": ("clang++", ["-O2"]),
}
# the everyday run takes the first, make long-live the second, make long-soak all
EVERYDAY = {"gcc -O2", "gcc -O2 static-pie"}
LIVE = {"gcc -O3 -flto", "gcc -O2 lazy binding", "clang -O2", "musl -O2 static", "g++ -O2"}


def builds():
    for name in sorted(BUILDS):
        yield pytest.param(name, marks=[] if name in EVERYDAY else pytest.mark.live if name in LIVE else pytest.mark.soak)


def step(program, folder, steps=None):
    folder.mkdir(exist_ok=True)
    env = dict(os.environ, **({"STEPS": str(steps)} if steps else {}))
    done = subprocess.run([STEPPER, os.path.join(BIN, "sonde-index"), str(folder), "--"] + program, capture_output=True,
                          text=True, env=env, timeout=600)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout), done.stderr


def told_wrong(program):
    """The places, as FUNCTION+0xOFFSET, at which the file says that the caller's RBP still stands where it was popped from already:
    gcc's tail of a function that aligned its stack by R10. Every reader of the file goes astray behind them."""
    frames = [(f.lo, f.hi, [(r[0], r[2]) for r in f.rows]) for f in oracle.frames(program).get(".eh_frame", [])]
    said = subprocess.run(["objdump", "-d", "--no-show-raw-insn", program], capture_output=True, text=True, check=True).stdout
    found, popped = set(), False
    for line in said.splitlines():
        if head := re.match(r"([0-9a-f]+) <(.*)>:", line):
            start, name, popped = int(head.group(1), 16), head.group(2), False
            rows = next((r for lo, hi, r in frames if lo <= start < hi), [])
        elif at := re.match(r"\s+([0-9a-f]+):\s+(.*)", line):
            pc = int(at.group(1), 16)
            rbp = next((bp for lo, bp in reversed(rows) if lo <= pc), "")
            if popped and rbp.startswith("exp"):
                found.add(f"{name}+{pc - start:#x}")
            popped = popped or bool(re.match(r"pop +%rbp", at.group(2)))
            popped = popped and not at.group(2).startswith(("ret", "jmp"))
    return found


def judge(told, stderr, excused, least=0.99, lies=frozenset()):
    assert told["wrong"] == 0, stderr
    bad = [s for s in told["short"] if not any(e in s["where"] for e in excused) and s["leaf"].split(" ")[-1] not in lies and
           not (any(s["where"].endswith(c) for c in CRT) and s["end"] == 8 and s["n"] < 60)]
    assert not bad, f"{told['steps']} steps, stacks that stop short: {bad}"
    assert told["guessed"] <= 100 and told["between"] <= max(400, told["steps"] // 1000), told
    assert told["complete"] >= least * told["steps"], told


@pytest.mark.long
@pytest.mark.parametrize("name", builds())
def test_each_step_of_hard_programs_is_unwound_to_its_root(name, tmp_path):
    compiler, flags = BUILDS[name]
    need(compiler)
    program = str(tmp_path / "steps")
    source = "throws.cc" if compiler.endswith("++") else "steps.c"
    subprocess.run([compiler, *flags, "-o", program, os.path.join(SOURCES, source)], check=True, capture_output=True)
    told, stderr = step([program], tmp_path / "index")
    assert told["steps"] > 2000
    if source == "steps.c":
        assert told["deepest"] > 300
    judge(told, stderr, EXCUSED | (MUSL if "musl" in name else set()), 0.9, told_wrong(program) if shutil.which("objdump") else set())


@pytest.mark.live
@pytest.mark.parametrize("program", [["/bin/true"], ["/bin/ls", "/"], ["/usr/bin/perl", "-e", "print 1"]])
def test_each_step_of_programs_as_they_ship_is_unwound_to_its_root(program, tmp_path):
    if not shutil.which(program[0]):
        pytest.skip(f"{program[0]} is not installed")
    told, stderr = step(program, tmp_path / "index", steps=300000)
    judge(told, stderr, EXCUSED, 0.95)
