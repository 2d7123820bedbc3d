# SPDX-License-Identifier: Apache-2.0
"""`sonde explain`: twenty changes of different kinds are planted, each in a store of its own: process and function are named in
the first three statements, with the figures of plain SQL; and of a load that goes on as before nothing is said."""
import json
import os
import random
import subprocess

import pytest
from conftest import BUILD, need, scale, sql_all
from test_timeline import paste, put

AT = 1795144200
SECONDS = range(AT - 660, AT)
MIDDLE = AT - 60
HOST = {"db": (10, "", {"parse": 25, "scan": 30, "sort": 8}), "nginx": (11, "web", {"accept": 20, "send": 25}),
        "cron": (12, "", {"walk": 15, "hash": 6}), "app": (13, "api", {"serve": 22, "encode": 12})}
RANGE = ["--from", str(MIDDLE), "--to", str(AT)]


def cpu(r, comm, function, level, at, **more):
    n = round(r.gauss(level, 0.25 * level))
    pid, container, _ = HOST.get(comm, (500, "", None))
    return {"kind": "cpu", "at": at, "n": max(n, 0), "pid": pid, "comm": comm, "container": container, "stack": ["main", function],
            **more}


def host(seed, level=lambda comm, function, later: 1.0):
    """What runs all the time; `level` says how much of it, before and later."""
    r = random.Random(seed)
    yield {"run": "cpu", "from": SECONDS[0], "to": AT, "bucket_s": 1, "period_ns": 10101010}
    for s in SECONDS:
        for comm, (_, _, functions) in HOST.items():
            for function, n in functions.items():
                row = cpu(r, comm, function, n * level(comm, function, s >= MIDDLE), s)
                if row["n"]:
                    yield row


def scaled(**changes):
    """Functions that use so many times as much later."""
    return lambda seed: host(seed, lambda comm, function, later: changes.get(function, 1.0) if later else 1.0)


def scaled_process(comm, times, before=1.0):
    return lambda seed: host(seed, lambda c, function, later: (times if later else before) if c == comm else 1.0)


def extra(later, n=40, **who):
    """Somebody who runs in one of the two windows only."""
    def lines(seed):
        r = random.Random(seed + 1)
        yield from host(seed)
        for i, s in enumerate(s for s in SECONDS if (s >= MIDDLE) == later):
            pid = who.get("pid", 500) if who.get("one", True) else 1000 + i
            yield cpu(r, who["comm"], "hot_planted", n, s, **{"container": who.get("container", ""), "pid": pid})
    return lines


def amounts(kind, change, gauge=False):
    """Three programs that allocate, hold or wait; `app` does more of it later, in one function."""
    def lines(seed):
        r = random.Random(seed + 2)
        yield from host(seed)
        yield {"run": "family", "from": SECONDS[0], "to": AT, "bucket_s": 1}
        for s in SECONDS:
            for comm, function, level in (("app", "serve", 900), ("app", "planted_site", 300), ("db", "scan", 1500)):
                later = s >= MIDDLE and function == "planted_site"
                value = round(r.gauss(level * (change if later else 1), 0.05 * level)) * 1000
                yield {"kind": kind, "at": s, "n": 5, "value": max(value, 0), "pid": HOST[comm][0], "comm": comm,
                       "container": HOST[comm][1], "label": 0, "stack": ["main", function]}
    return lines


