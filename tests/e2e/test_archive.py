# SPDX-License-Identifier: Apache-2.0
"""A segment that holds waits and heaps is archived by itself: under its own name, a fraction of the bytes, the same answers in every
verb, in every view, and in what is exported; whoever is killed meanwhile leaves it as it was."""
import json
import os
import random
import shutil
import signal
import sqlite3
import subprocess

import pytest

from conftest import BIN
from test_seal import T, lines, put, say
from test_seal_sql import ASKED, NAMED, files, loaded, rows, sonde, whole

HOUR = T // 3600 * 3600
QUESTIONS = [["stacks", "--type", "offcpu"], ["stacks", "--json"], ["ps", "--json"], ["timeline", "--json"], ["containers", "--json"],
             ["waits", "--json"], ["waits", "--by", "thread", "--json"], ["wakers", "--json"], ["neighbours", "--json"], ["events", "--json"], ["oom", "--json"], ["heap", "--json"],
             ["explain", "--json"], ["diff", "--json"], ["export", "folded"], ["flame", "--type", "wall", "--format", "json", "-o", "-"],
             ["status", "--json"]]
SEAL = [os.path.join(BIN, "sonde-seal"), "--json"]


def busy(at):
    """A host of many threads that wait: of each kind of row some thousands, with and without a histogram."""
    rnd = random.Random(7)
    out = lines(at, 0)
    for i in range(6000):
        who = {"pid": 200 + i % 900, "comm": f"w{i % 40}", "thread": f"t{i % 7}", "tid": 2000 + i % 1500}
        n = rnd.randrange(1, 50)
        spread = {} if i % 3 else {"hist": [0] * rnd.randrange(3, 12) + [n]}
        out.append({"run": "offcpu", "from": at, "to": at + 600, "bucket_s": 10, "recording": 9} if not i else
                   {"wait": rnd.randrange(1, 7), "n": n, "total_ns": n * rnd.randrange(1000, 10**7), "max_ns": 10**6, "at": at + i // 10, **spread, **who})
        out.append({"wake": 3, "context": i % 2, "n": n, "total_ns": 5000 * n, "at": at + i // 10, "by": {"pid": 7, "comm": "by", "thread": "by"}, **who})
        out.append({"culprit": 0, "n": n, "total_ns": 7000 * n, "at": at + i // 10, "by": {"pid": 7, "comm": "by", "thread": "by"}, **who})
        out.append({"kind": "offcpu", "label": 3, "at": at + i // 10, "n": n, "value": n * 1000, "stack": ["main", f"f{i % 300}", "read"], **spread, **who})
    return out


def seal(folder, *more):
    done = subprocess.run([*SEAL, "--store", folder, *more], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.fixture(scope="module")
def stores(tmp_path_factory):
    """The same twice, as it was written and archived."""
    plain = str(tmp_path_factory.mktemp("archive") / "plain")
    put(plain, busy(HOUR + 100))
    put(plain, [{"run": "cpu", "from": HOUR + 800, "to": HOUR + 801, "period_ns": 10101010}])
    archived = plain + "-archived"
    shutil.copytree(plain, archived)
    said = seal(archived)
    assert said["segments"] == 1 and said["bytes_after"] < said["bytes_before"] / 3
    assert list(map(os.path.basename, files(archived))) == list(map(os.path.basename, files(plain)))
    return plain, archived


def packed(path):
    with sqlite3.connect(f"file:{path}?mode=ro", uri=True) as db:
        return {r[0] for r in db.execute("SELECT name FROM packed_table")}


def test_all_large_tables_are_columns_and_it_is_done_once(stores):
    assert {"wait_row", "wake_row", "culprit_row", "amount", "process", "task", "series"} <= packed(files(stores[1])[0])
    before = os.stat(files(stores[1])[0])
    assert seal(stores[1])["segments"] == 0
    assert os.stat(files(stores[1])[0]).st_ino == before.st_ino


@pytest.mark.parametrize("question", QUESTIONS, ids=" ".join)
@pytest.mark.parametrize("window", [(HOUR, HOUR + 3600), (HOUR + 300, HOUR + 400)], ids=["all", "part"])
def test_every_verb_says_the_same(stores, question, window):
    asked = [*question, *([] if question[0] == "status" else ["--from", str(window[0]), "--to", str(window[1])])]

    def told(store):
        code, out, err = say(store, *asked)
        if question[0] == "status":  # but for the bytes
            said = json.loads(out)
            del said["store"]
            out = json.dumps(said)
        return code, out.replace(store, "STORE"), err.replace(store, "STORE")
    before = told(stores[0])
    assert told(stores[1]) == before
    assert before[1] or before[0], before


@pytest.mark.parametrize("name", NAMED)
def test_each_query_that_ships_is_the_same(stores, name):
    plain, archived = (files(s)[0] for s in stores)
    text = open(os.path.join(os.path.dirname(__file__), "..", "..", "tools", "sql", "queries", name + ".sql"), encoding="utf-8").read()
    some = ["n=100000"] if ":n" in text else []
    before, after = (sonde(path, f"@{name}", *some) for path in (plain, archived))
    assert after[0] == before[0] and (before[0] or rows(after) == rows(before))


@pytest.mark.long
@pytest.mark.parametrize("n", range(len(ASKED)))
def test_each_query_of_the_document_is_the_same(stores, n):
    plain, archived = (files(s)[0] for s in stores)
    for query in filter(str.strip, whole(ASKED[n]).split(";")):
        before = rows(sonde(plain, query))
        assert rows(sonde(archived, query)) == before
        assert rows(loaded(archived, query)) == before


@pytest.mark.parametrize("query", [
    "SELECT * FROM wait_row", "SELECT * FROM amount", "SELECT count(*) FROM wait_row WHERE hist IS NULL", "SELECT count(*), sum(n) FROM amount WHERE ts > 20",
    "SELECT * FROM wait_row WHERE ts BETWEEN (SELECT min(ts) + 5 FROM wait_row) AND (SELECT min(ts) + 25 FROM wait_row) ORDER BY ts DESC, task", "SELECT max(total_ns) FROM wake_row WHERE task = 5",
    "SELECT class, count(*) FROM wait_row GROUP BY 1", "SELECT * FROM process WHERE pid = 205", "SELECT x.n FROM wait_row x JOIN task t ON t.id = x.task WHERE t.tid = 2003"])
def test_tables_are_what_they_were(stores, query):
    def asked(path, *extra):
        done = subprocess.run(["sqlite3", "-readonly", "-csv", *extra, path, query], capture_output=True, text=True, timeout=60)
        assert done.returncode == 0, done.stderr
        return sorted(done.stdout.split("\n"))
    plain, archived = (files(s)[0] for s in stores)
    before = asked(plain)
    assert len(before) > 1 and asked(archived, "-cmd", f".load {BIN}/../lib/sonde") == before


def test_the_newest_stay_rows_up_to_what_is_said(stores, tmp_path):
    store = str(tmp_path / "store")
    put(store, busy(HOUR + 100))
    put(store, busy(HOUR + 1100))
    put(store, [{"run": "cpu", "from": HOUR + 1800, "to": HOUR + 1801, "period_ns": 10101010}])
    size = max(map(os.path.getsize, files(store)[:2]))
    assert seal(store, "--plain", str(4 * size))["segments"] == 0
    assert seal(store, "--plain", str(size + 4096))["segments"] == 1
    assert packed(files(store)[0]) and not packed(files(store)[1])
    assert seal(store)["segments"] == 1 and packed(files(store)[1])


def test_it_is_left_as_it_is_by_whoever_is_killed_or_finds_no_room(stores, tmp_path):
    store = str(tmp_path / "store")
    shutil.copytree(stores[0], store)
    before = open(files(store)[0], "rb").read()
    assert seal(store, "--room", "1M")["segments"] == 0
    for delay in (0.002, 0.02, 0.08):
        child = subprocess.Popen([*SEAL, "--store", store], stdout=subprocess.DEVNULL)
        try:
            child.wait(delay)
        except subprocess.TimeoutExpired:
            child.send_signal(signal.SIGKILL)
        child.wait()
        path = files(store)[0]
        assert packed(path) or open(path, "rb").read() == before
        assert sum(r[0] for r in sqlite3.connect(files(store)[1]).execute("SELECT count(*) FROM run")) == 1
    said = seal(store)
    assert said["segments"] == 1 or packed(files(store)[0])
    assert not os.path.exists(os.path.join(store, "sealing.db"))


def test_a_damaged_one_is_set_aside(stores, tmp_path):
    store = str(tmp_path / "store")
    shutil.copytree(stores[0], store)
    path = files(store)[0]
    with open(path, "r+b") as f:  # the pages of its rows
        f.seek(os.path.getsize(path) // 2)
        f.write(os.urandom(os.path.getsize(path) // 4))
    said = seal(store)
    assert said["segments"] == 0 and said["set_aside"] == 1
    assert os.path.exists(path + ".bad")


def test_damage_in_an_archive_is_an_error_and_no_answer(stores, tmp_path):
    store = str(tmp_path / "store")
    shutil.copytree(stores[1], store)
    with sqlite3.connect(files(store)[0]) as db:
        db.execute("UPDATE packed_column SET data = substr(data, 1, length(data) / 2) WHERE \"table\" = 'wait_row' AND name = 'total_ns'")
    code, _, err = say(files(store)[0], "waits", "--json", "--from", str(HOUR), "--to", str(HOUR + 3600))
    assert code != 0 and "damaged" in err


def test_an_archive_is_exported_whole(stores, tmp_path):
    out = str(tmp_path / "x.db")
    code, _, err = say(files(stores[1])[0], "export", "db", "-o", out, "--from", str(HOUR + 300), "--to", str(HOUR + 400))
    assert code == 0, err
    assert packed(out) == packed(files(stores[1])[0])
