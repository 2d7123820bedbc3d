# SPDX-License-Identifier: Apache-2.0
"""Family disk: reads and writes of files as programs ask for them, files that an overlay has, direct and mapped reads, and locks that are waited for."""
import ctypes
import fcntl
import json
import mmap
import os
import re
import socket
import subprocess
import sys
import tempfile
import time

import pytest

from conftest import need, need_root, sql_all
from containers import fake_container
from publishing import maps_still

PAGE = 4096
MOVED = 300 << 10  # files that less is moved of may have no name on a host where others use thousands
LIBC = ctypes.CDLL(None, use_errno=True)
HOLDS = """
import fcntl, sys, time
f = open(sys.argv[1], "r+b")
fcntl.flock(f, fcntl.LOCK_EX)
fcntl.lockf(f, fcntl.LOCK_EX)
print("held", flush=True)
time.sleep(float(sys.argv[2]))
fcntl.flock(f, fcntl.LOCK_UN)
time.sleep(float(sys.argv[2]))
fcntl.lockf(f, fcntl.LOCK_UN)
time.sleep(5)
"""


@pytest.fixture
def folder():
    """On a file system of a disk."""
    need_root()
    device = os.stat("/var/tmp").st_dev
    if not os.path.exists(f"/sys/dev/block/{os.major(device)}:{os.minor(device)}"):
        pytest.skip("/var/tmp is not on a file system of a disk's own")
    with tempfile.TemporaryDirectory(dir="/var/tmp", prefix="sonde-calls-") as at:
        yield at


def calls_needed():
    items = json.loads(subprocess.run([os.path.join(os.environ.get("B", "build"), "bin", "sonde-disk"), "--check", "--json"], capture_output=True, text=True, check=True).stdout)["items"]
    if [i["state"] for i in items if i["name"] == "calls on files"] != ["ok"]:
        pytest.skip("reads and writes of files are not recorded: kernel 6.0")


def calls(store, file, pid=None):
    rows = sql_all(store, f"SELECT call, sum(calls) AS n, sum(bytes) AS bytes, sum(errors) AS errors FROM file_calls WHERE file = ? AND pid = {pid or os.getpid()} GROUP BY call", (file,))
    return {r["call"]: (r["n"], r["bytes"], r["errors"]) for r in rows}


def overlay(folder):
    """(merged, lower, upper)"""
    lower, upper, work, merged = (os.path.join(folder, n) for n in ("lower", "upper", "work", "merged"))
    for path in (lower, upper, work, merged):
        os.mkdir(path)
    with open(f"{lower}/kept", "wb") as f:
        f.write(b"k" * (MOVED + PAGE))
    with open(f"{lower}/changed", "wb") as f:
        f.write(b"c" * PAGE)
    if LIBC.mount(b"none", merged.encode(), b"overlay", 0, f"lowerdir={lower},upperdir={upper},workdir={work}".encode()):
        return None
    return merged, lower, upper


def test_reads_and_writes_have_their_calls_and_bytes(capture, store, folder):
    calls_needed()
    path, other, many = (os.path.join(folder, n) for n in ("data", "copy", "many"))
    layers = overlay(folder)
    try:
        cap = capture("--pid", os.getpid(), "--bucket", "1s", program="sonde-disk")
        fd, copy = os.open(path, os.O_RDWR | os.O_CREAT), os.open(other, os.O_RDWR | os.O_CREAT)
        for i in range(300):
            os.pwrite(fd, b"w" * 1000, i * PAGE)
        os.writev(fd, [b"a" * 10, b"b" * 20])
        for i in range(200):
            os.pread(fd, 500, i * PAGE)
        os.preadv(fd, [bytearray(100)], 0)
        one, two = socket.socketpair()
        one.send(b"s" * 77)  # no file: sockets and pipes are left out
        os.read(two.fileno(), 77)
        os.sendfile(one.fileno(), fd, 0, 4000)
        assert os.copy_file_range(fd, copy, MOVED, 0, 0) == MOVED
        reads, directory = os.open(path, os.O_RDONLY), os.open(folder, os.O_RDONLY)
        for bad in (lambda: os.write(reads, b"x"), lambda: os.read(directory, 1)):
            with pytest.raises(OSError):
                bad()
        spare = [os.dup(fd) for _ in range(80)]  # beyond the table of 64 that a process begins with
        os.pwrite(spare[-1], b"z" * 5, 0)
        with open("/proc/self/stat", "rb") as f:
            f.read()
        if layers:
            merged, lower, upper = layers
            with open(f"{merged}/kept", "rb", buffering=0) as f:
                f.read(MOVED)
            with open(f"{merged}/changed", "r+b", buffering=0) as f:
                f.write(b"C" * MOVED)
        cap.stop()
        for x in spare:
            os.close(x)
    finally:
        if layers:
            LIBC.umount2(layers[0].encode(), 2)
    assert calls(store, path) == {"write": (300 + 1 + 1 + 1, 300 * 1000 + 30 + 5, 1), "read": (200 + 1 + 1, 200 * 500 + 100 + 4000, 0)}
    assert calls(store, other) == {"write": (1, MOVED, 0)}
    assert not sql_all(store, f"SELECT * FROM file_calls WHERE file LIKE '%stat' OR file LIKE '%{many}%'")
    if layers:  # the disk's file, not the overlay's
        assert calls(store, f"{lower}/kept") == {"read": (1, MOVED, 0)} and calls(store, f"{upper}/changed") == {"write": (1, MOVED, 0)}


