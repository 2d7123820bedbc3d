# SPDX-License-Identifier: Apache-2.0
"""An archive of a build, which is mostly dictionary, and one of a host that waits: under the segment's own name, a fraction of the bytes, the
same answers in every verb and in every query; plain sqlite3 says what it lacks; damage is an error; and whoever is killed meanwhile leaves
the segment as it was."""
import contextlib
import fcntl
import json
import os
import random
import shutil
import signal
import sqlite3
import subprocess
import time

import pytest

from conftest import BIN, BUILD, ROOT
from test_seal import T, archive_all, everything, files, lines, packed, put, say, seal
from test_seal_sql import ASKED, NAMED, loaded, rows, sonde, whole

HOUR = T // 3600 * 3600
QUESTIONS = [["stacks"], ["stacks", "--json"], ["stacks", "--container", "db"], ["stacks", "--type", "offcpu"], ["ps", "--json"], ["timeline", "--json"],
             ["containers", "--json"], ["lines", "f7"], ["waits", "--json"], ["waits", "--by", "thread", "--json"], ["wakers", "--json"],
             ["neighbours", "--json"], ["events", "--json"], ["heap", "--json"], ["explain", "--json"], ["diff", "--json"], ["export", "folded"],
             ["flame", "--format", "json", "-o", "-"], ["flame", "--type", "wall", "--format", "json", "-o", "-"], ["status", "--json"]]
SEAL = [os.path.join(BIN, "sonde-seal"), "--json"]


def build(at, nth, n=4000):
    """Samples of a compiler: most stacks come once."""
    rnd = random.Random(nth)
    out = [{"run": "cpu", "from": at, "to": at + 600, "bucket_s": 10, "period_ns": 10101010, "recording": 70 + nth}]
    for i in range(n):
        stack = ["main", *([f"f{rnd.randrange(60)}", "cc.c", rnd.randrange(1, 900)] for _ in range(rnd.randrange(1, 9)))]
        out.append({"kind": "cpu", "at": at + rnd.randrange(600), "n": rnd.choice((1, 1, 2)), "pid": 1000 + i % 400, "comm": ("cc1", "as")[i % 5 == 0],
                    "container": "db" if i % 3 else "", "stack": stack})
    out += [{"kind": "cpu", "at": at + 60 * i, "n": 40, "pid": 9, "comm": "long", "stack": ["main", ["spin", "spin.c", 3]]} for i in range(10)]
    return out


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


def end_segment(folder, at):
    """A segment is finished where there is a newer one."""
    put(folder, [{"run": "cpu", "from": at, "to": at + 1, "period_ns": 10101010}])


@pytest.fixture(scope="module")
def both(tmp_path_factory):
    """Of each content the same twice, as it was written and archived."""
    out = {}
    for name, content in (("build", build(HOUR + 100, 0)), ("waits", busy(HOUR + 100))):
        plain = str(tmp_path_factory.mktemp("archive") / name)
        put(plain, content)
        end_segment(plain, HOUR + 800)
        out[name] = plain, archive_all(plain)
    return out


@pytest.fixture(scope="module", params=["build", "waits"])
def stores(both, request):
    return both[request.param]


@pytest.fixture
def waits(both):
    return both["waits"]


def test_it_is_less_than_a_third_of_the_rows_and_done_once(stores):
    segment, archive = (os.path.getsize(files(s)[0]) for s in stores)
    assert archive < segment / 3
    before = os.stat(files(stores[1])[0])
    assert seal(stores[1])["segments"] == 0
    assert os.stat(files(stores[1])[0]).st_ino == before.st_ino


def test_all_large_tables_are_columns(both):
    assert packed(files(both["build"][1])[0]) >= {"frame", "stack", "series", "sample", "process", "function"}
    assert packed(files(both["waits"][1])[0]) >= {"wait_row", "wake_row", "culprit_row", "amount", "process", "task", "series"}


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
        return code, out.replace(stores[0], "STORE"), err.replace(stores[0], "STORE")
    before = told(stores[0])
    assert told(stores[1]) == before
    assert before[1] or before[0], before


