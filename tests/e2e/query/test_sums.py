# SPDX-License-Identifier: Apache-2.0
"""Every way to ask a store has one sum for each kind and range, whatever its files are: segments, archives, damaged ones, those of other programs, in
each order, in one store and in two. The oracles are what putstore was told, and Python's own sqlite3 on the segments as they were written.

A file that an answer left out is one that is damaged or foreign, and is named with that answer.
"""
import contextlib
import gzip
import itertools
import json
import os
import random
import shutil
import sqlite3
import subprocess

import pytest

from conftest import BIN, E2E, need, scale
from test_damaged import root_of, scribble
from test_seal import PUTSTORE, T, files, put, seal
from wire import fields, packed

PERIOD_NS = 10_000_000
SLOTS = 4
WHOLE, PART = (T, T + 1000 * SLOTS), (T + 10, T + 1000 * (SLOTS - 1) + 31)  # the part cuts the first and the last file


def begins(slot):
    return T + 1000 * slot


def told(slot):
    """What putstore is told of one file: other numbers in each, by powers of ten, so that no two sums of files are equal."""
    at, scale_by = begins(slot), 10 ** slot
    run = {"from": at, "to": at + 60, "bucket_s": 1, "recording": 70 + slot}
    who = {"pid": 100 + slot, "comm": f"app{slot}", "container": "db" if slot % 2 else ""}
    seconds = range(0, 60, 4)
    return [{"run": "cpu", "period_ns": PERIOD_NS, **run},
            *({"kind": "cpu", "at": at + s, "n": scale_by, "stack": ["main", [f"work{s % 3}", "app.c", 10 + i]], **who, "pid": 100 + i}
              for s in seconds for i in range(2)),
            *({"loss": "ring", "at": at + s, "n": 2 * scale_by} for s in seconds),
            {"run": "offcpu", **run},
            *({"kind": "offcpu", "at": at + s, "n": 3 * scale_by, "value": 5000 * scale_by, "max": 9, "stack": ["main", "wait"], **who} for s in seconds),
            *({"wait": 2, "n": 4 * scale_by, "total_ns": 7000 * scale_by, "max_ns": 5000, "at": at + s, **who} for s in seconds),
            {"run": "l7", **run},
            *({"request": "GET /", "at": at + s, "n": 6 * scale_by, "total_ns": 9000 * scale_by, "max_ns": 900, **who} for s in seconds),
            {"run": "host", **run},
            *({"fact": "process_row", "at": at + s, "user_us": 8 * scale_by, **who} for s in seconds),
            {"run": "goheap", **run},
            *({"kind": "alloc", "at": at + s, "n": scale_by, "value": 64 * scale_by, "stack": ["main", "make"], **who} for s in seconds)]


# kind: (of which lines, the number in them, its sum in SQL)
KINDS = {
    "samples": (lambda x: x.get("kind") == "cpu", "n", "SELECT sum(samples) FROM {win}cpu_samples"),
    "lost": (lambda x: "loss" in x, "n", "SELECT sum(lost) FROM {win}loss"),
    "offcpu n": (lambda x: x.get("kind") == "offcpu", "n", "SELECT sum(n) FROM {win}amounts WHERE type = 'offcpu'"),
    "offcpu ns": (lambda x: x.get("kind") == "offcpu", "value", "SELECT sum(value) FROM {win}amounts WHERE type = 'offcpu'"),
    "waits ns": (lambda x: "wait" in x, "total_ns", "SELECT sum(total_ns) FROM {win}wait_totals"),
    "requests": (lambda x: "request" in x, "n", "SELECT sum(requests) FROM {win}requests"),
    "user us": (lambda x: "fact" in x, "user_us", "SELECT sum(user_us) FROM {win}process_stats"),
    "alloc": (lambda x: x.get("kind") == "alloc", "value", "SELECT sum(value) FROM {win}amounts WHERE type = 'alloc'"),
}


def put_in(slots, kind, window):
    want, number, _ = KINDS[kind]
    return sum(x[number] for slot in slots for x in told(slot) if want(x) and window[0] <= x["at"] < window[1])


# --- the files ---

def foreign_database(path):
    with contextlib.closing(sqlite3.connect(path)) as db, db:
        db.executescript("CREATE TABLE cpu_samples(ts, samples); INSERT INTO cpu_samples VALUES(1800000001, 1000000007)")


def foreign_text(path):
    with open(path, "w", encoding="ascii") as f:
        f.write("samples: 1000000007\n" * 400)


def cut_short(path):
    os.truncate(path, 3000)


def breaks_table(path):
    scribble(path, root_of(path, "process"))


