# SPDX-License-Identifier: Apache-2.0
"""sonde serve: what it answers is what sonde prints, and what it refuses. On a made store; the page is in test_page_serve.py."""
import gzip
import json
import os
import re
import shutil
import signal
import socket
import stat
import subprocess
import threading
import time
import urllib.parse

import livedin
import pytest
from conftest import BIN, ROOT, need
from serving import Serve

AT = 1795144200  # 2026-11-20T03:10:00Z
RANGE = {"from": AT - 1200, "to": AT}
SPIKE = {"from": AT - 660, "to": AT - 610}
ENDLESS = "with recursive c(x) as (select 1 union all select x + 1 from c) select count(*) from c"
TOKEN = "abcdefghij0123456789"


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    return livedin.make(str(tmp_path_factory.mktemp("serve") / "store"), AT, [AT - 7200])


@pytest.fixture(scope="module")
def serve(made):
    s = Serve(made, "--questions", "3")
    yield s
    s.close()


@pytest.fixture
def start(made, tmp_path):
    """start(ARGS..., listen=) -> a Serve of its own for this test."""
    running = []

    def begin(*args, store=made, **kw):
        running.append(Serve(store, *args, **kw))
        return running[-1]
    yield begin
    for s in running:
        s.close()


@pytest.fixture
def token(tmp_path):
    path = tmp_path / "token"
    path.write_text(TOKEN + "\n")
    path.chmod(0o600)
    return path


def until(holds, seconds=100):
    end = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < end
        time.sleep(0.01)


def words(query):
    out = []
    for name, value in query.items():
        values = value if isinstance(value, list) else [value]
        out += [str(v) for v in values] if name == "what" else [f"--{name.replace('_', '-')}" + (f"={v}" if v != "" else "") for v in values]
    return out


ASKED = [
    ("overview", RANGE), ("timeline", RANGE), ("events", {**RANGE, "all": ""}), ("oom", RANGE), ("timeline", {**RANGE, "by": "process", "number": 2}), ("explain", SPIKE), ("ps", RANGE), ("ps", {**RANGE, "what": "web", "sort": "pid"}),
    ("containers", RANGE), ("flame", {**RANGE, "group": "process"}), ("flame", {**RANGE, "type": "inuse"}), ("stacks", {**RANGE, "number": 3, "lines": ""}),
    ("heap", {**RANGE, "growth": ""}), ("waits", {**RANGE, "by": "process"}), ("neighbours", RANGE), ("wakers", {**RANGE, "stacks": ""}), ("net", RANGE), ("disk", RANGE), ("disk", {**RANGE, "fsync": ""}), ("map", RANGE), ("requests", RANGE), ("trace", RANGE),
    ("diff", {**SPIKE, "baseline": "5m"}), ("ps", {**RANGE, "container": ["web", "db"], "comm": "!nginx"}), ("status", {}), ("help", {}), ("version", {}),
]


@pytest.mark.parametrize("verb,query", ASKED, ids=[f"{v}-{i}" for i, (v, _) in enumerate(ASKED)])
def test_an_answer_is_what_the_command_prints_byte_for_byte(serve, sonde, made, verb, query):
    status, heads, body = serve.ask(f"/api/v1/{verb}", **query)
    want = subprocess.run([f"{BIN}/sonde", verb, "--json", *words(query)], capture_output=True, check=True, stdin=subprocess.DEVNULL,
                          env={**os.environ, "SONDE_STORE": made}).stdout
    assert status == 200 and heads["Content-Type"] == "application/json" and body == want
    assert len(want) > 50


@pytest.mark.parametrize("query", ["select comm, sum(cpu_ns) n from cpu_samples group by 1 order by 2 desc", "-- first\nselect 1 as a; select '</script>' as b",
                                   "@hottest", ".views", "select x'00ff' as b, null as n, 1.5 as r"])
def test_sql_is_what_the_command_prints_byte_for_byte(serve, made, query):
    status, _, body = serve.ask("/api/v1/sql", query=query)
    want = subprocess.run([f"{BIN}/sonde", "sql", "--json", "--", query], capture_output=True, check=True, stdin=subprocess.DEVNULL,
                          env={**os.environ, "SONDE_STORE": made}).stdout
    assert status == 200 and body == want


