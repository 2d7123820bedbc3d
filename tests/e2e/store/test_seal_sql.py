# SPDX-License-Identifier: Apache-2.0
"""SQL over archives: each documented query and each @query says the same as of the segments, in `sonde sql` and in sqlite3 with the
extension, of one file and of a store that has both; only blocks of the time that is asked are read; damage is an error."""
import csv
import io
import os
import random
import re
import shutil
import sqlite3
import subprocess

import pytest

from conftest import BIN, BUILD, ROOT, need
from test_schema_doc import QUERIES
from test_seal import T, archive_all, files, lines, mixed, packed, put, seal, two  # noqa: F401 (fixtures)

EXTENSION = os.path.join(BUILD, "lib", "sonde.so")
HOUR = T // 3600 * 3600
NAMED = sorted(n[:-4] for n in os.listdir(os.path.join(ROOT, "tools", "sql", "queries")) if n.endswith(".sql"))
ASKED = [q for q in QUERIES if "FROM packed_table" not in q]
IDS = re.compile(r"^(id|.*_id|process|run)$")


def captures(at):
    """Two captures at once: one of the host by ten seconds, a narrower and finer one inside it; then another rate."""
    stack = ["main", ["spin", "spin.c", 3]]
    return [{"run": "cpu", "from": at, "to": at + 200, "bucket_s": 10, "period_ns": 50000000, "recording": 91},
            *({"kind": "cpu", "at": at + s, "n": 40 + s % 7, "pid": pid, "comm": "spinner", "stack": stack}
              for s in range(0, 200, 10) for pid in (300, 301)),
            {"run": "cpu", "from": at + 45, "to": at + 105, "bucket_s": 1, "period_ns": 10101010, "recording": 92},
            *({"kind": "cpu", "at": at + s, "n": 99, "pid": 300, "comm": "spinner", "stack": stack} for s in range(45, 105))]


@pytest.fixture(scope="module")
def one(tmp_path_factory):
    """One segment of several hours, and its archive."""
    plain = str(tmp_path_factory.mktemp("sealsql") / "plain")
    put(plain, [*lines(HOUR + 10, 0), *captures(HOUR + 3500), *lines(HOUR + 7300, 1)])
    put(plain, [{"run": "cpu", "from": HOUR, "to": HOUR + 1, "period_ns": 10101010}])
    return files(plain)[0], files(archive_all(plain))[0]


BLOCK_ROWS = 16384  # schema/store/packed/pack_table.c


@pytest.fixture(scope="module")
def long(tmp_path_factory):
    """An hour whose samples and waits take several blocks each, and its archive."""
    plain = str(tmp_path_factory.mktemp("blocks") / "plain")
    who = [{"pid": 400 + i, "comm": f"c{i}", "thread": f"c{i}"} for i in range(20)]
    out = [{"run": "cpu", "from": HOUR, "to": HOUR + 3600, "bucket_s": 1, "period_ns": 10101010, "recording": 5}]
    out += [{"kind": "cpu", "at": HOUR + s, "n": 1 + (s + i) % 3, "stack": ["main", f"f{i}"], **who[i]} for s in range(3600) for i in range(13)]
    out += [{"run": "offcpu", "from": HOUR, "to": HOUR + 3600, "bucket_s": 1, "recording": 5}]
    out += [{"wait": 2, "n": 1 + (s + i) % 3, "total_ns": 1000 + s, "max_ns": 900, "at": HOUR + s, **who[i]} for s in range(3600) for i in range(10)]
    put(plain, out)
    put(plain, [{"run": "cpu", "from": HOUR + 4000, "to": HOUR + 4001, "period_ns": 10101010}])
    pair = files(plain)[0], files(archive_all(plain))[0]
    with sqlite3.connect(f"file:{pair[1]}?mode=ro", uri=True) as db:
        assert dict(db.execute("SELECT t.name, count(*) FROM packed_table t JOIN packed_column c ON c.\"table\" = t.name AND c.number = 0 JOIN packed_block b"
                               " ON b.id >> 20 = c.id WHERE t.name IN ('sample', 'wait_row') GROUP BY 1")) == {"sample": 3, "wait_row": 3}
    return pair


def sonde(store, *words):
    done = subprocess.run([os.path.join(BIN, "sonde"), "sql", "--csv", "--store", store, *words], capture_output=True, text=True,
                          timeout=60)
    return done.returncode, done.stdout, done.stderr


