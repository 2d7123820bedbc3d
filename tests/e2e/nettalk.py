# SPDX-License-Identifier: Apache-2.0
"""Programs that talk over sockets and know what they said. Run as a child: python3 nettalk.py WHAT ARGS...; each prints one line of
JSON when it is ready, does what its standard input asks for, line by line, and answers each with a line of JSON."""
import contextlib
import json
import os
import select
import signal
import socket
import struct
import sys


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
    """One conversation: a request of so many bytes, an answer of so many, and an end."""
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


if __name__ == "__main__":
    {"serve": serve, "client": client, "pair": pair}[sys.argv[1]](*sys.argv[2:])
