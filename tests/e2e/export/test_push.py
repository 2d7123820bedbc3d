# SPDX-License-Identifier: Apache-2.0
"""sonde-push: what the store has arrives whole, once after dedupe, whatever the receiver does meanwhile; no secret is told."""
import contextlib
import os
import re
import shutil
import signal
import socket
import sqlite3
import ssl
import subprocess
import threading
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


def until_hung_up(what, first=b"", pause=0.0):
    """Say it again and again until the sender hangs up."""
    def answer(h, body):
        with contextlib.suppress(OSError):
            h.wfile.write(first)
            while True:
                h.wfile.write(what)
                time.sleep(pause)
        h.close_connection = True
    return answer


def raw(what):
    def answer(h, body):
        h.wfile.write(what)
        h.close_connection = True
    return answer


OK = b"HTTP/1.1 200 OK\r\n"
REFUSALS = [
    (lambda h, body: h.say(429, Retry_After="1"), "answered 429"),
    (lambda h, body: h.say(503, Retry_After="99999999999999999999"), "answered 503"),
    (lambda h, body: h.say(500, b"Code: 241. DB::Exception: Memory limit"), "ClickHouse's code 241"),
    (lambda h, body: h.say(404, b"Code: 60. DB::Exception: " + SECRET.encode()), "code 60: it has no such table"),
    (lambda h, body: h.say(200, b"<html>please log in"), "answered 200: unexpected text"),
    (lambda h, body: h.say(401, str(h.headers).encode()), "check user, password-file"),
    (lambda h, body: h.say(413), "no bodies of this size"),
    (lambda h, body: h.say(302, Location=f"http://127.0.0.1:{h.server.elsewhere}/"), "a redirect, which is not followed"),
    (lambda h, body: h.say(308, Location=f"http://127.0.0.1:{h.server.elsewhere}/"), "a redirect, which is not followed"),
    (lambda h, body: h.connection.shutdown(socket.SHUT_RDWR), "http://127.0.0.1"),
    (raw(b"\0\1nonsense\r\n\r\n"), "http://127.0.0.1"),
    (raw(OK + b"Content-Length: 5\r\n\r\nab"), "http://127.0.0.1"),
    (raw(OK + b"Content-Length: -1\r\n\r\n"), "http://127.0.0.1"),
    (raw(OK + b"Transfer-Encoding: chunked\r\n\r\nnonsense\r\n"), "http://127.0.0.1"),
    (raw(OK + b"Transfer-Encoding: chunked\r\n\r\nfffffffffffffffff\r\n"), "http://127.0.0.1"),
    (raw(OK + b"Content-Encoding: gzip\r\nContent-Length: 20\r\n\r\n" + b"\x1f\x8b" + 18 * b"\0"), "answered 200: unexpected text"),
    (until_hung_up(b"HTTP/1.1 100 Continue\r\n\r\n" * 1000), "longer text than sonde-push reads"),
    (until_hung_up(b"X-More: and more\r\n" * 1000, OK), "longer text than sonde-push reads"),
    (raw(OK + b"X: " + 300_000 * b"x"), "http://127.0.0.1"),
    (until_hung_up(65536 * b"x", OK + b"Content-Length: 1000000000000\r\n\r\n"), "longer text than sonde-push reads"),
    (until_hung_up(b"x", OK + b"X: ", pause=0.05), "Timeout"),
]


