# SPDX-License-Identifier: Apache-2.0
"""A receiver in the place of ClickHouse: it takes INSERT ... FORMAT JSONEachRow over HTTP as ClickHouse does, and behaves as the test tells it to."""
import ctypes.util
import gzip
import http.server
import json
import re
import threading
import time
import urllib.parse

import pytest


@pytest.fixture(autouse=True)
def curl():
    """Skips tests of the pushers where libcurl is missing: without it they send nothing."""
    if not ctypes.util.find_library("curl"):
        pytest.skip("missing: libcurl.so.4 (package libcurl4)")


class Receiver:
    """rows: {table: [row, ...]} of what was taken. answers: what the next requests get instead of being taken: functions of the handler. tls: of ssl."""

    def __init__(self, user=None, tls=None):
        self.rows, self.answers, self.heads, self.bytes = {}, [], [], b""
        receiver = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self):
                body = self.rfile.read(int(self.headers["Content-Length"]))
                if self.headers.get("Content-Encoding") == "gzip":
                    body = gzip.decompress(body)
                receiver.bytes += body
                receiver.heads.append(dict(self.headers))
                if receiver.answers:
                    return receiver.answers.pop(0)(self, body)
                if user and self.headers.get("Authorization") != user:
                    return self.say(403, b"Code: 516. DB::Exception: Authentication failed " + str(self.headers.get("Authorization")).encode())
                receiver.take(self.path, body)
                return self.say(200)

            def say(self, status, body=b"", **heads):
                self.send_response(status)
                for k, v in heads.items():
                    self.send_header(k.replace("_", "-"), v)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *args):
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        if tls:
            self.server.socket = tls.wrap_socket(self.server.socket, server_side=True)
        self.server.handle_error = lambda *_: None  # a client that hangs up
        self.url = f"http{'s' if tls else ''}://127.0.0.1:{self.server.server_port}"
        threading.Thread(target=self.server.serve_forever, args=(0.02,), daemon=True).start()

    def take(self, path, body):
        query = urllib.parse.parse_qs(urllib.parse.urlparse(path).query)["query"][0]
        table = re.fullmatch(r"INSERT INTO sonde\.(\w+) FORMAT JSONEachRow", query)[1]
        assert body.endswith(b"\n")
        self.rows.setdefault(table, []).extend(json.loads(line) for line in body.splitlines())

    def deduped(self, table):
        """As ReplacingMergeTree keeps them: one of each (host, ts, id)."""
        return list({(r["host"], r["ts"], r["id"]): r for r in self.rows.get(table, [])}.values())

    @staticmethod
    def wait_for(what, most_s=60):
        until = time.monotonic() + most_s
        while not what():
            assert time.monotonic() < until
            time.sleep(0.01)

    def close(self):
        self.server.shutdown()
        self.server.server_close()
