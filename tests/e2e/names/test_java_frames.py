# SPDX-License-Identifier: Apache-2.0
"""Java frames in recorded stacks of programs that were started without any option: against what a program says of its own
(tests/workloads/scripts/JavaShares.java). ShowHiddenFrames makes Java say those too that it leaves out of its stacks: it changes nothing else."""
import json
import math
import os
import subprocess

import pytest

from conftest import need, need_root
from scripting import JDKS, TEMURIN, compiled, other_jdk, stacks
from test_pstack_java import TOLD, jdk_of_sid, plain

OTHERS = {"JavaShares.turn", "JavaShares.main", "java.lang.Thread.run", "java.lang.Thread.runWith"}


class Run:
    def __init__(self, sonde, store, command, seconds=4, family="cpu"):
        classes = "/classes" if command[0] == "unshare" else compiled("JavaShares")
        child = subprocess.Popen([*command, *TOLD, "-cp", classes, "JavaShares", str(seconds)], stdin=subprocess.PIPE,
                                 stdout=subprocess.PIPE)
        self.told = json.loads(child.stdout.readline())
        sonde("pstack", "-p", child.pid, store=store, check=True)  # makes the indexes, as a host that records always has them
        record = subprocess.Popen(["sonde", "record", "--store", store, "--families", family, "--freq", "499", "--duration", f"{seconds}s",
                                   "--pid", str(child.pid)], stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        child.stdin.write(b"\n")
        child.stdin.flush()
        self.told.update(json.loads(child.stdout.readline()))
        self.said = record.communicate(timeout=360)[0].decode()
        child.stdin.close()
        child.wait(20)
        child.stdout.close()
        # of the thread that works, those that are in the program's part of it, or in none that is known
        self.none = sum(n for frames, n in stacks(store, family, "worker") if len(frames) < 3)
        self.stacks = [([[f, file or None, line or None] for runtime, f, file, line in reversed(frames) if runtime == "java"],
                        frames[0][0] != "java", n) for frames, n in stacks(store, family)]


def fits(mine, chain):
    """Is it the outer part of the chain? Where the innermost frame is, and what was inlined there, is told as far as it is certain."""
    outer = chain[len(chain) - len(mine):]
    return len(mine) <= len(chain) and [f[:2] for f in mine] == [f[:2] for f in outer] and mine[1:] == outer[1:]


def judge(run):
    """(of the thread that works: whole and right, others; by chain, to what was not told). Asserts that nothing in any stack is wrong. A stack of which
    nothing could be told is one of the others."""
    first, last = run.told["spins"]
    chains = {}
    for name, frames in run.told["chains"].items():
        frames = plain(frames)
        chains[name] = frames[:[f[0] for f in frames].index("JavaShares.one") + 1]
    known = {f[0] for chain in chains.values() for f in chain}
    whole, partly, by, no_chain = 0, run.none, dict.fromkeys(chains, 0), 0
    for seen, native, n in run.stacks:
        seen = plain(seen)
        names = [f[0] for f in seen]
        if "JavaShares.turn" not in names:
            continue
        assert all(first <= (f[2] or first) <= last for f in seen if f[0] == "JavaShares.spin"), seen
        if seen[-1][0].startswith("java.lang.Thread.run") and native:
            whole += n
        else:
            partly += n
        if "JavaShares.one" not in names:
            continue
        mine = seen[:names.index("JavaShares.one") + 1]
        while mine[0][0] not in known:
            assert mine[0][0].startswith(("java.", "jdk.", "sun.")) or mine[0][0].endswith((".<init>", ".get$Lambda")), mine
            mine = mine[1:]
        found = [name for name, chain in chains.items() if fits(mine, chain)]
        if len(mine) == 1:
            no_chain += n
            continue
        assert found, f"{mine} is no part of {chains}"
        by[found[0]] += n
    return whole, partly, by, no_chain


def check(sonde, store, command):
    run = Run(sonde, store, command)
    whole, partly, by, no_chain = judge(run)
    if whole + partly < 100:
        pytest.skip(f"missing: time for this program ({whole + partly} samples)")
    assert whole >= 0.95 * (whole + partly), run.said
    print(f"{command}: {whole} of {whole + partly} samples whole and right; {no_chain} where what was inlined is not told")
    return run, by


def test_recorded_java_frames_are_what_the_program_says(sonde, store):
    """The interpreter alone: each line is known."""
    need_root()
    need("java")
    run, by = check(sonde, store, ["java", "-Xint"])
    cpu = run.told["cpu"]
    for name, seconds in cpu.items():
        did = seconds / sum(cpu.values())
        assert abs(by[name] / sum(by.values()) - did) <= 0.02 + 3 * math.sqrt(did * (1 - did) / sum(by.values())), (by, cpu)
    lines = [seen[0][2] for seen, _, _ in run.stacks if seen and seen[0][0] == "JavaShares.spin"]
    assert lines and all(lines)


@pytest.mark.parametrize("options", [[], pytest.param(["-XX:TieredStopAtLevel=1"], marks=pytest.mark.live),
                                     pytest.param(["-Xcomp"], marks=pytest.mark.live), pytest.param(["-XX:+UseSerialGC"], marks=pytest.mark.live)])
def test_recorded_frames_of_compiled_code_are_what_the_program_says(sonde, store, options):
    need_root()
    need("java")
    check(sonde, store, ["java", *options])
    flame = json.loads(sonde("flame", "--json", store=store, check=True).stdout)["rows"]
    assert {r["runtime"] for r in flame if r["origin"] == "script"} == {"java"}


@pytest.mark.live
@pytest.mark.parametrize("options", [["-Xint"], []])
@pytest.mark.parametrize("version", JDKS)
def test_recorded_frames_of_other_jdks_are_what_the_program_says(sonde, store, version, options):
    need_root()
    check(sonde, store, [*other_jdk(version), *options])


@pytest.mark.live
@pytest.mark.parametrize("options", [["-Xint"], []])
@pytest.mark.parametrize("version", ["8", "26", "28"])
def test_recorded_frames_of_the_oldest_and_the_newest_jdk_are_what_the_program_says(sonde, store, version, options):
    need_root()
    check(sonde, store, [*jdk_of_sid(version, "JavaShares"), *options])


@pytest.mark.live
@pytest.mark.parametrize("options", [["-Xint"], [], ["-XX:+UseZGC"]])
def test_recorded_frames_of_the_newest_jdk_are_what_the_program_says(sonde, store, options):
    need_root()
    need("java 25", TEMURIN)
    check(sonde, store, [TEMURIN, *options])
