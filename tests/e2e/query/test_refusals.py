# SPDX-License-Identifier: Apache-2.0
"""What goes wrong is made to go wrong: the exit code, what is said, and that nothing stored is hurt."""
import json
import os
import shutil
import sqlite3
import subprocess
import time

import pytest

from conftest import BIN, need, need_root, segments, sql_all
from sonded import until

CPU = os.path.join(BIN, "sonde-cpu")


def run(*args, prefix=(), timeout=60):
    return subprocess.run([*prefix, *map(str, args)], capture_output=True, text=True, stdin=subprocess.DEVNULL,
                          timeout=timeout)


def assert_said(done, code, *words, fix=True):
    assert done.returncode == code, f"exit {done.returncode}\n{done.stdout}\n{done.stderr}"
    for word in words:
        assert word in done.stderr, done.stderr
    if fix:
        assert "fix:" in done.stderr or "try:" in done.stderr or "did you mean" in done.stderr, done.stderr
    assert "libbpf:" not in done.stderr


@pytest.fixture
def small_disk(scratch):
    """A file system of 4 MB for the store."""
    need_root()
    path = os.path.join(scratch, "disk")
    os.mkdir(path)
    done = run("mount", "-t", "tmpfs", "-o", "size=4m", "none", path)
    if done.returncode:
        pytest.skip("missing: the right to mount a tmpfs")
    yield path
    run("umount", "-l", path)


def fill(path):
    """All that is left on the disk, but for one page."""
    with open(os.path.join(path, "ballast"), "wb", buffering=0) as f:
        try:
            while True:
                f.write(b"x" * 4096)
        except OSError:
            pass


def assert_whole(store):
    for path in segments(store):
        with sqlite3.connect(f"file:{path}?mode=ro", uri=True) as db:
            assert db.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
        db.close()


@pytest.mark.parametrize("words, fix", [(["cpu"], "record --families cpu\n"), (["cpu", "offcpu"], "record --families cpu,offcpu\n"),
                                        (["cpu", "web"], "record -- cpu ...")])
def test_families_without_their_option_are_told_it(words, fix):
    assert_said(run(f"{BIN}/sonde", "record", *words), 2, fix)


def test_a_full_disk_is_said_at_the_start(small_disk):
    fill(small_disk)
    done = run(CPU, "--duration", "2s", "--store", f"{small_disk}/store")
    assert_said(done, 6)
    done = run(os.path.join(BIN, "sonde"), "record", "-d", "2s", "--store", f"{small_disk}/store")
    assert_said(done, 6)


@pytest.mark.long
def test_a_disk_that_fills_hurts_nothing_and_what_was_lost_is_counted(small_disk, capture, work):
    store = f"{small_disk}/store"
    load = work("burn", 3600000, 2)
    c = capture("--freq", 997, store=store)

    def stored_more_than(n):
        return until(lambda: (got := sum(r["n"] or 0 for r in sql_all(store, "SELECT sum(samples) AS n FROM cpu_samples"))) > n
                     and got)
    before = stored_more_than(0)
    fill(small_disk)
    # the log may have room of its own for a while: it is written over from its beginning once it was folded in
    assert until(lambda: c.pump(0.1) and (c.last("progress") or {}).get("store_error"), 90), c.said()
    time.sleep(2)  # more of what cannot be stored
    os.unlink(f"{small_disk}/ballast")
    assert stored_more_than(before)
    c.child.send_signal(2)
    done = c.wait(30)
    load.close()
    assert c.rc in (0, 6), c.said()
    assert_whole(store)
    seen = done["seen"]
    if c.rc == 6:  # a busy machine did not take the last batches in time: the next writer counts them, as it was said
        seen += capture("--duration", "1s", store=store).wait()["seen"]
    stored = sum(r["n"] for r in sql_all(store, "SELECT sum(samples) AS n FROM cpu_samples"))
    lost = sum(r["n"] or 0 for r in sql_all(store, "SELECT sum(lost) AS n FROM loss"))
    assert stored > before > 0
    assert stored + lost == seen


def test_a_newer_schema_is_refused(sonde, capture, work, store):
    load = work("burn", 1000)
    capture("--duration", "1s").wait()
    load.close()
    for path in segments(store):
        with sqlite3.connect(path) as db:
            db.execute("UPDATE meta SET value = 999 WHERE key = 'schema_version'")
        db.close()
    assert_said(sonde("stacks", store=store), 6, "schema")
    assert_said(run(CPU, "--duration", "1s", "--store", store), 6, "schema")


