# SPDX-License-Identifier: Apache-2.0
"""A day's archives have their sums as one file: what is asked of it is what the archives tell one after the other, over any range, and whatever becomes of
that file or of one of them."""
import base64
import collections
import glob
import gzip
import json
import os
import random
import re
import shutil
import sqlite3
import subprocess
import zlib

import pytest

from conftest import BIN, need
from test_range_sums import AT, BUILD, END, FILE, PIDS, put, rows, run, who
from wire import fields, packed, varint

FILES = 4  # of each of two days
VERBS = [["ps", "-n", "1000"], ["containers"], ["requests"], ["stacks", "-n", "1000"], ["map"], ["waits"], ["timeline"], ["net"], ["flame"],
         ["waits", "--by", "thread", "--idle"], ["wakers"], ["neighbours"]]
OF_DAYS = [["ps", "-n", "1000"], ["containers"], ["requests"], ["stacks", "-n", "1000"], ["waits", "--by", "process", "--idle"], ["wakers"],
           ["neighbours"], ["stacks", "-n", "1000", "--type", "offcpu"], ["stacks", "-n", "1000", "--type", "runqueue"]]  # what days answer
OF_SOME = [["stacks", "--container", "web"], ["ps", "--comm", "db-1"], ["requests", "--container", "queue"], ["stacks", "--comm", "late"], ["waits", "--container", "db"],
           ["flame", "--type", "offcpu", "--group", "container"]]


def at_of(day, i):
    return AT + (day * (FILES + 1) + i) * FILE  # between the days nothing was recorded


def others(r, at, i):
    """Things that only some files have: a process that ends in the middle of them, one that is in one of them alone, losses, ends of processes."""
    once = {"pid": 900 + i, "comm": "late" if i == 3 else f"once-{i}", "start": at}
    yield from ({"kind": "cpu", "at": at + t, "n": 2, "stack": ["main", f"only{i}"], **once} for t in (10, 20))
    if i % 2:
        yield {"loss": "ring", "at": at + 30, "n": r.randrange(1, 50)}


def lines(r, at, i):
    of_cpu, *rest = rows(r, at)
    return [of_cpu, *others(r, at, i), *rest]


def seal(store):
    done = subprocess.run([os.path.join(BIN, "sonde-seal"), "--store", store, "--json"], capture_output=True, text=True, check=True)
    return json.loads(done.stdout)


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    need("build/tests/putstore", os.path.join(BUILD, "tests", "putstore"))
    folder = tmp_path_factory.mktemp("days")
    store, r = str(folder / "store"), random.Random(4646)
    put(store, [run("cpu", at_of(2, 9)), {"kind": "cpu", "at": at_of(2, 9) + 1, "n": 1, "stack": ["main"], "pid": 1, "comm": "x"}])
    newest = glob.glob(f"{store}/2*.db")[0]
    shutil.move(newest, f"{store}/20200103T000000Z-0001.db")
    for day in range(2):
        for i in range(FILES):
            path = put(str(folder / f"part{day}{i}"), lines(r, at_of(day, i), i))
            shutil.move(path, f"{store}/2020010{day + 1}T{i:02}0000Z-0001.db")
    report = seal(store)
    assert report["segments"] == 2 * FILES and report["days"] == 2, report
    return store


def without_days(store, folder):
    copy = str(folder / "hours")
    shutil.copytree(store, copy)
    shutil.rmtree(f"{copy}/days")
    return copy


