# SPDX-License-Identifier: Apache-2.0
"""`sonde sql`: four forms, limits, and nothing but reading. Oracles: Python's csv, json and sqlite3."""
import csv
import io
import json
import os
import shutil
import sqlite3
import subprocess
import time

import pytest
from conftest import BIN, BUILD, need, segments
from test_tool_frame import make_store

ALL = "select pid, comm, exe, args, container, cgroup, unit, start_ns from processes order by id"


@pytest.fixture(scope="module")
def hostile(tmp_path_factory):
    path = str(tmp_path_factory.mktemp("sql") / "store")
    return path, make_store(path, "--rows", 3000, "--hostile")


@pytest.fixture(scope="module")
def segmented(tmp_path_factory):
    path = str(tmp_path_factory.mktemp("sqlseg") / "store")
    return path, make_store(path, "--rows", 6000, "--segments", 3)


def make_segments(folder, n):
    """A store of n segments, one after the other in time, each of its own size."""
    path, samples = str(folder / "store"), 0
    os.mkdir(path)
    for i in range(n):
        alone = str(folder / f"alone-{i}")
        samples += make_store(alone, "--rows", 150 + 10 * i, "--at", 1780000000 + 1000 * i)["samples"]
        os.rename(segments(alone)[0], os.path.join(path, f"20260601T000000Z-{i + 1:04}.db"))
    return path, {"samples": samples}


@pytest.fixture(scope="module")
def many(tmp_path_factory):
    return make_segments(tmp_path_factory.mktemp("sqlmany"), 40)


@pytest.fixture(scope="module", params=[3, 11, 12])
def some(tmp_path_factory, request):
    """A few segments, as many as SQLite attaches to the newest, and one more."""
    return make_segments(tmp_path_factory.mktemp("sqlsome"), request.param)


def plain(path, query):
    """What SQLite itself says of the only segment."""
    db = sqlite3.connect(f"file:{segments(path)[0]}?mode=ro", uri=True)
    rows = db.execute(query).fetchall()
    db.close()
    return rows


def test_csv_is_what_another_csv_reader_reads(sonde, hostile):
    done = sonde("sql", "--csv", ALL, store=hostile[0], check=True)
    got = list(csv.reader(io.StringIO(done.stdout, newline=""), strict=True))
    assert got[0] == ["pid", "comm", "exe", "args", "container", "cgroup", "unit", "start_ns"]
    assert got[1:] == [["" if c is None else str(c) for c in row] for row in plain(hostile[0], ALL)]


@pytest.mark.parametrize("form", ["--json", "--ndjson"])
def test_json_holds_every_value(sonde, hostile, form):
    done = sonde("sql", form, ALL, store=hostile[0], check=True)
    rows = json.loads(done.stdout)["rows"] if form == "--json" else [json.loads(x) for x in done.stdout.splitlines()]
    assert [tuple(r.values()) for r in rows] == plain(hostile[0], ALL)


def test_a_box_shows_control_bytes_as_text(sonde, hostile):
    done = sonde("sql", "--box", "select function from functions", store=hostile[0], check=True)
    assert done.stdout.startswith("┌")
    assert all(c == "\n" or c >= " " for c in done.stdout)
    assert r"tab\x09newline\x0areturn\x0desc\x1b[31mred" in done.stdout
    lines = done.stdout.splitlines()
    assert lines[0][0] == "┌" and lines[-1][0] == "└" and all(x[0] in "│├" for x in lines[1:-1])


def test_types_come_through(sonde, hostile):
    query = "select 1 as i, 1.5 as f, null as n, x'00ff' as b, 'a\"b' as t, 9223372036854775807 as big"
    rows = json.loads(sonde("sql", "--json", query, store=hostile[0], check=True).stdout)["rows"]
    assert rows == [{"i": 1, "f": 1.5, "n": None, "b": "00ff", "t": 'a"b', "big": 2 ** 63 - 1}]
    assert sonde("sql", "--csv", query, store=hostile[0]).stdout == 'i,f,n,b,t,big\n1,1.5,,00ff,"a""b",9223372036854775807\n'


