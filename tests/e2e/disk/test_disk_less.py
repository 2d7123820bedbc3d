# SPDX-License-Identifier: Apache-2.0
"""What sonde-disk and sonde-l7 record when sonded tells them to do less (--targets-fd), against programs that know."""
import contextlib
import http.client
import http.server
import math
import os
import threading
import time

import pytest
from conftest import Capture, need_root, sql_all
from test_disk_calls import calls, calls_needed, folder  # noqa: F401

READS, EACH, CONNECTIONS = 20000, 4, 120


@contextlib.contextmanager
def reduced(store, program, step):
    """Yields a function that ends it, and gives what it told."""
    need_root()
    read_fd, write_fd = os.pipe()
    os.write(write_fd, b"=%d\n" % step)
    c = Capture(store, "--targets-fd", read_fd, program=program, pass_fds=[read_fd])
    os.close(read_fd)
    try:
        c.start()
        yield c.stop
    finally:
        c.close()
        os.close(write_fd)


def about(found, true, of):
    """One in `of` is drawn by chance, and counts for all of these: within five standard errors."""
    assert abs(found - true) <= 5 * math.sqrt(true * (of - 1)), (found, true)
    assert found % of == 0, found


@pytest.mark.parametrize("step", [1, 2])
def test_reads_of_files_are_estimates_and_what_makes_a_file_grow_is_exact(store, folder, step):  # noqa: F811
    calls_needed()
    path = os.path.join(folder, "some")
    with open(path, "wb") as f:
        f.write(bytes(4096))
    with reduced(store, "sonde-disk", step) as stop, open(path, "rb+", buffering=0) as f:
        for _ in range(READS):
            os.pread(f.fileno(), 100, 0)
        for i in range(10):
            os.posix_fallocate(f.fileno(), 0, 8192 * (i + 1))
        stop()
    found = calls(store, path)
    about(found["read"][0], READS, 4 ** step)
    assert found["read"][1] == 100 * found["read"][0]
    assert found["write"][0] == 10 if "write" in found else True


class Quiet(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self):
        self.send_response(200)
        self.send_header("Content-Length", "2")
        self.end_headers()
        self.wfile.write(b"ok")

    def log_message(self, *_):
        pass


def test_requests_are_those_of_some_connections_and_these_are_whole(store):
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Quiet) as server, reduced(store, "sonde-l7", 1) as stop:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        clients = [http.client.HTTPConnection(*server.server_address) for _ in range(CONNECTIONS)]
        for _ in range(EACH):
            for c in clients:
                c.request("GET", "/")
                c.getresponse().read()
        for c in clients:
            c.close()
        time.sleep(2)
        stop()
        server.shutdown()
    for side in ("client", "server"):
        (row,) = sql_all(store, f"SELECT coalesce(sum(requests), 0) AS n FROM requests WHERE pid = {os.getpid()} AND side = '{side}' AND result = 'ok'")
        assert row["n"] % EACH == 0, row
        assert 0.05 * CONNECTIONS <= row["n"] / EACH <= 0.55 * CONNECTIONS, row