PLANTED = {  # lines of the store, who, function, type
    "a new process": (extra(True, comm="backup"), "backup", "hot_planted", "cpu"),
    "a new container": (extra(True, comm="ffmpeg", container="jelly"), "jelly", "hot_planted", "cpu"),
    "short children": (extra(True, comm="cc1", one=False), "cc1", "hot_planted", "cpu"),
    "short children in a container": (extra(True, comm="sh", container="ci", one=False), "ci", "hot_planted", "cpu"),
    "a process ended": (extra(False, comm="backup"), "backup", "hot_planted", "cpu"),
    "a container ended": (extra(False, comm="ffmpeg", container="jelly"), "jelly", "hot_planted", "cpu"),
    "a process doubled": (scaled_process("db", 2), "db", "scan", "cpu"),
    "a container doubled": (scaled_process("nginx", 2), "web", "send", "cpu"),
    "a process halved": (scaled_process("db", 0.5), "db", "scan", "cpu"),
    "a container stopped": (scaled_process("app", 0), "api", "serve", "cpu"),
    "a function grew": (scaled(parse=2.2), "db", "parse", "cpu"),
    "a function of a container grew": (scaled(encode=3), "api", "encode", "cpu"),
    "a function shrank": (scaled(send=0.3), "web", "send", "cpu"),
    "one function for another": (scaled(parse=2, scan=1 / 6), "db", "parse", "cpu"),
    "a function is gone": (scaled(accept=0), "web", "accept", "cpu"),
    "memory grew": (amounts("inuse", 3), "api", "planted_site", "inuse"),
    "memory was freed": (amounts("inuse", 0.1), "api", "planted_site", "inuse"),
    "allocations grew": (amounts("alloc", 4), "api", "planted_site", "alloc"),
    "threads wait for a CPU": (amounts("runqueue", 5), "api", "planted_site", "runqueue"),
    "threads wait for locks": (amounts("mutex", 5), "api", "planted_site", "mutex"),
    "threads are blocked": (amounts("offcpu", 6), "api", "planted_site", "offcpu"),
}


def waits(later=lambda who, s: (), ready_ms=400):
    """A host on which `db` waits for its clients all the time, and does so later for something else too; `later` tells lines of
    a second, and of what it waited then."""
    who = {"pid": 10, "comm": "db", "tid": 10, "thread": "db"}

    def lines(seed):
        r = random.Random(seed + 3)
        yield from host(seed)
        yield {"run": "offcpu", "from": SECONDS[0], "to": AT, "bucket_s": 1}
        for s in SECONDS:
            changed = s >= MIDDLE
            at = {"kind": "offcpu", "at": s, "n": 20, **who}
            yield {**at, "label": 5, "value": r.randrange(500, 900) * MS, "stack": ["main", "secure_read", "epoll_wait"]}
            yield {**at, "label": 1, "value": r.randrange(200, 900) * MS, "stack": ["main", "work", "pthread_cond_wait"]}
            yield {**at, "label": 1, "value": r.randrange(40, 60) * MS, "stack": ["main", "work", "pthread_mutex_lock"]}
            yield {**at, "label": 2, "value": r.randrange(90, 110) * MS, "stack": ["main", "read"]}
            yield {**at, "kind": "runqueue", "label": 16, "value": (ready_ms if changed else 10) * r.randrange(90, 110) * MS // 100,
                   "stack": ["main", "work"]}
            yield {**who, "wake": 5, "context": 0, "at": s, "n": 20, "total_ns": 700 * MS, "by": CLIENT}
            yield {**who, "culprit": 0, "at": s, "n": 20, "total_ns": 8 * MS, "by": CLIENT}
            yield from later(who, s) if changed else ()
    return lines


MS = 1_000_000
CLIENT = {"pid": 77, "comm": "client", "thread": "client", "tid": 77}


def LOCKED(who, s):
    yield {"kind": "offcpu", "at": s, "n": 5, **who, "label": 5, "value": 800 * MS, "stack": ["main", "ProcSleep", "epoll_wait"]}
    yield {**who, "wake": 5, "context": 0, "at": s, "n": 5, "total_ns": 790 * MS, "by": {**who, "pid": 4242, "tid": 4242}}
    yield {**who, "wake": 5, "context": 1, "at": s, "n": 5, "total_ns": 3000 * MS, "by": {**CLIENT, "pid": 78, "tid": 78}}


def CONTENDED(who, s):
    yield {**who, "culprit": 0, "at": s, "n": 90, "total_ns": 360 * MS, "by": {"pid": 99, "comm": "burner", "thread": "b", "tid": 99}}
    yield {**who, "culprit": 1, "at": s, "n": 9, "total_ns": 30 * MS}
    yield {"throttle": "/docker/stranger", "at": s, "periods": 10, "throttled": 9, "throttled_ns": 500 * MS}


