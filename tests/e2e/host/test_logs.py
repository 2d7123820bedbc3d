# SPDX-License-Identifier: Apache-2.0
"""Family logs: what programs logged, compared with what the writer knows that it wrote, through every kind of rotation."""
import collections
import glob
import json
import os
import secrets
import sqlite3
import subprocess
import sys
import tempfile
import time

import pytest

from conftest import need, need_root, segments, sql_all
from containers import engine
from journal import journal
from sonded import until
from test_events import contained

SECRET = "correcthorsebatterystaple"
WAIT = 60
JOURNALD = ("kernel", "systemd-journald", "systemd-journald.service")  # what it says of itself


def lines(store, source=None):
    """{level: lines} of one source, or {source: lines}."""
    if not segments(store):
        return {}
    what, where, params = ("level", "WHERE source = ?", (source,)) if source else ("source", "", ())
    try:
        return {r["what"]: r["n"] for r in sql_all(store, f"SELECT {what} AS what, sum(lines) AS n FROM logs {where} GROUP BY 1", params) if r["n"]}
    except sqlite3.OperationalError as e:  # a file that is being made, which takes long on a busy host
        assert "no such table" in str(e), e
        return {}


def patterns(store, source):
    return sql_all(store, "SELECT level, pattern, sum(messages) AS n, max(sample) AS sample FROM log_patterns WHERE source = ? GROUP BY 1, 2 ORDER BY n DESC", (source,))


def messages(store, source, *levels):
    return sum(r["n"] for r in sql_all(store, "SELECT level, sum(messages) AS n FROM logs WHERE source = ? GROUP BY 1", (source,)) if r["level"] in levels)


def reads(store, probe):
    """From now on what is made new is read from its begin: the loader has seen a line."""
    def seen():
        with open(probe, "a", encoding="ascii") as f:
            f.write("INFO probe\n")
        return lines(store, probe)
    assert until(seen, WAIT)


class Writer:
    """Writes lines of all levels into a file that is reopened when somebody says so, and counts them."""

    def __init__(self, path):
        self.path, self.n, self.wrote = path, 0, collections.Counter()
        self.reopen()

    def reopen(self):
        self.file = os.open(self.path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)

    def write(self, count):
        out = []
        for _ in range(count):
            self.n += 1
            kind = self.n % 10
            level, text = ("error", f"ERROR cannot reach 10.0.0.{self.n % 250}: refused, password={SECRET}{self.n}") if not kind else \
                ("warning", f"2026-11-29 18:00:00,123 WARNING slow answer of {self.n} ms") if kind == 1 else \
                ("debug", f"DEBUG job {self.n}") if kind == 2 else ("unknown", f"plain line {self.n}") if kind == 3 else \
                ("info", f'{{"level":"info","msg":"job {self.n} done"}}')
            self.wrote[level] += 1
            out.append(text + "\n")
        os.write(self.file, "".join(out).encode())

    def has_all(self, store):
        assert until(lambda: lines(store, self.path) == dict(self.wrote), WAIT), (lines(store, self.path), self.wrote)


def renamed(path):
    """As logrotate does it: what is there is moved on by one number."""
    for i in range(8, 0, -1):
        if os.path.exists(f"{path}.{i}"):
            os.rename(f"{path}.{i}", f"{path}.{i + 1}")
    os.rename(path, f"{path}.1")