def test_of_a_flame_graph_the_largest_frames_are_sent_and_the_rest_is_summed(serve):
    whole, cut = (json.loads(serve.ask("/api/v1/flame", **RANGE, **more)[2]) for more in ({}, {"nodes": 6}))
    assert whole["elided"] == 0 and cut["elided"] > 0 and len(cut["rows"]) < len(whole["rows"])
    assert "(smaller frames)" in [r["name"] for r in cut["rows"]] and sum(r["self_ns"] for r in cut["rows"]) == sum(r["self_ns"] for r in whole["rows"]) == cut["cpu_ns"]


def test_what_is_packed_for_the_way_is_the_same(serve):
    plain = serve.ask("/api/v1/flame", **RANGE)
    packed = serve.ask("/api/v1/flame", headers={"Accept-Encoding": "br, gzip;q=0.8"}, **RANGE)
    assert packed[1]["Content-Encoding"] == "gzip" and len(packed[2]) * 4 < len(plain[2]) and gzip.decompress(packed[2]) == plain[2]
    for refused in ("", "br", "gzip;q=0", "xgzip"):
        assert "Content-Encoding" not in serve.ask("/api/v1/flame", headers={"Accept-Encoding": refused}, **RANGE)[1]


def test_head_says_the_same_without_a_body(serve):
    got, want = serve.ask("/api/v1/ps", "HEAD", **RANGE), serve.ask("/api/v1/ps", **RANGE)
    assert got[0] == 200 and got[2] == b"" and got[1]["Content-Length"] == str(len(want[2]))


def test_the_report_is_the_file_that_the_command_writes(serve, sonde, made, tmp_path):
    sonde("report", "-q", "-o", tmp_path / "x.html", *words(RANGE), store=made, check=True)
    status, heads, body = serve.ask("/report.html", **RANGE)
    assert status == 200 and body == (tmp_path / "x.html").read_bytes()
    assert heads["Content-Disposition"] == 'attachment; filename="sonde-report.html"'


@pytest.mark.parametrize("query,status,exit_code,word", [
    ({"container": "nosuch", **RANGE}, 404, 4, ""), ({"what": "nosuch"}, 400, 2, "nosuch"), ({"last": "yesterday"}, 400, 2, "yesterday"),
    ({"from": AT + 100, "to": AT + 110}, 404, 4, "nothing is stored of"),
])
def test_what_the_command_says_on_failure_is_said(serve, query, status, exit_code, word):
    said = serve.error("/api/v1/ps", status, **query)
    assert said["exit"] == exit_code and word in said["error"]


def test_a_store_that_is_not_there_is_said_with_what_to_do(start, tmp_path):
    s = start(store=tmp_path / "none")
    said = s.error("/api/v1/ps", 503)
    assert "no store" in said["error"] and "sonde record" in said["fix"]
    assert s.ask("/")[0] == 200
    livedin.make(str(tmp_path / "none"), AT)  # it comes while it is served, and goes
    assert s.ask("/api/v1/ps", **RANGE)[0] == 200
    shutil.rmtree(tmp_path / "none")
    assert "no store" in s.error("/api/v1/ps", 503)["error"]


def test_checks_that_fail_are_an_answer(serve, sonde, made):
    at = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(AT))
    done = sonde("check", "--json", "--at", at, store=made)
    status, _, body = serve.ask("/api/v1/check", at=at)
    assert done.returncode == 1 and status == 200 and body.decode() == done.stdout and json.loads(body)["bad"] >= 1
    assert serve.error("/api/v1/check", 400, at="nonsense")["exit"] == 2


# --- looking on ---