@pytest.mark.long
def test_direct_and_mapped_reads_have_their_file(capture, store, folder):
    path = os.path.join(folder, "read")
    with open(path, "wb") as f:
        f.write(os.urandom(4 << 20))
        os.fsync(f.fileno())
        os.posix_fadvise(f.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
    cap = capture("--pid", os.getpid(), "--bucket", "1s", program="sonde-disk")
    with open(path, "rb") as f:
        mapped = mmap.mmap(f.fileno(), 2 << 20, prot=mmap.PROT_READ)
        sum(mapped[i] for i in range(0, 2 << 20, PAGE))
        mapped.close()
    page = mmap.mmap(-1, 1 << 20)
    fd = os.open(path, os.O_RDONLY | os.O_DIRECT)
    for at in (2 << 20, 3 << 20):
        assert os.preadv(fd, [page], at) == 1 << 20
    os.close(fd)
    cap.stop()
    with open("/proc/kallsyms", encoding="ascii") as f:
        ends = bool(re.search(r"[1-9a-f]\w* [tT] iomap_dio_bio_end_io\n", f.read()))
    (row,) = sql_all(store, f"SELECT sum(read_bytes) AS n FROM disk_files WHERE file = '{path}' AND pid = {os.getpid()}")
    direct = 2 << 20 if ends else 0
    assert direct + (1 << 20) < row["n"] <= direct + (4 << 20)  # with what the kernel reads ahead


def test_waits_for_locks_name_who_has_them(sonde, capture, store, folder):
    path = os.path.join(folder, "locked")
    with open(path, "wb"):
        pass
    cap = capture("--bucket", "1s", program="sonde-disk")
    holder = subprocess.Popen([sys.executable, "-c", HOLDS, path, "0.3"], stdout=subprocess.PIPE)
    holder.stdout.readline()
    waits = []
    with open(path, "r+b") as f:
        for take in (fcntl.flock, fcntl.lockf):
            begin = time.monotonic()
            take(f, fcntl.LOCK_EX)
            waits.append(1e6 * (time.monotonic() - begin))
        with open(path, "r+b") as g, pytest.raises(BlockingIOError):
            fcntl.flock(g, fcntl.LOCK_EX | fcntl.LOCK_NB)  # this one does not wait
    cap.stop()
    holder.kill()
    holder.wait()
    rows = sql_all(store, f"SELECT lock, holder_pid, sum(waits) AS n, sum(us) AS us FROM lock_waits WHERE file = '{path}' AND pid = {os.getpid()} GROUP BY lock, holder_pid ORDER BY lock")
    assert [(r["lock"], r["holder_pid"], r["n"]) for r in rows] == [("flock", holder.pid, 1), ("posix", holder.pid, 1)]
    assert all(0 < r["us"] <= us for r, us in zip(rows, waits))
    said = [r for r in json.loads(sonde("disk", "--locks", "--json", store=store, check=True).stdout)["rows"] if r["file"] == path]
    assert {(r["lock"], r["holder_pid"], r["pid"]) for r in said} == {("flock", holder.pid, os.getpid()), ("posix", holder.pid, os.getpid())}


OFD_HOLDS = """
import fcntl, struct, sys, time
f = open(sys.argv[1], "r+b")
fcntl.fcntl(f, 37, struct.pack("hhqqi4x", fcntl.F_WRLCK, 0, 0, 0, 0))  # F_OFD_SETLK
print("held", flush=True)
time.sleep(float(sys.argv[2]))
"""
# A 32-bit program's calls: the kernel has the same entry for them in one of 64 bits. `alarm`: a signal ends the wait, and the program sleeps.
COMPAT = """
#define _GNU_SOURCE
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <unistd.h>
static void nothing(int s) { (void)s; }
static long call32(long nr, long a, long b, long c) {
    long r;
    __asm__ volatile("int $0x80" : "=a"(r) : "a"(nr), "b"(a), "c"(b), "d"(c) : "memory", "r8", "r9", "r10", "r11");
    return r;
}
int main(int n, char **v) {
    short *lock = mmap(0, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_32BIT, -1, 0);
    int fd = open(v[1], O_RDWR);
    struct sigaction act;
    memset(&act, 0, sizeof(act));
    act.sa_handler = nothing;
    sigaction(SIGALRM, &act, 0);
    lock[0] = F_WRLCK;
    if (n > 2) {
        struct itimerval t = {{0, 0}, {4, 500000}};
        setitimer(ITIMER_REAL, &t, 0);
    }
    long r = call32(221, fd, 14, (long)lock); /* fcntl64, F_SETLKW64 */
    if (n > 2) {
        sleep(5);
        return r != -4;
    }
    return r != 0;
}
"""


def test_a_lock_of_an_open_file_has_its_holder_and_a_32_bit_program_its_wait(capture, store, folder, tmp_path):
    path, other = os.path.join(folder, "locked"), os.path.join(folder, "broken-off")
    for file in (path, other):
        open(file, "wb").close()
    source = tmp_path / "compat.c"
    source.write_text(COMPAT)
    if subprocess.run(["gcc", "-O1", "-o", tmp_path / "compat", source], check=False).returncode:
        pytest.skip("no compiler for x86")
    cap = capture("--bucket", "1s", program="sonde-disk")
    holders = [subprocess.Popen([sys.executable, "-c", OFD_HOLDS, path, "0.5"], stdout=subprocess.PIPE),
               subprocess.Popen([sys.executable, "-c", OFD_HOLDS, other, "60"], stdout=subprocess.PIPE)]
    for holder in holders:
        holder.stdout.readline()
    begin = time.monotonic()
    broken = subprocess.Popen([tmp_path / "compat", other, "alarm"])
    waited = subprocess.run([tmp_path / "compat", path], check=False).returncode
    took = 1e6 * (time.monotonic() - begin)
    ended = broken.wait()
    took_other = 1e6 * (time.monotonic() - begin)
    time.sleep(1)
    cap.stop()
    for holder in holders:
        holder.kill()
        holder.wait()
    if (waited, ended) != (0, 0):
        pytest.skip("this kernel has no calls of 32-bit programs")
    rows = sql_all(store, f"SELECT file, lock, holder_pid, sum(waits) AS n, sum(errors) AS errors, sum(us) AS us, max(lasting_us) AS lasting FROM lock_waits WHERE comm = 'compat' AND file LIKE '{folder}/%' GROUP BY 1, 2, 3")
    by = {r["file"]: r for r in rows}
    assert len(by) == len(rows) == 2, rows
    assert (by[path]["lock"], by[path]["holder_pid"], by[path]["n"]) == ("posix", holders[0].pid, 1) and 0 < by[path]["us"] <= took, rows
    # one that a signal ended: it counts, and is not said to last once the program does something else
    assert (by[other]["n"], by[other]["errors"], by[other]["holder_pid"]) == (1, 1, holders[1].pid) and 4.5e6 <= by[other]["us"] <= took_other, rows
    assert 1e6 <= by[other]["lasting"] <= by[other]["us"], rows


# Ranges of one open file, which a child shares: "0 10 0" takes ten bytes at 0 in the first process, with 1 at the end in the child, which ends then or not. `-`: gives them up.
OFD_SHARES = """
import fcntl, os, struct, sys
def lock(f, kind, start, size):
    fcntl.fcntl(f, 37, struct.pack("hhqqi4x", kind, 0, start, size, 0))  # F_OFD_SETLK
f = open(sys.argv[1], "r+b")
for line in sys.stdin:
    kind, start, size, who = line.split()
    kind = fcntl.F_UNLCK if kind == "-" else fcntl.F_WRLCK
    if who == "1":
        ready, done = os.pipe()
        pid = os.fork()
        if not pid:
            lock(f, kind, int(start), int(size))
            os.write(done, b"x")
            sys.stdin.close()
            import time
            time.sleep(60)
            os._exit(0)
        os.read(ready, 1)
    else:
        pid = os.getpid()
        lock(f, kind, int(start), int(size))
    print(pid, flush=True)
"""


def wait_briefly(path, start, seconds=0.05):
    """Waits for a byte of it, in a process of its own, which an alarm ends. Its pid."""
    script = f"""
import fcntl, signal
signal.signal(signal.SIGALRM, lambda *_: 1 / 0)
f = open({path!r}, "r+b")
signal.setitimer(signal.ITIMER_REAL, {seconds})
try:
    fcntl.lockf(f, fcntl.LOCK_EX, 1, {start})
except ZeroDivisionError:
    pass
"""
    waiter = subprocess.Popen([sys.executable, "-c", script])
    waiter.wait()
    return waiter.pid


def test_a_lock_names_no_holder_but_who_took_what_is_waited_for(capture, store, folder):
    """Of open files that several processes share: each range by who took it; one that both took, or that was taken before the recording, has none."""
    path = os.path.join(folder, "shared")
    open(path, "wb").close()
    owner = subprocess.Popen([sys.executable, "-c", OFD_SHARES, path], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    children, want = [], {}

    def take(kind, start, size, child):
        owner.stdin.write(f"{kind} {start} {size} {child}\n")
        owner.stdin.flush()
        pid = int(owner.stdout.readline())
        if child:
            children.append(pid)
        return pid
    try:
        take("+", 100, 10, 0)
        cap = capture("--bucket", "1s", program="sonde-disk")
        first = take("+", 0, 10, 0)
        second = take("+", 20, 10, 1)
        want[wait_briefly(path, 5)], want[wait_briefly(path, 25)] = first, second
        want[wait_briefly(path, 105)] = None  # before the recording
        take("+", 40, 10, 0)
        take("+", 40, 10, 1)
        want[wait_briefly(path, 45)] = None  # both
        take("+", 60, 20, 0)
        take("-", 60, 10, 0)
        want[wait_briefly(path, 75)] = None  # another range than was taken
        third = take("+", 200, 10, 1)
        want[wait_briefly(path, 205)] = third
        cap.stop()
    finally:
        for pid in children:
            os.kill(pid, 9)
        owner.kill()
        owner.wait()
    rows = sql_all(store, f"SELECT pid, holder_pid, sum(waits) AS n, sum(errors) AS errors FROM lock_waits WHERE file = '{path}' GROUP BY 1, 2")
    assert {r["pid"]: (r["holder_pid"], r["n"], r["errors"]) for r in rows} == {pid: (holder, 1, 1) for pid, holder in want.items()}


def test_who_waits_in_a_queue_waits_for_who_has_the_lock(capture, store, folder):
    """The kernel queues the second one behind the first, not behind the lock."""
    path = os.path.join(folder, "queued")
    open(path, "wb").close()
    cap = capture("--bucket", "1s", program="sonde-disk")
    holder = subprocess.Popen([sys.executable, "-c", HOLDS, path, "1.5"], stdout=subprocess.PIPE)
    holder.stdout.readline()
    waiters = [subprocess.Popen([sys.executable, "-c", f"import fcntl; f = open({path!r}, 'r+b'); fcntl.{take}(f, fcntl.LOCK_EX)"]) for take in ("flock", "flock", "flock", "lockf", "lockf")]
    for waiter in waiters:
        waiter.wait()
    cap.stop()
    holder.kill()
    holder.wait()
    rows = sql_all(store, f"SELECT pid, lock, holder_pid, sum(waits) AS n FROM lock_waits WHERE file = '{path}' GROUP BY 1, 2, 3")
    assert {(r["pid"], r["lock"], r["holder_pid"], r["n"]) for r in rows} == {(w.pid, "flock" if i < 3 else "posix", holder.pid, 1) for i, w in enumerate(waiters)}


WRITES = """
import os, sys
for name in "abc":
    os.mkdir(f"{sys.argv[1]}/{name}")
    for i in range(152):
        fd = os.open(f"{sys.argv[1]}/{name}/{i}", os.O_CREAT | os.O_WRONLY)
        os.write(fd, b"x" * 4096 * (256 if i < 2 else 1 + i % 2))
        os.close(fd)
"""


def test_files_past_the_limit_are_summed_by_folder(capture, store, folder):
    """Two large files in each of three folders, and 150 small ones: more than have rows of their own. Only their writer is recorded:
    the limits are those of the host, and other programs may use more files and folders. They are those of each ten seconds, and fewer than of
    each two: on a busy host the writer takes long, and the files of each two may be few."""
    calls_needed()
    sizes = {f"{folder}/{name}/{i}": PAGE * (256 if i < 2 else 1 + i % 2) for name in "abc" for i in range(152)}
    cap = capture("--bucket", "10s", program="sonde-disk", command=[sys.executable, "-c", WRITES, folder])
    assert not any(cap.wait()["lost"].values())
    for view, what, more in (("file_calls", "bytes", "call = 'write'"), ("disk_files", "dirty_bytes", "dirty_bytes > 0")):
        rows = sql_all(store, f"SELECT file, sum({what}) AS bytes FROM {view} WHERE {more} AND file NOT LIKE '/dev/%' GROUP BY 1")
        named = {r["file"]: r["bytes"] for r in rows if not r["file"].endswith("~other")}
        others = {os.path.dirname(r["file"]): r["bytes"] for r in rows if r["file"].endswith("~other")}
        assert all(sizes[p] == size for p, size in named.items()), rows
        assert view == "file_calls" or all(p in named for p, size in sizes.items() if size == 256 * PAGE), rows  # of calls the slow ones come first
        assert len(named) < len(sizes) and sum(r["bytes"] for r in rows) == sum(sizes.values()), rows  # no byte is missing, none is twice
        for name in ("a", "b", "c"):
            left = sum(size for p, size in sizes.items() if p.startswith(f"{folder}/{name}/") and p not in named)
            assert others.get(f"{folder}/{name}", 0) <= left, (name, left, rows)
        assert set(others) & {f"{folder}/{name}" for name in "abc"}, rows


@pytest.mark.long
def test_of_some_processes_none_is_left_out_without_being_counted(capture, store, folder):
    """sonde-maps stands still while a program of that name begins, writes and ends: its writes are stored later, or are among the lost."""
    calls_needed()
    cap = capture("--bucket", "1s", "--comm", "dd", program="sonde-disk")
    with maps_still(cap):
        subprocess.run(["dd", "if=/dev/zero", f"of={folder}/late", "bs=4096", "count=64"], check=True, stderr=subprocess.DEVNULL)
        time.sleep(9)
    done = cap.stop()
    rows = sql_all(store, f"SELECT sum(calls) AS n FROM file_calls WHERE file = '{folder}/late' AND call = 'write'")
    assert rows[0]["n"] == 64 or done["lost"]["unknown"] > 0, (rows, done)
    assert done["seen"] == done["samples"] + done["lost_total"], done


@pytest.mark.long
@pytest.mark.parametrize("direct", [0, 1])
@pytest.mark.parametrize("how", ["randread", "randwrite"])
def test_io_uring_has_its_calls_and_its_file(capture, store, folder, how, direct):
    need("fio", "/usr/bin/fio")
    calls_needed()
    path = os.path.join(folder, "ring")
    with open(path, "wb") as f:
        f.write(os.urandom(8 << 20))
        os.fsync(f.fileno())
        os.posix_fadvise(f.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
    cap = capture("--bucket", "1s", program="sonde-disk")
    run = subprocess.run(["fio", "--name=t", f"--filename={path}", f"--rw={how}", "--bs=4k", f"--direct={direct}", "--ioengine=io_uring", "--iodepth=8", "--size=8M",
                          "--output-format=json"], capture_output=True, text=True, check=True, timeout=100)
    cap.stop()
    kind = "read" if how == "randread" else "write"
    fio = json.loads(re.search(r"\{.*\}", run.stdout, re.S)[0])["jobs"][0][kind]
    (row,) = sql_all(store, f"SELECT sum(calls) AS n, sum(bytes) AS bytes, sum(us) AS us FROM file_calls WHERE file = '{path}' AND call = 'ring_{kind}'")
    assert (row["n"], row["bytes"]) == (fio["total_ios"], fio["io_bytes"]) == (2048, 8 << 20)
    assert row["us"] <= fio["lat_ns"]["mean"] * fio["total_ios"] / 1000 + 1
    if direct:
        (row,) = sql_all(store, f"SELECT sum({kind}_bytes) AS n FROM disk_files WHERE file = '{path}' AND pid <> {os.getpid()}")
        assert row["n"] == 8 << 20


@pytest.mark.long
def test_requests_in_order_are_told_from_those_that_are_not(sonde, capture, store, folder):
    need("fio", "/usr/bin/fio")
    path = os.path.join(folder, "order")
    with open(path, "wb") as f:
        for _ in range(64):  # fallocate alone leaves nothing for a disk to read
            f.write(b"o" * (4 << 20))
        os.fsync(f.fileno())
    share = {}
    for how in ("read", "randread"):
        cap = capture("--bucket", "1s", program="sonde-disk")
        subprocess.run(["fio", "--name=t", f"--filename={path}", f"--rw={how}", "--bs=16k", "--direct=1", "--ioengine=libaio", "--iodepth=4", "--size=256M", "--time_based", "--runtime=3"],
                       capture_output=True, check=True, timeout=100)
        cap.stop()
        answer = json.loads(sonde("disk", "--comm", "fio", "--json", "--rec", "last", store=store, check=True).stdout)
        (who,) = [r for r in answer["who"] if r["read_bytes"] > 1 << 20]
        share[how] = who["sequential"] / (who["reads"] + who["writes"])
    assert share["read"] > 0.9 and share["randread"] < 0.1, share


def took(path):
    return 512 * os.stat(path).st_blocks


@pytest.mark.long
def test_growth_is_what_du_says(sonde, capture, store, folder):
    """Six ways to fill a disk, beside a sparse file and one that was preallocated before: each by its own process."""
    script = """
import mmap, os, sys, time
how, path = sys.argv[1:]
fd = os.open(path, os.O_RDWR | os.O_CREAT | (os.O_DIRECT if how == "direct" else 0), 0o600)
for i in range(6):
    if how == "append":
        for _ in range(1024): os.write(fd, b"a" * 1024)
    elif how == "mapped":
        os.ftruncate(fd, (i + 1) << 20)
        with mmap.mmap(fd, (i + 1) << 20) as m:
            for at in range(i << 20, (i + 1) << 20, 4096): m[at] = 1
            m.flush()
    elif how == "direct":
        os.pwrite(fd, mmap.mmap(-1, 1 << 20), i << 20)
    elif how == "fallocate":
        os.posix_fallocate(fd, i << 20, 1 << 20)
    elif how == "laid-out":  # as databases do: its place, then at once its pages
        if not i: os.posix_fallocate(fd, 0, 6 << 20)
        os.pwrite(fd, b"l" * (1 << 20), i << 20)
    elif how == "many":
        for n in range(4): open(f"{path}.{i}.{n}", "wb").write(b"m" * (256 << 10))
    elif how == "sparse":
        os.pwrite(fd, b"s" * 4096, i << 30)
    elif how == "inside":
        os.pwrite(fd, b"p" * (1 << 20), i << 20)
    time.sleep(0.5)
"""
    kinds = ("append", "mapped", "direct", "fallocate", "laid-out", "many", "sparse", "inside")
    with open(f"{folder}/inside", "wb") as f:
        os.posix_fallocate(f.fileno(), 0, 8 << 20)
        os.fsync(f.fileno())
    before = took(f"{folder}/inside")
    cap = capture("--bucket", "1s", program="sonde-disk")
    running = {how: subprocess.Popen([sys.executable, "-c", script, how, f"{folder}/{how}"]) for how in kinds}
    assert all(p.wait(100) == 0 for p in running.values())
    os.sync()
    time.sleep(2.5)
    cap.stop()
    for how, process in running.items():
        names = [n for n in os.listdir(folder) if n == how or n.startswith(how + ".")]
        want = sum(took(f"{folder}/{n}") for n in names) - (before if how == "inside" else 0)
        (row,) = sql_all(store, f"SELECT coalesce(sum(grown_bytes), 0) - coalesce(sum(shrunk_bytes), 0) AS n FROM disk_files WHERE file IN ({', '.join(repr(f'{folder}/{n}') for n in names)})")
        assert row["n"] == pytest.approx(want, rel=0.01, abs=64 << 10), (how, row["n"], want)
        if how not in ("sparse", "inside"):
            (most,) = sql_all(store, f"SELECT pid FROM disk_files WHERE file LIKE '{folder}/{how}%' AND grown_bytes > 0 GROUP BY pid ORDER BY sum(grown_bytes) DESC LIMIT 1")
            assert most["pid"] == process.pid


def test_a_file_that_is_waited_for_has_the_hosts_path_whatever_the_mounts(capture, store, folder):
    """A process that has another folder at that path: its file is not the host's of that name."""
    for name in ("private", "shown"):
        os.mkdir(f"{folder}/{name}")
    syncs = f"import os, sys; f = open(sys.argv[1], 'wb'); f.write(b'x'); f.flush(); os.fsync(f.fileno())"
    cap = capture("--bucket", "1s", program="sonde-disk")
    inside = subprocess.run(["unshare", "-m", "sh", "-c", f'mount --bind {folder}/private {folder}/shown && exec "$@"', "sh", sys.executable, "-c", syncs, f"{folder}/shown/file"],
                            capture_output=True, text=True)
    if not inside.returncode:
        subprocess.run([sys.executable, "-c", syncs, f"{folder}/shown/other"], check=True)
    cap.stop()
    if inside.returncode:
        pytest.skip(f"nothing can be mounted here: {inside.stderr}")
    rows = sql_all(store, f"SELECT file, sum(calls) AS n FROM fsyncs WHERE file LIKE '{folder}/%' GROUP BY 1 ORDER BY 1")
    assert [(r["file"], r["n"]) for r in rows] == [(f"{folder}/private/file", 1), (f"{folder}/shown/other", 1)]


def test_a_file_that_got_its_name_after_it_was_written_has_its_growth(capture, store, folder):
    """As rsync, package managers and browsers write: one name meanwhile, another one when all is there; beside files that are gone by then."""
    cap = capture("--pid", os.getpid(), program="sonde-disk")
    for name in ("gone", "kept"):
        with open(f"{folder}/.{name}.part", "wb") as f:
            f.write(os.urandom(4 << 20))
            f.flush()
            os.fsync(f.fileno())
    os.unlink(f"{folder}/.gone.part")
    os.rename(f"{folder}/.kept.part", f"{folder}/kept")
    cap.stop()
    rows = sql_all(store, f"SELECT file, sum(dirty_bytes) AS dirty, sum(grown_bytes) AS grown FROM disk_files WHERE file LIKE '{folder}/%kept%' GROUP BY 1")
    assert [(r["file"], r["grown"]) for r in rows] == [(f"{folder}/kept", took(f"{folder}/kept"))] and rows[0]["dirty"] >= 4 << 20


@pytest.mark.long
def test_rsync_is_who_fills_the_disk(capture, store, folder):
    need("rsync")
    os.makedirs(f"{folder}/from/deep")
    os.mkdir(f"{folder}/to")
    for name, size in (("large", 8 << 20), ("deep/other", 3 << 20)):
        with open(f"{folder}/from/{name}", "wb") as f:
            f.write(os.urandom(size))
    cap = capture("--bucket", "1s", program="sonde-disk")
    subprocess.run(["rsync", "-a", f"{folder}/from/", f"{folder}/to/"], check=True)
    time.sleep(2.5)
    cap.stop()
    for name in ("large", "deep/other"):
        (row,) = sql_all(store, f"SELECT sum(grown_bytes) AS n, max(comm) AS comm FROM disk_files WHERE file = '{folder}/to/{name}' AND grown_bytes > 0")
        assert (row["n"], row["comm"]) == (took(f"{folder}/to/{name}"), "rsync"), name


@pytest.mark.long
def test_a_container_sees_a_file_elsewhere(sonde, capture, store, folder):
    """A process in the cgroup of a container, whose root is an overlay with a volume."""
    calls_needed()
    need("busybox")
    for name in ("lower/bin", "lower/data", "lower/etc", "upper", "work", "root", "volume"):
        os.makedirs(f"{folder}/{name}")
    subprocess.run(["cp", "/usr/bin/busybox", f"{folder}/lower/bin/busybox"], check=True)
    with open(f"{folder}/lower/etc/kept", "wb") as f:
        f.write(b"k" * MOVED)
    inside = "busybox dd if=/etc/kept of=/data/made bs=512; busybox dd if=/etc/kept of=/new bs=1024 conv=fsync; busybox sleep 4"
    script = (f"mount -t overlay none -o lowerdir={folder}/lower,upperdir={folder}/upper,workdir={folder}/work {folder}/root && "
              f"mount --bind {folder}/volume {folder}/root/data && exec chroot {folder}/root /bin/busybox sh -c '{inside}'")
    with fake_container() as (container_id, prefix):
        cap = capture("--bucket", "1s", "--cgroup", f"/docker/{container_id}", program="sonde-disk")
        done = subprocess.run([*prefix, "unshare", "-m", "sh", "-c", script], capture_output=True, text=True)
        cap.stop()
    if done.returncode:
        pytest.skip(f"nothing can be mounted here: {done.stderr}")
    rows = {(r["file"], r["call"]): r for r in json.loads(sonde("disk", "--calls", "--json", "-n", "0", store=store, check=True).stdout)["rows"] if r["file"] and r["file"].startswith(folder)}
    got = {key: (r["seen"], r["calls"], r["bytes"], bool(r["container"])) for key, r in rows.items() if not key[0].endswith("busybox")}
    assert got == {(f"{folder}/lower/etc/kept", "read"): ("/etc/kept", MOVED // 512 + MOVED // 1024 + 2, 2 * MOVED, True), (f"{folder}/volume/made", "write"): ("/data/made", MOVED // 512, MOVED, True),
                   (f"{folder}/upper/new", "write"): ("/new", MOVED // 1024, MOVED, True)}
    rows = sql_all(store, "SELECT x.file, x.calls, f.value AS host FROM fsyncs x LEFT JOIN text s ON s.value = x.file LEFT JOIN place_row w ON w.seen = s.id LEFT JOIN text f ON f.id = w.file"
                          " WHERE comm IN ('dd', 'busybox') GROUP BY 1, 2, 3")
    assert [(r["file"], r["calls"], r["host"]) for r in rows] == [("/new", 1, f"{folder}/upper/new")]  # the container's path, and which file of the host that is


OWN = """
"$0" if=/dev/zero of="$1/made" bs=4096 count=80 conv=fsync 2>/dev/null && stat -c %d "$1"
read end  # its mounts are looked at when what it wrote is stored
"""


def test_files_that_the_host_has_not_mounted_are_told_apart(sonde, capture, store, folder):
    """Two containers, each with a tmpfs of its own at the same path, which `stat` there says the device of; one such file of the host's. Only this
    program is recorded: rows with a name are limited, and others use files, too."""
    calls_needed()
    os.mkdir(f"{folder}/own")
    program = f"{folder}/owndd"
    subprocess.run(["cp", "/usr/bin/dd", program], check=True)
    with fake_container() as (one, prefix), fake_container() as (two, prefix_two), tempfile.TemporaryDirectory(dir="/dev/shm") as shm:
        cap = capture("--bucket", "1s", "--comm", "owndd", program="sonde-disk")
        mounts = ["unshare", "-m", "sh", "-c", 'mount -t tmpfs none "$1" && ' + OWN.strip(), program, f"{folder}/own"]
        here = ["sh", "-c", OWN.strip(), program, shm]
        running = [subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) for argv in ([*prefix, *mounts], [*prefix_two, *mounts], here)]
        devices = [p.stdout.readline() for p in running]
        cap.stop()
        for p in running:
            p.communicate()
    if not all(devices):
        pytest.skip("nothing can be mounted here")
    names = {container: f"{os.major(int(d))}:{os.minor(int(d))}:/made" for container, d in zip((one, two), devices)}
    assert len(set(names.values())) == 2
    rows = json.loads(sonde("disk", "--calls", "--json", "-n", "0", store=store, check=True).stdout)["rows"]
    got = {(r["file"], r["seen"], r["calls"], r["bytes"], (r["container"] or "")[:12]) for r in rows if r["call"] == "write"}
    assert got == {*((name, f"{folder}/own/made", 80, 80 * PAGE, container[:12]) for container, name in names.items()), (f"{shm}/made", None, 80, 80 * PAGE, "")}, rows
    places = sql_all(store, "SELECT x.file, f.value AS host FROM fsyncs x JOIN text s ON s.value = x.file JOIN place_row w ON w.seen = s.id AND w.process = x.process_id JOIN text f ON f.id = w.file"
                            f" WHERE x.file = '{folder}/own/made' GROUP BY 1, 2")
    assert {r["host"] for r in places} == set(names.values())