def ask(words, store, first, last):
    done = subprocess.run([os.path.join(BIN, "sonde"), *words, "--json", "--store", store, "--from", str(first), "--to", str(last)],
                          capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode in (0, 4), (words, done.stderr)
    assert "damaged" not in done.stderr, (words, done.stderr)
    answer = json.loads(done.stdout) if done.stdout else {"none": done.returncode}
    return {k: sorted(map(json.dumps, v)) if isinstance(v, list) else v for k, v in answer.items()}


ALL = (at_of(0, 0), at_of(1, FILES))


def ranges(n):
    """Whole days, days and edges, and whatever else."""
    r = random.Random(14)
    yield ALL
    yield at_of(0, 0) - 50, at_of(0, FILES) + 40
    yield at_of(0, 2) + 33, at_of(1, FILES) + 900
    for _ in range(n):
        first = r.randrange(at_of(0, 0) - 30, at_of(1, FILES) - 60)
        yield first, r.randrange(first + 30, at_of(1, FILES) + 300)


def assert_same(store, hours, asked, spans=(ALL,)):
    for first, last in spans:
        for words in asked:
            assert ask(words, store, first, last) == ask(words, hours, first, last), (words, first - AT, last - AT)


PIECE = 4096  # of a file's begin, middle and end, which schema/store/files/stamp.h reads


OF_STACKS = ("sample_sum", "frame", "function", "stack", "process")


def damage(path, tables=OF_STACKS):
    """A byte of what `stacks` reads of the file, where the file's stamp does not see it."""
    with sqlite3.connect(path) as db:
        blocks = db.execute("SELECT data FROM packed_block b JOIN packed_column c ON c.id = b.id >> 20 WHERE c.\"table\" IN (SELECT value FROM json_each(?1))"
                            " AND length(data) > 40 ORDER BY c.\"table\" = ?2 DESC, length(data) DESC", (json.dumps(tables), tables[0])).fetchall()
    db.close()
    with open(path, "r+b") as f:
        whole = f.read()
        last = len(whole) - PIECE
        seen = [range(start, start + PIECE) for start in (0, last // 2, last)]
        for (data,) in blocks:
            at = whole.find(data[8:40]) + 20
            if at >= 20 and not any(at in piece for piece in seen):
                f.seek(at)
                f.write(bytes([whole[at] ^ 0x55]))
                return
    raise AssertionError(path)


def test_days_tell_what_their_archives_tell_over_any_range(made, tmp_path):
    assert_same(made, without_days(made, tmp_path), OF_DAYS + OF_SOME, [*ranges(0)][::2])


@pytest.mark.long
def test_days_tell_what_their_archives_tell_over_many_ranges(made, tmp_path):
    assert_same(made, without_days(made, tmp_path), VERBS + OF_SOME, ranges(25))


def test_a_question_of_days_reads_the_days(made, tmp_path):
    """Every archive is damaged where its samples and its waits are: who reads one says so."""
    store = str(tmp_path / "store")
    shutil.copytree(made, store)
    for path in glob.glob(f"{store}/*.db"):
        if "20200103" not in path:
            damage(path)
            damage(path, ("amount",))
    assert_same(store, made, OF_DAYS)
    for verb in ("stacks", "waits"):
        done = subprocess.run([os.path.join(BIN, "sonde"), verb, "--store", store, "--from", str(ALL[0] + 7), "--to", str(ALL[1])],
                              capture_output=True, text=True, timeout=60, check=False)
        assert "left out" in done.stderr, verb


def numbers(data, at, n):
    out = []
    for _ in range(n):
        value, at = varint(data, at)
        out.append(value)
    return out, at


def signed(v):
    return v >> 1 ^ -(v & 1)


def rows_of_page(path):
    """What a page has, as tools/page/flame_pack.h specifies it: {(kind, thread, slot, functions): [times, amount]}."""
    with open(path, encoding="utf-8") as f:
        data = zlib.decompress(base64.b64decode(re.search(r'id="data">([^<]*)<', f.read())[1]))
    size = int.from_bytes(data[:4], "little")
    head, at, out = json.loads(data[4:4 + size]), 4 + size, collections.Counter()
    for p in head["profiles"]:
        columns = []
        for _ in range(5):
            column, at = numbers(data, at, p["frames"])
            columns.append(column)
        steps, at = numbers(data, at, p["nodes"])
        backs, at = numbers(data, at, p["nodes"])
        newest, path_of, stack = 0, [], []
        for step, back in zip(steps, backs):
            newest += back == 0
            frame = newest if back == 0 else newest - back + 1
            depth = (len(stack) - 1 if stack else 0) + signed(step)
            stack = [*stack[:depth], tuple(head["strings"][c[frame - 1]] for c in columns[:2])]
            path_of.append(tuple(stack))
        n = p["sides"][0]["rows"]
        places, at = numbers(data, at, n)
        owners, at = numbers(data, at, n)
        slots, at = numbers(data, at, n)
        times, at = numbers(data, at, n)
        amounts, at = numbers(data, at, n)
        node = slot = 0
        for i in range(n):
            node, slot = node + places[i], slot + signed(slots[i])
            pid, tid, *names = p["owners"][owners[i]]
            key = p["type"], pid, tid, *(head["strings"][x] for x in names), slot, path_of[node]
            out[key, "times"] += times[i]
            out[key, "amount"] += signed(amounts[i]) + times[i] * p["period"]
    return out


def samples_of_pprof(path):
    with open(path, "rb") as f:
        return samples_in_pprof(f.read())


def samples_in_pprof(data):
    profile = fields(gzip.decompress(data))
    strings = [x.decode() for x in profile[6]]
    names = {fields(x)[1][0]: strings[fields(x)[2][0]] for x in map(bytes, profile[5])}
    lines = {fields(x)[1][0]: tuple(names[fields(y)[1][0]] for y in fields(x)[4]) for x in map(bytes, profile[4])}
    out = collections.Counter()
    for sample in profile[2]:
        of = fields(sample)
        labels = tuple(sorted((strings[y[1][0]], strings[y[2][0]] if 2 in y else y[3][0]) for y in map(fields, of.get(3, []))))
        for i, value in enumerate(packed(of[2])):
            out[tuple(lines[x] for x in packed(of[1])), labels, i] += value
    return out


@pytest.mark.parametrize("last", ["x.html", "x.pb.gz"])
def test_pages_and_profiles_of_days_are_those_of_their_archives(made, tmp_path, last):
    """Of a range that is so long that a slot of a page has all of a day."""
    hours, look = without_days(made, tmp_path), rows_of_page if last == "x.html" else samples_of_pprof
    for span in ((ALL[0] - 40 * 86400, ALL[1] + 100), (ALL[0] + 777, ALL[1] + 100)):
        said = []
        for store in (made, hours):
            path = str(tmp_path / last)
            done = subprocess.run([os.path.join(BIN, "sonde"), "flame", "-o", path, "--store", store, "--from", str(span[0]), "--to", str(span[1])],
                                  capture_output=True, text=True, timeout=60, check=False)
            assert done.returncode == 0, done.stderr
            said.append(look(path))
        assert said[0] == said[1] and len(said[0]) > 100


@pytest.mark.parametrize("how", ["standing", "no sums"])
def test_waits_of_a_day_without_sums_of_them_are_those_of_its_archives(made, tmp_path, how):
    """A wait that was not over has no sum, and a file of a day that an older sonde made has none of any."""
    store = str(tmp_path / "store")
    shutil.copytree(made, store)
    if how == "standing":
        path = f"{store}/20200101T010000Z-0001.db"
        parts = lines(random.Random(5), at_of(0, 1), 1)
        parts.insert(next(i for i, x in enumerate(parts) if x.get("run") == "host"),
                     {"kind": "standing", "at": at_of(0, 1) + 590, "n": 1, "value": 10**9, "label": 1, "stack": ["main", "w1"], **who(101)})
        shutil.move(put(str(tmp_path / "part"), parts), path)
        assert seal(store)["days"] == 1
    else:
        for path in glob.glob(f"{store}/days/*.db"):
            with sqlite3.connect(path) as db:
                db.execute("PRAGMA writable_schema = 1")
                db.execute("DELETE FROM sqlite_schema WHERE name = 'wait_stack_sum'")
                db.execute("DELETE FROM packed_table WHERE name = 'wait_stack_sum'")
            db.close()
    assert_same(store, without_days(store, tmp_path), [["waits", "--by", "process"], ["wakers"], ["neighbours"], ["ps"]])


@pytest.mark.parametrize("what", ["missing", "short", "garbage", "empty", "damaged", "another's"])
def test_a_day_that_cannot_be_read_costs_nothing(made, tmp_path, what):
    store = str(tmp_path / "store")
    shutil.copytree(made, store)
    path = f"{store}/days/20200101.db"
    if what == "missing":
        os.unlink(path)
    elif what == "short":
        os.truncate(path, os.path.getsize(path) // 2)
    elif what == "garbage":
        with open(path, "wb") as f:
            f.write(random.Random(1).randbytes(50_000))
    elif what == "empty":
        os.truncate(path, 0)
    elif what == "damaged":
        damage(path)
    else:
        shutil.copy(f"{store}/days/20200102.db", path)
    assert_same(store, made, [OF_DAYS[0], OF_DAYS[3]])


def rename(db):
    db.execute("UPDATE run SET options = 'other'")


@pytest.mark.parametrize("what", ["changed", "gone", "one more"])
def test_a_day_is_read_only_while_its_archives_are_what_they_were(made, tmp_path, what):
    store = str(tmp_path / "store")
    shutil.copytree(made, store)
    path = f"{store}/20200101T010000Z-0001.db"
    if what == "changed":
        with sqlite3.connect(path) as db:
            rename(db)
        db.close()
    elif what == "gone":
        os.unlink(path)
    else:
        shutil.copy(f"{store}/20200103T000000Z-0001.db", f"{store}/20200101T013000Z-0001.db")
    assert_same(store, without_days(store, tmp_path), [OF_DAYS[0], OF_DAYS[3]])
    before = open(f"{store}/days/20200102.db", "rb").read()
    report = seal(store)
    if what == "gone":  # its first archive is still of the first hour
        assert report["days"] == 1
    assert open(f"{store}/days/20200102.db", "rb").read() == before, "a day that is as it was is not made again"
    shutil.rmtree(str(tmp_path / "hours"))
    assert_same(store, without_days(store, tmp_path), [OF_DAYS[0], OF_DAYS[3]])


def test_retention_removes_the_day_of_an_archive_that_it_removes(made, tmp_path):
    store = str(tmp_path / "store")
    shutil.copytree(made, store)
    used = sum(os.path.getsize(p) for p in glob.glob(f"{store}/**", recursive=True) if os.path.isfile(p))
    oldest = f"{store}/20200101T000000Z-0001.db"
    for _ in range(8):
        subprocess.run([os.path.join(BIN, "sonde-prune"), "--store", store, "--budget", str(used), "--age", "3000d", "--reserve", "1M", "--fine", "0"],
                       capture_output=True, check=True)
        if not os.path.exists(oldest):
            break
        used -= os.path.getsize(oldest) // 2
    assert not os.path.exists(oldest)
    assert not os.path.exists(f"{store}/days/20200101.db")
    seal(store)
    assert not os.path.exists(f"{store}/days/20200101.db"), "the oldest day loses its archives one by one: it is not made again"
    assert os.path.exists(f"{store}/20200102T000000Z-0001.db") == os.path.exists(f"{store}/days/20200102.db")
