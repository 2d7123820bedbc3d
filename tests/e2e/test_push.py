# SPDX-License-Identifier: Apache-2.0
"""sonde-push: what the store has arrives whole, once after dedupe, whatever the receiver does meanwhile; no secret is told."""
import contextlib
import os
import re
import socket
import sqlite3
import subprocess
import time

import pytest

from clickhouse import Receiver, curl  # noqa: F401 (the fixture)
from conftest import BIN
from test_export import Made

SECRET = "planted-s3cret-0451"


@pytest.fixture
def receiver():
    with contextlib.closing(Receiver()) as r:
        yield r


@pytest.fixture
def made(scratch):
    """Ten minutes of one container, a row each ten seconds, and the newest bucket."""
    now = int(time.time()) // 10 * 10
    store = Made(f"{scratch}/made", now - 600)
    with sqlite3.connect(store.path) as db:
        for i, ts in enumerate(range(now - 600, now, 10)):
            store.put(db, ts, "web", {"user_us": 1000 + i, "mem": i})
    return store, now


def config(scratch, url, more="", tables="cgroup_stats, cpu_samples"):
    path = f"{scratch}/export.conf"
    with open(path, "w", encoding="ascii") as f:
        f.write(f"# where to\n[export.fleet]\nurl = {url}\ntables = {tables}\n{more}\n")
    return path


def push(conf, store, scratch, *args, ok=True):
    done = subprocess.run([f"{BIN}/sonde-push", "--config", conf, "--store", str(store), "--state", f"{scratch}/state", *(args or ["--once"])],
                          capture_output=True, text=True, check=False, timeout=120)
    assert not ok or done.returncode == 0, done.stderr
    assert SECRET not in done.stdout + done.stderr
    return done


