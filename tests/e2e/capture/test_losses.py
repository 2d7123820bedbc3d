# SPDX-License-Identifier: Apache-2.0
"""A store that fails, moves or goes away under a recording, and a loader that is stopped: what is stored and what is told as lost are all
that was seen, and what can be kept is kept."""
import os
import re
import shutil
import signal
import subprocess
import time

import pytest
from conftest import BIN, WORKLOADS, comm_of, need, need_root, sql_all
from sonded import until

pytestmark = pytest.mark.long


@pytest.fixture(autouse=True)
def rights():
    need_root()


@pytest.fixture
def burn():
    work = subprocess.Popen([os.path.join(WORKLOADS, "burn"), "120000", "1"], stdout=subprocess.DEVNULL)
    yield work
    work.kill()
    work.wait()


@pytest.fixture
def disk(scratch):
    """An ext4 that turns read-only at its first error: its folder, its image, and what makes that error."""
    need("mkfs.ext4")
    image, at = os.path.join(scratch, "image"), os.path.join(scratch, "disk")
    os.mkdir(at)
    with open(image, "wb") as f:
        f.truncate(64 << 20)
    subprocess.run(["mkfs.ext4", "-q", image], check=True)
    if subprocess.run(["mount", "-o", "loop,errors=remount-ro", image, at], check=False).returncode:
        pytest.skip("missing: the right to mount a loop device")
    device = subprocess.run(["findmnt", "-n", "-o", "SOURCE", at], stdout=subprocess.PIPE, text=True, check=True).stdout.strip()
    error = f"/sys/fs/ext4/{os.path.basename(device)}/trigger_fs_error"
    yield at, image, error
    subprocess.run(["umount", "-l", at], check=False)


def record(store, work, seconds):
    return subprocess.Popen([f"{BIN}/sonde", "record", "-p", str(work.pid), "-F", "99", "-d", f"{seconds}s", "--store", store], stderr=subprocess.PIPE,
                            text=True)


def samples(store):
    return sum(r["n"] or 0 for r in sql_all(store, "SELECT sum(samples) AS n FROM cpu_samples"))


def test_a_disk_that_turns_read_only_fails_the_recording_and_the_loss_is_told(disk, burn):
    at, image, error = disk
    need("ext4's trigger_fs_error", error)
    store = os.path.join(at, "store")
    rec = record(store, burn, 16)
    assert until(lambda: os.path.exists(store), 20)
    time.sleep(6)
    with open(error, "w", encoding="ascii") as f:
        f.write("1")
    said = rec.communicate(timeout=120)[1]
    assert rec.returncode == 6 and "Read-only file system" in said and "fix:" in said, said
    stored, lost = (int(n) for n in re.search(r"^stored: (\d+); lost: (\d+)", said, re.M).groups())
    unsure = int((re.search(r"of the stored ones (\d+) may be missing", said) or [0, 0])[1])
    assert re.search(r"takes nothing \(Read-only file system\): \d+ wait", said), said
    subprocess.run(["umount", at], check=True)
    subprocess.run(["mount", "-o", "loop", image, at], check=True)
    kept = 0
    try:
        kept = samples(store)
    except Exception:  # pylint: disable=broad-except  # its tables may be missing, too
        pass
    assert lost > 100 and stored - unsure <= kept <= stored, (kept, said)


def test_a_folder_that_is_renamed_is_followed_to_the_last_sample(scratch, burn):
    store, moved = os.path.join(scratch, "store"), os.path.join(scratch, "moved")
    rec = record(store, burn, 10)
    assert until(lambda: os.path.exists(store), 20)
    time.sleep(4)
    os.rename(store, moved)
    said = rec.communicate(timeout=120)[1]
    assert rec.returncode in (0, 4) and f"is now {moved}" in said, said
    times = [r["ts"] for r in sql_all(moved, "SELECT DISTINCT ts FROM cpu_samples ORDER BY 1")]
    assert times[-1] - times[0] >= 8 and not sql_all(moved, "SELECT * FROM loss"), (times, said)