def test_a_segment_that_comes_later_stays_rows_beside_its_archives(both, tmp_path):
    """Archives and rows of one store, asked together; then the rest is archived, too."""
    plain, mixed = str(tmp_path / "plain"), str(tmp_path / "plain-mixed")
    for folder, store in zip((plain, mixed), both["build"]):
        shutil.copytree(store, folder)
        os.remove(files(folder)[1])  # the one that made the first one a finished one
    for nth in (1, 2):
        put(plain, build(HOUR + 3600 * nth + 900, nth, 1500))
    end_segment(plain, HOUR + 4 * 3600)
    for path in files(plain)[1:]:
        shutil.copy(path, mixed)
    questions = [["export", "folded"], ["stacks", "--json"], ["ps", "--json"], ["timeline", "--json"], ["lines", "f7"], ["explain", "--json"]]
    sql = ("SELECT comm, sum(samples) AS n FROM cpu_samples GROUP BY 1", "SELECT function, sum(self) AS n, sum(total) AS t FROM functions_top GROUP BY 1",
           "SELECT comm, sum(samples) AS n FROM sonde_totals GROUP BY 1")
    for archives in (1, 2, 3):
        if archives > 1:
            assert seal(mixed, "--plain", str(sum(map(os.path.getsize, files(mixed)[archives:3])) + 4096) if archives == 2 else "0")["segments"] == 1
        assert [bool(packed(f)) for f in files(mixed)] == [i < archives for i in range(4)]
        for question in questions:
            asked = [*question, "--from", str(HOUR), "--to", str(HOUR + 4 * 3600)]
            before = say(plain, *asked)
            assert say(mixed, *asked) == before and (before[0] == 0 or question[0] == "explain")
        for query in sql:
            assert rows(sonde(mixed, query)) == rows(sonde(plain, query)) != []


def test_status_knows_of_an_archive_what_has_no_name(tmp_path):
    """By what was counted when it was archived: of its last hour."""
    path = str(tmp_path / "store")
    put(path, build(HOUR + 3300, 0))
    with sqlite3.connect(files(path)[0]) as db:
        db.execute("UPDATE frame SET function = 0 WHERE function IN (SELECT id FROM function WHERE name = 'spin')")
        spin, every = (db.execute("SELECT sum(x.n) FROM sample x JOIN series e ON e.id = x.series JOIN stack k ON k.id = e.stack JOIN frame r ON r.id = k.leaf "
                                  f"WHERE x.ts > (SELECT max(ts) FROM sample) - 3600 {and_}").fetchone()[0] for and_ in ("AND r.function = 0", ""))
    end_segment(path, HOUR)
    assert seal(path)["segments"] == 1 and "frame" in packed(files(path)[0])
    shares = [row["named_share"] for row in json.loads(say(path, "status", "--json")[1])["rows"] if row["samples"]]
    assert spin > 50 and len(shares) == 1 and abs(shares[0] - (1 - spin / every)) < 0.001


@pytest.mark.parametrize("name", NAMED)
def test_each_query_that_ships_is_the_same(stores, name):
    plain, archived = (files(s)[0] for s in stores)
    text = open(os.path.join(ROOT, "tools", "sql", "queries", name + ".sql"), encoding="utf-8").read()
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


def test_every_table_has_the_rows_that_it_had(stores):
    plain, archived = (everything(files(s)[0], "table", s is stores[1]) for s in stores)
    for name in packed(files(stores[1])[0]) - {"packed_view"}:
        assert archived[name] == plain[name] and (not plain[name] or len(plain[name]) >= 100)