def test_every_line_counts_through_rotations_and_no_secret_is_stored(capture, store, scratch):
    cap = capture("--files", f"{scratch}/*.log", program="sonde-logs")
    reads(store, f"{scratch}/probe.log")
    a, gone = Writer(f"{scratch}/a.log"), Writer(f"{scratch}/gone.log")
    for round_ in range(8):
        a.write(200)
        if round_ % 3 == 0:
            renamed(a.path)
            a.write(50)  # into the file that has another name by now
            os.close(a.file)
            a.reopen()
        if round_ == 5:  # twice at once
            for _ in range(3):
                renamed(a.path)
                os.close(a.file)
                a.reopen()
                a.write(70)
        time.sleep(0.15)
    gone.write(500)
    assert until(lambda: lines(store, gone.path), WAIT)  # it is open by now
    gone.write(500)
    os.unlink(gone.path)
    gone.write(20)
    a.has_all(store)
    gone.has_all(store)
    cap.stop()
    found = patterns(store, a.path)
    assert {(p["level"], p["pattern"]) for p in found} == {("error", "cannot reach * refused password=*"), ("warning", "slow answer of * ms")}
    assert sum(p["n"] for p in found) == messages(store, a.path, "error", "warning", "fatal")
    for path in glob.glob(f"{store}/**/*", recursive=True):
        if os.path.isfile(path):
            with open(path, "rb") as f:
                assert SECRET.encode() not in f.read(), path


def test_a_file_that_is_renamed_to_what_is_a_log_too_is_read_once(capture, store, scratch):
    cap = capture("--files", f"{scratch}/*.log", program="sonde-logs")
    reads(store, f"{scratch}/probe.log")
    a = Writer(f"{scratch}/a.log")
    a.write(300)
    a.has_all(store)
    os.rename(a.path, f"{scratch}/a-1.log")
    reads(store, f"{scratch}/later.log")  # so the folder was looked at, and a-1.log is known
    a.write(100)  # into a-1.log
    os.close(a.file)
    a.reopen()
    a.write(50)
    a.has_all(store)
    cap.stop()
    assert lines(store, a.path) == dict(a.wrote) and not lines(store, f"{scratch}/a-1.log"), lines(store)


@pytest.mark.long
def test_a_truncated_file_costs_what_was_not_read_and_that_is_told(capture, store, scratch):
    cap = capture("--files", f"{scratch}/*.log", "--text", "off", program="sonde-logs")
    reads(store, f"{scratch}/probe.log")
    w = Writer(f"{scratch}/cut.log")
    w.write(300)
    w.has_all(store)
    os.truncate(w.path, 0)
    w.write(100)
    w.has_all(store)
    (told,) = sql_all(store, "SELECT sum(cuts) AS n FROM logs WHERE source = ?", (w.path,))
    assert told["n"] == 1
    os.write(w.file, b"ERROR the last line has no end")
    w.has_all(store)
    os.unlink(w.path)
    w.wrote["error"] += 1
    w.has_all(store)
    cap.stop()
    assert not sql_all(store, "SELECT 1 FROM log_patterns")


def test_the_journal_by_who_wrote_and_pods_by_their_names(capture, store, scratch):
    with journal(scratch, empty=["/var/log/journal", "/var/log/pods"]) as j, contained() as (container_id, prefix, _):
        j.send(*({"MESSAGE": "before", "SYSLOG_IDENTIFIER": "job", "PRIORITY": "6"} for _ in range(50)))
        assert j.has("before")
        cap = capture("--files", f"{scratch}/*.log", program="sonde-logs", prefix=j.prefix)
        box = subprocess.Popen([*prefix, "sleep", "600"])
        reads(store, f"{scratch}/probe.log")
        wrote = collections.Counter()

        def send(count, priority, level):
            for i in range(count):
                j.send({"MESSAGE": f"cannot open file {i}", "SYSLOG_IDENTIFIER": "job", "PRIORITY": str(priority)})
            wrote[level] += count
        send(40, 3, "error")
        j.rotate()
        send(30, 4, "warning")
        send(20, 6, "info")
        j.send(*({"MESSAGE": f"ERROR of a container {i}", "CONTAINER_ID_FULL": container_id, "PRIORITY": "6"} for i in range(25)))
        j.send(*({"MESSAGE": "says that it is the container", "CONTAINER_ID_FULL": container_id, "SYSLOG_IDENTIFIER": "job", "PRIORITY": "6"} for _ in range(10)), uid=1234)
        wrote["info"] += 10
        pod = f"{j.root}/var/log/pods/shop_web-1_{secrets.token_hex(4)}/app"
        os.makedirs(pod)
        with open(f"{pod}/0.log", "w", encoding="ascii") as f:
            for i in range(101):
                f.write(f"2026-11-29T18:00:00.5Z stderr P ERROR half {i} \n2026-11-29T18:00:00.5Z stderr F and half\n")
        try:
            # entries belong to the unit that their program runs in, where there is one, else to what they call themselves
            want = sorted((25, 100, 101))
            assert until(lambda: sorted(n for s, n in lines(store).items() if s[0] != "/" and s not in JOURNALD) == want, WAIT), lines(store)
        finally:
            box.kill()
            box.wait()
        cap.stop()
    mine = next(s for s, n in lines(store).items() if n == 100)
    assert lines(store, mine) == dict(wrote)
    assert [(p["level"], p["pattern"], p["n"]) for p in patterns(store, mine)] == [("error", "cannot open file *", 40), ("warning", "cannot open file *", 30)]
    assert lines(store, container_id[:12]) == {"error": 25} and lines(store, "shop/web-1/app") == {"error": 101}