def test_a_folder_that_is_removed_is_made_again(scratch, burn):
    store = os.path.join(scratch, "store")
    rec = record(store, burn, 10)
    assert until(lambda: os.path.exists(store), 20)
    time.sleep(4)
    shutil.rmtree(store)
    said = rec.communicate(timeout=120)[1]
    assert rec.returncode == 0 and "was removed with what it held" in said, said
    assert samples(store) > 20, said


def indexes(store):
    return {name for name in os.listdir(os.path.join(store, "images")) if name[0] != "." and name != "by-stat"}


def fresh_program(scratch, name):
    """A program whose index nobody has: a copy of burn with other bytes behind it."""
    path = os.path.join(scratch, name)
    shutil.copy(os.path.join(WORKLOADS, "burn"), path)
    with open(path, "ab") as f:
        f.write(os.urandom(64))
    return subprocess.Popen([path, "8000", "1"], stdout=subprocess.DEVNULL)


@pytest.mark.parametrize("how", ["renamed", "removed"])
def test_indexes_are_kept_where_the_store_is(scratch, how):
    store, moved = os.path.join(scratch, "store"), os.path.join(scratch, "moved")
    rec = subprocess.Popen([f"{BIN}/sonde", "record", "-F", "99", "-d", "16s", "--families", "cpu", "--store", store], stderr=subprocess.PIPE, text=True)
    assert until(lambda: os.path.exists(os.path.join(store, "images")) and indexes(store), 20)
    time.sleep(2)
    if how == "renamed":
        os.rename(store, moved)
    else:
        shutil.rmtree(store)
    time.sleep(5)
    now = moved if how == "renamed" else store
    before = indexes(now) if os.path.exists(os.path.join(now, "images")) else set()
    work = fresh_program(scratch, "fresh")
    said = rec.communicate(timeout=120)[1]
    work.kill()
    work.wait()
    assert indexes(now) - before, (sorted(before), said)
    assert how == "removed" or not os.path.exists(store), said
    assert sql_all(now, "SELECT 1 FROM cpu_samples c JOIN stacks s ON s.id = c.stack_id WHERE c.comm = 'fresh' AND s.folded LIKE '%burn%' LIMIT 1"), said


def test_a_loader_that_a_signal_stops_goes_on_and_nothing_is_lost_untold(scratch, burn):
    """The watchdog of sonded resumes it after 20 s: what its programs counted meanwhile is in its ring, or told as lost."""
    store = os.path.join(scratch, "store")
    daemon = subprocess.Popen([f"{BIN}/sonded", "--store", store, "--families", "cpu", "--cpu", "0"], stderr=subprocess.PIPE, text=True)
    try:
        assert until(lambda: os.path.exists(store) and sql_all(store, "SELECT 1 FROM sample LIMIT 1"), 90)
        with open(f"/proc/{daemon.pid}/task/{daemon.pid}/children", encoding="ascii") as f:
            loader = next(int(p) for p in f.read().split() if comm_of(p) == "sonde-cpu")
        os.kill(loader, signal.SIGSTOP)
        time.sleep(45)  # twice the watchdog's time
        assert os.path.exists(f"/proc/{loader}"), "it was killed"
    finally:
        daemon.send_signal(signal.SIGTERM)
        said = daemon.communicate(timeout=360)[1]
    assert "SIGCONT" in said, said
    runs = sql_all(store, "SELECT id, (to_ns - from_ns) / 1e9 AS s, accounted FROM run")
    lost = sum(r["n"] or 0 for r in sql_all(store, "SELECT sum(lost) AS n FROM loss"))
    all_ = sum(r["n"] or 0 for r in sql_all(store, "SELECT sum(samples) AS n FROM cpu_samples"))
    assert len(runs) == 1 and runs[0]["s"] > 40 and runs[0]["accounted"] == all_ + lost, (runs, all_, lost)