@pytest.mark.parametrize("query", [
    "SELECT max(id) AS n, min(id), count(*) FROM frame", "SELECT id FROM stack ORDER BY id DESC LIMIT 5", "SELECT * FROM task WHERE id BETWEEN 5 AND 9.5",
    "SELECT * FROM task WHERE id > 7 AND id <= '12'", "SELECT * FROM task WHERE tid = 1007", "SELECT pid, comm, start_ns FROM process WHERE pid IN (1001, 205, 9, -1)",
    "SELECT count(*) FROM frame WHERE function = 3.5", "SELECT * FROM task WHERE process = 17 ORDER BY id DESC", "SELECT * FROM stack WHERE id = NULL",
    "SELECT * FROM function WHERE id = 9223372036854775807", "SELECT count(*) FROM frame WHERE rowid < 0 OR id > 1e6",
    "SELECT count(*) FROM wait_row WHERE hist IS NULL", "SELECT count(*), sum(n) FROM amount WHERE ts > 20",
    "SELECT * FROM wait_row WHERE ts BETWEEN (SELECT min(ts) + 5 FROM wait_row) AND (SELECT min(ts) + 25 FROM wait_row) ORDER BY ts DESC, task",
    "SELECT max(total_ns) FROM wake_row WHERE task = 5", "SELECT class, count(*) FROM wait_row GROUP BY 1",
    "SELECT x.n FROM wait_row x JOIN task t ON t.id = x.task WHERE t.tid = 2003"])
def test_rows_are_found_as_they_were(stores, query):
    def asked(path, *extra):
        done = subprocess.run(["sqlite3", "-readonly", "-csv", *extra, path, query], capture_output=True, text=True, timeout=60)
        assert done.returncode == 0, done.stderr
        return sorted(done.stdout.split("\n"))
    plain, archived = (files(s)[0] for s in stores)
    assert asked(archived, "-cmd", f".load {BUILD}/lib/sonde") == asked(plain)


def test_plain_sqlite3_says_what_it_lacks(both):
    def by(path, sql):
        with contextlib.closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True)) as db:
            return sorted(db.execute(sql).fetchall())
    plain, archived = (files(s)[0] for s in both["build"])
    for small in ("run", "run_period", "kind"):
        assert by(archived, f"SELECT * FROM {small}") == by(plain, f"SELECT * FROM {small}")
    for packed_one in ("sample", "stack", "frame", "packed_view"):
        with pytest.raises(sqlite3.OperationalError, match="no such module: sonde_packed"):
            by(archived, f"SELECT * FROM {packed_one}")
    with pytest.raises(sqlite3.OperationalError, match="no such table: runs"):
        by(archived, "SELECT * FROM runs")


def test_an_archive_is_exported_as_rows_and_cut_to_the_range(stores, tmp_path):
    """What plain sqlite3 says of the export of an archive is what it says of the segment's."""
    window = ["--from", str(HOUR + 300), "--to", str(HOUR + 400)]
    said = []
    for nth, store in enumerate(stores):
        out = str(tmp_path / f"{nth}.db")
        code, _, err = say(files(store)[0], "export", "db", "-o", out, *window)
        assert code == 0, err
        assert not packed(out)
        said.append((everything(out, "view", False), {k: v for k, v in everything(out, "table", False).items() if k not in ("meta", "run_named", "run_ending")}))
    assert said[0] == said[1]
    with contextlib.closing(sqlite3.connect(str(tmp_path / "1.db"))) as db:
        table = "wait_row" if "waits" in stores[0] else "sample"
        first, last, n = db.execute(f"SELECT min(ts + value), max(ts + value), count(*) FROM {table}, meta WHERE key = 't0'").fetchone()
    assert n and first >= HOUR + 290 and last < HOUR + 400


