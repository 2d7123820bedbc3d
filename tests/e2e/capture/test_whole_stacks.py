# SPDX-License-Identifier: Apache-2.0
"""Debian's own programs under load: how many of their user stacks reach a root. Each runs beside the capture alone, after the
rows of its files are there."""
import os
import time

import pytest

import servers
from conftest import need_root, segments, sql_all
from publishing import publisher, wait_indexed

ENOUGH = 0.995
# Twice what all files get by default: what else runs on the machine wants room too, and this is about unwinding.
ROWS_MB = 42
SHARED = 0.97  # where room is short, what is used for the first time is unwound from a copy of 20 KB
# Debian's java runs what it compiles without frame pointers, and its interpreter is compiled code of that kind: stacks
# that touch the code cache are another issue's. What never touches it (collector, compiler, VM threads) counts here.
JIT = {"java"}


def ends(store, names):
    """Samples of the programs of these names: how many are complete, and {(reason, file): n} of the others, without those
    that had no memory left to walk."""
    rows = sql_all(store, "SELECT executable, module, reason, complete, samples FROM unwinding WHERE complete IS NOT NULL")
    rows = [r for r in rows if os.path.basename(r["executable"]) in names]
    where = {}
    for r in rows:
        if not r["complete"]:
            key = (r["reason"], r["module"])
            where[key] = where.get(key, 0) + r["samples"]
    return sum(r["samples"] for r in rows if r["complete"]), where


@pytest.mark.live
@pytest.mark.parametrize("name", sorted(servers.PROGRAMS))
def test_stacks_of_programs_as_they_ship_reach_their_root(name, capture, store, scratch):
    need_root()
    try:
        running = servers.PROGRAMS[name](scratch)
    except servers.Missing as e:
        pytest.skip(f"missing: {e}")
    try:
        with publisher(store, scratch, "--rows-mb", str(ROWS_MB)) as (pid, maps):
            first = capture("--freq", 99, "--bucket", "1s", "--maps-socket", maps)
            time.sleep(4)
            wait_indexed(pid)
            first.stop()
            for path in segments(store):  # the indexes stay
                os.unlink(path)
            c = capture("--freq", 499, "--bucket", "1s", "--maps-socket", maps)
            time.sleep(5)
            c.stop()
    finally:
        running.stop()
    complete, where = ends(store, running.executables)
    if name in JIT:
        where = {k: v for k, v in where.items() if k[1] not in ("[jit]", "[anon]", "")}
    n = complete + sum(where.values())
    assert n > 200, f"too few samples of {running.executables}: {complete}, {where}"
    print(f"{name}: {100 * complete / n:.2f} % of {n} reach a root; others: "
          f"{sorted(where.items(), key=lambda x: -x[1])[:5]}")
    assert complete / n >= ENOUGH, where


@pytest.mark.live
def test_large_programs_at_once_share_room_that_is_too_small_for_all_their_rows(capture, store, scratch):
    """rustc and its LLVM have 12 MB of rows, clang and its own 8, gcc's compiler 2, node 1.6: 21 MB for them and all else that
    runs are enough for what they use of them."""
    need_root()
    running = []
    try:
        with publisher(store, scratch) as (pid, maps):
            for name in ("rustc", "clang", "gcc", "node"):
                folder = os.path.join(scratch, name)
                os.mkdir(folder)
                running.append(servers.PROGRAMS[name](folder))
            first = capture("--freq", 499, "--bucket", "1s", "--maps-socket", maps)
            time.sleep(15)
            wait_indexed(pid)
            time.sleep(15)
            first.stop()
            for path in segments(store):  # the indexes stay
                os.unlink(path)
            c = capture("--freq", 499, "--bucket", "1s", "--maps-socket", maps)
            time.sleep(15)
            c.stop()
    except servers.Missing as e:
        pytest.skip(f"missing: {e}")
    finally:
        for r in running:
            r.stop()
    found = {r.executables[0]: ends(store, r.executables) for r in running}
    for name, (complete, where) in found.items():
        print(f"{name}: {100 * complete / max(complete + sum(where.values()), 1):.2f} % of {complete + sum(where.values())}; others: "
              f"{sorted(where.items(), key=lambda x: -x[1])[:5]}")
    for complete, where in found.values():
        assert complete > 100
        assert complete / (complete + sum(where.values())) >= SHARED, where
