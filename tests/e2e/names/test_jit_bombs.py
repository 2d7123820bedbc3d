# SPDX-License-Identifier: Apache-2.0
"""A stranger's perf map that is made to take the loader's memory and time costs that process its own names, and nobody else anything."""
import contextlib
import os
import subprocess
import sys
import time

import pytest

from conftest import BIN, need_root
from scripting import stacks

MIB = 1 << 20
MOST_MORE = 100 * MIB

# Runs code of its own in an anonymous mapping; its map is argv[1] bytes of argv[2] and the line of that code.
JIT = r"""
import ctypes, mmap, os, platform, sys, time
CODE = {"x86_64": "554889e548c7c1801a060048ffc975fb5dc3", "aarch64": "fd7bbfa9fd03009100d49052200000b4000400d1c0ffffb5fd7bc1a8c0035fd6"}
m = mmap.mmap(-1, 65536, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)
m.write(bytes.fromhex(CODE[platform.machine()]))
base = ctypes.addressof(ctypes.c_char.from_buffer(m))
loop = ctypes.CFUNCTYPE(None)(base)
piece = sys.argv[2].replace("BASE", "%x" % base).replace("LONG", "n" * 4000) + "\n"
piece *= 65536 // len(piece) + 1
with open("/tmp/perf-%d.map" % os.getpid(), "w") as f:
    for _ in range(int(sys.argv[1]) // len(piece)):
        f.write(piece)
    f.write("%x 1000 %s\n" % (base, sys.argv[3]))
print(1, flush=True)
while True:
    for _ in range(50):
        loop()
    time.sleep(0.01)
"""


@contextlib.contextmanager
def code(size, line, name):
    child = subprocess.Popen([sys.executable, "-c", JIT, str(size), line, name], stdout=subprocess.PIPE, user=65534, group=65534, extra_groups=[])
    try:
        assert child.stdout.readline()
        yield child.pid
    finally:
        child.kill()
        child.wait(20)
        child.stdout.close()
        with contextlib.suppress(FileNotFoundError):
            os.unlink(f"/tmp/perf-{child.pid}.map")


def peak(pid):
    with contextlib.suppress(OSError), open(f"/proc/{pid}/status", encoding="ascii") as f:
        return next((int(line.split()[1]) << 10 for line in f if line.startswith("VmHWM")), 0)
    return 0


def recorded(store):
    """What the loader said, the most memory that it had, and the names of generated code."""
    loader = subprocess.Popen([f"{BIN}/sonde-cpu", "--freq", "199", "--duration", "5s", "--store", store], stderr=subprocess.PIPE, text=True)
    most = 0
    while loader.poll() is None:
        most = max(most, peak(loader.pid))
        time.sleep(0.1)
    said = loader.stderr.read()
    assert loader.returncode == 0 and " 0 lost" in said, said
    return said, most, {frame[1] for frames, _ in stacks(store, "cpu") for frame in frames}


@pytest.mark.parametrize("line", ["1 1 a", "x", "BASE 40 LONG"])
def test_a_map_that_is_a_bomb_costs_its_own_names(store, line):
    need_root()
    with code(0, line, "quiet_code"):
        _, plain, names = recorded(store)
        assert "quiet_code" in names
        with code(64 * MIB, line, "bombs_code") as bomb:
            said, most, names = recorded(store + "2")
    assert "quiet_code" in names and "bombs_code" not in names
    assert most < plain + MOST_MORE, (most, plain)
    assert said.count(f"process {bomb}: its generated code has no names") == 1 and "more names than one process may have" in said, said
