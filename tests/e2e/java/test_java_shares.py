# SPDX-License-Identifier: Apache-2.0
"""Shares of allocations: as the program counts them, and as async-profiler, whose samples have no limit by time, has them in the same run."""
import os
import time
import zipfile

import pytest

from conftest import BUILD
from mavenjars import jars
from scripting import TEMURIN, compiled
from test_java_live import compare, flame, folder, jvm, recorded, sum_of  # noqa: F401

pytestmark = [pytest.mark.live, pytest.mark.long]
SECONDS, POINTS = 12, 0.03


def async_profiler():
    """Its library, from Maven."""
    jar, at = jars("asyncprofiler").split(":")[0], os.path.join(BUILD, "maven", "asyncprofiler", "libasyncProfiler.so")
    with zipfile.ZipFile(jar) as z:
        name = next(n for n in z.namelist() if n.endswith("linux-x64/libasyncProfiler.so"))
        with open(at, "wb") as f:
            f.write(z.read(name))
    return at


def collapsed(path):
    """[(frames, root first, bytes)]"""
    with open(path, encoding="utf-8") as f:
        return [(line.rsplit(" ", 1)[0].split(";"), int(line.rsplit(" ", 1)[1])) for line in f]


def share(small, large):
    return small / (small + large)


@pytest.mark.parametrize("version", ["17", "25"])
def test_shares_of_allocations_are_those_of_the_program_and_of_async_profiler(capture, store, sonde, jvm, folder, scratch, version):
    library, other = async_profiler(), os.path.join(scratch, "alloc")
    j = jvm(java=[TEMURIN] if version == "25" else ("java",), classes=compiled("JavaInside", 8))
    cap = recorded(capture, folder, "--interval", "2s", "--pid", j.pid)
    j.jcmd(f'JVMTI.agent_load {library} "start,event=alloc,alloc=20k"')
    before = j.told()
    time.sleep(SECONDS)
    after = j.told()
    j.jcmd(f'JVMTI.agent_load {library} "stop,collapsed,total,file={other}"')
    cap.stop()
    ours, did = compare(sonde, store, before, after, POINTS)
    rows = collapsed(other)
    theirs = share(sum_of(rows, "JavaInside.small", "byte[]"), sum_of(rows, "JavaInside.large", "int[]"))
    mine, truth = share(ours["small"], ours["large"]), share(did["small"], did["large"])
    print(f"{version}: the program {truth:.4f}, sonde {mine:.4f}, async-profiler {theirs:.4f}")
    # async-profiler itself is some 2.6 points off here: what is asked is to be as near to the truth as it is, but for a point of chance
    assert abs(mine - truth) <= abs(theirs - truth) + 0.01, (mine, theirs, truth)
