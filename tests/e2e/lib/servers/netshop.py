# SPDX-License-Identifier: Apache-2.0
"""A small shop behind gunicorn, and its worker: each request asks PostgreSQL and Redis and leaves a job; the worker takes jobs and asks PostgreSQL.
No library: each speaks to the servers as they are spoken to on the wire."""
import os
import socket
import struct


def connect(where):
    """`where` names a variable: PORT of this host, or HOST:PORT (HOST a name, or an address of IPv4 or IPv6)."""
    host, _, port = os.environ[where].rpartition(":")
    return socket.create_connection((host or "127.0.0.1", int(port)))


def message(c):
    kind, n = struct.unpack("!cI", c.recv(5, socket.MSG_WAITALL))
    return kind, c.recv(n - 4, socket.MSG_WAITALL) if n > 4 else b""


class Postgres:
    def __init__(self):
        self.c = connect("SHOP_POSTGRES")
        words = b"user\0postgres\0database\0postgres\0\0"
        self.c.sendall(struct.pack("!II", 8 + len(words), 0x30000) + words)
        self.ready()

    def ready(self):
        rows = 0
        while (got := message(self.c))[0] != b"Z":
            assert got[0] != b"E", got
            rows += got[0] == b"D"
        return rows

    def ask(self, sql):
        self.c.sendall(b"Q" + struct.pack("!I", len(sql) + 5) + sql.encode() + b"\0")
        return self.ready()


class Redis:
    def __init__(self, where="SHOP_REDIS"):
        self.c = connect(where)
        self.lines = self.c.makefile("rb")

    def ask(self, *words):
        self.c.sendall(b"*%d\r\n" % len(words) + b"".join(b"$%d\r\n%s\r\n" % (len(w), w) for w in map(str.encode, words)))
        return self.answer()

    def answer(self):
        line = self.lines.readline()
        if line[:1] == b"*":
            return [self.answer() for _ in range(int(line[1:]))]
        return self.lines.read(int(line[1:]) + 2)[:-2] if line[:1] == b"$" else line


at = {}


def application(environ, start):
    if not at:
        at.update(postgres=Postgres(), redis=Redis())
    assert at["postgres"].ask("SELECT 1") == 1
    at["redis"].ask("LPUSH", "jobs", "x")
    start("200 OK", [("Content-Length", "5")])
    return [b"sold\n"]


def work():
    postgres, redis = Postgres(), Redis()
    stats = Redis("SHOP_STATS") if "SHOP_STATS" in os.environ else None
    while True:
        redis.ask("BRPOP", "jobs", "0")
        postgres.ask("SELECT 2")
        if stats:
            stats.ask("INCR", "sold")
        redis.ask("INCR", "done")
