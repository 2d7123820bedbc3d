# SPDX-License-Identifier: Apache-2.0
"""Family l7 where much comes and goes: connections by the thousand, and loaders that are killed under load (make long-requests)."""
import json
import os
import signal
import subprocess
import sys

import procfs
import pytest

from conftest import WORKLOADS, Capture, need, need_root, sql_all
from containers import fake_container
from sonded import until
from test_l7 import Talk, both, counts, entries, programs, shown_programs
from tlsservers import PYTHON, TALK, Server, asked, certificate, client, probes_in

pytestmark = [pytest.mark.live, pytest.mark.requests]

# Eight threads that ask a server of this process for as long as standard input is open; each answer is compared. Prints how many there were.
LOAD = """
import socket, sys, threading, time
def serve(s):
    with s:
        while s.recv(4096):
            s.sendall(b"HTTP/1.1 200 OK\\r\\nContent-Length: 2\\r\\n\\r\\nok")
def accept(server):
    while True:
        threading.Thread(target=serve, args=(server.accept()[0],), daemon=True).start()
server, over, n, failed = socket.create_server(("127.0.0.1", 0)), False, [0] * 8, []
threading.Thread(target=accept, args=(server,), daemon=True).start()
def ask(i):
    with socket.create_connection(server.getsockname()) as s:
        while not over:
            s.sendall(b"GET /load HTTP/1.1\\r\\nHost: x\\r\\n\\r\\n")
            if not s.recv(4096).endswith(b"ok"):
                failed.append(i)
                return
            n[i] += 1
            time.sleep(0.002)
threads = [threading.Thread(target=ask, args=(i,)) for i in range(8)]
for t in threads: t.start()
print("begun", flush=True)
sys.stdin.read()
over = True
for t in threads: t.join()
assert not failed
print(sum(n), flush=True)
"""


# N connections, one after the other, with three questions each, whose answers have 3000 bytes: {"port", "bytes"} of both directions together.
SHORT = """
import json, socket, sys, threading
ASK, N, CONNECTIONS = b"GET /short HTTP/1.1\\r\\nHost: x\\r\\n\\r\\n", 3000, int(sys.argv[1])
ANSWER = b"HTTP/1.1 200 OK\\r\\nContent-Length: %d\\r\\n\\r\\n" % N + b"x" * N
def take(s, n):
    while n:
        got = s.recv(n)
        assert got
        n -= len(got)
def accept(server):
    while True:
        s, _ = server.accept()
        with s:
            for _ in range(3):
                take(s, len(ASK))
                s.sendall(ANSWER)
            assert not s.recv(1)
server = socket.create_server(("127.0.0.1", 0))
threading.Thread(target=accept, args=(server,), daemon=True).start()
for _ in range(CONNECTIONS):
    with socket.create_connection(server.getsockname()) as s:
        for _ in range(3):
            s.sendall(ASK)
            take(s, len(ANSWER))
print(json.dumps({"port": server.getsockname()[1], "bytes": CONNECTIONS * 3 * (len(ASK) + len(ANSWER))}), flush=True)
sys.stdin.read()
"""


@pytest.fixture(autouse=True)
def rights():
    need_root()
    need("bpftool", "/usr/sbin/bpftool")


def maps_of(pid):
    """The ids of the BPF maps that this process has descriptors of."""
    return {int(said["map_id"]) for said in procfs.fdinfo(pid) if "map_id" in said}


def shown_maps():
    shown = subprocess.run(["/usr/sbin/bpftool", "-j", "map", "show"], check=True, capture_output=True, text=True).stdout
    return {m["id"] for m in json.loads(shown)}


