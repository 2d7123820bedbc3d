# SPDX-License-Identifier: Apache-2.0
"""Rare stacks of a sealed day: what is cut off, what stays, and that no number is lost, by a sum of what was put in.

Runs without root. Samples are put into a store by tests/putstore; what they are is reckoned here, from the same list.
"""
import collections
import contextlib
import json
import os
import random
import shutil
import sqlite3
import subprocess
import time

import pytest

from conftest import BUILD, need

PERIOD = 10101010
SHARE = 5000


def made(rare=1500, processes=3):
    """[(ts, pid, comm, stack, n)]: an hour that is over since an hour and more, and the last ten minutes."""
    rnd = random.Random(7)
    hour = int(time.time()) // 3600 * 3600 - 7200
    now = int(time.time()) // 10 * 10 - 600
    heavy = [["main"] + [f"f{rnd.randrange(40)}" for _ in range(8)] for _ in range(10)]
    rows = [(hour + 20 * i, 100 + i % 3, "cc1", heavy[i % 10], 100) for i in range(150)]
    for i in range(rare):  # each seen once or twice, some call again what called them
        trunk = heavy[rnd.randrange(10)]
        stack = trunk[:rnd.randrange(1, len(trunk) + 1)] + [f"f{rnd.randrange(60)}" for _ in range(rnd.randrange(1, 9))]
        rows.append((hour + 10 * rnd.randrange(300), (100 if processes == 3 else 1000) + i % processes, "cc1", stack, rnd.choice((1, 1, 2))))
        if i < 200:
            rows.append((now, 100, "cc1", stack + ["late"], 1))
    rows += [(hour, 200, "few", ["main", f"f{i}"], 1) for i in range(50)]
    return hour, rows


def put(folder, rows):
    run = {"run": "cpu", "from": min(r[0] for r in rows), "to": max(r[0] for r in rows) + 10, "bucket_s": 10, "period_ns": PERIOD}
    lines = [run] + [{"kind": "cpu", "at": ts + 1, "n": n, "value": 0, "pid": pid, "comm": comm, "thread": comm, "stack": stack}
                     for ts, pid, comm, stack, n in rows]
    subprocess.run([os.path.join(BUILD, "tests", "putstore"), folder], input="\n".join(map(json.dumps, lines)), text=True,
                   check=True, timeout=60)


def end_segment(folder):
    """The newest one is of another boot, so that the next writer begins another."""
    newest = sorted(f for f in os.listdir(folder) if f.endswith(".db") and "-d" not in f)[-1]
    with sqlite3.connect(os.path.join(folder, newest)) as db:
        db.execute("UPDATE meta SET value = value || 'x' WHERE key = 'boot_id'")


def seal(folder, *args):
    need("build/bin/sonde-seal", os.path.join(BUILD, "bin", "sonde-seal"))
    out = subprocess.run([os.path.join(BUILD, "bin", "sonde-seal"), "--store", folder, "--today", "--grace", "0", "--json", *args],
                         check=True, timeout=60, stdout=subprocess.PIPE).stdout
    return json.loads(out)


def day(folder):
    """The one that counts; where midnight lay between two segments, there are two."""
    days = sorted(f for f in os.listdir(folder) if "-d0" in f)
    if len({f[:8] for f in days}) > 1:
        pytest.skip("midnight lies between")
    db = sqlite3.connect(os.path.join(folder, days[-1]))
    assert db.execute("PRAGMA integrity_check").fetchone() == ("ok",)
    return db


def stored(db):
    """{(hour, comm, stack): n} and {(hour, pid): n}, from the sums by the hour; {(hour, comm, function): [self, total]} of the rare."""
    frames = collections.defaultdict(list)
    for stack, name in db.execute("SELECT stack_id, function FROM stack_frames ORDER BY stack_id, depth"):
        frames[stack].append(name)
    stacks, pids = collections.Counter(), collections.Counter()
    for ts, comm, pid, stack, n in db.execute(
            "SELECT (x.ts + (SELECT value FROM meta WHERE key = 't0')) / 3600 * 3600, p.comm, p.pid, e.stack, x.n FROM sample x"
            " JOIN series e ON e.id = x.series JOIN task t ON t.id = e.task JOIN process p ON p.id = t.process"):
        stacks[ts, comm, tuple(frames[stack])] += n
        pids[ts, pid] += n
    rare = {}
    for ts, comm, name, own, total in db.execute(
            "SELECT r.ts + (SELECT value FROM meta WHERE key = 't0'), (SELECT max(comm) FROM process p WHERE p.exe = r.exe), f.name, r.self,"
            " r.total FROM rare_row r JOIN function f ON f.id = r.function"):
        was = rare.get((ts, comm, name), (0, 0))
        rare[ts, comm, name] = (was[0] + own, was[1] + total)
    return stacks, pids, rare


