# SPDX-License-Identifier: Apache-2.0
"""Archiving the finished segments of a store: every verb says the same before, after, and while some are archives and some are not, of every
kind of data; only the bytes of the files differ."""
import contextlib
import json
import os
import re
import shutil
import sqlite3
import subprocess

import pytest

from conftest import BIN, BUILD, need
from test_days import samples_in_pprof

T = 1800000000
PUTSTORE = os.path.join(BUILD, "tests", "putstore")
BY = {"pid": 9, "comm": "burner", "thread": "burner"}


def lines(at, nth):
    """Some of everything at one time: samples, waits, heap, quota, losses."""
    heap = {"pid": 7, "comm": "app", "label": 1024, "stack": ["main", ["make", "app.go", 12]]}
    return [
        {"run": "cpu", "from": at, "to": at + 60, "bucket_s": 1, "period_ns": 10101010, "recording": 7 + nth},
        *({"kind": "cpu", "at": at + s, "n": 1 + (s + pid) % 5, "pid": pid, "comm": f"app{pid}", "container": "db" if pid % 2 else "",
           "stack": ["main", [f"work{s % 3}", "app.c", 10 + s % 3], ["inner", "app.c", 40 + nth]]}
          for s in range(0, 60) for pid in (100, 101, 102)),
        {"loss": "ring", "at": at + 5, "n": 5 + nth},
        {"run": "offcpu", "from": at, "to": at + 60, "bucket_s": 1, "recording": 7 + nth},
        {"kind": "offcpu", "at": at + 1, "n": 3, "value": 9000000, "max": 5000000, "hist": [0] * 21 + [2, 1], "pid": 100,
         "comm": "app100", "label": 1, "stack": ["main", "wait"]},
        {"wait": 2, "flags": 12, "n": 3, "total_ns": 9000, "max_ns": 5000, "hist": [0] * 11 + [2, 1], "at": at + 1, "pid": 100,
         "comm": "app100"},
        {"wait": 17, "n": 4, "total_ns": 700000, "max_ns": 400, "at": at + 2, "pid": 100, "comm": "app100"},
        {"wait": 32, "n": 8, "total_ns": 5000000, "max_ns": 900, "at": at + 2, "pid": 100, "comm": "app100"},
        {"wake": 2, "context": 1, "n": 5, "total_ns": 10000, "by": BY, "at": at + 1, "pid": 100, "comm": "app100"},
        {"culprit": 0, "n": 3, "total_ns": 600000, "by": BY, "at": at + 2, "pid": 100, "comm": "app100"},
        {"throttle": "/docker/abc", "periods": 10, "throttled": 4, "throttled_ns": 70000, "at": at + 3},
        {"steal": 5, "idle_ns": 60, "cpu_ns": 2000000000, "at": at + 3},
        {"run": "goheap", "from": at, "to": at + 60, "bucket_s": 10, "recording": 7 + nth},
        {"rate": 524288, "pid": 7, "comm": "app", "at": at},
        {**heap, "kind": "alloc", "at": at + 5, "n": 10, "value": 10240},
        {**heap, "kind": "inuse", "at": at + 5, "n": 10, "value": 10240},
        {**heap, "kind": "inuse", "at": at + 35, "n": 14 + nth, "value": 1024 * (14 + nth)},
        *({"kind": "inuse", "at": at + s, "pid": 7, "comm": "app", "n": 0, "value": 0, "stack": []} for s in (5, 35)),
        {"note": "version", "text": "go1.26.8", "pid": 7, "comm": "app"}, {"note": "state", "text": "read", "pid": 7, "comm": "app"},
    ]


def put(folder, what):
    subprocess.run([PUTSTORE, folder], input="\n".join(map(json.dumps, what)), text=True, check=True)
    for name in os.listdir(folder):  # the next writer begins a segment of its own
        if name.endswith(".db"):
            with sqlite3.connect(os.path.join(folder, name)) as db:
                db.execute("UPDATE meta SET value = 'another' WHERE key = 'boot_id'")