@pytest.mark.parametrize("query", [
    "delete from sample", "update meta set value = 1", "insert into meta values('x', 1)", "drop table sample",
    "create table x(a)", "create temp table x(a)", "attach '/etc/passwd' as p", "attach ':memory:' as p", "vacuum",
    "vacuum into '/tmp/sonde-test-vacuum.db'", "pragma journal_mode=delete", "pragma query_only=0", "begin; delete from sample",
    "select load_extension('x')", "pragma writable_schema=1", "reindex", "analyze", "select 1; drop table sample",
    "with x as (select 1) delete from sample", "pragma user_version=7", "detach main",
])
@pytest.mark.parametrize("which", ["hostile", "segmented", "many"])
def test_nothing_but_reading(sonde, request, which, query):
    path = request.getfixturevalue(which)[0]
    before = [open(f, "rb").read() for f in segments(path)]
    done = sonde("sql", query, store=path)
    assert done.returncode == 2, done.stdout + done.stderr
    assert done.stderr.startswith("sonde: ")
    assert [open(f, "rb").read() for f in segments(path)] == before
    assert not os.path.exists("/tmp/sonde-test-vacuum.db")


def test_a_query_that_never_ends_is_stopped(sonde, hostile):
    endless = "with recursive n(i) as (select 1 union all select i + 1 from n) select count(*) from n"
    done = sonde("sql", "--timeout", "1s", endless, store=hostile[0])
    assert done.returncode == 1 and "stopped after 1 s" in done.stderr and "--timeout" in done.stderr


def test_statements_come_from_a_pipe_too(hostile):
    def ask(text):
        return subprocess.run([f"{BIN}/sonde", "sql", "--csv", "--store", hostile[0]], input=text, capture_output=True,
                              text=True, check=False)
    done = ask("select 1 as a;\nselect 2\n  as b;\n-- nothing\nselect 'x;y' as c")
    assert (done.returncode, done.stdout) == (0, "a\n1\nb\n2\nc\nx;y\n")
    done = ask("select 1 as a;\nselct 2;\nselect 3;\n")
    assert done.returncode == 2 and done.stdout == "a\n1\n" and "selct" in done.stderr
    views = ask(".views\n").stdout.split()
    assert {"processes", "containers", "functions", "stacks", "stack_frames", "cpu_samples", "functions_top", "loss", "cost",
            "runs"} <= set(views)
    assert ask(".schema cpu_samples\n").stdout.startswith("CREATE VIEW cpu_samples AS\n")
    assert ask(".nonsense\n").returncode == 2


@pytest.mark.long
def test_several_segments_answer_as_one(sonde, some, sql):
    """Sums, joins by id and functions_top over the segments, against each segment asked alone."""
    path, said = some

    def ask(query):
        return json.loads(sonde("sql", "--json", query, store=path, check=True).stdout)["rows"]
    assert ask("select sum(samples) n from cpu_samples")[0]["n"] == said["samples"]
    for query in ("select container, sum(samples) n from cpu_samples group by 1",
                  "select function, module, max(file) f, sum(self) s, sum(total) t from functions_top group by 1, 2",
                  "select function, file, 'line ' || line l, module, sum(self) s, sum(total) t from lines_top group by 1, 2, 3, 4",
                  "select executable, module, reason, sum(samples) n from unwinding group by 1, 2, 3",
                  "select p.comm, sum(c.samples) n from cpu_samples c join processes p on p.id = c.process_id group by 1",
                  "select k.depth, sum(c.samples) n from cpu_samples c join stacks k on k.id = c.stack_id group by 1"):
        sums = {}
        for row in sql(path, query):
            key = tuple(v for v in row.values() if isinstance(v, str)) or (row.get("depth"),)
            numbers = [v for k, v in row.items() if isinstance(v, int) and k != "depth"]
            sums[key] = [a + b for a, b in zip(sums.get(key, [0] * len(numbers)), numbers)]
        got = {}
        for row in ask(query):
            key = tuple(v for v in row.values() if isinstance(v, str)) or (row.get("depth"),)
            got[key] = [v for k, v in row.items() if isinstance(v, int) and k != "depth"]
        assert got == sums, query


