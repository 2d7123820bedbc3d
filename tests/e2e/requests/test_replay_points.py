# SPDX-License-Identifier: Apache-2.0
"""Faults that one protocol had, looked for in each one that can have them. TABLE says of each protocol where it is tested, or why there is nothing to test. The kinds:

compressed  what is said is packed, as a whole or message by message
upgrade     TLS begins in the midst of a connection
last error  an error ends the connection
in parts    one request, or one answer, is several messages: its bytes are those of all
behind      an error that is not the first thing in an answer
pushed      the server speaks unasked
unanswered  a message that has no answer
between     the server speaks unasked between a question and its answer
early       a question is answered before its end, or an answer is cut: its bytes are those that came
late        bytes of an answer come after those behind them (test_replay_each, for all)
uncounted   one side, no end, or no answer was captured (test_replay_each, for all)
before      what comes before an answer, and is none
farewell    an idle connection ends with a code"""
import os
import re
import struct
import zlib

import pytest
from conftest import ROOT
from test_replay_each import AMQP_OPEN, CH_ASK, CH_HELLO, EACH, OPEN2, amqp, bson, cql, dubbo, fcgi, frame2, login, mongo, mqtt, my, resp
from test_replay_kinds import FAILS, PUSHED, UNANSWERED, UPGRADE, UPGRADED
from test_replay_made import PG_READY, PG_START, Made, pg, text16
from test_replay_statuses import FAREWELLS, FRAMES, SAID

UNIT = "tests/unit/loaders/lib/protocols/"
STATUSES = "tests/e2e/requests/test_replay_statuses.py:"
PG_OPEN = [(0, PG_START), (1, PG_READY)]
GRPC = bytes.fromhex("8386") + b"\x04\x06/s.S/C" + b"\x41\x01h" + b"\x5f\x10application/grpc"
MYSQL = EACH["mysql"][1]


def packed(seq, data):
    """A frame of MySQL's compression; a short one is not packed in it."""
    body = zlib.compress(data) if len(data) > 49 else data
    return len(body).to_bytes(3, "little") + bytes([seq]) + (len(data) if body is not data else 0).to_bytes(3, "little") + body


def greeting(flags):
    """MySQL's login, with more of the client's flags."""
    hello, answer, fine = (data for _, data in MYSQL)
    return [(1, hello), (0, answer[:4] + struct.pack("<I", struct.unpack("<I", answer[4:8])[0] | flags) + answer[8:]), (1, fine)]


def squeezed(message):
    """OP_COMPRESSED, with zlib."""
    head, body = message[:16], message[16:]
    data = struct.pack("<iiB", 2013, len(body), 2) + zlib.compress(body)
    return struct.pack("<i", 16 + len(data)) + head[4:12] + struct.pack("<i", 2012) + data


