# SPDX-License-Identifier: Apache-2.0
"""A relay by asyncio, the server behind it, and the client before it: relay.py (loop UPSTREAM_PORT [own] | threads UPSTREAM_PORT | server | ask PORT). Each prints its port.

GET /KIND/WORD at a relay makes it ask the server for /WORD, with the word in X-Request-Id, too, as the id of a trace. KIND: now, as soon as it is read; pool, on a connection that is kept;
name, of localhost; wait, after some milliseconds; twice, one question after the other. With `own` a relay also asks for bbb... now and then, for no request.
`ask` reads lines "N SECONDS KIND..." and sends N requests at the same moment, again and again; it prints how many were answered."""
import asyncio
import hashlib
import http.client
import http.server
import itertools
import queue
import socketserver
import sys
import threading
import time

UP = int(sys.argv[2]) if len(sys.argv) > 2 else 0
WORDS = (hashlib.md5(str(i).encode()).hexdigest() for i in itertools.count())


# ---- a loop ----

async def ask_on(reader, writer, word, end):
    writer.write(f"GET /{word} HTTP/1.1\r\nHost: up\r\nX-Request-Id: {word}\r\n{'Connection: close' if end else 'X: y'}\r\n\r\n".encode())
    await writer.drain()
    head = await reader.readuntil(b"\r\n\r\n")
    await reader.readexactly(int(head.lower().split(b"content-length:")[1].split(b"\r\n")[0]))


async def ask(word, host="127.0.0.1"):
    reader, writer = await asyncio.open_connection(host, UP)
    await ask_on(reader, writer, word, True)
    writer.close()


async def ask_kept(word, free):
    pair = free.pop() if free else await asyncio.open_connection("127.0.0.1", UP)
    await ask_on(*pair, word, False)
    free.append(pair)


async def relayed(kind, word, free):
    if kind == "pool":
        await ask_kept(word, free)
        return
    if kind == "wait":
        await asyncio.sleep((1 + ord(word[0]) % 7) / 1000)
    await ask(word, "localhost" if kind == "name" else "127.0.0.1")
    if kind == "twice":
        await ask(word)


async def loop():
    free = []

    async def serve(reader, writer):
        try:
            head = await reader.readuntil(b"\r\n\r\n")
        except asyncio.IncompleteReadError:
            writer.close()
            return
        _, kind, word = head.split(b" ")[1].decode().split("/")
        await relayed(kind, word, free)
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\nok")
        await writer.drain()
        writer.close()

    async def background():
        while True:
            await asyncio.sleep(0.023)
            await ask("b" * 32)

    server = await asyncio.start_server(serve, "127.0.0.1", 0, backlog=256)
    print(server.sockets[0].getsockname()[1], flush=True)
    other = asyncio.create_task(background()) if sys.argv[3:] else None
    await asyncio.get_running_loop().run_in_executor(None, sys.stdin.read)
    if other:
        other.cancel()


# ---- threads ----

class Quiet(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def answer(self, body=b"ok\n"):
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


class Behind(Quiet):
    def do_GET(self):
        if self.path.rsplit("/", 1)[-1] != self.headers["X-Request-Id"]:
            sys.exit("a relay mixed two requests up")
        time.sleep(0.02)
        self.answer()


class Relay(Quiet):
    kept = queue.LifoQueue()

    def do_GET(self):
        _, kind, word = self.path.split("/")
        if kind == "wait":
            time.sleep((1 + ord(word[0]) % 7) / 1000)
        for _ in range(2 if kind == "twice" else 1):
            if kind != "pool" or self.kept.empty():
                c = http.client.HTTPConnection("localhost" if kind == "name" else "127.0.0.1", UP)
            else:
                c = self.kept.get()
            c.request("GET", f"/{word}", headers={"X-Request-Id": word})
            c.getresponse().read()
            if kind == "pool":
                self.kept.put(c)
            else:
                c.close()
        self.answer()


class Server(socketserver.ThreadingMixIn, http.server.HTTPServer):
    daemon_threads = True
    request_queue_size = 256

    def handle_error(self, *_):
        pass  # who only looks whether it is there resets the connection


def threads(handler):
    server = Server(("127.0.0.1", 0), handler)
    print(server.server_address[1], flush=True)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    sys.stdin.read()


# ---- the client ----

def one(port, kinds, together, end, turn, answered):
    while not together.broken:
        word = next(turn)
        c = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
        try:
            c.connect()
            together.wait(30)  # all of them are connected: the relay finds several at once
            c.request("GET", f"/{kinds[word[0]]}/{word[1]}", headers={"X-Request-Id": word[1]})
            answered.append(c.getresponse().status)
        except threading.BrokenBarrierError:
            pass
        c.close()
        if time.monotonic() > end:
            together.abort()


def ask_at_once(port):
    lock = threading.Lock()
    for line in sys.stdin:
        n, seconds, *kinds = line.split()
        n, count, answered = int(n), itertools.count(), []

        def numbered():
            while True:
                with lock:
                    k, word = next(count), next(WORDS)
                yield k % len(kinds), word
        together, end = threading.Barrier(n), time.monotonic() + float(seconds)
        all_ = [threading.Thread(target=one, args=(port, kinds, together, end, numbered(), answered)) for _ in range(n)]
        for t in all_:
            t.start()
        for t in all_:
            t.join()
        print(answered.count(200), len(answered), flush=True)


if __name__ == "__main__":
    if sys.argv[1] == "loop":
        asyncio.run(loop())
    elif sys.argv[1] == "ask":
        ask_at_once(UP)
    else:
        threads(Behind if sys.argv[1] == "server" else Relay)
