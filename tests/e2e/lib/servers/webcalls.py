#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Answers of gRPC-Web of several sizes, each one call of the server's, in clear or inside TLS.

webcalls.py [CERT KEY]
Prints its port, connects to itself, waits for a line, then asks: the sizes of SIZES, as HOW has it, each with a status of its own
(grpc-status 0, 5, 13 in turns), on one connection for each of HOW. Prints {PATH: STATUS}, and waits until standard input ends."""
import base64
import json
import socket
import ssl
import struct
import sys
import threading

SIZES = [1000, 100_000, 262_144, 262_200, 300_000, 1_000_000, 400_000, 300_000, 300_000, 300_000, 100, 2_000_000]
HOW = ["length", "chunks", "pieces", "text", "frames", "frames in pieces", "frames of text"]  # frames: over HTTP/2, the status at the end of the last DATA
CODES = (0, 5, 13)


def body(size, code):
    trailers = b"grpc-status:%d\r\ngrpc-message:x\r\n" % code
    return b"\0" + struct.pack("!I", size) + b"\0" * size + b"\x80" + struct.pack("!I", len(trailers)) + trailers


def answer(sock, how, data):
    head = b"HTTP/1.1 200 OK\r\nContent-Type: application/grpc-web+proto\r\n"
    if how == "text":
        data, head = base64.b64encode(data), b"HTTP/1.1 200 OK\r\nContent-Type: application/grpc-web-text\r\n"
    if how == "chunks":
        parts = [head, b"Transfer-Encoding: chunked\r\n\r\n", b"%x\r\n" % len(data), data, b"\r\n0\r\n\r\n"]
    else:
        parts = [head, b"Content-Length: %d\r\n\r\n" % len(data), data]
    if how != "pieces" or isinstance(sock, ssl.SSLSocket):
        sock.sendall(b"".join(parts))
        return
    pieces = parts[:-1] + [data[i:i + 50_000] for i in range(0, len(data), 50_000)]
    whole, sent = b"".join(pieces), sock.sendmsg(pieces)
    sock.sendall(whole[sent:])


def frame(kind, flags, stream, data=b""):
    return struct.pack("!I", len(data))[1:] + bytes([kind, flags]) + struct.pack("!I", stream) + data


def field(name, value):
    return b"\0" + bytes([len(name)]) + name + bytes([len(value)]) + value


def answer2(sock, how, stream, data):
    if how.endswith("text"):
        data = base64.b64encode(data)
    frames = [frame(1, 4, stream, b"\x88" + field(b"content-type", b"application/grpc-web" + (b"-text" if how.endswith("text") else b"+proto")))]
    frames += [frame(0, 0, stream, data[i:i + 16384]) for i in range(0, len(data), 16384)] + [frame(0, 1, stream)]
    if how.endswith("pieces"):
        for each in frames:
            sock.sendall(each)
    else:
        sock.sendall(b"".join(frames))


def talk2(sock, how):
    """HTTP/2 without a look at windows."""
    got = b""
    sock.sendall(frame(4, 0, 0))
    for i, size in enumerate(SIZES):
        while not got.endswith(b"12345"):
            more = sock.recv(4096)
            if not more:
                return
            got += more
        got = b""
        answer2(sock, how, 2 * i + 1, body(size, CODES[i % len(CODES)]))


def read2(sock, at_once):
    """Up to the frame that ends the stream."""
    got, at = b"", 0
    while True:
        while len(got) - at < 9 or len(got) - at < 9 + int.from_bytes(got[at:at + 3], "big"):
            got = got[at:] + sock.recv(at_once)
            at = 0
        if got[at + 3] == 0 and got[at + 4] & 1:
            return
        at += 9 + int.from_bytes(got[at:at + 3], "big")


def serve(listener, wrap):
    for how in HOW:
        sock, _ = listener.accept()
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 4_000_000)
        threading.Thread(target=talk2 if how.startswith("frames") else talk, args=(wrap(sock), how), daemon=True).start()


def talk(sock, how):
    for i, size in enumerate(SIZES):
        got = b""
        while not got.endswith(b"\r\n\r\n12345"):
            more = sock.recv(4096)
            if not more:
                return
            got += more
        answer(sock, how, body(size, CODES[i % len(CODES)]))


def read(sock, at_once):
    got = b""
    while b"\r\n\r\n" not in got:
        got += sock.recv(at_once)
    head, _, rest = got.partition(b"\r\n\r\n")
    n = next((int(x.split(b":")[1]) for x in head.split(b"\r\n") if x.startswith(b"Content-Length")), None)
    while len(rest) < n if n is not None else not rest[-7:] == b"\r\n0\r\n\r\n":
        rest += sock.recv(at_once)


def main():
    listener = socket.create_server(("127.0.0.1", 0))
    port = listener.getsockname()[1]
    inside = outside = lambda sock: sock
    if len(sys.argv) > 2:
        server, client = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER), ssl.create_default_context(cafile=sys.argv[1])
        server.load_cert_chain(sys.argv[1], sys.argv[2])
        inside, outside = (lambda sock: server.wrap_socket(sock, server_side=True)), (lambda sock: client.wrap_socket(sock, server_hostname="localhost"))
    print(port, flush=True)
    sys.stdin.readline()
    threading.Thread(target=serve, args=(listener, inside), daemon=True).start()
    did = {}
    for how in HOW:
        sock = socket.socket()
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4_000_000)
        sock.connect(("127.0.0.1", port))
        sock = outside(sock)
        for i, _ in enumerate(SIZES):
            path = "/%s.Shop/Buy%s" % (how.replace(" ", "-"), chr(65 + i))
            did[path] = CODES[i % len(CODES)]
            if how.startswith("frames"):
                head = field(b":method", b"POST") + field(b":scheme", b"http") + field(b":authority", b"h") + field(b":path", path.encode()) + field(b"content-type", b"application/grpc-web+proto")
                sock.sendall((b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + frame(4, 0, 0) if not i else b"") + frame(1, 4, 2 * i + 1, head) + frame(0, 1, 2 * i + 1, b"12345"))
                read2(sock, 4_000_000)
                continue
            sock.sendall(b"POST %s HTTP/1.1\r\nHost: h\r\nContent-Type: application/grpc-web+proto\r\nContent-Length: 5\r\n\r\n12345" % path.encode())
            read(sock, 4_000_000)
        sock.close()
    print(json.dumps(did), flush=True)
    sys.stdin.read()


main()
