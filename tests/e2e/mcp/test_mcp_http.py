# SPDX-License-Identifier: Apache-2.0
"""/mcp of `sonde serve`: the same tools as `sonde mcp`, one POST a message, both eras of the protocol, under the server's own rules: Host, Origin, the token.
test_mcp_clients.py (make long-mcp) asks with the clients that others wrote."""
import http.client
import json
import os
import socket
import threading
import time

import livedin
import procfs
import pytest
from serving import Serve

VERSION = "io.modelcontextprotocol/protocolVersion"
MODERN = {VERSION: "2026-07-28"}
JSON = {"Content-Type": "application/json", "Accept": "application/json, text/event-stream"}
ENDLESS = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT max(i) FROM n"


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    end = int(time.time()) // 10 * 10
    return livedin.make(str(tmp_path_factory.mktemp("http") / "store"), end, []), end


@pytest.fixture(scope="module")
def server(made):
    s = Serve(made[0], "--store", made[0])
    yield s
    s.close()


def post(server, body, headers=(), path="/mcp", method="POST"):
    """(status, headers, what it says as JSON; None: nothing)"""
    c = http.client.HTTPConnection(server.host, server.port, timeout=600)
    try:
        c.request(method, path, body if isinstance(body, (bytes, type(None))) else json.dumps(body), {**JSON, **dict(headers)})
        r = c.getresponse()
        text = r.read()
        return r.status, r.headers, json.loads(text) if text else None
    finally:
        c.close()


def ask(server, method, params=None, headers=(), **more):
    message = {"jsonrpc": "2.0", "id": 5, "method": method, **({} if params is None else {"params": params}), **more}
    status, _, said = post(server, message, headers)
    return status, said


def modern(method, name=None):
    return {"MCP-Protocol-Version": "2026-07-28", "Mcp-Method": method, **({"Mcp-Name": name} if name else {})}


def test_a_client_of_the_old_era(server):
    status, said = ask(server, "initialize", {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "t", "version": "0"}})
    assert status == 200 and said["result"]["protocolVersion"] == "2025-11-25" and said["id"] == 5
    assert post(server, {"jsonrpc": "2.0", "method": "notifications/initialized"}) [::2] == (202, None)
    status, said = ask(server, "tools/list", headers={"MCP-Protocol-Version": "2025-11-25"})
    assert status == 200 and {"overview", "sql"} <= {t["name"] for t in said["result"]["tools"]}
    status, said = ask(server, "tools/call", {"name": "processes", "arguments": {}}, {"MCP-Protocol-Version": "2025-11-25"})
    assert status == 200 and said["result"]["structuredContent"]["processes"]["rows"]
    status, said = ask(server, "tools/list", headers={"MCP-Protocol-Version": "2031-01-01"})
    assert status == 400 and said["error"]["code"] == -32022


def test_a_client_of_the_new_era(server):
    status, said = ask(server, "server/discover", {"_meta": MODERN}, modern("server/discover"))
    assert status == 200 and "2026-07-28" in said["result"]["supportedVersions"]
    status, said = ask(server, "tools/call", {"name": "overview", "arguments": {}, "_meta": MODERN}, modern("tools/call", "overview"))
    assert status == 200 and said["result"]["resultType"] == "complete" and said["result"]["structuredContent"]["host"]["rows"]
    status, said = ask(server, "no/such", {"_meta": MODERN}, modern("no/such"))
    assert status == 404 and said["error"]["code"] == -32601
    status, said = ask(server, "tools/list", {"_meta": {VERSION: "2031-01-01"}}, {**modern("tools/list"), "MCP-Protocol-Version": "2031-01-01"})
    assert status == 400 and said["error"]["code"] == -32022
    for wrong in ({"Mcp-Method": "tools/list"}, {"Mcp-Name": "sql"}, {"MCP-Protocol-Version": "2025-11-25"}):
        status, said = ask(server, "tools/call", {"name": "overview", "arguments": {}, "_meta": MODERN}, {**modern("tools/call", "overview"), **wrong})
        assert status == 400 and said["error"]["code"] == -32020, wrong
    for lacks in ("Mcp-Method", "Mcp-Name", "MCP-Protocol-Version"):
        heads = {k: v for k, v in modern("tools/call", "overview").items() if k != lacks}
        status, said = ask(server, "tools/call", {"name": "overview", "arguments": {}, "_meta": MODERN}, heads)
        assert status == 400 and said["error"]["code"] == -32020, lacks


def test_line_feeds_of_a_message_do_not_cut_it(server):
    body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "ping"}, indent=1).replace("\n", "\r\n").encode()
    assert post(server, body)[::2] == (200, {"jsonrpc": "2.0", "id": 1, "result": {}})


