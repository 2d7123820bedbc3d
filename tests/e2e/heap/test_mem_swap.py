# SPDX-License-Identifier: Apache-2.0
"""A server in a container of which half is in swap: what a request waits for memory, and what it reads back, is the request's."""
import contextlib
import http.client
import json
import os
import subprocess
import sys
import time

import pytest

from conftest import BIN, Capture, need_root, sql_all
from containers import fake_container

LIMIT, HELD = 48, 96  # MiB
TURNS, PAGES = 20, 150

SERVER = f"""
import http.server, mmap, random, resource
held = mmap.mmap(-1, {HELD} << 20, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
for at in range(0, len(held), 4096):
    held[at] = 1
def cold():
    for _ in range({PAGES}):
        held[random.randrange(len(held) // 4096) * 4096] = 2
def hot():
    return sum(range(20000))
class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    def do_GET(self):
        cold() if self.path == "/cold" else hot()
        body = str(resource.getrusage(resource.RUSAGE_SELF).ru_majflt).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)
    def log_message(self, *args):
        pass
server = http.server.HTTPServer(("127.0.0.1", 0), Handler)
print(server.server_port, resource.getrusage(resource.RUSAGE_SELF).ru_majflt, flush=True)
server.serve_forever()
"""


@contextlib.contextmanager
def swap(folder):
    """A file of this host to swap to: only what is in a container at its limit goes there, as all others have room."""
    path = os.path.join(folder, "swap")
    with open(path, "wb") as f:
        for _ in range(2 * HELD):
            f.write(bytes(1 << 20))
    os.chmod(path, 0o600)
    for command in (["mkswap", path], ["swapon", path]):
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            pytest.skip(f"missing: {command[0]} of a file: {done.stderr.strip()}")
    try:
        yield
    finally:
        subprocess.run(["swapoff", path], check=False)


def limited(container_id):
    """The limit of a container, of memory without swap."""
    for path in (f"/sys/fs/cgroup/memory/docker/{container_id}/memory.limit_in_bytes", f"/sys/fs/cgroup/docker/{container_id}/memory.max",
                 f"/sys/fs/cgroup/unified/docker/{container_id}/memory.max"):
        with contextlib.suppress(OSError), open(path, "w", encoding="ascii") as f:
            f.write(str(LIMIT << 20))
            return
    pytest.skip("missing: a memory controller that can be written")


def asked(connection, path):
    """How many pages the process has read back until the answer, as it says."""
    connection.request("GET", path)
    return int(connection.getresponse().read())


@pytest.mark.long
def test_what_a_request_reads_back_from_swap_and_waits_for_memory_is_its_own(sonde, store, scratch):
    need_root()
    maps = os.path.join(scratch, "maps")
    with contextlib.ExitStack() as stack:
        stack.enter_context(swap(scratch))
        container, prefix = stack.enter_context(fake_container())
        limited(container)
        owner = stack.enter_context(subprocess.Popen([os.path.join(BIN, "sonde-maps"), "--socket", maps, "--store", store], stdin=subprocess.DEVNULL))
        stack.callback(owner.terminate)
        server = stack.enter_context(subprocess.Popen([*prefix, sys.executable, "-c", SERVER], stdout=subprocess.PIPE, text=True))
        stack.callback(server.kill)
        port, told = map(int, server.stdout.readline().split())
        while not os.path.exists(maps):
            assert owner.poll() is None
        caps = [Capture(store, "--maps-socket", maps, "--recording", 7, "--cgroup", f"/docker/{container}", program=p) for p in ("sonde-l7", "sonde-mem")]
        for cap in caps:
            stack.callback(cap.close)
            cap.start()
        connection = http.client.HTTPConnection("127.0.0.1", port)
        read = {"/hot": 0, "/cold": 0}
        for _ in range(TURNS):
            for path in read:
                before, told = told, asked(connection, path)
                read[path] += told - before
            time.sleep(0.1)
        connection.close()
        for cap in reversed(caps):
            cap.stop(60)
        pid = server.pid
    if read["/cold"] < TURNS * PAGES / 10:
        pytest.skip(f"missing: pages that go to swap ({read})")

    def of_requests(kind, path):
        done = sonde("stacks", "--type", kind, "-p", pid, "--request", f"GET {path}", "--json", "-n", "1000", store=store)
        assert done.returncode in (0, 4), done.stderr
        return {r["function"]: r["self_value"] for r in json.loads(done.stdout)["rows"]} if not done.returncode else {}

    back = {path: of_requests("majorfaults", path).get("[swap]", 0) for path in read}
    waited = {path: sum(of_requests("memwait", path).values()) for path in read}
    (whole,) = sql_all(store, "SELECT sum(value) AS ns FROM amounts WHERE type = 'memwait' AND pid = ?", (pid,))
    took = sql_all(store, "SELECT sum(total_us) * 1000 AS ns FROM request_log WHERE pid = ? AND side = 'server' AND operation = 'GET /cold'", (pid,))
    print(read, back, waited, whole, took)
    assert back["/cold"] == pytest.approx(read["/cold"], rel=0.15), (read, back)
    assert back["/hot"] <= read["/hot"] + 0.05 * read["/cold"], (read, back)
    assert 0 < waited["/cold"] <= took[0]["ns"] and waited["/cold"] >= 0.8 * whole["ns"], (waited, whole, took)
    assert waited["/hot"] <= 0.1 * waited["/cold"], waited
