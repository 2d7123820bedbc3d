# SPDX-License-Identifier: Apache-2.0
"""Containers that log into systemd's journal: a real journald writes it, and journalctl is who it is compared with."""
import json
import os
import secrets
import shutil
import subprocess

import pytest

from conftest import BIN, need, need_root, sql_all
from containers import engine
from journal import journal
from sonded import until
from test_events import contained, lines_of, of
from test_host import first_row


def entry(container_id, text, priority=6, **more):
    return {"MESSAGE": text, "PRIORITY": priority, "CONTAINER_ID_FULL": container_id, **more}


def written(container_id):
    """Entries, and the lines that are to be told of them."""
    long, half = "x" * 3000, "y" * 9000
    last = [entry(container_id, "db postgres://app:hunter2@db/x"), entry(container_id, long), entry(container_id, half, CONTAINER_PARTIAL_MESSAGE="true"),
            entry(container_id, "and from the other stream", 3), entry(container_id, "y"), entry(container_id, "no such table", 3)]
    told = [("db postgres://app:***@db/x", 0), ("x" * 500, 1), ("and from the other stream", 0), ("y" * 500, 1), ("no such table", 0)]
    return last, told


def run_to_its_end(j, container_id, prefix, cap_store, entries):
    p = subprocess.Popen([*prefix, "sh", "-c", "read x; exit 3"], stdin=subprocess.PIPE)
    j.send(*entries)
    assert j.has("no such table", f"CONTAINER_ID_FULL={container_id}")
    p.communicate(b"\n")
    assert until(lambda: of(cap_store, container_id, "stopped"), 20)


FORMS = {"as it is": {}, "not compact": {"SYSTEMD_JOURNAL_COMPACT": "0"}, "lookup3": {"SYSTEMD_JOURNAL_KEYED_HASH": "0"}}


@pytest.mark.parametrize("form", [pytest.param(k, marks=[pytest.mark.long] if k != "as it is" else []) for k in FORMS])
def test_a_container_that_logs_to_the_journal_leaves_its_last_lines(capture, store, scratch, form):
    """Some of them in a file that was rotated away; and what somebody else writes in its name is not its own."""
    with journal(scratch, empty=["/var/log/journal"], **FORMS[form]) as j, contained() as (container_id, prefix, _):
        last, told = written(container_id)
        cap = capture("--log-lines", "on", program="sonde-host", prefix=j.prefix)
        assert until(lambda: first_row(store), 20)
        j.send(*(entry(container_id, f"line {i}") for i in range(100)), *(entry(secrets.token_hex(32), f"other {i}") for i in range(50)))
        assert j.has("line 99", f"CONTAINER_ID_FULL={container_id}")
        j.rotate()
        j.send(entry(container_id, "the lie of another user"), uid=65534)
        run_to_its_end(j, container_id, prefix, store, last)
        assert "the lie of another user" in j.ask("-o", "cat", f"CONTAINER_ID_FULL={container_id}")
        cap.stop()
    lines = lines_of(store, container_id)
    (stopped,) = of(store, container_id, "stopped")
    assert {r["at_ns"] for r in lines} == {stopped["at_ns"]}
    assert [(r["line"], r["cut"]) for r in lines] == [(f"line {i}", 0) for i in range(85, 100)] + told


@pytest.mark.long
def test_without_a_journal_there_are_no_lines_and_doctor_says_so(capture, store, scratch):
    with journal(scratch, empty=["/var/log/journal"]) as j, contained() as (container_id, prefix, _):
        check = [*j.prefix, os.path.join(BIN, "sonde-host"), "--check", "--json"]

        def item():
            return next(i for i in json.loads(subprocess.run(check, capture_output=True, text=True, check=False).stdout)["items"] if i["name"] == "journal")
        assert item()["state"] == "ok" and "/run/log/journal" in item()["text"]
        shutil.rmtree(j.folder)
        told = item()
        assert told["state"] == "off" or "/proc/1/root" in told["text"], told  # this host itself may have one
        cap = capture("--log-lines", "on", program="sonde-host", prefix=j.prefix)
        assert until(lambda: first_row(store), 20)
        subprocess.run([*prefix, "sh", "-c", "exit 3"], check=False)
        assert until(lambda: of(store, container_id, "stopped"), 20)
        cap.stop()
    assert not lines_of(store, container_id)


