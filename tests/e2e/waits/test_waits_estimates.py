# SPDX-License-Identifier: Apache-2.0
"""What is an estimate says so, with its error: on stores of known contents (putstore)."""
import json
import math
import os
import subprocess

import pytest
from conftest import BUILD, need, sql_all

AT = 1795144200
MS = 1_000_000
DB = {"pid": 41, "comm": "postgres", "thread": "postgres", "tid": 41}
APP = {"pid": 7, "comm": "app", "thread": "worker", "tid": 8}


def stack(who, label, n, ms, frames, error_ms=0, n_variance=0, at=3):
    return dict(who, kind="offcpu", at=AT + at, label=label, n=n, value=ms * MS, max=MS, stack=frames,
                value_variance=(error_ms * 1000) ** 2, n_variance=n_variance)


def wait(who, reason, n, ms):
    return dict(who, wait=reason, flags=0, at=AT + 3, n=n, total_ns=ms * MS, max_ns=MS)


LINES = [
    {"run": "offcpu", "from": AT, "to": AT + 10, "bucket_s": 1},
    # 900 ms of polls, exactly; by stack about 200 ms (+- 20) in a lock's wait and 100 (+- 10, in two buckets) at the client
    wait(DB, 5, 30, 900), stack(DB, 5, 10, 200, ["main", "ProcSleep", "WaitLatch", "epoll_wait"], 20, 60),
    stack(DB, 5, 2, 40, ["main", "secure_read", "epoll_wait"], 8, 2), stack(DB, 5, 3, 60, ["main", "secure_read", "epoll_wait"], 6, 3, at=5),
    # each of these was drawn
    wait(APP, 1, 12, 240), stack(APP, 1, 12, 240, ["main", "handle", "pthread_mutex_lock", "futex_wait"]),
]


@pytest.fixture(scope="module")
def filled(tmp_path_factory):
    putstore = os.path.join(BUILD, "tests", "putstore")
    need("putstore (make)", putstore)
    store = str(tmp_path_factory.mktemp("estimates") / "store")
    subprocess.run([putstore, store], input="".join(json.dumps(line) + "\n" for line in LINES), text=True, check=True)
    return store


def test_variances_add_up_and_the_root_is_the_error(filled):
    rows = {r["f"]: r for r in sql_all(filled, "SELECT substr(folded, 6, instr(substr(folded, 6), ';') - 1) AS f, sum(w.total_ns) AS ns,"
                                       " sqrt(sum(total_us_variance)) * 1000 AS error, sum(count_variance) AS c FROM waits w"
                                       " JOIN stacks k ON k.id = w.stack_id GROUP BY 1")}
    assert {f: (r["ns"] / MS, round(r["error"] / MS, 6), r["c"]) for f, r in rows.items()} == {
        "ProcSleep": (200, 20, 60), "secure_read": (100, 10, 5), "handle": (240, 0, 0)}


def test_waits_divides_what_is_exact_and_says_how_far_the_parts_may_be_off(sonde, filled):
    rows = {(r["comm"], r["reason"]): r for r in json.loads(sonde("waits", "--json", "--idle", store=filled, check=True).stdout)["rows"]}
    lock, poll = rows["postgres", "lock"], next(r for (c, reason), r in rows.items() if c == "postgres" and reason != "lock")
    assert (lock["exact"], lock["total_ns"], poll["total_ns"]) == (False, 600 * MS, 300 * MS)
    # 900 x p / (p + q), p = 200 +- 20, q = 100 +- 10: one is as much too large as the other is too small
    error = 900 / 300 ** 2 * math.hypot(100 * 20, 200 * 10)
    assert lock["total_error_ns"] == poll["total_error_ns"] == pytest.approx(error * MS, rel=1e-6)
    assert lock["count_error"] == round(30 / 15 ** 2 * math.hypot(5 * math.sqrt(60), 10 * math.sqrt(5)))
    app = rows["app", "lock"]
    assert (app["exact"], app["total_ns"], app["total_error_ns"], app["count_error"]) == (True, 240 * MS, 0, 0)
    said = sonde("waits", "--idle", store=filled, check=True)
    [line] = [text for text in said.stdout.splitlines() if "~600" in text]
    assert "~600 ms \u00b15 %" in line, said.stdout
    assert "\u00b1: its standard error" in said.stderr
    assert "240 ms" in said.stdout and "~240" not in said.stdout


def test_flame_has_the_error_of_each_frame(sonde, filled):
    said = json.loads(sonde("flame", "--type", "offcpu", "--json", store=filled, check=True).stdout)
    by = {r["name"]: r for r in said["rows"]}
    assert [(by[f]["total_value"] // MS, by[f]["total_error"]) for f in ("ProcSleep", "secure_read", "handle")] == [
        (200, 20 * MS), (100, 10 * MS), (240, 0)]
    mains = [r for r in said["rows"] if r["name"] == "main"]
    assert sum(r["total_error"] ** 2 for r in mains) == pytest.approx(500 * MS * MS, rel=1e-6)
    text = sonde("flame", "--type", "offcpu", "--text", "--comm", "postgres", store=filled, check=True)
    assert [line for line in text.stdout.splitlines() if "ProcSleep" in line and "\u00b110 %" in line], text.stdout
    assert "these are estimates, as stacks were taken of some waits only: 300 ms in total, with a standard error of 22.4 ms" in text.stderr
    exact = sonde("flame", "--type", "offcpu", "--text", "--comm", "app", store=filled, check=True)
    assert "ERROR" not in exact.stdout and "estimates" not in exact.stderr


def test_an_archive_and_its_minutes_keep_the_errors(sonde, filled):
    query = "SELECT sum(count_variance) AS n, sum(total_us_variance) AS v FROM waits"
    before = sql_all(filled, query)
    sonde("seal", store=filled, check=True)
    assert sql_all(filled, query) == before
    said = json.loads(sonde("flame", "--type", "offcpu", "--json", store=filled, check=True).stdout)
    assert next(r for r in said["rows"] if r["parent"] is None)["total_error"] == pytest.approx(math.sqrt(500) * MS, rel=1e-6)
