# SPDX-License-Identifier: Apache-2.0
"""Family disk on a loop device that nobody else uses: what it stores equals /proc/diskstats and what the test did; fio measures the same times."""
import contextlib
import errno
import fcntl
import json
import math
import mmap
import os
import re
import subprocess
import tempfile
import time

import pytest

import loops
from conftest import need, need_root, sql_all

PAGE = 4096
SIZE = 64 << 20


@pytest.fixture
def loop():
    """(path, file) of a loop device over a file of SIZE bytes."""
    with loops.device(SIZE) as made:
        yield made


def stored(store, disk, more=""):
    """The same, as it was recorded."""
    rows = sql_all(store, f"SELECT op, sum(requests) AS n, sum(bytes) AS bytes, sum(errors) AS errors FROM block_stats WHERE disk = ? {more} GROUP BY op",
                   (os.path.basename(disk),))
    ops = {op: [sum(r[k] for r in rows if r["op"] == op) for k in ("n", "bytes", "errors")] for op in ("read", "write")}
    return (ops["read"][0], ops["read"][1], ops["write"][0], ops["write"][1]), ops["read"][2]


def direct(path):
    page = mmap.mmap(-1, PAGE)
    page.write(b"x" * PAGE)
    return os.open(path, os.O_RDWR | os.O_DIRECT), page


def test_requests_bytes_and_errors_are_those_of_diskstats_and_of_who_asked(capture, store, loop):
    path, file = loop
    fd, page = direct(path)
    cap = capture(program="sonde-disk")
    before = loops.counted(path)
    for i in range(300):
        os.pwrite(fd, page, i * PAGE)
    for i in range(200):
        os.preadv(fd, [page], i * PAGE)
    synced = os.open(path, os.O_WRONLY | os.O_DIRECT | os.O_DSYNC)
    for i in range(20):  # with a flush behind each, which is a step of the same request
        os.pwrite(synced, page, i * PAGE)
    os.close(synced)
    os.truncate(file, 100 * PAGE)
    failed = 0
    for i in range(90, 120):
        try:
            os.preadv(fd, [page], i * PAGE)
        except OSError as e:
            assert e.errno == errno.EIO
            failed += 1
    after = loops.counted(path)
    cap.stop()
    os.close(fd)
    want = tuple(b - a for a, b in zip(before, after))
    got, errors = stored(store, path)
    hist = "below_8us" + "".join(f", us_{8 << i}" for i in range(21))
    rows = sql_all(store, f"SELECT disk, requests, {hist} FROM block_stats")
    timed = {d: sum(r[k] or 0 for r in rows if r["disk"] == d for k in r if k not in ("disk", "requests")) for d in {r["disk"] for r in rows}}
    counted = {d: sum(r["requests"] for r in rows if r["disk"] == d) for d in timed}
    assert all(timed[d] <= counted[d] for d in timed)
    untold = counted[os.path.basename(path)] - timed[os.path.basename(path)]  # docs/decisions/0282: without times, and whether they failed is not known
    assert got == want and failed > 0 and failed - untold <= errors <= failed
    assert stored(store, path, f"AND pid = {os.getpid()}") == (want, errors)  # this process asked for all of it
    under = {r["disk"]: r["under"] for r in sql_all(store, "SELECT disk, under FROM block_devices")}
    host = os.path.basename(os.path.realpath(f"/sys/dev/block/{os.major(os.stat('/var/tmp').st_dev)}:{os.minor(os.stat('/var/tmp').st_dev)}"))
    assert under[os.path.basename(path)] in ("", host) and (under[os.path.basename(path)] or not os.path.exists(f"/sys/block/{host}"))


def test_calls_that_wait_for_a_disk_and_opens_that_fail_are_counted(capture, store):
    """Of this process alone: rows with a name are limited, and others may fail to open more files."""
    own = os.path.join(os.path.dirname(store), "own")
    cap = capture("--pid", os.getpid(), program="sonde-disk")
    with open(own, "wb") as f:
        for _ in range(5):
            f.write(b"y" * PAGE)
            f.flush()
            os.fsync(f.fileno())
        os.fdatasync(f.fileno())
    for _ in range(7):
        with contextlib.suppress(FileNotFoundError):
            open(own + ".none", "rb")
    lost = cap.stop()["lost_total"]  # the kernel runs no program at a tracepoint that is hit within another program, and counts that
    syncs = sql_all(store, f"SELECT call, sum(calls) AS n, sum(us) AS us FROM fsyncs WHERE file = '{own}' AND pid = {os.getpid()} GROUP BY call")
    calls = {r["call"]: r["n"] for r in syncs}
    assert 6 - lost <= sum(calls.values()) and calls.get("fsync", 0) <= 5 and calls.get("fdatasync", 0) <= 1, (calls, lost)
    opens = sql_all(store, f"SELECT error, sum(opens) AS n FROM failed_opens WHERE path = '{own}.none' GROUP BY error")
    assert 7 - lost <= sum(r["n"] for r in opens) <= 7 and {r["error"] for r in opens} <= {"ENOENT"}, (opens, lost)