@pytest.mark.parametrize("which", ["segmented", pytest.param("many", marks=pytest.mark.long)])
def test_a_table_of_one_file_is_no_answer_of_several(sonde, request, which):
    path = request.getfixturevalue(which)[0]
    for sql in ("SELECT count(*) FROM sample", "SELECT value FROM meta", "SELECT p.comm FROM process p, processes q WHERE p.pid = q.pid"):
        done = sonde("sql", sql, store=path)
        assert done.returncode == 2 and "belongs to one file" in done.stderr and "export db" in done.stderr, sql
        assert not done.stdout
    assert sonde("sql", "WITH sample AS (SELECT 1 AS n) SELECT count(*) FROM kinds, processes", store=path).returncode == 0


def test_more_segments_than_are_held_open_answer_as_one(sonde, many):
    path, said = many
    done = sonde("sql", "--csv", "select sum(c.samples), count(distinct p.id >> 40) from cpu_samples c join processes p "
                 "on p.id = c.process_id", store=path, check=True)
    assert done.stdout.splitlines()[1] == f"{said['samples']},40"


COMPARISONS = ("=", "<", "<=", ">", ">=")


@pytest.mark.long
def test_a_comparison_finds_the_same_whether_it_is_passed_down_or_not(sonde, some):
    """What is passed down to the segments changes no answer: each query beside the same comparison in a sum over all rows,
    its column behind an expression, which SQLite decides by itself."""
    path, _ = some

    def ask(query):
        return json.loads(sonde("sql", "--json", query, store=path, check=True).stdout)["rows"]
    row = ask("select process_id, stack_id, ts, pid, comm from cpu_samples order by ts desc, process_id limit 1 offset 7")[0]
    comm = row["comm"]
    down, kept = {}, []
    for column, values in {"process_id": [row["process_id"], f"'{row['process_id']}'", float(row["process_id"]), 0,
                                          -1, "1e300", "'x'", "null"],
                           "stack_id": [row["stack_id"], 1 << 62], "pid": [row["pid"], f"'{row['pid']}'"],
                           "ts": [row["ts"]], "comm": [f"'{comm}'", f"'{comm.upper()}' collate nocase", 5]}.items():
        typed = f"iif(1, {column}, 0)" if column in ("process_id", "stack_id") else f"cast({column} as %s)" % (
            "text" if column == "comm" else "integer")
        for value in values:
            names = [f"a{len(kept) + i}" for i in range(5)]
            down[column, value] = ", ".join(f"(select sum(samples) from cpu_samples where {column} {op} {value}) {name}"
                                            for op, name in zip(COMPARISONS, names))
            kept += [f"sum(samples) filter (where {typed} {op} {value}) {name}" for op, name in zip(COMPARISONS, names)]
    expected = ask(f"select {', '.join(kept)} from cpu_samples")[0]
    for of, query in down.items():
        (got,) = ask(f"select {query}")
        assert got == {name: expected[name] for name in got}, of


def test_one_file_is_a_store(sonde, segmented):
    path, _ = segmented
    one = segments(path)[0]
    query = "select sum(samples) n from cpu_samples"
    assert json.loads(sonde("sql", "--json", query, "--store", one, check=True).stdout)["rows"] == [
        {"n": plain(path, query)[0][0]}]


def test_two_forms_at_once_are_refused(sonde, hostile):
    done = sonde("sql", "--csv", "--json", "select 1", store=hostile[0])
    assert done.returncode == 2 and "cannot be combined" in done.stderr


# --- ranges and filters ---

def rows(sonde, store, *args):
    return json.loads(sonde("sql", "--json", "-q", *args, store=store, check=True).stdout)["rows"]


