# SPDX-License-Identifier: Apache-2.0
"""sonde replay: each protocol with one question, seen late, of one side, cut off, without an end: never told as what it was not."""
import struct

import pytest
from test_replay_made import FINE, HTTP, PG_READY, PG_START, Made, kafka, pg, text16


def le(n, b):
    return len(b).to_bytes(n, "little") + b


def my(seq, b):
    return len(b).to_bytes(3, "little") + bytes([seq]) + b


def resp(*words):
    return b"*%d\r\n" % len(words) + b"".join(b"$%d\r\n%s\r\n" % (len(w), w) for w in words)


def frame2(kind, flags, stream, payload=b""):
    return len(payload).to_bytes(3, "big") + bytes([kind, flags]) + struct.pack("!I", stream) + payload


def bson(**fields):
    out = b""
    for k, v in fields.items():
        k = k.replace("_", "$").encode() + b"\0"
        out += b"\2" + k + struct.pack("<i", len(v) + 1) + v.encode() + b"\0" if isinstance(v, str) else b"\1" + k + struct.pack("<d", v)
    return struct.pack("<i", len(out) + 5) + out + b"\0"


def mongo(n, to, **fields):
    body = bytes(5) + bson(**fields)
    return struct.pack("<iiii", 16 + len(body), n, to, 2013) + body


def amqp(channel, cls, method, args=b""):
    body = struct.pack("!HH", cls, method) + args
    return struct.pack("!BHI", 1, channel, len(body)) + body + b"\xce"


def mqtt(kind, body):
    return bytes([kind, len(body)]) + body


def cql(version, stream, op, body):
    return struct.pack("!BBHBI", version, 0, stream, op, len(body)) + body


def fcgi(kind, content):
    return struct.pack("!BBHHBB", 1, kind, 1, len(content), 0, 0) + content


def zk(x, what, body):
    return struct.pack("!iii", 8 + len(body), x, what) + body


def dubbo(flags, status, n, body):
    return struct.pack("!HBBQI", 0xdabb, flags, status, n, len(body)) + body


def hello(client):
    body = b"\3\3" + bytes(32) + b"\0" + (b"\0\2\x13\1\1\0" if client else b"\x13\1\0") + b"\0\0"
    return b"\x16\3\1" + struct.pack("!HB", len(body) + 4, 1 if client else 2) + len(body).to_bytes(3, "big") + body


def dns(answer):
    body = struct.pack("!HHHHHH", 7, 0x8180 if answer else 0x100, 1, 1 if answer else 0, 0, 0) + b"\1a\7example\0\0\1\0\1"
    body += b"\xc0\x0c\0\1\0\1\0\0\0\5\0\4\1\2\3\4" if answer else b""
    return struct.pack("!H", len(body)) + body


OPEN2 = [(0, b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + frame2(4, 0, 0)), (1, frame2(4, 0, 0))]
CQL_START = [(0, cql(4, 0, 1, b"\0\1\0\x0bCQL_VERSION\0\5" + b"3.0.0")), (1, cql(0x84, 0, 2, b""))]
AMQP_OPEN = [(0, b"AMQP\0\0\x09\1"), (1, amqp(0, 10, 10, b"\0\x09" + bytes(12))), (0, amqp(0, 10, 11, bytes(8))), (1, amqp(0, 10, 30, bytes(8))),
             (0, amqp(0, 10, 31, bytes(8)) + amqp(0, 10, 40, b"\1/\0\0")), (1, amqp(0, 10, 41, b"\0"))]
CH_HELLO = [(0, b"\0\2cl\x14\x0a\xc4\xa9\3\0\2me\2pw"), (1, b"\0\x0aClickHouse\x17\x08\xc4\xa9\3\3UTC\4here\1\1\4^.+$\3one" + b"\x11" * 8), (0, b"\0")]
CH_ASK = (b"\1\0\1\0\0\x090.0.0.0:0K\7\xa7l\x0aa\6\0\1\2me\2pc\x18ClickHouse python-driver\x14\x0a\xc4\xa9\3\0\0\2\1\x9c" + b"1\x80\x1c!\xebH\x84\xddC\xcd\x16\x19e\xf7\x0a" +
          b"13 iqk\xad\xb7\0\1\0\0\0\x0emax_block_size\0\x041000\0\0\2\0\x08SELECT 1\0\2\0\1\0\2\xff\xff\xff\xff\0\0\0")
FDB_HELLO = b"(\0\0\0\0\0\1q\xb0\0\xdb\x1f\0\0\1" + b"\0" * 7 + b"\x7f\0\0\1" + b"\0" * 18
FDB_ASK = (b"`\0\0\0QQQQQQQQ\x09\x0e\xf6\xe5\xd4\xc3\xb2\xa1\x84\3\0\0xV4\x12 \0\0\0\x82\1\x81\0\6\0\x08\0\4\0\x0a\0\x14\0\4\0\x0c\0\x10\0\6\0\x14\0\4\0\0\0\x18\0\0\0\4\0\0\0"
           b"\x1a\0\0\0********\x08\0\0\0\1\0\0\0$\0\0\0\4\7\xf6\xe5\xd4\xc3\xb2\xa1\2\0\0\0xV4\x12")
