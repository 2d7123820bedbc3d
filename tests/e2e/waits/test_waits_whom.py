# SPDX-License-Identifier: Apache-2.0
"""`sonde waits` names who has the other end of a connection that a thread waits on, as family net or the names of addresses tell; where several would do,
nobody."""
import json

import livedin
import pytest

AT = 1795144200
APP, DB, OTHER = {"pid": 40, "comm": "app", "tid": 40, "thread": "app"}, {"pid": 41, "comm": "postgres", "container": "db"}, {"pid": 42, "comm": "curl"}


def flow(side, peer, port, mate, **who):
    return {"fact": "flow_row", "at": AT + 1, "pid": 40, "comm": "app", **who, "side": side, "protocol": "tcp", "peer": peer, "port": str(port), "owner": "opener",
            "mate": mate, "opened": 1, "tx_bytes": 9}


def waited(on, ms, **who):
    thread = {**APP, **who}
    yield {**thread, "wait": 3, "at": AT + 2, "n": 1, "total_ns": ms * 1000000, "max_ns": ms * 1000000}
    yield {**thread, "kind": "offcpu", "label": 3, "at": AT + 2, "n": 1, "value": ms * 1000000, "stack": ["main", "recv"]}
    yield {**thread, "on": on, "class": 3, "at": AT + 2, "n": 1, "total_ns": ms * 1000000, "stack": ["main", "recv"]}


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    store = str(tmp_path_factory.mktemp("whom") / "store")
    lines = [livedin.run("net", AT, AT + 20, 1), flow("client", "10.0.0.5", 5432, DB), flow("client", "fd00::7", 6379, OTHER),
             flow("server", "10.0.0.9", 80, OTHER), flow("server", "127.0.0.1", 80, OTHER), flow("server", "127.0.0.1", 80, DB),
             flow("client", "10.0.0.8", 81, {"pid": 77, "comm": "[unknown]"}), flow("client", "10.0.0.1", 9, DB, pid=90, comm="not-app"),
             {"fact": "connection_row", "at": AT + 3, "pid": 40, "comm": "app", "columns": {
                 "side": "server", "protocol": "tcp", "peer": "127.0.0.1", "port": "80", "client_port": "40001", "result": "closed"}, "mate": OTHER},
             {"fact": "peer_name_row", "at": AT + 1, "pid": 40, "comm": "app", "columns": {"address": "1.2.3.4", "name": "api.example.com", "how": "dns", "n": 1}},
             livedin.run("offcpu", AT, AT + 20, 1)]
    on = ["10.0.0.5:5432", "[fd00::7]:6379", "10.0.0.9:51000", "127.0.0.1:40001", "127.0.0.1:40002", "1.2.3.4:443", "10.0.0.8:81", "10.0.0.1:9", "/a/file",
          "[fd00::7", "::1:5", "10.0.0.5:"]
    for i, what in enumerate(on):
        lines += waited(what, 100 + i, tid=1000 + i, thread=f"t{i}")
    livedin.put(store, lines)
    return store, on


def test_the_other_end_has_a_name_where_one_is_known_and_only_one(sonde, made):
    store, on = made
    said = json.loads(sonde("waits", "--json", "--by", "thread", "-n", 99, "--from", AT, "--to", AT + 20, store=store, check=True).stdout)["rows"]
    got = {r["object"]: r["peer"] for r in said}
    assert got == {**dict.fromkeys(on), "10.0.0.5:5432": "container db", "[fd00::7]:6379": "curl", "10.0.0.9:51000": "curl", "127.0.0.1:40001": "curl",
                   "1.2.3.4:443": "api.example.com"}


def test_the_text_says_it_behind_the_address(sonde, made):
    text = sonde("waits", "--by", "thread", "-n", 99, "--wide", "--from", AT, "--to", AT + 20, store=made[0], check=True).stdout
    assert "10.0.0.5:5432 (container db)" in text and "1.2.3.4:443 (api.example.com)" in text and "127.0.0.1:40002 (" not in text