def test_a_lock_convoy_is_said_to_be_one_and_who_held_it(sonde, tmp_path):
    """All together db was blocked no longer: idle waits are less than they were as often as more."""
    store = str(tmp_path / "store")
    put(store, list(waits(LOCKED, 10)(7)))
    said = explain(sonde, store, *RANGE)
    row = said["rows"][0]
    assert (row["about"], row["name"], row["type"], row["mostly"]["who"], row["mostly"]["who_is"]) == (
        "reason", "lock", "offcpu", "db", "[command]"), said["rows"]
    assert row["text"].startswith("all processes waited for locks 0.80 s each second more: "), row["text"]
    assert "; ended mostly by db 4242 (0.79 s each second, before 0.00 s each second)" in row["text"]
    assert not [r for r in said["rows"] if r["type"] == "runqueue"], said["rows"]
    assert not [r for r in said["rows"] if r["name"] == "poll"]
    figures_are_those_of_sql(store, row)
    assert [(c["what"], c["name"], c["pid"], c["amount_after"], c["amount_before"]) for c in row["causes"]] == [
        ("waker", "db", 4242, 60 * 790 * MS, 0)]
    text = sonde("explain", *RANGE, "--sql", "--store", store, check=True).stdout
    assert f"    sonde waits --comm db --from {said['from']} --to {said['to']} --store {store}\n" in text, text
    assert "FROM wakers" in text and "ProcSleep" in text


def figures_are_those_of_sql(store, row):
    def value(query):
        return sum(next(iter(r.values())) or 0 for r in sql_all(store, query))

    for side in ("before", "after"):
        assert row[side]["amount"] == value(row[side]["query"]), row
        for c in row["causes"]:
            assert c[f"amount_{side}"] == value(c[f"query_{side}"]), c


def test_a_neighbour_is_said_to_be_one_and_no_lock(sonde, tmp_path):
    store = str(tmp_path / "store")
    put(store, list(waits(CONTENDED)(8)))
    rows = explain(sonde, store, *RANGE)["rows"]
    assert (rows[0]["type"], rows[0]["about"], rows[0]["name"]) == ("runqueue", "command", "db"), rows
    assert "; while the CPU was taken by burner (0.36 s each second, before 0.00 s each second)" in rows[0]["text"]
    assert [c["what"] for c in rows[0]["causes"]] == ["neighbour"], "a stranger's quota holds others back"
    assert not [r for r in rows if r["about"] == "reason"], rows
    figures_are_those_of_sql(store, rows[0])


@pytest.mark.parametrize("burner_ms", [60, 380])
def test_a_quota_is_said_to_be_one_and_no_contention(sonde, tmp_path, burner_ms):
    """Others may well run on the CPU that it is held back from: then both are told."""
    who = {"container": "api"}

    def later(_, s):
        yield {"throttle": "/docker/apis", "at": s, "periods": 10, "throttled": 9, "throttled_ns": 900 * MS}
        yield {"throttle": "/system.slice/docker-api.scope", "at": s, "periods": 10, "throttled": 9, "throttled_ns": 350 * MS}
        yield {**_, **who, "culprit": 0, "at": s, "n": 9, "total_ns": burner_ms * MS,
               "by": {"pid": 99, "comm": "burner", "thread": "b", "tid": 99}}

    store = str(tmp_path / "store")
    put(store, [{**line, **who} if line.get("comm") == "db" else line for line in waits(later)(9)])
    rows = explain(sonde, store, *RANGE)["rows"]
    assert (rows[0]["type"], rows[0]["about"], rows[0]["name"]) == ("runqueue", "container", "api"), rows
    assert ("; held back by its CPU quota: api (0.35 s each second, before 0.00 s each second; "
            "in 540 of 600 periods)") in rows[0]["text"]
    assert [c["what"] for c in rows[0]["causes"]] == ["quota"] + ["neighbour"] * (burner_ms == 380)
    figures_are_those_of_sql(store, rows[0])


def test_idle_waits_that_change_are_no_reason(sonde, tmp_path):
    """Twice as many clients that ask for nothing."""
    def later(who, s):
        yield {"kind": "offcpu", "at": s, "n": 5, **who, "label": 5, "value": 1900 * MS, "stack": ["main", "secure_read", "epoll_wait"]}

    store = str(tmp_path / "store")
    put(store, list(waits(later, 10)(7)))
    assert not [r for r in explain(sonde, store, *RANGE)["rows"] if r["about"] == "reason"]


SHELL = {"pid": 55, "comm": "bash", "tid": 55, "thread": "bash"}


