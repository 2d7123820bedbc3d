# SPDX-License-Identifier: Apache-2.0
"""Programs that talk over sockets and know what they said. Run as a child: python3 nettalk.py WHAT ARGS...; each prints one line of
JSON when it is ready, does what its standard input asks for, line by line, and answers each with a line of JSON."""
import contextlib
import ctypes
import json
import mmap
import os
import select
import signal
import socket
import struct
import subprocess
import sys
import time


def say(**what):
    print(json.dumps(what), flush=True)


def read_all(c, n=None):
    got = 0
    with contextlib.suppress(ConnectionError):
        while n is None or got < n:
            part = c.recv(65536)
            if not part:
                break
            got += len(part)
    return got


def listener(family, address, port=0, backlog=128):
    s = socket.socket(socket.AF_INET6 if family != "4" else socket.AF_INET)
    if family == "mapped":
        s.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
    s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    s.bind((address, port))
    s.listen(backlog)
    return s


def answer(c, mode):
    """One conversation: a request and an answer of the given numbers of bytes, and an end."""
    head = c.recv(16, socket.MSG_WAITALL)
    if len(head) < 16:
        return {"rx": len(head), "tx": 0}
    ask, reply = struct.unpack("!QQ", head)
    got = 16 + (0 if mode == "unread" else read_all(c, ask - 16))
    if mode == "linger":
        c.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        reply = 0
    if mode == "unread":
        select.select([c], [], [])
        reply = 0
    c.sendall(b"y" * reply)
    if mode == "client_first":
        read_all(c)
    return {"rx": got, "tx": reply}


def serve(family, address, port="0", fork=""):
    s = listener(family, address, int(port))
    say(port=s.getsockname()[1], pid=os.getpid())
    for line in sys.stdin:
        mode = line.strip()
        if mode == "stop":
            break
        c, _ = s.accept()
        if fork:
            pid = os.fork()
            if not pid:
                r = answer(c, mode)
                c.close()
                say(pid=os.getpid(), **r)
                os._exit(0)
            c.close()
            os.waitpid(pid, 0)
            continue
        r = answer(c, mode)
        c.close()
        say(pid=os.getpid(), **r)


def client():
    """Lines: JSON {address, port, ask, reply, mode, n}"""
    say(pid=os.getpid())
    kept = []
    for line in sys.stdin:
        o = json.loads(line)
        mode = o.get("mode", "")
        if mode == "use":
            c = kept.pop()
            c.sendall(struct.pack("!QQ", o["ask"], o["reply"]) + b"x" * (o["ask"] - 16))
            got = read_all(c)
            c.close()
            say(tx=o["ask"], rx=got)
            continue
        c = socket.socket(socket.AF_INET6 if ":" in o["address"] else socket.AF_INET)
        try:
            if mode == "give_up":
                c.settimeout(0.2)
            c.connect((o["address"], o["port"]))
        except OSError as e:
            c.close()
            say(error=e.errno, name=type(e).__name__)
            continue
        if mode == "keep":
            kept.append(c)
            say(port=c.getsockname()[1])
            continue
        with contextlib.suppress(ConnectionError):
            c.sendall(struct.pack("!QQ", o["ask"], o["reply"]) + b"x" * (o["ask"] - 16))
        if mode == "half":
            c.shutdown(socket.SHUT_WR)
        got = read_all(c, o["reply"]) if mode == "client_first" else read_all(c)
        if mode == "killed":
            os.kill(os.getpid(), signal.SIGKILL)
        c.close()
        say(tx=o["ask"], rx=got)


def pair(path):
    """A child talks to us over a Unix socket and by datagrams, until our input ends."""
    s, u, bound = socket.socket(socket.AF_UNIX), socket.socket(socket.AF_INET, socket.SOCK_DGRAM), path.replace("ABSTRACT", "\0")
    s.bind(bound)
    s.listen(3)
    u.bind(("127.0.0.1", 0))
    child = os.fork()
    if not child:
        c, d = socket.socket(socket.AF_UNIX), socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        c.connect(bound)
        d.connect(u.getsockname())
        s.close()
        u.close()
        c.recv(1)  # until the parent is gone, however
        os._exit(0)
    a, _ = s.accept()
    say(pid=os.getpid(), child=child, udp=u.getsockname()[1])
    sys.stdin.read()
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    a.close()


def meet(shared, me):
    """Both processes go on from here at the same moment."""
    shared[me] = (shared[me] + 1) % 256
    while shared[1 - me] not in (shared[me], (shared[me] + 1) % 256):
        os.sched_yield()