@pytest.mark.parametrize("which", ["hostile", "segmented", pytest.param("many", marks=pytest.mark.long)])
def test_the_windows_are_what_plain_sql_narrows_by_hand(sonde, request, which):
    """In one segment, in several that are attached, and in more than can be."""
    store = request.getfixturevalue(which)[0]
    (all_,) = rows(sonde, store, "select min(ts) a, max(ts) b from cpu_samples")
    start, end = all_["a"] + (all_["b"] - all_["a"]) // 3, all_["a"] + 2 * (all_["b"] - all_["a"]) // 3
    when = ["--from", start, "--to", end]
    comm = rows(sonde, store, "select comm, sum(samples) n from cpu_samples where not self group by 1 order by 2 desc, 1 limit 1")[0]["comm"]
    by_hand = f"from cpu_samples where not self and ts >= {start} and ts < {end}"
    for more, condition in (([], ""), (["--comm", comm], f"and comm = '{comm}'"), (["--comm", f"!{comm}"], f"and comm <> '{comm}'"))[:1 if which == "many" else 3]:
        (mine,) = rows(sonde, store, *when, *more, "select sum(samples) n, count(distinct process_id) p from win_cpu_samples")
        (theirs,) = rows(sonde, store, f"select sum(samples) n, count(distinct process_id) p {by_hand} {condition}")
        assert mine == theirs and mine["n"], more
    (mine,) = rows(sonde, store, *when, "select sum(samples) n from cpu_samples where not self and ts >= :from and ts < :to")
    assert mine == rows(sonde, store, f"select sum(samples) n {by_hand}")[0]
    tid = rows(sonde, store, f"select tid {by_hand} order by 1 limit 1")[0]["tid"]
    assert {r["tid"] for r in rows(sonde, store, *when, "--tid", tid, "select tid from win_cpu_samples")} == {tid}


def test_a_window_without_a_range_is_the_newest_recording(sonde, hostile):
    (mine,) = rows(sonde, hostile[0], "select sum(samples) n from win_cpu_samples")
    told = json.loads(sonde("ps", "--json", "-n", 100000, store=hostile[0], check=True).stdout)["rows"]
    assert mine["n"] == sum(r["samples"] for r in told)


def test_what_is_not_narrowed_is_said(sonde, hostile):
    done = sonde("sql", "--last", "1m", "select count(*) from cpu_samples", store=hostile[0], check=True)
    assert "narrow the views win_NAME" in done.stderr
    assert "note:" not in sonde("sql", "--last", "1m", "select count(*) from win_cpu_samples", store=hostile[0], check=True).stderr
    assert "note:" not in sonde("sql", "select count(*) from cpu_samples", store=hostile[0], check=True).stderr


@pytest.mark.parametrize("query", ["create temp table x(a)", "insert into temp.win_process values (1)", "pragma query_only=0", "drop view temp.win_cpu_samples",
                                   "delete from meta"])
def test_a_window_opens_nothing_to_writing(sonde, hostile, query):
    before = [open(f, "rb").read() for f in segments(hostile[0])]
    assert sonde("sql", "--last", "1m", query, store=hostile[0]).returncode == 2
    assert [open(f, "rb").read() for f in segments(hostile[0])] == before


def test_waits_say_whether_they_are_idle(sonde, tmp_path):
    program = os.path.join(BUILD, "tests", "putstore")
    need("build/tests/putstore", program)
    stacks = {("lock", "main", "pool", "work"): 0, ("poll", "main", "loop"): 1, ("disk", "main", "save"): 0, ("poll", "main", "ProcSleep", "epoll_wait"): 0,
              ("lock", "main", "pthread_cond_wait"): 1}
    classes = {"lock": 1, "disk": 2, "poll": 5}
    lines = [{"run": "offcpu", "from": 1795144200, "to": 1795144260, "bucket_s": 1},
             *({"kind": "offcpu", "label": classes[c], "at": 1795144210 + i, "n": 1, "value": 10**9, "pid": 40 + i, "comm": f"app{i}", "stack": frames}
               for i, (c, *frames) in enumerate(stacks)),
             {"wait": classes["poll"], "at": 1795144211, "n": 1, "total_ns": 5, "pid": 40, "comm": "app0"}]
    subprocess.run([program, str(tmp_path / "store")], input="\n".join(map(json.dumps, lines)), text=True, check=True)
    store, when = str(tmp_path / "store"), ["--from", 1795144200, "--to", 1795144260]
    told = rows(sonde, store, *when, "select w.reason, k.folded, w.idle from win_waits w join stacks k on k.id = w.stack_id")
    assert {(r["reason"], *r["folded"].split(";")): r["idle"] for r in told} == stacks
    assert [r["idle"] for r in rows(sonde, store, *when, "select idle from win_wait_totals where reason = 'poll'")] == [1]