def read_so_far():
    with open("/proc/self/io", encoding="ascii") as f:
        return int(dict(line.split(": ") for line in f)["read_bytes"])


@contextlib.contextmanager
def held_back(path, reads):
    """A command that begins another in a cgroup whose reads of the disk of `path` are held back to so many a second."""
    where = "/sys/fs/cgroup/blkio" if os.path.isdir("/sys/fs/cgroup/blkio") else "/sys/fs/cgroup"
    group, device = f"{where}/sonde-test-{os.getpid()}", os.stat(path).st_dev
    if not os.path.exists(f"/sys/dev/block/{os.major(device)}:{os.minor(device)}"):
        pytest.skip(f"{path} is not on a file system of a disk's own")
    disk = os.path.realpath(f"/sys/dev/block/{os.major(device)}:{os.minor(device)}")
    whole = disk if os.path.exists(f"{disk}/queue") else os.path.dirname(disk)
    with open(f"{whole}/dev", encoding="ascii") as f:
        number = f.read().strip()
    try:
        os.mkdir(group)
    except OSError as e:
        pytest.skip(f"{group}: {e.strerror}")
    try:
        for name, text in (("blkio.throttle.read_iops_device", f"{number} {reads}"), ("io.max", f"{number} riops={reads}")):
            if os.path.exists(f"{group}/{name}"):
                with open(f"{group}/{name}", "w", encoding="ascii") as f:
                    f.write(text)
                break
        else:
            pytest.skip("no cgroup of this host limits requests of disks")
        yield ["sh", "-c", f'echo $$ >{group}/cgroup.procs && exec "$@"', "sh"]
    finally:
        os.rmdir(group)


def test_a_slow_request_has_the_kernel_stack_of_who_waits_for_it(sonde, capture, store, loop):
    """The loop device reads its file directly from the disk, held back to two reads a second: the slowest requests have rows, and others' may be slow, too."""
    need_root()
    with open("/proc/kallsyms", encoding="ascii") as f:
        if not re.search(r" bpf_task_from_pid\n", f.read()):
            pytest.skip("bpf_task_from_pid is missing: kernel 6.2")
    path, file = loop
    with open(path, "rb") as device:
        fcntl.ioctl(device, loops.SET_DIRECT_IO, 1)
    with open(file, "r+b") as f:
        f.write(b"x" * (4 << 20))
        os.fsync(f.fileno())
    with held_back(file, 2) as begin:
        cap = capture(program="sonde-disk")
        subprocess.run([*begin, "dd", f"if={path}", "of=/dev/null", "bs=4096", "count=4", "skip=1", "iflag=direct"], check=True, capture_output=True)
        cap.stop()
    rows = [r for r in json.loads(sonde("disk", "--slow", "--json", store=store, check=True).stdout)["rows"] if r["disk"] == os.path.basename(path) and r["us"] >= 100000]
    assert rows and {(r["comm"], r["op"], r["bytes"]) for r in rows} == {("dd", "read", 4096)}
    assert all(any("direct_IO" in f for f in r["stack"]) and "vfs_read" in r["stack"] and "schedule" not in r["stack"] for r in rows), rows


