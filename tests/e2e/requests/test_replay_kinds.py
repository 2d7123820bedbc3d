# SPDX-License-Identifier: Apache-2.0
"""sonde replay: errors that end a connection, what is pushed, what gets no answer, and bytes that never came, in each protocol that has them."""
import struct

import pytest
from test_replay_each import AMQP_OPEN, CQL_START, EACH, OPEN2, amqp, cql, dubbo, fcgi, frame2, login, mongo, mqtt, my, resp, zk
from test_replay_made import HTTP, PG_READY, PG_START, START, Made, pg, text16


def short(s):
    return bytes([len(s)]) + s


def fatal(code, severity=b"FATAL"):
    return pg(b"E", b"S" + severity + b"\0V" + severity + b"\0C" + code + b"\0Mx\0\0")


def dns_code(code):
    question = b"\1a\7example\0\0\1\0\1"
    body = struct.pack("!HHHHHH", 7, 0x8180 | code, 1, 0, 0, 0) + question
    return struct.pack("!H", len(body)) + body


MQTT5 = [(0, mqtt(0x10, b"\0\4MQTT\5\2\0<\0\0\1a")), (1, mqtt(0x20, b"\0\0\0"))]
CH_EXCEPTION = b"\2" + struct.pack("<i", 159) + b"\x0dDB::Exception\7Timeout\0\0"
# name in EACH, the answer that fails, its status; None: any
FAILS = {
    "http 503": ("http", b"HTTP/1.1 503 Service Unavailable\r\nContent-Length: 2\r\n\r\nno", "503"),
    "http 500 until the end": ("http", b"HTTP/1.0 500 Oops\r\n\r\nno", "500"),
    "http chunked 502": ("http chunked", b"HTTP/1.1 502 Bad Gateway\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nno\r\n0\r\n\r\n", "502"),
    "http2 reset": ("http2", frame2(3, 0, 1, struct.pack("!I", 11)), "reset 11"),
    "postgres 57P01": ("postgres", fatal(b"57P01"), "57P01"),
    "postgres extended 57014": ("postgres extended", fatal(b"57014", b"ERROR") + pg(b"Z", b"I"), "57014"),
    "postgres extended 57P01": ("postgres extended", pg(b"1") + pg(b"2") + fatal(b"57P01"), "57P01"),
    "mysql 1053": ("mysql", my(1, b"\xff" + struct.pack("<H", 1053) + b"#08S01Server shutdown"), "08S01"),
    "mysql in the rows": ("mysql", my(1, b"\1") + my(2, b"d") + my(3, b"\xfe\0\0\2\0") + my(4, b"\1v") + my(5, b"\xff" + struct.pack("<H", 1317) + b"#70100killed"), "70100"),
    "redis LOADING": ("redis", b"-LOADING Redis is loading\r\n", "LOADING"),
    "redis RESP3": ("redis", b"!21\r\nSYNTAX invalid syntax\r\n", "SYNTAX"),
    "memcached": ("memcached", b"SERVER_ERROR out of memory\r\n", None),
    "memcached binary": ("memcached binary", struct.pack("!BBHBBHIIQ", 0x81, 0, 0, 0, 0, 0x85, 4, 9, 0) + b"busy", None),
    "mongodb 91": ("mongodb", struct.pack("<iiii", 48, 6, 5, 2013) + bytes(5) + b"\x1b\0\0\0\1ok\0" + bytes(8) + b"\x10code\0" + struct.pack("<i", 91) + b"\0", "91"),
    "kafka 27": ("kafka", struct.pack("!iih", 6, 5, 27), "27"),
    "amqp 320": ("amqp", amqp(0, 10, 50, struct.pack("!H", 320) + short(b"CONNECTION_FORCED") + bytes(4)), "320"),
    "amqp channel 404": ("amqp", amqp(1, 20, 40, struct.pack("!H", 404) + short(b"NOT_FOUND") + bytes(4)), "404"),
    "nats": ("nats", b"-ERR 'Maximum Connections Exceeded'\r\n", "Maximum Connections Exceeded"[:27]),
    "mqtt 128": ("mqtt", mqtt(0x90, b"\0\1\x80"), "128"),
    "cassandra 0x1001": ("cassandra", cql(0x84, 5, 0, struct.pack("!i", 0x1001) + b"\0\1x"), "0x1001"),
    "fastcgi 500": ("fastcgi", fcgi(6, b"Status: 500 Oops\r\n\r\nx") + fcgi(6, b"") + fcgi(3, bytes(8)), "500"),
    "fastcgi overloaded": ("fastcgi", fcgi(3, bytes(4) + b"\2" + bytes(3)), "end 2"),
    "zookeeper sessionexpired": ("zookeeper", struct.pack("!iiqi", 16, 1, 9, -112), "sessionexpired"),
    "dubbo 80": ("dubbo", dubbo(2, 80, 4, b"\4oops"), "80"),
    "clickhouse 159": ("clickhouse", CH_EXCEPTION, "159"),
    "dns SERVFAIL": ("dns", dns_code(2), "SERVFAIL"),
}
METHOD60 = struct.pack("!HHQH", 60, 0, 2, 0)


