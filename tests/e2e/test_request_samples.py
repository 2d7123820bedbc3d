# SPDX-License-Identifier: Apache-2.0
"""Samples by request: what a thread does while it serves one is found by the request's name, and nothing else is."""
import http.client
import json
import os
import subprocess

import pytest

from conftest import BIN, WORKLOADS, Capture, need_root, sql_all

ASKED = {"/burn": 25, "/lock": 25, "/quick": 25}
PLANNED_NS = 40_000_000


class Server:
    def __init__(self, *args):
        self.p = subprocess.Popen([os.path.join(WORKLOADS, "serves"), *args], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.pid, self.port = self.p.pid, int(self.p.stdout.readline())

    def ask(self, paths):
        """Each path as often as it says, by turns, on one connection that is kept."""
        c = http.client.HTTPConnection("127.0.0.1", self.port)
        for turn in range(max(paths.values())):
            for path, times in paths.items():
                if turn < times:
                    c.request("GET", path)
                    assert c.getresponse().read() == b"ok"
        c.close()

    def end(self):
        self.p.stdin.close()
        self.p.wait(timeout=30)
        self.p.stdout.close()


@pytest.fixture(scope="module")
def served(tmp_path_factory):
    """One recording by three families, in which a server of threads and one with a loop were asked."""
    need_root()
    store = str(tmp_path_factory.mktemp("inflight"))
    maps = str(tmp_path_factory.mktemp("maps") / "maps")
    owner = subprocess.Popen([os.path.join(BIN, "sonde-maps"), "--socket", maps, "--store", store], stdin=subprocess.DEVNULL)
    servers = {"threads": Server(), "loop": Server("loop")}
    caps = []
    try:
        while not os.path.exists(maps):
            assert owner.poll() is None
        for program in ("sonde-l7", "sonde-cpu", "sonde-offcpu"):
            caps.append(Capture(store, "--maps-socket", maps, program=program))
            caps[-1].start()
        for server in servers.values():
            server.ask(ASKED)
        done = [cap.stop() for cap in reversed(caps)]
    finally:
        for cap in caps:
            cap.close()
        for server in servers.values():
            server.end()
        owner.terminate()
        owner.wait(timeout=30)
    assert [d["lost_total"] for d in done] == [0, 0, 0], done
    return store, {name: s.pid for name, s in servers.items()}


def stacks(store, pid, *args):
    out = subprocess.run([os.path.join(BIN, "sonde"), "stacks", "--store", store, "--pid", str(pid), "-n", "100", "--json", *args],
                         capture_output=True, text=True)
    if out.returncode:
        return out, {}
    said = json.loads(out.stdout)
    return said, {r["function"]: r for r in said["rows"]}


def test_a_request_that_computes_has_its_function_and_not_the_other_ones(served):
    store, pids = served
    said, rows = stacks(store, pids["threads"], "--request", "GET /burn")
    assert "serve_burning" in rows and "serve_locked" not in rows, rows
    whole = stacks(store, pids["threads"])[1]["serve_burning"]["total_samples"]
    kept = len(sql_all(store, f"SELECT 1 FROM request_log WHERE pid = {pids['threads']} AND side = 'server' AND operation LIKE '%/burn'"))
    assert 0 < rows["serve_burning"]["total_samples"] <= whole
    if kept == ASKED["/burn"]:
        assert rows["serve_burning"]["total_samples"] == whole, "it runs nowhere else"