def test_waits_that_are_idle_by_nature_come_last(sonde, tmp_path):
    """A pipeline began: its shell waits for children, its last program for the pipe, far longer than anything else changed."""
    def later(who, s):
        yield {"kind": "offcpu", "at": s, "n": 5, **SHELL, "label": 9, "value": 990 * MS, "stack": ["main", "waitchld", "wait4"]}
        for pid in range(60, 68):
            yield {"kind": "offcpu", "at": s, "n": 5, **SHELL, "pid": pid, "tid": pid, "comm": "tee", "thread": "tee", "label": 4, "value": 990 * MS, "stack": ["main", "read"]}
        yield {"kind": "offcpu", "at": s, "n": 5, **who, "label": 1, "value": 300 * MS, "stack": ["main", "work", "pthread_mutex_lock"]}

    store = str(tmp_path / "store")
    put(store, list(waits(later, 10)(7)))
    rows = explain(sonde, store, *RANGE, "-n", 50)["rows"]
    idle = [(r["about"], r["name"]) in (("reason", "pipe"), ("reason", "child"), ("command", "tee"), ("command", "bash")) for r in rows]
    assert idle == sorted(idle) and any(idle) and not idle[0], [r["text"] for r in rows]
    assert (rows[0]["about"], rows[0]["name"]) == ("reason", "lock"), rows[0]


def test_a_small_part_is_not_mostly_and_who_ended_other_waits_is_not_named(sonde, tmp_path):
    """Thirty programs wait for locks, none much longer than another; one thread ends waits of the same class for as long as ten of them wait: idle ones."""
    def later(who, s):
        for i in range(30):
            of = {"pid": 300 + i, "tid": 300 + i, "comm": f"w{i}", "thread": f"w{i}"}
            yield {"kind": "offcpu", "at": s, "n": 5, **of, "label": 1, "value": (30 + 8 * (i == 3)) * MS, "stack": ["main", "pthread_mutex_lock"]}
        yield {**who, "wake": 1, "context": 0, "at": s, "n": 5, "total_ns": 9000 * MS, "by": {**who, "pid": 4242, "tid": 4242}}

    store = str(tmp_path / "store")
    put(store, list(waits(later, 10)(7)))
    (row,) = [r for r in explain(sonde, store, *RANGE, "-n", 50)["rows"] if (r["about"], r["name"]) == ("reason", "lock")]
    assert row["mostly"] is None and not row["causes"] and "mostly" not in row["text"] and "largest" not in row["text"], row
    assert "sonde waits --from" in row["command"], row["command"]


@pytest.mark.parametrize("part, said", [(0.7, "; mostly in the function parse ("), (0.3, "; the largest part in the function parse (")])
def test_a_function_is_called_the_largest_part_where_it_is_less_than_half(part, said, sonde, tmp_path):
    def lines(seed):
        yield from host(seed, lambda comm, function, later: 1.0)
        for s in SECONDS:
            for i, share in enumerate((part, *[(1 - part) / 4] * 4)):
                if s >= MIDDLE:
                    yield {"kind": "cpu", "at": s, "n": round(100 * share), "pid": 10, "comm": "db", "stack": ["main", f"f{i}" if i else "parse"]}

    store = str(tmp_path / "store")
    put(store, sorted(lines(3), key=lambda x: x.get("at", 0)))
    row = explain(sonde, store, *RANGE)["rows"][0]
    assert row["name"] == "db" and said in row["text"], row["text"]


def explain(sonde, store, *args):
    return json.loads(sonde("explain", *args, "--json", store=store, check=True).stdout)


def names(row):
    return {row["name"], *((row["mostly"] or {}).get(k) for k in ("who", "function"))}


@pytest.mark.parametrize("what", sorted(PLANTED))
def test_what_was_planted_is_named_with_the_figures_of_sql(sonde, tmp_path, what):
    lines, who, function, kind = PLANTED[what]
    store = str(tmp_path / "store")
    put(store, list(lines(7)))
    said = explain(sonde, store, *RANGE, "-n", 50)
    assert said["changed"]
    hits = [r for r in said["rows"][:3] if {who, function} <= names(r) and r["type"] == kind]
    assert hits, [r["text"] for r in said["rows"][:5]]
    assert who in hits[0]["text"] and function in hits[0]["text"]
    for row in said["rows"]:
        for side in ("before", "after"):
            by_sql = sum(next(iter(r.values())) or 0 for r in sql_all(store, row[side]["query"]))
            if row["type"] != "inuse":
                assert row[side]["amount"] == by_sql, row["text"]
                assert row[side]["value"] == pytest.approx(by_sql / 1e9 / row[side]["seconds"] * (
                    1e9 if row["unit"].startswith("bytes") else 1), rel=1e-6)
    if kind == "inuse": # how it stands at the end, beside the mean over the window
        by_sql = sum(next(iter(r.values())) or 0 for r in sql_all(store, hits[0]["after"]["query"]))
        assert hits[0]["after"]["value"] == pytest.approx(by_sql, rel=0.2)
    assert [r["change"] for r in said["rows"]] == [r["change"] for r in explain(sonde, store, *RANGE, "-n", 50)["rows"]]