def content(channel, method, args):
    return amqp(channel, 60, method, args) + struct.pack("!BHI", 2, channel, len(METHOD60)) + METHOD60 + b"\xce" + struct.pack("!BHI", 3, channel, 2) + b"hi\xce"


UPGRADE = HTTP[:-2] + b"Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: c29uZGUgY2FzZSBwdXNoIQ==\r\n\r\n"
UPGRADED = b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: gZ6NSCrYN4vQcM6Fi/BVkWGapPs=\r\n\r\n"
NATS = EACH["nats"][1]
# port, what was said before, the server's message, its operation
PUSHED = {
    "redis": (6379, [(0, resp(b"SUBSCRIBE", b"a")), (1, b"*3\r\n$9\r\nsubscribe\r\n$1\r\na\r\n:1\r\n")], resp(b"message", b"a", b"hi"), "message"),
    "redis pattern": (6379, [(0, resp(b"PSUBSCRIBE", b"a*")), (1, b"*3\r\n$10\r\npsubscribe\r\n$2\r\na*\r\n:1\r\n")], resp(b"pmessage", b"a*", b"a", b"hi"), "message"),
    "redis RESP3": (6379, [(0, resp(b"SUBSCRIBE", b"a")), (1, b">3\r\n$9\r\nsubscribe\r\n$1\r\na\r\n:1\r\n")], b">3\r\n$7\r\nmessage\r\n$1\r\na\r\n$2\r\nhi\r\n", "message"),
    "nats": (4222, [*NATS, (0, b"SUB F 1\r\n")], b"MSG F 1 2\r\nhi\r\n", "MSG F"),
    "nats with headers": (4222, [*NATS, (0, b"SUB F 1\r\n")], b"HMSG F 1 12 14\r\nNATS/1.0\r\n\r\nhi\r\n", "MSG F"),
    "mqtt": (1883, EACH["mqtt"][1], mqtt(0x30, b"\0\1thi"), "DELIVER t"),
    "mqtt, quality 1": (1883, EACH["mqtt"][1], mqtt(0x32, b"\0\1t\0\5hi"), "DELIVER t"),
    "mqtt 5": (1883, MQTT5, mqtt(0x30, b"\0\1t\0hi"), "DELIVER t"),
    "websocket": (80, [(0, UPGRADE), (1, UPGRADED)], b"\x81\2hi", "text to client"),
    "amqp": (5672, AMQP_OPEN, content(1, 60, short(b"t") + struct.pack("!Q", 1) + b"\0" + short(b"ex") + short(b"rk")), "DELIVER ex rk"),
    "amqp returned": (5672, AMQP_OPEN, content(1, 50, struct.pack("!H", 312) + short(b"NO_ROUTE") + short(b"ex") + short(b"rk")), "RETURN ex rk"),
    "postgres": (5432, [(0, PG_START), (1, PG_READY)], pg(b"A", struct.pack("!i", 7) + b"jobs\0x\0"), "NOTIFICATION jobs"),
    "cassandra": (9042, CQL_START, cql(0x84, 65535, 12, b"\0\x0dSTATUS_CHANGE\0\2UP\4\1\2\3\4\0\0\x23\x52"), "EVENT STATUS_CHANGE"),
    "zookeeper": (2181, EACH["zookeeper"][1], struct.pack("!iiqi", 28, -1, -1, 0) + struct.pack("!iii", 3, 3, 0), "event"),
}
PRODUCE0 = struct.pack("!hhi", 0, 2, 5) + text16(b"cl") + struct.pack("!hi", 0, 1000) + struct.pack("!i", 1) + text16(b"t1") + struct.pack("!i", 1) + struct.pack("!ii", 0, 4) + b"rows"
# port, what was said before, the client's message, its operation
UNANSWERED = {
    "memcached": (11211, [], b"set k 0 0 2 noreply\r\nhi\r\n", "set k"),
    "kafka": (9092, [(0, EACH["kafka"][2]), (1, EACH["kafka"][3])], struct.pack("!i", len(PRODUCE0)) + PRODUCE0, "PRODUCE t1"),
    "amqp": (5672, AMQP_OPEN, content(1, 40, b"\0\0" + short(b"ex") + short(b"rk") + b"\0"), "PUBLISH ex rk"),
    "mqtt": (1883, EACH["mqtt"][1], mqtt(0x30, b"\0\1thi"), "PUBLISH t"),
    "nats": (4222, NATS, b"PUB F 2\r\nhi\r\n", "PUB F"),
    "websocket": (80, [(0, UPGRADE), (1, UPGRADED)], b"\x81\x82abcd\x09\x0b", "text to server"),
    "dubbo": (20880, [], dubbo(0x82, 0, 4, b"\5" + b"2.0.2\7com.Foo\3" + b"1.0\3buy\0"), "com.Foo/buy"),
}


