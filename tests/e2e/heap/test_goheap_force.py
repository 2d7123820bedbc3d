# SPDX-License-Identifier: Apache-2.0
"""sonde-goheap --mode force: profiling that the linker switched off is switched on, and off again whichever way sonde
ends. The oracle for "as before" is the memory itself: all that a stopped process may write to, byte by byte."""
import glob
import os
import re
import signal
import subprocess

import pytest

from conftest import WORKLOADS, need, need_root, sql_all
from test_goheap import LOADER, asked, ended, loader, wait_for

OFF = os.path.join(WORKLOADS, "offwork-go")
SWITCHED = "memory profiling was off; sonde-goheap switched it on (--mode force)"


class Offwork:
    def __init__(self):
        need_root()
        need("offwork-go (make workloads, with go)", OFF)
        self.process = subprocess.Popen([OFF], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.pid = self.process.pid
        assert self.answer() == 0  # the linker has done it

    def answer(self):
        return int(re.fullmatch(r"rate (\d+)\n", self.process.stdout.readline()).group(1))

    def do(self, what):
        """The rate that it answers with."""
        self.process.stdin.write(what + "\n")
        self.process.stdin.flush()
        return self.answer()

    def close(self):
        self.process.kill()
        self.process.wait()


@pytest.fixture
def offwork():
    work = Offwork()
    yield work
    work.close()


@pytest.fixture
def stopped(offwork):
    """It stands still: no byte changes but by others."""
    offwork.process.send_signal(signal.SIGSTOP)
    wait_for(lambda: re.search(r"^State:\s+T", open(f"/proc/{offwork.pid}/status", encoding="ascii").read(), re.M))
    return offwork


@pytest.fixture
def forcing(offwork, store, scratch):
    """Start one that forces, and wait until it is told that the process was switched on."""
    running = []

    def start(*args):
        running.append(loader(store, "--pid", str(offwork.pid), "--interval", "1s", "--mode", "force", "--record-dir",
                              os.path.join(scratch, "records"), *args))
        wait_for(lambda: reason(store, offwork.pid).startswith(SWITCHED), 30)
        return running[-1]

    yield start
    for p in running:
        p.kill()
        p.wait()


def reason(store, pid):
    """As told last."""
    rows = asked(store, f"SELECT reason FROM go_processes WHERE pid = {pid} ORDER BY rowid")
    return rows[-1]["reason"] if rows else ""


def writable(pid):
    """Address -> bytes of all that it may write to."""
    memory = {}
    with open(f"/proc/{pid}/maps", encoding="ascii") as maps, open(f"/proc/{pid}/mem", "rb", buffering=0) as mem:
        for line in maps:
            span, rights = line.split()[:2]
            if rights.startswith("rw"):
                start, end = (int(v, 16) for v in span.split("-"))
                memory[start] = os.pread(mem.fileno(), end - start, start) if end - start < 1 << 26 else b""
    return memory


def word(pid, at):
    with open(f"/proc/{pid}/mem", "rb", buffering=0) as mem:
        return int.from_bytes(os.pread(mem.fileno(), 8, at), "little")


def place_of_rate():
    need("go")
    table = subprocess.run(["go", "tool", "nm", OFF], capture_output=True, text=True, check=True).stdout
    return int(re.search(r"^\s*([0-9a-f]+) D runtime\.MemProfileRate$", table, re.M).group(1), 16)


def changed(before, after):
    """Addresses of the bytes that differ."""
    assert before.keys() == after.keys()
    return [at + i for at, old in before.items() if old != after[at] for i, (a, b) in enumerate(zip(old, after[at])) if a != b]


def records(scratch):
    folder = os.path.join(scratch, "records")
    return os.listdir(folder) if os.path.isdir(folder) else []


WAYS = {"interrupt": signal.SIGINT, "terminate": signal.SIGTERM, "kill": signal.SIGKILL}


@pytest.mark.long
@pytest.mark.parametrize("way", WAYS)
def test_its_memory_is_as_before_whichever_way_sonde_ends(way, stopped, forcing, store, scratch):
    before = writable(stopped.pid)
    running = forcing("--rate", "8192")
    at = place_of_rate()
    assert set(changed(before, writable(stopped.pid))) <= set(range(at, at + 8)), "another byte than those of the rate"
    assert word(stopped.pid, at) == 8192
    assert len(records(scratch)) == 1
    running.send_signal(WAYS[way])
    status, said = ended(running)
    assert f"process {stopped.pid} (offwork-go): memory profiling is off: writing 8192 into its MemProfileRate" in said
    if way == "kill":
        assert changed(before, writable(stopped.pid)) and len(records(scratch)) == 1
        status, said = ended(loader(store, "--pid", str(stopped.pid), "--duration", "1s", "--record-dir",
                                    os.path.join(scratch, "records")))
    assert status == 0, said
    assert changed(before, writable(stopped.pid)) == []
    assert records(scratch) == []


@pytest.mark.long
def test_at_the_end_of_its_time_too(stopped, forcing, scratch):
    before = writable(stopped.pid)
    status, said = ended(forcing("--duration", "6s"))
    assert status == 0, said
    assert changed(before, writable(stopped.pid)) == [] and records(scratch) == []


def test_it_gives_profiles_from_then_on(offwork, forcing, store):
    running = forcing("--rate", "4096")
    assert offwork.do("hold 64") == 4096
    running.send_signal(signal.SIGINT)
    status, said = ended(running)
    assert status == 0, said
    (row,) = sql_all(store, "SELECT sum(inuse_bytes) AS held, sum(alloc_bytes) AS allocated FROM go_heap"
                            " WHERE function = 'main.hold'")
    for v in row.values():  # 10 357 samples of 16 384 objects: a standard deviation is 0.6 %
        assert abs(v / (64 << 20) - 1) < 0.05, row
    (row,) = sql_all(store, "SELECT state, rate FROM go_processes")
    assert (row["state"], row["rate"]) == ("read", 4096)


def test_what_each_p_records_unasked_is_left_out(offwork, forcing, store):
    """It allocates a few KB, of which one sample in 112 MB takes none: what is recorded is what was not sampled. Each such
    record would stand for 112 MB."""
    running = forcing("--rate", str(0x7000000))
    for _ in range(20):
        offwork.do("rate")
    wait_for(lambda: "left out its first" in reason(store, offwork.pid))
    running.send_signal(signal.SIGINT)
    assert ended(running)[0] == 0
    (row,) = sql_all(store, "SELECT total(inuse_bytes) AS held, total(alloc_bytes) AS allocated FROM go_heap")
    assert (row["held"], row["allocated"]) == (0, 0)


def test_a_rate_that_the_program_has_set_meanwhile_is_its_own(offwork, forcing, scratch):
    running = forcing("--rate", "8192")
    assert offwork.do("set 1000") == 1000
    running.send_signal(signal.SIGINT)
    assert ended(running)[0] == 0
    assert offwork.do("rate") == 1000 and records(scratch) == []


def test_after_an_exec_nothing_is_put_back_into_the_new_program(offwork, forcing, store, scratch):
    """Same number, same start, same file, same address: and another program."""
    running = forcing("--rate", "8192")
    running.kill()
    running.wait()
    assert len(records(scratch)) == 1
    assert offwork.do("exec") == 0 and offwork.do("set 8192") == 8192
    ended(loader(store, "--pid", str(offwork.pid), "--duration", "1s", "--record-dir", os.path.join(scratch, "records")))
    assert offwork.do("rate") == 8192 and records(scratch) == []


def child_of(pid):
    with open(f"/proc/{pid}/task/{pid}/children", encoding="ascii") as f:
        return int(f.read().split()[0])


def traced(store, scratch, work, until, *args):
    """The calls of each of its threads, until `until` says so."""
    need("strace")
    log = os.path.join(scratch, "strace")
    running = loader(store, "--pid", str(work.pid), "--interval", "1s", "--record-dir", os.path.join(scratch, "records"), *args,
                     prefix=("strace", "-ff", "-o", log, "-e", "trace=openat,fsync,linkat,unlinkat,pwrite64,"
                             "process_vm_readv,process_vm_writev,ptrace,kill,tgkill,pidfd_send_signal"))
    try:
        wait_for(until, 60)
        os.kill(child_of(running.pid), signal.SIGINT)
    finally:
        status, said = ended(running, 60)
    assert status in (0, 4, 130), said  # disabled, it has no data
    calls = []
    for path in glob.glob(log + ".*"):  # one for each thread, so that no line is cut in two
        with open(path, encoding="utf-8", errors="replace") as f:
            calls.append(f.read())
    return calls


def test_it_is_on_record_before_it_is_written_and_until_it_is_put_back(offwork, store, scratch):
    (calls,) = (c for c in traced(store, scratch, offwork, lambda: reason(store, offwork.pid).startswith(SWITCHED),
                                        "--mode", "force", "--rate", "8192") if "/mem\"" in c)
    opened = re.search(rf'openat\(.*"/proc/{offwork.pid}/mem", O_RDWR.*= (\d+)', calls)
    steps = re.findall(rf"fsync\(\d+\)\s+= 0|linkat\(.*\"{offwork.pid}-\d+\".*= 0|pwrite64\({opened.group(1)}, .*= 8"
                       rf"|unlinkat\(.*\"{offwork.pid}-\d+\".*= 0", calls[opened.end():])
    kinds = [step.split("(")[0] for step in steps]
    assert [k for k in kinds if k != "fsync"] == ["linkat", "pwrite64", "pwrite64", "unlinkat"]
    assert kinds[:4] == ["fsync", "linkat", "fsync", "pwrite64"]


@pytest.mark.parametrize("mode", ["enabled", "disabled"])
def test_in_no_other_mode_anything_is_written(mode, offwork, store, scratch):
    seen = lambda: asked(store, f"SELECT 1 FROM {'go_readings' if mode == 'enabled' else 'run'}")  # noqa: E731
    calls = "".join(traced(store, scratch, offwork, seen, "--mode", mode))
    assert (f"process_vm_readv({offwork.pid}, " in calls) == (mode == "enabled")
    assert not re.search(rf"process_vm_writev\(|ptrace\(|/mem\"|kill\({offwork.pid}, [1-9S]", calls)
    assert offwork.do("rate") == 0


def test_records_that_others_may_write_are_not_used(offwork, store, scratch):
    folder = os.path.join(scratch, "records")
    os.mkdir(folder)
    os.chmod(folder, 0o777)
    with open(os.path.join(folder, "1-1"), "w", encoding="ascii") as f:
        f.write("sonde-goheap 1 1 1 1 1 1 4096 1\n")
    status, said = ended(loader(store, "--pid", str(offwork.pid), "--mode", "force", "--record-dir", folder))
    assert status == 5 and "others may write to it" in said and "fix: --record-dir" in said
    assert offwork.do("rate") == 0


def test_a_rate_that_means_nothing_is_refused():
    for bad in ("0", "-1", "x", "117440513", "1k"):
        done = subprocess.run([LOADER, "--mode", "force", "--rate", bad], capture_output=True, text=True, check=False)
        assert done.returncode == 2 and "--rate" in done.stderr
