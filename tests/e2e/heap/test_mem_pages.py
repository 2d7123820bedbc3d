# SPDX-License-Identifier: Apache-2.0
"""All pages of the host that are in use (--pages): each kind of memory that a program takes is told as such, by its line, as long as it
is in use, and all together are what the kernel counts."""
import collections
import contextlib
import json
import math
import os
import time

import pytest

from conftest import need_root, sql_all
from test_mem import started, warmed_python
from test_mem_growth import script

MIB = {"anonymous memory": 96, "page cache": 96, "shared memory": 96, "socket buffers": 64, "page tables": 64, "slab": 64, "pipes": 64}

TAKES = """
import mmap, os, socket, sys
PAGE = 4096
kept = []
def anonymous(mib):
    m = mmap.mmap(-1, mib << 20, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    for at in range(0, len(m), PAGE):
        m[at] = 1
    kept.append(m)
def cached(mib):
    with open(sys.argv[1], "wb") as f:
        for _ in range(mib):
            f.write(bytes(1 << 20))
def shared(mib):
    fd = os.memfd_create("shared")
    for _ in range(mib):
        os.write(fd, bytes(1 << 20))
    kept.append(fd)
def sockets(mib):
    data = bytes(1 << 16)
    left = mib << 20
    while left > 0:
        pair = socket.socketpair(socket.AF_UNIX, socket.SOCK_STREAM)
        pair[0].setblocking(False)
        kept.append(pair)
        try:
            while left > 0:
                left -= pair[0].send(data)
        except BlockingIOError:
            pass
def tables(mib):
    # one page of each table: a table covers 2 MiB
    m = mmap.mmap(-1, mib << 29, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | 0x4000)
    for at in range(0, len(m), 1 << 21):
        m[at]
    kept.append(m)
def names(mib):
    # a name that does not exist: 192 bytes
    for i in range((mib << 20) // 192):
        try:
            os.stat(f"{sys.argv[1]}-no-{i}")
        except FileNotFoundError:
            pass
def pipes(mib):
    for _ in range(mib * 16):
        r, w = os.pipe()
        os.write(w, bytes(1 << 16))
        kept.append((r, w))
import resource
resource.setrlimit(resource.RLIMIT_NOFILE, (4096, 4096))
names(AMOUNT["slab"]); anonymous(AMOUNT["anonymous memory"]); cached(AMOUNT["page cache"]); shared(AMOUNT["shared memory"])
tables(AMOUNT["page tables"]); pipes(AMOUNT["pipes"]); sockets(AMOUNT["socket buffers"])
print(0, flush=True)
sys.stdin.readline()
if len(sys.argv) > 2:
    for one in kept:
        if isinstance(one, mmap.mmap): one.close()
        elif isinstance(one, int): os.close(one)
        elif isinstance(one[0], int): os.close(one[0]); os.close(one[1])
        else: one[0].close(); one[1].close()
    kept.clear()
    os.unlink(sys.argv[1])
    print(1, flush=True)
    sys.stdin.readline()
"""
LINES = {"anonymous memory": "anonymous", "page cache": "cached", "shared memory": "shared", "socket buffers": "sockets",
         "page tables": "tables", "slab": "names", "pipes": "pipes"}


def rows(sonde, store, *args):
    return json.loads(sonde("heap", "--pages", "--json", "-n", "0", *args, store=store, check=True).stdout)["rows"]


def used():
    with open("/proc/meminfo", encoding="ascii") as f:
        of = {line.split(":")[0]: int(line.split()[1]) * 1024 for line in f}
    return of["MemTotal"] - of["MemFree"]


@pytest.mark.long
def test_each_kind_of_page_is_told_by_its_line_while_it_is_in_use(sonde, store, capture, scratch):
    need_root()
    c = capture("--apart", "--pages", "on", program="sonde-mem")
    warmed_python(sonde, store)
    takes = script(scratch, "takes", f"AMOUNT = {MIB!r}\n{TAKES}")
    with contextlib.ExitStack() as stack:
        keeps = stack.enter_context(started([takes, os.path.join(scratch, "kept")]))
        gives = stack.enter_context(started([takes, os.path.join(scratch, "given"), "back"]))
        for one in (keeps, gives):
            one.stdout.readline()
        gives.stdin.write("\n")
        gives.stdin.flush()
        gives.stdout.readline()
        time.sleep(4)
        total = [used()]
        c.stop(60)
        total.append(used())  # other work on the host goes on meanwhile
        pids = [keeps.pid, gives.pid]
    of = [collections.Counter(), collections.Counter()]
    for one, pid in zip(of, pids):
        for r in rows(sonde, store, "-p", pid):
            one[r["use"], r["function"]] += r["inuse_bytes"]
    everything = rows(sonde, store)
    print(of, total, everything[:5])
    weight = math.gcd(*(n for one in of for n in one.values()))  # of a sample: on a busy host fewer pages are watched
    for use, mib in MIB.items():
        assert of[0][use, LINES[use]] == pytest.approx(mib << 20, rel=max(0.2, 4 / math.sqrt((mib << 20) / weight))), (use, mib, weight, of[0])
        if use != "slab":  # names that do not exist stay known
            assert of[1][use, LINES[use]] <= max(2 << 20, 4 * weight), (use, weight, of[1])
    assert 0.97 * min(total) <= sum(r["inuse_bytes"] for r in everything) <= 1.03 * max(total), total
    assert all(n >= 0 for n in c.last("done")["lost"].values()), c.last("done")
    assert sql_all(store, "SELECT 1 FROM amounts WHERE type = 'pages' AND function = '[page cache]' LIMIT 1")