def loaded(path, query):
    need("sqlite3")
    done = subprocess.run(["sqlite3", "-readonly", "-csv", "-header", "-cmd", f".load {EXTENSION[:-3]}", path, query],
                          capture_output=True, text=True, timeout=60)
    return done.returncode, done.stdout, done.stderr


def rows(answer):
    """Sorted, without what is numbered anew in each file."""
    code, out, said = answer
    assert code == 0, said
    return sorted(tuple((k, v) for k, v in r.items() if not IDS.match(k)) for r in csv.DictReader(io.StringIO(out)))


def whole(query):
    """All rows: which of equal ones a limit leaves is nobody's promise."""
    return re.sub(r"LIMIT \d+", "LIMIT 1000000", query)


def whatever_the_files(query):
    """Ids and dictionaries are of one file: what goes by them tells the parts of a process in several files apart."""
    return not re.search(r"_id\b|\bid\b", query) and re.search("FROM (cpu_samples|sonde_totals|sonde_steps|waits?|wait_totals|runqueue|neighbours|wakers|wait_objects"
                                                                "|standing|throttling|steal|loss|cost|process_ends|functions_top|lines_top|unwinding)\\b", query)


# every fourth in the everyday tests (make long-capture has all): they differ in what they ask, not in how it is read
@pytest.mark.parametrize("n", [pytest.param(n, marks=pytest.mark.long) if n % 4 else n for n in range(len(ASKED))])
def test_each_query_of_the_document_is_the_same(one, two, mixed, n):  # noqa: F811
    for query in filter(str.strip, whole(ASKED[n]).split(";")):
        before = rows(sonde(one[0], query))
        assert rows(sonde(one[1], query)) == before
        assert rows(loaded(one[0], query)) == before
        assert rows(loaded(one[1], query)) == before
        if whatever_the_files(query):
            assert rows(sonde(two[1], query)) == rows(sonde(mixed, query)) == rows(sonde(two[0], query))


@pytest.mark.parametrize("name", NAMED)
def test_each_query_that_ships_is_the_same(one, two, mixed, name):  # noqa: F811
    text = open(os.path.join(ROOT, "tools", "sql", "queries", name + ".sql"), encoding="utf-8").read()
    some = ["n=100000"] if ":n" in text else []
    part = [f"from={HOUR + 3540}", f"to={HOUR + 3555}"] if ":from" in text else []
    before = sonde(one[0], f"@{name}", *some)
    assert rows(sonde(one[1], f"@{name}", *some)) == rows(before)
    assert rows(sonde(one[1], f"@{name}", *some, *part)) == rows(sonde(one[0], f"@{name}", *some, *part))
    if whatever_the_files(text):
        assert rows(sonde(two[1], f"@{name}", *some)) == rows(sonde(mixed, f"@{name}", *some)) == rows(sonde(two[0], f"@{name}", *some))


def test_the_view_has_the_columns_of_the_file_s(one):
    def columns(path, schema):
        return rows(loaded(path, f"SELECT name, cid FROM pragma_table_info('cpu_samples', '{schema}')"))
    assert columns(one[1], "temp") == columns(one[0], "main")


@pytest.mark.parametrize("window", [(0, 1 << 40), (HOUR + 3540, HOUR + 3551), (HOUR + 3600, HOUR + 3601), (HOUR + 20.5, HOUR + 31.5)])
def test_totals_are_the_sums_of_the_view(one, two, mixed, window):  # noqa: F811
    asked = f"WHERE ts >= {window[0]} AND ts < {window[1]}"
    sums = "sum(samples) AS n, sum(cpu_ns) AS ns"
    for plain, *others in (one, (*two, mixed)):
        want = rows(sonde(plain, f"SELECT {sums} FROM cpu_samples {asked}"))
        for store in (plain, *others):
            assert rows(sonde(store, f"SELECT {sums} FROM sonde_totals{window}")) == want
            assert rows(sonde(store, f"SELECT {sums} FROM sonde_samples {asked} AND counts = 1")) == want
    by = "SELECT p.comm, p.pid, {0} FROM {1} x JOIN processes p ON p.id = x.process_id {2} GROUP BY 1, 2"
    want = rows(sonde(two[0], by.format(sums, "cpu_samples", asked)))
    assert rows(sonde(two[1], by.format(sums, f"sonde_totals{window}", ""))) == want