def stream(serve):
    """A stream of events that has begun; its lines that are no comment."""
    c = serve.connect()
    c.sendall(f"GET /api/v1/live HTTP/1.1\r\nHost: {serve.host}:{serve.port}\r\n\r\n".encode())
    f = c.makefile("r", encoding="ascii")
    heads = []
    while (line := f.readline().strip()):
        heads.append(line.lower())
    assert heads[0] == "http/1.1 200 ok" and "content-type: text/event-stream" in heads and "cache-control: no-store" in heads
    def said():
        quiet = 0
        for line in map(str.strip, f):
            if re.match("[a-z]+: ", line):
                yield line
            quiet += line.startswith(": ")
            assert quiet < 4, "nothing was told for half a minute"
    return lambda: (f.close(), c.close()), said()


def test_who_looks_on_is_told_what_was_written_and_nobody_else_costs_anything(start, tmp_path):
    store = livedin.make(str(tmp_path / "store"), AT)
    s = start(store=store)
    leave, lines = stream(s)
    assert next(lines) == "retry: 3000"
    for n in (1, 2):
        livedin.put(store, [livedin.run("cpu", AT + 60, AT + 70, 9, 10101010), livedin.cpu(AT + 60, livedin.BUSY[0])])
        assert next(lines) == "event: changed" and int(json.loads(next(lines)[6:])["n"]) >= n
    assert s.children() == [] and len(notices(s)) == 1  # to look on asks nothing
    leave()
    until(lambda: notices(s) == [], 30)  # who has gone is noticed, and then nothing is watched
    leave, lines = stream(s)
    assert next(lines) == "retry: 3000" and s.end() == 0  # and does not hold up the end
    leave()


def notices(serve):
    """The descriptors by which it is told of writes."""
    folder = f"/proc/{serve.child.pid}/fd"
    return [fd for fd in os.listdir(folder) if "inotify" in link_of(f"{folder}/{fd}")]


def link_of(path):
    try:
        return os.readlink(path)
    except OSError:
        return ""


def test_what_finished_files_span_is_remembered_and_what_changes_is_read_anew(start, tmp_path):
    store, more = str(tmp_path / "store"), str(tmp_path / "more")
    for folder, begin, who in ((store, AT - 60, livedin.BUSY[2]), (more, AT - 7200, livedin.BUSY[0])):
        livedin.put(folder, [livedin.run("cpu", begin, begin + 60, 1, 10101010), livedin.cpu(begin, who)])
    old, = (tmp_path / "more").glob("*.db")
    old.rename(tmp_path / "store" / "20260101T000000Z-0001.db")
    time.sleep(2.1)  # as span_cache.h, 3, says: no event tells that a file has settled
    s = start(store=store)

    def commands(begin):
        return [r["comm"] for r in json.loads(s.ask("/api/v1/ps", **{"from": begin, "to": begin + 60})[2])["rows"]]
    for _ in range(3):
        assert (commands(AT - 7200), commands(AT - 60)) == (["nginx"], ["postgres"])
        s.error("/api/v1/ps", 404, **{"from": AT - 3600, "to": AT - 3540})
    livedin.put(store, [livedin.run("cpu", AT - 3600, AT - 3540, 3, 10101010), livedin.cpu(AT - 3600, livedin.BUSY[3])])
    assert commands(AT - 3600) == ["cron"]


def test_a_store_that_comes_later_is_looked_on_too(start, tmp_path):
    s = start(store=tmp_path / "none")
    leave, lines = stream(s)
    assert next(lines) == "retry: 3000"
    livedin.make(str(tmp_path / "none"), AT)
    assert next(lines) == "event: changed"
    leave()


def test_the_same_question_at_the_same_time_is_asked_once(start, made):
    s = start("--questions", "8")
    query = "WITH RECURSIVE c(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM c WHERE n < 3000000) SELECT count(*) AS n FROM c"
    got, seen = [], set()
    asking = [threading.Thread(target=lambda: got.append(s.ask("/api/v1/sql", query=query))) for _ in range(6)]
    for t in asking:
        t.start()
    while any(t.is_alive() for t in asking):
        seen |= set(s.children())
    for t in asking:
        t.join()
    assert len(got) == 6 and {(status, body) for status, _, body in got} == {(200, got[0][2])} and json.loads(got[0][2])["rows"] == [{"n": 3000000}]
    assert len(seen) < 6  # those that came while it was under way have its answer