def test_what_is_refused_or_answered_with_nonsense_is_sent_again_and_nothing_is_twice(made, receiver, scratch):
    """Each answer once where nothing was taken, and now and then where it was stored and the sender does not learn of it; with a secret, for which one waits elsewhere."""
    store, now = made
    with open(f"{scratch}/secret", "w", encoding="ascii") as f:
        f.write(SECRET + "\n")
    os.chmod(f"{scratch}/secret", 0o600)
    conf = config(scratch, receiver.url, f"token-file = {scratch}/secret", tables="cgroup_stats")
    with contextlib.closing(Receiver()) as elsewhere:
        receiver.server.elsewhere = elsewhere.server.server_port
        for i, (answer, said) in enumerate(REFUSALS):
            if said == "Timeout":
                conf = config(scratch, receiver.url, f"token-file = {scratch}/secret\ntimeout = 2s", tables="cgroup_stats")
            receiver.answers.append((lambda h, body: (receiver.take(h.path, body), REFUSALS[i][0](h, body))) if i % 4 == 0 else answer)
            done = push(conf, store.dir, scratch, ok=False)
            assert done.returncode == 1 and done.stderr.count("\n") == 2 and said in done.stderr, (said, done.stderr)
        assert not elsewhere.heads
    assert all(h["Authorization"] == f"Bearer {SECRET}" for h in receiver.heads) and len(receiver.heads) == len(REFUSALS)
    push(config(scratch, receiver.url, tables="cgroup_stats"), store.dir, scratch)
    assert whole(receiver, now)
    assert len(receiver.rows["cgroup_stats"]) > len(receiver.deduped("cgroup_stats"))


def certificate(scratch):
    subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-keyout", f"{scratch}/key.pem", "-out", f"{scratch}/cert.pem",
                    "-days", "1", "-subj", "/CN=receiver", "-addext", "subjectAltName=IP:127.0.0.1"], check=True, capture_output=True)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(f"{scratch}/cert.pem", f"{scratch}/key.pem")
    return context


@pytest.mark.skipif(not shutil.which("openssl"), reason="missing: openssl (package openssl)")
def test_a_server_that_nobody_vouches_for_is_told_nothing(made, scratch):
    store, now = made
    with open(f"{scratch}/secret", "w", encoding="ascii") as f:
        f.write(SECRET)
    with contextlib.closing(Receiver(tls=certificate(scratch))) as receiver:
        secret, conf = f"token-file = {scratch}/secret\n", lambda more: config(scratch, receiver.url, more, tables="cgroup_stats")
        for more, said in ((secret, "certificate"), (f"{secret}ca-file = {scratch}/none", "CA cert"), (f"{secret}ca-file = {scratch}/key.pem", "CA cert")):
            done = push(conf(more), store.dir, scratch, ok=False)
            assert done.returncode == 1 and said in done.stderr, done.stderr
        assert not receiver.heads
        push(conf(f"{secret}ca-file = {scratch}/cert.pem"), store.dir, scratch)
        assert whole(receiver, now) and receiver.heads[0]["Authorization"] == f"Bearer {SECRET}"


def secrets(scratch):
    """(a file, what is said of it)"""
    def made_of(name, what):
        with open(f"{scratch}/{name}", "wb") as f:
            f.write(what)
        os.chmod(f"{scratch}/{name}", 0o640)
        return f"{scratch}/{name}"
    os.mkfifo(f"{scratch}/pipe")
    return [(made_of("empty", b""), "it is empty"), (made_of("line", b"\n" + SECRET.encode()), "first line is empty"), (made_of("long", SECRET.encode() * 400), "too long"),
            (made_of("bytes", SECRET.encode() + b"\0"), "not text"), (scratch, "Is a directory"), (f"{scratch}/pipe", "not a regular file"), ("/dev/zero", "not a regular file"),
            (f"{scratch}/none", "No such file")]


def test_a_file_that_holds_no_secret_is_told_and_nothing_is_sent_without_it(made, receiver, scratch):
    store, now = made
    for path, said in secrets(scratch):
        for key in ("token-file =", "user = me\npassword-file ="):
            done = push(config(scratch, receiver.url, f"{key} {path}"), store.dir, scratch, ok=False)
            assert done.returncode == 5 and said in done.stderr, done.stderr
    assert not receiver.heads
    with open(f"{scratch}/line", "wb") as f:
        f.write(SECRET.encode() + b"\r\nmore\n")
    os.chmod(f"{scratch}/line", 0o644)
    done = push(config(scratch, receiver.url, f"token-file = {scratch}/line"), store.dir, scratch)
    assert "is readable by every user of this host" in done.stderr and receiver.heads[0]["Authorization"] == f"Bearer {SECRET}"