LONG = b"select c from t where d = " + b"1 + " * 100 + b"1"
PACKED = {
    "mysql": (3306, greeting(0x20), packed(0, my(0, b"\3" + LONG)), packed(1, my(1, b"\1") + my(2, b"d" * 60) + my(3, b"\xfe\0\0\2\0") + my(4, b"\1v") + my(5, b"\xfe\0\0\2\0")),
              "select c from t where d = "),
    "mongodb": (27017, [], squeezed(EACH["mongodb"][2]), squeezed(EACH["mongodb"][3]), "find app.people"),
}
HTTP_POST = b"POST /a HTTP/1.1\r\nHost: x\r\n"
INSERT = CH_ASK.replace(b"\x08SELECT 1", b"\x16INSERT INTO t VALUES  ")
BLOCK = b"\2\0\1\0\2\xff\xff\xff\xff\0"
# port, login, what one request is made of, what its answer is made of, operation
PARTS = {
    "http": (80, [], [HTTP_POST + b"Content-Length: 6\r\n\r\n", b"abc", b"def"], [b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\n", b"hi", b"ho"], "POST x/a"),
    "http chunked": (80, [], [HTTP_POST + b"Transfer-Encoding: chunked\r\n\r\n", b"3\r\nabc\r\n", b"0\r\n\r\n"],
                     [b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", b"2\r\nhi\r\n", b"0\r\n\r\n"], "POST x/a"),
    "http2": (80, OPEN2, [frame2(1, 0, 1, b"\x83\x86"), frame2(9, 4, 1, b"\x84\x41\1h"), frame2(0, 0, 1, b"abc"), frame2(0, 1, 1, b"def")],
              [frame2(1, 4, 1, b"\x88"), frame2(0, 0, 1, b"hi"), frame2(0, 1, 1, b"ho")], "POST h/"),
    "postgres": (5432, PG_OPEN, [pg(b"P", b"\0select c from t\0\0\0"), pg(b"D", b"S\0"), pg(b"B", bytes(8)), pg(b"E", bytes(5)), pg(b"S")],
                 [pg(b"1"), pg(b"n"), pg(b"2"), pg(b"D", b"\0\1\0\0\0\1v"), pg(b"C", b"SELECT 1\0"), pg(b"Z", b"I")], "select c from t"),
    "mysql": (3306, MYSQL, [my(0, b"\3select c from t")], [my(1, b"\1"), my(2, b"d"), my(3, b"\xfe\0\0\2\0"), my(4, b"\1v"), my(5, b"\xfe\0\0\2\0")], "select c from t"),
    "redis": (6379, [], [b"*3\r\n$3\r\nSET\r\n", b"$1\r\nk\r\n", b"$2\r\nhi\r\n"], [b"+O", b"K\r\n"], "SET k"),
    "memcached": (11211, [], [b"set k 0 0 2\r\n", b"hi\r\n"], [b"STO", b"RED\r\n"], "set k"),
    "amqp": (5672, [*AMQP_OPEN, (0, amqp(1, 20, 10, b"\0")), (1, amqp(1, 20, 11, bytes(4))), (0, amqp(1, 85, 10, b"\0")), (1, amqp(1, 85, 11))],
             [amqp(1, 60, 40, b"\0\0\0\1q\0"), struct.pack("!BHIHHQHB", 2, 1, 14, 60, 0, 4, 0, 0xce), struct.pack("!BHI", 3, 1, 2) + b"hi\xce", struct.pack("!BHI", 3, 1, 2) + b"ho\xce"],
             [amqp(1, 60, 80, struct.pack("!QB", 1, 0))], "PUBLISH (default) q"),
    "amqp get": (5672, [*AMQP_OPEN, (0, amqp(1, 20, 10, b"\0")), (1, amqp(1, 20, 11, bytes(4)))], [amqp(1, 60, 70, b"\0\0\1q\1")],
                 [amqp(1, 60, 71, struct.pack("!QB", 1, 0) + b"\0\1q" + bytes(4)), struct.pack("!BHIHHQHB", 2, 1, 14, 60, 0, 4, 0, 0xce), struct.pack("!BHI", 3, 1, 2) + b"hi\xce",
                  struct.pack("!BHI", 3, 1, 2) + b"ho\xce"], "GET q"),
    "nats": (4222, EACH["nats"][1], [b"PUB a.b _INBOX.7 2\r\n", b"hi\r\n"], [b"MSG _INBOX.7 1 2\r\n", b"hi\r\n"], "REQUEST a.b"),
    "fastcgi": (9000, [], [fcgi(1, b"\0\1\0" + bytes(5)), fcgi(4, b"\x0e\3REQUEST_METHODGET\x09\1HTTP_HOSTh"), fcgi(4, b"\x0b\1REQUEST_URI/"), fcgi(4, b""), fcgi(5, b"abc"), fcgi(5, b"")],
                [fcgi(6, b"Content-Type: a/b\r\n\r\nx"), fcgi(7, b"a warning"), fcgi(6, b"y"), fcgi(6, b""), fcgi(3, bytes(8))], "GET h/"),
    "clickhouse": (9000, CH_HELLO, [INSERT, BLOCK + b"\1\1\1a\5UInt8\0\1", BLOCK + b"\0\0"], [b"\1" + BLOCK[1:] + b"\1\0\1a\5UInt8\0", b"\5"], "INSERT INTO t VALUES"),
    "mqtt": (1883, EACH["mqtt"][1], [mqtt(0x34, b"\0\1t\0\7hi")[:4], mqtt(0x34, b"\0\1t\0\7hi")[4:]], [mqtt(0x50, b"\0\7"), mqtt(0x70, b"\0\7")], "PUBLISH t"),
}
EXEC = [(0, resp(b"MULTI")), (1, b"+OK\r\n"), (0, resp(b"INCR", b"k")), (1, b"+QUEUED\r\n"), (0, resp(b"GET", b"j")), (1, b"+QUEUED\r\n")]
FETCHED = b"".join(struct.pack("!ihqqii", i, code, 0, 0, 0, 4) + b"rows" for i, code in enumerate((0, 0, 6)))
FETCH = struct.pack("!hhi", 1, 4, 5) + text16(b"cl") + struct.pack("!iiiiBi", -1, 500, 1, 1 << 20, 0, 1) + text16(b"t1") + struct.pack("!i", 3) + b"".join(
    struct.pack("!iqi", i, 0, 1 << 20) for i in range(3))


def jetstream(data):
    return b"MSG _INBOX.7 1 %d\r\n%s\r\n" % (len(data), data)


# port, login, question, answer, operation, status
BEHIND = {
    "http2": (80, OPEN2, frame2(1, 4, 1, GRPC) + frame2(0, 1, 1, bytes(5)),
              frame2(1, 4, 1, b"\x88\x5f\x10application/grpc") + frame2(0, 0, 1, bytes(5)) + frame2(1, 5, 1, b"\0\x0bgrpc-status\2" + b"13"), "GRPC h/s.S/C", "INTERNAL"),
    "postgres": (5432, PG_OPEN, pg(b"Q", b"select c from t; select 1/0\0"), pg(b"C", b"SELECT 1\0") + pg(b"E", b"SERROR\0C22012\0Mx\0\0") + pg(b"Z", b"I"), "select c from t", "22012"),
    "mysql": (3306, greeting(0x10000), my(0, b"\3select c from t; select 1/0"),
              my(1, b"\1") + my(2, b"d") + my(3, b"\xfe\0\0\x0a\0") + my(4, b"\1v") + my(5, b"\xfe\0\0\x0a\0") + my(6, b"\xff" + struct.pack("<H", 1365) + b"#22012zero"), "select c from t", "22012"),
    "redis": (6379, EXEC, resp(b"EXEC"), b"*2\r\n:1\r\n-WRONGTYPE Operation\r\n", "EXEC", "WRONGTYPE"),
    "memcached": (11211, [], b"get k j\r\n", b"VALUE k 0 2\r\nhi\r\nSERVER_ERROR out of memory\r\n", "get k", None),
    "mongodb": (27017, [], mongo(5, 0, insert="people", _db="app"), None, "insert app.people", "11000"),
    "kafka": (9092, [], struct.pack("!i", len(FETCH)) + FETCH, struct.pack("!iiii", 16 + len(text16(b"t1")) + len(FETCHED), 5, 0, 1) + text16(b"t1") + struct.pack("!i", 3) + FETCHED, "FETCH t1", "6"),
    "mqtt": (1883, EACH["mqtt"][1], mqtt(0x82, b"\0\1\0\1a\0\0\1b\0"), mqtt(0x90, b"\0\1\0\x80"), "SUBSCRIBE a", "128"),
    "nats": (4222, EACH["nats"][1], b"PUB a.b _INBOX.7 2\r\nhi\r\n", b"HMSG _INBOX.7 1 16 16\r\nNATS/1.0 503\r\n\r\n\r\n", "REQUEST a.b", "503"),
    "fastcgi": (9000, [], EACH["fastcgi"][2], fcgi(6, b"Content-Type: a/b\r\n\r\nx") + fcgi(6, b"") + fcgi(3, b"\0\0\0\1\2\0\0\0"), "GET h/", "end 2"),
    "clickhouse": (9000, CH_HELLO, CH_ASK, b"\1" + BLOCK[1:] + b"\1\1\1a\5UInt8\0\1" + b"\2" + struct.pack("<i", 241) + b"\x0dDB::Exception\6Memory\0\0", "SELECT ?", "241"),
    "dubbo": (20880, [], EACH["dubbo"][2], dubbo(2, 20, 4, b"\x90C\x0fx"), "com.Foo/buy", "exception"),
    "http2 no status": (80, OPEN2, frame2(1, 4, 1, GRPC) + frame2(0, 1, 1, bytes(5)), frame2(1, 4, 1, b"\x88\x5f\x10application/grpc") + frame2(0, 1, 1, bytes(5)), "GRPC h/s.S/C", "UNKNOWN"),
    "nats jetstream": (4222, EACH["nats"][1], b"PUB a.b _INBOX.7 2\r\nhi\r\n", jetstream(b'{"error":{"code":503,"err_code":10077,"description":"no"},"stream":"","seq":0}'),
                       "REQUEST a.b", "503"),
    "nats jetstream api": (4222, EACH["nats"][1], b"PUB a.b _INBOX.7 2\r\nhi\r\n",
                           jetstream(b'{"type":"io.nats.jetstream.api.v1.stream_create_response","error":{"code":500,"description":"no"}}'), "REQUEST a.b", "500"),
    "fastcgi in two records": (9000, [], EACH["fastcgi"][2], fcgi(6, b"Content-Type: a/b\r\n") + fcgi(6, b"Status: 503 x\r\n\r\ny") + fcgi(6, b"") + fcgi(3, bytes(8)), "GET h/", "503"),
    "fastcgi in two lines": (9000, [], EACH["fastcgi"][2], fcgi(6, b"A: b\r\nSta") + fcgi(6, b"tus: 50") + fcgi(6, b"3\r\n\r\nStatus: 200\n") + fcgi(6, b"") + fcgi(3, bytes(8)), "GET h/",
                             "503"),
    "dubbo with kryo": (20880, [], dubbo(0xc8, 0, 4, b"".join(s[:-1] + bytes([s[-1] | 128]) for s in (b"2.0.2", b"com.Foo", b"1.0", b"buy"))), dubbo(8, 20, 4, b"\3x"), "com.Foo/buy", "exception"),
}
writes = b"\4writeErrors\0" + (lambda inner: struct.pack("<i", len(inner) + 5) + inner + b"\0")(
    b"\x030\0" + (lambda e: struct.pack("<i", len(e) + 5) + e + b"\0")(b"\x10index\0" + struct.pack("<i", 3) + b"\x10code\0" + struct.pack("<i", 11000)))
document = b"\x10n\0" + struct.pack("<i", 3) + writes + b"\1ok\0" + struct.pack("<d", 1)
BEHIND["mongodb"] = (*BEHIND["mongodb"][:3], struct.pack("<iiii", 16 + 5 + 5 + len(document), 6, 5, 2013) + bytes(5) + struct.pack("<i", len(document) + 5) + document + b"\0",
                     *BEHIND["mongodb"][4:])
# port, login, the begin of a question, its answer, operation
EARLY = {
    "http": (80, [], HTTP_POST + b"Content-Length: 50000\r\n\r\nabc", b"HTTP/1.1 413 Too Large\r\nContent-Length: 0\r\n\r\n", "POST x/a"),
    "memcached": (11211, [], b"set k 0 0 5000000\r\n" + b"x" * 100, b"SERVER_ERROR object too large for cache\r\n", "set k"),
    "redis": (6379, [], b"*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$500000\r\nxyz", b"-OOM command not allowed\r\n", "SET k"),
}
# the same with an answer whose end never comes
CUT = {
    "http": (80, [], HTTP_POST + b"Content-Length: 0\r\n\r\n", b"HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\nabc", "POST x/a"),
    "memcached": (11211, [], b"get k\r\n", b"VALUE k 0 100000\r\nabc", "get k"),
    "redis": (6379, [], resp(b"GET", b"k"), b"$100000\r\nabc", "GET k"),
    "postgres": (5432, PG_OPEN, pg(b"Q", b"select c from t\0"), pg(b"T", b"\0\0") + b"D" + struct.pack("!i", 100000) + b"abc", "select c from t"),
    "mysql": (3306, MYSQL, my(0, b"\3select c from t"), my(1, b"\1") + my(2, b"d") + my(3, b"\xfe\0\0\2\0") + b"\xa0\x86\1\4abc", "select c from t"),
}
BETWEEN = {name: PUSHED[name] for name in PUSHED if name not in ("websocket", "amqp returned", "redis", "redis pattern")}
BETWEEN["redis RESP3"] = (6379, [(0, resp(b"HELLO", b"3")), (1, b"%1\r\n$6\r\nserver\r\n$5\r\nredis\r\n")], b">2\r\n$10\r\ninvalidate\r\n*1\r\n$1\r\nk\r\n", "invalidate")
ONE = "a question and an answer are one message each, which may come in pieces (test_replay_each)"
FIRST = "TLS begins with the first byte"
PLAIN = "has none of its own; what a value holds is not looked at"
SINGLE = "an answer has one code"
ALL = {name: f"EACH:{name}" for name in (
    "http", "http2", "amqp", "postgres", "mysql", "nats", "mqtt", "dubbo", "fastcgi", "mongodb", "cassandra", "foundationdb", "clickhouse", "memcached", "redis", "zookeeper", "kafka", "dns", "tls")}
TABLE = {
    "compressed": {"mysql": "PACKED:mysql", "mongodb": "PACKED:mongodb", "cassandra": UNIT + "cassandra_test.c:compressed_frames_are_blind_to_the_byte",
                   "clickhouse": UNIT + "clickhouse_test.c:compressed_blocks_are_passed_over_frame_by_frame", "http2": UNIT + "http2_test.c:", "tls": "inside it",
                   **{name: PLAIN for name in ("http", "amqp", "postgres", "nats", "mqtt", "dubbo", "fastcgi", "foundationdb", "memcached", "redis", "zookeeper", "kafka", "dns")}},
    "upgrade": {**{name: "tests/e2e/requests/test_l7_accounts.py:test_each_byte_is_accounted_for_once_and_each_request_counted" for name in ("mysql", "postgres", "nats")}, "http": "CONNECT: " + FIRST,
                **{name: FIRST for name in ("http2", "amqp", "mqtt", "dubbo", "fastcgi", "mongodb", "cassandra", "foundationdb", "clickhouse", "memcached", "redis", "zookeeper", "kafka", "dns", "tls")}},
    "last error": {"http": "FAILS:http 500 until the end", "http2": "FAILS:http2 reset", "amqp": "FAILS:amqp 320", "postgres": "FAILS:postgres 57P01", "mysql": "FAILS:mysql 1053", "nats": "FAILS:nats",
                   "mqtt": "FAILS:mqtt 128", "dubbo": "FAILS:dubbo 80", "fastcgi": "FAILS:fastcgi overloaded", "mongodb": "FAILS:mongodb 91", "cassandra": "FAILS:cassandra 0x1001",
                   "clickhouse": "FAILS:clickhouse 159", "memcached": "FAILS:memcached", "redis": "FAILS:redis LOADING", "zookeeper": "FAILS:zookeeper sessionexpired", "kafka": "FAILS:kafka 27",
                   "dns": "FAILS:dns SERVFAIL", "foundationdb": UNIT + "foundationdb_test.c:a_reply_is_found_by_the_token_that_its_request_carries", "tls": "an alert ends it: what it is about is not clear"},
    "in parts": {**{name: f"PARTS:{name}" for name in PARTS if " " not in name},
                 **{name: ONE for name in ("dubbo", "mongodb", "cassandra", "foundationdb", "zookeeper", "kafka", "dns", "tls")}},
    "behind": {**{name: f"BEHIND:{name}" for name in BEHIND if " " not in name}, "zookeeper": UNIT + "zookeeper_test.c:a_multi_has_the_error_of_the_part_that_failed",
               "amqp": "a nack, or a close, is the answer", **{name: SINGLE for name in ("http", "cassandra", "foundationdb", "dns", "tls")}},
    "pushed": {**{name: f"PUSHED:{name}" for name in ("redis", "nats", "mqtt", "amqp", "postgres", "cassandra", "zookeeper")}, "http": "PUSHED:websocket",
               "http2": "a server's stream is one answer; PUSH_PROMISE is asked for", "mongodb": UNIT + "mongo_test.c:", "kafka": "a server speaks when it is asked",
               **{name: "a server speaks when it is asked" for name in ("mysql", "dubbo", "fastcgi", "foundationdb", "clickhouse", "memcached", "dns", "tls")}},
    "unanswered": {**{name: f"UNANSWERED:{name}" for name in ("memcached", "kafka", "amqp", "mqtt", "nats", "dubbo")}, "http": "UNANSWERED:websocket",
                   "mongodb": UNIT + "mongo_test.c:", "foundationdb": UNIT + "foundationdb_test.c:", "redis": "CLIENT REPLY OFF: " + UNIT + "redis_test.c", "mysql": UNIT + "mysql_test.c:",
                   **{name: "each message has an answer" for name in ("http2", "postgres", "fastcgi", "cassandra", "clickhouse", "zookeeper", "dns", "tls")}},
    "between": {**{name: f"BETWEEN:{name}" for name in ("nats", "mqtt", "amqp", "postgres", "cassandra", "zookeeper")}, "redis": "BETWEEN:redis RESP3",
                "http": "after an upgrade there are no questions", "http2": "frames have a stream", "mongodb": "answers have the question's number",
                **{name: "a server speaks when it is asked" for name in ("mysql", "dubbo", "fastcgi", "foundationdb", "clickhouse", "memcached", "kafka", "dns", "tls")}},
    "early": {**{name: f"CUT:{name}" for name in CUT}, **{name: "one place for all: connask.c" for name in (
        "http2", "amqp", "nats", "mqtt", "dubbo", "fastcgi", "mongodb", "cassandra", "foundationdb", "clickhouse", "zookeeper", "kafka", "dns", "tls")}},
    "late": ALL,
    "uncounted": ALL,
    "before": {"http": "SAID:http 100 Continue", "http2": "SAID:http2 103", "amqp": "SAID:amqp returned", "postgres": "SAID:postgres notice", "mysql": "SAID:mysql progress",
               "nats": "SAID:nats a heartbeat before", "mqtt": STATUSES + "test_what_authenticates_within_a_login_is_part_of_it", "dubbo": "SAID:dubbo heartbeat", "fastcgi": "SAID:fastcgi warnings",
               "clickhouse": "SAID:clickhouse progress, then an exception", "redis": "SAID:redis attributes", "zookeeper": "BETWEEN:zookeeper", "cassandra": "BETWEEN:cassandra",
               "tls": STATUSES + "test_a_handshake_that_the_server_lets_begin_anew_ends_with_the_second_one",
               **{name: "an answer is one message" for name in ("mongodb", "foundationdb", "memcached", "kafka", "dns")}},
    "farewell": {**{name: f"FAREWELLS:{name}" for name in ("postgres", "mysql", "http2", "amqp", "mqtt", "nats", "redis", "memcached")}, "http": "FRAMES:an error of the server",
                 "tls": "SAID:tls alert", "zookeeper": "FAILS:zookeeper sessionexpired", "clickhouse": "FAILS:clickhouse 159",
                 **{name: "it just ends" for name in ("dubbo", "fastcgi", "mongodb", "cassandra", "foundationdb", "kafka", "dns")}},
}
CASES = {"BETWEEN": BETWEEN, "CUT": CUT, "EACH": EACH, "FAILS": FAILS, "PUSHED": PUSHED, "UNANSWERED": UNANSWERED, "PACKED": PACKED, "PARTS": PARTS, "BEHIND": BEHIND,
         "SAID": SAID, "FAREWELLS": FAREWELLS, "FRAMES": FRAMES}


def protocols():
    with open(os.path.join(ROOT, "loaders/lib/protocols/table.c"), encoding="ascii") as f:
        return {{"mongo": "mongodb"}.get(name, name) for name in re.findall(r"&protocol_(\w+)", f.read())}


@pytest.fixture
def made(tmp_path):
    return Made(tmp_path / "x.pcap")


@pytest.mark.parametrize("kind", TABLE)
def test_each_protocol_is_tested_or_has_a_reason(kind):
    assert set(TABLE[kind]) == protocols()
    for where in TABLE[kind].values():
        head, _, name = where.partition(":")
        if head in CASES:
            assert name in CASES[head], where
        elif head.startswith("tests/"):
            with open(os.path.join(ROOT, head), encoding="utf-8") as f:
                assert name in f.read(), where


@pytest.mark.parametrize("name", PACKED)
def test_what_is_packed_is_told_as_what_is_not(made, name):
    port, turns, ask, answer, operation = PACKED[name]
    x = made.connect(port)
    login(x, turns)
    for _ in range(3):
        x.ask(ask)
        x.answer(answer)
    x.fin()
    rows = [r for r in made.rows() if r["operation"].startswith(operation)]
    assert [(r["result"], r["request_bytes"]) for r in rows] == [("ok", len(ask))] * 3, rows


@pytest.mark.parametrize("late", (False, True))
@pytest.mark.parametrize("name", PARTS)
def test_a_request_in_parts_has_the_bytes_of_all_and_ends_with_the_last(made, name, late):
    port, turns, asks, answers, operation = PARTS[name]
    x = made.connect(port)
    login(x, turns)
    for i, ask in enumerate(asks):
        x.ask(ask, 10_000 + 100 * i)
    for i, answer in enumerate(answers):
        x.answer(answer, (500_000 if late and i == len(answers) - 1 else 20_000) + 100 * i)
    end = (500_000 if late else 20_000) + 100 * (len(answers) - 1)
    x.fin()
    (row,) = [r for r in made.rows() if r["operation"].startswith(operation)]
    assert (row["result"], row["request_bytes"], row["response_bytes"]) == ("ok", sum(map(len, asks)), sum(map(len, answers))), row
    assert row["latency_ns"] == (end - 10_000) * 1000, row


@pytest.mark.parametrize("name", BEHIND)
def test_an_error_behind_other_things_of_an_answer_is_one(made, name):
    port, turns, ask, answer, operation, status = BEHIND[name]
    x = made.connect(port)
    login(x, turns)
    x.ask(ask)
    x.answer(answer)
    x.fin()
    (row,) = [r for r in made.rows() if r["operation"].startswith(operation)]
    assert row["result"] == "error" and status in (None, row["status"]), row


@pytest.mark.parametrize("name", EARLY)
def test_a_question_that_is_answered_before_its_end_has_the_bytes_that_came(made, name):
    port, turns, ask, answer, operation = EARLY[name]
    x = made.connect(port)
    login(x, turns)
    x.ask(ask, 10_000)
    x.answer(answer, 10_700)
    x.reset()
    (row,) = [r for r in made.rows() if r["operation"] == operation]
    assert (row["request_bytes"], row["response_bytes"], row["latency_ns"]) == (len(ask), len(answer), 700_000), row


@pytest.mark.parametrize("name", EARLY)
def test_a_question_without_its_end_has_the_bytes_that_came(made, name):
    port, turns, ask, _, operation = EARLY[name]
    x = made.connect(port)
    login(x, turns)
    x.ask(ask)
    x.reset(0)
    (row,) = [r for r in made.rows() if r["operation"] == operation]
    assert row["result"] != "ok" and row["request_bytes"] == len(ask), row


@pytest.mark.parametrize("end", ("fin", "reset"))
@pytest.mark.parametrize("name", CUT)
def test_an_answer_that_is_cut_has_the_bytes_that_came(made, name, end):
    port, turns, ask, answer, operation = CUT[name]
    x = made.connect(port)
    login(x, turns)
    x.ask(ask)
    x.answer(answer)
    getattr(x, end)()
    (row,) = [r for r in made.rows() if r["operation"] == operation]
    assert row["result"] != "ok" and (row["request_bytes"], row["response_bytes"]) == (len(ask), len(answer)), row


@pytest.mark.parametrize("name", BETWEEN)
def test_what_is_pushed_between_a_question_and_its_answer_is_no_part_of_it(made, name):
    port, turns, message, operation = BETWEEN[name]
    _, _, ask, answer, asked = EACH[name.split()[0].rstrip(",")]
    if name == "mqtt 5":
        ask, answer = mqtt(0x82, b"\0\1\0\0\5topic\0"), mqtt(0x90, b"\0\1\0\0")
    x = made.connect(port)
    login(x, turns)
    x.ask(ask, 10_000)
    x.answer(message, 10_300)
    x.answer(answer, 10_700)
    x.fin()
    rows = made.rows()
    (pushed,), (row,) = [r for r in rows if r["operation"] == operation], [r for r in rows if r["operation"] == asked]
    assert (pushed["result"], pushed["response_bytes"]) == ("one-way", len(message)), pushed
    assert (row["result"], row["response_bytes"], row["latency_ns"]) == ("ok", len(answer), 700_000), row


def extended(text, flush=False):
    return pg(b"P", b"\0" + text + b"\0\0\0") + pg(b"B", bytes(8)) + pg(b"E", bytes(5)) + (pg(b"H") if flush else b"")


ROWS = pg(b"1") + pg(b"2") + pg(b"D", b"\0\1\0\0\0\1x")
DONE = pg(b"C", b"SELECT 1\0")


def test_each_of_several_executes_has_its_own_end_and_bytes(made):
    x = made.connect(5432)
    login(x, PG_OPEN)
    x.ask(extended(b"select a from t") + extended(b"select b from t") + extended(b"select c from t") + pg(b"S"), 10_000)
    x.answer(ROWS + DONE, 11_000)
    x.answer(ROWS, 12_000)
    x.answer(DONE, 13_000)
    x.answer(ROWS + DONE + pg(b"Z", b"I"), 14_000)
    got = [(r["operation"], r["latency_ns"] // 1000, r["response_bytes"]) for r in made.rows()[1:]]
    n = len(ROWS + DONE)
    assert got == [("select a from t", 1000, n), ("select b from t", 3000, n), ("select c from t", 4000, n + 6)]


@pytest.mark.parametrize("end", (b"C", b"s"), ids=("whole", "a part"))
def test_an_execute_that_is_flushed_is_over_before_its_client_goes_on(made, end):
    """A second of thinking is not the first one's time, nor the second's."""
    x = made.connect(5432)
    login(x, PG_OPEN)
    over = DONE if end == b"C" else pg(b"s")
    x.ask(extended(b"select a from t", True), 10_000)
    x.answer(ROWS + over, 11_000)
    x.ask(extended(b"select b from t", True), 1_011_000)
    x.answer(ROWS + over, 1_013_000)
    x.ask(pg(b"S"), 2_013_000)
    x.answer(pg(b"Z", b"I"), 2_014_000)
    n = len(ROWS + over)
    assert [(r["operation"], r["latency_ns"] // 1000, r["response_bytes"]) for r in made.rows()[1:]] == [("select a from t", 1000, n), ("select b from t", 2000, n + 6)]


def test_an_execute_whose_transaction_fails_at_its_end_has_failed(made):
    x = made.connect(5432)
    login(x, PG_OPEN)
    x.ask(extended(b"insert into t select 1", True), 10_000)
    x.answer(ROWS + DONE, 11_000)
    x.ask(pg(b"S"), 12_000)
    x.answer(pg(b"E", b"SERROR\0C23503\0Mx\0\0") + pg(b"Z", b"I"), 13_000)
    assert [(r["result"], r["status"], r["latency_ns"] // 1000) for r in made.rows()[1:]] == [("error", "23503", 3000)]


@pytest.mark.parametrize("push, told", ((b">2\r\n$10\r\ninvalidate\r\n*1\r\n$1\r\nk\r\n", "invalidate"), (b">2\r\n+invalidate\r\n*1\r\n+k\r\n", "invalidate"),
                                        (b">3\r\n+message\r\n+a\r\n+hi\r\n", "message"), (b">1\r\n$21\r\ntracking-redir-broken\r\n", "push"), (b">2\r\n$3\r\nfoo\r\n:1\r\n", "push"),
                                        (b">1\r\n:1\r\n", "push")))
def test_whatever_redis_pushes_is_told(made, push, told):
    x = made.connect(6379)
    x.ask(resp(b"GET", b"k"), 1000)
    x.answer(b"$2\r\nhi\r\n", 2000)
    for i, byte in enumerate(push):
        x.answer(bytes([byte]), 10_000 + i)
    x.ask(resp(b"GET", b"k"), 20_000)
    x.answer(b"$2\r\nhi\r\n", 21_000)
    assert made.told() == [("GET k", "ok", ""), (told, "one-way", ""), ("GET k", "ok", "")]


def test_a_quiet_request_that_fails_is_told(made):
    x = made.connect(11211)
    x.ask(struct.pack("!BBHBBHIIQ", 0x80, 17, 1, 8, 0, 0, 11, 1, 0) + bytes(8) + b"khi" + struct.pack("!BBHBBHIIQ", 0x80, 10, 0, 0, 0, 0, 0, 2, 0))
    x.answer(struct.pack("!BBHBBHIIQ", 0x81, 17, 0, 0, 0, 0x82, 13, 1, 0) + b"Out of memory" + struct.pack("!BBHBBHIIQ", 0x81, 10, 0, 0, 0, 0, 0, 2, 0))
    assert sorted(made.told()) == [("noop", "ok", ""), ("setq", "error", "ERROR"), ("setq k", "one-way", "")]