@pytest.mark.parametrize("window", [(0, 1 << 40), (HOUR + 3540, HOUR + 3551)])
def test_totals_have_the_names_of_the_view_and_when_they_were_seen(one, two, mixed, window):  # noqa: F811
    names = "container, comm, pid, thread, tid, self, function, module, file, line"
    asked = f"SELECT {names}, sum(samples), sum(cpu_ns), {{}} GROUP BY {', '.join(map(str, range(1, 11)))} ORDER BY {names}"
    view = f"min(ts) AS first, max(ts) AS last FROM cpu_samples WHERE ts >= {window[0]} AND ts < {window[1]}"
    some = []
    for plain, *others in (one, (*two, mixed)):
        want = rows(sonde(plain, asked.format(view)))
        some += want
        for store in (plain, *others):
            assert rows(sonde(store, asked.format(f"min(first_ts) AS first, max(last_ts) AS last FROM sonde_totals{window}"))) == want
    assert some


@pytest.mark.parametrize("window", [(0, 1 << 40), (HOUR + 3540, HOUR + 3551), (HOUR + 20.5, HOUR + 31.5)])
@pytest.mark.parametrize("step", [1, 7, 60, 3600])
def test_steps_are_the_sums_of_the_view_by_thread_and_step(one, two, mixed, step, window):  # noqa: F811
    names = "container, comm, pid, thread, tid, self"
    asked = f"SELECT {{}} AS at, {names}, sum(samples) AS n, sum(cpu_ns) AS ns FROM {{}} GROUP BY {', '.join(map(str, range(1, 8)))}"
    view = asked.format(f"ts - ts % {step}", f"cpu_samples WHERE ts >= {window[0]} AND ts < {window[1]}")
    some = []
    for plain, *others in (one, (*two, mixed)):
        want = rows(sonde(plain, view))
        some += want
        for store in (plain, *others):
            assert rows(sonde(store, asked.format("ts", f"sonde_steps({step}, {window[0]}, {window[1]})"))) == want
    assert rows(loaded(one[1], asked.format("ts", f"sonde_steps({step})"))) == rows(loaded(one[0], asked.format(f"ts - ts % {step}", "cpu_samples")))
    assert some


def test_a_thread_has_one_row_in_a_step(one):
    again = "SELECT ts, task_id, count(*) AS n FROM sonde_steps(60) GROUP BY 1, 2 HAVING n > 1"
    for store in one:
        assert rows(sonde(store, again)) == [] and len(rows(sonde(store, "SELECT * FROM sonde_steps(60)"))) > 10


def test_the_frames_of_a_stack_are_those_of_the_view(one, two, mixed):  # noqa: F811
    view = "SELECT stack_id, depth, function, line, offset, inlined FROM stack_frames WHERE stack_id IN (SELECT stack_id FROM cpu_samples)"
    native = ("SELECT k.stack_id, k.depth, f.function, f.line, f.offset, f.inlined FROM (SELECT DISTINCT stack_id FROM cpu_samples) s, "
              "sonde_frames(s.stack_id) k JOIN frames f ON f.id = k.frame_id")
    for store in (*one, *two, mixed):
        want = rows(sonde(store, view))
        assert want and rows(sonde(store, native)) == want


def break_block(path, table, column, how):
    """The last block of a column."""
    with sqlite3.connect(path) as db:
        number, data = db.execute("SELECT b.id, b.data FROM packed_column c JOIN packed_block b ON b.id >> 20 = c.id WHERE c.\"table\" = ? AND c.name = ?"
                                  " ORDER BY 1 DESC LIMIT 1", (table, column)).fetchone()
        db.execute("UPDATE packed_block SET data = ? WHERE id = ?", (how(data), number))


