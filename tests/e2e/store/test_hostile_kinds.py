# SPDX-License-Identifier: Apache-2.0
"""More stores that strangers made: what SQLite lets a file be, and what a file system lets a name be. Each verb that reads ends in time; where it
refuses, it says which file and why, and the file stays as it is to the byte."""
import glob
import os
import shutil
import sqlite3
import subprocess
import time

import pytest
from conftest import BIN, BUILD, need
from test_hostile_stores import ENDLESS, LATER, VERBS as ALL, ask, change, only

LIMIT = 20
VERBS = (ALL[0], ALL[1], ALL[6])  # status, stacks, sql: each opens files in its own way; tests/e2e/store/test_hostile_stores.py asks all


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    program = os.path.join(BUILD, "tests", "makestore")
    need("build/tests/makestore", program)
    folder = str(tmp_path_factory.mktemp("kinds") / "s")
    subprocess.run([program, folder, "--rows", "2000"], check=True, stdout=subprocess.DEVNULL)
    return folder


@pytest.fixture(scope="module")
def archived(tmp_path_factory):
    program = os.path.join(BUILD, "tests", "makestore")
    folder = str(tmp_path_factory.mktemp("archived") / "s")
    subprocess.run([program, folder, "--rows", "30000", "--segments", "2"], check=True, stdout=subprocess.DEVNULL)
    subprocess.run([os.path.join(BIN, "sonde-seal"), "--store", folder, "--quiet"], check=True)
    for path in sorted(glob.glob(f"{folder}/2*.db"))[1:]:
        os.unlink(path)
    return folder


@pytest.fixture
def store(made, tmp_path):
    return shutil.copytree(made, str(tmp_path / "s"))


def bytes_of(store):
    return {p: open(p, "rb").read(1 << 24) for p in glob.glob(f"{store}/2*.db") if os.path.isfile(p)}


def each(store, wants, *says):
    """Every reading verb ends in time, with the exit status and words that are wanted."""
    before = bytes_of(store)
    for verb in VERBS:
        began = time.monotonic()
        code, said = ask(store, verb)
        assert time.monotonic() - began < LIMIT, (verb, "too long")
        assert code in wants, (verb, code, said)
        if code == 6:
            assert all(s in said for s in (b".db", *says)), (verb, said)
    assert before == bytes_of(store)


def sums(store):
    return ask(store, ["sql", "--csv", "select sum(samples) from cpu_samples"])[1].split()[-1]


# ---- names ----

@pytest.mark.parametrize("end", ["-wal", "-shm", "-journal"])
@pytest.mark.parametrize("make", [os.mkfifo, os.mkdir, lambda p: os.symlink("/dev/zero", p), lambda p: os.symlink("/etc/passwd", p)],
                         ids=["fifo", "folder", "zero", "link"])
def test_what_is_no_file_beside_a_segment_is_refused(store, make, end):
    make(only(store) + end)
    each(store, {6}, b"is not a regular file")


def test_a_file_with_two_names_counts_once(store):
    before = sums(store)
    os.link(only(store), f"{store}/{LATER}")
    assert sums(store) == before
    each(store, {0, 4})


def test_a_large_sparse_file_is_no_segment(store):
    with open(f"{store}/{LATER}", "wb") as f:
        f.truncate(1 << 41)
    each(store, {0, 4, 6})


def test_a_segment_that_ends_in_a_large_hole_is_read(store):
    before, path = sums(store), only(store)
    os.truncate(path, 1 << 40)
    for verb in VERBS:
        began = time.monotonic()
        code, said = ask(store, verb)
        assert code in (0, 4, 6) and time.monotonic() - began < LIMIT, (verb, said)
        if code == 6:
            assert os.path.basename(path).encode() in said
    assert sums(store) == before or ask(store, VERBS[-1])[0] == 6


# ---- what SQLite keeps ----

