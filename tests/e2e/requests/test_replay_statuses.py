# SPDX-License-Identifier: Apache-2.0
"""sonde replay: what says that something failed, where it is neither the first thing of an answer nor an answer at all: trailers, application statuses, codes of a close, messages that
come back, and what comes before an answer and is none."""
import base64
import struct

import pytest
from test_replay_each import AMQP_OPEN, CH_ASK, CH_HELLO, EACH, OPEN2, amqp, dubbo, fcgi, frame2, login, mqtt, my
from test_replay_kinds import MQTT5, UPGRADE, UPGRADED, content, fatal, short
from test_replay_made import FINE, HTTP, PG_READY, PG_START, Made, pg

BLOCK = b"\2\0\1\0\2\xff\xff\xff\xff\0"


def grpc(flags, data):
    return struct.pack("!BI", flags, len(data)) + data


def trailers(status, more=b""):
    return grpc(0x80, b"grpc-status:%d\r\n" % status + more)


def web(body, kind=b"application/grpc-web+proto", more=b""):
    return b"HTTP/1.1 200 OK\r\nContent-Type: %s\r\n%sContent-Length: %d\r\n\r\n" % (kind, more, len(body)) + body


def chunked(*parts, kind=b"application/grpc-web"):
    return b"HTTP/1.1 200 OK\r\nContent-Type: %s\r\nTransfer-Encoding: chunked\r\n\r\n" % kind + b"".join(b"%x\r\n%s\r\n" % (len(p), p) for p in (*parts, b""))


def text(*parts):
    return b"".join(base64.b64encode(p) for p in parts)


def literal(name, value):
    return b"\0" + bytes([len(name)]) + name + bytes([len(value)]) + value


def web2(*datas, kind=b"application/grpc-web+proto", more=b""):
    """An answer in HTTP/2: headers, and frames of data, of which the last one ends the stream."""
    head = b"\x88\x5f" + bytes([len(kind)]) + kind + more
    if not datas:
        return frame2(1, 5, 1, head)
    return frame2(1, 4, 1, head) + b"".join(frame2(0, int(i == len(datas) - 1), 1, d) for i, d in enumerate(datas))


CALL = b"POST /s.Shop/Buy HTTP/1.1\r\nHost: h\r\nContent-Type: application/grpc-web+proto\r\nContent-Length: 5\r\n\r\n" + bytes(5)
CALL2 = frame2(1, 4, 1, b"\x83\x86" + b"\x04\x0b/s.Shop/Buy" + b"\x41\x01h") + frame2(0, 1, 1, bytes(5))
MESSAGE = grpc(0, b"m" * 40)
LARGE = grpc(0, b"\x80\0\0\0\4" * 3000)
OP = "POST h/s.Shop/Buy"
OK, DENIED = trailers(0), trailers(7, b"grpc-message:no\r\n")
CONFIRMS = [*AMQP_OPEN, (0, amqp(1, 20, 10, b"\0")), (1, amqp(1, 20, 11, bytes(4))), (0, amqp(1, 85, 10, b"\0")), (1, amqp(1, 85, 11))]
PUBLISH = content(1, 40, b"\0\0" + short(b"ex") + short(b"rk") + b"\1")
RETURN = content(1, 50, struct.pack("!H", 312) + short(b"NO_ROUTE") + short(b"ex") + short(b"rk"))
ACK = amqp(1, 60, 80, struct.pack("!QB", 1, 0))
FCGI_ASK = EACH["fastcgi"][2]


def fcgi_answer(head, status, protocol=0):
    return fcgi(6, head + b"\r\n\r\nx") + fcgi(6, b"") + fcgi(3, struct.pack("!IB3x", status, protocol))


def amqp_close(code, class_=20):
    return amqp(int(class_ == 20), class_, 40 if class_ == 20 else 50, struct.pack("!H", code) + short(b"why") + bytes(4))


def progress(*numbers):
    """ClickHouse's, of revision 54468: rows, bytes, of how many rows, of how many bytes, written rows, written bytes, time."""
    return b"\3" + bytes(numbers)


CH_FAILS = b"\2" + struct.pack("<i", 241) + b"\x0dDB::Exception\6Memory\0\0"
NATS = EACH["nats"][1]


def hmsg(head, data=b""):
    head += b"\r\n\r\n"
    return b"HMSG _INBOX.7 1 %d %d\r\n%s%s\r\n" % (len(head), len(head) + len(data), head, data)


def dns(answer, code=0, question=True, opt=None):
    q = b"\1a\7example\0\0\1\0\1" if question else b""
    more = b"" if opt is None else b"\0\0\x29\4\xd0" + struct.pack("!BBH", opt, 0, 0) + b"\0\0"
    body = struct.pack("!HHHHHH", 7, (0x8180 | code) if answer else 0x0100, int(question), 0, 0, int(opt is not None)) + q + more
    return struct.pack("!H", len(body)) + body


