# SPDX-License-Identifier: Apache-2.0
"""sonde waits, neighbours and wakers, on stores of known contents (putstore): numbers put in, plain SQL, and the forms."""
import json
import os
import subprocess

import pytest
from conftest import BUILD, need, sql_all

AT = 1795144200  # 2026-11-20T03:10:00Z
MS = 1_000_000
DB = {"pid": 41, "comm": "postgres", "thread": "postgres", "tid": 41, "container": "db"}
APP = {"pid": 7, "comm": "app", "thread": "worker", "tid": 8}
BURN = {"pid": 99, "comm": "burner", "thread": "burner", "tid": 99}


def hist(slot, n):
    """n values in [2^slot, 2^(slot+1))."""
    return [0] * slot + [n]


def stack(who, label, n, ms, slot, frames, at=3):
    return dict(who, kind="offcpu", at=AT + at, label=label, n=n, value=ms * MS, max=ms * MS // n, hist=hist(slot, n),
                stack=frames)


def wait(who, reason, n, ms, slot=None, flags=0, at=3, longest=None):
    row = dict(who, wait=reason, flags=flags, at=AT + at, n=n, total_ns=ms * MS, max_ns=(longest or ms * MS // n))
    return dict(row, hist=hist(slot, n)) if slot is not None else row


LINES = [
    {"run": "offcpu", "from": AT, "to": AT + 10, "bucket_s": 1},
    # postgres: 30 polls; of those whose stack is known two thirds of the time in ProcSleep, the rest at its client
    wait(DB, 5, 30, 900, 24), stack(DB, 5, 10, 200, 24, ["main", "PostgresMain", "ProcSleep", "WaitLatch", "epoll_wait"]),
    stack(DB, 5, 5, 100, 24, ["main", "PostgresMain", "secure_read", "epoll_wait"]),
    # the app: mutexes and a condition, by name; a poll; a sleep that began before; reads of a disk
    wait(APP, 1, 12, 240, 24), stack(APP, 1, 12, 240, 24, ["main", "handle", "pthread_mutex_lock", "futex_wait"]),
    dict(APP, on="futex 0x10", **{"class": 1}, at=AT + 3, n=2, total_ns=70 * MS, by=DB,
         stack=["main", "handle", "pthread_mutex_lock", "futex_wait"]),
    dict(APP, on="futex 0x20", **{"class": 1}, at=AT + 3, n=2, total_ns=60 * MS, by=BURN,
         stack=["main", "handle", "pthread_mutex_lock", "futex_wait"]),
    dict(APP, on="futex 0x20", **{"class": 1}, at=AT + 4, n=8, total_ns=110 * MS, by=DB,
         stack=["main", "handle", "pthread_mutex_lock", "futex_wait"]),
    dict(APP, on="/var/lib/app/data", **{"class": 2}, at=AT + 4, n=200, total_ns=100 * MS),
    wait(APP, 5, 3, 3000, 29), stack(APP, 5, 3, 3000, 29, ["main", "loop", "epoll_wait"]),
    wait(APP, 6, 1, 5000, flags=2), wait(APP, 2, 100, 50, 18, flags=8, at=4), wait(APP, 2, 100, 50, 18, flags=8, at=5),
    wait(APP, 16, 40, 400, 23), wait(APP, 17, 10, 600, 25), wait(APP, 32, 60, 2000),
    dict(APP, culprit=0, at=AT + 3, n=40, total_ns=750 * MS, by=BURN),
    dict(APP, culprit=0, at=AT + 4, n=5, total_ns=150 * MS, by=DB),
    dict(APP, culprit=1, at=AT + 4, n=5, total_ns=60 * MS), dict(APP, culprit=2, at=AT + 4, n=1, total_ns=40 * MS),
    dict(APP, wake=1, context=0, at=AT + 3, n=2, total_ns=40 * MS, by=DB),
    dict(APP, wake=1, context=0, at=AT + 3, n=3, total_ns=140 * MS, by=dict(DB, stack=["main", "unlock", "futex_wake"])),
    dict(APP, wake=1, context=0, at=AT + 4, n=6, total_ns=30 * MS, by=dict(DB, stack=["main", "unlock", "futex_wake"])),
    dict(APP, wake=1, context=0, at=AT + 3, n=1, total_ns=30 * MS, by=dict(DB, stack=["main", "exit;now"])),
    dict(APP, wake=2, context=1, at=AT + 3, n=200, total_ns=100 * MS, by=BURN),
    dict(APP, wake=5, context=1, at=AT + 3, n=3, total_ns=3000 * MS),
    {"throttle": "/docker/abc", "at": AT + 3, "periods": 50, "throttled": 40, "throttled_ns": 1500 * MS},
    {"throttle": "/docker/free", "at": AT + 3, "periods": 50, "throttled": 0, "throttled_ns": 0},
    {"steal": 400 * MS, "idle_ns": 5000 * MS, "cpu_ns": 20000 * MS, "at": AT + 3},
]


def put(path, lines):
    program = os.path.join(BUILD, "tests", "putstore")
    need("build/tests/putstore", program)
    subprocess.run([program, str(path)], input="".join(json.dumps(x) + "\n" for x in lines), text=True, check=True)
    return str(path)


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    return put(tmp_path_factory.mktemp("waits") / "store", LINES)


RANGE = ("--from", AT, "--to", AT + 20)


def rows(sonde, store, verb, *args):
    return json.loads(sonde(verb, *RANGE, "--json", *args, store=store, check=True).stdout)


def by_reason(answer, comm):
    return {r["reason"] + ("/idle" if r["idle"] else "") + ("/partial" if r["partial"] else ""): r
            for r in answer["rows"] if r["comm"] == comm}


def test_counts_and_totals_are_those_put_in(sonde, made):
    app = by_reason(rows(sonde, made, "waits", "--idle"), "app")
    assert {k: (r["count"], r["total_ns"]) for k, r in app.items()} == {
        "lock": (12, 240 * MS), "poll/idle": (3, 3000 * MS), "sleep/partial": (1, 5000 * MS), "disk": (200, 100 * MS),
        "run queue": (50, 1000 * MS)}
    assert all(r["exact"] for r in app.values())
    assert app["run queue"]["max_ns"] == 60 * MS and app["lock"]["function"] == "futex_wait"
    # by time, not by how often; ended by whom most of that time was
    assert (app["lock"]["object"], app["lock"]["by_thread"], app["lock"]["by_tid"]) == ("futex 0x20", "postgres", 41)
    assert (app["disk"]["object"], app["disk"]["by_thread"]) == ("/var/lib/app/data", None)
    assert app["run queue"]["object"] is None
    total = sql_all(made, "select sum(total_ns) n from wait_totals where comm = 'app' and state <> 'running'")[0]["n"]
    assert total == sum(r["total_ns"] for r in app.values())


def test_percentiles_lie_in_the_slot_of_the_histogram(sonde, made):
    app = by_reason(rows(sonde, made, "waits", "--idle"), "app")
    lock, queue = app["lock"], app["run queue"]
    assert 2**24 <= lock["p50_ns"] <= lock["p95_ns"] <= lock["p99_ns"] <= min(2**25, lock["max_ns"])
    assert 2**23 <= queue["p50_ns"] < 2**24 and 2**25 <= queue["p95_ns"] <= queue["max_ns"]
    assert app["sleep/partial"]["p50_ns"] is None


def test_percentiles_of_lengths_are_known_to_6_percent_and_older_rows_by_powers_of_two(sonde, tmp_path):
    lengths = [MS + i * 4999 for i in range(1000)]  # 1 to 6 ms
    exact = dict(APP, wait=1, flags=0, n=1000, total_ns=sum(lengths), max_ns=lengths[-1])
    run = {"run": "offcpu", "from": AT, "to": AT + 10, "bucket_s": 1}
    store = put(tmp_path / "new", [run, dict(exact, at=AT + 3, lengths=lengths)])
    lock = by_reason(rows(sonde, store, "waits", "--idle"), "app")["lock"]
    for part, key in ((0.5, "p50_ns"), (0.95, "p95_ns"), (0.99, "p99_ns")):
        assert lock[key] == pytest.approx(lengths[int(part * 1000)], rel=0.063), key
    # an older sonde wrote into the same bucket, and into another one: 1000 waits of 2 to 4 s each
    old = dict(APP, wait=1, flags=0, n=1000, total_ns=3000 * 1000 * MS, max_ns=2**32 - 1, hist=hist(31, 1000))
    store = put(tmp_path / "both", [run, dict(exact, at=AT + 3, lengths=lengths), dict(old, at=AT + 3), dict(old, at=AT + 4)])
    lock = by_reason(rows(sonde, store, "waits", "--idle"), "app")["lock"]
    assert lock["count"] == 3000 and 2**31 <= lock["p50_ns"] <= lock["p95_ns"] < 2**32
    spread = json.loads(sql_all(store, f"SELECT hist FROM wait_totals WHERE ts = {AT + 3}")[0]["hist"])
    assert spread[0] == 31 and spread[1] == 1000 and sum(spread[1:]) == 2000


def test_a_named_frame_refines_the_reason(sonde, made):
    db = by_reason(rows(sonde, made, "waits", "--idle"), "postgres")
    lock, idle = db["lock"], db["poll/idle"]
    assert (lock["count"], lock["total_ns"]) == (20, 600 * MS) and not lock["exact"]
    assert (idle["count"], idle["total_ns"]) == (10, 300 * MS) and not idle["exact"]
    assert lock["container"] == "db" and lock["pid"] == 41


def test_idle_waits_are_hidden_and_counted(sonde, made):
    answer = rows(sonde, made, "waits")
    assert not [r for r in answer["rows"] if r["idle"]]
    assert answer["idle_hidden"] == 2 and answer["idle_hidden_ns"] == 3300 * MS
    done = sonde("waits", *RANGE, store=made, check=True)
    assert "2 rows of idle waits (3.3 s) hidden: --idle shows them" in done.stderr and "idle" not in done.stdout


def test_groups_add_up(sonde, made):
    def total(by):
        return sum(r["total_ns"] for r in rows(sonde, made, "waits", "--idle", "--by", by)["rows"])

    assert total("process") == total("thread") == total("command") == total("container")
    threads = rows(sonde, made, "waits", "--by", "thread", "--comm", "app")["rows"]
    assert {r["thread"] for r in threads} == {"worker"}
    containers = rows(sonde, made, "waits", "--idle", "--by", "container")["rows"]
    assert {(r["container"], r["comm"], r["pid"]) for r in containers} == {("db", None, None), (None, None, None)}


def test_neighbours_name_who_ran_and_what_held_back(sonde, made):
    answer = rows(sonde, made, "neighbours")
    assert [(r["comm"], r["by_comm"], r["who"], r["total_ns"], r["share"]) for r in answer["rows"]] == [
        ("app", "burner", "thread", 750 * MS, 0.75), ("app", "postgres", "thread", 150 * MS, 0.15),
        ("app", None, "idle", 60 * MS, 0.06), ("app", None, "unknown", 40 * MS, 0.04)]
    assert answer["throttled"] == [{"cgroup": "/docker/abc", "container": None, "periods": 50, "throttled": 40, "throttled_ns": 1500 * MS}]
    assert answer["steal_ns"] == 400 * MS and answer["cpu_time_ns"] == 20000 * MS


def test_wakers_by_wait(sonde, made):
    answer = rows(sonde, made, "wakers")
    assert [(r["comm"], r["reason"], r["by_comm"], r["context"], r["count"], r["total_ns"]) for r in answer["rows"]] == [
        ("app", "poll", None, "interrupt", 3, 3000 * MS), ("app", "lock", "postgres", "thread", 12, 240 * MS),
        ("app", "disk", "burner", "interrupt", 200, 100 * MS)]
    assert all(r["share"] == 1 for r in answer["rows"])
    assert [r["function"] for r in answer["rows"]] == [None, "futex_wake", None] and "stacks" not in answer["rows"][1]


def test_where_wakers_woke(sonde, made):
    lock = next(r for r in rows(sonde, made, "wakers", "--stacks")["rows"] if r["reason"] == "lock")
    assert lock["stacks"] == [{"stack": "main;unlock;futex_wake", "count": 9, "total_ns": 170 * MS},
                              {"stack": "main;exit\\x3bnow", "count": 1, "total_ns": 30 * MS}]
    text = sonde("wakers", *RANGE, "--stacks", store=made, check=True).stdout
    assert "7 app (lock), woken by 41 postgres: stacks of 10 in 12\n   85.0 %  main;unlock;futex_wake\n" in text
    told = sql_all(made, "SELECT k.folded, sum(w.count) AS n FROM wakers w LEFT JOIN stacks k ON k.id = w.by_stack_id"
                         " WHERE w.reason = 'lock' GROUP BY 1 ORDER BY 2")
    assert [(r["folded"], r["n"]) for r in told] == [("main;exit:now", 1), (None, 2), ("main;unlock;futex_wake", 9)]


def test_what_people_see(sonde, made):
    done = sonde("waits", *RANGE, "--wide", store=made, check=True)
    text = done.stdout.splitlines()
    assert text[0] == ("app waited 1 s for a CPU, db 600 ms for locks, app 240 ms for locks;"
                       " /docker/abc lost 1.5 s to its CPU quota, in 40 of 50 periods")
    assert text[1].split() == ["PID", "NAME", "CONTAINER", "WAITED", "FOR", "TIMES", "TOTAL", "LONGEST", "MOST", "IN", "MOST",
                               "ON", "P50", "P95", "P99"]
    assert [x.split()[0:2] for x in text[2:]] == [["7", "app"], ["41", "postgres"], ["7", "app"], ["7", "app"]]
    assert "lock" in text[3] and "~20" in text[3] and "~600 ms" in text[3] and "  epoll_wait  -  " in text[3]
    assert " futex_wait  futex 0x20, ended by postgres 41  " in text[4], text[4]
    assert "1 row of waits that are not over (5 s), such as a daemon's, hidden" in done.stderr and "~: an exact total was divided" in done.stderr
    text = sonde("waits", *RANGE, "--wide", "--idle", store=made, check=True).stdout.splitlines()
    assert text[-3].split()[:8] == ["7", "app", "-", "sleep,", "not", "over", "1", "5"]
    assert ["poll,", "idle"] == text[-2].split()[3:5] == text[-1].split()[3:5]
    text = sonde("neighbours", *RANGE, "--wide", store=made, check=True).stdout
    assert "75.0 %" in text and "burner" in text and "[CPU was idle]" in text
    assert "throttled by its CPU quota: /docker/abc for 1.5 s, in 40 of 50 periods" in text
    assert "stolen by the hypervisor: 2.0 % of the CPU time" in text
    text = sonde("wakers", *RANGE, "--wide", store=made, check=True).stdout
    # who was on the CPU when a disk was ready has not brought that about
    assert text.count("[timer or device]") == 1 and "burner" not in text, text


def test_an_empty_answer_says_what_to_do(sonde, made, tmp_path):
    cpu = put(tmp_path / "store", [{"run": "cpu", "from": AT, "to": AT + 10, "period_ns": 10_000_000},
                                   dict(APP, kind="cpu", at=AT + 3, n=5, stack=["main"])])
    for verb in ("waits", "neighbours", "wakers"):
        done = sonde(verb, *RANGE, store=cpu)
        assert done.returncode == 4 and "fix:" in done.stderr and "offcpu" in done.stderr
    done = sonde("waits", *RANGE, "--comm", "postgres", store=made)
    assert done.returncode == 0
    done = sonde("neighbours", *RANGE, "--comm", "postgres", store=made)
    assert done.returncode == 4
    assert sonde("waits", *RANGE, "--by", "colour", store=made).returncode == 2


def test_a_condition_is_idle_unless_a_function_further_out_says_what_for(sonde, tmp_path):
    def thread(name, tid, *frames, **kw):
        who = {"pid": 50, "comm": "pool", "thread": name, "tid": tid}
        return [wait(who, 1, 4, 400, 24, **kw), stack(who, 1, 4, 400, 24, ["main", *frames, "futex_wait"])]

    store = put(tmp_path / "store", [LINES[0], *thread("gil", 51, "take_gil", "pthread_cond_timedwait"),
                                     *thread("handed", 54, "drop_gil", "pthread_cond_wait"),
                                     *thread("worker", 52, "work", "___pthread_cond_wait"),
                                     *thread("mutex", 53, "work", "__pthread_mutex_lock")])
    idle = {r["thread"]: r["idle"] for r in rows(sonde, store, "waits", "--idle", "--by", "thread")["rows"]}
    assert idle == {"gil": False, "handed": False, "worker": True, "mutex": False}


def test_a_group_waited_mostly_where_its_threads_together_did(sonde, tmp_path):
    """No matter in how many stacks, and of how many threads: one alone waits longest here, and in another function."""
    def thread(tid, ms, *frames):
        return stack({"pid": 50, "comm": "pool", "thread": "pool", "tid": tid}, 1, 1, ms, 24, ["main", *frames])

    store = put(tmp_path / "store", [LINES[0], wait({"pid": 50, "comm": "pool", "thread": "pool", "tid": 50}, 1, 4, 1000, 24),
                                     thread(50, 400, "join"), *(thread(51 + i, 200, f"caller_{i}", "held") for i in range(3))])
    for by in ("process", "thread"):
        found = rows(sonde, store, "waits", "--by", by)["rows"]
        assert [(r["reason"], r["function"]) for r in found] == [("lock", "held")], found


def test_what_was_waited_before_the_window_is_no_part_of_what_is_shared_out(sonde, tmp_path):
    """Two sessions: one waits for the row that the other holds in each second; that one had been idle for eleven."""
    holder, waiter = ({"pid": p, "comm": "postgres", "thread": "postgres", "tid": p} for p in (41, 42))
    lines = [{"run": "offcpu", "from": AT - 20, "to": AT + 10, "bucket_s": 1}]
    for at in range(-11, 6):
        idle = 800 if at < 0 else 200  # where the capture has it, though its stack is of the moment when it ended
        lines += [wait(holder, 5, 1, idle, 27, at=at), wait(holder, 5, 2, 1000 - idle, 27, at=at), wait(waiter, 5, 3, 900, 27, at=at)]
        if at >= 0:
            lines += [stack(holder, 5, 2, 800, 27, ["main", "pg_sleep", "WaitLatch", "epoll_wait"], at=at),
                      stack(waiter, 5, 3, 900, 27, ["main", "ProcSleep", "WaitLatch", "epoll_wait"], at=at)]
    lines += [stack(holder, 5, 1, 11000, 30, ["main", "secure_read", "epoll_wait"], at=0)]
    store = put(tmp_path / "store", lines)
    done = sonde("waits", "--from", AT, "--to", AT + 6, "--by", "command", "--json", "--idle", store=store, check=True)
    found = by_reason(json.loads(done.stdout), "postgres")
    assert found["lock"]["total_ns"] == pytest.approx(6 * 900 * MS, rel=0.03) and not found["lock"]["exact"]
    assert found["sleep"]["total_ns"] == pytest.approx(6 * 800 * MS, rel=0.03)


def test_what_is_not_over_is_idle_where_what_stood_at_the_end_says_so(sonde, tmp_path):
    def thread(name, tid, *frames):
        who = {"pid": 50, "comm": "pool", "thread": name, "tid": tid}
        return [dict(who, wait=1, flags=3, at=AT + 9, n=1, total_ns=9000 * MS),
                dict(who, kind="standing", at=AT + 9, label=1, n=1, value=700_000 * MS, max=700_000 * MS, stack=["main", *frames])]

    store = put(tmp_path / "store", [LINES[0], *thread("worker", 52, "work", "pthread_cond_wait"),
                                     *thread("locked", 53, "work", "pthread_mutex_lock")])
    found = {r["thread"]: r for r in rows(sonde, store, "waits", "--idle", "--by", "thread")["rows"]}
    assert {k: (r["idle"], r["partial"], r["total_ns"]) for k, r in found.items()} == {
        "worker": (True, True, 9000 * MS), "locked": (False, True, 9000 * MS)}
    assert all(r["max_ns"] is None or r["max_ns"] <= 9000 * MS for r in found.values())  # not what it waited before
    assert found["locked"]["function"] == "pthread_mutex_lock"


def test_a_store_of_sums_alone_is_answered(sonde, tmp_path):
    """A recording without stacks (sonde-offcpu --stack-rate 0) has neither samples nor amounts."""
    store = put(tmp_path / "store", [LINES[0], wait(APP, 6, 3, 300)])
    for window in ((), RANGE):
        answer = json.loads(sonde("waits", "--json", *window, store=store, check=True).stdout)
        assert {k: (r["count"], r["total_ns"]) for k, r in by_reason(answer, "app").items()} == {"sleep": (3, 300 * MS)}