FDB_ANSWER = (b"@\0\0\0QQQQQQQQ\4\7\xf6\xe5\xd4\xc3\xb2\xa1\2\0\0\0xV4\x12\x18\0\0\0q\x0a\x15\2\x08\0\x09\0\x08\0\4\0\6\0\x0c\0\4\0\0\0\x10\0\0\0\x08\0\0\0\2\0\0\0\x14\0\0\0cccccccc")

# port, login, question, answer, operation
EACH = {
    "http": (80, [], HTTP, FINE, "GET x/a"),
    "http chunked": (80, [], HTTP, b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n", "GET x/a"),
    "http2": (80, OPEN2, frame2(1, 5, 1, b"\x82\x86\x84\x41\1h"), frame2(1, 4, 1, b"\x88") + frame2(0, 1, 1, b"hi"), "GET h/"),
    "postgres": (5432, [(0, PG_START), (1, PG_READY)], pg(b"Q", b"select c from t\0"), pg(b"C", b"SELECT 1\0") + pg(b"Z", b"I"), "select c from t"),
    "postgres extended": (5432, [(0, PG_START), (1, PG_READY)], pg(b"P", b"\0select c from t\0\0\0") + pg(b"B", b"\0\0\0\0\0\0\0\0") + pg(b"E", bytes(5)) + pg(b"S"),
                          pg(b"1") + pg(b"2") + pg(b"C", b"SELECT 1\0") + pg(b"Z", b"I"), "select c from t"),
    "mysql": (3306, [(1, my(0, b"\x0a8.0.30\0" + bytes(4) + b"saltsalt\0\xff\xf7\x21\2\0\xff\xdf\x15" + bytes(10) + b"saltsaltsalt\0mysql_native_password\0")),
                     (0, my(1, struct.pack("<IIB", 0x0081a20d, 1 << 24, 33) + bytes(23) + b"ann\0\0")), (1, my(2, bytes([0, 0, 0, 2, 0, 0, 0])))],
              my(0, b"\3select c from t"), my(1, b"\1") + my(2, b"d") + my(3, b"\xfe\0\0\2\0") + my(4, b"\1v") + my(5, b"\xfe\0\0\2\0"), "select c from t"),
    "redis": (6379, [], resp(b"GET", b"k"), b"$9\r\nsomething\r\n", "GET k"),
    "memcached": (11211, [], b"get k\r\n", b"VALUE k 0 2\r\nhi\r\nEND\r\n", "get k"),
    "memcached binary": (11211, [], struct.pack("!BBHBBHIIQ", 0x80, 0, 1, 0, 0, 0, 1, 9, 0) + b"k", struct.pack("!BBHBBHIIQ", 0x81, 0, 0, 4, 0, 0, 6, 9, 0) + b"\0\0\0\0hi", "get k"),
    "mongodb": (27017, [], mongo(5, 0, find="people", _db="app"), mongo(6, 5, ok=1.0), "find app.people"),
    "kafka": (9092, [], struct.pack("!ihhi", 18, 12, 0, 5) + text16(b"cl") + text16(b"grp") + b"\0", struct.pack("!iih", 6, 5, 0), "HEARTBEAT"),
    "amqp": (5672, AMQP_OPEN, amqp(1, 20, 10, b"\0"), amqp(1, 20, 11, bytes(4)), "CHANNEL OPEN"),
    "nats": (4222, [(1, b'INFO {"server_id":"x"}\r\n'), (0, b"CONNECT {}\r\n")], b"PUB a.b _INBOX.7 2\r\nhi\r\n", b"MSG _INBOX.7 1 2\r\nhi\r\n", "REQUEST a.b"),
    "mqtt": (1883, [(0, mqtt(0x10, b"\0\4MQTT\4\2\0<\0\1a")), (1, mqtt(0x20, b"\0\0"))], mqtt(0x82, b"\0\1\0\5topic\0"), mqtt(0x90, b"\0\1\0"), "SUBSCRIBE topic"),
    "cassandra": (9042, CQL_START, cql(4, 5, 7, struct.pack("!i", 15) + b"SELECT c FROM t" + b"\0\1\0"), cql(0x84, 5, 8, struct.pack("!i", 1)), "SELECT c FROM t"),
    "fastcgi": (9000, [], fcgi(1, b"\0\1\0" + bytes(5)) + fcgi(4, b"\x0e\3REQUEST_METHODGET\x09\1HTTP_HOSTh\x0b\1REQUEST_URI/") + fcgi(4, b"") + fcgi(5, b""),
                fcgi(6, b"Content-Type: a/b\r\n\r\nx") + fcgi(6, b"") + fcgi(3, bytes(8)), "GET h/"),
    "zookeeper": (2181, [(0, struct.pack("!iiqiqi", 44, 0, 0, 30000, 0, 16) + bytes(16)), (1, struct.pack("!iiiqi", 36, 0, 30000, 9, 16) + bytes(16))],
                  zk(1, 4, struct.pack("!i", 4) + b"/app\0"), struct.pack("!iiqi", 20, 1, 9, 0) + b"data", "getData /app"),
    "dubbo": (20880, [], dubbo(0xc2, 0, 4, b"\5" + b"2.0.2\7com.Foo\3" + b"1.0\3buy\0"), dubbo(2, 20, 4, b"\x92"), "com.Foo/buy"),
    "clickhouse": (9000, CH_HELLO, CH_ASK, b"\5", "SELECT ?"),
    "foundationdb": (4500, [(0, FDB_HELLO), (1, FDB_HELLO)], FDB_ASK, FDB_ANSWER, "GetValue"),
    "dns": (53, [], dns(False), dns(True), "A a.example"),
    "tls": (443, [], hello(True), hello(False) + b"\x14\3\3\0\1\1" + b"\x17\3\3\0\2hi", "TLS (no name)"),
}


@pytest.fixture(params=EACH)
def one(request, tmp_path):
    return request.param, Made(tmp_path / "x.pcap"), *EACH[request.param]


def login(x, turns):
    for side, data in turns:
        x.say(side, data)


def of(made, operation):
    return [(r["result"], r["latency_ns"] and r["latency_ns"] // 1000) for r in made.rows() if r["operation"] == operation]


def test_it_is_told_with_its_latency(one):
    _, made, port, turns, ask, answer, operation = one
    x = made.connect(port)
    login(x, turns)
    x.ask(ask, 10_000)
    x.answer(answer, 10_700)
    x.fin()
    assert of(made, operation) == [("ok", 700)]


def test_the_end_of_an_answer_that_is_there_late_is_late(one):
    name, made, port, turns, ask, answer, operation = one
    x = made.connect(port)
    login(x, turns)
    x.ask(ask, 10_000)
    size = (len(answer) + 2) // 3
    if len(answer) > 2:
        x.parts(1, answer, ((0, 10_100), (2, 10_200), (1, 300_000)) if len(answer) > 2 * size else ((1, 10_200), (0, 300_000)), size)
        x.fin()
        assert of(made, operation) == [("ok", 290_000)]


def test_a_question_that_is_there_late_has_its_first_byte_and_its_last(one):
    _, made, port, turns, ask, answer, operation = one
    x = made.connect(port)
    login(x, turns)
    size = (len(ask) + 2) // 3
    x.parts(0, ask, ((0, 10_000), (2, 10_100), (1, 200_000)), size)
    x.answer(answer, 200_500)
    x.fin()
    row, = [r for r in made.rows() if r["operation"] == operation]
    assert (row["result"], row["latency_ns"]) == ("ok", 190_500_000) and row["sent_ns"] - row["begin_ns"] == 190_000_000


@pytest.mark.parametrize("how", ("fin", "reset"))
def test_an_answer_without_its_last_byte_is_not_ok(one, how):
    name, made, port, turns, ask, answer, operation = one
    x = made.connect(port)
    login(x, turns)
    x.ask(ask)
    if len(answer) > 1 and name != "tls":
        x.answer(answer[:-1])
        getattr(x, how)()
        (result, latency), = of(made, operation)
        assert result != "ok" and latency is None


def test_a_question_that_hangs_when_the_capture_ends_is_unknown(one):
    _, made, port, turns, ask, _, operation = one
    x = made.connect(port)
    login(x, turns)
    x.ask(ask)
    assert of(made, operation) == [("blind", None)]


@pytest.mark.parametrize("ends", (True, False))
def test_of_the_clients_side_alone_each_question_is_unknown(one, ends):
    name, made, port, turns, ask, answer, operation = one
    x = made.connect(port, sides="c")
    login(x, turns)
    x.ask(ask)
    x.answer(answer)
    if ends:
        x.fin()
    assert of(made, operation) == [("blind", None)]


def test_in_the_middle_of_the_clients_side_alone_as_well(one):
    name, made, port, turns, ask, answer, operation = one
    x = made.connect(port, opened=False, sides="c")
    x.ask(ask)
    x.answer(answer)
    assert of(made, operation) == [("blind", None)]


def test_in_the_middle_a_whole_exchange_is_told(one):
    name, made, port, turns, ask, answer, operation = one
    x = made.connect(port, opened=False)
    x.ask(ask)
    x.answer(answer)
    (result, _), = of(made, operation)
    assert result in ("ok", "blind")


def test_what_is_joined_within_an_answer_is_counted_from_its_first_question_on(one):
    name, made, port, turns, ask, answer, operation = one
    x = made.connect(port, opened=False)
    x.answer(answer[len(answer) // 2:])
    x.ask(ask)
    x.answer(answer)
    (result, _), = of(made, operation)
    assert result in ("ok", "blind")