BREAKS = {"cut": lambda d: d[:len(d) // 2], "empty": lambda d: b"", "random": lambda d: random.Random(7).randbytes(len(d)), "large": lambda d: b"\x01" + b"\xff" * 40}


@pytest.mark.parametrize("column", ["ts", "series", "n"])
@pytest.mark.parametrize("how", BREAKS)
def test_only_the_blocks_of_the_time_asked_are_read_and_damage_is_an_error(long, tmp_path, how, column):
    path = str(tmp_path / os.path.basename(long[1]))
    shutil.copy(long[1], path)
    break_block(path, "sample", column, BREAKS[how])
    early = f"SELECT count(*) AS n, sum(samples) AS samples FROM cpu_samples WHERE ts < {HOUR + 1200}"
    assert rows(sonde(path, early)) == rows(sonde(long[0], early)) == rows(loaded(path, early))
    for verb in (["stacks", "--json"], ["ps", "--json"], ["timeline", "--json"]):
        def asked(store, to):
            done = subprocess.run([os.path.join(BIN, "sonde"), *verb, "--store", store, "--from", str(HOUR), "--to", str(to)], capture_output=True, text=True,
                                  timeout=60)
            return done.returncode, done.stdout, done.stderr
        assert asked(path, HOUR + 1200)[:2] == asked(long[0], HOUR + 1200)[:2]
        code, _, said = asked(path, HOUR + 3600)
        assert code == 6 and "damaged" in said, said
    for table in ("cpu_samples", "sonde_totals", "sonde_steps(60)", "sample x JOIN (SELECT 1 AS samples)"):
        code, _, said = sonde(path, f"SELECT sum({column if 'sample x' in table else 'samples'}) FROM {table}")
        assert code == 6 and "damaged" in said, said
        code, _, said = loaded(path, f"SELECT sum(samples) FROM {table}") if "sample x" not in table else (1, "", "damaged")
        assert code > 0 and "damaged" in said, said


@pytest.mark.parametrize("how", BREAKS)
def test_of_waits_too_only_the_blocks_of_the_time_asked_are_read(long, tmp_path, how):
    path = str(tmp_path / os.path.basename(long[1]))
    shutil.copy(long[1], path)
    break_block(path, "wait_row", "total_ns", BREAKS[how])

    def asked(store, to):
        done = subprocess.run([os.path.join(BIN, "sonde"), "waits", "--json", "--store", store, "--from", str(HOUR), "--to", str(to)], capture_output=True,
                              text=True, timeout=60)
        return done.returncode, done.stdout, done.stderr
    assert asked(path, HOUR + 1200)[:2] == asked(long[0], HOUR + 1200)[:2]
    code, _, said = asked(path, HOUR + 3600)
    assert code == 6 and "damaged" in said, said


IN_ROWS = ("UPDATE series SET id = 4000000000 WHERE id = 1", "UPDATE series SET task = 4000000000", "DELETE FROM series",
           "UPDATE task SET id = 1 << 62 WHERE id = 1", "UPDATE stack SET base = id, keep = 1 << 40",
           "UPDATE stack SET tail = '1,,x' WHERE id % 2", "UPDATE frame SET outer = id", "UPDATE sample SET series = -1 WHERE n = 1")
IN_THE_ARCHIVE = ("DELETE FROM packed_block WHERE id >> 20 IN (SELECT id FROM packed_column WHERE \"table\" = 'packed_view')", "UPDATE meta SET value = 1 << 61 WHERE key = 't0'", "DROP TABLE packed_block", "DELETE FROM packed_column",
                  "UPDATE packed_block SET first = first - 5", "UPDATE packed_block SET last = 1 << 62", "UPDATE packed_table SET block_rows = 7")


@pytest.mark.parametrize("sql", IN_ROWS + IN_THE_ARCHIVE)
def test_a_dictionary_that_does_not_fit_is_an_error_or_fewer_rows(one, tmp_path, sql):
    """Also where the segment had it so before it was archived."""
    store = str(tmp_path / "store")
    os.mkdir(store)
    path = shutil.copy(one[sql in IN_THE_ARCHIVE], store)
    with sqlite3.connect(path) as db:
        db.execute(sql)
    if sql in IN_ROWS:
        put(store, [{"run": "cpu", "from": HOUR, "to": HOUR + 1, "period_ns": 10101010}])
        assert seal(store)["segments"] == 1 and packed(path)
    for query in ("SELECT * FROM cpu_samples", "SELECT * FROM sonde_totals", "SELECT * FROM sonde_steps(60)", "SELECT f.* FROM stack k, sonde_frames(k.id) f"):
        assert loaded(path, query)[0] >= 0, (sql, query)  # no signal
        assert sonde(path, query)[0] in (0, 2, 6), (sql, query)
    for verb in ("stacks", "ps", "timeline", "flame"):
        done = subprocess.run([os.path.join(BIN, "sonde"), verb, "--json", "--store", path, "--from", str(HOUR), "--to", str(HOUR + 7200)],
                              capture_output=True, text=True, timeout=60)
        assert done.returncode in (0, 4, 6), done


def test_what_is_asked_wrongly_is_said(one):
    code, _, said = sonde(one[1], "SELECT * FROM sonde_frames")
    assert code == 2 and "sonde_frames(stack_id)" in said
    for width in ("", "(0)", "(-60)", "(NULL)", "('x')", "(0.0, 1)"):
        code, _, said = sonde(one[1], f"SELECT * FROM sonde_steps{width}")
        assert code == 2 and "sonde_steps(step_s, from, to)" in said, (width, said)
    assert rows(sonde(one[1], "SELECT * FROM sonde_totals('x', 'y')")) == rows(sonde(one[1], "SELECT * FROM sonde_steps(60, 'x')")) == []
