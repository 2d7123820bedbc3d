# SPDX-License-Identifier: Apache-2.0
"""Requests that have no answer yet are shown while they hang, with who asked whom and since when; streams and long polls are apart."""
import json
import os
import re
import signal
import subprocess
import sys
import time

import pytest

from conftest import BIN, LIB, Capture, need_root
from livedin import put
from sonded import until

TO = 1795144200 // 60 * 60


# --- what a store says: no recording ---

def looked(at, begin, *, pid=7, comm="postgres", side="server", ident=1, operation="SELECT ? FROM pages", service="10.0.0.1:5432", protocol="postgres",
           client="10.0.0.9", port=40000, end=None, result="", first_us=None, exchange=None, container="db", tid=7):
    row = {"fact": "request_running_row", "at": at, "pid": pid, "comm": comm, "container": container,
           "columns": {"side": side, "id": ident, "protocol": protocol, "service": service, "operation": operation, "client": client, "port": port, "at_us": begin * 1000000,
                       "seen_us": at * 1000000, "result": result, "tid": tid, "request_bytes": 30, "response_bytes": 0, "trace": ""}}
    for key, value in (("end_us", end and end * 1000000), ("first_us", first_us), ("exchange", exchange)):
        if value is not None:
            row["columns"][key] = value
    return row


def mark(at, since=TO - 7200, others=0):
    return {"fact": "request_running_row", "at": at, "columns": {"side": "", "id": 0, "protocol": "", "service": "", "operation": "", "client": "", "at_us": since * 1000000,
                                                                "seen_us": at * 1000000, "result": "", "trace": "", "others": others}}


def told(begin, end, last, **more):
    """The rows of one request, as the loader writes them; end None: it still runs at `last`."""
    upto = end if end is not None else last
    times = [begin + 2 + 10 * i for i in range(6)] + [begin + 112 + 60 * i for i in range(1000)]
    yield from (looked(at, begin, **more) for at in times if at < upto)
    if end is not None:
        yield looked(end, begin, end=end, **{"result": "ok", **more})


def stored(path, rows, begin=TO - 3600, end=TO, others=0):
    put(str(path), [{"run": "l7", "from": begin, "to": end, "bucket_s": 10}, *(mark(at, others=others) for at in range(begin, end, 10)), *rows])
    return str(path)


def running(sonde, store, *words):
    return json.loads(sonde("requests", "--running", "--json", *words, store=store, check=True).stdout)


def hangs(begin=TO - 300, end=TO - 160, n=3, last=TO):
    """Three statements of a wiki that block for 140 s: both sides of each."""
    for i in range(n):
        yield from told(begin + i, end, last, ident=10 + i, port=40000 + i, exchange=100 + i)
        yield from told(begin + i, end, last, ident=20 + i, port=40000 + i, exchange=100 + i, side="client", pid=30, comm="php-fpm", container="wiki", tid=30 + i)


def test_statements_that_block_are_shown_with_who_and_since_when(sonde, tmp_path):
    store = stored(tmp_path / "s", hangs())
    answer = running(sonde, store, "--at", str(TO - 200))
    assert answer["running"] == 3 and not answer["ended"] and len(answer["rows"]) == 3
    for i, r in enumerate(answer["rows"]):
        assert (r["operation"], r["since_ns"]) == ("SELECT ? FROM pages", (TO - 300 + i) * 10**9)
        assert abs(r["lasts_ns"] - (100 - i) * 10**9) <= 10**9
        assert (r["client"]["comm"], r["client"]["container"], r["client"]["pid"]) == ("php-fpm", "wiki", 30)
        assert (r["server"]["comm"], r["server"]["container"], r["server"]["pid"]) == ("postgres", "db", 7)
    text = sonde("requests", "--running", "--at", TO - 200, "--wide", store=store, check=True).stdout
    assert text.count("SELECT ? FROM pages") == 3 and "wiki (php-fpm) 30" in text and "db (postgres) 7" in text