def breaks_column(path):
    with contextlib.closing(sqlite3.connect(path)) as db, db:
        db.execute("UPDATE packed_block SET data = zeroblob(length(data)) WHERE id >> 20 = (SELECT id FROM packed_column WHERE \"table\" = 'sample' AND name = 'n')")


# how a file can be: (is it made of an archive, what is done to it)
STATES = {"plain": (False, None), "archive": (True, None), "damaged": (False, breaks_table), "damaged-archive": (True, breaks_column), "text": (False, foreign_text),
          "database": (False, foreign_database), "short": (False, cut_short), "short-archive": (True, cut_short)}
WELL = ("plain", "archive")
AT_ONCE = ("text", "database", "short", "short-archive")  # no question can read it


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """{(slot, state): a file}, and {slot: {view: its rows}} by Python's sqlite3."""
    need("putstore (make workloads)", PUTSTORE)
    folder = tmp_path_factory.mktemp("sums")
    plain, archived = str(folder / "plain"), str(folder / "archived")
    for slot in range(SLOTS):
        put(plain, told(slot))
    shutil.copytree(plain, archived)
    put(archived, [{"run": "cpu", "from": T + 9000, "to": T + 9001, "period_ns": PERIOD_NS}])
    assert seal(archived)["segments"] == SLOTS
    out, rows = {}, {}
    for slot, pair in enumerate(zip(files(plain), files(archived))):
        for state, (is_archive, harm) in STATES.items():
            out[slot, state] = str(folder / f"{slot}-{state}.db")
            if harm not in (foreign_text, foreign_database):
                shutil.copy(pair[is_archive], out[slot, state])
            if harm:
                harm(out[slot, state])
        with contextlib.closing(sqlite3.connect(pair[0])) as db:
            names = [n for (n,) in db.execute("SELECT name FROM sqlite_master WHERE type = 'view'")]
            rows[slot] = {n: db.execute(f"SELECT count(*) FROM {n}").fetchone()[0] for n in names}
    return out, rows


def name_of(slot):
    return f"20270115T{8 + slot:02}0000Z-0001.db"


def mix(made, folder, states, stores=1):
    """Slot i as states[i]; each store has the slots of one remainder. --store for all of them."""
    paths = [os.path.join(folder, "store" + "ab"[i]) for i in range(stores)]
    for path in paths:
        shutil.rmtree(path, ignore_errors=True)
        os.mkdir(path)
    for slot, state in enumerate(states):
        shutil.copy(made[0][slot, state], os.path.join(paths[slot % stores], name_of(slot)))
    return [x for path in paths for x in ("--store", path)]


# --- the questions ---

def sql_text(window, views):
    inside = f"ts >= {window[0]} AND ts < {window[1]}"
    asked = {}
    for kind, (_, _, sql) in KINDS.items():
        asked[kind, "view"] = f"{sql.format(win='')} {'AND' if 'WHERE' in sql else 'WHERE'} {inside}"
        asked[kind, "win"] = sql.format(win="win_")
    asked["samples", "totals"] = f"SELECT sum(samples) FROM sonde_totals({window[0]}, {window[1]})"
    asked["samples", "steps"] = f"SELECT sum(samples) FROM sonde_steps(1, {window[0]}, {window[1]})"
    asked["samples", "rows"] = f"SELECT sum(samples) FROM sonde_samples WHERE counts = 1 AND {inside}"
    asked["offcpu ns", "waits"] = f"SELECT sum(total_ns) FROM waits WHERE {inside}"
    asked["samples", "joined"] = f"SELECT sum(c.samples) FROM cpu_samples c JOIN processes p ON p.id = c.process_id JOIN runs r ON r.id = c.run_id WHERE c.{inside}"
    for view in views if window == WHOLE else []:
        asked[view, "count"] = f"SELECT count(*) FROM {view}"
    if window == WHOLE:
        asked["samples", "functions"] = "SELECT sum(self) FROM functions_top"
        asked["samples", "lines"] = "SELECT sum(self) FROM lines_top"
    return " UNION ALL ".join(f"SELECT '{kind}' AS kind, '{how}' AS how, ({sql}) AS n" for (kind, how), sql in asked.items())


def of_folded(out):
    return sum(int(line.rsplit(b" ", 1)[1]) for line in out.splitlines())


def of_pprof(out):
    values = [packed(fields(sample)[2]) for sample in fields(gzip.decompress(out))[2]]
    return [sum(column) for column in zip(*values)]


def of_flame(out):
    root = json.loads(out)["rows"][0]
    return root.get("total_samples", root.get("total_value"))


