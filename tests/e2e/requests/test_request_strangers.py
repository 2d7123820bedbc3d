# SPDX-License-Identifier: Apache-2.0
"""Requests of clients that sonde-maps has not told of when they are stored, as on a host that is too busy: the probes kept at the first
connection who it was."""
import os
import signal
import subprocess
import sys
import time

import pytest
from conftest import comm_of, need, need_root, sql_all

CLIENT = "import sys, time, urllib.request as u\nfor _ in range(5):\n u.urlopen(sys.argv[1]).read()\n time.sleep(0.3)\n"


def children(pid):
    with open(f"/proc/{pid}/task/{pid}/children", encoding="ascii") as f:
        return [int(p) for p in f.read().split()]


@pytest.mark.long
def test_clients_that_ended_before_they_were_known_have_their_name_and_cgroup(capture, store):
    need_root()
    need("tracepoints of system calls (tracefs)", "/sys/kernel/tracing/events/syscalls/sys_enter_write")
    server = subprocess.Popen([sys.executable, "-c", "import http.server as h\ns = h.HTTPServer(('127.0.0.1', 0), h.SimpleHTTPRequestHandler)\n"
                               "print(s.server_port, flush=True)\ns.serve_forever()"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    port = int(server.stdout.readline())
    cap = capture(program="sonde-l7")
    maps = next(p for p in children(cap.pid) if comm_of(p) == "sonde-maps")
    os.kill(maps, signal.SIGSTOP)
    try:
        clients = [subprocess.Popen([sys.executable, "-c", CLIENT, f"http://127.0.0.1:{port}/"]) for _ in range(3)]
        comms = {p.pid: comm_of(p.pid) for p in clients}
        for p in clients:
            p.wait(30)
        time.sleep(3)  # their requests are stored
    finally:
        os.kill(maps, signal.SIGCONT)
    cap.stop()
    server.kill()
    server.wait()
    for pid, comm in comms.items():
        rows = sql_all(store, "SELECT r.comm, p.cgroup, sum(r.requests) AS n FROM requests r JOIN processes p ON p.pid = r.pid"
                              f" WHERE r.pid = {pid} AND r.side = 'client' AND r.protocol = 'http' GROUP BY 1, 2")
        assert rows and all(r["comm"] == comm and r["cgroup"] for r in rows), (rows, cap.said())
    assert "[unknown]" not in cap.said(), cap.said()
