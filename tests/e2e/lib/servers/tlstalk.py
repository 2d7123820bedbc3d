#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Programs that talk HTTP inside TLS, and know how often.

tlstalk.py sync|asyncio CERT KEY      a server; prints its port
tlstalk.py client CERT PORT N         N requests on one connection for the path that standard input says, each answered; prints N
tlstalk.py aioclient CERT PORT N      the same N times by asyncio, each on a connection of its own, whose first bytes are the client's
Every second answer of a server is in two writes."""
import asyncio
import http.client
import ssl
import sys
import threading
import socket

ANSWER = b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n"


def context(cert, key):
    c = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    c.load_cert_chain(cert, key)
    return c


def serve(conn, c):
    with c.wrap_socket(conn, server_side=True) as s:
        had, n = b"", 0
        while True:
            while b"\r\n\r\n" not in had:
                more = s.recv(4096)
                if not more:
                    return
                had += more
            had = had.split(b"\r\n\r\n", 1)[1]
            n += 1
            for part in (ANSWER, b"hello") if n % 2 else (ANSWER + b"hello",):
                s.sendall(part)


def sync(cert, key):
    c = context(cert, key)
    with socket.create_server(("127.0.0.1", 0)) as listener:
        print(listener.getsockname()[1], flush=True)
        while True:
            threading.Thread(target=serve, args=(listener.accept()[0], c), daemon=True).start()


async def answer(reader, writer):
    try:
        while True:
            await reader.readuntil(b"\r\n\r\n")
            writer.write(ANSWER + b"hello")
            await writer.drain()
    except (asyncio.IncompleteReadError, ConnectionError):
        writer.close()


async def loop(cert, key):
    server = await asyncio.start_server(answer, "127.0.0.1", 0, ssl=context(cert, key))
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()


def client(cert, port, n):
    path = sys.stdin.readline().strip()
    h = http.client.HTTPSConnection("localhost", int(port), context=ssl.create_default_context(cafile=cert))
    for i in range(int(n)):
        h.request("GET", path, headers={"Authorization": "Bearer planted-in-a-header"})
        r = h.getresponse()
        assert r.status == 200 and r.read() == b"hello"
    print(n)


async def many(cert, port, n):
    path = sys.stdin.readline().strip()
    for _ in range(int(n)):
        reader, writer = await asyncio.open_connection("localhost", int(port), ssl=ssl.create_default_context(cafile=cert))
        writer.write(f"GET {path} HTTP/1.1\r\nHost: localhost:{port}\r\nAuthorization: Bearer planted-in-a-header\r\n\r\n".encode())
        assert (await reader.readexactly(len(ANSWER) + 5)).endswith(b"hello")
        writer.close()
    print(n)


if __name__ == "__main__":
    if sys.argv[1] == "sync":
        sync(*sys.argv[2:])
    elif sys.argv[1] == "asyncio":
        asyncio.run(loop(*sys.argv[2:]))
    elif sys.argv[1] == "aioclient":
        asyncio.run(many(*sys.argv[2:]))
    else:
        client(*sys.argv[2:])