@pytest.mark.parametrize("at, n", [(TO - 301, 0), (TO - 298, 3), (TO - 161, 3), (TO - 159, 0)])
def test_a_moment_has_those_that_had_begun_and_were_not_over(sonde, tmp_path, at, n):
    store = stored(tmp_path / "s", hangs())
    assert running(sonde, store, "--at", str(at))["running"] == n


def test_what_runs_when_the_recording_ends_is_told_by_each_answer(sonde, tmp_path):
    store = stored(tmp_path / "s", hangs(TO - 100, None, last=TO))
    answer = running(sonde, store)
    assert answer["running"] == 3 and answer["ended"] and answer["warnings"]
    assert answer["rows"][0]["lasts_ns"] >= 90 * 10**9
    done = sonde("requests", "--from", TO - 600, "--to", TO, store=store, check=True)
    assert re.search(r"3 requests were running when the recording ended, the longest for 1 min 3\d s|the longest for 9\d(\.\d)? s", done.stderr), done.stderr
    rows = json.loads(sonde("requests", "--from", TO - 600, "--to", TO, "--json", "--with", "running", store=store, check=True).stdout)
    assert rows["rows"] == [] and len(rows["running"]) == 3


def test_a_moment_knows_nothing_of_what_came_after_it(sonde, tmp_path):
    rows = list(told(TO - 300, TO - 160, TO))
    rows[-1]["columns"]["first_us"] = 139000000
    (row,) = running(sonde, stored(tmp_path / "s", rows), "--at", str(TO - 200))["rows"]
    assert row["first_us"] is None and not row["stream"]


def test_filters_choose_by_either_end(sonde, tmp_path):
    store = stored(tmp_path / "s", hangs())
    at = ("--at", str(TO - 200))
    for word in ("wiki", "db"):
        assert running(sonde, store, word, *at)["running"] == 3
    more = stored(tmp_path / "more", [*hangs(), *told(TO - 300, TO - 160, TO, ident=77, pid=99, comm="other", container="other", service="/run/x", client="", port=0)])
    assert running(sonde, more, *at)["running"] == 4
    assert running(sonde, more, "wiki", *at)["running"] == 3


def test_an_end_that_no_parser_told_leaves_no_ghost(sonde, tmp_path):
    """Another parser began 100 s before: it knows nothing of what the one before it told."""
    rows = [r for r in told(TO - 300, None, TO - 100)]
    path = str(tmp_path / "s")
    put(path, [{"run": "l7", "from": TO - 3600, "to": TO, "bucket_s": 10}, *(mark(at, TO - 3600) for at in range(TO - 3600, TO - 100, 10)),
               *(mark(at, TO - 100) for at in range(TO - 100, TO, 10)), *rows])
    assert running(sonde, path, "--at", str(TO - 30))["running"] == 0
    assert running(sonde, path, "--at", str(TO - 190))["running"] == 1


def test_what_is_too_much_to_list_is_counted(sonde, tmp_path):
    store = stored(tmp_path / "s", hangs(), others=17)
    answer = running(sonde, store, "--at", str(TO - 200))
    assert answer["others"] == 17 and any("17 more" in w for w in answer["warnings"])


POLLS = [("redis", "BLPOP jobs", None), ("http", "GET docker/events", None), ("http2", "/etcdserverpb.Watch/Watch", None), ("http", "GET h/feed", 1000)]


def test_streams_and_long_polls_are_apart(sonde, tmp_path):
    rows = [r for i, (protocol, operation, first) in enumerate(POLLS)
            for r in told(TO - 400, None, TO, ident=50 + i, protocol=protocol, operation=operation, first_us=first, service="/run/docker.sock" if "events" in operation else "10.0.0.1:80")]
    store = stored(tmp_path / "s", [*rows, *hangs(TO - 100, None, last=TO)])
    answer = running(sonde, store)
    assert answer["running"] == 3 and answer["streams"] == len(POLLS) and "--streams" in " ".join(answer["warnings"])
    answer = running(sonde, store, "--streams")
    assert {r["operation"] for r in answer["rows"] if r["stream"]} == {p[1] for p in POLLS} and answer["running"] == 3 + len(POLLS)