def together(n, size):
    """N connections with a child, a question and an answer of SIZE bytes on each; then both close it at once."""
    n, size = int(n), int(size)
    shared, s = mmap.mmap(-1, 2), listener("4", "127.0.0.1")
    child = os.fork()
    c = None
    if child:
        say(pid=os.getpid(), child=child, port=s.getsockname()[1])
        sys.stdin.readline()
    meet(shared, bool(child))
    for _ in range(n):
        if child:
            c, _ = s.accept()
        else:
            c = socket.create_connection(s.getsockname())
            c.sendall(b"x" * size)
        read_all(c, size)
        if child:
            c.sendall(b"y" * size)
        meet(shared, bool(child))
        c.close()
    if not child:
        os._exit(0)
    os.waitpid(child, 0)
    say(closed=n)


def idle(n):
    """N idle connections to the program itself; a line closes them one after the other, one end and the other in turn."""
    s, both = listener("4", "127.0.0.1"), []
    for _ in range(int(n)):
        both.append(socket.create_connection(s.getsockname()))
        both.append(s.accept()[0])
    say(pid=os.getpid(), port=s.getsockname()[1])
    sys.stdin.readline()
    for c in both:
        c.close()
        time.sleep(0.001)
    say(closed=len(both))


def short(path, n):
    """N connections of a child over a Unix socket, one after the other, and as many datagrams to a UDP socket."""
    n, s, u = int(n), socket.socket(socket.AF_UNIX), socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    s.bind(path)
    s.listen(3)
    u.bind(("127.0.0.1", 0))
    child = os.fork()
    if not child:
        d = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        d.connect(u.getsockname())
        for _ in range(n):
            with socket.socket(socket.AF_UNIX) as c:
                c.connect(path)
                c.sendall(b"x" * 100)
                read_all(c, 1000)
            d.send(b"z" * 33)
        os._exit(0)
    for _ in range(n):
        a, _ = s.accept()
        a.recv(100, socket.MSG_PEEK)
        read_all(a, 100)
        a.sendall(b"y" * 1000)
        a.close()
    os.waitpid(child, 0)
    say(pid=os.getpid(), child=child, udp=u.getsockname()[1])


def of_file(c, f):
    """All that is left of a file, by sendfile(2)."""
    sent = 0
    while n := os.sendfile(c.fileno(), f.fileno(), None, 1 << 20):
        sent += n
    return sent


def through(c, to, n):
    """N bytes, by splice(2) through a pipe, from a file to a socket or the other way round."""
    (out, into), moved = os.pipe(), 0
    while moved < n:
        part = os.splice(c, into, min(n - moved, 65536))
        while part:
            did = os.splice(out, to, part)
            part, moved = part - did, moved + did
    os.close(out)
    os.close(into)
    return moved


class Ring:
    """io_uring(7) without a library, one entry at a time."""
    SETUP, ENTER, SEND, WAIT = 425, 426, 26, 1

    def __init__(self):
        libc, params = ctypes.CDLL(None, use_errno=True), ctypes.create_string_buffer(120)
        self.call = libc.syscall
        self.fd = self.call(self.SETUP, 1, params)
        if self.fd < 0:
            raise OSError(ctypes.get_errno(), "io_uring_setup")
        entries, more = struct.unpack_from("II", params.raw, 0)
        _, self.tail, _, _, _, _, self.array = struct.unpack_from("7I", params.raw, 40)
        self.head, _, self.mask, _, _, self.done = struct.unpack_from("6I", params.raw, 80)
        self.rings = mmap.mmap(self.fd, max(self.array + 4 * entries, self.done + 16 * more))
        self.asked = mmap.mmap(self.fd, 64 * entries, offset=0x10000000)

    def send(self, fd, data):
        buf = ctypes.create_string_buffer(data, len(data))
        self.asked[:64] = struct.pack("=BBHiQQIIQ", self.SEND, 0, 0, fd, 0, ctypes.addressof(buf), len(data), 0, 7).ljust(64, b"\0")
        struct.pack_into("I", self.rings, self.array, 0)
        struct.pack_into("I", self.rings, self.tail, struct.unpack_from("I", self.rings, self.tail)[0] + 1)
        assert self.call(self.ENTER, self.fd, 1, 1, self.WAIT, None, 0) == 1
        head, mask = struct.unpack_from("I", self.rings, self.head)[0], struct.unpack_from("I", self.rings, self.mask)[0]
        _, sent = struct.unpack_from("Qi", self.rings, self.done + 16 * (head & mask))
        struct.pack_into("I", self.rings, self.head, head + 1)
        assert sent > 0, sent
        return sent


