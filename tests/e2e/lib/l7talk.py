# SPDX-License-Identifier: Apache-2.0
"""What test_l7 lets talk: one process with servers and clients of every kind that matters, which says what it did.

It opens a connection, says that it is ready, and does the rest at a line on stdin; then it prints what was asked and
answered as JSON, and ends when stdin does.
"""
import array
import json
import os
import select
import socket
import struct
import sys
import tempfile
import threading

SECRET = "s3cr3t-" + "Zq7"
BODY = b"x" * 100


def http_read(sock, buf):
    """One message, and what comes after it; None: the other end closed."""
    while b"\r\n\r\n" not in buf:
        more = sock.recv(65536)
        if not more:
            return None, b""
        buf += more
    head, _, rest = buf.partition(b"\r\n\r\n")
    size = next((int(line.split(b":")[1]) for line in head.split(b"\r\n") if line.lower().startswith(b"content-length")), 0)
    while len(rest) < size:
        more = sock.recv(1 << 20)
        if not more:
            return None, b""
        rest += more
    return head, rest[size:]


def splice_body(sock, f):
    left, right = os.pipe()
    f.seek(0)
    with open(left, "rb"), open(right, "wb"):
        sent = 0
        while sent < 200000:
            more = os.splice(f.fileno(), right, 200000 - sent)
            while more:
                part = os.splice(left, sock.fileno(), more)
                more, sent = more - part, sent + part


def answer(sock, head, how):
    path = head.split(b" ")[1]
    status = b"404 Not Found" if path.startswith(b"/missing") else b"500 Oops" if path.startswith(b"/broken") else b"200 OK"
    if path.startswith(b"/file"):
        with tempfile.TemporaryFile() as f:
            f.write(b"y" * 200000)
            f.flush()
            sock.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 200000\r\n\r\n")
            if path.endswith(b"spliced"):
                splice_body(sock, f)
                return
            at = 0
            while at < 200000:
                at += os.sendfile(sock.fileno(), f.fileno(), at, 200000 - at)
        return
    start = b"HTTP/1.1 %s\r\nContent-Length: %d\r\nX-Token: %s\r\n\r\n" % (status, len(BODY), SECRET.encode())
    if how == "writev":
        os.writev(sock.fileno(), [start, BODY[:40], BODY[40:]])
    elif how == "sendmsg":
        sock.sendmsg([start, BODY])
    else:
        sock.sendall(start + BODY)


def serve(sock, how="send"):
    buf = b""
    with sock:
        while True:
            head, buf = http_read(sock, buf)
            if head is None:
                return
            answer(sock, head, how)
            if head.split(b" ")[1] == b"/close":
                return


def listen(how, address=("127.0.0.1", 0)):
    server = socket.socket(socket.AF_INET if isinstance(address, tuple) else socket.AF_UNIX)
    server.bind(address)
    server.listen(64)

    def loop():
        while True:
            try:
                sock, _ = server.accept()
            except OSError:
                return
            threading.Thread(target=serve, args=(sock, how), daemon=True).start()
    threading.Thread(target=loop, daemon=True).start()
    return server


def connect(server):
    sock = socket.socket(server.family)
    sock.connect(server.getsockname())
    return sock


def request(path, method="GET", body=b""):
    return (f"{method} {path} HTTP/1.1\r\nHost: shop\r\nAuthorization: Bearer {SECRET}\r\nContent-Length: {len(body)}\r\n\r\n").encode() + body


def ask(sock, path, method="GET", body=b"", out=None):
    (out or sock).sendall(request(path, method, body))
    head, rest = http_read(sock, b"")
    assert head is not None and not rest
    return head


def keepalive(server):
    for c in range(3):
        with connect(server) as sock:
            for i in range(40):
                ask(sock, f"/item/{i}?password={SECRET}")
            ask(sock, "/missing")
            ask(sock, "/broken")
            ask(sock, "/form", "POST", f"card={SECRET}".encode() * 20)


def pipelined(server, n=60):
    with connect(server) as sock:
        sock.sendall(b"".join(request(f"/pipe/{i}") for i in range(n)))
        buf = b""
        for _ in range(n):
            head, buf = http_read(sock, buf)
            assert head


def many(server, path, n):
    with connect(server) as sock:
        for _ in range(n):
            ask(sock, path)


def duplicated(server):
    with connect(server) as sock, socket.socket(fileno=os.dup(sock.fileno())) as other:
        for _ in range(10):
            ask(sock, "/dup", out=other)


def hung_up(server):
    """The answer and the end of the connection are read by one call."""
    for _ in range(10):
        with connect(server) as sock:
            sock.sendall(request("/close"))
            end = select.poll()
            end.register(sock, select.POLLRDHUP)
            assert end.poll(10000)
            assert sock.recv(65536).startswith(b"HTTP/1.1 200")