def test_top_has_a_line_of_them(sonde, tmp_path):
    path = str(tmp_path / "s")
    put(path, [{"run": "l7", "from": TO - 600, "to": TO, "bucket_s": 10}, *(mark(at) for at in range(TO - 600, TO, 10)), *hangs(TO - 100, None, last=TO),
               {"run": "cpu", "from": TO - 600, "to": TO, "bucket_s": 10, "period_ns": 10**7}, {"kind": "cpu", "at": TO - 10, "n": 5, "pid": 7, "comm": "postgres", "stack": ["main"]}])
    done = sonde("top", "--from", TO - 600, "--to", TO, store=path, check=True)
    assert "3 requests were running when the recording ended, the longest for " in done.stderr and "SELECT ? FROM pages, of db (postgres) 7" in done.stderr


def test_explain_names_requests_that_hung_in_the_window(sonde, tmp_path):
    path = str(tmp_path / "s")
    put(path, [{"run": "l7", "from": TO - 1800, "to": TO, "bucket_s": 10}, *(mark(at) for at in range(TO - 1800, TO, 10)), *hangs(),
               {"run": "cpu", "from": TO - 1800, "to": TO, "bucket_s": 10, "period_ns": 10**7},
               *({"kind": "cpu", "at": at, "n": 5, "pid": 7, "comm": "postgres", "stack": ["main"]} for at in range(TO - 1800, TO, 10))])
    (row,) = json.loads(sonde("explain", "--from", TO - 600, "--to", TO, "--json", store=path, check=True).stdout)["hung"]
    assert row["text"] == "3 requests ran for 10 s or more, the longest 2 min 20 s: SELECT ? FROM pages, asked by wiki of db; not before"
    assert json.loads(sonde("explain", "--from", TO - 150, "--to", TO, "--json", store=path, check=True).stdout)["hung"] == []


# --- the check ---

def bad_at(sonde, store, at):
    (row,) = json.loads(sonde("check", "requests-running", "--at", at, "--json", store=store).stdout)["rows"]
    return row if row["state"] == "bad" else None


def test_the_check_keeps_its_clock(sonde, tmp_path):
    store = stored(tmp_path / "s", hangs(TO - 1000, TO - 700))
    assert [bool(bad_at(sonde, store, at)) for at in (TO - 890, TO - 870, TO - 760, TO - 710, TO - 690, TO - 600)] == [False, True, True, True, False, False]
    row = bad_at(sonde, store, TO - 800)
    assert row["subject"] == "10.0.0.1:5432 SELECT ? FROM pages" and row["value"] == 3 and "the longest runs for 200 s" in row["text"]


@pytest.mark.parametrize("protocol, operation, first", POLLS)
def test_long_polls_do_not_fail_the_check(sonde, tmp_path, protocol, operation, first):
    store = stored(tmp_path / "s", told(TO - 900, None, TO, protocol=protocol, operation=operation, first_us=first, service="/run/docker.sock" if "events" in operation else "10.0.0.1:80"))
    assert not bad_at(sonde, store, TO)
    same = stored(tmp_path / "same", told(TO - 900, None, TO, protocol=protocol, operation="GET h/x", service="10.0.0.1:80"))
    assert bad_at(sonde, same, TO)


# --- recordings ---

