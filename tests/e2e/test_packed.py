# SPDX-License-Identifier: Apache-2.0
"""A sealed day that is mostly dictionary, as a build's, is packed: it says the same as its segments did, in every verb and, with
sonde's extension, in every view; plain sqlite3 says what it lacks; and damage is an error."""
import json
import os
import random
import shutil
import sqlite3
import subprocess

import pytest

from conftest import BIN
from test_seal import put, say, seal
from test_seal_sql import ASKED, HOUR, NAMED, files, loaded, rows, sonde, whole

QUESTIONS = [["stacks"], ["stacks", "--json"], ["stacks", "--container", "db"], ["ps", "--json"], ["timeline", "--json"], ["containers", "--json"],
             ["lines", "f7"], ["explain", "--json"], ["diff", "--json"], ["export", "folded"], ["flame", "--format", "json", "-o", "-"]]
LIKE = ["source", "task"]  # of one segment these keep their numbers
TOLD = [  # and these are the same but for theirs
    "SELECT f.hash, f.image, f.line, f.name, f.file, s.path FROM function f LEFT JOIN source s ON s.id = f.source",
    "SELECT r.image, r.offset, f.name, r.line, r.flags, o.offset, g.name FROM frame r LEFT JOIN function f ON f.id = r.function"
    " LEFT JOIN frame o ON o.id = r.outer LEFT JOIN function g ON g.id = o.function",
    "SELECT depth, folded FROM stacks", "SELECT e.task, k.folded, e.label FROM series e LEFT JOIN stacks k ON k.id = e.stack"]


def build(at, nth, n=2500):
    """Samples of a compiler: most stacks come once."""
    rnd = random.Random(nth)
    out = [{"run": "cpu", "from": at, "to": at + 600, "bucket_s": 10, "period_ns": 10101010, "recording": 70 + nth}]
    for i in range(n):
        stack = ["main", *([f"f{rnd.randrange(60)}", "cc.c", rnd.randrange(1, 900)] for _ in range(rnd.randrange(1, 9)))]
        out.append({"kind": "cpu", "at": at + rnd.randrange(600), "n": rnd.choice((1, 1, 2)), "pid": 1000 + i % 400, "comm": ("cc1", "as")[i % 5 == 0],
                    "container": "db" if i % 3 else "", "stack": stack})
    out += [{"kind": "cpu", "at": at + 60 * i, "n": 40, "pid": 9, "comm": "long", "stack": ["main", ["spin", "spin.c", 3]]} for i in range(10)]
    return out


def packed(path):
    with sqlite3.connect(f"file:{path}?mode=ro", uri=True) as db:
        return [name for (name,) in db.execute("SELECT name FROM packed_table ORDER BY name")]


def a_packed_day(folder):
    put(folder, build(HOUR + 100, 0))
    put(folder, [{"run": "cpu", "from": HOUR, "to": HOUR + 1, "period_ns": 10101010}])
    seal(folder)
    assert packed(files(folder)[0])
    return files(folder)[0]


@pytest.fixture(scope="module")
def stores(tmp_path_factory):
    """The same twice, as it was written and sealed: one segment, of two hours."""
    plain = str(tmp_path_factory.mktemp("packed") / "plain")
    put(plain, build(HOUR + 3300, 0, 4000))
    put(plain, [{"run": "cpu", "from": HOUR, "to": HOUR + 1, "period_ns": 10101010}])
    sealed = plain + "-sealed"
    shutil.copytree(plain, sealed)
    seal(sealed)
    assert "-d001" in files(sealed)[0] and set(packed(files(sealed)[0])) >= {"frame", "stack", "series", "sample", "process", "function"}
    return plain, sealed


def test_it_is_less_than_half_of_the_rows(stores):
    segment, day = (os.path.getsize(files(s)[0]) for s in stores)
    assert day < segment / 2


@pytest.mark.parametrize("question", QUESTIONS, ids=" ".join)
@pytest.mark.parametrize("window", [(HOUR, HOUR + 7200), (HOUR + 3500, HOUR + 3650)], ids=["all", "part"])
def test_every_verb_says_the_same(stores, question, window):
    asked = [*question, "--from", str(window[0]), "--to", str(window[1])]
    before = say(stores[0], *asked)
    assert say(stores[1], *asked) == before
    assert before[1] or before[0], before


def test_status_says_the_same_of_its_recordings(stores):
    before, after = (json.loads(say(s, "status", "--json")[1])["rows"] for s in stores)
    assert after == before and {row["named_share"] for row in after} == {1.0, None}


