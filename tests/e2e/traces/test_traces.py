# SPDX-License-Identifier: Apache-2.0
"""`sonde trace`: which request was made for which. Of stores that say what is planted; and of nginx, a server of Python threads, Redis and PostgreSQL, whose
trees are what the server says that it asked (shop.py)."""
import glob
import json
import os
import shutil
import sqlite3
import tempfile

import livedin
import pytest
import servers
from conftest import Capture, need_root
from containers import fake_container
from shopping import Shop

AT = 1800000000
TRACE = "4bf92f3577b34da6a3ce929d0e0e4736"


# ---- planted ----

def request(nth, pid, comm, side, span, parent=0, how="", start_us=0, took_us=1000, trace="", caller=0, lang="", **more):
    who = {"pid": pid, "comm": comm, **({"lang": lang} if lang else {})}
    return [{"fact": "request_log_row", "at": AT, **who, "side": side, "protocol": "http", "service": "10.0.0.5:80", "operation": f"GET /{nth}", "nth": str(nth),
             "at_us": AT * 1000000 + start_us, "status": "200", "result": "ok", "why": "slow", "weight": 1, "tid": pid, "first_us": took_us, "total_us": took_us,
             "request_bytes": 1, "response_bytes": 1, "trace": trace},
            {"fact": "request_span_row", "at": AT, **who, "side": side, "span": span, "nth": str(nth), "how": how, **({"parent": parent} if parent else {}),
             **({"caller": caller} if caller else {}), **more}]


def store_of(tmp_path, *requests):
    store = str(tmp_path / "s")
    livedin.put(store, [{"run": "l7", "from": AT, "to": AT + 30, "bucket_s": 10}, *(row for r in requests for row in r)])
    return store


@pytest.fixture
def trees(sonde):
    def ask(store, *args):
        return json.loads(sonde("trace", "--json", *args, store=store, check=True).stdout)
    return ask


def shape(said):
    return [(r["depth"], r["operation"], r["linked_by"]) for r in said["rows"]]


def test_a_question_stands_with_its_answer_and_below_what_it_was_asked_for(tmp_path, trees):
    store = store_of(tmp_path, request(1, 7, "web", "server", 70, took_us=9000), request(2, 7, "web", "client", 80, 70, "thread", 100, 5000),
                     request(2, 8, "db", "server", 90, 80, "bytes", 200, 4000), request(4, 8, "db", "client", 95, 90, "opener", 300, 2000))
    said = trees(store)
    assert shape(said) == [(0, "GET /1", None), (1, "GET /2", "thread"), (2, "GET /4", "opener")]
    asked = said["rows"][1]
    assert (asked["asked_by"]["comm"], asked["asked_by"]["total_us"], asked["answered_by"]["comm"], asked["answered_by"]["total_us"]) == ("web", 5000, "db", 4000)
    assert (asked["start_us"], asked["parent"], said["asked"], said["unlinked"]) == (100, "46", 2, 0)


def test_what_is_not_known_is_said_to_be_unlinked(tmp_path, sonde, trees):
    store = store_of(tmp_path, request(1, 7, "web", "server", 70, took_us=9000), request(2, 7, "web", "client", 80, 0, "", 100, 5000),
                     request(3, 7, "web", "client", 81, 12345, "thread", 100, 4000))
    said = trees(store, "-n", 9)
    assert [(r["operation"], r["parent_lost"]) for r in said["rows"]] == [("GET /1", False), ("GET /2", False), ("GET /3", True)] and said["unlinked"] == 1
    text = sonde("trace", "-n", 9, store=store, check=True)
    assert "unlinked: no known parent request" in text.stdout and "it is part of another request, which was not kept" in text.stdout
    assert "1 of 2 stored client requests have no known parent request" in text.stderr


def test_what_threads_of_go_ask_is_asked_for_nobody(tmp_path, sonde, trees):
    go = dict(lang="go")
    store = store_of(tmp_path, request(1, 7, "web", "server", 70, took_us=9000, **go), request(2, 7, "web", "client", 80, 70, "thread", 100, 5000, **go))
    assert shape(trees(store, "-n", 9)) == [(0, "GET /1", None), (0, "GET /2", None)]
    assert "net/http's client uses other goroutines" in sonde("trace", store=store, check=True).stdout


def test_what_the_goroutine_asks_that_read_a_request_is_asked_for_that(tmp_path, trees):
    go = dict(lang="go")
    store = store_of(tmp_path, request(1, 7, "web", "server", 70, took_us=9000, **go), request(2, 7, "web", "client", 80, 70, "goroutine", 100, 5000, **go))
    assert shape(trees(store, "-n", 9)) == [(0, "GET /1", None), (1, "GET /2", "goroutine")]


def test_a_header_links_what_no_connection_does_but_only_where_one_can_be_meant(tmp_path, trees):
    one = [request(1, 7, "web", "client", 80, trace=TRACE, caller=5, took_us=5000), request(2, 8, "app", "server", 90, 1234, "bytes", 100, 4000, TRACE, 5)]
    assert [(r["operation"], r["linked_by"], r["answered_by"]["comm"]) for r in trees(store_of(tmp_path, *one))["rows"]] == [("GET /1", "header", "app")]
    (tmp_path / "two").mkdir()
    two = store_of(tmp_path / "two", *one, request(3, 9, "app", "server", 91, 1235, "bytes", 200, 3000, TRACE, 5))
    assert shape(trees(two, "-n", 9)) == [(0, "GET /1", None), (0, "GET /2", None), (0, "GET /3", None)]


