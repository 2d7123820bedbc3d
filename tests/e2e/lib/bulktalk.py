# SPDX-License-Identifier: Apache-2.0
"""Large questions and answers of protocols whose servers are not at hand: one end listens, the other one asks; each knows to the byte what is said.

LARGE: name -> (protocol, what is said first, the small question with its large answer and their operation, the large question with its small answer and
theirs), for bodies of SIZE bytes."""
import socket
import struct
import threading

from test_replay_each import AMQP_OPEN, CQL_START, amqp, cql
from test_replay_made import text16

SIZE = 10_000_000
BODY = b"x" * SIZE
FRAME = 131_064  # the most that RabbitMQ puts into a frame, by default


def kafka(*parts):
    body = b"".join(parts)
    return struct.pack("!i", len(body)) + body


def varint(n):
    out = b""
    while n > 127:
        out, n = out + bytes([n & 127 | 128]), n >> 7
    return out + bytes([n])


def mongo(n, to, document):
    body = bytes(5) + document
    return struct.pack("<iiii", 16 + len(body), n, to, 2013) + body


def bson(*fields):
    out = b"".join(kind + name + b"\0" + value for kind, name, value in fields)
    return struct.pack("<i", len(out) + 5) + out + b"\0"


def text(value):
    return struct.pack("<i", len(value) + 1) + value + b"\0"


def content(method, args):
    header = struct.pack("!HHQH", 60, 0, SIZE, 0)
    frames = b"".join(struct.pack("!BHI", 3, 1, len(BODY[i:i + FRAME])) + BODY[i:i + FRAME] + b"\xce" for i in range(0, SIZE, FRAME))
    return amqp(1, 60, method, args) + struct.pack("!BHI", 2, 1, len(header)) + header + b"\xce" + frames


def fetch_answer(partitions):
    """Of version 4."""
    rows = b"".join(struct.pack("!ihqqii", i, 0, 5, 5, 0, size) + BODY[:size] for i, size in enumerate(partitions))
    return kafka(struct.pack("!iii", 5, 0, 1), text16(b"t1"), struct.pack("!i", len(partitions)), rows)


FETCH = kafka(struct.pack("!hhi", 1, 4, 5), text16(b"cl"), struct.pack("!iiiiBi", -1, 500, 1, 1 << 24, 0, 1), text16(b"t1"), struct.pack("!i", 1), struct.pack("!iqi", 0, 0, 1 << 24))
# version 9: numbers of seven bits a byte, lists of tags
PRODUCE = kafka(struct.pack("!hhi", 0, 9, 5), text16(b"cl"), b"\0\0", struct.pack("!hi", 1, 1000), b"\2\3t1\2", struct.pack("!i", 0), varint(SIZE + 1), BODY, b"\0\0\0")
PRODUCED = kafka(struct.pack("!i", 5), b"\0\2\3t1\2", struct.pack("!ihqqq", 0, 0, 0, -1, 0), b"\1\0\0\0", struct.pack("!i", 0), b"\0")
LARGE = {
    "kafka": ("kafka", [], (FETCH, fetch_answer([SIZE]), "FETCH t1"), (PRODUCE, PRODUCED, "PRODUCE t1")),
    "mongodb": ("mongodb", [],
                (mongo(5, 0, bson((b"\2", b"find", text(b"people")), (b"\2", b"$db", text(b"app")))),
                 mongo(6, 5, bson((b"\3", b"cursor", bson((b"\4", b"firstBatch", bson((b"\3", b"0", bson((b"\2", b"v", text(BODY)))))))), (b"\1", b"ok", struct.pack("<d", 1)))),
                 "find app.people"),
                (mongo(7, 0, bson((b"\2", b"insert", text(b"people")), (b"\2", b"$db", text(b"app")), (b"\4", b"documents", bson((b"\3", b"0", bson((b"\2", b"v", text(BODY)))))))),
                 mongo(8, 7, bson((b"\1", b"ok", struct.pack("<d", 1)))), "insert app.people")),
    "cassandra": ("cassandra", CQL_START,
                  (cql(4, 5, 7, struct.pack("!i", 15) + b"SELECT c FROM t" + b"\0\1\0"), cql(0x84, 5, 8, struct.pack("!i", 2) + BODY), "SELECT c FROM t"),
                  (cql(4, 5, 7, struct.pack("!i", 28) + b"INSERT INTO t (c) VALUES (?)" + b"\0\1\1" + b"\0\1" + struct.pack("!i", SIZE) + BODY), cql(0x84, 5, 8, struct.pack("!i", 1)),
                   "INSERT INTO t (c) VALUES")),
    "amqp": ("amqp", [*AMQP_OPEN, (0, amqp(1, 20, 10, b"\0")), (1, amqp(1, 20, 11, bytes(4))), (0, amqp(1, 85, 10, b"\0")), (1, amqp(1, 85, 11))],
             (amqp(1, 60, 70, b"\0\0\1q\1"), content(71, struct.pack("!QB", 1, 0) + b"\0\1q" + bytes(4)), "GET q"),
             (content(40, b"\0\0\0\1q\0"), amqp(1, 60, 80, struct.pack("!QB", 1, 0)), "PUBLISH (default) q")),
}


def take(conn, n, first):
    """Reads n bytes: `first` of them, as drivers read a header, then pieces as large as they come. False: there are no more."""
    some = bytearray(1 << 20)
    while n:
        k = conn.recv_into(some, min(n, first or len(some)))
        first = max(0, first - k)
        if not k:
            return False
        n -= k
    return True


class Listener:
    """The end that answers: first what is said first, then the question whose size it is told. `first`: as take's."""

    def __init__(self, login, ask, answer, first=0):
        self.login, self.ask, self.answer, self.first = login, ask, answer, first
        self.socket = socket.create_server(("127.0.0.1", 0), backlog=128)
        self.port = self.socket.getsockname()[1]
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        while True:
            try:
                conn = self.socket.accept()[0]
            except OSError:
                return
            threading.Thread(target=self.serve, args=(conn,), daemon=True).start()

    def serve(self, conn):
        with conn:
            for side, said in [*self.login, (0, self.ask), (1, self.answer)]:
                if side:
                    conn.sendall(said)
                elif not take(conn, len(said), self.first):
                    return
            conn.recv(1)

    def once(self):
        """Asks it once, on a connection of its own."""
        with socket.create_connection(("127.0.0.1", self.port)) as conn:
            for side, said in [*self.login, (0, self.ask), (1, self.answer)]:
                if not side:
                    conn.sendall(said)
                else:
                    assert take(conn, len(said), self.first)

    def close(self):
        self.socket.close()