def test_status_knows_of_a_packed_day_what_has_no_name(tmp_path):
    """By what was counted when it was packed: of its last hour."""
    path = str(tmp_path / "store")
    lines = build(HOUR + 3300, 0, 4000)
    put(path, lines)
    with sqlite3.connect(files(path)[0]) as db:
        db.execute("UPDATE frame SET function = 0 WHERE function IN (SELECT id FROM function WHERE name = 'spin')")
        spin, every = (db.execute("SELECT sum(x.n) FROM sample x JOIN series e ON e.id = x.series JOIN stack k ON k.id = e.stack JOIN frame r ON r.id = k.leaf "
                                  f"WHERE x.ts > (SELECT max(ts) FROM sample) - 3600 {and_}").fetchone()[0] for and_ in ("AND r.function = 0", ""))
    put(path, [{"run": "cpu", "from": HOUR, "to": HOUR + 1, "period_ns": 10101010}])
    seal(path)
    assert "frame" in packed(files(path)[0])
    shares = [row["named_share"] for row in json.loads(say(path, "status", "--json")[1])["rows"] if row["samples"]]
    assert spin > 50 and len(shares) == 1 and abs(shares[0] - (1 - spin / every)) < 0.001


@pytest.mark.long
@pytest.mark.parametrize("n", range(len(ASKED)))
def test_each_query_of_the_document_is_the_same(stores, n):
    plain, day = (files(s)[0] for s in stores)
    for query in filter(str.strip, whole(ASKED[n]).split(";")):
        before = rows(sonde(plain, query))
        assert rows(sonde(day, query)) == before
        assert rows(loaded(day, query)) == before


@pytest.mark.parametrize("name", NAMED)
def test_each_query_that_ships_is_the_same(stores, name):
    plain, day = (files(s)[0] for s in stores)
    text = open(os.path.join(os.path.dirname(__file__), "..", "..", "tools", "sql", "queries", name + ".sql"), encoding="utf-8").read()
    some = ["n=100000"] if ":n" in text else []
    before = sonde(plain, f"@{name}", *some)
    after = sonde(day, f"@{name}", *some)
    assert after[0] == before[0] and (before[0] or rows(after) == rows(before))


@pytest.mark.parametrize("query", [
    *(f"SELECT * FROM {t}" for t in LIKE), *TOLD, "SELECT max(id) AS n, min(id), count(*) FROM frame",
    "SELECT id FROM stack ORDER BY id DESC LIMIT 5", "SELECT * FROM task WHERE id BETWEEN 5 AND 9.5", "SELECT * FROM task WHERE id > 7 AND id <= '12'",
    "SELECT * FROM task WHERE tid = 1007", "SELECT pid, comm, start_ns FROM process WHERE pid IN (1001, 1002, 9, -1)",
    "SELECT count(*) FROM frame WHERE function = 3.5", "SELECT * FROM task WHERE process = 17 ORDER BY id DESC", "SELECT * FROM stack WHERE id = NULL",
    "SELECT * FROM function WHERE id = 9223372036854775807", "SELECT count(*) FROM frame WHERE rowid < 0 OR id > 1e6"])
def test_tables_are_what_they_were(stores, query):
    def asked(path, *extra):
        done = subprocess.run(["sqlite3", "-readonly", "-csv", *extra, path, query], capture_output=True, text=True, timeout=60)
        assert done.returncode == 0, done.stderr
        return done.stdout
    plain, day = (files(s)[0] for s in stores)
    before = asked(plain)
    assert sorted(asked(day, "-cmd", f".load {BIN}/../lib/sonde").split("\n")) == sorted(before.split("\n"))


def test_plain_sqlite3_says_what_it_lacks(stores):
    def by(path, sql):
        with sqlite3.connect(f"file:{path}?mode=ro", uri=True) as db:
            return sorted(db.execute(sql).fetchall())
    plain, day = (files(s)[0] for s in stores)
    for view in ("runs", "containers", "kinds"):
        assert by(day, f"SELECT * FROM {view}")
    for view in ("loss", "cost", "steal"):
        assert by(day, f"SELECT * FROM {view}") == by(plain, f"SELECT * FROM {view}")
    for view in ("cpu_samples", "functions_top", "stacks", "frames", "processes"):
        with pytest.raises(sqlite3.OperationalError, match="no such module: sonde_packed"):
            by(day, f"SELECT * FROM {view}")