def functions(stacks, rare):
    """{(hour, comm, function): (self, total)}"""
    own, total = collections.Counter(), collections.Counter()
    for (ts, comm, stack), n in stacks.items():
        own[ts, comm, stack[-1]] += n
        for name in set(stack):
            total[ts, comm, name] += n
    for key, (s, t) in rare.items():
        own[key] += s
        total[key] += t
    return {k: (own[k], total[k]) for k in total if not k[2] == "[rare]"}


def places(stack):
    """A function as a leaf is another frame than as a caller."""
    return (*stack[:-1], stack[-1] + " leaf")


def put_in(rows):
    stacks, pids = collections.Counter(), collections.Counter()
    for ts, pid, comm, stack, n in rows:
        stacks[ts // 3600 * 3600, comm, tuple(stack)] += n
        pids[ts // 3600 * 3600, pid] += n
    return stacks, pids


def test_rare_stacks_are_cut_and_no_number_of_a_process_or_function_changes(tmp_path):
    need("build/tests/putstore", os.path.join(BUILD, "tests", "putstore"))
    hour, rows = made()
    folder = str(tmp_path / "store")
    put(folder, rows)
    end_segment(folder)
    put(folder, [(hour, 300, "other", ["main"], 1)])
    said = seal(folder)
    with day(folder) as db:
        stacks, pids, rare = stored(db)
    expected, expected_pids = put_in(rows)
    assert pids == expected_pids
    assert functions(stacks, rare) == functions(expected, {})
    ends = {k: n for k, n in stacks.items() if k[2][-1] == "[rare]"}
    assert said["rare"] == sum(ends.values()) > 1000
    assert {k[:2] for k in ends} == {(hour, "cc1")}, "neither what few samples are of, nor the last hour"
    whole = sum(n for (ts, comm, _), n in expected.items() if ts == hour and comm == "cc1")
    within = collections.Counter()
    for (ts, comm, stack), n in expected.items():
        for k in range(len(stack) + 1):
            within[ts, comm, places(stack)[:k]] += n
    for key, n in expected.items():  # what is cut, and where: by the definition
        kept = places(key[2])
        while key[:2] == (hour, "cc1") and kept and within[(*key[:2], kept)] * SHARE < whole:
            kept = kept[:-1]
        assert stacks[key] == (n if kept == places(key[2]) else 0), key
        assert kept == places(key[2]) or (*key[:2], kept + ("[rare]",)) in ends, key
    assert len(stacks) < len(expected) / 2


def asked(folder, *words):
    done = subprocess.run([os.path.join(BUILD, "bin", "sonde"), "stacks", "--json", "-n", "100000", "--store", folder, *words], check=True,
                          timeout=60, capture_output=True, text=True)
    return {(r["function"], r["module"]): (r["self_samples"], r["total_samples"], r["self_ns"], r["total_ns"]) for r in json.loads(done.stdout)["rows"]}


def test_functions_of_whole_hours_are_told_as_before_and_of_a_part_by_their_share(tmp_path):
    need("build/tests/putstore", os.path.join(BUILD, "tests", "putstore"))
    hour, rows = made()
    folder, plain = str(tmp_path / "store"), str(tmp_path / "plain")
    put(folder, rows)
    end_segment(folder)
    put(folder, [(hour, 300, "other", ["main"], 1)])
    shutil.copytree(folder, plain)
    assert seal(folder)["rare"] > 1000
    whole = ["--from", str(hour), "--to", str(hour + 3600)]
    for words in (whole, [*whole, "--comm", "cc1"], [*whole, "--comm", "few"], ["--from", str(hour), "--to", str(hour + 9000)]):
        assert asked(folder, *words) == asked(plain, *words), words
    for words in (["--from", str(hour), "--to", str(hour + 1800)], [*whole, "--pid", "101"]):
        before, after = asked(plain, *words), asked(folder, *words)
        samples = sum(v[0] for v in before.values())
        assert sum(v[0] for v in after.values()) == samples
        assert after.get(("[rare]", None), (0,))[0] < samples / 20
        for name, (own, total, *_) in before.items():
            if own > samples / 50:
                assert abs(after[name][0] - own) <= own / 4, (name, before[name], after[name])
    # so are those of the view, by the extension in sonde and in SQLite itself
    query = "SELECT function, module, container, self, total, self_ns, total_ns FROM functions_top ORDER BY 1, 2, 3"
    said = [subprocess.run([os.path.join(BUILD, "bin", "sonde"), "sql", "--csv", "--store", path, query], check=True, timeout=60, capture_output=True,
                           text=True).stdout for path in (plain, folder)]
    assert said[0] == said[1] and said[0].count("\n") > 60
    with contextlib.closing(day(folder)) as db:
        db.enable_load_extension(True)
        db.load_extension(os.path.join(BUILD, "lib", "sonde.so"))
        assert all(row[0] != "[rare]" for row in db.execute(query))
        assert sum(row[3] for row in db.execute(query)) == db.execute("SELECT sum(samples) FROM cpu_samples").fetchone()[0]
    # of two hours of which one is cut off, a difference says that
    now = max(r[0] for r in rows)
    for path, cut in ((plain, False), (folder, True)):
        done = subprocess.run([os.path.join(BUILD, "bin", "sonde"), "diff", "--json", "--store", path, "--baseline", f"{now - hour}s", "--from",
                               str(now), "--to", str(now + 1800)], check=True, timeout=60, capture_output=True, text=True)
        assert any("cut off as rare" in w for w in json.loads(done.stdout)["warnings"]) == cut, done.stdout[:2000]
    # who calls whom is not on record: there they stay [rare]
    done = subprocess.run([os.path.join(BUILD, "bin", "sonde"), "export", "folded", "--store", folder, *whole], check=True,
                          timeout=60, capture_output=True, text=True)
    assert sum(int(line.rsplit(" ", 1)[1]) for line in done.stdout.splitlines() if ";[rare] " in line) > 1000


def test_in_plain_sqlite3_a_packed_day_has_the_functions_sums_of_before(tmp_path):
    need("build/tests/putstore", os.path.join(BUILD, "tests", "putstore"))
    hour, rows = made(30000, 7000)
    rows = [r for r in rows if r[0] < hour + 3600]
    folder = str(tmp_path / "store")
    put(folder, rows)
    end_segment(folder)
    put(folder, [(hour, 300, "other", ["main"], 1)])
    assert seal(folder)["rare"] > 30000
    with contextlib.closing(day(folder)) as db:
        assert db.execute("SELECT count(*) FROM packed_table").fetchone()[0] > 5
        found = {name: (own, total) for name, own, total in db.execute("SELECT function, self, total FROM functions_top WHERE module = 'cc1'")}
        assert db.execute("SELECT count(*) FROM functions_top WHERE function = '[rare]'").fetchone() == (0,)
        assert db.execute("SELECT sum(self) FROM functions_top").fetchone()[0] == sum(r[4] for r in rows)
    own, total = collections.Counter(), collections.Counter()
    for _, _, comm, stack, n in rows:
        if comm == "cc1":
            own[stack[-1]] += n
            for name in set(stack):
                total[name] += n
    large = [name for name in own if own[name] > sum(own.values()) / 100]
    assert len(large) > 20 and {name: found[name] for name in large} == {name: (own[name], total[name]) for name in large}


def test_more_of_an_hour_that_comes_later_is_counted_once(tmp_path):
    need("build/tests/putstore", os.path.join(BUILD, "tests", "putstore"))
    hour, rows = made()
    folder = str(tmp_path / "store")
    middle = hour + 1500
    for part in ([r for r in rows if r[0] < middle], [r for r in rows if r[0] >= middle]):
        put(folder, part)
        end_segment(folder)
        put(folder, [(hour - 7200, 300, "other", ["main"], 1)])
        assert seal(folder)["rare"] > 100
    with day(folder) as db:
        stacks, pids, rare = stored(db)
    expected, expected_pids = put_in(rows + [(hour - 7200, 300, "other", ["main"], 1)])
    assert pids == expected_pids
    assert functions(stacks, rare) == functions(expected, {})


def test_with_keep_rare_every_stack_stays(tmp_path):
    need("build/tests/putstore", os.path.join(BUILD, "tests", "putstore"))
    hour, rows = made()
    folder = str(tmp_path / "store")
    put(folder, rows)
    end_segment(folder)
    put(folder, [(hour, 300, "other", ["main"], 1)])
    assert seal(folder, "--keep-rare")["rare"] == 0
    with day(folder) as db:
        stacks, pids, rare = stored(db)
    assert (stacks, pids) == put_in(rows) and not rare
