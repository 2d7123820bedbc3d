# SPDX-License-Identifier: Apache-2.0
"""A running `sonde serve` for tests: its address, plain requests to it, and what became of its children."""
import http.client
import json
import os
import re
import signal
import socket
import subprocess
import tempfile
import urllib.parse

import procfs
from conftest import BIN


class Serve:
    """`sonde serve` at a free port of the loopback, or where `listen` says; ready once it has said its address."""

    def __init__(self, store, *args, listen="127.0.0.1:0", env=None):
        self.said = tempfile.TemporaryFile()
        if "--timeout" not in args:  # how long an answer takes is the machine's affair
            args = ("--timeout", "10m", *args)
        full = {**os.environ, "SONDE_STORE": str(store), **(env or {})}
        self.child = subprocess.Popen([f"{BIN}/sonde", "serve", "--listen", listen, *map(str, args)], env=full, stdin=subprocess.DEVNULL,
                                      stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        line = self.child.stderr.readline()
        assert "Ctrl-C" in line, line + self.child.stderr.read()
        self.url = line.split()[0]
        found = re.match(r"http://(.+):(\d+)/", self.url)
        self.host, self.port = (found[1].strip("[]"), int(found[2])) if found else (None, None)

    def ask(self, path, method="GET", headers=(), **query):
        """(status, headers, body) of one request."""
        if query:
            path += "?" + urllib.parse.urlencode([(k.replace("_", "-"), v) for k, vs in query.items() for v in (vs if isinstance(vs, list) else [vs])])
        c = http.client.HTTPConnection(self.host, self.port, timeout=600)
        try:
            c.request(method, path, headers=dict(headers))
            r = c.getresponse()
            return r.status, r.headers, r.read()
        finally:
            c.close()

    def error(self, path, status, method="GET", headers=(), **query):
        """What an error says: it has this status, and words."""
        got, _, body = self.ask(path, method, headers, **query)
        said = json.loads(body)
        assert (got, sorted(said)) == (status, ["error", "exit", "fix"]) and said["error"], (got, body)
        return said

    def connect(self):
        return socket.create_connection((self.host, self.port), timeout=60)

    def children(self):
        """pids of those that it started and that are there."""
        return procfs.children(self.child.pid)

    def end(self, sig=signal.SIGTERM):
        self.child.send_signal(sig)
        return self.child.wait(20)

    def close(self):
        if self.child.poll() is None:
            self.child.kill()
        self.child.wait()
        self.child.stderr.close()
        self.said.close()