@pytest.mark.parametrize("script", [
    "CREATE TABLE more(a INTEGER, b TEXT GENERATED ALWAYS AS (hex(zeroblob(1000000000))) VIRTUAL)",
    "CREATE TABLE more(a INTEGER, b AS/* */(printf('%.*c', 1000000000, 'x')) STORED)",
    "CREATE TABLE more([\"] INTEGER, b AS (hex(zeroblob(1000000000))), c TEXT DEFAULT '\"')",
    "CREATE TABLE more(a INTEGER, b AS\f(hex(zeroblob(1000000000))))",
    "CREATE INDEX more ON process(hex(zeroblob(100000000)))",
    "CREATE TRIGGER more INSTEAD OF INSERT ON runs BEGIN DELETE FROM run; END",
    "CREATE TRIGGER more AFTER INSERT ON sample BEGIN INSERT INTO sample SELECT * FROM sample; END",
    f"CREATE VIEW \"more\nrun\" AS {ENDLESS} SELECT x FROM c",
    f"CREATE VIEW \"\x1b[31mred\" AS {ENDLESS} SELECT x FROM c"], ids=["generated", "stored", "brackets", "feed", "index", "instead", "insert", "view", "escape"])
def test_what_would_run_when_it_is_read_or_written_is_refused(store, script):
    change(store, script)
    each(store, {6}, b"another program has changed")
    assert b"\x1b" not in ask(store, VERBS[0])[1]


def of_schema(store, text, to):
    """Writes over the statements that the file keeps, as no statement could."""
    for path in glob.glob(f"{store}/2*.db"):
        db = sqlite3.connect(path, isolation_level=None)
        db.execute("PRAGMA writable_schema = 1")
        done = db.execute("UPDATE sqlite_schema SET sql = replace(sql, ?, ?) WHERE sql LIKE '%' || ? || '%'", (text, to, text)).rowcount
        db.close()
        assert done > 0, text


@pytest.mark.parametrize("text, to", [
    ("comm TEXT NOT NULL", "comm TEXT COLLATE nowhere NOT NULL"),
    ("comm TEXT NOT NULL", "comm TEXT NOT NULL CHECK(length(hex(zeroblob(1000000000))) > 0)"),
    ("comm TEXT NOT NULL", "comm TEXT NOT NULL DEFAULT (hex(zeroblob(1000000000)))"),
    ("CREATE TABLE run(", "CREATE TABLE ruin("),
    ("CREATE TABLE process(", "CREATE VIRTUAL TABLE process USING sonde_packed; ("),
    ("CREATE TABLE process(", "CREATE TABLE process AS SELECT (")], ids=["collation", "check", "default", "name", "virtual", "select"])
def test_statements_that_were_written_over_end_in_an_answer_or_a_refusal(store, text, to):
    of_schema(store, text, to)
    each(store, {0, 4, 6})


@pytest.mark.parametrize("at, value", [(16, b"\x00\x03"), (16, b"\xff\xff"), (18, b"\x07\x07"), (20, b"\xff"), (24, b"\xff" * 8), (28, b"\xff" * 4), (32, b"\xff" * 8),
                                       (44, b"\x00\x00\x00\x09"), (56, b"\x00\x00\x00\x07"), (100, b"\x05\xff\xff\xff\xff"), (105, b"\xff" * 60)],
                         ids=["page-3", "page-65535", "versions", "reserved", "count", "pages", "free", "format", "encoding", "root", "cells"])
def test_a_header_that_lies_ends_in_an_answer_or_a_refusal(store, at, value):
    with open(only(store), "r+b") as f:
        f.seek(at)
        f.write(value)
    each(store, {0, 4, 6})


def test_a_log_of_another_file_ends_in_an_answer_or_a_refusal(store, tmp_path):
    other = sqlite3.connect(tmp_path / "other.db", isolation_level=None)
    other.execute("PRAGMA journal_mode = WAL")
    other.execute("CREATE TABLE run(x)")
    other.execute("INSERT INTO run SELECT randomblob(3000) FROM (WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c LIMIT 300) SELECT x FROM c)")
    shutil.copy(tmp_path / "other.db-wal", only(store) + "-wal")
    with open(only(store), "r+b") as f:  # it says that it has a log
        f.seek(18)
        f.write(b"\x02\x02")
    each(store, {0, 4, 6})
    other.close()


# ---- archives ----

def keeps(store, statements):
    """An archive's views are a packed table, which only its own module could change: a table of that name, with rows."""
    db = sqlite3.connect(only(store), isolation_level=None)
    db.execute("PRAGMA writable_schema = 1")
    db.execute("UPDATE sqlite_schema SET type = 'view', rootpage = 0, sql = 'CREATE VIEW ' || name || ' AS SELECT 1' WHERE sql LIKE 'CREATE VIRTUAL%'")
    db.execute("DELETE FROM sqlite_schema WHERE name = 'packed_view'")
    db.close()
    db = sqlite3.connect(only(store), isolation_level=None)
    db.execute("CREATE TABLE packed_view(id INTEGER PRIMARY KEY, name TEXT, sql TEXT)")
    db.executemany("INSERT INTO packed_view(name, sql) VALUES (?, ?)", statements)
    db.execute("PRAGMA writable_schema = 1")
    db.execute("UPDATE sqlite_schema SET type = 'table', sql = 'CREATE VIRTUAL TABLE \"' || name || '\" USING sonde_packed' WHERE sql LIKE 'CREATE VIEW % AS SELECT 1'")
    db.close()