def whole(receiver, now, first=600):
    """The rows of the ten minutes that have settled, each once."""
    return [(r["ts"], r["user_us"]) for r in sorted(receiver.deduped("cgroup_stats"), key=lambda r: r["ts"])] == \
        [(ts, 1000 + (ts - now + 600) // 10) for ts in range(now - first, now - 60, 10)]


def test_all_that_has_settled_arrives_once(made, receiver, scratch):
    store, now = made
    conf = config(scratch, receiver.url)
    push(conf, store.dir, scratch)
    assert whole(receiver, now) and len(receiver.rows["cgroup_stats"]) == len(receiver.deduped("cgroup_stats"))
    row = receiver.rows["cgroup_stats"][3]
    assert (row["container"], row["mem"], row["rx_bytes"], row["host"]) == ("web", 3, None, os.uname().nodename)
    sent = len(receiver.heads)
    push(conf, store.dir, scratch)
    assert len(receiver.heads) == sent  # nothing is new
    assert re.search(r"fleet +\d+ s behind, \d+ rows sent, 0 s missed", push(conf, store.dir, scratch, "--status").stdout)


@pytest.mark.parametrize("answer", [
    pytest.param(lambda h, body: h.say(429, Retry_After="1"), id="too many"),
    pytest.param(lambda h, body: h.say(500, b"Code: 241. DB::Exception: Memory limit"), id="an exception"),
    pytest.param(lambda h, body: h.say(200, b"<html>please log in"), id="a page of somebody else"),
    pytest.param(lambda h, body: h.say(302, Location="http://127.0.0.1:1/"), id="a redirect"),
    pytest.param(lambda h, body: h.connection.shutdown(socket.SHUT_RDWR), id="a broken connection"),
    pytest.param(lambda h, body: h.wfile.write(b"\0\1nonsense\r\n\r\n"), id="nonsense")])
def test_what_is_refused_is_sent_again_and_nothing_is_twice(made, receiver, scratch, answer):
    store, now = made
    conf = config(scratch, receiver.url)

    def taken_and_refused(h, body):  # it was stored, and the sender does not learn of it
        receiver.take(h.path, body)
        return answer(h, body)

    for what in (answer, taken_and_refused):
        receiver.answers.append(what)
        done = push(conf, store.dir, scratch, ok=False)
        assert done.returncode == 1 and done.stderr.count("\n") == 2, done.stderr
    push(conf, store.dir, scratch)
    assert whole(receiver, now)
    assert len(receiver.rows["cgroup_stats"]) > len(receiver.deduped("cgroup_stats"))


def test_what_is_kept_by_ten_seconds_is_not_left_out_where_buckets_are_shorter(receiver, scratch):
    now = int(time.time())
    store = Made(f"{scratch}/made", now // 10 * 10 - 297)  # an end of the ten seconds in which it began, before its first bucket
    for ts in (store.t0, now):
        store.container(ts, "web", user_us=1)
    with sqlite3.connect(store.path) as db:
        db.execute("INSERT INTO end_row(ts, run, comm, container, how, status, n) VALUES(-3, 1, 0, 0, 1, 0, 7)")
    push(config(scratch, receiver.url, tables="process_ends"), store.dir, scratch)
    assert [(r["ts"], r["n"]) for r in receiver.rows["process_ends"]] == [(store.t0 - 3, 7)]


def test_what_retention_removed_before_it_was_sent_is_counted(made, receiver, scratch):
    store, now = made
    conf = config(scratch, receiver.url)
    receiver.answers += [lambda h, body: h.say(503)]
    with sqlite3.connect(store.path) as db:
        db.execute("DELETE FROM cgroup_row WHERE ts >= 200")
    push(conf, store.dir, scratch, ok=False)
    push(conf, store.dir, scratch)  # up to 190 - 60
    old = store.path
    store.begin(now - 300)
    store.container(now - 300, "web", user_us=1)
    store.container(now - 10, "web", user_us=2)
    os.remove(old)
    push(conf, store.dir, scratch)
    missed = int(re.search(r"(\d+) s missed", push(conf, store.dir, scratch, "--status").stdout)[1])
    assert 150 <= missed <= 200


def test_a_secret_is_in_the_head_of_a_request_and_nowhere_else(made, scratch):
    store, now = made
    with open(f"{scratch}/secret", "w", encoding="ascii") as f:
        f.write(SECRET + "\n")
    for more, head in ((f"token-file = {scratch}/secret", f"Bearer {SECRET}"), (f"user = me\npassword-file = {scratch}/secret", None)):
        with contextlib.closing(Receiver(user=head)) as receiver:
            conf = config(scratch, receiver.url, more)
            push(conf, store.dir, scratch)
            assert receiver.heads[0]["Authorization"].split()[0] == ("Bearer" if head else "Basic")
            assert SECRET.encode() not in receiver.bytes
        with contextlib.closing(Receiver(user="Bearer other")) as receiver:  # it says back what it was sent
            store.container(now + 10 * len(more), "later", user_us=1)
            assert "code 516" in push(config(scratch, receiver.url, more), store.dir, scratch, ok=False).stderr
        subprocess.run(["rm", "-rf", f"{scratch}/state"], check=True)


@pytest.mark.parametrize("text, said", [
    ("[export.a]\nevery = 5m\n", "has no url"), ("[export.a]\nurl = ftp://x\n", "no value"), ("[export.a]\nurl = http://u:p@x\n", "no value"),
    ("[other]\nurl = http://x\n", "no section"), ("[export.a]\nnonsense = 1\n", "no key"), ("[export.a]\nurl = http://x\nevery = 0\n", "no value"),
    ("[export.a]\nurl = http://x\ntables = none\n", "no value"), ("", "nobody"), ("[export.a]\nurl = http://x\npassword-file = /x\n", "no user"),
    ("[export.a]\nurl = http://x\ntoken-file = /x\nuser = me\n", "one of the two"), (f"[export.a]\nurl = {SECRET}\n", "no value"), ("garbage", "line 1")])
def test_a_configuration_that_is_wrong_says_where(scratch, text, said):
    path = f"{scratch}/wrong.conf"
    with open(path, "w", encoding="ascii") as f:
        f.write(text)
    done = push(path, scratch, scratch, ok=False)
    assert done.returncode == 2 and said in done.stderr, done.stderr


def test_a_running_one_goes_on_when_the_receiver_is_there_again(made, scratch):
    store, now = made
    with contextlib.closing(Receiver()) as receiver:
        receiver.answers += [lambda h, body: h.say(500)]
        child = subprocess.Popen([f"{BIN}/sonde-push", "--config", config(scratch, receiver.url), "--store", store.dir, "--state", f"{scratch}/state"],
                                 stderr=subprocess.PIPE, text=True)
        try:
            assert "answered 500" in child.stderr.readline()
            assert "takes everything again" in child.stderr.readline()
            assert whole(receiver, now)
            child.terminate()
            assert child.wait(20) == 0
        finally:
            child.kill()
            child.wait()
            child.stderr.close()


def test_the_schema_has_a_table_for_each_that_is_sent(made, scratch):
    store, _ = made
    done = subprocess.run([f"{BIN}/sonde-push", "--schema", "--store", store.dir], capture_output=True, text=True, check=True)
    made_of = dict(re.findall(r"CREATE TABLE IF NOT EXISTS sonde\.(\w+) \((.*?)\n\) ENGINE", done.stdout, re.S))
    assert {"cgroup_stats", "cpu_samples", "flows", "events", "wait_totals", "requests"} <= set(made_of)
    for columns in made_of.values():
        assert "host LowCardinality(String)" in columns and "id UInt64" in columns and "args" not in columns