def test_a_day_that_has_no_room_as_rows_is_left_and_another_file_of_it_begun(stores, tmp_path):
    plain, sealed = str(tmp_path / "plain"), str(tmp_path / "plain-sealed")
    shutil.copytree(stores[0], plain)
    put(plain, build(HOUR + 5000, 3))
    os.remove(files(plain)[1])
    put(plain, [{"run": "cpu", "from": HOUR + 9000, "to": HOUR + 9001, "period_ns": 10101010}])
    shutil.copytree(stores[1], sealed)
    os.remove(files(sealed)[1])
    for path in files(plain)[1:]:
        shutil.copy(path, sealed)
    room = os.path.getsize(files(plain)[0])  # what its rows took, and no more
    seal(sealed, "--room", str(room))
    names = [os.path.basename(f)[17:21] for f in files(sealed)]
    assert names[:2] == ["d001", "d002"] and len(names) == 3, files(sealed)
    for question in (["export", "folded"], ["ps", "--json"], ["timeline", "--json"]):
        asked = [*question, "--from", str(HOUR), "--to", str(HOUR + 4 * 3600)]
        before, after = say(plain, *asked), say(sealed, *asked)
        assert sorted(after[1].split("\n")) == sorted(before[1].split("\n")) and after[0] == before[0] == 0


def test_more_of_the_day_goes_into_it(stores, tmp_path):
    plain, sealed = str(tmp_path / "plain"), str(tmp_path / "plain-sealed")
    shutil.copytree(stores[0], plain)
    for nth in (1, 2):
        put(plain, build(HOUR + 3600 * nth + 900, nth))
    os.remove(files(plain)[1])  # the one that made the first one a finished one
    put(plain, [{"run": "cpu", "from": HOUR + 9000, "to": HOUR + 9001, "period_ns": 10101010}])
    shutil.copytree(stores[1], sealed)
    os.remove(files(sealed)[1])
    for path in files(plain)[1:]:
        shutil.copy(path, sealed)
    seal(sealed)
    assert len(files(sealed)) == 2 and len(files(plain)) == 4 and packed(files(sealed)[0])
    for question in (["export", "folded"], ["ps", "--json"], ["timeline", "--json"], ["lines", "f7"]):
        asked = [*question, "--from", str(HOUR), "--to", str(HOUR + 4 * 3600)]
        before, after = say(plain, *asked), say(sealed, *asked)
        assert sorted(after[1].split("\n")) == sorted(before[1].split("\n")) and after[0] == before[0] == 0


def change(path, to, rnd):
    """Breaks a column: cuts it, turns a bit of it, or puts something else there."""
    shutil.copy(path, to)
    with sqlite3.connect(to) as db:
        number, data = rnd.choice(db.execute("SELECT id, data FROM packed_column").fetchall())
        how = rnd.randrange(3)
        if how == 0:
            data = data[:rnd.randrange(len(data))]
        elif how == 1:
            data = bytearray(data)
            data[rnd.randrange(len(data))] ^= 1 << rnd.randrange(8)
        else:
            data = rnd.randbytes(rnd.randrange(1, 200))
        db.execute("UPDATE packed_column SET data = ? WHERE id = ?", (bytes(data), number))
    return to


@pytest.mark.long
def test_a_damaged_column_is_an_error(stores, tmp_path):
    rnd, refused = random.Random(3), 0
    day = files(stores[1])[0]
    for n in range(40):
        path = change(day, str(tmp_path / os.path.basename(day)), rnd)
        done = subprocess.run([os.path.join(BIN, "sonde"), "stacks", "--store", path, "--from", str(HOUR), "--to", str(HOUR + 7200)], capture_output=True, text=True,
                              timeout=60)
        assert done.returncode in (0, 4, 6), done
        if done.returncode == 6:
            assert "damaged" in done.stderr, done.stderr
            refused += 1
        assert sonde(path, "SELECT count(*), max(container), max(thread), max(function) FROM cpu_samples")[0] in (0, 2, 6)
        assert loaded(path, "SELECT count(*), max(folded) FROM stacks")[0] >= 0
    assert refused > 12
    for sql in ("UPDATE packed_table SET rows = 1 << 40", "UPDATE packed_table SET rows = rows - 1", "DELETE FROM packed_column WHERE number = 0",
                "UPDATE packed_column SET type = 'TEXT'", "DELETE FROM packed_table", "UPDATE packed_column SET data = (SELECT data FROM packed_column LIMIT 1)"):
        path = str(tmp_path / os.path.basename(day))
        shutil.copy(day, path)
        with sqlite3.connect(path) as db:
            db.execute(sql)
        code, _, said = say(path, "stacks", "--from", str(HOUR), "--to", str(HOUR + 7200))
        assert code == 6 and "damaged" in said, (sql, said)