@pytest.mark.parametrize("what", ["a new process", "a container ended", "a container doubled", "memory grew"])
def test_the_command_of_a_statement_shows_it(sonde, tmp_path, what):
    lines, who, function, _ = PLANTED[what]
    store = str(tmp_path / "a store")
    put(store, list(lines(3)))
    text = sonde("explain", *RANGE, "--sql", "--store", store, check=True).stdout
    assert "\nrequests were not recorded" in "\n" + text and "\n1. " in text and who in text and function in text and "SELECT sum(" in text
    command = text.split("\n1. ")[1].splitlines()
    command = next(line.strip() for line in command if line.startswith("    sonde ") or "/sonde " in line)
    paste(command + (" -o x.folded" if " flame " in command else " -o x.json"), tmp_path)
    written = open(tmp_path / ("x.folded" if " flame " in command else "x.json"), encoding="utf-8").read()
    assert function in written


def test_memory_in_use_is_not_nothing_before_the_recording_began(sonde, tmp_path):
    """Its mean is that of the moments at which it was known, not of all ten minutes."""
    store, began = str(tmp_path / "store"), AT - 300
    lines = [{**row, "from": began} if "run" in row else row for row in amounts("inuse", 1, True)(5) if row.get("at", AT) >= began]
    put(store, lines)
    said = json.loads(sonde("diff", "--type", "inuse", *RANGE, "--vs-from", str(SECONDS[0]), "--vs-to", str(MIDDLE), "--json", "--store", store,
                            check=True).stdout)
    before, after = said["all"]["before"], said["all"]["after"]
    assert 0.97 < before / after < 1.03, said["all"]
    assert not [r for r in explain(sonde, store, *RANGE)["rows"] if r["type"] == "inuse"]


@pytest.mark.parametrize("ended", [False, True])
def test_a_heap_that_was_not_read_in_the_window_is_not_none_there(sonde, tmp_path, ended):
    """On a busy host heaps are read less often. Only one whose process ended holds nothing."""
    store, who = str(tmp_path / "store"), {"pid": 900, "comm": "registry"}
    heap = {"kind": "inuse", "n": 500, "value": 200_000_000, "label": 0, "stack": ["main", "cache"], **who}
    lines = [*amounts("inuse", 1, True)(5), *({**heap, "at": s} for s in SECONDS if s < MIDDLE)]
    put(store, lines + ([{"end": 1, "status": 0, "at": MIDDLE + 20, **who}] if ended else []))
    said = explain(sonde, store, *RANGE, "-n", 50)
    told = [r["text"] for r in said["rows"] if r["type"] == "inuse"]
    assert any("registry" in text for text in told) == ended, told
    assert any("registry (not read in both windows)" in w for w in said.get("warnings") or []) != ended, said.get("warnings")


def test_a_family_that_began_before_makes_no_other_one_slower(sonde, tmp_path):
    """That of family disk has no values of any kind: that it recorded says nothing of time on CPU, nor does what it lost."""
    store, began = str(tmp_path / "store"), AT - 300
    lines = [row for row in host(27) if row.get("at", AT) >= began]
    lines[0]["from"] = began
    put(store, [{"run": "disk", "from": SECONDS[0], "to": AT, "bucket_s": 1}, {"loss": "ring", "at": AT - 30, "n": 7}, *lines])
    said = json.loads(sonde("diff", *RANGE, "--vs-from", str(SECONDS[0]), "--vs-to", str(MIDDLE), "--json", "--store", store, check=True).stdout)
    assert (said["before"]["seconds"], said["after"]["seconds"]) == (MIDDLE - began, AT - MIDDLE), said["before"]
    assert not explain(sonde, store, *RANGE)["rows"]
    assert "lost" not in sonde("stacks", *RANGE, "--store", store, check=True).stderr


