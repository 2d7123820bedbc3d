# SPDX-License-Identifier: Apache-2.0
"""The accounts of family l7: what was moved is parsed, skipped or blind, each byte once, in clear and inside TLS; and of requests that are
not counted the bytes are blind. What is said is the captures' of tests/e2e/captures, whose requests are known."""
import collections
import json
import os
import subprocess

import pytest

from test_replay_each import EACH, OPEN2, frame2
from test_replay_made import HTTP, Made
from conftest import E2E, LIB, Capture, need_root, sql_all
from containers import fake_container
from tlsservers import PYTHON, certificate, probes_in

pytestmark = pytest.mark.tls  # make long-tls
PLAY = os.path.join(LIB, "l7play.py")
CAPTURES = os.path.join(E2E, "captures")
TIMES = 5
UPGRADE = HTTP[:-2] + b"Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: c29uZGUgY2FzZSBwdXNoIQ==\r\n\r\n"
UPGRADED = b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: gZ6NSCrYN4vQcM6Fi/BVkWGapPs=\r\n\r\n"
GRPC = bytes.fromhex("8386") + b"\x04\x06/s.S/C" + b"\x41\x01h" + b"\x5f\x10application/grpc"
# what is said in connections made by hand, one question and its answer each: test_replay_each.EACH, and what it has not
TALKS = {**{name: talk for name, talk in EACH.items() if name not in ("tls",)},
         "websocket": (80, [(0, UPGRADE), (1, UPGRADED)], b"\x81\x82abcd\x09\x0b", b"\x81\2hi", "text to client"),
         "http2 grpc": (80, OPEN2, frame2(1, 4, 1, GRPC) + frame2(0, 1, 1, bytes(5)),
                        frame2(1, 4, 1, b"\x88\x5f\x10application/grpc") + frame2(0, 0, 1, bytes(5)) + frame2(1, 5, 1, b"\0\x0bgrpc-status\1" + b"0"), "GRPC h/s.S/C")}
with open(os.path.join(CAPTURES, "expected.json"), encoding="ascii") as known:
    EXPECTED = {name: {op: n for op, (n, _) in ops.items()} for name, ops in json.load(known).items() if name != "dns"}
PROTOCOLS = {"grpcweb": ("http", "http2"), "mqtt5": ("mqtt",), "websocket": ("http", "websocket")}  # of captures with other names


class Play:
    def __init__(self, prefix, path, name, *pair):
        argv = [*prefix, PYTHON, PLAY, path, name, str(TIMES), *pair]
        self.p = subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        assert json.loads(self.p.stdout.readline())["ready"]

    def go(self):
        self.p.stdin.write("go\n")
        self.p.stdin.flush()
        line = self.p.stdout.readline()
        self.p.stdin.close()
        self.p.wait(30)
        self.p.stdout.close()
        return json.loads(line)


def made(folder, name):
    """A capture of one conversation of TALKS."""
    port, login, ask, answer, _ = TALKS[name]
    capture = Made(os.path.join(folder, name.replace(" ", "-") + ".pcap"))
    x = capture.connect(port)
    for side, data in [*login, (0, ask), (1, answer)]:
        x.say(side, data)
    return capture.write()


def recorded(store, tmp_path, *args):
    """{(capture or conversation, inside TLS?): what was said}, of one recording."""
    need_root()
    pair = certificate(str(tmp_path))
    said = {name: os.path.join(CAPTURES, f"{name}.pcap") for name in EXPECTED}
    said.update({f"{name} by hand": made(str(tmp_path), name) for name in TALKS})
    with fake_container() as (container, prefix):
        plays = {(name, tls): Play(prefix, path, name.split()[0], *(pair if tls else ())) for name, path in said.items() for tls in (False, True)}
        cap = Capture(store, "-v", "--cgroup", f"/docker/{container}", *args, program="sonde-l7")
        try:
            cap.start()
            if not args:
                probes_in(cap, "libssl.so.3")
            did = {what: p.go() for what, p in plays.items()}
            done = cap.stop()
        finally:
            cap.close()
    assert done["lost_total"] == 0, done
    return did


@pytest.fixture(scope="module")
def read(tmp_path_factory):
    store = str(tmp_path_factory.mktemp("l7"))
    return store, recorded(store, tmp_path_factory.mktemp("tls"))


@pytest.fixture(scope="module")
def unread(tmp_path_factory):
    store = str(tmp_path_factory.mktemp("l7"))
    return store, recorded(store, tmp_path_factory.mktemp("tls"), "--tls", "off")


def accounts(store, port, side):
    rows = sql_all(store, "SELECT seen, parsed, skipped, blind FROM request_bytes WHERE service LIKE ? AND side = ?", (f"%:{port}", side))
    assert all(r["seen"] == r["parsed"] + r["skipped"] + r["blind"] for r in rows), rows
    return {k: sum(r[k] for r in rows) for k in ("seen", "parsed", "skipped", "blind")}


def counted(store, port, side, name):
    got = collections.Counter()
    for r in sql_all(store, "SELECT protocol, operation, requests FROM requests WHERE service LIKE ? AND side = ?", (f"%:{port}", side)):
        if r["protocol"] in PROTOCOLS.get(name, (name,)):
            got[r["operation"]] += r["requests"]
    return dict(got)


@pytest.mark.parametrize("side", ["client", "server"])
@pytest.mark.parametrize("tls", [False, True])
@pytest.mark.parametrize("name", EXPECTED)
def test_each_byte_is_accounted_for_once_and_each_request_counted(read, name, tls, side):
    store, did = read
    said = did[name, tls]
    n = accounts(store, said["port"], side)
    assert counted(store, said["port"], side, name) == {op: TIMES * k for op, k in EXPECTED[name].items()}, n
    assert n["seen"] == said["moved"], (n, said)
    assert n["blind"] == 0 and n["parsed"] >= said["said"], (n, said)


@pytest.mark.parametrize("side", ["client", "server"])
@pytest.mark.parametrize("tls", [False, True])
@pytest.mark.parametrize("name", TALKS)
def test_so_is_each_byte_of_every_protocol(read, name, tls, side):
    store, did = read
    said = did[f"{name} by hand", tls]
    n = accounts(store, said["port"], side)
    got = counted(store, said["port"], side, name.split()[0])
    assert got.get(TALKS[name][4]) == TIMES, (got, n)
    assert n["seen"] == said["moved"], (n, said)
    assert n["blind"] == 0 and n["parsed"] >= said["said"], (n, said)


@pytest.mark.parametrize("side", ["client", "server"])
@pytest.mark.parametrize("name", [*EXPECTED, *(f"{name} by hand" for name in TALKS)])
def test_what_is_inside_tls_and_not_read_is_blind(unread, name, side):
    store, did = unread
    said = did[name, True]
    n = accounts(store, said["port"], side)
    assert not counted(store, said["port"], side, name), "inside nothing is read"
    assert n["seen"] == said["moved"] and n["blind"] >= said["inside"], (n, said)