# port, what is said of a login that fails, what is told of it
LOGINS = {
    "amqp, with a code": (5672, [*AMQP_OPEN[:3], (1, amqp(0, 10, 50, struct.pack("!H", 403) + short(b"ACCESS_REFUSED") + bytes(4)))], ("CONNECTION OPEN", "error", "403")),
    "amqp, without a word": (5672, AMQP_OPEN[:3], ("CONNECTION OPEN", "no-answer", "")),
    "mqtt of no version": (1883, [(0, mqtt(0x10, b"\0\4MQTT\x09\2\0<\0\1a")), (1, mqtt(0x20, b"\0\1"))], ("CONNECT", "error", "1")),
    "postgres without TLS": (5432, [(0, struct.pack("!ii", 8, 80877103)), (1, b"N")], ("CONNECT", "error", "no TLS")),
    "postgres without TLS, in clear then": (5432, [(0, struct.pack("!ii", 8, 80877103)), (1, b"N"), (0, PG_START), (1, fatal(b"28000"))], ("CONNECT", "error", "28000")),
    "postgres of old": (5432, [(0, PG_START), (1, b"Ecould not fork new process for connection: x\n\0")], ("CONNECT", "error", "")),
    "postgres 3.9999": (5432, [(0, PG_START[:4] + struct.pack("!HH", 3, 9999) + PG_START[8:]), (1, fatal(b"28P01"))], ("CONNECT", "error", "28P01")),
}


@pytest.fixture
def made(tmp_path):
    return Made(tmp_path / "x.pcap")


@pytest.mark.parametrize("end", ("fin", "reset"))
@pytest.mark.parametrize("name", FAILS)
def test_an_error_has_its_code_also_where_it_ends_the_connection(made, name, end):
    which, answer, status = FAILS[name]
    port, turns, ask, _, operation = EACH[which]
    x = made.connect(port)
    login(x, turns)
    x.ask(ask, 10_000)
    x.answer(answer, 10_700)
    getattr(x, end)()
    if name == "http 500 until the end" and end == "reset":
        return  # then the answer is not whole
    (row,) = [r for r in made.rows() if r["operation"] == operation]
    assert row["result"] == "error" and (status is None or row["status"] == status), row
    if name != "http 500 until the end":
        assert row["latency_ns"] == 700_000 or which.startswith("clickhouse")


@pytest.mark.parametrize("name", LOGINS)
def test_a_login_that_fails_is_told(made, name):
    port, turns, want = LOGINS[name]
    x = made.connect(port)
    login(x, turns)
    x.fin()
    assert made.told() == [want]