def passed():
    """Who accepts hands the connection to a child, which answers. -> the child's pid"""
    left, right = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)
    pid = os.fork()
    if not pid:
        _, control, _, _ = right.recvmsg(1, socket.CMSG_SPACE(4))
        fd = array.array("i", control[0][2])[0]
        serve(socket.socket(fileno=fd))
        os._exit(0)
    server = socket.socket()
    server.bind(("127.0.0.1", 0))
    server.listen(1)
    with connect(server) as sock:
        inner, _ = server.accept()
        left.sendmsg([b"x"], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [inner.fileno()]))])
        inner.close()
        for _ in range(10):
            ask(sock, "/passed")
    os.waitpid(pid, 0)
    return pid, server.getsockname()[1]


def forked():
    """Who accepts leaves the connection to a child that it makes then. -> the child's pid, the port"""
    server = socket.create_server(("127.0.0.1", 0))
    with connect(server) as sock:
        inner, _ = server.accept()
        pid = os.fork()
        if not pid:
            sock.close()
            serve(inner)
            os._exit(0)
        inner.close()
        for _ in range(10):
            ask(sock, "/forked")
    os.waitpid(pid, 0)
    return pid, server.getsockname()[1]


def dns_name(name):
    return b"".join(bytes([len(p)]) + p.encode() for p in name.split(".")) + b"\0"


def dns():
    server = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    server.bind(("127.0.0.1", 0))

    def loop():
        for _ in range(6):
            q, peer = server.recvfrom(512)
            code = 3 if b"gone" in q else 0
            head = q[:2] + struct.pack(">HHHHH", 0x8180 | code, 1, 0 if code else 1, 0, 0)
            more = b"" if code else b"\xc0\x0c" + struct.pack(">HHIH", 1, 1, 60, 4) + bytes([10, 0, 0, 1])
            server.sendto(head + q[12:] + more, peer)
    t = threading.Thread(target=loop)
    t.start()
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as client:
        client.connect(server.getsockname())
        for i in range(6):
            name = "gone.example.org" if i == 5 else "www.example.org"
            client.send(struct.pack(">HHHHHH", 100 + i, 0x0100, 1, 0, 0, 0) + dns_name(name) + struct.pack(">HH", 1, 1))
            client.recv(512)
    t.join()
    return server.getsockname()[1]


def dns_in_vain():
    """A storm of names that are not there, some that are not valid text, and one that no server answers; as a resolver asks: of a peer, and looking whose the answer is."""
    names = ["www.there.test"] + ["gone.storm.test"] * 300 + ["www.broken.test"] * 4
    server = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    server.bind(("127.0.0.1", 0))
    with server, socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as client:
        client.connect(server.getsockname())
        for i, name in enumerate(names + ["www.silent.test"]):
            client.send(struct.pack(">HHHHHH", i, 0x0100, 1, 0, 0, 0) + dns_name(name) + struct.pack(">HH", 1, 1))
            q, peer = server.recvfrom(512)
            if i < len(names):
                server.sendto(q[:2] + struct.pack(">HHHHH", 0x8180 | (3 if b"storm" in q else 2 if b"broken" in q else 0), 1, 0, 0, 0) + q[12:], peer)
                client.recvfrom(512)


def upload(server):
    with connect(server) as sock:
        for _ in range(3):
            ask(sock, "/upload", "PUT", b"z" * 3_000_000)



def main():
    plain, vector, message = listen("send"), listen("writev"), listen("sendmsg")
    path = os.path.join(tempfile.mkdtemp(), "shop.sock")
    unix = listen("send", path)
    older = connect(plain)
    ask(older, "/older")
    print(json.dumps({"pid": os.getpid(), "ready": True}), flush=True)
    sys.stdin.readline()
    keepalive(plain)
    pipelined(vector)
    many(message, "/message", 20)
    many(unix, "/unix", 20)
    many(plain, "/file", 3)
    many(plain, "/file?spliced", 2)
    duplicated(plain)
    upload(plain)
    hung_up(plain)
    for _ in range(11):
        ask(older, "/older")
    older.close()
    child, passed_port = passed()
    heir, forked_port = forked()
    ports = {k: s.getsockname()[1] for k, s in (("plain", plain), ("vector", vector), ("message", message))}
    dns_in_vain()
    print(json.dumps({"child": child, "heir": heir, "ports": {**ports, "passed": passed_port, "forked": forked_port, "dns": dns()}, "unix": path}), flush=True)
    sys.stdin.readline()


if __name__ == "__main__":
    main()
