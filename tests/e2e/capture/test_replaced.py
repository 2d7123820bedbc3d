# SPDX-License-Identifier: Apache-2.0
"""Programs that are written to one path in turn, run for a moment and removed: a file system gives the next one the number of the one
before. None may get the other one's names."""
import os
import shutil
import subprocess

import pytest

from conftest import need, need_root, sql_all

SOURCE = """#include <time.h>
static volatile long x;
__attribute__((noinline)) void NAME_spin(void) { for (int i = 0; i < 100000; i++) x += i; }
int main(void) { clock_t end = clock() + CLOCKS_PER_SEC / 25; while (clock() < end) NAME_spin(); return 0; }
"""


@pytest.fixture(params=["disk", "tmpfs", "overlay"])
def folder(request, scratch):
    """A folder of such a file system."""
    need_root()
    path = f"{scratch}/work"
    os.mkdir(path)
    if request.param == "disk":
        yield path
        return
    layers = {n: f"{scratch}/{n}" for n in ("lower", "upper", "inner")}
    for layer in layers.values():
        os.mkdir(layer)
    options = "lowerdir={lower},upperdir={upper},workdir={inner}".format(**layers)
    done = subprocess.run(["mount", "-t", request.param, *(["-o", options] if request.param == "overlay" else []), "none", path],
                          capture_output=True, text=True)
    if done.returncode:
        pytest.skip(f"missing: a mount of {request.param} ({done.stderr.strip()})")
    yield path
    subprocess.run(["umount", "-l", path], check=True)


def test_a_program_that_takes_anothers_path_and_number_does_not_get_its_names(capture, folder, scratch):
    need("gcc")
    for name in ("red", "blue"):
        subprocess.run(["gcc", "-O1", "-x", "c", "-", "-o", f"{scratch}/{name}"], input=SOURCE.replace("NAME", name), text=True, check=True)
    c = capture("--freq", 997)
    pids, numbers = {}, set()
    for _ in range(12):
        for name in ("red", "blue"):
            path = f"{folder}/turn"
            shutil.copy(f"{scratch}/{name}", path)
            numbers.add(os.stat(path).st_ino)
            child = subprocess.Popen([path])
            assert child.wait(30) == 0
            os.unlink(path)
            pids[child.pid] = name
    c.stop()
    rows = sql_all(c.store, "SELECT pid, function, sum(samples) AS n FROM cpu_samples WHERE comm = 'turn' GROUP BY 1, 2")
    mine = [r for r in rows if r["pid"] in pids]
    assert sum(r["n"] for r in mine) > 200
    mixed = [r for r in mine if r["function"] in ("red_spin", "blue_spin") and r["function"] != f"{pids[r['pid']]}_spin"]
    named = sum(r["n"] for r in mine if r["function"] in ("red_spin", "blue_spin"))
    assert not mixed, (mixed, named, numbers)