def test_files_have_the_bytes_that_they_were_written_read_and_grown_by(capture, store):
    """Through the page cache of the file system at /var/tmp, which must be one on a disk."""
    need_root()
    device = os.stat("/var/tmp").st_dev
    if not os.path.exists(f"/sys/dev/block/{os.major(device)}:{os.minor(device)}"):
        pytest.skip("/var/tmp is not on a file system of a disk's own")
    with tempfile.TemporaryDirectory(dir="/var/tmp", prefix="sonde-files-") as folder:
        path, gone = os.path.join(folder, "a" * 64, "written"), os.path.join(folder, "gone")
        os.mkdir(os.path.dirname(path))
        cap = capture("--pid", os.getpid(), program="sonde-disk")
        with open(path, "wb") as f:
            f.write(os.urandom(16 << 20))
            f.flush()
            os.fsync(f.fileno())
            took = os.fstat(f.fileno()).st_blocks * 512
            os.posix_fadvise(f.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
        before = read_so_far()
        with open(path, "rb") as f:
            while f.read(1 << 20):
                pass
        read = read_so_far() - before
        held = open(gone, "wb")
        held.write(b"z" * (3 << 20))
        held.flush()
        os.fsync(held.fileno())
        os.unlink(gone)
        cap.stop()
        holds = os.fstat(held.fileno()).st_blocks * 512
        held.close()
    mine = f"FROM disk_files WHERE file = '{path}' AND pid = {os.getpid()}"
    (row,) = sql_all(store, f"SELECT sum(read_bytes) AS got, sum(write_bytes) AS put, sum(dirty_bytes) AS dirty, sum(grown_bytes) AS grown {mine}")
    assert 0 < row["got"] <= read and row["got"] > read - (1 << 20)  # besides, pages of python itself may have been read
    assert row["grown"] == took and row["dirty"] >= 16 << 20  # the kernel may write a page in between, that is changed then again
    assert (row["put"] or 0) <= row["dirty"]  # what the kernel's own threads wrote is not in this capture
    rows = sql_all(store, f"SELECT file, bytes, holders FROM held_files WHERE pid = {os.getpid()} AND file = '{gone}'")
    assert [(r["bytes"], r["holders"]) for r in rows] == [(holds, 1)]
    for op in ("read", "write"):  # no byte is twice or missing: all files of a disk are its requests
        files = {r["disk"]: r["n"] for r in sql_all(store, f"SELECT disk, sum({op}_bytes) AS n FROM disk_files WHERE disk <> '' GROUP BY disk")}
        blocks = {r["disk"]: r["n"] for r in sql_all(store, f"SELECT disk, sum(bytes) AS n FROM block_stats WHERE op = '{op}' GROUP BY disk")}
        assert {d: n for d, n in files.items() if n} == {d: n for d, n in blocks.items() if n}


def test_a_narrow_capture_has_only_what_was_asked_for(capture, store, loop):
    fd, page = direct(loop[0])
    other = subprocess.Popen(["sleep", "60"])
    try:
        cap = capture("--pid", other.pid, program="sonde-disk")
        for i in range(50):
            os.pwrite(fd, page, i * PAGE)
        cap.stop()
    finally:
        os.close(fd)
        other.kill()
        other.wait()
    assert sql_all(store, "SELECT * FROM block_row") == [] and sql_all(store, "SELECT * FROM slow_row") == []


def test_check_says_what_this_kernel_allows(sonde):
    need_root()
    from conftest import BIN
    items = json.loads(subprocess.run([os.path.join(BIN, "sonde-disk"), "--check", "--json"], capture_output=True, text=True, check=True).stdout)
    assert items["family"] == "disk" and "who asks" in {i["name"] for i in items["items"]}


def step(us):
    return max(2, int(math.log2(max(us, 1))))


def quantile_step(hist, q):
    """The step (a power of two) of the value below which a share q lies."""
    want, below = q * sum(h["n"] for h in hist), 0
    for h in hist:
        below += h["n"]
        if below >= want:
            return step(h["us"] or 4)
    raise AssertionError(hist)


@pytest.mark.long
@pytest.mark.parametrize("kind", ["ext4", "xfs", "btrfs"])
def test_each_file_system_has_its_files_once(capture, store, loop, kind):
    """What was written, read through the cache, mapped and directly, by the file's path; all files of the disk together are its requests."""
    path, back = loop
    os.truncate(back, 512 << 20)  # xfs takes no less than 300 MB
    with open(path, "rb") as device:
        fcntl.ioctl(device, loops.SET_CAPACITY)
    with loops.mounted(path, kind, "relatime") as where:
        file = f"{where}/folder/data"
        os.mkdir(os.path.dirname(file))
        cap = capture("--bucket", "1s", program="sonde-disk")
        before = loops.counted(path)
        with open(file, "wb") as f:
            f.write(os.urandom(8 << 20))
            os.fsync(f.fileno())
            os.posix_fadvise(f.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
        with open(file, "rb") as f:
            f.read(1 << 20)
            mapped = mmap.mmap(f.fileno(), 8 << 20, prot=mmap.PROT_READ)
            sum(mapped[i] for i in range(4 << 20, 6 << 20, PAGE))
            mapped.close()
        fd, page = os.open(file, os.O_RDONLY | os.O_DIRECT), mmap.mmap(-1, 1 << 20)
        os.preadv(fd, [page], 7 << 20)
        os.close(fd)
        os.sync()
        time.sleep(1)
        after = loops.counted(path)
        cap.stop()
    disk = os.path.basename(path)
    got = stored(store, path)[0]
    (zero,) = sql_all(store, f"SELECT coalesce(sum(requests), 0) AS n, coalesce(sum(bytes), 0) AS bytes FROM block_stats WHERE disk = '{disk}' AND op = 'zero'")
    assert (*got[:2], got[2] + zero["n"], got[3] + zero["bytes"]) == tuple(b - a for a, b in zip(before, after))  # the kernel counts both as writes
    rows = {r["file"]: r for r in sql_all(store, f"SELECT file, sum(read_bytes) AS got, sum(write_bytes) AS put FROM disk_files WHERE disk = '{disk}' GROUP BY file")}
    assert rows[file]["put"] == 8 << 20 and (3 << 20) <= rows[file]["got"] + ((1 << 20) if kind == "btrfs" else 0) <= (10 << 20), rows
    assert [sum(r[key] or 0 for r in rows.values()) for key in ("got", "put")] == [got[1], got[3]]


@pytest.mark.long
@pytest.mark.parametrize("how", ["randread", "randwrite"])
def test_quantiles_are_those_of_fio(sonde, capture, store, loop, how):
    """fio measures from its call to its return, the device's time and some microseconds: a step up at most."""
    need("fio", "/usr/bin/fio")
    path, _ = loop
    cap = capture(program="sonde-disk")
    before = loops.counted(path)
    said = subprocess.run(["fio", "--name=t", f"--filename={path}", f"--rw={how}", "--bs=16k", "--direct=1", "--ioengine=psync", f"--size={SIZE}", "--norandommap=0",
                           "--lat_percentiles=1", "--percentile_list=50:99", "--output-format=json", "--loops=2"], capture_output=True, text=True, check=True, timeout=100)
    after = loops.counted(path)
    cap.stop()
    kind = "read" if how == "randread" else "write"
    fio = json.loads(re.search(r"\{.*\}", said.stdout, re.S)[0])["jobs"][0][kind]
    got, _ = stored(store, path)
    assert got == tuple(b - a for a, b in zip(before, after))
    assert stored(store, path, "AND comm = 'fio'")[0][0 if kind == "read" else 2] == fio["total_ios"] == 2 * SIZE // 16384
    disk, = [d for d in json.loads(sonde("disk", "--json", store=store, check=True).stdout)["rows"] if d["disk"] == os.path.basename(path)]
    for share, key in ((0.5, "50.000000"), (0.99, "99.000000")):
        assert abs(quantile_step(disk[f"{kind}_hist"], share) - step(fio["lat_ns"]["percentile"][key] / 1000)) <= 1
    assert disk["under"] and disk["busy_us"] > 0


def waited_ms(path):
    """How long requests were at hand so far, each for itself."""
    with open("/proc/diskstats", encoding="ascii") as f:
        return next(int(words[13]) for words in map(str.split, f) if words[2] == os.path.basename(path))


@pytest.mark.long
def test_hardly_a_request_is_lost_under_load(sonde, capture, store, loop):
    """Four processes, while sums are read and taken out each second."""
    need("fio", "/usr/bin/fio")
    path, _ = loop
    cap = capture(program="sonde-disk")
    before, waited = loops.counted(path), waited_ms(path)
    subprocess.run(["fio", "--name=t", f"--filename={path}", "--rw=randrw", "--bs=4k", "--direct=1", "--ioengine=libaio", "--iodepth=8", f"--size={SIZE}", "--numjobs=4",
                    "--time_based", "--runtime=8", "--output-format=terse"], capture_output=True, check=True, timeout=100)
    time.sleep(0.2)
    after, waited = loops.counted(path), waited_ms(path) - waited
    cap.stop()
    want = tuple(b - a for a, b in zip(before, after))
    got = stored(store, path)[0]
    answer = json.loads(sonde("disk", "--json", store=store, check=True).stdout)
    disk, = [d for d in answer["rows"] if d["disk"] == os.path.basename(path)]
    assert disk["depth"] * answer["seconds"] * 1000 == pytest.approx(waited, rel=0.03)
    # docs/decisions/0282: what the kernel did not report is counted by the next request of the same address; the last ones have none
    assert want[0] > 1000 and all(0 <= b - a <= b / 1000 for a, b in zip(got, want)), (got, want)
    assert sql_all(store, "SELECT sum(lost) AS n FROM loss")[0]["n"] in (None, 0)
