# SPDX-License-Identifier: Apache-2.0
"""Family l7 inside TLS: what is counted is what the programs did, and nothing of what they said is kept."""
import json

import pytest

from conftest import need_root, sql_all
from containers import fake_container
from tlsservers import PYTHON, TALK, Server, asked, certificate, client, planted, probes_in


@pytest.fixture(scope="module")
def pair(tmp_path_factory):
    return certificate(str(tmp_path_factory.mktemp("tls")))


def test_requests_inside_openssl_are_counted_on_both_sides_and_their_secrets_are_not_kept(capture, store, pair):
    """Of a cgroup of its own alone: on a host where all is busy the ring may fill, and connections are shed."""
    need_root()
    with fake_container() as (container, prefix), Server(*prefix, PYTHON, TALK, "sync", *pair) as sync, Server(*prefix, PYTHON, TALK, "asyncio", *pair) as loop:
        c = capture("-v", "--cgroup", f"/docker/{container}", program="sonde-l7")
        probes_in(c, "libssl.so.3")
        for server, n in ((sync, 7), (loop, 9), (sync, 3)):
            assert client(pair[0], server.port, n, "/item/81547118154711?token=planted-in-a-query", prefix) == n
        done = c.stop()
    operation = ("GET /item/{id}", "200")
    for server, n in ((sync, 10), (loop, 9)):
        want, service = {operation: n}, (f"%:{server.port}",)
        told = done["lost_total"], sql_all(store, "SELECT side, protocol, seen, parsed, skipped, blind FROM request_bytes WHERE service LIKE ?", service), c.said()
        assert asked(store, server.port, "server") == want, told
        assert asked(store, server.port, "client") == want, told
    assert not planted(store, "planted-in-a-header", "planted-in-a-query", "81547118154711")


def test_what_is_said_inside_tls_and_not_read_is_told_with_whose_it_is(capture, store, pair, sonde):
    need_root()
    with fake_container() as (container, prefix), Server(*prefix, PYTHON, TALK, "sync", *pair) as server:
        c = capture("--tls", "off", "--cgroup", f"/docker/{container}", program="sonde-l7")
        assert client(pair[0], server.port, 9, "/item/1", prefix) == 9
        c.stop()
    told = json.loads(sonde("requests", "--json", "--with", "unread_tls", store=store, check=True).stdout)
    assert {r["comm"] for r in told["unread_tls"]} == {"python3"} and len(told["unread_tls"]) == 2, told["unread_tls"]
    assert sum(r["bytes"] for r in told["unread_tls"]) <= told["bytes"]["blind"]
    assert min(r["bytes"] for r in told["unread_tls"]) > 9 * len("GET /item/1 HTTP/1.1")
    text = sonde("requests", store=store, check=True).stderr
    assert "inside TLS, not read: " in text and f"python3 ({server.pid}) until " in text, text