def test_who_waits_for_an_answer_of_one_that_hangs_up_has_it_all_the_same(start):
    s = start()
    query = urllib.parse.quote("WITH RECURSIVE c(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM c WHERE n < 2000000) SELECT count(*) AS n FROM c")
    first = s.connect()
    first.sendall(f"GET /api/v1/sql?query={query} HTTP/1.1\r\nHost: {s.host}:{s.port}\r\n\r\n".encode())
    until(s.children)
    got = []
    second = threading.Thread(target=lambda: got.append(s.ask(f"/api/v1/sql?query={query}")))
    second.start()
    first.close()
    second.join()
    assert got[0][0] == 200 and json.loads(got[0][2])["rows"] == [{"n": 2000000}]


def test_the_verbs_that_are_answered_are_listed(serve):
    status, _, body = serve.ask("/api/v1/")
    assert status == 200 and set(json.loads(body)["verbs"]) == SERVED


# --- what may be asked ---

SERVED = {"overview", "timeline", "explain", "events", "oom", "ps", "containers", "flame", "stacks", "heap", "diff", "waits", "neighbours", "wakers", "net", "disk", "map", "requests", "trace", "check", "sql", "status", "logs", "help", "version"}
# of each verb's own options; a new one is looked at here, and in serve/question.c, before it is asked from a browser
REFUSED = {"flame": {"output", "text", "source-url", "width", "open"}, "diff": {"before", "after", "output", "source-url", "width"},
           "sql": {"box", "csv", "timeout"}, "status": {"check", "log"}, "map": {"dot", "output", "open", "live"}, "net": {"live"}, "requests": {"live"}, "check": {"notify", "state", "checks", "list", "keep"}}
COMMON = {"store", "json", "help", "quiet", "color", "wide", "no-pager"}


def test_every_option_of_a_verb_is_served_or_is_known_not_to_be(serve, sonde):
    verbs = {v["verb"]: v for v in json.loads(sonde("help", "--json", check=True).stdout)["rows"]}
    for verb, table in verbs.items():
        path = f"/api/v1/{verb}"
        if verb not in SERVED:
            assert "is not available here" in serve.error(path, 404)["error"]
            continue
        names = {o["name"] for part in ("options", "range", "filters") for o in table[part]}
        for name in sorted(names | COMMON):
            said = serve.error(f"{path}?{name}=1&{name}=1&zzz=1", 400)
            unknown = f"takes no '{name}' here" in said["error"]
            assert unknown == (name in REFUSED.get(verb, set()) | COMMON), (verb, name, said)
        for option in (o for part in ("options", "range", "filters", "store") for o in table[part]):
            assert option["arg"] not in ("FILE", "DIR", "URL") or option["name"] in REFUSED.get(verb, set()) | COMMON


def test_no_file_is_read_or_written_by_name(serve, tmp_path):
    target = tmp_path / "x.html"
    for verb, query in (("flame", {"output": target}), ("diff", {"output": target}), ("diff", {"what": ["/etc/passwd", "/etc/group"]}),
                        ("diff", {"before": "/etc/passwd"}), ("ps", {"store": "/etc"}), ("stacks", {"source-dir": "/etc"})):
        serve.error(f"/api/v1/{verb}", 400, **query)
    serve.error("/report.html", 400, output=target)
    for verb in ("record", "prune", "export", "import", "lines", "top", "up", "down", "config", "completion", "report", "serve", "ps/", "%2e%2e/ps", "ps%00"):
        if verb != "ps%00":
            serve.error(f"/api/v1/{verb}", 404)
    assert not target.exists()


@pytest.mark.parametrize("query", [
    "insert into stack values (1)", "delete from run", "drop view cpu_samples", "create table x(a)", "update run set id = 1", "pragma journal_mode=delete",
    "attach '/tmp/x.db' as x", "vacuum into '/tmp/x.db'", "select load_extension('x')", "select readfile('/etc/passwd')", "select writefile('/tmp/x', 'y')",
    "detach main", "begin immediate", "create temp table t as select 1", "pragma writable_schema=1",
])
def test_sql_that_writes_attaches_or_reads_files_is_refused(serve, made, query):
    before = sorted((n, os.stat(os.path.join(made, n)).st_mtime_ns) for n in os.listdir(made) if n.endswith(".db"))
    said = serve.error("/api/v1/sql", 400, query=query)
    assert "read-only" in said["error"] or "no such function" in said["error"] or "SQL" in said["error"], said
    assert before == sorted((n, os.stat(os.path.join(made, n)).st_mtime_ns) for n in os.listdir(made) if n.endswith(".db"))
    assert not os.path.exists("/tmp/x.db")