class Talk:
    def __init__(self):
        self.p = subprocess.Popen([sys.executable, os.path.join(LIB, "hangtalk.py")], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.pid = json.loads(self.p.stdout.readline())["pid"]

    def __call__(self, what):
        self.p.stdin.write(what + "\n")
        self.p.stdin.flush()
        return json.loads(self.p.stdout.readline())

    def end(self):
        self.p.stdin.close()
        self.p.wait(timeout=180)
        self.p.stdout.close()


@pytest.fixture
def capture(tmp_path):
    """A recording of what a Talk says: (talk, capture, answer(*words))."""
    need_root()
    store, talk = str(tmp_path / "store"), Talk()
    cap = Capture(store, "--pid", talk.pid, program="sonde-l7")

    def answer(*words):
        done = subprocess.run([f"{BIN}/sonde", "requests", "--running", "--json", "--store", store, *words], capture_output=True, text=True, timeout=360)
        assert done.returncode in (0, 4), done.stderr  # 4: the store is still empty
        return json.loads(done.stdout) if not done.returncode else {"rows": [], "running": -1, "streams": 0}
    try:
        cap.start()
        yield talk, cap, answer
    finally:
        cap.close()
        talk.end()


POLLED = {"BLPOP jobs", "GRPC h/etcdserverpb.Watch/Watch"}


def test_what_hangs_is_shown_at_once_and_no_longer_once_it_is_answered(capture):
    talk, cap, answer = capture
    asked = talk("ask")
    n = sum(a[1] not in POLLED for a in asked)
    got = until(lambda: (lambda a: a if a["running"] == n else None)(answer()), 20)
    assert not got["ended"] and got["streams"] == len(POLLED)
    want = {(protocol, operation, port): at for protocol, operation, at, port in asked if operation not in POLLED}
    assert {(r["protocol"], r["operation"], int(r["client"]["address"].split(":")[1])) for r in got["rows"]} == set(want)
    for r in got["rows"]:
        at = want[r["protocol"], r["operation"], int(r["client"]["address"].split(":")[1])]
        assert abs(r["since_ns"] / 1e9 - at) < 0.5
        assert r["client"]["pid"] == r["server"]["pid"] == talk.pid and r["client"]["tid"] and r["first_us"] is None
    talk("answer")
    assert until(lambda: answer("--streams")["running"] == 0, 20)


def parser_of(cap):
    with open(f"/proc/{cap.pid}/task/{cap.pid}/children", encoding="ascii") as f:
        for pid in f.read().split():
            with open(f"/proc/{pid}/cmdline", encoding="latin-1") as c:
                if "--parse" in c.read():
                    return int(pid)
    return None


@pytest.mark.live
@pytest.mark.requests
def test_a_parser_that_dies_leaves_no_ghosts(capture):
    talk, cap, answer = capture
    talk("ask")
    assert until(lambda: answer()["running"] >= 4, 20)
    before = answer()["rows"][0]["since_ns"]
    os.kill(parser_of(cap), signal.SIGKILL)
    assert until(lambda: answer("--streams")["running"] == 0, 20)
    talk("ask")
    got = until(lambda: (lambda a: a if a["running"] >= 4 else None)(answer()), 20)
    assert got["rows"][0]["since_ns"] > before
    talk("leave")
    assert until(lambda: answer("--streams")["running"] == 0, 20)


def test_what_runs_when_the_recording_ends_is_told_of_it(capture):
    talk, cap, answer = capture
    asked = talk("ask")
    time.sleep(2.2)
    assert cap.stop()["event"] == "done"
    got = answer("--streams")
    assert got["ended"] and got["running"] == len(asked)
    text = subprocess.run([f"{BIN}/sonde", "requests", "--store", cap.store], capture_output=True, text=True, check=True).stderr
    assert f"{len(asked) - len(POLLED)} requests were running when the recording ended" in text


def test_a_store_without_requests_says_so(sonde, tmp_path):
    path = str(tmp_path / "s")
    put(path, [{"run": "cpu", "from": TO - 600, "to": TO, "bucket_s": 10, "period_ns": 10**7}, {"kind": "cpu", "at": TO - 10, "n": 5, "pid": 7, "comm": "app", "stack": ["main"]}])
    done = sonde("requests", "--running", store=path)
    assert done.returncode == 4 and "family l7 was not recorded" in done.stderr


@pytest.mark.parametrize("word", [("--slowest",), ("--failed",), ("--by", "service")])
def test_what_does_not_go_together_is_refused(sonde, tmp_path, word):
    done = sonde("requests", "--running", *word, store=stored(tmp_path / "s", []))
    assert done.returncode == 2 and "--running cannot be combined" in done.stderr
