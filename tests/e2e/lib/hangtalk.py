# SPDX-License-Identifier: Apache-2.0
"""Requests that hang: servers of several protocols and their clients in one process, by lines on stdin.

"ask" opens a connection for each of ASKED and asks; it prints as JSON what was asked: [protocol, operation, when (seconds since 1970),
the client's port]. "answer" answers all of it, "leave" closes the clients' ends, and each prints an empty object when that is done. It ends when stdin does.
"""
import json
import os
import socket
import struct
import sys
import threading
import time

PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"


def frame(kind, flags, stream, body=b""):
    return struct.pack(">I", len(body))[1:] + bytes([kind, flags]) + struct.pack(">I", stream) + body


def fields(*pairs):
    return b"".join(b"\0" + bytes([len(k)]) + k + bytes([len(v)]) + v for k, v in pairs)


def grpc(path):
    return PREFACE + frame(4, 0, 0) + frame(1, 4, 1, fields((b":method", b"POST"), (b":scheme", b"http"), (b":path", path), (b":authority", b"h"),
                                                           (b"content-type", b"application/grpc"))) + frame(0, 1, 1, b"\0\0\0\0\0")


def resp(*words):
    return b"*%d\r\n" % len(words) + b"".join(b"$%d\r\n%s\r\n" % (len(w), w) for w in words)


def pg(kind, body=b""):
    return kind + struct.pack(">I", len(body) + 4) + body


SELECT = pg(b"Q", b"SELECT * FROM pages WHERE title = 'Main'\0")
STARTUP = struct.pack(">II", 8 + len(b"user\0wiki\0\0"), 196608) + b"user\0wiki\0\0"
# protocol, operation, what the client says at first and what the server answers to that, the question, the answer's begin (at once), its end
ASKED = [
    ("http", "GET shop/report", b"", b"", b"GET /report HTTP/1.1\r\nHost: shop\r\n\r\n", b"", b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi"),
    *[("postgres", "SELECT * FROM pages WHERE title = ?", STARTUP, pg(b"R", struct.pack(">I", 0)) + pg(b"Z", b"I"), SELECT, b"",
       pg(b"C", b"SELECT 0\0") + pg(b"Z", b"I"))] * 3,
    ("redis", "BLPOP jobs", b"", b"", resp(b"BLPOP", b"jobs", b"0"), b"", resp(b"jobs", b"x")),
    ("http2", "GRPC h/shop.Orders/Place", b"", b"", grpc(b"/shop.Orders/Place"), frame(4, 0, 0),
     frame(1, 4, 1, fields((b":status", b"200"), (b"content-type", b"application/grpc"))) + frame(1, 5, 1, fields((b"grpc-status", b"0")))),
    ("http2", "GRPC h/etcdserverpb.Watch/Watch", b"", b"", grpc(b"/etcdserverpb.Watch/Watch"),
     frame(4, 0, 0) + frame(1, 4, 1, fields((b":status", b"200"), (b"content-type", b"application/grpc"))), frame(1, 5, 1, fields((b"grpc-status", b"0")))),
]


def read(sock, n):
    while n:
        n -= len(sock.recv(n)) or n


class Talk:
    def __init__(self, asked):
        _, _, hello, welcome, question, begin, self.rest = asked
        with socket.socket() as server:
            server.bind(("127.0.0.1", 0))
            server.listen()
            self.client = socket.create_connection(server.getsockname())
            self.server, _ = server.accept()
        if hello:
            self.client.sendall(hello)
            read(self.server, len(hello))
            self.server.sendall(welcome)
            read(self.client, len(welcome))
        self.at = time.time()
        self.port = self.client.getsockname()[1]
        self.client.sendall(question)
        threading.Thread(target=self.serve, args=(len(question), begin), daemon=True).start()

    def serve(self, n, begin):
        read(self.server, n)
        if begin:
            self.server.sendall(begin)

    def answer(self):
        self.server.sendall(self.rest)
        self.client.recv(65536)

    def leave(self):
        self.client.close()
        self.server.close()


def main():
    talks = []
    print(json.dumps({"pid": os.getpid()}), flush=True)
    for line in sys.stdin:
        if line == "ask\n":
            talks = [Talk(a) for a in ASKED]
            print(json.dumps([[a[0], a[1], t.at, t.port] for a, t in zip(ASKED, talks)]), flush=True)
            continue
        for t in talks:
            t.answer() if line == "answer\n" else t.leave()
        print("{}", flush=True)


if __name__ == "__main__":
    main()