def test_sql_that_never_ends_is_stopped_and_others_are_answered_meanwhile(start):
    s, got = start("--timeout", "8s"), []
    t = threading.Thread(target=lambda: got.append(s.error("/api/v1/sql", 504, query=ENDLESS)))
    t.start()
    until(s.children)
    assert s.ask("/api/v1/ps", **RANGE)[0] == 200
    t.join()
    assert "stopped after 8 s" in got[0]["error"]
    until(lambda: not s.children())


def test_sql_that_takes_all_memory_ends_by_itself(start):
    s = start("--memory", "200")
    for query in ("select hex(randomblob(300000000))", "select hex(zeroblob(90000000)) from (select 1 union select 2 union select 3)"):
        said = s.error("/api/v1/sql", *[x for x in (500, 503) if s.ask("/api/v1/sql", query=query)[0] == x][:1], query=query)
        assert "memory" in said["error"]
    assert s.ask("/api/v1/ps", **RANGE)[0] == 200


# --- who may ask, and how ---

@pytest.mark.parametrize("host", ["evil.example", "evil.example:80", "127.0.0.1.evil.example", "localhost.evil.example", "", "localhost:80:80"])
def test_another_name_is_refused(serve, host):
    for path in ("/", "/app.js", "/api/v1/ps"):
        assert "is not allowed" in serve.error(path, 421, headers={"Host": host})["error"]


@pytest.mark.parametrize("host", ["localhost", "LOCALHOST:9999", "[::1]:1", "10.1.2.3", socket.gethostname()])
def test_an_address_and_this_host_s_own_name_are_answered(serve, host):
    assert serve.ask("/api/v1/version", headers={"Host": host})[0] == 200


def test_a_name_of_a_reverse_proxy_is_told(start):
    s = start("--host", "sonde.example.org", "--host", "b.example")
    assert [s.ask("/api/v1/version", headers={"Host": h, "Origin": f"https://{h}"})[0] for h in ("sonde.example.org", "b.example:8443", "c.example")] == [200, 200, 421]