def gzipped(path, number=1):
    subprocess.run(["gzip", "-f", f"{path}.{number}"], check=True)


def moved_on(path):
    """As renamed() does it, with those that are compressed."""
    for i in range(8, 0, -1):
        for end in ("", ".gz"):
            if os.path.exists(f"{path}.{i}{end}"):
                os.rename(f"{path}.{i}{end}", f"{path}.{i + 1}{end}")
    os.rename(path, f"{path}.1")


@pytest.mark.long
def test_rotated_files_that_were_compressed_before_they_were_seen_count_and_no_other_one_counts_twice(capture, store, scratch):
    cap = capture("--files", f"{scratch}/*.log", program="sonde-logs")
    reads(store, f"{scratch}/probe.log")
    a = Writer(f"{scratch}/a.log")
    a.write(300)
    a.has_all(store)

    def rotate():
        moved_on(a.path)
        os.close(a.file)
        a.reopen()
    for compressed in (1, 1, 3, 2):  # rotations at once; all that was rotated is compressed
        for _ in range(compressed):
            a.write(70)
            rotate()
            gzipped(a.path)
        a.write(10)
        time.sleep(1.5)
    rotate()  # and compressed when it is rotated again, as with delaycompress
    a.write(30)
    a.has_all(store)
    time.sleep(8)
    rotate()
    gzipped(a.path, 2)
    a.write(30)
    a.has_all(store)
    time.sleep(3)
    cap.stop()
    assert lines(store, a.path) == dict(a.wrote), (lines(store, a.path), a.wrote)
    assert not [r for r in sql_all(store, "SELECT sum(cuts) AS n FROM logs WHERE source = ?", (a.path,)) if r["n"]]


USER = 1234


@pytest.mark.long
def test_of_a_users_own_engine_the_logs_are_read_that_are_that_users(capture, store, scratch):
    """Podman's monitor as a user runs it. Who may choose a path may not choose a file of another user."""
    need_root()
    with tempfile.TemporaryDirectory() as base:
        os.chmod(base, 0o755)
        ids = {name: secrets.token_hex(32) for name in ("own", "linked", "roots", "later")}

        def log_of(name):
            folder = f"{base}/storage/overlay-containers/{ids[name]}/userdata"
            os.makedirs(folder, exist_ok=True)
            return f"{folder}/ctr.log"

        def say(path, count, owner=USER):
            with open(path, "a", encoding="ascii") as f:
                f.write("".join(f"2026-11-29T18:00:00.5Z stderr F ERROR job {i}\n" for i in range(count)))
            os.chown(path, owner, owner)
        say(log_of("own"), 3)
        say(f"{base}/of-root", 3, 0)
        os.symlink(f"{base}/of-root", log_of("linked"))
        say(log_of("roots"), 3, 0)
        os.symlink(sys.executable, f"{base}/conmon")
        monitor = subprocess.Popen([f"{base}/conmon", "-c", "import time; time.sleep(600)", "-b", os.path.dirname(log_of("own"))], user=USER, group=USER,
                                   stdin=subprocess.DEVNULL)
        try:
            cap = capture("--files", f"{scratch}/*.log", program="sonde-logs")
            reads(store, f"{scratch}/probe.log")
            say(log_of("own"), 40)
            say(f"{base}/of-root", 50, 0)
            say(log_of("roots"), 60, 0)
            say(log_of("later"), 70)
            assert until(lambda: lines(store, ids["own"][:12]) == {"error": 40} and lines(store, ids["later"][:12]) == {"error": 70}, WAIT), lines(store)
            cap.stop()
        finally:
            monitor.kill()
            monitor.wait()
    assert not lines(store, ids["linked"][:12]) and not lines(store, ids["roots"][:12]), lines(store)