def seal(folder, *more):
    done = subprocess.run([os.path.join(BIN, "sonde-seal"), "--store", folder, "--json", *more], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def files(folder):
    return [os.path.join(folder, n) for n in sorted(os.listdir(folder)) if n.endswith(".db")]


def packed(path):
    """The tables of the file that are columns."""
    with sqlite3.connect(f"file:{path}?mode=ro", uri=True) as db:
        return {name for (name,) in db.execute("SELECT name FROM packed_table")}


def archive_all(plain):
    """A copy of the store whose segments are archives but the newest one."""
    archived = plain + "-archived"
    shutil.copytree(plain, archived)
    said = seal(archived)
    assert said["segments"] == len(files(plain)) - 1 and not said["put_off"] and not said["set_aside"], said
    assert list(map(os.path.basename, files(archived))) == list(map(os.path.basename, files(plain)))
    assert all(map(packed, files(archived)[:-1])) and not packed(files(archived)[-1])
    return archived


@pytest.fixture(scope="module")
def two(tmp_path_factory):
    """The same store twice: as it was written, and archived. Three segments; an empty one is the newest."""
    need("putstore (make workloads)", PUTSTORE)
    plain = str(tmp_path_factory.mktemp("seal") / "plain")
    for nth in range(3):
        put(plain, lines(T + 1000 * nth, nth))
    put(plain, [{"run": "cpu", "from": T + 4000, "to": T + 4001, "period_ns": 10101010}])
    return plain, archive_all(plain)


@pytest.fixture(scope="module")
def mixed(two):
    """The same store once more: two archives, then two segments that are rows."""
    store = two[0] + "-mixed"
    shutil.copytree(two[0], store)
    assert seal(store, "--plain", str(os.path.getsize(files(store)[2]) + 4096))["segments"] == 2
    assert [bool(packed(f)) for f in files(store)] == [True, True, False, False]
    return store


def say(folder, *argv):
    done = subprocess.run([os.path.join(BIN, "sonde"), *argv, "--store", folder], capture_output=True, encoding="latin-1",
                          timeout=60, env={**os.environ, "TZ": "UTC"})
    return done.returncode, *(re.sub("-archived|-mixed", "", x) for x in (done.stdout, done.stderr))


ALL = ["--from", str(T), "--to", str(T + 3000)]
PART = ["--from", str(T + 1010), "--to", str(T + 1031)]
QUESTIONS = [
    ["stacks"], ["stacks", "--json"], ["stacks", "--container", "db"], ["ps"], ["ps", "--json"], ["timeline"], ["timeline", "--json"],
    ["containers", "--json"], ["lines", "work1"], ["waits"], ["waits", "--json"], ["neighbours"], ["wakers"], ["net"], ["map"], ["requests"], ["requests", "--slowest"], ["heap"],
    ["heap", "--json"], ["stacks", "--type", "offcpu"], ["explain"], ["explain", "--json"], ["diff"], ["diff", "--json"],
    ["export", "folded"], ["export", "json"], ["export", "pprof", "-o", "-"], ["flame", "--json"], ["flame", "--text"], ["export", "speedscope"], ["top", "--json"],
]


@pytest.mark.parametrize("question", QUESTIONS, ids=" ".join)
@pytest.mark.parametrize("window", [ALL, PART], ids=["all", "part"])
def test_every_verb_says_the_same_before_and_after(two, mixed, question, window):
    def said(folder):  # of a profile the order of its samples says nothing: an archive has other ids
        if "pprof" not in question:
            return say(folder, *question, *window)
        done = subprocess.run([os.path.join(BIN, "sonde"), *question, *window, "--store", folder], capture_output=True, timeout=60, check=False)
        return done.returncode, samples_in_pprof(done.stdout) if done.stdout else None
    before = said(two[0])
    assert said(two[1]) == before
    assert said(mixed) == before
    assert before[0] in (0, 4) and (before[1] or before[0]), (question, before)


def test_status_says_the_same_of_every_recording(two, mixed):
    plain, *others = (json.loads(say(folder, "status", "--json")[1]) for folder in (*two, mixed))
    assert plain["rows"] and all(x["rows"] == plain["rows"] for x in others)
    assert [x["store"]["segments"] for x in (plain, *others)] == [4, 4, 4]


def everything(path, kind, extension):
    """{name: its rows} of every view or table of one file, by the library that people have."""
    with contextlib.closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True)) as db:
        if extension:
            db.enable_load_extension(True)
            db.load_extension(os.path.join(BUILD, "lib", "sonde.so"))
        names = [n for (n,) in db.execute("SELECT name FROM sqlite_master WHERE type = ?1 UNION"
                                              " SELECT name FROM sqlite_temp_master WHERE type = ?1 ORDER BY 1", (kind,))]
        return {n: sorted(map(repr, db.execute(f'SELECT * FROM "{n}"'))) for n in names}


def test_every_view_and_every_table_is_the_same_in_sqlite3_with_the_extension(two):
    of_archives = {"packed_table", "packed_column", "packed_block", "packed_view", "meta", "run_named", "run_ending"}
    for plain, archived in zip(*map(files, two)):
        for kind in ("view", "table"):
            before, after = everything(plain, kind, False), everything(archived, kind, True)
            after = {n: r for n, r in after.items() if not n.endswith("_sum")}  # an archive's own: docs/SCHEMA.md
            assert len(before) > 30 and before.keys() == after.keys()
            for name in before.keys() - of_archives:
                assert after[name] == before[name], (name, archived)
    assert everything(files(two[1])[0], "view", True)["waits"] and everything(files(two[1])[0], "view", True)["go_heap"]


@pytest.mark.parametrize("argv, code, word", [(["--store", "/nowhere/at/all"], 6, "nowhere"), (["--keep", "x"], 2, "--keep"), (["--plain", "much"], 2, "--plain"), (["--today"], 2, "--help"),
                                              (["more"], 2, "more"), (["--store", "/etc/passwd"], 2, "a single file")])
def test_what_is_wrong_is_said(argv, code, word):
    done = subprocess.run([os.path.join(BIN, "sonde-seal"), *argv], capture_output=True, text=True, timeout=60)
    assert done.returncode == code and word in done.stderr, done
