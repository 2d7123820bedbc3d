# SPDX-License-Identifier: Apache-2.0
"""Kernels that refuse some kinds of BPF iterators (here: itershim.so refuses their programs by name). The families go on: what can be had
in another way is the same, of the rest it is said what is missing."""
import json
import os
import subprocess
import sys
import time

import pytest
from conftest import BIN, WORKLOADS, need, need_root, sql_all
from sonded import until
from test_net import rows, sums_kept, talker  # noqa: F401 (a fixture)
from test_pstack import Standing

SHIM = os.path.join(WORKLOADS, "itershim.so")
HELD = 3000


@pytest.fixture(autouse=True)
def rights():
    need_root()
    need("itershim.so (make workloads)", SHIM)


def refusing(load="", attach=""):
    return {**os.environ, "LD_PRELOAD": SHIM, "ITERSHIM": load, "ITERSHIM_LINK": attach}


def is_over(pid):
    """All of its descriptors are closed."""
    try:
        with open(f"/proc/{pid}/stat", encoding="utf-8") as f:
            return f.read().rpartition(")")[2].split()[0] in "ZX"
    except OSError:
        return True


WAYS = {"accepted": {}, "not loaded": {"load": "net_read"}, "not attached": {"attach": "net_read"}}


@pytest.mark.parametrize("way", WAYS)
def test_open_connections_are_the_same_however_their_map_is_read(capture, store, talker, way):  # noqa: F811
    """Many stay open, and are read again and again, while others come and go; none is told as ended, and none twice."""
    net = capture("-v", program="sonde-net", env=refusing(**WAYS[way]))
    assert ("the map is read by look-ups" in net.said()) == (way != "accepted"), net.said()
    storm = subprocess.Popen([os.path.join(WORKLOADS, "connstorm"), "6000", "1000", str(HELD)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    told = json.loads(storm.stdout.readline())  # it is through with the others
    assert until(lambda: rows(store, f"SELECT 1 FROM flows WHERE pid = {storm.pid} AND port = {told['port']} AND open_now = {HELD}"), 30)
    time.sleep(3)  # readings in which nothing moves
    assert sums_kept(store, f"pid = {storm.pid} AND port = {told['port']}")["closed"] == told["opened"]
    storm.stdin.close()
    storm.wait(30)
    assert until(lambda: is_over(told["server"]), 30)  # it is killed, and closes its ends after that
    time.sleep(1)  # the last ends wait for an acknowledgement, which the kernel may put off
    net.stop()
    at = f"port = {told['port']} AND side = "
    client, server = (sums_kept(store, f"pid = {pid} AND {at} '{side}'") for pid, side in ((storm.pid, "client"), (told["server"], "server")))
    all_ = told["opened"] + HELD
    assert client == {"attempts": all_, "opened": all_, "closed": all_, "tx_bytes": told["tx"], "rx_bytes": told["rx"]}
    assert server == {"opened": all_, "closed": all_, "tx_bytes": told["rx"], "rx_bytes": told["tx"]}


@pytest.mark.parametrize("way", WAYS)
def test_bytes_of_an_open_connection_and_its_owner_are_read_while_it_is_open(capture, store, talker, way):  # noqa: F811
    server, client = talker("serve", "4", "127.0.0.1"), talker("client")
    server.tell("client_first")
    client.ask({"address": "127.0.0.1", "port": server.said["port"], "mode": "keep"})  # it is there before the capture
    net = capture("-v", program="sonde-net", env=refusing(**WAYS[way]))
    assert until(lambda: rows(store, f"SELECT 1 FROM flows WHERE pid = {client.pid} AND peer_pid = {server.pid} AND open_now = 1"), 20)
    client.tell({"mode": "use", "ask": 5000, "reply": 70_000})  # both wait for the other's end
    where = f"pid = {client.pid} AND peer_pid = {server.pid} AND side = 'client'"
    assert until(lambda: sums_kept(store, where) == {"tx_bytes": 5000, "rx_bytes": 70_000}, 20), sums_kept(store, where)
    net.stop()


LACKS = {  # which program is refused, and whether doctor says so
    "sonde-net": ("net_sweep", "connections from before the capture"),
    "sonde-l7": ("l7_sweep", "closed Unix and UDP connections"),
    "sonde-offcpu": ("offcpu_seed", "threads that sleep all the time are not seen"),
}


@pytest.mark.parametrize("program", LACKS)
@pytest.mark.parametrize("how", ["load", "attach"])
def test_a_family_records_without_an_iterator_that_is_refused_and_says_what_is_missing(capture, store, program, how):
    name, missing = LACKS[program]
    if program == "sonde-l7":
        need("tracepoints of system calls (tracefs)", "/sys/kernel/tracing/events/syscalls/sys_enter_write")
    cap = capture(program=program, env=refusing(**{how: name}))
    server = subprocess.Popen([sys.executable, "-c", "import http.server as h\ns = h.HTTPServer(('127.0.0.1', 0), h.SimpleHTTPRequestHandler)\n"
                               "print(s.server_port, flush=True)\ns.serve_forever()"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    port = int(server.stdout.readline())
    for _ in range(20):
        subprocess.run([sys.executable, "-c", f"import urllib.request as u; u.urlopen('http://127.0.0.1:{port}/').read()"], check=True)
    cap.stop()
    server.kill()
    server.wait()
    assert missing in cap.said()
    table = {"sonde-net": "flows", "sonde-l7": "requests", "sonde-offcpu": "wait_totals"}[program]
    assert sql_all(store, f"SELECT 1 FROM {table} WHERE pid = {server.pid} LIMIT 1"), cap.said()


@pytest.mark.parametrize("program", LACKS)
def test_doctor_says_what_a_refused_iterator_costs(store, program):
    name, missing = LACKS[program]
    got = subprocess.run([f"{BIN}/{program}", "--check", "--json", "--store", str(store)], env=refusing(f"{name} iterates"), stdout=subprocess.PIPE,
                         text=True, check=True)
    assert missing in got.stdout
    assert any(c["state"] == "ok" and c["name"] == "programs" for c in json.loads(got.stdout)["items"]), got.stdout


def test_doctor_says_nothing_of_an_iterator_that_costs_nothing(store):
    check = [f"{BIN}/sonde-net", "--check", "--json", "--store", str(store)]
    said = [[c["name"] for c in json.loads(subprocess.run(check, env=env, stdout=subprocess.PIPE, text=True, check=True).stdout)["items"]]
            for env in (refusing(), refusing("net_read"))]
    assert said[0] == said[1]


def test_processes_are_read_from_proc_where_the_kernel_does_not_list_them(capture, work, store, sql):
    before = work("burn", 60000)
    c = capture("--freq", 499, env=refusing("on_task"))
    told = work("burn", 1000, 1, "--note=later").told()
    c.stop()
    for pid in (before.pid, told["pid"]):
        got = sql(store, "SELECT sum(c.samples) AS n FROM cpu_samples c JOIN stacks s ON s.id = c.stack_id WHERE c.pid = ? AND c.comm = 'burn'"
                         " AND s.folded LIKE '%burn_thread;burn_middle;burn_leaf%'", (pid,))
        assert got[0]["n"] >= 100, (pid, got)
    args = sql(store, "SELECT args, how FROM processes WHERE pid = ? AND how <> 'exec'", (told["pid"],))
    assert args[-1]["args"].endswith("burn 1000 1 --note=later") and args[-1]["how"] == "exit", args


def test_stacks_at_this_moment_are_told_where_the_kernel_lists_no_descriptors(store, scratch):
    need("waits-nofp", os.path.join(WORKLOADS, "waits-nofp"))
    with Standing(["poll"], cwd=scratch) as still:
        got = subprocess.run([f"{BIN}/sonde-pstack", "-p", str(still.pid), "--store", store], env=refusing("pstack_file"), stdout=subprocess.PIPE,
                             stderr=subprocess.PIPE, text=True, timeout=60, check=True)
    assert "way_a" in got.stdout and "cannot read which sockets" in got.stderr, got
