# SPDX-License-Identifier: Apache-2.0
"""sonde serve before clients that send anything: requests broken by a seed, at a real server, for SERVE_SECONDS (make long-serve: an hour).

Whatever comes, the server answers HTTP or hangs up, says nothing of another status than those it knows, and has afterwards no child, no
descriptor and no memory more than before."""
import contextlib
import os
import random
import re
import socket
import time

import livedin
import pytest
from serving import Serve

AT = 1795144200  # 2026-11-20T03:10:00Z
SECONDS = float(os.environ.get("SERVE_SECONDS", "2"))
RSS_MOST = 60 << 20
STATUS = {100, 200, 304, 400, 403, 404, 405, 408, 411, 413, 414, 421, 422, 429, 431, 500, 501, 503, 504, 505}

PATHS = ["/", "/app.js", "/style.css", "/api/v1/version", "/api/v1/status", "/api/v1/ps?from=1795143000&to=1795144200", "/api/v1/sql?query=select+1",
         "/api/v1/flame?type=inuse", "/api/v1/help", "/metrics", "/live", "/api/v1/live", "/report.html?last=1h", "/api/v1/nosuch", "/../../etc/passwd"]
HEADS = ["Host: localhost", "Accept: */*", "Accept-Encoding: gzip, br;q=0", "If-None-Match: \"x\"", "Connection: keep-alive", "Range: bytes=0-", "Cookie: token=x",
         "Origin: http://evil.example", "Content-Length: 10", "Transfer-Encoding: chunked", "Expect: 100-continue", "Upgrade: websocket", "TE: trailers"]
ODD = [b"\0", b"\r", b"\n", b"\r\n\r\n", b"%00", b"%", b"%zz", b"..%2f..%2f", b"?", b"&&&&", b"=" * 50, b"\xff\xfe", b"A" * 5000, b" " * 300, b"HTTP/9.9", b"-1", b"18446744073709551616",
       b"0x10\r\n", b"'; drop table sample;--", b"</script>", "\u202e".encode(), b"#", b":" * 20]


def request(r):
    method = r.choice(["GET"] * 8 + ["HEAD", "POST", "PUT", "OPTIONS", "TRACE", "CONNECT", "get", ""])
    heads = ["Host: 127.0.0.1"] + r.sample(HEADS, r.randrange(4))
    return "\r\n".join([f"{method} {r.choice(PATHS)} HTTP/{r.choice(['1.1'] * 6 + ['1.0', '2'])}", *heads, "", ""]).encode()


def broken(r, data):
    for _ in range(r.choice([0, 1, 1, 2, 5])):
        at = r.randrange(len(data) + 1)
        kind = r.randrange(5)
        if kind == 0:
            data = data[:at] + r.choice(ODD) + data[at:]
        elif kind == 1:
            data = data[:at] + bytes([r.randrange(256)]) + data[at + 1:]
        elif kind == 2:
            data = data[:at] + data[at + r.randrange(1, 20):]
        elif kind == 3:
            data = data[:at] + data[at:at + r.randrange(1, 200)] * r.randrange(2, 30) + data[at:]
        else:
            data = data[:at] + request(r)
    return data


def spoken(server, r):
    """One connection: (what was sent, what came back or None)."""
    sent = b"".join(broken(r, request(r)) for _ in range(r.choice([1, 1, 1, 3])))
    with server.connect() as c:
        c.settimeout(0.2)
        with contextlib.suppress(OSError):
            for i in range(0, len(sent), size := r.choice([len(sent) + 1, 7, 200])):
                c.sendall(sent[i:i + size])
            if r.random() < 0.3:
                c.shutdown(socket.SHUT_WR)
            if r.random() < 0.1:  # gone with a reset
                c.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
                return sent, None
            return sent, c.recv(65536)
    return sent, None


def holds(server):
    pid = server.child.pid
    with open(f"/proc/{pid}/statm", encoding="ascii") as f:
        rss = int(f.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    return len(os.listdir(f"/proc/{pid}/fd")), rss


def settled(server, fds, seconds=60):
    end = time.monotonic() + seconds
    while server.children() or holds(server)[0] > fds:
        assert time.monotonic() < end, (server.children(), holds(server), fds)
        time.sleep(0.05)


@pytest.mark.alone  # its thousand refused requests a second are others' failures too
def test_whatever_is_sent_is_answered_or_hung_up_on_and_leaves_nothing(tmp_path):
    seed = int(os.environ.get("SERVE_SEED") or random.SystemRandom().randrange(1 << 32))
    r = random.Random(seed)
    store = livedin.make(str(tmp_path / "store"), AT, [AT - 7200])
    server = Serve(store, "--timeout", "2s", "--questions", "3")
    try:
        assert server.ask("/api/v1/version")[0] == 200
        settled(server, 1 << 20)
        fds, _ = holds(server)
        end, n, answered = time.monotonic() + SECONDS, 0, {}
        while time.monotonic() < end or n < 100:
            sent, got = spoken(server, r)
            n += 1
            assert server.child.poll() is None, f"seed {seed}, request {n}: it ended upon {sent[:2000]!r}"
            if got:
                line = re.match(rb"HTTP/1\.[01] (\d{3}) ", got)
                assert line and int(line[1]) in STATUS, f"seed {seed}, request {n}: {sent[:2000]!r} was answered by {got[:200]!r}"
                answered[int(line[1])] = answered.get(int(line[1]), 0) + 1
        settled(server, fds)
        assert server.ask("/api/v1/version")[0] == 200 and holds(server)[1] <= RSS_MOST, f"seed {seed}: {holds(server)}"
        print(f"seed {seed}: {n} connections, answers {dict(sorted(answered.items()))}, {holds(server)[1] >> 20} MiB")
        assert {200, 400, 404} <= set(answered), answered
    finally:
        server.close()
