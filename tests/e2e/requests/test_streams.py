# SPDX-License-Identifier: Apache-2.0
"""Streams and long polls last as long as somebody listens: they are not the slowest requests, and make no service slow."""
import json

import pytest

from livedin import put

TO = 1795144200 // 60 * 60
SQL = "SELECT name, price FROM products JOIN categories ON products.category = categories.id WHERE categories.name = ? ORDER BY price LIMIT ?"
SOCKET, HOST = "/run/docker.sock", "10.0.0.1:80"
STREAMS = [("http", SOCKET, "GET docker/events", "200"), ("http", SOCKET, "GET docker/v1.47/containers/{id}/stats", "200"),
           ("http", "10.0.0.1:2375", "GET docker/v1.47/containers/{id}/logs", "200"), ("http", SOCKET, "POST docker/v1.47/containers/{id}/attach", "200"),
           ("http", HOST, "GET h/chat", "101"), ("http2", HOST, "GET h/api/v1/watch/pods", "200"), ("http2", HOST, "/etcdserverpb.Watch/Watch", "OK"),
           ("redis", HOST, "BLPOP jobs", ""), ("redis", HOST, "XREADGROUP jobs", ""), ("redis", HOST, "SUBSCRIBE news", ""),
           ("postgres", HOST, "LISTEN jobs", ""), ("postgres", HOST, "START_REPLICATION", ""), ("kafka", HOST, "Fetch orders", "")]
WORK = [("http", HOST, "GET h/events", "200"), ("redis", HOST, "LPOP jobs", ""), ("postgres", HOST, SQL, ""), ("kafka", HOST, "Produce orders", "")]


def single(at, nth, protocol, service, operation, status, first_us, total_us):
    return {"fact": "request_log_row", "at": at, "pid": 7, "comm": "app", "side": "server", "protocol": protocol, "service": service, "operation": operation,
            "nth": str(nth), "at_us": at * 1000000 + nth, "status": status, "result": "ok", "why": "slow", "weight": 1, "tid": 7, "first_us": first_us,
            "total_us": total_us, "request_bytes": 1, "response_bytes": 1, "trace": ""}


def asked(begin, end, protocol, service, operation, status, ms):
    for at in range(begin, end, 10):
        yield {"request": operation, "protocol": protocol, "service": service, "status": status, "result": 0, "side": 2, "at": at, "n": 10, "pid": 7,
               "comm": "app", "total_ns": 10 * ms * 1000000, "max_ns": ms * 1000000, "request_bytes": 10, "response_bytes": 10}


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    path = str(tmp_path_factory.mktemp("s") / "store")
    rows = [single(TO - 100, i, *what, 1000, 3600000000) for i, what in enumerate(STREAMS)]
    rows += [single(TO - 90, 100 + i, *what, 2000000, 2000000 + i) for i, what in enumerate(WORK)]
    rows.append(single(TO - 80, 200, "http", HOST, "GET h/feed", "200", 1000, 60000000))  # begins at once, and goes on for a minute
    put(path, [{"run": "l7", "from": TO - 3600, "to": TO, "bucket_s": 10}, *rows, *asked(TO - 600, TO, "postgres", HOST, SQL, "", 10)])
    return path


def test_the_slowest_are_without_them_which_is_said_with_the_option(sonde, store):
    done = sonde("requests", "--slowest", "--wide", store=store, check=True)
    assert all(w[2] in done.stdout for w in WORK) and len(done.stdout.splitlines()) == 1 + len(WORK)
    assert f"without {len(STREAMS) + 1} streams and long polls: --streams shows them" in done.stderr
    answer = json.loads(sonde("requests", "--slowest", "--json", store=store, check=True).stdout)
    assert {r["operation"] for r in answer["rows"]} == {w[2] for w in WORK} and not any(r["stream"] for r in answer["rows"])
    assert "--streams" in answer["warnings"][0]


def test_the_option_shows_them_too(sonde, store):
    rows = json.loads(sonde("requests", "--slowest", "--streams", "--json", store=store, check=True).stdout)["rows"]
    assert {r["operation"] for r in rows if r["stream"]} == {"GET h/feed", *(s[2] for s in STREAMS)}
    assert {r["operation"] for r in rows if not r["stream"]} == {w[2] for w in WORK}


def test_wide_cuts_nothing(sonde, store):
    assert SQL in sonde("requests", "--wide", store=store, check=True).stdout
    assert SQL not in sonde("requests", store=store, check=True).stdout


@pytest.mark.parametrize("what, fails", [(s, False) for s in STREAMS] + [(w, True) for w in WORK], ids=lambda x: x[2][:30] if isinstance(x, tuple) else "")
def test_a_service_is_not_slow_because_of_them(sonde, tmp_path, what, fails):
    path = str(tmp_path / "store")
    put(path, [{"run": "l7", "from": TO - 3600, "to": TO, "bucket_s": 10}, *asked(TO - 3600, TO, *what, 5000)])
    rows = json.loads(sonde("check", "requests-slow", "--at", TO, "--json", store=path).stdout)["rows"]
    assert [r["state"] for r in rows] == ["bad" if fails else "fine"]


def test_a_stream_beside_a_slow_service_does_not_hide_it(sonde, tmp_path):
    path = str(tmp_path / "store")
    put(path, [{"run": "l7", "from": TO - 3600, "to": TO, "bucket_s": 10}, *asked(TO - 3600, TO, "redis", HOST, "BLPOP jobs", "", 5),
               *asked(TO - 3600, TO, "redis", HOST, "EVALSHA x", "", 2000)])
    (row,) = json.loads(sonde("check", "requests-slow", "--at", TO, "--json", store=path).stdout)["rows"]
    assert row["state"] == "bad" and row["value"] == 2000 and "without streams" in row["text"]