def test_nothing_is_said_of_a_host_that_goes_on_as_before(sonde, tmp_path):
    alarms, pairs = 0, scale(12, 200)
    for seed in range(pairs):
        store = str(tmp_path / f"store{seed}")
        lines = amounts("alloc", 1) if seed % 5 == 0 else waits(ready_ms=10) if seed % 5 == 1 else host
        put(store, list(lines(1000 + seed)))
        said = explain(sonde, store, *RANGE)
        alarms += said["changed"]
    print(f"of {pairs} pairs without a change {alarms} had a statement")
    assert alarms <= 0.05 * pairs
    done = sonde("explain", *RANGE, store=store, check=True)
    assert "\nnothing changed: of what was compared (time on CPU" in done.stdout and "would be detected" in done.stdout


def test_two_windows_of_a_noisy_load_are_alike(sonde, tmp_path):
    """plantstore: 12 services, 400 functions, one service in four wandering."""
    program = os.path.join(BUILD, "tests", "plantstore")
    need("build/tests/plantstore", program)
    alarms, pairs = 0, scale(5, 100)
    for seed in range(pairs):
        store = str(tmp_path / f"store{seed}")
        said = json.loads(subprocess.run([program, store, "--steady", "--seed", str(9000 + seed)], check=True,
                                         capture_output=True, text=True).stdout)
        alarms += explain(sonde, store, "--from", said["middle"], "--to", said["to"])["changed"]
    print(f"of {pairs} pairs of a noisy load {alarms} had a statement")
    assert alarms <= 0.05 * pairs


def test_without_a_range_it_is_the_end_of_the_newest_recording(sonde, tmp_path):
    store = str(tmp_path / "store")
    put(store, list(PLANTED["a new process"][0](5)))
    said = explain(sonde, store)
    assert (said["from_ns"], said["to_ns"]) == (MIDDLE * 10**9, AT * 10**9)
    assert said["before_from_ns"] == (MIDDLE - 600) * 10**9 and said["rows"][0]["name"] == "backup"
    assert explain(sonde, store, "--at", AT - 30)["rows"] == said["rows"]
    narrow = explain(sonde, store, "--comm", "backup", "--comm", "db", *RANGE)
    assert narrow["rows"][0]["name"] == "backup" and narrow["rows"][0]["after"]["query"] is None
    assert explain(sonde, store, "db", *RANGE)["changed"] is False


def test_what_cannot_be_compared_is_said(sonde, tmp_path):
    store = str(tmp_path / "store")
    put(store, list(host(5)))
    for args, code in ((["--from", "1990-01-01", "--to", "1990-01-02"], 4), (["--from", SECONDS[0], "--to", AT], 4),
                       (["--before", "soon"], 2), (["nosuchword", *RANGE], 2)):
        done = sonde("explain", *args, store=store)
        assert done.returncode == code and done.stdout == "" and done.stderr, args


def test_what_the_filters_name_is_said_to_be_new_where_there_was_none_of_it_before(sonde, tmp_path):
    store = str(tmp_path / "store")
    put(store, list(PLANTED["a new process"][0](5)))
    done = sonde("explain", "--comm", "backup", *RANGE, store=store)
    assert done.returncode == 4 and done.stdout == ""
    assert "backup ran in " in done.stderr and "nothing to compare it with" in done.stderr
    command = done.stderr.split("fix: ")[1].split(" (all")[0]
    assert "hot_planted" in paste(command, tmp_path, env=dict(os.environ, SONDE_STORE=store))
    gone = sonde("explain", "--comm", "backup", "--from", SECONDS[0], "--to", SECONDS[0] + 60, store=store)
    assert gone.returncode == 4 and "no CPU samples" in gone.stderr


def limits(answer):
    return {r["what"]: r["text"] for r in answer["limits"]}


