# SPDX-License-Identifier: Apache-2.0
"""Each link of `sonde trace` below a server that passes requests on is true: what it asks has the trace of the request that it asks for. Servers with a loop have
several requests open at once, and put work off; they also ask for no request at all. Not every link is found; how many are is printed.
nginx, haproxy, Node and Go by `make long-parents`; asyncio and threads in the everyday run."""
import collections
import json
import os
import shutil
import subprocess
import sys
import time

import pytest
import servers
from conftest import LIB, WORKLOADS, Capture, need_root
from containers import fake_container

HERE = os.path.join(LIB, "servers")
RELAY = os.path.join(HERE, "relay.py")
IN_FLIGHT = (1, 2, 8, 64)
BACKGROUND = "b" * 32


class Talker:
    """A program that prints its port, and ends with its standard input."""

    def __init__(self, argv):
        self.p = subprocess.Popen([str(a) for a in argv], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.port = int(self.p.stdout.readline()) if "ask" not in argv else 0

    def end(self):
        self.p.stdin.close()
        self.p.wait(30)
        self.p.stdout.close()


def by_config(name, argv, port, prefix):
    r = servers.Running([name])
    servers.wait_port(port, r.start([*prefix, servers.find(name, f"/usr/sbin/{name}"), *argv]))
    r.port, r.end = port, r.stop
    return r


def nginx(folder, up, prefix, _):
    """wait: the location delays what comes too fast."""
    port, conf = servers.free_port(), os.path.join(folder, "nginx.conf")
    with open(conf, "w", encoding="utf-8") as f:
        f.write(f"worker_processes 1; pid {folder}/nginx.pid; error_log {folder}/error.log; daemon off; user root;\nevents {{ worker_connections 1024; }}\nhttp {{ access_log off;\n"
                "limit_req_zone $server_name zone=z:1m rate=400r/s;\n"
                f"upstream kept {{ server 127.0.0.1:{up}; keepalive 4; }}\n"
                f"server {{ listen 127.0.0.1:{port} backlog=256; location / {{ proxy_set_header X-Request-Id $word; proxy_pass http://127.0.0.1:{up}; }}\n"
                'set $word ""; if ($uri ~ "([0-9a-f]+)$") { set $word $1; }\n'
                "location /wait/ { limit_req zone=z burst=500; proxy_set_header X-Request-Id $word; proxy_pass http://127.0.0.1:%d; }\n" % up +
                'location /pool/ { proxy_http_version 1.1; proxy_set_header Connection ""; proxy_set_header X-Request-Id $word; proxy_pass http://kept; }\n} }\n')
    return by_config("nginx", ["-c", conf, "-p", folder], port, prefix)


def haproxy(folder, up, prefix, own):
    port, conf = servers.free_port(), os.path.join(folder, "haproxy.cfg")
    with open(conf, "w", encoding="utf-8") as f:
        f.write("global\n nbthread 1\n maxconn 1000\ndefaults\n mode http\n timeout client 30s\n timeout server 30s\n timeout connect 5s\n"
                f"frontend f\n bind 127.0.0.1:{port} backlog 256\n http-request set-header X-Request-Id %[path,field(-1,/)]\n use_backend never if {{ path_beg /now }}\n default_backend reuse\n"
                f"backend never\n http-reuse never\n server s 127.0.0.1:{up}\nbackend reuse\n option httpchk\n"
                f" http-check send meth GET uri /{BACKGROUND} hdr X-Request-Id {BACKGROUND}\n"
                f" http-reuse always\n server s 127.0.0.1:{up} {'check inter 100ms fall 1000' if own else ''}\n")
    return by_config("haproxy", ["-db", "-f", conf], port, prefix)


def node(_, up, prefix, own):
    return Talker([*prefix, servers.find("node"), os.path.join(HERE, "relay.js"), up, *own])


def golang(_, up, prefix, own):
    path = os.path.join(WORKLOADS, "relay-go")
    if not os.path.exists(path):
        raise servers.Missing("Go")
    return Talker([*prefix, path, up, *own])


def loop(_, up, prefix, own):
    return Talker([*prefix, sys.executable, RELAY, "loop", up, *own])


def threads(_, up, prefix, _own):
    return Talker([*prefix, sys.executable, RELAY, "threads", up])


KINDS = ("now", "pool", "name", "wait", "twice")
RELAYS = {"nginx": (nginx, ("now", "pool", "wait")), "haproxy": (haproxy, ("now", "pool")), "node": (node, KINDS), "go": (golang, KINDS), "asyncio": (loop, KINDS), "threads": (threads, KINDS)}


def passed_on(which, folder, in_flight, seconds, own=()):
    """(rows of sonde trace, those of them that the relay asked, {number in flight: until when}) of one recording of a relay."""
    begin, kinds = RELAYS[which]
    running, store = [], os.path.join(folder, "s")
    asked = {}
    with fake_container() as (container, prefix):
        try:
            running.append(Talker([*prefix, sys.executable, RELAY, "server"]))
            try:
                running.append(begin(folder, running[0].port, prefix, own))
            except servers.Missing as e:
                pytest.skip(f"missing: {e}")
            client = Talker([sys.executable, RELAY, "ask", running[1].port])
            running.append(client)
            cap = Capture(store, "--cgroup", f"/docker/{container}", program="sonde-l7")
            try:
                cap.start()
                for n in in_flight:
                    for some in [kinds] + [(k,) for k in kinds]:
                        client.p.stdin.write(f"{n} {seconds} {' '.join(some)}\n")
                        client.p.stdin.flush()
                        good, all_ = map(int, client.p.stdout.readline().split())
                        assert good == all_ > 0, (which, n, some, good, all_)
                    asked[n] = time.time()
                    time.sleep(0.1)
                cap.stop(60)
            finally:
                cap.close()
        finally:
            for r in reversed(running):
                r.end()
    out = subprocess.run([os.path.join(os.environ["PATH"].split(":")[0], "sonde"), "trace", "-n", "1000000", "--json", "--store", store], capture_output=True, text=True, check=True)
    rows = json.loads(out.stdout)["rows"]
    return rows, [r for r in rows if r["asked_by"] and r["service"] == f"127.0.0.1:{running[0].port}"], asked


def judge(which, rows, questions, asked):
    """[false links], {number in flight: links by ground, and questions}."""
    by, false, found = {r["span"]: r for r in rows}, [], collections.defaultdict(collections.Counter)
    for r in questions:
        assert r["trace"], r
        if r["trace"] == BACKGROUND and not r["parent"]:
            continue
        n = next((n for n, until in sorted(asked.items()) if r["time_ns"] < until * 1e9), None)
        parent = by.get(r["parent"])
        found[n]["questions"] += 1
        if parent is not None:
            found[n][r["linked_by"]] += 1
            if parent["trace"] != r["trace"]:
                false.append(f"{which}, {n} in flight: {parent['trace']} was said to ask {r['trace']}, by {r['linked_by']}")
        elif r["parent_lost"]:
            found[n]["of one not kept"] += 1
        elif r["unlinked_why"]:
            found[n][f"unlinked: {r['unlinked_why']}"] += 1
    for n in sorted(asked):
        print(f"{which}, {n} in flight: {dict(found[n])}")
    return false, found


@pytest.fixture
def folder(tmp_path):
    need_root()
    yield str(tmp_path)
    shutil.rmtree(tmp_path, ignore_errors=True)


@pytest.mark.parametrize("which", ["asyncio", "threads"])
def test_a_link_is_true_or_there_is_none(which, folder):
    rows, questions, asked = passed_on(which, folder, (1, 8), 0.2)
    false, found = judge(which, rows, questions, asked)
    assert not false, "\n".join(false)
    assert found[1]["thread"] + found[1]["opener"] > 0, "one request at a time has its links"
    if which == "threads":
        assert found[8]["thread"] + found[8]["of one not kept"] == found[8]["questions"], "a thread that serves one request after the other"


def test_what_a_loop_asks_on_its_own_account_is_of_no_request(folder):
    rows, questions, asked = passed_on("asyncio", folder, (1,), 0.2, ("own",))
    assert not [r for r in questions if r["trace"] == BACKGROUND and r["parent"]]
    assert not judge("asyncio", rows, questions, asked)[0]


@pytest.mark.live
@pytest.mark.parametrize("own", [(), ("own",)], ids=["", "own"])
@pytest.mark.parametrize("which", sorted(RELAYS))
def test_links_of_many_servers_are_true_with_many_requests_in_flight(which, own, folder):
    """With `own` they ask on their own account, too."""
    rows, questions, asked = passed_on(which, folder, IN_FLIGHT, 0.7, own)
    false, found = judge(which, rows, questions, asked)
    assert not false, "\n".join(false)
    assert own or found[1]["thread"] + found[1]["opener"] + found[1]["goroutine"] > 0, f"no link at all: {dict(found[1])}"
