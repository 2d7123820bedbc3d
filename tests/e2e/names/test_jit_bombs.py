# SPDX-License-Identifier: Apache-2.0
"""A stranger's perf map that is made to take the loader's memory and time costs that process its own names, and nobody else anything."""
import contextlib
import json
import os
import re
import shutil
import signal
import stat
import subprocess
import sys
import time

import pytest

from conftest import BIN, comm_of, need_root, sql_all
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
    for _ in range(10):
        loop()
    time.sleep(0.02)
"""


@contextlib.contextmanager
def code(size, line, name, prefix=()):
    child = subprocess.Popen([*prefix, sys.executable, "-c", JIT, str(size), line, name], stdout=subprocess.PIPE, **({} if prefix else NOBODY))
    try:
        assert child.stdout.readline()
        yield child.pid
    finally:
        child.kill()
        child.wait(20)
        child.stdout.close()
        with contextlib.suppress(FileNotFoundError):
            os.unlink(f"/tmp/perf-{child.pid}.map")


NOBODY = {"user": 65534, "group": 65534, "extra_groups": []}


def peak(pid):
    with contextlib.suppress(OSError), open(f"/proc/{pid}/status", encoding="ascii") as f:
        return next((int(line.split()[1]) << 10 for line in f if line.startswith("VmHWM")), 0)
    return 0


def recorded(store, seconds=5):
    """What the loader said, the most memory that it had, and the names of generated code."""
    loader = subprocess.Popen([f"{BIN}/sonde-cpu", "--freq", "199", "--duration", f"{seconds}s", "--store", store], stderr=subprocess.PIPE, text=True)
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


def link(path, other):
    os.symlink(other, path)


def hard_link(path, other):
    os.link(other, path)


def fifo(path, _):
    os.mkfifo(path)


def device(path, _):
    os.mknod(path, 0o666 | stat.S_IFCHR, os.makedev(1, 5))  # zero


def foreign(path, other):
    shutil.copy(other, path)
    os.chown(path, 12345, 12345)


def endless(path, _):
    with open(path, "wb") as f:
        f.truncate(2 << 30)
    os.chown(path, 65534, 65534)


def folder(path, _):
    os.mkdir(path)


# what stands in the map's place -> why it is refused, and what helps
PLACES = {link: ("not a regular file", "remove what is there"), hard_link: ("another user's file", "remove the file"),
          fifo: ("not a regular file", "remove what is there"), device: ("not a regular file", "remove what is there"),
          foreign: ("another user's file", "remove the file"), endless: ("larger than 1 GiB", "start the program again"),
          folder: ("not a regular file", "remove what is there")}


def refused_in_status(sonde, store):
    rows = json.loads(sonde("status", "--json", store=store, check=True).stdout)["rows"]
    return {r["pid"]: r for row in rows for r in row["refused"]}


def jit_in_doctor(sonde, store, pid):
    rows = json.loads(sonde("doctor", "--pid", str(pid), "--json", store=store, check=True).stdout)["rows"]
    return next(r for r in rows if r["name"] == "[jit]")


CUT = "BASE 1000 cut_code\n" + "-" * 65000
INSIDE = ["unshare", "--mount", "sh", "-c", "mount -t tmpfs none /tmp && exec \"$@\"", "sh"]


@pytest.fixture(scope="module")
def strangers(tmp_path_factory):
    """One recording of all of them: what stands in the map's place, the processes, the names that were found."""
    need_root()
    store, aside = str(tmp_path_factory.mktemp("jit") / "store"), f"/tmp/sonde-other-{os.getpid()}"
    with contextlib.ExitStack() as stack:
        pids = {}
        for place in PLACES:
            pid = pids[place] = stack.enter_context(code(0, "x", f"{place.__name__}_code"))
            path, other = f"/tmp/perf-{pid}.map", f"{aside}-{place.__name__}"  # on the file system of the map: for the hard link
            os.rename(path, other)
            stack.callback(os.unlink, other)
            os.chown(other, 12345, 12345)
            place(path, other)
            stack.callback(os.rmdir if place is folder else os.unlink, path)
        pids["inside"] = stack.enter_context(code(0, "x", "hidden_code", prefix=INSIDE))
        pids["quiet"] = stack.enter_context(code(0, "x", "quiet_code"))
        _, _, names = recorded(store, 12)
        yield store, pids, names


