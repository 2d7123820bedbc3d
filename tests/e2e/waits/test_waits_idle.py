# SPDX-License-Identifier: Apache-2.0
"""Idle or work: real servers at rest, and at work that is known. At rest what they wait for is for somebody to ask, and hidden;
what they are made to wait for is shown."""
import glob
import json
import os
import signal
import subprocess
import time
import urllib.request

import pytest
import servers
from conftest import BIN, need, need_root, sql_all

pytestmark = pytest.mark.live
SECOND = 1_000_000_000

GO = """
package main
import ("net/http"; "os"; "time"; "sync"; "syscall")
var mu sync.Mutex
func main() {
    http.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) { w.Write([]byte("x")) })
    http.HandleFunc("/pipe", func(w http.ResponseWriter, r *http.Request) {
        var p [2]int; syscall.Pipe(p[:])
        go func() { time.Sleep(300 * time.Millisecond); syscall.Write(p[1], []byte("x")) }()
        b := make([]byte, 1); syscall.Read(p[0], b); w.Write(b)
    })
    http.ListenAndServe("127.0.0.1:" + os.Args[1], nil)
}
"""
NODE = """
const http = require('http'), fs = require('fs');
http.createServer((q, r) => { fs.readFile(q.url, (e, b) => r.end('x')); }).listen(+process.argv[1], '127.0.0.1');
"""
GIL = """
import os, threading, time
print(os.getpid())
time.sleep(0.5)  # its tables are made meanwhile
end = time.monotonic() + 2
def spin():
    while time.monotonic() < end: sum(range(200))
threads = [threading.Thread(target=spin) for _ in range(3)]
for t in threads: t.start()
time.sleep(2.2)  # and not in a lock of its own until they have ended
for t in threads: t.join()
"""


def start(make, *args, **kw):
    need_root()
    try:
        return make(*args, **kw)
    except servers.Missing as e:
        pytest.skip(f"missing: {e}")


def recorded(store, work):
    """By `sonde record`, which keeps what waits at its end: of a server at rest some threads do all the time."""
    c = subprocess.Popen([os.path.join(BIN, "sonde"), "record", "--store", store, "--families", "offcpu"], stderr=subprocess.PIPE,
                         stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, text=True)
    try:
        while "recording offcpu" not in c.stderr.readline():
            assert c.poll() is None
        work()
    finally:
        c.send_signal(signal.SIGINT)
        c.communicate(timeout=360)
    assert c.returncode == 0


def rows(sonde, store, comms, *args):
    """Blocked waits that ended inside, and those that did not: of idle ones the latter are most."""
    out = json.loads(sonde("waits", "--rec", "last", "--json", "-n", 10000, "--idle", *args, store=store, check=True).stdout)
    return [r for r in out["rows"] if r["comm"] in comms and r["reason"] != "run queue"]


def at_rest(found):
    work = sum(r["total_ns"] for r in found if not r["idle"])
    whole = sum(r["total_ns"] for r in found)
    assert whole > SECOND, found
    assert work < 0.05 * whole, [(r["comm"], r["reason"], r["function"], r["total_ns"]) for r in found if not r["idle"]]


def rest():
    time.sleep(2.5)  # as long as it is watched: nothing else ends it


def quiet(running):
    """Without the load that came with it."""
    while len(running.started) > 1:
        p, _ = running.started.pop()
        os.killpg(p.pid, 9)
        p.wait()
    return running


def get(port, path="/"):
    return urllib.request.urlopen(f"http://127.0.0.1:{port}{path}", timeout=30).read()


def test_nginx_waits_for_requests(sonde, store, scratch):
    server = quiet(start(servers.nginx, scratch))
    try:
        recorded(store, rest)
    finally:
        server.stop()
    found = rows(sonde, store, {"nginx"})
    assert all(r["idle"] for r in found if r["reason"] == "poll")


def test_redis_at_rest(sonde, store, scratch):
    server = quiet(start(servers.redis, scratch))
    try:
        recorded(store, rest)
    finally:
        server.stop()
    at_rest(rows(sonde, store, {"redis-server"}))