def test_one_that_is_to_end_ends_what_was_begun_and_goes_on_there(made, receiver, scratch):
    store, now = made
    conf = config(scratch, receiver.url, "backfill = 1h", tables="cgroup_stats")
    held = threading.Event()

    def hold(h, body):
        held.wait(60)
        receiver.take(h.path, body)
        h.say(200)

    receiver.answers.append(hold)
    child = subprocess.Popen([f"{BIN}/sonde-push", "--config", conf, "--store", store.dir, "--state", f"{scratch}/state"], stderr=subprocess.PIPE, text=True)
    receiver.wait_for(lambda: receiver.heads)
    child.send_signal(signal.SIGINT)
    held.set()
    assert (child.communicate(timeout=360)[1], child.returncode) == ("", 0)
    sent = len(receiver.rows["cgroup_stats"])
    assert 0 < sent < 54
    push(conf, store.dir, scratch)
    assert whole(receiver, now) and len(receiver.rows["cgroup_stats"]) == 54


def test_what_is_kept_by_ten_seconds_is_not_left_out_where_buckets_are_shorter(receiver, scratch):
    now = int(time.time())
    store = Made(f"{scratch}/made", now // 10 * 10 - 297)  # an end of the ten seconds in which it began, before its first bucket
    for ts in (store.t0, now):
        store.container(ts, "web", user_us=1)
    with sqlite3.connect(store.path) as db:
        db.execute("INSERT INTO end_row(ts, run, comm, container, how, status, n) VALUES(-3, 1, 0, 0, 1, 0, 7)")
    push(config(scratch, receiver.url, tables="process_ends"), store.dir, scratch)
    assert [(r["ts"], r["n"]) for r in receiver.rows["process_ends"]] == [(store.t0 - 3, 7)]


def test_after_a_clock_that_was_ahead_it_begins_anew(made, receiver, scratch):
    store, now = made
    conf = config(scratch, receiver.url, tables="cgroup_stats")
    push(conf, store.dir, scratch)
    path, = (f"{scratch}/state/{n}" for n in os.listdir(f"{scratch}/state"))
    with open(path, encoding="ascii") as f:
        line = f.read()
    with open(path, "w", encoding="ascii") as f:
        f.write(re.sub(r"^sonde-push 1 \d+", f"sonde-push 1 {now + 10 * 86400}", line))
    receiver.rows.clear()
    assert "starting over" in push(conf, store.dir, scratch).stderr
    assert whole(receiver, now) and push(conf, store.dir, scratch).stderr == ""


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


WRONG = (
    ("[export.a]\nevery = 5m\n", "has no url"), ("[export.a]\nurl = ftp://x\n", "url = http://HOST:PORT"), ("[export.a]\nurl = http://u:p@x\n", "not a valid value"),
    ("[other]\nurl = http://x\n", "not an [export.NAME] section"), ("[export.a]\nulr = 1\n", "did you mean 'url'"), ("[export.a]\nurl = http://x\nevery = 0\n", "not a valid value"),
    ("[export.a]\nurl = http://x\ntables = none\n", "wrong.conf:3: "), ("", "no section that says where to send"), ("[export.a]\nurl = http://x\npassword-file = /x\n", "without user"),
    ("[export.a]\nurl = http://x\ntoken-file = /x\nuser = me\n", "only one is allowed"), (f"[export.a]\nurl = {SECRET}\n", "not a valid value"), ("garbage", "line 1"),
    ("[export.a]\n  url = http://x\n  url = http://y\n", "already set in line 2"), ("[export.a]\nurl = http://x\ntables = " + 99 * "cost, ", "too long"),
    (70000 * "#", "larger than 64 KB"), ("[export.a]\n\0url", "NUL byte"))


def test_a_configuration_that_is_wrong_says_where(scratch):
    for text, said in WRONG:
        path = f"{scratch}/wrong.conf"
        with open(path, "w", encoding="ascii") as f:
            f.write(text)
        done = push(path, scratch, scratch, ok=False)
        assert done.returncode == 2 and said in done.stderr, (text[:100], done.stderr)
    assert "Is a directory" in push(scratch, scratch, scratch, ok=False).stderr


def test_keys_may_be_indented_and_a_list_may_take_several_lines(made, receiver, scratch):
    store, now = made
    with open(f"{scratch}/export.conf", "w", encoding="ascii") as f:
        f.write(f"[export.a]\n\turl = {receiver.url}\n  tables = cost,\n    loss\n  tables = cgroup_stats\n")
    push(f"{scratch}/export.conf", store.dir, scratch)
    assert whole(receiver, now)


def test_a_running_one_goes_on_when_the_receiver_is_there_again(made, scratch):
    store, now = made
    with contextlib.closing(Receiver()) as receiver:
        receiver.answers += [lambda h, body: h.say(500)]
        child = subprocess.Popen([f"{BIN}/sonde-push", "--config", config(scratch, receiver.url), "--store", store.dir, "--state", f"{scratch}/state"],
                                 stderr=subprocess.PIPE, text=True)
        try:
            assert "answered 500" in child.stderr.readline()
            assert "accepts data again" in child.stderr.readline()
            assert whole(receiver, now)
            child.terminate()
            assert child.wait(20) == 0
        finally:
            child.kill()
            child.wait()
            child.stderr.close()


@pytest.mark.long
def test_a_target_that_is_slow_and_far_behind_does_not_keep_what_there_is_from_others(receiver, scratch):
    now = int(time.time()) // 10 * 10
    store = Made(f"{scratch}/made", now - 7200)
    with sqlite3.connect(store.path) as db:
        for ts in range(now - 7200, now, 10):
            store.put(db, ts, "web", {"user_us": 1, "mem": 1})
    with contextlib.closing(Receiver()) as slow:
        posts = (7200 - 60) // 300 + 1
        slow.answers = [lambda h, body: (time.sleep(3), slow.take(h.path, body), h.say(200))] * posts
        path = config(scratch, slow.url, "backfill = 1d", tables="cgroup_stats")
        with open(path, "a", encoding="ascii") as f:
            f.write(f"[export.other]\nurl = {receiver.url}\ntables = cgroup_stats\nbackfill = 1d\n")
        child = subprocess.Popen([f"{BIN}/sonde-push", "--config", path, "--store", store.dir, "--state", f"{scratch}/state"], stderr=subprocess.PIPE, text=True)
        try:
            receiver.wait_for(lambda: len(receiver.rows.get("cgroup_stats", [])) == 714, 120)
            assert 0 < len(slow.heads) < posts
        finally:
            child.terminate()
        assert (child.communicate(timeout=360)[1], child.returncode) == ("", 0)


def test_the_schema_has_a_table_for_each_that_is_sent(made, scratch):
    store, _ = made
    done = subprocess.run([f"{BIN}/sonde-push", "--schema", "--store", store.dir], capture_output=True, text=True, check=True)
    assert subprocess.run([f"{BIN}/sonde", "export", "clickhouse", "--schema", "--store", store.dir], capture_output=True, text=True, check=True).stdout == done.stdout
    made_of = dict(re.findall(r"CREATE TABLE IF NOT EXISTS sonde\.(\w+) \((.*?)\n\) ENGINE", done.stdout, re.S))
    assert {"cgroup_stats", "cpu_samples", "flows", "events", "wait_totals", "requests"} <= set(made_of)
    for columns in made_of.values():
        assert "host LowCardinality(String)" in columns and "id UInt64" in columns and "args" not in columns