def test_a_damaged_file_is_set_aside_and_the_capture_goes_on(capture, work, store):
    load = work("burn", 6000)
    capture("--duration", "1s").wait()
    path = segments(store)[0]
    with open(path, "r+b") as f:
        f.seek(0)
        f.write(os.urandom(8192))
    damaged = open(path, "rb").read()
    done = capture("--duration", "1s").wait()
    load.close()
    assert done["samples"] > 0
    aside = [f for f in os.listdir(store) if ".bad" in f and f.startswith(os.path.basename(path)[:-3])]
    assert aside and open(os.path.join(store, aside[0]), "rb").read() == damaged
    assert_whole(store)


def test_no_such_container_process_or_verb(sonde, capture, work, store):
    need_root()
    assert_said(run(CPU, "--container", "no-such-thing", "--duration", "1s", "--store", store), 2, "no-such-thing")
    assert_said(sonde("record", "--container", "no-such-thing", "-d", "1s", store=store), 2, "no-such-thing")
    assert_said(run(CPU, "--pid", "4194303", "--duration", "1s", "--store", store), 2, "4194303", fix=False)
    assert_said(sonde("flmae", store=store), 2, "flame")


def test_an_empty_range_is_no_empty_graph(sonde, capture, work, store, scratch):
    need_root()
    load = work("burn", 1000)
    capture("--duration", "1s").wait()
    load.close()
    target = os.path.join(scratch, "x.html")
    for args in (["stacks"], ["flame", "-o", target], ["export", "folded", "-o", target]):
        done = sonde(*args, "--from", "2001-01-01", "--to", "2001-01-02", store=store)
        assert_said(done, 4, "2001")
    assert not os.path.exists(target)
    assert_said(sonde("stacks", store=os.path.join(scratch, "nowhere")), 6)


def test_without_rights_it_says_which(store):
    need_root()
    need("setpriv")
    drop = ["setpriv", "--bounding-set=-all", "--inh-caps=-all", "--ambient-caps=-all"]
    assert_said(run(CPU, "--duration", "1s", "--store", store, prefix=drop), 5, "CAP_BPF")
    nobody = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"]
    assert_said(run(CPU, "--duration", "1s", "--store", store, prefix=nobody), 5, "CAP_BPF")
    done = run(os.path.join(BIN, "sonde"), "doctor", prefix=nobody)
    assert done.returncode == 1 and "fix" in done.stdout + done.stderr


def test_without_btf_it_says_so(scratch, store):
    need_root()
    empty = os.path.join(scratch, "empty")
    os.mkdir(empty)
    mask = ["unshare", "-m", "--propagation", "private", "sh", "-c",
            f'mount --bind {empty} /sys/kernel/btf && exec "$@"', "sh"]
    assert_said(run(CPU, "--duration", "1s", "--store", store, prefix=mask), 3, "BTF")


def test_without_its_helpers_the_tool_still_answers(capture, work, store, scratch):
    load = work("burn", 1000)
    capture("--duration", "1s").wait()
    load.close()
    alone = os.path.join(scratch, "sonde")
    shutil.copy(os.path.join(BIN, "sonde"), alone)
    assert run(alone, "stacks", "--store", store).returncode == 0
    done = run(alone, "record", "-d", "1s", "--store", store)
    assert done.returncode not in (0, 4) and "sonde-cpu" in done.stderr


@pytest.mark.long
def test_a_host_that_lacks_things_is_told_once_and_works(sonde, store):
    """No /proc/modules, no kprobes, a PID 1 that shows nothing: what is missing stands in doctor, a capture runs."""
    need_root()
    done = sonde("doctor", "--json", store=store)
    assert done.returncode == 0, done.stdout + done.stderr
    names = json.dumps(json.loads(done.stdout))
    assert "BTF" in names
    done = sonde("record", "-d", "2s", "--json", store=store, check=True)
    assert "modules" not in done.stderr and "kprobe" not in done.stderr


@pytest.mark.parametrize("program", ["sonde-cpu", "sonde-offcpu", "sonde-goheap"])
def test_a_boot_clock_that_is_not_the_kernels_is_refused(store, program):
    """What began before the capture would be told as a wait of hours."""
    need_root()
    prefix = ["unshare", "-T", "--boottime", "10000"]
    if run("true", prefix=prefix).returncode:
        pytest.skip("missing: time namespaces (CONFIG_TIME_NS)")
    done = run(os.path.join(BIN, program), "--store", store, "--duration", "1s", prefix=prefix)
    assert_said(done, 3, "boot clock is 10000 s from the kernel's", "nsenter --time=/proc/1/ns/time")