@pytest.mark.parametrize("statement", [
    ("more", f"CREATE VIEW more AS {ENDLESS} SELECT x FROM c"), ("runs", "CREATE VIEW runs AS SELECT randomblob(1000000000) AS x"),
    ("runs", "CREATE VIEW runs AS SELECT 1; CREATE TRIGGER t AFTER INSERT ON run BEGIN DELETE FROM run; END"),
    ("run", f"CREATE TEMP VIEW run AS {ENDLESS} SELECT x AS id FROM c")], ids=["view", "large", "trigger", "temp"])
def test_an_archive_that_keeps_what_is_not_ours_is_refused(archived, tmp_path, statement):
    store = shutil.copytree(archived, str(tmp_path / "s"))
    keeps(store, [statement])
    each(store, {0, 4, 6})
    code, said = ask(store, ["sql", "select count(*) from runs"])
    assert code == 6 and b"another program has changed" in said, said


@pytest.mark.parametrize("script", ["UPDATE packed_table SET rows = 1 << 40", "DELETE FROM packed_table", "UPDATE packed_block SET data = zeroblob(100)",
                                    "UPDATE packed_block SET data = randomblob(5000)", "DELETE FROM packed_column",
                                    "DELETE FROM packed_block", "UPDATE packed_block SET first = 9223372036854775807, last = -1", "UPDATE packed_table SET block_rows = -1"],
                         ids=["rows", "no-tables", "zeros", "noise", "no-columns", "no-blocks", "ranges", "block-rows"])
def test_columns_of_an_archive_that_lie_end_in_an_answer_or_a_refusal(archived, tmp_path, script):
    store = shutil.copytree(archived, str(tmp_path / "s"))
    db = sqlite3.connect(only(store))
    try:
        db.executescript(script)
    except sqlite3.OperationalError as e:
        pytest.fail(f"the archive has other columns: {e}")
    finally:
        db.close()
    each(store, {0, 4, 6})


# ---- numbers ----

@pytest.mark.parametrize("script", [
    "UPDATE meta SET value = 9223372036854775807 WHERE key = 't0'", "UPDATE meta SET value = 'abc' WHERE key = 't0'",
    "UPDATE meta SET value = -9223372036854775808 WHERE key = 't0'", "UPDATE meta SET value = 1e300 WHERE key = 't0'",
    "UPDATE meta SET value = '1e5' WHERE key = 'schema_version'", "UPDATE meta SET value = zeroblob(10000000) WHERE key = 'host'",
    "UPDATE run SET bucket_s = 0", "UPDATE run SET bucket_s = 9223372036854775807", "UPDATE run SET from_ns = 9223372036854775807",
    "UPDATE run SET to_ns = 9223372036854775807", "UPDATE run SET from_ns = -9223372036854775808", "UPDATE run SET period_ns = 0",
    "UPDATE run SET period_ns = -1", "UPDATE process SET start_ns = 9223372036854775807, end_ns = 1", "UPDATE process SET pid = -1",
    "UPDATE sample SET n = 9223372036854775807", "UPDATE process SET comm = CAST(zeroblob(10000000) AS TEXT)",
    "UPDATE process SET args = CAST(x'ff1b5d303b' AS TEXT)"],
    ids=["t0-max", "t0-text", "t0-min", "t0-real", "schema", "host", "bucket-0", "bucket-max", "from-max", "to-max", "from-min", "period-0", "period-minus",
         "start", "pid", "samples", "comm", "args"])
def test_numbers_out_of_range_end_in_an_answer_or_a_refusal(store, script):
    for path in glob.glob(f"{store}/2*.db"):
        db = sqlite3.connect(path)
        try:
            db.executescript(script)
        except sqlite3.Error as e:
            pytest.skip(f"SQLite refuses to store it: {e}")
        finally:
            db.close()
    each(store, {0, 1, 4, 6})
    assert b"\x1b" not in ask(store, ["ps"])[1]