@pytest.mark.long
def test_a_journal_that_is_damaged_costs_its_lines_alone(capture, store, scratch):
    """Pieces of it are overwritten, and it is cut off: the capture goes on, and what it tells has been written by the container."""
    with journal(scratch, empty=["/var/log/journal"]) as j, contained() as (container_id, prefix, _):
        cap = capture("--log-lines", "on", program="sonde-host", prefix=j.prefix)
        assert until(lambda: first_row(store), 20)
        for i in range(12):
            j.send(*(entry(container_id, f"line {i}") for i in range(100)))
            assert j.has("line 99", f"CONTAINER_ID_FULL={container_id}")
            j.rotate()
        for i, name in enumerate(sorted(n for n in os.listdir(j.folder) if "@" in n)):
            with open(f"{j.folder}/{name}", "r+b") as f:
                f.truncate(os.path.getsize(f.name) * (i + 1) // 13)
                for at in range(300, os.path.getsize(f.name), 977 + 100 * i):
                    f.seek(at)
                    f.write(os.urandom(8))
        subprocess.run([*prefix, "sh", "-c", "exit 3"], check=False)
        assert until(lambda: of(store, container_id, "stopped"), 20)
        cap.stop()
    assert {r["line"] for r in lines_of(store, container_id)} <= {f"line {i}" for i in range(100)}


@pytest.mark.docker
def test_dockers_container_with_the_journald_driver_leaves_its_last_lines(capture, store, scratch):
    need_root()
    need("docker")
    with journal(scratch, empty=["/var/log/journal"]) as j:
        e = engine(prefix=j.prefix)
        try:
            image = e.image()
            cap = capture("--bucket", "1s", "--log-lines", "on", program="sonde-host", prefix=e.prefix)
            assert until(lambda: first_row(store), 30)
            done = e.docker("run", "--name", "web", "--log-driver", "journald", "--network", "none", image, "/bin/sh", "-c",
                            "i=0; while [ $i -lt 40 ]; do echo line $i; i=$((i+1)); done; busybox head -c 40000 /dev/zero | busybox tr '\\0' z; echo; "
                            "echo password=hunter2; sleep 2; echo no such table >&2; exit 7")
            assert done.returncode == 7, done.stderr
            assert until(lambda: sql_all(store, "SELECT 1 FROM event_logs"), 30)
            cap.stop()
        finally:
            e.stop()
    lines = [(r["line"], r["cut"]) for r in sql_all(store, "SELECT line, cut FROM event_logs ORDER BY nth")]
    assert lines == [(f"line {i}", 0) for i in range(23, 40)] + [("z" * 500, 1), ("password=***", 0), ("no such table", 0)]


@pytest.mark.docker
def test_podmans_container_with_the_journald_driver_leaves_its_last_lines(capture, store, scratch):
    need_root()
    for program in ("podman", "runc", "busybox"):
        need(program)
    os.makedirs(f"{scratch}/rootfs/bin")
    shutil.copy(shutil.which("busybox"), f"{scratch}/rootfs/bin/sh")
    name = f"sonde-{secrets.token_hex(4)}"
    with journal(scratch, empty=["/var/log/journal"]) as j:
        def podman(*args):
            return subprocess.run([*j.prefix, "podman", "--runtime", shutil.which("runc"), "--cgroup-manager", "cgroupfs", "--events-backend", "file", *args],
                                  capture_output=True, text=True, timeout=120, check=False, stdin=subprocess.DEVNULL)
        cap = capture("--bucket", "1s", "--log-lines", "on", program="sonde-host", prefix=j.prefix)
        assert until(lambda: first_row(store), 30)
        try:
            done = podman("run", "-d", "--name", name, "--network", "none", "--log-driver", "journald", "--ulimit", "nofile=1024:1024", "--ulimit",
                          "nproc=1000:1000", "--rootfs", f"{scratch}/rootfs", "/bin/sh", "-c", "echo begins; sleep 4; echo no such table >&2; exit 7")
            if done.returncode:
                pytest.skip(f"missing: a Podman that runs here and logs to journald: {done.stderr[-200:]}")
            container_id = done.stdout.strip().splitlines()[-1]
            assert until(lambda: of(store, container_id, "stopped"), 60)
        finally:
            podman("rm", "-f", name)
        cap.stop()
    assert [r["line"] for r in lines_of(store, container_id)] == ["begins", "no such table"]