@pytest.mark.parametrize("pieces", (1, 3))
@pytest.mark.parametrize("name", PUSHED)
def test_what_is_pushed_has_its_own_time_and_bytes(made, name, pieces):
    port, turns, message, operation = PUSHED[name]
    x = made.connect(port)
    login(x, turns)
    for i in range(5):
        size = -(-len(message) // pieces)
        for k in range(0, len(message), size):
            x.answer(message[k:k + size], (i + 1) * 10_000_000 + k)
    x.fin()
    rows = [r for r in made.rows() if r["operation"] == operation]
    assert [(r["result"], r["begin_ns"] // 1000 - START, r["response_bytes"]) for r in rows] == [
        ("one-way", (i + 1) * 10_000_000, len(message)) for i in range(5)]


NOT_PLAIN = ("websocket", "cassandra", "zookeeper")  # nothing in what they push tells them from others


@pytest.mark.parametrize("name", [n for n in PUSHED if n not in NOT_PLAIN])
def test_who_only_listens_and_is_joined_late_is_told_all_the_same(made, name):
    port, _, message, operation = PUSHED[name]
    x = made.connect(port, opened=False)
    for i in range(5):
        x.answer(message, (i + 1) * 10_000_000)
    rows = made.rows()
    assert [(r["operation"], r["result"], r["begin_ns"] // 1000 - START, r["request_bytes"], r["response_bytes"]) for r in rows] == [
        (operation, "one-way", (i + 1) * 10_000_000, 0, len(message)) for i in range(5)]


def test_a_subscriber_of_redis_that_is_joined_late_may_ask_in_between(made):
    message = PUSHED["redis"][2]
    x = made.connect(6379, opened=False)
    x.answer(message)
    for _ in range(2):
        x.ask(resp(b"PING"))
        x.answer(b"*2\r\n$4\r\npong\r\n$0\r\n\r\n")
        x.answer(message)
    assert made.told() == [("message", "one-way", "")] + [("PING", "ok", ""), ("message", "one-way", "")] * 2


@pytest.mark.parametrize("pieces", (1, 3))
@pytest.mark.parametrize("name", UNANSWERED)
def test_what_gets_no_answer_has_its_bytes(made, name, pieces):
    port, turns, message, operation = UNANSWERED[name]
    x = made.connect(port)
    login(x, turns)
    for i in range(5):
        size = -(-len(message) // pieces)
        for k in range(0, len(message), size):
            x.ask(message[k:k + size], (i + 1) * 10_000_000 + k)
    x.fin()
    rows = [r for r in made.rows() if r["operation"] == operation]
    assert [(r["result"], r["begin_ns"] // 1000 - START, r["request_bytes"], r["latency_ns"]) for r in rows] == [
        ("one-way", (i + 1) * 10_000_000, len(message), None) for i in range(5)]


@pytest.mark.parametrize("side", (0, 1))
@pytest.mark.parametrize("name", [n for n in EACH if n != "tls"])
def test_bytes_that_never_come_make_no_error(made, name, side):
    port, turns, ask, answer, operation = EACH[name]
    x = made.connect(port)
    login(x, turns)
    said = (ask, answer)
    for i in range(4):
        for who in (0, 1):
            if i == 1 and who == side and len(said[who]) > 2:
                size = (len(said[who]) + 2) // 3
                x.parts(who, said[who], ((0, made.now + 10), (2, made.now + 20)), size)
            else:
                x.say(who, said[who])
    x.fin()
    rows = made.rows()
    assert {r["result"] for r in rows} <= {"ok", "blind", "one-way", "opened"}, rows
    results = [r["result"] for r in rows if r["operation"] == operation]
    assert results.count("ok") >= 2 and len(results) >= 3, results


@pytest.mark.parametrize("opened", (True, False))
@pytest.mark.parametrize("name", EACH)
def test_of_the_servers_side_alone_nothing_is_an_error(made, name, opened):
    port, turns, ask, answer, _ = EACH[name]
    x = made.connect(port, opened=opened, sides="s")
    login(x, turns if opened else [])
    for _ in range(3):
        x.ask(ask)
        x.answer(answer)
    assert {r["result"] for r in made.rows()} <= {"blind", "one-way"}


@pytest.mark.parametrize("name", [n for n in EACH if n not in ("tls", "clickhouse")])  # too few bytes to tell by
def test_a_connection_that_is_joined_is_known_from_its_second_exchange_on(made, name):
    port, _, ask, answer, operation = EACH[name]
    x = made.connect(port, opened=False)
    x.answer(answer[len(answer) // 2:])  # the end of an answer
    for _ in range(5):
        x.ask(ask)
        x.answer(answer)
    rows = made.rows()
    assert {r["result"] for r in rows} <= {"ok", "blind"}, rows
    assert [r["result"] for r in rows if r["operation"] == operation][-2:] == ["ok", "ok"], rows