@pytest.mark.long
@pytest.mark.parametrize("place", PLACES, ids=lambda p: p.__name__)
def test_what_is_no_file_of_the_program_is_refused_and_status_and_doctor_say_so(strangers, sonde, place):
    """Which process, why its map is not read, how many entries were taken, and what to do."""
    (store, pids, names), (reason, fix) = strangers, PLACES[place]
    pid = pids[place]
    assert "quiet_code" in names and f"{place.__name__}_code" not in names
    got = refused_in_status(sonde, store)[pid]
    assert got["what"] == "names" and f"{reason}; 0 of its entries are used. {fix}" in got["why"], got
    assert f"generated code without names, family cpu: {got['comm']}, pid " in sonde("status", store=store, check=True).stdout
    item = jit_in_doctor(sonde, store, pid)
    assert item["state"] == "warn" and f"{reason}; 0 of its entries are used" in item["text"] and fix in item["fix"], item


@pytest.mark.long
def test_a_map_that_is_cut_says_how_many_entries_were_taken(store, sonde):
    need_root()
    with code(66 * MIB, CUT, "beyond_the_cut") as pid:
        _, _, names = recorded(store, 8)
        assert "cut_code" in names and "beyond_the_cut" not in names
        why = refused_in_status(sonde, store)[pid]["why"]
        item = jit_in_doctor(sonde, store, pid)
    taken = int(re.match(r"its perf map is cut: (\d+) entries of its first 64 MiB are used\. start", why)[1])
    assert taken == 64 * MIB // len(CUT.replace("BASE", "7" * 12) + "\n") + 1, taken
    assert item["state"] == "warn" and "longer than 64 MiB" in item["text"] and item["fix"], item


@pytest.mark.long
def test_a_map_in_the_programs_own_mount_namespace_is_read(strangers, sonde):
    store, pids, names = strangers
    assert not os.path.exists(f"/tmp/perf-{pids['inside']}.map") and "hidden_code" in names
    assert pids["inside"] not in refused_in_status(sonde, store) and jit_in_doctor(sonde, store, pids["inside"])["state"] == "ok"


@pytest.mark.long
def test_a_map_that_grows_all_the_time_costs_no_sample(store):
    """Its writer appends 50 000 lines five times a second, all over its code."""
    need_root()
    grow = JIT.replace("while True:\n", """f = open("/tmp/perf-%d.map" % os.getpid(), "a")
i = 0
while True:
    i += 1
    if i % 10 == 0:
        f.write("".join("%x 5 z%d_%d\\n" % (base + 4096 + k % 50000, i, k) for k in range(50000)))
        f.flush()
""")
    with code(0, "x", "quiet_code"):
        _, plain, _ = recorded(store)
        child = subprocess.Popen([sys.executable, "-c", grow, "0", "x", "growing_code"], stdout=subprocess.PIPE, **NOBODY)
        try:
            assert child.stdout.readline()
            _, most, names = recorded(store + "2")
        finally:
            child.kill()
            child.wait(20)
            child.stdout.close()
            os.unlink(f"/tmp/perf-{child.pid}.map")
    assert "quiet_code" in names and most < plain + MOST_MORE, (most, plain)


@pytest.mark.long
def test_a_loader_whose_reader_was_killed_records_on_without_those_names(store, sonde):
    need_root()
    with code(0, "x", "quiet_code") as quiet:
        loader = subprocess.Popen([f"{BIN}/sonde-cpu", "--freq", "199", "--duration", "8s", "--store", store], stderr=subprocess.PIPE, text=True)
        end = time.monotonic() + 20
        reader = None
        while not reader and time.monotonic() < end:
            with open(f"/proc/{loader.pid}/task/{loader.pid}/children", encoding="ascii") as f:
                reader = next((int(p) for p in f.read().split() if comm_of(p) == "sonde-names"), None)
            time.sleep(0.01)
        os.kill(reader, signal.SIGKILL)
        said = loader.communicate(timeout=360)[1]
        assert loader.returncode == 0 and " 0 lost" in said, said
        why = refused_in_status(sonde, store).get(quiet)
    assert why is None or "could not be started" in why["why"], why
    assert sql_all(store, "SELECT count(*) AS n FROM cpu_samples")[0]["n"] > 0