def test_what_is_no_message_is_refused(server):
    for body, status, code in ((b"garbage", 400, -32700), (b"[]", 400, -32600), (b"{}", 400, -32600), (b"", 400, -32700)):
        got, _, said = post(server, body)
        assert (got, said["error"]["code"]) == (status, code), body
    assert post(server, b"{}", {"Content-Type": "text/plain"})[0] == 415
    for n in (1 << 20, 3 << 20):  # a client that reads only after it has sent all has its answer
        assert post(server, b'{"x":"' + b"y" * n + b'"}')[0] == 413
    for method in ("GET", "DELETE", "PUT"):
        got, heads, _ = post(server, None, method=method)
        assert got == 405 and heads["Allow"] == "POST", method
    assert post(server, b"{}", path="/api/v1/ps")[0] == 405


def test_a_body_without_a_length_is_bounded_too(server):
    with server.connect() as s:
        s.sendall(b"POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n")
        try:
            for _ in range(24):
                s.sendall(b"10000\r\n" + b"y" * 65536 + b"\r\n")
            s.sendall(b"0\r\n\r\n")
        except OSError:
            pass
        assert b" 413 " in s.recv(64)


def test_a_body_that_does_not_come_ends_the_connection(server):
    with server.connect() as s:
        s.sendall(b"POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 50\r\n\r\n{")
        s.settimeout(30)
        try:
            assert s.recv(64) == b""
        except ConnectionResetError:
            pass


def test_pages_elsewhere_and_other_names_may_not_ask(server):
    ping = {"jsonrpc": "2.0", "id": 1, "method": "ping"}
    for heads in ({"Origin": "http://evil.example"}, {"Sec-Fetch-Site": "cross-site"}):
        assert post(server, ping, heads)[0] == 403, heads
    assert post(server, ping, {"Host": "evil.example"})[0] == 421
    assert post(server, ping, {"Origin": f"http://{server.host}:{server.port}", "Host": f"{server.host}:{server.port}"})[0] == 200


def test_the_token_is_needed_here_too(made, tmp_path):
    token = "0123456789abcdefghij"
    path = tmp_path / "token"
    path.write_text(token)
    os.chmod(path, 0o600)
    s = Serve(made[0], "--store", made[0], "--token-file", path)
    try:
        ping = {"jsonrpc": "2.0", "id": 1, "method": "ping"}
        assert post(s, ping)[0] == 401 and post(s, ping, {"Authorization": "Bearer x"})[0] == 401
        assert post(s, ping, {"Authorization": f"Bearer {token}"})[0] == 200
    finally:
        s.close()


def below(pid):
    """All that it started, and what these started."""
    own = procfs.children(pid)
    return own + [p for c in own for p in below(c)]


def runs_an_endless_query(server, limit):
    """The call's process and its question's."""
    while len(below(server.child.pid)) < 2 and time.monotonic() < limit:
        time.sleep(0.02)
    return len(below(server.child.pid)) >= 2


def nothing_runs(server, limit):
    while below(server.child.pid) and time.monotonic() < limit:
        time.sleep(0.02)
    return not below(server.child.pid)


def endless(ident):
    return {"jsonrpc": "2.0", "id": ident, "method": "tools/call", "params": {"name": "sql", "arguments": {"query": ENDLESS}}}


def test_a_client_that_hangs_up_ends_its_call(server):
    body = json.dumps(endless(1)).encode()
    limit = time.monotonic() + 120
    with server.connect() as s:
        s.sendall(b"POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n" % len(body) + body)
        assert runs_an_endless_query(server, limit)
        s.shutdown(socket.SHUT_RDWR)
    assert nothing_runs(server, limit)


@pytest.mark.parametrize("ident", [0, "a call"])
def test_a_cancelled_call_ends_and_is_answered_with_nothing(server, ident):
    """Only that call: another session's with the same id, and a wrong id, leave it alone."""
    begun = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "t", "version": "0"}}}
    mine, other = ({"Mcp-Session-Id": post(server, begun)[1]["Mcp-Session-Id"]} for _ in range(2))
    assert mine != other
    limit = time.monotonic() + 120
    got = []
    call = threading.Thread(target=lambda: got.append(post(server, endless(ident), mine)))
    call.start()
    assert runs_an_endless_query(server, limit)
    for heads, named in ((other, ident), ({}, ident), (mine, "another"), (mine, str(ident) if ident == 0 else 0)):
        assert post(server, {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": named}}, heads)[::2] == (202, None)
    assert len(below(server.child.pid)) >= 2
    assert post(server, {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": ident, "reason": "changed my mind"}}, mine)[0] == 202
    call.join(30)
    assert got and got[0][::2] == (202, None) and nothing_runs(server, limit)
    assert ask(server, "ping")[1]["result"] == {}


def test_without_a_session_the_only_call_with_the_id_is_cancelled(server):
    limit = time.monotonic() + 120
    got = []
    call = threading.Thread(target=lambda: got.append(post(server, endless(77))))
    call.start()
    assert runs_an_endless_query(server, limit)
    assert post(server, {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 77}})[0] == 202
    call.join(30)
    assert got[0][0] == 202 and nothing_runs(server, limit)