def test_the_newest_stay_rows_up_to_what_is_said(tmp_path):
    store = str(tmp_path / "store")
    put(store, busy(HOUR + 100))
    put(store, busy(HOUR + 1100))
    end_segment(store, HOUR + 1800)
    size = max(map(os.path.getsize, files(store)[:2]))
    assert seal(store, "--plain", str(4 * size))["segments"] == 0
    assert seal(store, "--plain", str(size + 4096))["segments"] == 1
    assert packed(files(store)[0]) and not packed(files(store)[1])
    assert seal(store)["segments"] == 1 and packed(files(store)[1])


def test_what_was_finished_a_moment_ago_stays_rows_up_to_twice_as_many_bytes(tmp_path):
    store = str(tmp_path / "store")
    for nth in range(3):
        put(store, build(HOUR + 1000 * nth, nth, 1000))
    end_segment(store, HOUR + 4000)
    size = max(map(os.path.getsize, files(store)[:3]))
    assert seal(store, "--plain", str(2 * size), "--keep", "1h")["segments"] == 0
    assert seal(store, "--plain", str(size), "--keep", "1h")["segments"] == 1  # the oldest: three of them are more than twice as many
    long_ago = time.time() - 7200
    os.utime(files(store)[1], (long_ago, long_ago))
    assert seal(store, "--plain", str(size), "--keep", "1h")["segments"] == 1
    assert [bool(packed(f)) for f in files(store)] == [True, True, False, False]


def test_a_second_one_does_nothing_while_somebody_seals(waits, tmp_path):
    store = str(tmp_path / "store")
    shutil.copytree(waits[0], store)
    with open(os.path.join(store, "sealing"), "w", encoding="ascii") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        assert seal(store) == {"busy": True, "segments": 0, "put_off": 0, "set_aside": 0, "bytes_before": 0, "bytes_after": 0,
                               "thinned": 0, "fine_before": 0, "fine_after": 0}
    assert seal(store)["segments"] == 1


def test_who_has_the_segment_open_goes_on_reading_it(waits, tmp_path):
    store = str(tmp_path / "store")
    shutil.copytree(waits[0], store)
    with contextlib.closing(sqlite3.connect(f"file:{files(store)[0]}?mode=ro", uri=True)) as db:
        reading = db.execute("SELECT * FROM wait_row")
        first = reading.fetchone()
        assert seal(store)["segments"] == 1 and packed(files(store)[0])
        assert len([first, *reading.fetchall()]) == db.execute("SELECT count(*) FROM wait_row").fetchone()[0] > 1000


def test_a_segment_without_room_is_left_for_later(waits, tmp_path):
    store = str(tmp_path / "store")
    shutil.copytree(waits[0], store)
    before = open(files(store)[0], "rb").read()
    said = seal(store, "--room", "1M")
    assert (said["segments"], said["put_off"]) == (0, 1)
    assert open(files(store)[0], "rb").read() == before and not os.path.exists(os.path.join(store, "sealing.db"))
    assert seal(store, "--room", str(len(before) * 2))["segments"] == 1


def test_it_is_left_as_it_is_by_whoever_is_killed(waits, tmp_path):
    store = str(tmp_path / "store")
    shutil.copytree(waits[0], store)
    before = open(files(store)[0], "rb").read()
    began = time.monotonic()
    shutil.copytree(store, tmp_path / "timed")
    seal(str(tmp_path / "timed"))
    took = time.monotonic() - began
    for share in range(1, 12):
        child = subprocess.Popen([*SEAL, "--store", store], stdout=subprocess.DEVNULL)
        with contextlib.suppress(subprocess.TimeoutExpired):
            child.wait(took * share / 10)
        child.send_signal(signal.SIGKILL)
        child.wait()
        path = files(store)[0]
        assert packed(path) or open(path, "rb").read() == before
        assert say(path, "waits", "--json", "--from", str(HOUR), "--to", str(HOUR + 3600))[0] == 0
        if packed(path):  # and once more
            with open(path, "wb") as f:
                f.write(before)
    seal(store)
    assert packed(files(store)[0]) and not os.path.exists(os.path.join(store, "sealing.db"))
    assert everything(files(store)[0], "table", True)["wait_row"] == everything(files(waits[0])[0], "table", False)["wait_row"]