def by_ring(c, data):
    ring, sent = Ring(), 0
    while sent < len(data):
        sent += ring.send(c.fileno(), data[sent:])
    os.close(ring.fd)
    return sent


def passed(c, there):
    """The connection goes to a child that was there before, by SCM_RIGHTS: it says 1000 bytes and closes it last."""
    socket.send_fds(there, [b"!"], [c.fileno()])
    c.close()
    return json.loads(there.recv(100))["tx"]


def heir(there):
    _, fds, _, _ = socket.recv_fds(there, 1, 1)
    if not fds:
        os._exit(0)
    with socket.socket(fileno=fds[0]) as c:
        c.sendall(b"p" * 1000)
    there.send(b'{"tx": 1000}')
    there.recv(1)  # until it is over
    os._exit(0)


def ways():
    """Lines: the way in which N bytes go to a child, which takes them in as that says; both know how many these are."""
    s, f = listener("4", "127.0.0.1"), os.memfd_create("said")
    here, there = socket.socketpair()
    other = os.fork()
    if not other:
        here.close()
        heir(there)
    there.close()
    (hears, tells), taker = os.pipe(), os.fork()
    if not taker:
        here.close()
        while True:
            c, _ = s.accept()
            got = through(c.fileno(), f, 300_000) if c.recv(1, socket.MSG_PEEK) == b"s" else read_all(c)
            read_all(c)
            c.close()
            os.write(tells, b"%d\n" % got)
    say(pid=os.getpid(), port=s.getsockname()[1], taker=taker, heir=other)
    heard = os.fdopen(hears)
    for line in sys.stdin:
        way, (said, name) = line.strip(), (os.memfd_create("say"), b"s" if line.strip() == "splice" else b"x")
        os.write(said, name * 300_000)
        os.lseek(said, 0, 0)
        with socket.create_connection(s.getsockname()) as c:
            if way == "sendfile":
                tx = of_file(c, os.fdopen(os.dup(said), "rb"))
            elif way == "splice":
                tx = through(said, c.fileno(), 300_000)
            elif way == "io_uring":
                try:
                    tx = by_ring(c, name * 300_000)
                except OSError:  # not built in, or not allowed
                    tx = 0
            elif way == "dup":
                with socket.socket(fileno=os.dup(c.fileno())) as again:
                    c.sendall(name * 1000)
                    c.close()
                    again.sendall(name * 2000)
                tx = 3000
            elif way == "inherited":
                tx = int(subprocess.run([sys.executable, "-c", f"import os; print(os.write({c.fileno()}, b'x' * 5000))"], pass_fds=[c.fileno()], check=True,
                                        capture_output=True).stdout)
            else:
                tx = passed(c, here)
        os.close(said)
        say(tx=tx, rx=int(heard.readline()))
    os.kill(taker, signal.SIGKILL)
    os.waitpid(taker, 0)
    here.close()
    os.waitpid(other, 0)


def question(name):
    labels = b"".join(bytes([len(x)]) + x.encode() for x in name.split("."))
    return struct.pack("!HHHHHH", 7, 0x100, 1, 0, 0, 0) + labels + b"\0" + struct.pack("!HH", 1, 1)


def resolver(addresses):
    """Answers questions for names, as {name: address}, in a child; the socket to ask it."""
    s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    s.bind(("127.0.0.1", 0))
    if os.fork():
        c = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        c.connect(s.getsockname())
        s.close()
        return c
    while True:
        asked, who = s.recvfrom(512)
        for name, address in addresses.items():
            if question(name)[12:] == asked[12:]:
                s.sendto(asked[:2] + struct.pack("!HHHHH", 0x8180, 1, 1, 0, 0) + asked[12:] + struct.pack("!HHHIH", 0xc00c, 1, 1, 60, 4)
                         + socket.inet_aton(address), who)


def named():
    """Lines: JSON {name, address, port}: asks for the name (null: does not) and connects; nothing listens there."""
    addresses = {"db.example.com": "10.99.0.5", "db2.example.com": "10.99.0.5"}
    dns = resolver(addresses)
    say(pid=os.getpid())
    for line in sys.stdin:
        o = json.loads(line)
        if o["name"]:
            dns.send(question(o["name"]))
            dns.recv(512)
        with socket.socket() as c, contextlib.suppress(ConnectionRefusedError):
            c.connect((o["address"], o["port"]))
        say(done=o["port"])


if __name__ == "__main__":
    {"serve": serve, "client": client, "pair": pair, "together": together, "idle": idle, "named": named, "short": short, "ways": ways}[sys.argv[1]](*sys.argv[2:])