def test_postgres_at_rest_and_asleep_by_statement(sonde, store, scratch):
    need("psql")
    server = start(servers.postgres, scratch, load=False)
    try:
        recorded(store, rest)
        at_rest(rows(sonde, store, {"postgres"}))
        recorded(store, lambda: subprocess.run(["psql", "-X", "-q", *server.at, "-c", "SELECT pg_sleep(0.7)"], check=True,
                                                 stdout=subprocess.DEVNULL))
    finally:
        server.stop()
    asleep = [r for r in rows(sonde, store, {"postgres"}) if r["reason"] == "sleep" and not r["idle"]]
    assert 0.6 * SECOND < sum(r["total_ns"] for r in asleep) < 1.2 * SECOND, rows(sonde, store, {"postgres"})


def test_a_go_server_at_rest_and_in_a_system_call(sonde, store, scratch):
    go = next(iter(glob.glob("/usr/local/go/bin/go") + glob.glob("/usr/lib/go-1.19/bin/go")), None) or pytest.skip("missing: go")
    with open(os.path.join(scratch, "main.go"), "w", encoding="ascii") as f:
        f.write(GO)
    program, port = os.path.join(scratch, "goserver"), servers.free_port()
    subprocess.run([go, "build", "-o", program, f"{scratch}/main.go"], check=True, capture_output=True,
                   env=dict(os.environ, GO111MODULE="off", GOFLAGS="", GOTOOLCHAIN="local", GOPROXY="off",
                            GOCACHE=os.path.join(scratch, "cache"), HOME=scratch, CGO_ENABLED="0"))
    need_root()
    r = servers.Running(["goserver"])
    try:
        servers.wait_port(port, r.start([program, str(port)]))
        recorded(store, lambda: (get(port), rest()))
        at_rest(rows(sonde, store, {"goserver"}))
        recorded(store, lambda: [get(port, "/pipe") for _ in range(3)])
    finally:
        r.stop()
    pipe = [x for x in rows(sonde, store, {"goserver"}) if x["reason"] == "pipe" and not x["idle"]]
    assert 0.85 * SECOND < sum(x["total_ns"] for x in pipe) < 1.5 * SECOND, rows(sonde, store, {"goserver"})


def test_node_at_rest(sonde, store, scratch):
    program, port = start(servers.find, "node"), servers.free_port()
    r = servers.Running(["node"])
    try:
        servers.wait_port(port, r.start([program, "-e", NODE, str(port)]))
        get(port, "/etc/hosts")
        recorded(store, rest)
    finally:
        r.stop()
    at_rest(rows(sonde, store, {"node"}))


def test_threads_at_pythons_interpreter_lock_wait_for_a_lock(sonde, store, scratch):
    """One has it at a time: the other two wait for it, or, on a busy machine, for a CPU."""
    versions = os.path.join(os.environ.get("PYENV_ROOT", os.path.expanduser("~/.pyenv")), "versions")
    python = next(iter(sorted(glob.glob(f"{versions}/3.1[0-3].*/bin/python3"))), None)
    if not python:
        pytest.skip("missing: a Python whose take_gil has a name (pyenv's)")
    need_root()
    said = []
    recorded(store, lambda: said.append(subprocess.run([python, "-c", GIL], check=True, capture_output=True, text=True).stdout))
    pid = int(said[0])
    found = rows(sonde, store, {"python3", "python3.10", "python3.11", "python3.12", "python3.13"}, "--by", "thread", "--pid", pid)
    lock = [r for r in found if r["reason"] == "lock" and not r["idle"]]
    ready = sql_all(store, "SELECT sum(total_ns) AS ns FROM runqueue WHERE pid = ?", (pid,))[0]["ns"]
    locked = sum(r["total_ns"] for r in lock)
    assert locked > 0.3 * SECOND and locked + ready > 3.6 * SECOND, (locked, ready, [(r['reason'], r['function'], r['idle'], r['total_ns']) for r in found])
    # the script's function where its frames were walked, else the interpreter's own
    assert max(lock, key=lambda r: r["total_ns"])["function"] in ("spin", "take_gil"), lock
