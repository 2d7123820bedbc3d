# SPDX-License-Identifier: Apache-2.0
"""A file of the store that is damaged somewhere in its middle costs itself, not the answer: each verb says of the others what it says where
that file is not there, and which one it left out."""
import glob
import json
import os
import shutil
import sqlite3
import subprocess

import pytest

from conftest import BIN
from test_seal import ALL, QUESTIONS, T, files, lines, put, say, seal, two  # noqa: F401  (fixture)

SQL = [["sql", "--csv", q] for q in ("select comm, sum(samples) from cpu_samples group by 1 order by 1",
                                     "select function, sum(self) from functions_top group by 1 order by 1",
                                     "select file, line, sum(self) from lines_top group by 1, 2 order by 1, 2",
                                     "select count(*) from runs", "select comm, sum(total_ns) from waits group by 1 order by 1")]
NOT_TIMED = [["status", "--json"], *SQL]
TABLES = ["run", "process", "function", "frame", "stack", "series", "task", "text", "image"]


def root_of(path, table):
    with sqlite3.connect(f"file:{path}?mode=ro", uri=True) as db:
        page = db.execute("select rootpage from sqlite_master where name = ?", (table,)).fetchone()[0]
        size = db.execute("pragma page_size").fetchone()[0]
    return (page - 1) * size


def scribble(path, at, text=b"this was a page of a table"):
    with open(path, "r+b") as f:
        f.seek(at)
        f.write(text)


def without(store, name, to):
    shutil.copytree(store, to)
    os.unlink(os.path.join(to, name))
    return str(to)


def told(answer, folders):
    """(code, answer, talk) with the folder's name out of it, and without what is told of the file that was left out."""
    code, out, said = answer
    for folder in folders:
        out, said = out.replace(folder, "STORE"), said.replace(folder, "STORE")
    if out.startswith("{") and '"warnings"' in out:
        j = json.loads(out)
        j["warnings"] = [w for w in j["warnings"] if "left out" not in w]
        if "store" in j:
            j["store"] = None  # its size
        out = json.dumps(j)
    return code, out, "\n".join(line for line in said.splitlines() if "left out" not in line)


def answers_as_without(damaged, whole, intact, questions):
    """Who meets the damage answers as if the file were not there, who does not as if it were whole. How many met it?"""
    met = 0
    for question in questions:
        window = [] if question in NOT_TIMED else ALL
        got = say(damaged, *question, *window)
        met += "left out" in got[2]
        want = say(whole if "left out" in got[2] else intact, *question, *window)
        folders = [damaged, whole, intact]
        assert told(got, folders) == told(want, folders), question
        assert got[2].count("left out") <= 1, got[2]
        if "left out" in got[2] and "--json" in question and got[1]:
            assert any("left out" in w for w in json.loads(got[1])["warnings"]), got[1]
    return met


@pytest.mark.parametrize("table", [pytest.param(t, marks=[] if t in ("process", "stack", "text") else pytest.mark.long) for t in TABLES])
def test_a_damaged_segment_is_left_out_by_every_verb(two, tmp_path, table):  # noqa: F811
    damaged = str(tmp_path / "damaged")
    shutil.copytree(two[0], damaged)
    name = sorted(os.path.basename(p) for p in glob.glob(f"{damaged}/*.db"))[1]
    whole = without(damaged, name, tmp_path / "whole")
    scribble(f"{damaged}/{name}", root_of(f"{damaged}/{name}", table))
    assert answers_as_without(damaged, whole, two[0], [*QUESTIONS, *NOT_TIMED]) > 0


@pytest.fixture(scope="module")
def archives(tmp_path_factory, two):  # noqa: F811
    """Three archives, and what was recorded later in a file that is rows."""
    folder = str(tmp_path_factory.mktemp("damaged") / "archives")
    shutil.copytree(two[1], folder)
    put(folder, lines(T + 2500, 5))
    return folder


OF_SAMPLES = [["stacks"], ["stacks", "--json"], ["flame", "--text"], *SQL[:3]]
HARM = ["update packed_block set data = zeroblob(length(data)) where id >> 20 = (select id from packed_column where \"table\" = 'sample' and name = '{}')".format(c)
        for c in ("ts", "series", "n")] + [
    "update packed_block set data = zeroblob(length(data)) where id >> 20 in (select id from packed_column where \"table\" = 'sample')",
    "update meta set value = 1 << 50 where key = 'first_ts'", "delete from packed_block", "delete from packed_column"]


# each harm asks all verbs: three of the seven in the everyday tests, all in make long-capture
@pytest.mark.parametrize("harm", [pytest.param(h, marks=[] if i in (0, 4, 6) else pytest.mark.long) for i, h in enumerate(HARM)])
def test_a_damaged_archive_is_left_out_by_every_verb(archives, tmp_path, harm):
    damaged = str(tmp_path / "damaged")
    shutil.copytree(archives, damaged)
    path = files(damaged)[1]
    whole = without(damaged, os.path.basename(path), tmp_path / "whole")
    with sqlite3.connect(path) as db:
        db.execute(harm)
    assert answers_as_without(damaged, whole, archives, [*QUESTIONS, *SQL]) >= len(OF_SAMPLES)


@pytest.mark.parametrize("table, column", [("frame", "offset"), ("function", "name"), ("process", "pid")])
def test_a_damaged_column_of_a_dictionary_leaves_its_archive_out(tmp_path, table, column):
    intact, damaged = str(tmp_path / "intact"), str(tmp_path / "damaged")
    put(intact, [{"run": "cpu", "from": T, "to": T + 600, "bucket_s": 1, "period_ns": 10101010},
                 *({"kind": "cpu", "at": T + i, "n": 1, "pid": 100 + i, "comm": f"c{i}", "stack": ["main", [f"f{i}", "x.c", i]]} for i in range(300))])
    put(intact, [x for x in lines(T + 2000, 5) if x.get("kind") == "cpu" or x.get("run") == "cpu"])
    assert seal(intact)["segments"] == 1
    shutil.copytree(intact, damaged)
    path = files(damaged)[0]
    whole = without(damaged, os.path.basename(path), tmp_path / "whole")
    with sqlite3.connect(path) as db:
        changed = db.execute("update packed_block set data = zeroblob(length(data)) where id >> 20 = (select id from packed_column where \"table\" = ? and name = ?)",
                             (table, column)).rowcount
    assert changed == 1 and answers_as_without(damaged, whole, intact, OF_SAMPLES) > 0


def test_one_damaged_file_asked_by_itself_is_an_error_with_its_fix(two, tmp_path):  # noqa: F811
    path = str(tmp_path / "one.db")
    shutil.copy(sorted(glob.glob(f"{two[0]}/*.db"))[1], path)
    scribble(path, root_of(path, "frame"))
    done = subprocess.run([os.path.join(BIN, "sonde"), "stacks", "--store", path, *ALL], capture_output=True, text=True, timeout=60)
    assert done.returncode == 6 and "fix:" in done.stderr and "one.db" in done.stderr, done.stderr


def test_status_names_what_was_set_aside(two, tmp_path):  # noqa: F811
    store = str(tmp_path / "store")
    shutil.copytree(two[0], store)
    name = sorted(os.path.basename(p) for p in glob.glob(f"{store}/*.db"))[1]
    assert "set aside" not in say(store, "status")[1]
    scribble(f"{store}/{name}", root_of(f"{store}/{name}", "frame"))
    assert seal(store)["set_aside"] == 1
    assert f"{name}.bad was set aside" in say(store, "status")[1]
    assert json.loads(say(store, "status", "--json")[1])["store"]["damaged"] == [f"{name}.bad"]
