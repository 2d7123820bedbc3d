# SPDX-License-Identifier: Apache-2.0
"""A small service of a home server in four parts, each a program of its own, in which one thing after the other goes wrong while a file of its name is in
the folder: `incidentapp.py web|backend|names|load|hog|writer FOLDER`. The parts talk over loopback: load -> web -> backend, web -> names (DNS)."""
import gc
import http.client
import http.server
import os
import random
import socket
import struct
import subprocess
import sys
import threading
import time

WEB, BACKEND, NAMES = 8080, 8081, 53
ROLE, FOLDER = sys.argv[1], sys.argv[2]
LOCK, HELD, MINE = threading.Lock(), [], threading.local()


def on(what):
    return os.path.exists(os.path.join(FOLDER, what))


def crunch(n):
    s = 0
    for i in range(n):
        s += i * i
    return s


def crunch_more(n):
    s = 0
    for i in range(n):
        s += i * i % 7
    return s


def locked_stock():
    with LOCK:
        if on("lock"):
            time.sleep(0.03)
        while on("hang"):
            time.sleep(0.2)


def note():
    """Where there is no room it fails."""
    folder = os.path.join(FOLDER, "data")
    if not os.path.isdir(folder):
        return 200
    try:
        path = os.path.join(folder, f"note-{time.monotonic_ns()}")
        with open(path, "wb") as f:
            f.write(b"x" * 8192)
        os.unlink(path)
    except OSError:
        return 500
    return 200


def resolve():
    s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    s.settimeout(3)
    question = struct.pack(">HHHHHH", random.randrange(65536), 0x100, 1, 0, 0, 0) + b"\x07backend\x04home\x00" + struct.pack(">HH", 1, 1)
    s.connect(("127.0.0.1", NAMES))
    s.send(question)
    try:
        s.recv(512)
    finally:
        s.close()


def ask():
    for attempt in (1, 2):
        try:
            if not getattr(MINE, "c", None):
                MINE.c = http.client.HTTPConnection("127.0.0.1", BACKEND, timeout=10)
            MINE.c.request("GET", "/stock")
            a = MINE.c.getresponse()
            a.read()
            return a.status
        except OSError:
            MINE.c = None
            if attempt == 2:
                return 502
        except http.client.HTTPException:
            MINE.c = None
    return 502


def save():
    with open(os.path.join(FOLDER, f"saved-{threading.get_ident()}"), "wb") as f:
        f.write(b"x" * 65536)
        os.fsync(f.fileno())


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def log_message(self, *args):
        pass

    def answer(self, status):
        self.send_response(status)
        self.send_header("Content-Length", "2")
        self.end_headers()
        self.wfile.write(b"ok")


class Web(Handler):
    def do_GET(self):
        crunch(1000)
        if on("function"):
            crunch_more(150000)
        if on("gc"):
            gc.collect()
        locked_stock()
        if on("disk"):
            save()
        if on("child"):
            subprocess.run(["sleep", "0.05"], check=False)
        resolve()
        self.answer(max(ask(), note()))


class Backend(Handler):
    def do_GET(self):
        if on("statement"):
            time.sleep(0.06)
        self.answer(500 if on("errors") and random.random() < 0.4 else 200)


def serve(port, handler):
    server = http.server.ThreadingHTTPServer(("127.0.0.1", port), handler)
    server.daemon_threads = True
    server.serve_forever()


def names():
    s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    s.bind(("127.0.0.1", NAMES))
    while True:
        question, who = s.recvfrom(512)
        if on("names"):
            time.sleep(0.012)
        answer = question[:2] + struct.pack(">HHHHH", 0x8180, 1, 1, 0, 0) + question[12:] + b"\xc0\x0c" + struct.pack(">HHIH", 1, 1, 60, 4) + bytes([127, 0, 0, 1])
        s.sendto(answer, who)


def client():
    c = None
    while True:
        try:
            c = c or http.client.HTTPConnection("127.0.0.1", WEB, timeout=20)
            c.request("GET", "/work")
            c.getresponse().read()
        except (OSError, http.client.HTTPException):
            c = None
        time.sleep(0.04)


def load():
    for _ in range(4):
        threading.Thread(target=client, daemon=True).start()
    time.sleep(3600)


def hog():
    while True:
        crunch(100000) if on("hog") else time.sleep(0.1)


def writer():
    while True:
        if not on("disk"):
            time.sleep(0.1)
            continue
        with open(os.path.join(FOLDER, "written"), "wb") as f:
            for _ in range(8):
                f.write(b"x" * (1 << 20))
            os.fsync(f.fileno())


if ROLE == "web":
    HELD.extend([object() for _ in range(10)] for _ in range(20000))

    serve(WEB, Web)
elif ROLE == "backend":
    serve(BACKEND, Backend)
else:
    {"names": names, "load": load, "hog": hog, "writer": writer}[ROLE]()