def test_an_id_finds_the_trees_of_its_trace_and_a_span_its_own(tmp_path, sonde, trees):
    store = store_of(tmp_path, request(1, 7, "web", "server", 0x70, took_us=9000), request(2, 8, "web", "server", 0x80, trace=TRACE, took_us=50),
                     request(3, 9, "app", "server", 0x90, trace=TRACE, took_us=40))
    assert shape(trees(store, TRACE)) == shape(trees(store, "--id", TRACE[:8])) == [(0, "GET /2", None), (0, "GET /3", None)]
    assert shape(trees(store, "70")) == [(0, "GET /1", None)]
    assert shape(trees(store, "--pid", 9)) == [(0, "GET /3", None)]
    for args, code, says in (((TRACE[:7],), 4, "no stored request"), (("--slowest", TRACE), 2, "cannot be combined"), ((TRACE, "--id", "70"), 2, "one ID"),
                             (("",), 2, "the ID is empty")):
        out = sonde("trace", *args, store=store)
        assert (out.returncode, says in out.stderr) == (code, True), out.stderr


def test_a_circle_in_a_store_that_is_wrong_is_no_tree(tmp_path, sonde):
    store = store_of(tmp_path, request(1, 7, "web", "client", 80, 70, "thread"), request(1, 7, "web", "server", 70, 80, "bytes"),
                     request(2, 7, "web", "client", 81, 91, "thread"), request(2, 8, "web", "server", 92, 81, "bytes"), request(3, 8, "web", "client", 83, 92, "thread"),
                     request(3, 9, "web", "server", 91, 83, "bytes"), request(4, 9, "web", "server", 99))
    out = sonde("trace", "-n", 9, "--json", store=store, check=True)
    assert shape(json.loads(out.stdout))[-1] == (0, "GET /4", None)


# ---- made ----

@pytest.fixture(scope="module")
def shopped(tmp_path_factory):
    """(store, {path: (trace, what was asked for it)})"""
    need_root()
    folder = tempfile.mkdtemp(prefix="sonde-traces-")  # which another user can enter: postgres runs as one
    store = str(tmp_path_factory.mktemp("traces") / "s")
    try:
        with fake_container() as (container, prefix):
            try:
                shop = Shop(folder, container, prefix)
            except servers.Missing as e:
                pytest.skip(f"missing: {e}")
            cap = Capture(store, "--cgroup", f"/docker/{container}", program="sonde-l7")
            try:
                cap.start()
                asked = {path: (f"{i + 1:032x}", shop.ask(path, f"{i + 1:032x}")) for i, path in enumerate(("/warm", "/cart", "/report", "/quick"))}
                done = cap.stop(60)
            finally:
                cap.close()
                shop.end()
        assert done["lost_total"] == 0, done
        return store, asked
    finally:
        shutil.rmtree(folder, ignore_errors=True)


CHAIN = [("python3", "nginx"), ("nginx", "python3")]  # who asked, who answered, from the client to the server


@pytest.mark.parametrize("path", ["/cart", "/report", "/quick"])
def test_the_tree_is_what_was_made(shopped, trees, path):
    store, asked = shopped
    trace, made = asked[path]
    rows = trees(store, trace)["rows"]
    assert len({r["root"] for r in rows}) == 1, rows
    assert [(r["asked_by"]["comm"], r["answered_by"]["comm"]) for r in rows[:2]] == CHAIN and {r["operation"] for r in rows[:2]} == {f"GET {path}"}
    assert [(r["depth"], r["linked_by"]) for r in rows[:2]] == [(0, None), (1, "opener")]
    below = [r for r in rows[2:] if r["operation"] != "CONNECT"]  # that of libpq is none of the server's own
    assert [(r["protocol"], r["operation"].split("(")[0].split(" ?")[0].rsplit(" cart:", 1)[0].removesuffix(" report")) for r in below] == [tuple(x) for x in made]
    assert {(r["depth"], r["linked_by"], r["asked_by"]["comm"]) for r in rows[2:]} <= {(2, "thread", "python3")}
    assert {r["answered_by"]["comm"] for r in rows[2:]} <= {"redis-server", "postgres"}


def test_each_lies_in_the_time_of_the_one_that_it_was_made_for(shopped, trees):
    store, asked = shopped
    by = {r["span"]: r for r in trees(store, asked["/report"][0])["rows"]}
    for r in by.values():
        if r["parent"]:
            up = by[r["parent"]]
            assert up["start_us"] <= r["start_us"] and r["start_us"] + r["total_us"] <= up["start_us"] + up["total_us"] + 1, (r, up)
        assert r["answered_by"]["total_us"] <= r["total_us"]
    assert max(r["total_us"] for r in by.values() if r["operation"].startswith("SELECT pg_sleep")) >= 40000


def test_no_word_of_what_was_said_is_in_the_store(shopped):
    store, _ = shopped
    for path in glob.glob(os.path.join(store, "*")):
        if os.path.isfile(path):
            with open(path, "rb") as f:
                assert b"s3cr3t-Zq7" not in f.read(), path


def test_all_of_it_stands_in_the_archive_as_well(shopped, trees, tmp_path, sonde):
    store, asked = shopped
    copy = str(tmp_path / "copy")
    shutil.copytree(store, copy, ignore=shutil.ignore_patterns("images"))  # which may still be made
    for path in glob.glob(os.path.join(copy, "*.db")):
        with sqlite3.connect(path) as db:
            db.execute("UPDATE meta SET value = 'another' WHERE key = 'boot_id'")
    before = trees(copy, asked["/report"][0])
    sonde("seal", store=copy, check=True)
    assert trees(copy, asked["/report"][0]) == before