def word(w, answer):
    return 2181, [], w, answer, w.decode().split()[0]


# port, what was said before, question, answer, operation, result, status
SAID = {
    "grpc-web": (80, [], CALL, web(MESSAGE + OK), OP, "ok", "OK"),
    "grpc-web fails": (80, [], CALL, web(MESSAGE + DENIED), OP, "error", "PERMISSION_DENIED"),
    "grpc-web fails at once": (80, [], CALL, web(DENIED), OP, "error", "PERMISSION_DENIED"),
    "grpc-web large": (80, [], CALL, web(LARGE + MESSAGE + trailers(8)), OP, "error", "RESOURCE_EXHAUSTED"),
    "grpc-web chunked": (80, [], CALL, chunked(MESSAGE, DENIED), OP, "error", "PERMISSION_DENIED"),
    "grpc-web in many chunks": (80, [], CALL, chunked(*(bytes([b]) for b in MESSAGE + DENIED)), OP, "error", "PERMISSION_DENIED"),
    "grpc-web large and chunked": (80, [], CALL, chunked(LARGE[:9000], LARGE[9000:] + OK[:3], OK[3:]), OP, "ok", "OK"),
    "grpc-web without a message": (80, [], CALL, web(b"", more=b"grpc-status: 12\r\n"), OP, "error", "UNIMPLEMENTED"),
    "grpc-web status in front": (80, [], CALL, web(MESSAGE, more=b"Grpc-Status: 0\r\n"), OP, "ok", "OK"),
    "grpc-web without a status": (80, [], CALL, web(MESSAGE), OP, "error", "UNKNOWN"),
    "grpc-web names in capitals": (80, [], CALL, web(grpc(0x80, b"Grpc-Message: x\r\nGrpc-Status: 14\r\n")), OP, "error", "UNAVAILABLE"),
    "grpc-web without a line's end": (80, [], CALL, web(MESSAGE + grpc(0x80, b"grpc-status:3")), OP, "error", "INVALID_ARGUMENT"),
    "grpc-web text": (80, [], CALL, web(text(MESSAGE + DENIED), b"application/grpc-web-text"), OP, "error", "PERMISSION_DENIED"),
    "grpc-web text in parts": (80, [], CALL, chunked(text(MESSAGE), text(DENIED), kind=b"application/grpc-web-text+proto"), OP, "error", "PERMISSION_DENIED"),
    "grpc-web text large": (80, [], CALL, web(text(LARGE, b"xy", OK), b"application/grpc-web-text"), OP, "ok", "OK"),
    "grpc-web 503 of a proxy": (80, [], CALL, b"HTTP/1.1 503 No\r\nContent-Type: text/plain\r\nContent-Length: 2\r\n\r\nno", OP, "error", "503"),
    "grpc-web long trailers": (80, [], CALL, web(MESSAGE + trailers(0, b"x-more: " + b"y" * 3000 + b"\r\n")), OP, "ok", "OK"),
    "grpc-web long trailers, text": (80, [], CALL, web(text(MESSAGE, trailers(9, b"x-more: " + b"y" * 2000 + b"\r\n")), b"application/grpc-web-text"), OP, "error", "FAILED_PRECONDITION"),
    "not grpc-web": (80, [], CALL, web(MESSAGE + DENIED, b"application/grpc-website"), OP, "ok", "200"),
    "grpc-web in HTTP/2": (80, OPEN2, CALL2, web2(MESSAGE, OK), OP, "ok", "OK"),
    "grpc-web in HTTP/2 fails": (80, OPEN2, CALL2, web2(MESSAGE, DENIED), OP, "error", "PERMISSION_DENIED"),
    "grpc-web in HTTP/2, one frame": (80, OPEN2, CALL2, web2(MESSAGE + DENIED), OP, "error", "PERMISSION_DENIED"),
    "grpc-web in HTTP/2, an empty end": (80, OPEN2, CALL2, web2(LARGE, DENIED, b""), OP, "error", "PERMISSION_DENIED"),
    "grpc-web in HTTP/2, in two frames": (80, OPEN2, CALL2, web2(LARGE + DENIED[:7], DENIED[7:]), OP, "error", "PERMISSION_DENIED"),
    "grpc-web in HTTP/2, in many frames": (80, OPEN2, CALL2, web2(LARGE, *(bytes([b]) for b in MESSAGE + DENIED)), OP, "error", "PERMISSION_DENIED"),
    "grpc-web in HTTP/2, text in two frames": (80, OPEN2, CALL2, web2(text(LARGE + DENIED)[:-13], text(LARGE + DENIED)[-13:], kind=b"application/grpc-web-text"), OP, "error", "PERMISSION_DENIED"),
    "grpc-web in HTTP/2, text": (80, OPEN2, CALL2, web2(text(MESSAGE), text(DENIED), kind=b"application/grpc-web-text"), OP, "error", "PERMISSION_DENIED"),
    "grpc-web in HTTP/2, headers alone": (80, OPEN2, CALL2, web2(more=literal(b"grpc-status", b"5")), OP, "error", "NOT_FOUND"),
    "grpc-web in HTTP/2, in front": (80, OPEN2, CALL2, web2(b"", more=literal(b"grpc-status", b"16")), OP, "error", "UNAUTHENTICATED"),
    "fastcgi exit": (9000, [], FCGI_ASK, fcgi_answer(b"Content-Type: a/b", 1), "GET h/", "error", "exit 1"),
    "fastcgi exit 255": (9000, [], FCGI_ASK, fcgi_answer(b"Status: 404 No", 255), "GET h/", "error", "exit 255"),
    "fastcgi exit and 500": (9000, [], FCGI_ASK, fcgi_answer(b"Status: 500 No", 255), "GET h/", "error", "500"),
    "fastcgi exit and end": (9000, [], FCGI_ASK, fcgi_answer(b"Content-Type: a/b", 1, 2), "GET h/", "error", "end 2"),
    "fastcgi exit 0": (9000, [], FCGI_ASK, fcgi_answer(b"Content-Type: a/b", 0), "GET h/", "ok", "200"),
    "amqp returned": (5672, CONFIRMS, PUBLISH, RETURN + ACK, "PUBLISH ex rk", "error", "312"),
    "amqp not returned": (5672, CONFIRMS, PUBLISH, ACK, "PUBLISH ex rk", "ok", ""),
    "amqp another returned": (5672, CONFIRMS, PUBLISH, content(1, 50, struct.pack("!H", 312) + short(b"NO_ROUTE") + short(b"ex") + short(b"other")) + ACK, "PUBLISH ex rk", "ok", ""),
    "amqp channel closed by the client": (5672, CONFIRMS, amqp_close(541), amqp(1, 20, 41), "CHANNEL CLOSE", "error", "541"),
    "amqp channel closed": (5672, CONFIRMS, amqp_close(200), amqp(1, 20, 41), "CHANNEL CLOSE", "ok", ""),
    "amqp channel closed with 0": (5672, CONFIRMS, amqp_close(0), amqp(1, 20, 41), "CHANNEL CLOSE", "ok", ""),
    "amqp connection closed by the client": (5672, AMQP_OPEN, amqp_close(501, 10), amqp(0, 10, 51), "CONNECTION CLOSE", "error", "501"),
    "amqp connection closed": (5672, AMQP_OPEN, amqp_close(200, 10), amqp(0, 10, 51), "CONNECTION CLOSE", "ok", ""),
    "amqp publish to a channel that is closed": (5672, CONFIRMS, PUBLISH, amqp_close(404), "PUBLISH ex rk", "error", "404"),
    "mqtt 5 no subscribers": (1883, MQTT5, mqtt(0x32, b"\0\1t\0\7\0hi"), mqtt(0x40, b"\0\7\x10"), "PUBLISH t", "ok", ""),
    "mqtt 5 not authorised": (1883, MQTT5, mqtt(0x32, b"\0\1t\0\7\0hi"), mqtt(0x40, b"\0\7\x87\0"), "PUBLISH t", "error", "135"),
    "mqtt 5 quota": (1883, MQTT5, mqtt(0x34, b"\0\1t\0\7\0hi"), mqtt(0x50, b"\0\7\x97"), "PUBLISH t", "error", "151"),
    "mqtt 5 subscribe": (1883, MQTT5, mqtt(0x82, b"\0\7\0\0\1a\1\0\1b\1"), mqtt(0x90, b"\0\7\0\1\x9e"), "SUBSCRIBE a", "error", "158"),
    "mqtt 5 unsubscribe": (1883, MQTT5, mqtt(0xa2, b"\0\7\0\0\1a"), mqtt(0xb0, b"\0\7\0\x11"), "UNSUBSCRIBE a", "ok", ""),
    "mqtt 5 unsubscribe refused": (1883, MQTT5, mqtt(0xa2, b"\0\7\0\0\1a"), mqtt(0xb0, b"\0\7\0\x87"), "UNSUBSCRIBE a", "error", "135"),
    "mqtt 5 taken over": (1883, MQTT5, mqtt(0x82, b"\0\7\0\0\1a\1"), mqtt(0xe0, b"\x8e"), "SUBSCRIBE a", "error", "142"),
    "mqtt 5 login": (1883, [], mqtt(0x10, b"\0\4MQTT\5\2\0<\0\0\1a"), mqtt(0x20, b"\0\x86\0"), "CONNECT", "error", "134"),
    "mqtt 5 authenticates again": (1883, MQTT5, mqtt(0xf0, b"\x19\0"), mqtt(0xf0, b"\0\0"), "AUTH", "ok", ""),
    "mqtt 5 does not authenticate again": (1883, MQTT5, mqtt(0xf0, b"\x19\0"), mqtt(0xe0, b"\x87"), "AUTH", "error", "135"),
    "clickhouse progress": (9000, CH_HELLO, CH_ASK, progress(1, 1, 9, 9, 0, 0, 5) + b"\5", "SELECT ?", "ok", ""),
    "clickhouse progress, then an exception": (9000, CH_HELLO, CH_ASK, progress(1, 1, 9, 9, 0, 0, 5) + progress(3, 5, 0, 0, 0, 0, 1) + CH_FAILS, "SELECT ?", "error", "241"),
    "clickhouse rows, progress, then an exception": (9000, CH_HELLO, CH_ASK, b"\1" + BLOCK[1:] + b"\1\1\1a\5UInt8\0\1" + progress(1, 1, 9, 9, 0, 0, 5) + CH_FAILS, "SELECT ?", "error", "241"),
    "nats a service's error": (4222, NATS, b"PUB a.b _INBOX.7 2\r\nhi\r\n", hmsg(b"NATS/1.0\r\nNats-Service-Error-Code: 400\r\nNats-Service-Error: no", b"{}"), "REQUEST a.b", "error", "400"),
    "nats no messages": (4222, NATS, b"PUB a.b _INBOX.7 2\r\nhi\r\n", hmsg(b"NATS/1.0 404 No Messages"), "REQUEST a.b", "ok", "404"),
    "nats nobody": (4222, NATS, b"PUB a.b _INBOX.7 2\r\nhi\r\n", hmsg(b"NATS/1.0 503"), "REQUEST a.b", "error", "503"),
    "nats a heartbeat before": (4222, NATS, b"PUB a.b _INBOX.7 2\r\nhi\r\n", hmsg(b"NATS/1.0 100 Idle Heartbeat") + hmsg(b"NATS/1.0\r\nA: b", b"hi"), "REQUEST a.b", "ok", ""),
    "dns a code in OPT": (53, [], dns(False), dns(True, 0, opt=1), "A a.example", "error", "BADVERS"),
    "dns OPT": (53, [], dns(False), dns(True, 0, opt=0), "A a.example", "ok", "NOERROR"),
    "dns an error without the question": (53, [(0, dns(False)), (1, dns(True))], dns(False), dns(True, 1, question=False), "A a.example", "error", "FORMERR"),
    "zookeeper ruok": (*word(b"ruok", b"imok"), "ok", ""),
    "zookeeper ruok with a line's end": (*word(b"ruok\n", b"imok"), "ok", ""),
    "zookeeper mntr": (*word(b"mntr", b"zk_version\t3.8.4\nzk_avg_latency\t0.5\n" + b"zk_x\t1\n" * 400), "ok", ""),
    "zookeeper srvr": (*word(b"srvr", b"Zookeeper version: 3.8.4-9316c2a\nLatency min/avg/max: 0/0.0/0\n"), "ok", ""),
    "zookeeper stat not allowed": (*word(b"stat", b"stat is not executed because it is not in the whitelist.\n"), "error", "not allowed"),
    "zookeeper srvr not serving": (*word(b"srvr", b"This ZooKeeper instance is not currently serving requests\n"), "error", "not serving"),
    "http 100 Continue": (80, [], HTTP, b"HTTP/1.1 100 Continue\r\n\r\n" + FINE, "GET x/a", "ok", "200"),
    "http 103, then 503": (80, [], HTTP, b"HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\nHTTP/1.1 503 No\r\nContent-Length: 2\r\n\r\nno", "GET x/a", "error", "503"),
    "http HEAD": (80, [], HTTP.replace(b"GET", b"HEAD"), b"HTTP/1.1 200 OK\r\nContent-Length: 50000\r\n\r\n", "HEAD x/a", "ok", "200"),
    "http HEAD of chunks": (80, [], HTTP.replace(b"GET", b"HEAD"), b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", "HEAD x/a", "ok", "200"),
    "http 204": (80, [], HTTP, b"HTTP/1.1 204 No Content\r\n\r\n", "GET x/a", "ok", "204"),
    "http 304 with a length": (80, [], HTTP, b"HTTP/1.1 304 Not Modified\r\nContent-Length: 50000\r\n\r\n", "GET x/a", "ok", "304"),
    "http CONNECT refused": (80, [], b"CONNECT h:443 HTTP/1.1\r\nHost: h:443\r\n\r\n", b"HTTP/1.1 407 Ask\r\nContent-Length: 2\r\n\r\nno", "CONNECT h:443", "ok", "407"),
    "http2 103": (80, OPEN2, frame2(1, 5, 1, b"\x82\x86\x84\x41\1h"), frame2(1, 4, 1, b"\x08\x03" + b"103") + frame2(1, 4, 1, b"\x88") + frame2(0, 1, 1, b"hi"), "GET h/", "ok", "200"),
}

PG_OPEN, MYSQL = [(0, PG_START), (1, PG_READY)], EACH["mysql"][1]
SAID.update({
    "postgres notice": (5432, PG_OPEN, EACH["postgres"][2], pg(b"N", b"SNOTICE\0C00000\0Mx\0\0") + EACH["postgres"][3], "select c from t", "ok", ""),
    "mysql progress": (3306, MYSQL, EACH["mysql"][2], my(1, b"\xff\xff\xff\1\1\2\1\0\0\4copy") + my(2, b"\xff" + struct.pack("<H", 1317) + b"#70100killed"), "select c from t", "error", "70100"),
    "redis attributes": (6379, [], EACH["redis"][2], b"|1\r\n+k\r\n:1\r\n-ERR no\r\n", "GET k", "error", "ERR"),
    "dubbo heartbeat": (20880, [], EACH["dubbo"][2], dubbo(0xe2, 0, 99, b"N") + EACH["dubbo"][3], "com.Foo/buy", "ok", ""),
    "fastcgi warnings": (9000, [], FCGI_ASK, fcgi(7, b"Status: 500 of no header\r\n\r\n") + fcgi_answer(b"Content-Type: a/b", 0), "GET h/", "ok", "200"),
    "tls alert": (443, [], EACH["tls"][2], b"\x15\3\3\0\2\2\x28", "TLS (no name)", "error", "alert 40"),
})
# port, what was said before, who says what ends an idle connection, operation, status
FAREWELLS = {
    "postgres": (5432, PG_OPEN, 1, fatal(b"57P01"), "CONNECTION", "57P01"),
    "mysql": (3306, [*MYSQL, (0, EACH["mysql"][2]), (1, EACH["mysql"][3])], 1, my(0, b"\xff" + struct.pack("<H", 4031) + b"#HY000idle"), "CONNECTION", "HY000"),
    "http2": (80, [*OPEN2, (0, EACH["http2"][2]), (1, EACH["http2"][3])], 1, frame2(7, 0, 0, struct.pack("!II", 1, 11)), "GOAWAY", "goaway 11"),
    "http2 client": (80, [*OPEN2, (0, EACH["http2"][2]), (1, EACH["http2"][3])], 0, frame2(7, 0, 0, struct.pack("!II", 0, 1)), "GOAWAY", "goaway 1"),
    "amqp": (5672, AMQP_OPEN, 1, amqp_close(320, 10), "CONNECTION CLOSE", "320"),
    "mqtt": (1883, MQTT5, 1, mqtt(0xe0, b"\x8b"), "DISCONNECT", "139"),
    "nats": (4222, [*NATS, (1, b"PING\r\n"), (0, b"PONG\r\n")], 1, b"-ERR 'Stale Connection'\r\n", "CONNECTION", "Stale Connection"),
    "redis": (6379, [], 1, b"-ERR max number of clients reached\r\n", "CONNECT", "ERR"),
    "memcached": (11211, [], 1, b"ERROR Too many open connections\r\n", "CONNECT", "ERROR"),
}


@pytest.fixture
def made(tmp_path):
    return Made(tmp_path / "x.pcap")


@pytest.mark.parametrize("pieces", (1, 2, 9))
@pytest.mark.parametrize("name", SAID)
def test_what_failed_is_told_wherever_the_answer_says_it(made, name, pieces):
    port, turns, ask, answer, operation, result, status = SAID[name]
    x = made.connect(port)
    login(x, turns)
    before = len([r for r in made.rows() if r["operation"] == operation])
    x.ask(ask, 10_000)
    size = -(-len(answer) // pieces)
    for k in range(0, len(answer), size):
        x.answer(answer[k:k + size], 10_700 + k)
    x.fin()
    rows = [r for r in made.rows() if r["operation"] == operation][before:]
    assert [(r["result"], r["status"]) for r in rows] == [(result, status)], rows
    assert rows[0]["response_bytes"] <= len(answer) and rows[0]["latency_ns"] is not None


@pytest.mark.parametrize("name", [n for n in SAID if n.startswith("grpc-web") and "503" not in n])
def test_what_did_not_come_whole_has_no_status(made, name):
    """The same without the answer's last byte, and with bytes missing in its midst."""
    port, turns, ask, answer, operation, _, _ = SAID[name]
    if len(answer) < 200 or "in front" in name or "headers alone" in name:
        return
    x = made.connect(port)
    login(x, turns)
    x.ask(ask, 10_000)
    x.answer(answer[:-1])
    x.fin()
    y = made.connect(port)
    y.ports = 50001, port
    y.fin()
    (row,) = [r for r in made.rows() if r["operation"] == operation]
    assert row["result"] in ("no-answer", "blind") and row["latency_ns"] is None, row


@pytest.mark.parametrize("name", ["grpc-web large", "grpc-web large and chunked", "grpc-web text large", "grpc-web in HTTP/2, an empty end"])
def test_a_status_behind_missing_bytes_is_no_error_that_was_not_said(made, name):
    port, turns, ask, answer, operation, result, _ = SAID[name]
    x = made.connect(port)
    login(x, turns)
    x.ask(ask, 10_000)
    third = len(answer) // 3
    x.parts(1, answer, ((0, 10_100), (2, 10_200)), third + 1)
    x.fin()
    (row,) = [r for r in made.rows() if r["operation"] == operation]
    assert row["result"] in ("blind", result), row


@pytest.mark.parametrize("how", ("length", "chunks", "text"))
def test_trailers_that_are_longer_than_what_is_kept_make_it_unknown(made, how):
    body = MESSAGE + trailers(0, b"x-more: " + b"y" * 9000 + b"\r\n")
    x = made.connect(80)
    x.ask(CALL)
    x.answer(chunked(body[:5000], body[5000:]) if how == "chunks" else web(text(body), b"application/grpc-web-text") if how == "text" else web(body))
    x.fin()
    assert made.told() == [(OP, "blind", "")]


def masked(data):
    key = b"\x11\x22\x33\x44"
    return key + bytes(b ^ key[i % 4] for i, b in enumerate(data))


# the frames of a WebSocket (side, bytes), and what is told of them
FRAMES = {
    "pings and pongs": ([(1, b"\x89\0"), (0, b"\x8a\x80" + masked(b"")), (0, b"\x89\x84" + masked(b"ping")), (1, b"\x8a\4ping")], []),
    "an ordinary close": ([(0, b"\x88\x82" + masked(b"\3\xe8")), (1, b"\x88\2\3\xe8")], []),
    "a close without a code": ([(0, b"\x88\x80" + masked(b"")), (1, b"\x88\0")], []),
    "the server goes away": ([(1, b"\x88\x06\3\xe9bye."), (0, b"\x88\x82" + masked(b"\3\xe9"))], []),
    "an error of the server": ([(1, b"\x88\x06\3\xf3oops"), (0, b"\x88\x82" + masked(b"\3\xf3"))], [("close", "error", "1011")]),
    "a client that does not understand": ([(0, b"\x88\x82" + masked(b"\3\xea")), (1, b"\x88\2\3\xea")], [("close", "error", "1002")]),
    "an application's code": ([(1, b"\x88\2\x0f\xa1")], [("close", "error", "4001")]),
    "messages and a ping between their parts": ([(1, b"\1\2he"), (1, b"\x89\0"), (1, b"\x80\3llo"), (0, b"\x82\x82" + masked(b"hi"))],
                                                [("text to client", "one-way", ""), ("binary to server", "one-way", "")]),
}


@pytest.mark.parametrize("pieces", ("whole", "bytes"))
@pytest.mark.parametrize("name", FRAMES)
def test_only_messages_and_failures_of_a_websocket_are_told(made, name, pieces):
    frames, want = FRAMES[name]
    x = made.connect(80)
    x.ask(UPGRADE)
    x.answer(UPGRADED)
    for side, data in frames:
        for part in [data] if pieces == "whole" else [data[i:i + 1] for i in range(len(data))]:
            x.say(side, part)
    x.fin()
    assert made.told()[1:] == want


@pytest.mark.parametrize("pieces", (1, 3))
@pytest.mark.parametrize("name", FAREWELLS)
def test_an_error_that_ends_an_idle_connection_is_told_once(made, name, pieces):
    port, turns, who, message, operation, status = FAREWELLS[name]
    x = made.connect(port)
    login(x, turns)
    size = -(-len(message) // pieces)
    for k in range(0, len(message), size):
        x.say(who, message[k:k + size])
    x.fin()
    rows = made.rows()
    assert [(r["operation"], r["result"], r["status"]) for r in rows if r["result"] == "error"] == [(operation, "error", status)], rows


def test_a_handshake_that_the_server_lets_begin_anew_ends_with_the_second_one(made):
    client, server = EACH["tls"][2], EACH["tls"][3]
    retry = server[:11] + bytes.fromhex("cf21ad74e59a6111be1d8c021e65b891c2a211167abb8c5e079e09e2c8a8339c") + server[43:]
    assert server[5] == 2 and len(retry) == len(server)
    x = made.connect(443)
    x.ask(client, 10_000)
    x.answer(retry.split(b"\x17\3\3")[0], 20_000)
    x.ask(b"\x14\3\3\0\1\1" + client, 30_000)
    x.answer(server, 90_000)
    x.fin()
    (row,) = made.rows()
    assert (row["result"], row["latency_ns"], row["first_ns"] - row["begin_ns"]) == ("ok", 80_000_000, 80_000_000), row


def test_a_tunnel_in_http2_is_opened(made):
    x = made.connect(80)
    login(x, OPEN2)
    x.ask(frame2(1, 4, 1, b"\x02\x07CONNECT\x41\x01h"))
    x.answer(frame2(1, 4, 1, b"\x88"))
    x.ask(frame2(0, 0, 1, b"xx"))
    x.answer(frame2(0, 0, 1, b"yy"))
    x.fin()
    assert made.told() == [("CONNECT h", "opened", "200")]


def test_a_message_that_comes_back_is_told_once_whatever_was_published_beside_it(made):
    """Three to one exchange with different keys, of which the second is returned, all confirmed by one ack."""
    x = made.connect(5672)
    login(x, CONFIRMS)
    for key in (b"a", b"b", b"a"):
        x.ask(content(1, 40, b"\0\0" + short(b"ex") + short(key) + b"\1"))
    x.answer(content(1, 50, struct.pack("!H", 312) + short(b"NO_ROUTE") + short(b"ex") + short(b"b")))
    x.answer(amqp(1, 60, 80, struct.pack("!QB", 3, 1)))
    told = [(r["operation"], r["result"], r["status"]) for r in made.rows() if r["operation"].startswith("PUBLISH")]
    assert sorted(told) == [("PUBLISH ex a", "ok", ""), ("PUBLISH ex a", "ok", ""), ("PUBLISH ex b", "error", "312")]


def test_a_channel_of_a_number_that_was_in_use_counts_anew(made):
    x = made.connect(5672)
    login(x, CONFIRMS)
    x.ask(PUBLISH)
    x.answer(ACK)
    x.ask(amqp_close(200))
    x.answer(amqp(1, 20, 41))
    x.ask(amqp(1, 20, 10, b"\0"))
    x.answer(amqp(1, 20, 11, bytes(4)))
    x.ask(PUBLISH)  # without confirms now
    x.ask(amqp_close(200, 10))
    x.answer(amqp(0, 10, 51))
    x.fin()
    assert [(r["result"], r["status"]) for r in made.rows() if r["operation"] == "PUBLISH ex rk"] == [("ok", ""), ("one-way", "")]


def test_an_mqtt_client_that_leaves_with_a_reason_is_told(made):
    for reason, want in ((b"", []), (b"\0", []), (b"\4\0", []), (b"\x82\0", [("DISCONNECT", "error", "130")])):
        one = Made(made.path)
        x = one.connect(1883)
        login(x, MQTT5)
        x.ask(mqtt(0xe0, reason))
        x.fin()
        assert one.told() == [("CONNECT", "ok", ""), *want]


def test_what_authenticates_within_a_login_is_part_of_it(made):
    x = made.connect(1883)
    connect, more = mqtt(0x10, b"\0\4MQTT\5\2\0<\6\x15\0\3abc\0\1a"), mqtt(0xf0, b"\x18\6\x15\0\3abc")
    x.ask(connect)
    x.answer(more)
    x.ask(more)
    x.answer(mqtt(0x20, b"\0\0\0"))
    (row,) = made.rows()
    assert (row["operation"], row["result"], row["request_bytes"], row["response_bytes"]) == ("CONNECT", "ok", len(connect) + len(more), len(more) + 5)


@pytest.mark.parametrize("name", ("http", "http2"))
def test_what_comes_before_an_answer_is_not_its_first_byte(made, name):
    """A request that waits for 100 Continue has been sent when its body has, and what waits for its answer begins then."""
    x = made.connect(80)
    if name == "http":
        x.ask(b"POST /a HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\nContent-Length: 4\r\n\r\n", 10_000)
        x.answer(b"HTTP/1.1 100 Continue\r\n\r\n", 20_000)
        x.ask(b"body", 30_000)
        x.answer(FINE, 90_000)
    else:
        login(x, OPEN2)
        x.ask(frame2(1, 4, 1, b"\x83\x86\x84\x41\1h"), 10_000)
        x.answer(frame2(1, 4, 1, b"\x08\x03" + b"100"), 20_000)
        x.ask(frame2(0, 1, 1, b"body"), 30_000)
        x.answer(frame2(1, 4, 1, b"\x88") + frame2(0, 1, 1, b"hi"), 90_000)
    (row,) = made.rows()
    assert (row["result"], row["status"], row["latency_ns"]) == ("ok", "200", 80_000_000), row
    assert row["sent_ns"] - row["begin_ns"] == 20_000_000 and row["first_ns"] - row["begin_ns"] == 80_000_000, row


def test_each_of_many_requests_in_one_packet_has_the_answer_of_its_own(made):
    x = made.connect(80)
    asks = [(b"GET /a", b"HTTP/1.1 304 No\r\nContent-Length: 7\r\n\r\n", "GET x/a", "304"), (b"HEAD /b", b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n", "HEAD x/b", "200"),
            (b"GET /c", b"HTTP/1.1 204 No\r\n\r\n", "GET x/c", "204"), (b"GET /d", b"HTTP/1.1 100 Go\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi", "GET x/d", "200"),
            (b"POST /e", b"HTTP/1.1 500 No\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nx\r\n0\r\nA: b\r\n\r\n", "POST x/e", "500"), (b"GET /f", FINE, "GET x/f", "200")]
    x.ask(b"".join(head + b" HTTP/1.1\r\nHost: x\r\n" + (b"Content-Length: 3\r\n\r\nabc" if head[:4] == b"POST" else b"\r\n") for head, *_ in asks))
    x.answer(b"".join(answer for _, answer, *_ in asks))
    x.fin()
    assert [(r["operation"], r["status"]) for r in made.rows()] == [(operation, status) for *_, operation, status in asks]


def test_what_goes_on_in_http2_is_one_request_and_nothing_of_it_is_blind(made):
    x = made.connect(80)
    x.ask(HTTP[:-2] + b"Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABk\r\n\r\n")
    x.answer(b"HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: h2c\r\n\r\n" + frame2(4, 0, 0) + frame2(1, 4, 1, b"\x88") + frame2(0, 1, 1, b"hello"))
    x.ask(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + frame2(4, 0, 0) + frame2(4, 1, 0) + frame2(1, 5, 3, b"\x82\x86\x84\x41\1h"))
    x.answer(frame2(1, 4, 3, b"\x88") + frame2(0, 1, 3, b"hi"))
    x.fin()
    assert made.told() == [("GET x/a", "opened", "101"), ("GET h/", "ok", "200")]
    assert "blind" not in made.said, made.said


def test_a_switch_whose_request_was_not_seen_is_followed_all_the_same(made):
    x = made.connect(80, opened=False)
    x.answer(UPGRADED)
    x.answer(b"\x81\2hi")
    x.ask(b"\x81\x82" + masked(b"ho"))
    x.answer(b"\x81\2hi")
    assert [r["operation"] for r in made.rows()] == ["text to client", "text to server", "text to client"]


def test_filters_have_their_names_where_the_login_was_not_seen(made):
    """MQTT 5 has properties before them."""
    x = made.connect(1883, opened=False)
    for _ in range(2):
        x.ask(mqtt(0x82, b"\0\1\0\0\5topic\1"))
        x.answer(mqtt(0x90, b"\0\1\0\1"))
        x.ask(mqtt(0x82, b"\0\2\0\0\5other\1"))
        x.answer(mqtt(0x90, b"\0\2\0\x87"))
    assert [t for t in made.told() if t[1] != "blind"][-2:] == [("SUBSCRIBE topic", "ok", ""), ("SUBSCRIBE other", "error", "135")]


def between2(made, *turns):
    """Two calls of gRPC-Web at once; turns: (stream, data). What was told of each."""
    x = made.connect(80)
    login(x, OPEN2)
    for stream, path in ((1, b"/s.Shop/Buy"), (3, b"/s.Shop/Own")):
        x.ask(frame2(1, 5, stream, b"\x83\x86" + b"\x04\x0b" + path + b"\x41\x01h"))
        x.answer(frame2(1, 4, stream, b"\x88\x5f\x1aapplication/grpc-web+proto"))
    for i, (stream, data) in enumerate(turns):
        x.answer(frame2(0, int(stream not in [t[0] for t in turns[i + 1:]]), stream, data))
    x.fin()
    return sorted(made.told())


def test_two_calls_of_grpc_web_at_once_have_each_its_own_status_or_none(made):
    assert between2(made, (1, MESSAGE), (3, MESSAGE), (1, DENIED), (3, OK)) == [("POST h/s.Shop/Buy", "error", "PERMISSION_DENIED"), ("POST h/s.Shop/Own", "ok", "OK")]


def test_a_status_in_two_frames_with_another_calls_between_them_is_not_known(made):
    assert between2(made, (1, MESSAGE + DENIED[:9]), (3, MESSAGE + OK), (1, DENIED[9:])) == [("POST h/s.Shop/Buy", "blind", ""), ("POST h/s.Shop/Own", "ok", "OK")]


def test_a_frame_of_grpc_web_that_is_larger_than_what_is_held_ends_with_its_status(made):
    x = made.connect(80)
    login(x, OPEN2)
    x.ask(CALL2)
    answer = web2(LARGE * 20 + DENIED)
    for i in range(0, len(answer), 1460):
        x.answer(answer[i:i + 1460])
    x.fin()
    assert made.told() == [(OP, "error", "PERMISSION_DENIED")]
