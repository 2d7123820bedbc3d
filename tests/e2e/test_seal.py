# SPDX-License-Identifier: Apache-2.0
"""Sealing a day: every verb says the same before and after, of every kind of data; only the account of files differs."""
import json
import os
import shutil
import sqlite3
import subprocess

import pytest

from conftest import BIN, BUILD, need

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
          for s in range(0, 60, 2) for pid in (100, 101, 102)),
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
    for _ in range(2):  # the second one removes what the first one packed
        done = subprocess.run([os.path.join(BIN, "sonde-seal"), "--store", folder, "--today", "--grace", "0", "--json", *more],
                              capture_output=True, text=True, timeout=60)
        assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.fixture(scope="module")
def two(tmp_path_factory):
    """The same store twice: as it was written, and sealed. Three segments; an empty one is the newest."""
    need("putstore (make workloads)", PUTSTORE)
    plain = str(tmp_path_factory.mktemp("seal") / "plain")
    for nth in range(3):
        put(plain, lines(T + 1000 * nth, nth))
    put(plain, [{"run": "cpu", "from": T + 4000, "to": T + 4001, "period_ns": 10101010}])
    sealed = plain + "-sealed"
    shutil.copytree(plain, sealed)
    seal(sealed)
    names = sorted(n for n in os.listdir(sealed) if n.endswith(".db"))
    assert len(names) == 2 and "-d001" in names[0], names
    return plain, sealed


def say(folder, *argv):
    done = subprocess.run([os.path.join(BIN, "sonde"), *argv, "--store", folder], capture_output=True, encoding="latin-1",
                          timeout=60, env={**os.environ, "TZ": "UTC"})
    return done.returncode, done.stdout.replace("-sealed", ""), done.stderr.replace("-sealed", "")


ALL = ["--from", str(T), "--to", str(T + 3000)]
PART = ["--from", str(T + 1010), "--to", str(T + 1031)]
QUESTIONS = [
    ["stacks"], ["stacks", "--json"], ["stacks", "--container", "db"], ["ps"], ["ps", "--json"], ["timeline"], ["timeline", "--json"],
    ["containers", "--json"], ["lines", "work1"], ["waits"], ["waits", "--json"], ["neighbours"], ["wakers"], ["net"], ["map"], ["heap"],
    ["heap", "--json"], ["stacks", "--type", "offcpu"], ["explain"], ["explain", "--json"], ["diff"], ["diff", "--json"],
    ["export", "folded"], ["export", "json"], ["export", "pprof", "-o", "-"], ["flame", "--json"], ["flame", "--text"], ["export", "speedscope"], ["top", "--json"],
]


@pytest.mark.parametrize("question", QUESTIONS, ids=" ".join)
@pytest.mark.parametrize("window", [ALL, PART], ids=["all", "part"])
def test_every_verb_says_the_same_before_and_after(two, question, window):
    plain, sealed = two
    before = say(plain, *question, *window)
    assert say(sealed, *question, *window) == before
    assert before[0] in (0, 4) and (before[1] or before[0]), (question, before)


def test_status_says_the_same_of_every_recording(two):
    plain, sealed = (json.loads(say(folder, "status", "--json")[1]) for folder in two)
    assert plain["rows"] and sealed["rows"] == plain["rows"]


def test_every_view_that_does_not_read_samples_is_the_same_in_plain_sqlite3(two):
    plain, sealed = ([os.path.join(folder, n) for n in sorted(os.listdir(folder)) if n.endswith(".db")] for folder in two)

    def rows(files, sql):
        out = []
        for path in files:
            with sqlite3.connect(f"file:{path}?mode=ro", uri=True) as db:
                out += db.execute(sql).fetchall()
        return sorted(out)

    for view, columns in {
            "amounts": "ts, container, comm, pid, thread, type, function, line, n, value, max, hist, label, rate",
            "waits": "ts, comm, reason, function, count, total_ns, max_ns, hist",
            "wait_totals": "ts, comm, thread, state, reason, count, total_ns, max_ns, hist",
            "neighbours": "ts, comm, who, by_comm, count, total_ns", "wakers": "ts, comm, reason, by_comm, context, count",
            "throttling": "ts, cgroup, periods, throttled, throttled_ns", "steal": "ts, steal_ns, idle_ns, cpu_ns",
            "loss": "ts, family, reason, lost", "runs": "family, scope, state, from_ns, to_ns, bucket_s, period_ns, token",
            "go_heap": "ts, comm, pid, function, object_bytes, alloc_bytes, inuse_bytes"}.items():
        assert rows(sealed, f"SELECT {columns} FROM {view}") == rows(plain, f"SELECT {columns} FROM {view}"), view
    for sums in ("SELECT function, sum(self), sum(total), sum(self_ns) FROM functions_top GROUP BY 1",
                 "SELECT pid, sum(samples), sum(cpu_ns) FROM cpu_samples GROUP BY 1"):
        def total(files):
            out = {}
            for key, *values in rows(files, sums):
                out[key] = [a + b for a, b in zip(out.get(key, [0] * len(values)), values)]
            return out
        assert total(sealed) == total(plain)


def test_what_was_removed_is_on_record_in_the_day(two):
    plain, sealed = two
    day = next(n for n in os.listdir(sealed) if "-d001" in n)
    names = sorted(n for n in os.listdir(plain) if n.endswith(".db"))[:3]
    with sqlite3.connect(f"file:{os.path.join(sealed, day)}?mode=ro", uri=True) as db:
        assert [r[0] for r in db.execute("SELECT name FROM sealed ORDER BY 1")] == names
        n, packed = db.execute("SELECT (SELECT sum(n) FROM sealed), (SELECT sum(n) FROM sample_pack)").fetchone()
    assert n == packed > 0


@pytest.mark.parametrize("argv, code, word", [(["--store", "/nowhere/at/all"], 6, "nowhere"), (["--grace", "x"], 2, "--grace"),
                                              (["more"], 2, "more"), (["--store", "/etc/passwd"], 2, "one file")])
def test_what_is_wrong_is_said(argv, code, word):
    done = subprocess.run([os.path.join(BIN, "sonde-seal"), *argv], capture_output=True, text=True, timeout=60)
    assert done.returncode == code and word in done.stderr, done
