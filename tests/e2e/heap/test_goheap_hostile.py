# SPDX-License-Identifier: Apache-2.0
"""Programs that are not what a Go program should be: they cost themselves a profile at most, and nobody else's."""
import os
import random
import re
import shutil
import signal
import struct
import subprocess

import pytest

from conftest import WORKLOADS, need, need_root, sql_all
from test_goheap import Heapwork, asked, assert_in_use, ended, limited, loader, readings, wait_for  # noqa: F401


@pytest.fixture
def go_program():
    need_root()
    program = os.path.join(WORKLOADS, "heapwork-go")
    need("heapwork-go (make workloads, with go)", program)
    return program


def counted(store, pid):
    return (readings(store, pid) or [0])[0]


PAUSES = bytes((0xb8, 34, 0, 0, 0, 0x0f, 0x05, 0xeb, 0xf7))  # mov $34, %eax (pause); syscall; and again


def tool(*args):
    need(args[0])
    return subprocess.run(args, capture_output=True, text=True, check=True).stdout


def sleeper(program, path):
    """A copy that sleeps where it would begin: a Go program in all that a reader sees, whatever is done to it."""
    shutil.copy(program, path)
    head = tool("readelf", "-Wh", program)
    entry = int(re.search(r"Entry point address:\s+0x([0-9a-f]+)", head).group(1), 16)
    for at, address, size in re.findall(r"LOAD\s+0x(\w+) 0x(\w+) 0x\w+ 0x(\w+)", tool("readelf", "-Wl", program)):
        if 0 <= entry - int(address, 16) < int(size, 16):
            overwrite(path, entry - int(address, 16) + int(at, 16), PAUSES)
            return path
    raise AssertionError("no segment holds its entry")


def overwrite(path, at, content):
    with open(path, "r+b", buffering=0) as f:
        f.seek(at)
        f.write(content)


def table_of(path):
    """Where its table of functions begins in the file, and its length."""
    m = re.search(r"\.gopclntab\s+PROGBITS\s+\w+ (\w+) (\w+)", tool("readelf", "-WS", path))
    return int(m.group(1), 16), int(m.group(2), 16)


def noise_in_table(path):
    at, length = table_of(path)
    overwrite(path, at + 72, random.Random(1).randbytes(length - 72))


def functions_without_end(path):
    overwrite(path, table_of(path)[0] + 8, struct.pack("<Q", (1 << 32) - 1))


def symbol(program, name):
    return int(re.search(rf"^([0-9a-f]+) \w {re.escape(name)}$", tool("nm", program), re.M).group(1), 16)


def list_of(pid, program, head=None, kind=1, depth=4, following=None):
    """Writes a list of one bucket into the process: next, allnext, kind, hash, size, depth, and what follows."""
    room = symbol(program, "runtime.mheap_")
    bucket = struct.pack("<6Q", following or room, following or room, kind, 7, 64, depth) + struct.pack("<Q", 0x401000) * 400
    overwrite(f"/proc/{pid}/mem", room, bucket)
    overwrite(f"/proc/{pid}/mem", symbol(program, "runtime.mbuckets"), struct.pack("<Q", head or room))


IN_THE_FILE = {"noise": noise_in_table, "endless": functions_without_end}
IN_MEMORY = {"circle": {}, "deep": {"depth": 1 << 40}, "wild": {"head": 0xdead0000beef}, "another": {"kind": 77},
             "astray": {"following": 0x7fff00000000}}


def liars(program, scratch):
    """Sleeping ones, whose tables or whose lists of buckets are not what they say."""
    running = {}
    for lie in [*IN_THE_FILE, *IN_MEMORY]:
        path = sleeper(program, os.path.join(scratch, lie))
        if lie in IN_THE_FILE:
            IN_THE_FILE[lie](path)
        running[lie] = subprocess.Popen([path])
    for lie, how in IN_MEMORY.items():
        list_of(running[lie].pid, program, **how)
    return running


@pytest.mark.long
def test_one_whose_tables_or_lists_lie_is_a_row_with_a_reason_and_costs_nobody_else(go_program, store, scratch):
    honest, running = Heapwork(scratch), liars(go_program, scratch)
    pids = [honest.pid, *(p.pid for p in running.values())]
    try:
        profile = honest.rest()
        capture = loader(store, "--interval", "1s", *(a for pid in pids for a in ("--pid", str(pid))))
        wait_for(lambda: counted(store, honest.pid) >= 3, 60)
        capture.send_signal(signal.SIGINT)
        status, said = ended(capture)
        assert status == 0, said
        assert_in_use(profile, store, honest.pid)
        rows = {r["pid"]: r for r in sql_all(store, "SELECT pid, state, reason FROM go_processes")}
        for lie, p in running.items():
            assert p.poll() is None
            row = rows[p.pid]
            assert row["reason"] and (row["state"] != "read" or lie in IN_THE_FILE), (lie, row)  # of a file's lies the list is empty
        assert not sql_all(store, f"SELECT 1 FROM go_heap WHERE pid <> {honest.pid}")
    finally:
        for p in running.values():
            p.kill()
            p.wait()
        honest.close()


@pytest.mark.long
def test_a_program_of_two_gigabytes_is_read_as_any_other(go_program, store, scratch):
    large = os.path.join(scratch, "large-go")
    shutil.copy(go_program, large)
    os.truncate(large, 2 << 30)
    work = Heapwork(scratch, program=large)
    try:
        profile = work.rest()
        capture = loader(store, "--pid", str(work.pid), "--interval", "1s")
        wait_for(lambda: counted(store, work.pid) >= 2, 30)
        capture.send_signal(signal.SIGINT)
        status, said = ended(capture)
        assert status == 0, said
        assert_in_use(profile, store, work.pid)
    finally:
        work.close()


def tightened(procs):
    """The limit is set so that what is in the cgroup uses 85 % of it."""
    folder = os.path.dirname(procs)
    used, limit = (("memory.current", "memory.max") if os.path.exists(os.path.join(folder, "memory.max"))
                   else ("memory.usage_in_bytes", "memory.limit_in_bytes"))
    with open(os.path.join(folder, used), encoding="ascii") as f:
        n = int(f.read())
    with open(os.path.join(folder, limit), "w", encoding="ascii") as f:
        f.write(str(n * 100 // 85))


@pytest.mark.long
def test_one_that_is_near_its_limit_is_read_each_second(go_program, limited, store, scratch):  # noqa: F811
    near, far = Heapwork(scratch, cgroup=limited), Heapwork(scratch)
    near.rest()
    far.rest()
    tightened(limited)
    running = loader(store, "--pid", str(near.pid), "--pid", str(far.pid), "--interval", "60s")
    try:
        # the other is read after 1, 2, 4, 8 s and so on
        wait_for(lambda: counted(store, near.pid) >= counted(store, far.pid) + 5 > 5, 60)
    finally:
        running.send_signal(signal.SIGINT)
        status, said = ended(running)
        near.close()
        far.close()
    assert status == 0, said