OFFCPU = ["--type", "offcpu"]
# words: {kind: its sum of what is printed}
VERBS = [
    (["stacks", "--json"], {"samples": lambda o: json.loads(o)["samples"]}),
    (["stacks", "--json", *OFFCPU], {"offcpu n": lambda o: json.loads(o)["n"], "offcpu ns": lambda o: json.loads(o)["value"]}),
    (["flame", "--json"], {"samples": of_flame}),
    (["flame", "--json", *OFFCPU], {"offcpu ns": of_flame}),
    (["export", "json"], {"samples": of_flame}),
    (["export", "folded"], {"samples": of_folded}),
    (["export", "folded", *OFFCPU], {"offcpu ns": of_folded}),
    (["export", "pprof", "-o", "-"], {"samples": lambda o: of_pprof(o)[0]}),
    (["export", "pprof", "-o", "-", *OFFCPU], {"offcpu n": lambda o: of_pprof(o)[0], "offcpu ns": lambda o: of_pprof(o)[1]}),
    (["timeline", "--json"], {"samples": lambda o: sum(filter(None, json.loads(o)["cpu_by_column_ns"])) // PERIOD_NS}),
]
ONE_STORE = ("timeline",)


def ask(words, stores, window=None):
    """(exit code, what it printed, the slots that it says it left out)"""
    at = ["--from", str(window[0]), "--to", str(window[1])] if window else []
    done = subprocess.run([os.path.join(BIN, "sonde"), *words, *stores, *at], capture_output=True, timeout=60, check=False)
    said = done.stderr.decode()
    assert done.returncode in (0, 3, 4, 6), (words, said)
    return done.returncode, done.stdout, {slot for slot in range(SLOTS) for line in said.splitlines() if name_of(slot) in line and "left out" in line}


def counted(states, left_out, what):
    """The slots that an answer must have counted: all but those it says it left out, which may be no others than bad ones."""
    bad = {slot for slot, state in enumerate(states) if state not in WELL}
    at_once = {slot for slot, state in enumerate(states) if state in AT_ONCE}
    assert at_once <= left_out <= bad, (what, states, left_out)
    return set(range(len(states))) - left_out


def check_sql(made, states, stores, window, views):
    """A few views at a time: SQLite joins no more tables in one statement."""
    for i in range(0, max(len(views), 1), 40):
        check_statement(made, states, stores, window, views[i:i + 40])


def check_statement(made, states, stores, window, views):
    code, out, left_out = ask(["sql", "--json", sql_text(window, views)], stores, window)
    slots = counted(states, left_out, "sql")
    if not slots:
        assert code, (states, out)
        return
    assert code == 0, (states, stores, code, out)
    answer = json.loads(out)
    for slot in left_out:
        assert any(name_of(slot) in w for w in answer["warnings"]), (states, answer["warnings"])
    for row in answer["rows"]:
        want = sum(made[1][slot].get(row["kind"], 0) for slot in slots) if row["how"] == "count" else put_in(slots, row["kind"], window)
        assert (row["n"] or 0) == want, (states, stores, window, row, want)


def check_export_db(states, stores, window, folder):
    copies = os.path.join(folder, "copies")
    shutil.rmtree(copies, ignore_errors=True)
    code, _, left_out = ask(["export", "db", "-o", copies + "/"], stores, window)
    assert code == 0, (states, code)
    slots = counted(states, left_out, "export db")
    for kind, (_, _, sql) in KINDS.items():
        got = 0
        for path in files(copies):
            with contextlib.closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True)) as db:
                got += db.execute(sql.format(win="")).fetchone()[0] or 0
        assert got == put_in(slots, kind, window), (states, window, "export db", kind)
    code, out, _ = ask(["sql", "--json", "SELECT sum(samples) AS n FROM cpu_samples"], ["--store", copies])
    assert code == 0 and json.loads(out)["rows"][0]["n"] == put_in(slots, "samples", window), (states, window)


def check_verbs(states, stores, window):
    for words, sums in VERBS:
        if words[0] in ONE_STORE and stores.count("--store") > 1:
            continue
        code, out, left_out = ask(words, stores, window)
        slots = counted(states, left_out, words)
        if not slots:
            assert code, (states, words)
            continue
        assert code == 0, (states, words, code)
        if "--json" in words or words == ["export", "json"]:
            for slot in left_out:
                assert any(name_of(slot) in w for w in json.loads(out)["warnings"]), (states, words)
        for kind, sum_of in sums.items():
            assert sum_of(out) == put_in(slots, kind, window), (states, stores, window, words, kind)


def views_of(made):
    """All of the stable ones: those that SQL over one segment lists."""
    _, out, _ = ask(["sql", "--json", ".views"], ["--store", made[0][0, "plain"]])
    views = {row["view"] for row in json.loads(out)["rows"]} - {"kinds", "functions_top", "lines_top", "fact_hidden"}
    assert len(views) > 55
    return sorted(views)


