# SPDX-License-Identifier: Apache-2.0
"""How long requests lie in their server's socket, and how long it takes to the first byte of their answer, is what the server knows of it."""
import os
import re
import socket
import time

from conftest import need, need_root, sql_all
from sonded import until

ASK = b"GET /one/word HTTP/1.1\r\nHost: x\r\n\r\n"
ANSWER = b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nok", b"ok"
QUEUED_S, THINKS_S, WRITES_S = 0.04, 0.03, 0.02


def now():
    return time.monotonic_ns()


def lies_there(client):
    """All that this end of a TCP connection has sent waits at the other end."""
    if client.family == socket.AF_UNIX:
        return True  # it does as soon as it is sent
    local, remote = client.getsockname()[1], client.getpeername()[1]
    with open("/proc/net/tcp") as f:
        return any(re.search(rf":{remote:04X} \S+:{local:04X} 0[18] \S+:{len(ASK):08X} ", line) for line in f)


def serve(sock, known):
    """Answers one request, slowly."""
    before = now()
    assert sock.recv(4096) == ASK
    read = now()
    time.sleep(THINKS_S)
    first = now()
    sock.sendall(ANSWER[0])
    known["first"].append((first - read, now() - before))
    time.sleep(WRITES_S)
    sock.sendall(ANSWER[1])
    return before, read


def talk(server, known):
    """Three connections that a single thread has accepted ask at once, and one that it has not: it answers one after the other."""
    clients, accepted = [], []
    for i in range(4):
        clients.append(socket.socket(server.family))
        clients[i].connect(server.getsockname())
        if i < 3:
            accepted.append(server.accept()[0])
    for turn in range(2):
        sent = []
        for c in clients:
            sent.append(now())
            c.sendall(ASK)
        assert until(lambda: all(lies_there(c) for c in clients), 30)
        there = now()
        time.sleep(QUEUED_S)
        for i, c in enumerate(clients):
            if i == len(accepted):
                accepted.append(server.accept()[0])
            before, read = serve(accepted[i], known)
            known["queue"].append((before - there, read - sent[i]))
            got = b""
            while not got.endswith(b"okok"):
                got += c.recv(4096)
    for s in clients + accepted:
        s.close()


def listen(kind, folder):
    if kind == "tcp":
        return socket.create_server(("127.0.0.1", 0), backlog=16)
    server = socket.socket(socket.AF_UNIX)
    server.bind(os.path.join(folder, "server"))
    server.listen(16)
    return server


def what_was_measured_is_what_the_server_knows(store, name, known):
    rows = sql_all(store, "SELECT side, phase, sum(requests) AS n, sum(total_ns) AS ns, max(max_ns) AS most FROM request_phases WHERE service = ?"
                   " AND operation LIKE 'GET %' GROUP BY 1, 2", (name,))
    got = {(r["side"], r["phase"]): r for r in rows}
    assert set(got) == {("server", "queue"), ("server", "first-byte"), ("client", "first-byte")}, rows
    for phase, word in (("queue", "queue"), ("first", "first-byte")):
        row, least, most = got["server", word], [x[0] for x in known[phase]], [x[1] for x in known[phase]]
        assert row["n"] == 8
        assert sum(least) <= row["ns"] <= sum(most), (word, known[phase], rows)
        assert max(least) <= row["most"] <= max(most), (word, known[phase], rows)
    assert min(x[0] for x in known["queue"]) >= QUEUED_S * 1e9
    whole, = sql_all(store, "SELECT sum(total_ns) AS ns FROM requests WHERE service = ? AND side = 'server' AND operation LIKE 'GET %'", (name,))
    assert whole["ns"] - got["server", "first-byte"]["ns"] >= 8 * WRITES_S * 1e9, "the first byte is not the last one"


def test_the_time_in_the_socket_and_to_the_first_byte_is_what_the_server_knows(capture, store, sonde, tmp_path):
    need_root()
    need("the kernel's tracepoint sk_data_ready", "/sys/kernel/tracing/events/sock/sk_data_ready")
    did = []
    with listen("tcp", tmp_path) as tcp, listen("unix", tmp_path) as unix:
        cap = capture("--pid", os.getpid(), program="sonde-l7")
        for server, name in ((tcp, f"127.0.0.1:{tcp.getsockname()[1]}"), (unix, unix.getsockname())):
            did.append((name, {"first": [], "queue": []}))
            talk(server, did[-1][1])
        cap.stop()
    for name, known in did:
        what_was_measured_is_what_the_server_knows(store, name, known)
    shown = sonde("requests", "--side", "server", "--pid", os.getpid(), store=store, check=True).stdout
    assert "QUEUE P99" in shown and "FIRST P99" in shown
