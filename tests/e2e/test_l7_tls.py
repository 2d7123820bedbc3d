# SPDX-License-Identifier: Apache-2.0
"""Family l7 inside TLS: what is counted is what the programs did, and nothing of what they said is kept."""
import pytest

from conftest import need_root
from tlsservers import PYTHON, TALK, Server, asked, certificate, client, planted, probes_in


@pytest.fixture(scope="module")
def pair(tmp_path_factory):
    return certificate(str(tmp_path_factory.mktemp("tls")))


def test_requests_inside_openssl_are_counted_on_both_sides_and_their_secrets_are_not_kept(capture, store, pair):
    need_root()
    with Server(PYTHON, TALK, "sync", *pair) as sync, Server(PYTHON, TALK, "asyncio", *pair) as loop:
        c = capture("-v", program="sonde-l7")
        probes_in(c, "libssl.so.3")
        for server, n in ((sync, 7), (loop, 9), (sync, 3)):
            assert client(pair[0], server.port, n, "/item/81547118154711?token=planted-in-a-query") == n
        c.stop()
    operation = ("GET /item/{id}", "200")
    for server, n in ((sync, 10), (loop, 9)):
        want = {operation: n}
        assert asked(store, server.port, "server") == want, c.said()
        assert asked(store, server.port, "client") == want, c.said()
    assert not planted(store, "planted-in-a-header", "planted-in-a-query", "81547118154711")