PAIRS = list(itertools.product(STATES, repeat=2))  # the second is the newest, which decides how they are joined
# every day: the good ones, and each bad one as the newest and before an archive
FEW_PAIRS = [p for p in PAIRS if set(p) <= set(WELL) or p[1] == "archive" or p[0] == "archive"]


def some_mixtures(stores, n):
    """Archives alone, one that is the newest, one that is not; then any."""
    dice = random.Random(4400 + stores)
    any_of = (tuple(dice.choices(list(STATES), k=dice.choice((3, SLOTS)))) for _ in itertools.count())
    mixed = (m for m in any_of if set(m) & set(WELL))
    return [("archive",) * 3, ("plain", "damaged", "archive", "text"), ("archive", "plain", "short-archive"), *itertools.islice(mixed, n)][:n]


def test_sql_counts_each_row_of_each_file_in_every_pair_of_files(made, tmp_path):
    views = views_of(made)
    for states in scale(FEW_PAIRS, PAIRS):
        check_sql(made, states, mix(made, tmp_path, states), WHOLE, scale(views if set(states) <= set(WELL) else [], views))


@pytest.mark.parametrize("stores", [1, 2])
def test_sql_has_one_sum_for_each_kind_and_range_in_any_mixture(made, tmp_path, stores):
    for states in some_mixtures(stores, scale(3, 150)):
        at = mix(made, tmp_path, states, stores)
        for window in (WHOLE, PART):
            check_sql(made, states, at, window, scale([], views_of(made)))


@pytest.mark.parametrize("stores", [1, 2])
def test_every_verb_has_the_sums_that_sql_has(made, tmp_path, stores):
    for i, states in enumerate(some_mixtures(stores, scale(2, 60))):
        at = mix(made, tmp_path, states, stores)
        for window in scale([(PART, WHOLE)[i]], [WHOLE, PART]):
            check_verbs(states, at, window)
            if stores == 1:
                check_export_db(states, at, window, tmp_path)


def test_a_file_of_an_older_schema_has_nulls_where_it_has_no_column(made, tmp_path):
    """And no rows where it has no view, whether it is the newest file or not."""
    kept = os.path.join(E2E, "stores", "schema-28.db.gz")
    for name in ("20260909T000000Z-0001.db", "20280909T000000Z-0001.db"):
        for state in WELL:
            [_, store] = mix(made, tmp_path, [state, state])
            path = os.path.join(store, name)
            with gzip.open(kept) as old, open(path, "wb") as out:
                shutil.copyfileobj(old, out)
            with contextlib.closing(sqlite3.connect(path)) as db, db:
                [text] = db.execute("SELECT min(id) FROM text").fetchone()
                db.execute("INSERT INTO request_row(ts, run, process, protocol, service, operation, status, side, result, n, total_ns, max_ns, request_bytes,"
                           " response_bytes, hist) VALUES(5, 1, 1, ?1, ?1, ?1, ?1, 2, 0, 500, 1, 1, 0, 0, NULL)", (text,))
            for sql, want in (("SELECT sum(samples) FROM cpu_samples", 990 + put_in({0, 1}, "samples", WHOLE)),
                              ("SELECT sum(requests) FROM requests", 500 + put_in({0, 1}, "requests", WHOLE)),
                              ("SELECT sum(requests) FROM requests WHERE comm IS NULL", 500),
                              ("SELECT sum(requests) FROM requests WHERE comm = 'app1'", put_in({1}, "requests", WHOLE)),
                              ("SELECT count(*) FROM ended_stats", 0)):
                code, out, left_out = ask(["sql", "--json", sql.replace(" FROM", " AS n FROM", 1)], ["--store", store])
                assert code == 0 and not left_out and json.loads(out)["rows"][0]["n"] == want, (name, state, sql, code, out)


def test_what_is_of_one_file_is_refused_of_archives_too(made, tmp_path):
    for states in itertools.product(WELL, repeat=2):
        store = mix(made, tmp_path, states)
        for sql in ("SELECT * FROM run_order", "SELECT count(*) FROM run_order", "SELECT sum(n) FROM sample"):
            done = subprocess.run([os.path.join(BIN, "sonde"), "sql", *store, sql], capture_output=True, text=True, timeout=60, check=False)
            assert done.returncode == 2 and "belongs to one file" in done.stderr, (states, sql, done)
        said = [subprocess.run([os.path.join(BIN, "sonde"), "sql", *at, text], capture_output=True, text=True, timeout=60, check=True).stdout
                for at in (store, ["--store", made[0][0, "plain"]]) for text in (".views", ".schema cpu_samples")]
        assert said[:2] == said[2:] and "CREATE VIEW cpu_samples" in said[1]