@pytest.mark.parametrize("recorded", [False, True])
def test_a_host_that_is_at_its_limit_all_along_is_said_to_be_slow_for_that(recorded, sonde, tmp_path):
    """Nothing changes, and no request is recorded: threads wait for a CPU nearly all the time, and half of it for the disk."""
    store = str(tmp_path / "store")

    def facts(user_us, **more):
        yield {"run": "host", "from": SECONDS[0], "to": AT, "bucket_s": 10}
        for at in range(SECONDS[0], AT, 10):
            yield {"fact": "host_row", "at": at, "cpus": 2, "user_us": user_us, "system_us": 500_000, "mem_total": 8 << 30, "mem_available": 4 << 30, **more}
            yield {"fact": "disk_row", "disk": "sda", "at": at, "reads": 10, "busy_us": 9_500_000}
        if recorded:  # family disk, too
            yield {"run": "disk", "from": SECONDS[0], "to": AT, "bucket_s": 10}
            for at in range(SECONDS[0], AT, 10):
                yield {"fact": "block_row", "at": at, "pid": 77, "comm": "tar", "container": "", "disk": "sda", "op": "read", "requests": 10, "bytes": 10 << 20, "errors": 0,
                       "queue_us": 1, "device_us": 9_000_000, "us_65536": 10}

    put(store, [*host(3), *facts(19_000_000, psi_cpu_us=9_700_000, psi_io_us=5_000_000, psi_mem_us=300_000)])
    out = sonde("explain", *RANGE, "--store", store).stdout
    assert out.startswith("the host was at its limit:\n   1.9 of 2 CPUs were used (before 1.9), and threads waited for one 97 % of the time (before 97 %)"), out
    answer = json.loads(sonde("explain", *RANGE, "--json", "--store", store).stdout)
    assert set(limits(answer)) == {"cpu", "disk"} and not answer["changed"], answer
    assert limits(answer)["disk"] == "disk sda was busy 95 % of the time (before 95 %), and threads waited for disks 50 % of the time (before 50 %)"
    assert "most was used by " in limits(answer)["cpu"] and "nginx" not in limits(answer)["cpu"]  # it is in a container: web
    for row in answer["limits"]:
        words = row["command"].split()
        assert sonde(*words[1:]).stdout, row
    (disk,) = [row["command"] for row in answer["limits"] if row["what"] == "disk"]
    assert disk.startswith("sonde disk --from " if recorded else "sonde ps --sort io --from "), disk


def test_a_host_with_room_is_not_at_its_limit(sonde, tmp_path):
    """All CPUs are used and nobody waits for one; threads wait for memory now and then, and for a disk that is seldom busy."""
    store = str(tmp_path / "store")
    rows = [{"run": "host", "from": SECONDS[0], "to": AT, "bucket_s": 10}]
    for at in range(SECONDS[0], AT, 10):
        rows += [{"fact": "host_row", "at": at, "cpus": 2, "user_us": 19_900_000, "system_us": 0, "psi_cpu_us": 1_000_000, "psi_mem_us": 900_000, "psi_io_us": 9_000_000,
                  "mem_total": 8 << 30, "mem_available": 4 << 30},
                 {"fact": "disk_row", "disk": "sda", "at": at, "reads": 10, "busy_us": 2_000_000}]
    put(store, [*host(4), *rows])
    assert limits(json.loads(sonde("explain", *RANGE, "--json", "--store", store).stdout)) == {}


def test_by_samples_alone_full_cpus_are_seen_and_waits_are_said_to_be_unknown(sonde, tmp_path):
    """Of one short recording, with nothing before it."""
    store = str(tmp_path / "store")
    put(store, [{"run": "cpu", "from": AT - 10, "to": AT, "bucket_s": 1, "period_ns": 10101010},
                *({"kind": "cpu", "at": s, "n": n, "pid": pid, "comm": comm, "stack": ["main"]} for s in range(AT - 10, AT) for pid, comm, n in ((7, "cc1", 150), (8, "ld", 47)))])
    with_cpus = sonde("explain", "--from", str(AT - 10), "--to", str(AT), "--store", store, check=False)
    cpus = sql_all(store, "SELECT max(cpus) AS n FROM runs")[0]["n"]
    assert cpus, "a made store says how many CPUs its host has"
    if cpus == 2:
        assert "2.0 of 2 CPUs were used; whether threads waited for one was not recorded (sudo sonde up host); most was used by cc1 (1.52 cores), ld (0.47 cores)" in " ".join(
            with_cpus.stdout.split()), with_cpus
        assert "there is nothing to compare" in " ".join(with_cpus.stdout.split())
