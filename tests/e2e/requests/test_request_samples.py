# SPDX-License-Identifier: Apache-2.0
"""Samples by request: what a thread does while it serves one is found by the request's name, and nothing else is."""
import glob
import http.client
import json
import os
import shutil
import socket
import sqlite3
import subprocess

import pytest

from conftest import BIN, WORKLOADS, Capture, need_root, sql_all
from containers import fake_container

ASKED = {"/burn": 10, "/lock": 10, "/quick": 10}
IDLE = {"do_epoll_wait", "ep_poll", "tcp_recvmsg", "inet_csk_accept"}  # of the kernel: where threads wait for the next one
PLANNED_NS = 40_000_000  # of one that is slow: tests/workloads/serves.c


class Server:
    def __init__(self, prefix, *args, program=None):
        self.p = subprocess.Popen([*prefix, program or os.path.join(WORKLOADS, "serves"), *args], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
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

    def ask_at_once(self, paths):
        with socket.create_connection(("127.0.0.1", self.port)) as s:
            s.sendall(b"".join(f"GET {p} HTTP/1.1\r\nHost: x\r\n\r\n".encode() for p in paths))
            got = b""
            while got.count(b"\r\n\r\nok") < len(paths):
                got += s.recv(4096)

    def end(self):
        self.p.stdin.close()
        self.p.wait(timeout=180)
        self.p.stdout.close()


@pytest.fixture(scope="module")
def served(tmp_path_factory):
    """One recording by three families, in which a server of threads and one with a loop were asked."""
    need_root()
    store = str(tmp_path_factory.mktemp("inflight"))
    maps = str(tmp_path_factory.mktemp("maps") / "maps")
    owner = subprocess.Popen([os.path.join(BIN, "sonde-maps"), "--socket", maps, "--store", store], stdin=subprocess.DEVNULL)
    servers, caps = {}, []
    with fake_container() as (container, prefix):  # what else the host does is not captured
        try:
            return record(store, maps, owner, servers, caps, container, prefix)
        finally:
            for cap in caps:
                cap.close()
            for server in servers.values():
                server.end()
            owner.terminate()
            owner.wait(timeout=180)


def record(store, maps, owner, servers, caps, container, prefix):
    servers.update(threads=Server(prefix), loop=Server(prefix, "loop"))
    while not os.path.exists(maps):
        assert owner.poll() is None
    for program in ("sonde-l7", "sonde-cpu", "sonde-offcpu"):
        caps.append(Capture(store, "--maps-socket", maps, "--recording", 7, "--cgroup", f"/docker/{container}", program=program))
        caps[-1].start()
    servers["loop"].ask({"/quick": 1})  # and then it waits
    servers["threads"].ask(ASKED)
    servers["loop"].ask(ASKED)
    servers["threads"].ask_at_once(["/burn", "/lock"])
    servers["threads"].ask_at_once(["/burn", "/lock"])
    done = [cap.stop() for cap in reversed(caps)]
    assert [d["lost_total"] for d in done] == [0, 0, 0], done
    names_come(store)
    return store, {name: s.pid for name, s in servers.items()}


def names_come(store):
    """On a busy host a capture may end before its files are indexed: what it stored gains its names later."""
    subprocess.run([os.path.join(BIN, "sonde"), "symbolize", "--store", store], capture_output=True, check=False)
    assert not sql_all(store, "SELECT function FROM frames WHERE function LIKE 'serves+0x%'")


def sonde(*args):
    return subprocess.run([os.path.join(BIN, "sonde"), *map(str, args)], capture_output=True, text=True)


def stacks(store, pid, *args):
    """{function: row} of what the process did; {} where there is nothing."""
    out = sonde("stacks", "--store", store, "--pid", pid, "-n", 200, "--json", *args)
    assert out.returncode in (0, 4), out.stderr
    return {r["function"]: r for r in json.loads(out.stdout)["rows"]} if not out.returncode else {}


def kept(store, pid, path):
    return sql_all(store, f"SELECT total_us FROM request_log WHERE pid = {pid} AND side = 'server' AND operation = 'GET {path}'")


def test_a_request_that_computes_has_its_function_and_not_the_other_ones(served):
    store, pids = served
    rows = stacks(store, pids["threads"], "--request", "GET /burn")
    whole = stacks(store, pids["threads"])["serve_burning"]["total_samples"]
    assert 0 < rows["serve_burning"]["total_samples"] <= whole
    assert "serve_locked" not in rows, rows


def test_a_request_that_waits_for_a_lock_has_that_wait_and_no_more_than_it_took(served):
    store, pids = served
    rows = stacks(store, pids["threads"], "--request", "GET /lock", "--type", "offcpu")
    took = sum(r["total_us"] for r in kept(store, pids["threads"], "/lock"))
    assert "serve_locked" in rows and "serve_burning" not in rows, rows
    assert PLANNED_NS / 2 < rows["serve_locked"]["total_value"] <= took * 1000
    assert not {"hold", "accepting"} & set(rows), "threads that serve nobody"


def test_requests_that_came_together_have_none_of_each_others(served):
    store, pids = served
    assert len(kept(store, pids["threads"], "/lock")) and "serve_burning" not in stacks(store, pids["threads"], "--request", "GET /lock")
    tags = sql_all(store, f"SELECT tag FROM request_tag_row x JOIN process p ON p.id = x.process WHERE p.pid = {pids['threads']}")
    assert tags and len({r["tag"] for r in tags}) == len(tags), "each has its own"


def test_time_between_requests_is_nobodys(served):
    """Each connection is kept, and its thread waits in read for what comes next; the loop waits in epoll_wait."""
    store, pids = served
    for name in pids:
        for path in ASKED:
            rows = stacks(store, pids[name], "--request", f"GET {path}", "--type", "offcpu")
            took = sum(r["total_us"] for r in kept(store, pids[name], path))
            assert sum(r["self_value"] for r in rows.values()) <= took * 1000, (name, path, rows)
            assert not IDLE & set(rows), (name, path)
        assert IDLE & set(stacks(store, pids[name], "--type", "offcpu")), name


def test_what_a_loop_does_behind_an_answer_is_no_part_of_the_request(served):
    store, pids = served
    assert "loop_own_work" in stacks(store, pids["loop"])
    rows = stacks(store, pids["loop"], "--request", "GET /burn")
    assert "serve_burning" in rows and "loop_own_work" not in rows, rows


def test_only_those_that_took_longer(served):
    store, pids = served
    slow = stacks(store, pids["threads"], "--request", "GET /burn", "--slower-than", "30ms")
    assert slow["serve_burning"]["total_samples"] == stacks(store, pids["threads"], "--request", "GET /burn")["serve_burning"]["total_samples"]
    took = sorted(r["total_us"] for r in kept(store, pids["threads"], "/burn"))
    out = sonde("stacks", "--store", store, "--pid", pids["threads"], "--request", "GET /burn", "--slower-than", f"{took[-2] // 1000}ms")
    assert out.returncode == 0 and f"{sum(us > took[-2] // 1000 * 1000 for us in took)} kept request" in out.stderr, out.stderr
    assert stacks(store, pids["threads"], "--request", "GET /burn", "--slower-than", "p10")
    assert not stacks(store, pids["threads"], "--request", "GET /burn", "--slower-than", "1h")


def test_flame_draws_them_and_says_which_they_were(served, tmp_path):
    store, pids = served
    out = sonde("flame", "--store", store, "--pid", pids["threads"], "--request", "GET /burn", "-o", tmp_path / "x.folded")
    assert out.returncode == 0, out.stderr
    assert f"{len(kept(store, pids['threads'], '/burn'))} kept requests 'GET /burn'" in out.stderr
    drawn = (tmp_path / "x.folded").read_text()
    assert "serve_burning" in drawn and "serve_locked" not in drawn
    out = sonde("flame", "--store", store, "--pid", pids["threads"], "--request", "GET /burn", "-o", tmp_path / "x.html")
    assert out.returncode == 0 and "serve_burning" in (tmp_path / "x.html").read_text()


def test_what_cannot_be_answered_is_told(served):
    store, pids = served
    for args, code, says in ((("--request", "GET /nothing"), 4, "no request 'GET /nothing' was kept"),
                             (("--slower-than", "p99"), 2, "--slower-than needs --request"),
                             (("--request", "GET /burn", "--slower-than", "p100"), 2, "is a time (50ms) or a quantile (p99)"),
                             (("--request", "GET /burn", "--slower-than", "soon"), 2, "is a time (50ms) or a quantile (p99)")):
        out = sonde("stacks", "--store", store, *args)
        assert out.returncode == code and says in out.stderr, out.stderr
    out = sonde("flame", "--store", store, "--type", "wall", "--request", "GET /burn", "-o", "/dev/null")
    assert out.returncode == 2 and "--request needs --type cpu" in out.stderr


def test_an_archive_answers_the_same(served, tmp_path):
    store, pids = served
    copy = str(tmp_path / "copy")
    shutil.copytree(store, copy, symlinks=True)  # of a file that was refused the link says why, and leads nowhere
    before = stacks(copy, pids["threads"], "--request", "GET /burn")
    for path in glob.glob(os.path.join(copy, "*.db")):
        with sqlite3.connect(path) as db:
            db.execute("UPDATE meta SET value = 'another' WHERE key = 'boot_id'")
    out = sonde("seal", "--store", copy)
    assert out.returncode == 0 and "nothing" not in out.stdout, (out.stdout, out.stderr)
    assert stacks(copy, pids["threads"], "--request", "GET /burn") == before