def test_ten_thousand_connections_come_and_go_and_the_maps_are_as_empty_as_before(store):
    with fake_container() as (container, prefix):
        cap = Capture(store, "--cgroup", f"/docker/{container}", program="sonde-l7")
        try:
            cap.start()
            storm = subprocess.Popen([*prefix, os.path.join(WORKLOADS, "connstorm"), "10000", "1500", "50"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
            did = json.loads(storm.stdout.readline())
            assert 50 <= entries(storm.pid, did["server"]) <= 102, "those that are still open, both ends"
            storm.communicate("\n", timeout=180)
            assert until(lambda: not entries(storm.pid, did["server"]), 30)
            done = cap.stop(60)
        finally:
            cap.close()
    rows = sql_all(store, f"SELECT side, sum(seen) AS seen, sum(parsed + skipped + blind) AS told FROM request_bytes WHERE service = '127.0.0.1:{did['port']}' GROUP BY 1")
    seen = {r["side"]: r["seen"] for r in rows}
    assert all(r["seen"] == r["told"] for r in rows)
    if not done["lost_total"]:
        assert seen == dict.fromkeys(("client", "server"), did["tx"] + did["rx"]), done


def parser_of(cap):
    done = subprocess.run(["pgrep", "-P", str(cap.pid), "-f", "--", "--parse"], capture_output=True, text=True, check=False)
    return int(done.stdout) if done.stdout.strip() else None


def test_where_more_is_said_than_can_be_read_whole_connections_are_shed_and_told(store):
    with fake_container() as (container, prefix):
        cap = Capture(store, "-v", "--cgroup", f"/docker/{container}", program="sonde-l7")
        try:
            cap.start()
            assert until(lambda: parser_of(cap), 60)
            os.kill(parser_of(cap), signal.SIGSTOP)  # it has no turn for a while
            short = subprocess.Popen([*prefix, sys.executable, "-c", SHORT, "2000"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
            did = json.loads(short.stdout.readline())
            os.kill(parser_of(cap), signal.SIGCONT)
            short.communicate(timeout=360)
            done, said = cap.stop(60), cap.said()
        finally:
            cap.close()
    assert done["lost_total"] > 0 and "some connections are not read for a while" in said, done
    got = counts(store, f"service = '127.0.0.1:{did['port']}'")
    assert set(got) == set(both({("http", "GET x/short", "200", "ok"): 0})), got
    assert all(0 < n < 6000 and n % 3 == 0 for n in got.values()), got
    rows = sql_all(store, f"SELECT seen, parsed, skipped, blind FROM request_bytes WHERE service = '127.0.0.1:{did['port']}'")
    assert all(r["seen"] == r["parsed"] + r["skipped"] + r["blind"] and not r["blind"] for r in rows), rows
    nobodys = sql_all(store, "SELECT sum(seen) AS seen, sum(blind) AS blind FROM request_bytes WHERE side = 'capture'")[0]
    assert nobodys["seen"] == nobodys["blind"]
    assert sum(r["seen"] for r in rows) + nobodys["seen"] >= 2 * did["bytes"], "what the others said is blind"


def load(prefix):
    p = subprocess.Popen([*prefix, sys.executable, "-c", LOAD], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert p.stdout.readline() == "begun\n"
    return p


def test_a_loader_that_is_killed_under_load_harms_nobody_and_the_next_one_counts_on(store, tmp_path):
    pair = certificate(str(tmp_path))
    with fake_container() as (container, prefix), Server(*prefix, PYTHON, TALK, "sync", *pair) as tls:
        args = "-v", "--cgroup", f"/docker/{container}"
        busy = load(prefix)
        first = Capture(store, *args, program="sonde-l7")
        try:
            first.start()
            probes_in(first, "libssl.so.3")
            had, maps = programs(first.pid), maps_of(first.pid)
            assert client(pair[0], tls.port, 40, "/before", prefix) == 40
            first.kill()
        finally:
            first.close()
        assert client(pair[0], tls.port, 40, "/between", prefix) == 40, "its probes are gone, and took nothing with them"
        second = Capture(store, *args, program="sonde-l7")
        try:
            second.start()
            probes_in(second, "libssl.so.3")
            talk = Talk(prefix)
            did = talk.go()
            talk.end()
            assert client(pair[0], tls.port, 40, "/after", prefix) == 40
            assert until(lambda: not had & shown_programs(), 60), had & shown_programs()
            assert until(lambda: not (maps - maps_of(second.pid)) & shown_maps(), 60)
            assert busy.poll() is None
            answered = int(busy.communicate(timeout=360)[0])
            done = second.stop(60)
        finally:
            second.close()
            busy.kill()
    assert answered > 100 and busy.returncode == 0
    if done["lost_total"]:
        return  # a host so busy that connections were shed: what they were is told as lost
    where = f"pid = {talk.pid} AND service = '127.0.0.1:{did['ports']['plain']}' AND operation LIKE 'GET shop/item/%'"
    assert counts(store, where) == both({("http", "GET shop/item/{id}", "200", "ok"): 120})
    assert asked(store, tls.port, "server").get(("GET /after", "200")) == 40, asked(store, tls.port, "server")