@pytest.mark.long
def test_logs_are_shown_by_who_and_what_is_new(capture, sonde, store, scratch):
    cap = capture("--files", f"{scratch}/*.log", program="sonde-logs")
    reads(store, f"{scratch}/probe.log")
    w = Writer(f"{scratch}/app.log")
    w.write(100)
    w.has_all(store)
    time.sleep(2.2)
    middle = time.time()
    time.sleep(1)
    with open(w.path, "a", encoding="ascii") as f:
        f.write("ERROR deadlock detected in table\n" * 7)
    w.wrote["error"] += 7
    w.has_all(store)
    cap.stop()
    told = json.loads(sonde("logs", "--json", store=store, check=True).stdout)
    app = next(s for s in told["sources"] if s["source"] == w.path)
    assert app["lines"] == 107 and app["errors"] == 17 and app["warnings"] == 10 and app["kind"] == "file"
    new = json.loads(sonde("logs", "--new", "--from", f"{middle:.3f}", "--json", store=store, check=True).stdout)
    assert [(r["pattern"], r["messages"], r["new"]) for r in new["rows"]] == [("deadlock detected in table", 7, True)]
    text = sonde("logs", "--level", "error", "--sample", store=store, check=True).stdout
    assert "deadlock detected in table" in text and "***" in text and SECRET not in text
    assert sonde("logs", "--level", "bad", store=store).returncode == 2


@pytest.mark.docker
def test_dockers_logs_through_its_own_rotation_and_of_a_container_that_is_removed_at_once(capture, store, scratch):
    need_root()
    need("docker")
    e = engine()
    try:
        image = e.image()
        cap = capture("--files", f"{scratch}/*.log", program="sonde-logs", prefix=e.prefix)
        reads(store, f"{scratch}/probe.log")
        script = "i=0; while [ $i -lt 6000 ]; do echo INFO line $i of many; i=$((i+1)); done; echo ERROR no such table >&2; sleep 3"
        rotates = ["--log-opt", "max-size=200k", "--log-opt", "max-file=9"]
        kinds = (("rotates", rotates), ("local", ["--log-driver", "local"]), ("packs", [*rotates, "--log-opt", "compress=true"]),
                 ("local-packs", ["--log-driver", "local", "--log-opt", "max-size=40k", "--log-opt", "max-file=9"]))
        for name, options in kinds:
            done = e.docker("run", "--name", name, "--network", "none", *options, image, "/bin/sh", "-c", script)
            assert done.returncode == 0, done.stderr
        done = e.docker("run", "--rm", "--name", "brief", "--network", "none", image, "/bin/sh", "-c", "echo ERROR brief; echo bye")
        assert done.returncode == 0, done.stderr
        assert until(lambda: lines(store, "brief") and all(lines(store, name) for name, _ in kinds), WAIT), lines(store)
        for name, _ in kinds:
            assert until(lambda n=name: lines(store, n) == {"info": 6000, "error": 1}, WAIT), lines(store, name)
        assert lines(store, "brief") == {"error": 1, "unknown": 1}
        cap.stop()
        assert {r["container"] for r in sql_all(store, "SELECT DISTINCT container FROM logs WHERE source IN ('rotates', 'local')")} == {"rotates", "local"}
    finally:
        e.stop()