def test_a_damaged_segment_is_set_aside(waits, tmp_path):
    store = str(tmp_path / "store")
    shutil.copytree(waits[0], store)
    path = files(store)[0]
    with open(path, "r+b") as f:  # the pages of its rows
        f.seek(os.path.getsize(path) // 2)
        f.write(os.urandom(os.path.getsize(path) // 4))
    said = seal(store)
    assert said["segments"] == 0 and said["set_aside"] == 1
    assert os.path.exists(path + ".bad")


def test_damage_in_a_column_of_waits_is_an_error_and_no_answer(waits, tmp_path):
    store = str(tmp_path / "store")
    shutil.copytree(waits[1], store)
    with sqlite3.connect(files(store)[0]) as db:
        db.execute("UPDATE packed_block SET data = substr(data, 1, length(data) / 2) WHERE id >> 20 ="
                   " (SELECT id FROM packed_column WHERE \"table\" = 'wait_row' AND name = 'total_ns')")
    code, _, err = say(files(store)[0], "waits", "--json", "--from", str(HOUR), "--to", str(HOUR + 3600))
    assert code == 6 and "damaged" in err


def change(path, to, rnd):
    """Breaks a column: cuts it, turns a bit of it, or puts something else there."""
    shutil.copy(path, to)
    with sqlite3.connect(to) as db:
        number, data = rnd.choice(db.execute("SELECT id, data FROM packed_block").fetchall())
        how = rnd.randrange(3)
        if how == 0:
            data = data[:rnd.randrange(len(data))]
        elif how == 1:
            data = bytearray(data)
            data[rnd.randrange(len(data))] ^= 1 << rnd.randrange(8)
        else:
            data = rnd.randbytes(rnd.randrange(1, 200))
        db.execute("UPDATE packed_block SET data = ? WHERE id = ?", (bytes(data), number))
    return to


@pytest.mark.long
def test_a_damaged_block_is_an_error(stores, tmp_path):
    rnd, refused = random.Random(3), 0
    archive, verb = files(stores[1])[0], "waits" if "waits" in stores[0] else "stacks"
    for _ in range(40):
        path = change(archive, str(tmp_path / os.path.basename(archive)), rnd)
        done = subprocess.run([os.path.join(BIN, "sonde"), verb, "--store", path, "--from", str(HOUR), "--to", str(HOUR + 7200)], capture_output=True, text=True,
                              timeout=60)
        assert done.returncode in (0, 4, 6), done
        if done.returncode == 6:
            assert "damaged" in done.stderr, done.stderr
            refused += 1
        assert sonde(path, "SELECT count(*), max(container), max(thread), max(function) FROM cpu_samples")[0] in (0, 2, 6)
        assert loaded(path, "SELECT count(*), max(folded) FROM stacks")[0] >= 0
    assert refused > 5


@pytest.mark.long
@pytest.mark.parametrize("sql", [
    "UPDATE packed_table SET rows = 1 << 40", "UPDATE packed_table SET rows = rows - 1", "DELETE FROM packed_column WHERE number = 0",
    "UPDATE packed_column SET type = 'TEXT'", "DELETE FROM packed_table", "DELETE FROM packed_block", "UPDATE packed_table SET block_rows = 1",
    "UPDATE packed_block SET data = (SELECT data FROM packed_block LIMIT 1)", "UPDATE packed_table SET rows = -1"])
def test_an_archive_that_contradicts_itself_is_an_error(both, tmp_path, sql):
    path = shutil.copy(files(both["build"][1])[0], tmp_path)
    with sqlite3.connect(path) as db:
        db.execute(sql)
    code, _, said = say(path, "stacks", "--from", str(HOUR), "--to", str(HOUR + 7200))
    assert code == 6 and "damaged" in said, said