def test_help_and_tables_are_listed(sonde, hostile):
    told = rows(sonde, hostile[0], ".tables")
    kinds = {r["name"]: r["type"] for r in told}
    assert kinds["cpu_samples"] == "view" and kinds["sample"] == "table" and "win_cpu_samples" not in kinds
    assert {r["view"] for r in rows(sonde, hostile[0], ".views")} <= set(kinds)
    assert "win_cpu_samples" in {r["name"] for r in rows(sonde, hostile[0], "--last", "1m", ".tables")}
    said = sonde("sql", ".help", store=hostile[0], check=True).stdout
    assert all(word in said for word in (".views", ".tables", ".schema", "win_NAME", ":from"))
    assert ".tables" in sonde("sql", ".tabels", store=hostile[0]).stderr


@pytest.mark.parametrize("query, near", [("select * from losses", "'loss'"), ("select 1; select * from cpu_sample", "'cpu_samples'"), ("select p.ppdi from processes p", "'ppid'"),
                                         ("select nothing_like_it from processes", None), ("select * from nothing_like_it", None),
                                         ("select * from segments", None), ("select * from win_wait", "'win_waits'"), ('select "ppdi" from processes p where "p"."commm" = 1', "'comm'")])
@pytest.mark.parametrize("which", ["segmented", "hostile"])
def test_a_name_that_is_not_there_is_answered_with_the_nearest(request, which, query, near):
    """In a store of several files as in one of one."""
    done = subprocess.run([f"{BIN}/sonde", "sql", "--store", request.getfixturevalue(which)[0], query], capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 2 and ("did you mean" in done.stderr) == bool(near) and (near or "no such") in done.stderr, done.stderr


@pytest.mark.parametrize("query", ["delete from events", "update processes set comm = ''", "insert into runs values (1)", "delete from sample"])
def test_who_writes_is_told_that_a_store_is_only_read(sonde, hostile, query):
    done = sonde("sql", query, store=hostile[0])
    assert done.returncode == 2 and "the store is read-only" in done.stderr and "export db" in done.stderr, done.stderr


def test_columns_are_a_question_too(sonde, hostile):
    """As a table of its own, which can be joined."""
    found = rows(sonde, hostile[0], "SELECT name FROM pragma_table_info('cpu_samples') WHERE name LIKE 'cont%'")
    assert [r["name"] for r in found] == ["container"]


@pytest.mark.parametrize("query", ["select * from log_seconds", "SELECT count(*) FROM win_log_seconds", "select l.messages from logs x join log_seconds l on 1"])
def test_a_view_that_is_newer_than_the_store_is_said_to_be_and_what_has_it(query, hostile, tmp_path):
    store = str(tmp_path / "store")
    shutil.copytree(hostile[0], store)
    with sqlite3.connect(segments(store)[0]) as db:
        db.executescript("DROP VIEW log_seconds; DROP TABLE log_second_row; UPDATE meta SET value = 58 WHERE key = 'schema_version'")
    db.close()
    ask = [f"{BIN}/sonde", "sql", "--store", store]
    done = subprocess.run([*ask, query], capture_output=True, text=True, timeout=60, check=False)
    said = " ".join(done.stderr.split())
    assert done.returncode == 4 and "an older sonde wrote this store (schema 58, this sonde has " in said and "did not record this yet" in said and "did you mean" not in said, done.stderr
    done = subprocess.run([*ask, "select * from log_secondss"], capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 2 and "did not record" not in done.stderr, done.stderr


def test_a_schema_of_what_is_not_there_is_refused_with_the_nearest(hostile):
    done = subprocess.run([f"{BIN}/sonde", "sql", "--store", hostile[0], ".schema cpu_sampels"], capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 2 and "there is no view or table 'cpu_sampels'; did you mean 'cpu_samples'" in done.stderr and not done.stdout, done