@pytest.mark.parametrize("heads", [{"Origin": "http://evil.example"}, {"Origin": "null"}, {"Origin": "http://127.0.0.1:1"}, {"Sec-Fetch-Site": "cross-site"},
                                   {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate"}, {"Sec-Fetch-Site": "same-site"}])
def test_a_page_of_another_site_is_refused(serve, heads):
    assert "another site" in serve.error("/api/v1/ps", 403, headers=heads)["error"]
    assert "another site" in serve.error("/report.html", 403, headers=heads)["error"]


def test_a_link_from_elsewhere_opens_the_page(serve):
    assert serve.ask("/", headers={"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate"})[0] == 200


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "OPTIONS", "PATCH", "TRACE", "CONNECT", "FOO"])
def test_only_get_and_head(serve, method):
    status, heads, body = serve.ask("/api/v1/ps", method)
    assert (status, heads["Allow"]) == (405, "GET, HEAD") and b"only GET and HEAD" in body


def test_a_question_with_a_body_is_refused(serve):
    with serve.connect() as c:
        c.sendall(b"GET /api/v1/ps HTTP/1.1\r\nHost: localhost\r\nContent-Length: 5\r\n\r\nhello")
        assert c.recv(4096).startswith(b"HTTP/1.1 400")
    with serve.connect() as c:
        c.sendall(b"POST /api/v1/ps HTTP/1.1\r\nHost: localhost\r\nContent-Length: 99999999999\r\n\r\nhello")
        assert c.recv(4096).startswith(b"HTTP/1.1 405")


@pytest.mark.parametrize("path", ["/../etc/passwd", "/%2e%2e/%2e%2e/etc/passwd", "//etc/passwd", "/api/v1/../../etc/passwd", "/api/v1/..%2fps", "/app.js/", "/index.html",
                                  "/api", "/api/v1", "/api/v2/ps", "/.git/config", "/%c3%a4", "/%ff%fe", "/app.js%00.html/x"])
def test_a_path_that_is_not_there_is_said(serve, path):
    if path != "/app.js%00.html/x":
        assert serve.error(path, 404)["error"]
    else:
        assert serve.ask(path)[0] in (200, 404)


def test_huge_heads_and_addresses_are_refused(serve):
    assert serve.ask("/", headers={"X": "a" * 100000})[0] in (413, 431)
    with serve.connect() as c:
        c.sendall(b"GET /" + b"a" * 60000 + b" HTTP/1.1\r\nHost: localhost\r\n\r\n")
        assert c.recv(100).split()[1] in (b"414", b"431", b"413")
    with serve.connect() as c:  # two names, or none
        c.sendall(b"GET / HTTP/1.1\r\nHost: localhost\r\nHost: evil.example\r\n\r\n")
        assert c.recv(100).split()[1] in (b"400", b"421")
    with serve.connect() as c:
        c.sendall(b"GET / HTTP/1.0\r\n\r\n")
        assert c.recv(100).split()[1] == b"400"
    with serve.connect() as c:
        c.sendall(b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03 not HTTP at all\r\n\r\n")
        assert not c.recv(100).startswith(b"HTTP/1.1 200")
    assert serve.ask("/")[0] == 200


def test_a_client_that_is_slow_keeps_nobody_waiting(serve):
    slow = [serve.connect() for _ in range(20)]
    for c in slow:
        c.sendall(b"GET / HTTP/1.1\r\nHost: loc")
    assert serve.ask("/api/v1/version")[0] == 200
    for c in slow:
        c.close()


def test_a_client_that_never_ends_its_head_is_shut_out(serve):
    with serve.connect() as c:
        c.sendall(b"GET / HTTP/1.1\r\n")
        c.settimeout(0.5)
        end = time.monotonic() + 30
        while True:  # a byte now and then, as long as it takes it
            assert time.monotonic() < end
            try:
                c.sendall(b"X")
                if c.recv(100) == b"":
                    break
            except TimeoutError:
                continue
            except OSError:
                break
    assert serve.ask("/api/v1/version")[0] == 200


def test_every_reply_has_the_strict_heads(serve):
    for path, query in (("/", {}), ("/app.js", {}), ("/api/v1/version", {}), ("/api/v1/nosuch", {}), ("/nosuch", {}), ("/report.html", RANGE)):
        _, heads, _ = serve.ask(path, **query)
        policy = dict(p.strip().split(" ", 1) for p in heads["Content-Security-Policy"].split(";"))
        assert policy["default-src"] == "'none'" and policy["script-src"] == "'self'" and policy["connect-src"] == "'self'"
        assert policy["frame-ancestors"] == "'none'" and "unsafe" not in heads["Content-Security-Policy"]
        assert heads["X-Content-Type-Options"] == "nosniff" and heads["Referrer-Policy"] == "no-referrer"
        assert "Access-Control-Allow-Origin" not in heads
        assert heads["Cache-Control"] == ("no-cache" if path in ("/", "/app.js") else "no-store")


def test_the_page_is_not_sent_twice(serve):
    status, heads, body = serve.ask("/app.js")
    assert status == 200 and body
    again = serve.ask("/app.js", headers={"If-None-Match": heads["ETag"]})
    assert again[0] == 304 and again[2] == b""


# --- many at a time, and the end ---

def endless(s, before=""):
    """A connection on which something is asked that never ends."""
    c = s.connect()
    c.sendall(b"GET /api/v1/sql?query=" + urllib.parse.quote_plus(before + ENDLESS).encode() + b" HTTP/1.1\r\nHost: localhost\r\n\r\n")
    return c


def test_questions_beyond_the_limit_wait(start):
    s = start("--questions", "2")
    asking = [endless(s, f"-- {i}\n") for i in range(5)]
    until(lambda: len(s.children()) == 2)
    assert [len(s.children()) for _ in range(50)] == [2] * 50
    got = []
    t = threading.Thread(target=lambda: got.append(s.ask("/api/v1/version")[0]))
    t.start()
    for c in asking:
        c.close()
    t.join()
    assert got == [200]
    until(lambda: not s.children())


def test_whoever_hangs_up_takes_the_child_along(start):
    s = start()
    with endless(s):
        until(s.children)
    until(lambda: not s.children())


@pytest.mark.parametrize("sig", [signal.SIGTERM, signal.SIGINT])
def test_it_ends_at_once_and_leaves_no_child(start, sig):
    s = start()
    with endless(s):
        until(s.children)
        pids = s.children()
        assert s.end(sig) == 0
    assert not [p for p in pids if os.path.exists(f"/proc/{p}")]


def test_a_killed_server_leaves_no_child(start):
    s = start()
    with endless(s):
        until(s.children)
        pids = s.children()
        s.end(signal.SIGKILL)
        until(lambda: not [p for p in pids if os.path.exists(f"/proc/{p}") and open(f"/proc/{p}/stat").read().split()[2] != "Z"])


# --- where it listens, and the token ---

def ended(*args, store="/nonexistent"):
    return subprocess.run([f"{BIN}/sonde", "serve", *map(str, args)], capture_output=True, text=True, timeout=120, stdin=subprocess.DEVNULL,
                          env={**os.environ, "SONDE_STORE": str(store)})


@pytest.mark.parametrize("listen", ["0.0.0.0:0", "[::]:0", "192.0.2.1:80"])
def test_an_address_that_others_reach_needs_a_token(listen):
    done = ended("--listen", listen)
    assert done.returncode == 2 and "could read the whole store" in done.stderr and "--token-file" in done.stderr


@pytest.mark.parametrize("args,code,word", [
    (["--listen", "nonsense"], 2, "port"), (["--listen", "example.org:80"], 2, "not an address"), (["--listen", "127.0.0.1:99999"], 2, "port"),
    (["--listen", "192.0.2.1:0", "--token-file", "TOKEN"], 1, "192.0.2.1"), (["--token-file", "/nonexistent/x"], 2, "cannot read the token"),
    (["--listen", "unix:/nonexistent/x"], 1, "/nonexistent/x"), (["--questions", "9999"], 2, "questions"), (["extra"], 2, "extra"),
])
def test_what_cannot_be_is_said_at_the_start(token, args, code, word):
    done = ended(*[str(token) if a == "TOKEN" else a for a in args])
    assert done.returncode == code and word in done.stderr, done.stderr


def test_an_address_that_is_taken_is_said(serve):
    done = ended("--listen", f"127.0.0.1:{serve.port}")
    assert done.returncode == 1 and "another program listens there" in done.stderr


def test_a_token_that_is_weak_or_that_everybody_reads_is_refused(tmp_path):
    path = tmp_path / "t"
    for text, mode, word in (("short", 0o600, "16 to 200"), ("", 0o600, "16 to 200"), ("with blanks in between it", 0o600, "letters"), (TOKEN, 0o644, "every user")):
        path.write_text(text)
        path.chmod(mode)
        done = ended("--token-file", path)
        assert done.returncode in (2, 5) and word in done.stderr, (text, done.stderr)


def test_with_a_token_nothing_is_told_before_it(start, token):
    s = start("--token-file", token, listen="0.0.0.0:0")
    s.host = "127.0.0.1"
    assert "token" in s.error("/api/v1/ps", 401)["error"] and "token" in s.error("/report.html", 401)["error"]
    status, _, body = s.ask("/")
    assert status == 401 and b"<form" in body and s.ask("/app.js")[0] == 401
    assert s.ask("/?token=wrong" + TOKEN)[0] == 401
    status, heads, _ = s.ask(f"/?token={TOKEN}")
    cookie = heads["Set-Cookie"]
    assert status == 303 and heads["Location"] == "/" and "HttpOnly" in cookie and "SameSite=Lax" in cookie
    known = {"Cookie": cookie.split(";")[0]}
    assert [s.ask(p, headers=known)[0] for p in ("/", "/app.js", "/api/v1/version")] == [200, 200, 200]
    assert s.ask("/api/v1/version", headers={"Authorization": f"Bearer {TOKEN}"})[0] == 200
    assert s.ask("/api/v1/version", headers={"Authorization": f"Bearer {TOKEN}x"})[0] == 401
    assert s.ask("/api/v1/version", headers={**known, "Host": "evil.example"})[0] == 421


def test_a_socket_in_the_file_system_is_for_its_group_and_is_taken_away(start, scratch, made):
    path = os.path.join(scratch, "s.sock")
    s = start(listen=f"unix:{path}")
    assert stat.S_IMODE(os.stat(path).st_mode) == 0o660
    assert "another program listens" in ended("--listen", f"unix:{path}").stderr
    with socket.socket(socket.AF_UNIX) as c:
        c.connect(path)
        c.sendall(b"GET /api/v1/version HTTP/1.1\r\nHost: whatever.example\r\nConnection: close\r\n\r\n")
        assert c.recv(100).startswith(b"HTTP/1.1 200")
    assert s.end() == 0 and not os.path.exists(path)
    left = start(listen=f"unix:{path}")
    left.end(signal.SIGKILL)
    assert os.path.exists(path) and start(listen=f"unix:{path}").end() == 0


def test_who_may_not_read_the_store_is_told_so(made, sonde):
    if os.geteuid():
        pytest.skip("missing: root")
    os.chmod(made, 0o700)
    s = Serve(made)
    try:
        s.close()
        s = subprocess.Popen(["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", f"{BIN}/sonde", "serve", "--listen", "127.0.0.1:0"], stderr=subprocess.PIPE,
                             text=True, env={**os.environ, "SONDE_STORE": made})
        port = int(s.stderr.readline().split(":")[2].split("/")[0])
        other = Serve.__new__(Serve)
        other.host, other.port = "127.0.0.1", port
        assert other.error("/api/v1/ps", 403)["exit"] == 5
        s.terminate()
        assert s.wait(20) == 0
        s.stderr.close()
    finally:
        os.chmod(made, 0o755)


def test_the_unit_is_hardened_and_has_no_right(tmp_path):
    need("systemd-analyze")
    with open(os.path.join(ROOT, "serve/systemd/sonde-serve.service"), encoding="ascii") as f:
        text = f.read().replace("@libexecdir@", BIN)
    assert re.search(r"^CapabilityBoundingSet=$", text, re.M) and re.search(r"^DynamicUser=yes$", text, re.M)
    unit = tmp_path / "sonde-serve.service"
    unit.write_text(text)
    out = subprocess.run(["systemd-analyze", "security", "--offline=true", str(unit)], capture_output=True, text=True, check=False)
    level = re.search(r"Overall exposure level for sonde-serve.service: ([\d.]+)", out.stdout)
    if not level:
        pytest.skip("missing: systemd-analyze security --offline")
    assert float(level.group(1)) <= 1.5, out.stdout


def test_another_user_without_any_capability_serves_a_store_that_he_may_read(made, scratch):
    if os.geteuid():
        pytest.skip("missing: root")
    store = os.path.join(scratch, "store")
    shutil.copytree(made, store)
    for path in (store, *(os.path.join(store, f) for f in os.listdir(store))):
        os.chown(path, 0, 65534)
        os.chmod(path, 0o750 if path == store else 0o640)
    s = subprocess.Popen(["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", "--inh-caps=-all", "--bounding-set=-all", "--no-new-privs",
                          f"{BIN}/sonde-serve", "--store", store, "--listen", "127.0.0.1:0"], stderr=subprocess.PIPE, text=True)
    try:
        other = Serve.__new__(Serve)
        other.host, other.port = "127.0.0.1", int(s.stderr.readline().split(":")[2].split("/")[0])
        assert other.ask("/api/v1/ps", **RANGE)[0] == 200
    finally:
        s.terminate()
        assert s.wait(20) == 0
        s.stderr.close()
