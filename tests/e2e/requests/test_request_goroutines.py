# SPDX-License-Identifier: Apache-2.0
"""Samples by request in Go: a sample is that of the request whose goroutine the thread ran, of several that share few threads. In clear with Debian's Go
in the everyday run; with the newest, stripped, position-independent and inside TLS by `make long-live`."""
import http.client
import json
import os
import ssl
import subprocess
import threading

import pytest

from conftest import ROOT, BIN, WORKLOADS, Capture, need_root, sql_all
from containers import fake_container
from sonded import until
from test_request_samples import PLANNED_NS, Server, kept, sonde, stacks
from tlsservers import certificate, probes_in

SOURCE = os.path.join(ROOT, "tests", "workloads", "go", "servego.go")
NEWEST = "/usr/local/go/bin/go"
ASKED = [["/burn", "/lock"] * 3, ["/lock", "/burn"] * 3, ["/burn"] * 4, ["/helped", "/park", "/burn"] * 2]  # each by a client of its own, at once
BUILDS = {"debian": None, "newest, stripped": ["-ldflags=-s -w"], "newest, PIE, stripped": ["-buildmode=pie", "-ldflags=-s -w"],
          "newest, stripped, TLS": ["-ldflags=-s -w"]}


def built(which, folder):
    if BUILDS[which] is None:
        path = os.path.join(WORKLOADS, "servego-go")
        if not os.path.exists(path):
            pytest.skip("missing: Go")
        return path
    if not os.path.exists(NEWEST):
        pytest.skip(f"missing: {NEWEST}")
    path = os.path.join(folder, "servego")
    env = dict(os.environ, GO111MODULE="off", CGO_ENABLED="0", GOFLAGS="", GOTOOLCHAIN="local")
    subprocess.run([NEWEST, "build", *BUILDS[which], "-o", path, SOURCE], check=True, env=env)
    return path


def ask(server, paths, cert):
    if cert:
        c = http.client.HTTPSConnection("localhost", server.port, context=ssl.create_default_context(cafile=cert))
    else:
        c = http.client.HTTPConnection("127.0.0.1", server.port)
    for path in paths:
        c.request("GET", path)
        assert c.getresponse().read() == b"ok"
    c.close()


def ask_at_once(server, cert):
    clients = [threading.Thread(target=ask, args=(server, paths, cert)) for paths in ASKED]
    for t in clients:
        t.start()
    for t in clients:
        t.join()


def goroutines_are_known(maps, pid):
    done = subprocess.run([os.path.join(BIN, "sonde-maps"), "--socket", maps, "--dump-tables", str(pid)], capture_output=True, text=True, check=True)
    process = json.loads(done.stdout)["process"]
    return process and process["flags"] >> 16


@pytest.fixture(scope="module", params=[pytest.param(w, marks=[] if w == "debian" else [pytest.mark.live]) for w in BUILDS])
def served(request, tmp_path_factory):
    """(store, pid) of one recording by three families, in which a server with two threads was asked by four clients at once."""
    need_root()
    folder = str(tmp_path_factory.mktemp("go"))
    store, maps, caps = os.path.join(folder, "s"), os.path.join(folder, "maps"), []
    pair = certificate(folder) if "TLS" in request.param else ()
    path = built(request.param, folder)
    owner = subprocess.Popen([os.path.join(BIN, "sonde-maps"), "--socket", maps, "--store", store], stdin=subprocess.DEVNULL)
    with fake_container() as (container, prefix):
        server = Server([*prefix, "env", "GOMAXPROCS=2"], *(["-tls", *pair] if pair else []), program=path)
        try:
            until(lambda: os.path.exists(maps))
            for program in ("sonde-l7", "sonde-cpu", "sonde-offcpu"):
                caps.append(Capture(store, "-v", "--maps-socket", maps, "--recording", 7, "--cgroup", f"/docker/{container}", program=program))
                caps[-1].start()
            until(lambda: goroutines_are_known(maps, server.pid))
            if pair:
                probes_in(caps[0], os.path.basename(path))
            ask_at_once(server, pair[0] if pair else None)
            done = [cap.stop() for cap in reversed(caps)]
        finally:
            for cap in caps:
                cap.close()
            server.end()
            owner.terminate()
            owner.wait(timeout=180)
    assert [d["lost_total"] for d in done] == [0, 0, 0], done
    return store, server.pid


def test_a_request_that_computes_has_its_function_and_none_of_those_that_share_its_threads(served):
    rows = stacks(*served, "--request", "GET /burn")
    assert rows["main.serveBurning"]["total_samples"] and not {"main.serveLocked", "main.helperBurning"} & set(rows), rows


def test_a_request_that_waits_for_a_lock_has_that_wait_and_no_more_than_it_took(served):
    rows = stacks(*served, "--request", "GET /lock", "--type", "offcpu")
    took = sum(r["total_us"] for r in kept(*served, "/lock"))
    assert PLANNED_NS / 2 < rows["main.serveLocked"]["total_value"] <= took * 1000
    both = set(rows) | set(stacks(*served, "--request", "GET /lock"))
    assert not {"main.serveBurning", "main.helperBurning", "main.serveHelped"} & both, both


def test_what_another_goroutine_does_for_it_is_nobodys(served):
    assert stacks(served[0], served[1])["main.helperBurning"]["total_samples"], "it ran"
    for path in ("/helped", "/park"):
        rows = stacks(*served, "--request", f"GET {path}")
        assert "main.helperBurning" not in rows and "main.serveBurning" not in rows, rows


def test_nearly_all_that_it_computed_is_found_by_its_requests(served):
    """Of all requests, kept or not: each sample that has a tag."""
    store, pid = served
    whole = stacks(store, pid)["main.serveBurning"]["total_samples"]
    tagged = sum(r["n"] for r in sql_all(store, "SELECT sum(n) AS n FROM request_sample_row WHERE tag & (1 << 59) AND series IN (SELECT s.id FROM series s"
                 " JOIN stack_frames f ON f.stack_id = s.stack WHERE f.function = 'main.serveBurning') AND series IN (SELECT series FROM sample)"))
    print(f"{tagged} of {whole} samples of the endpoint that computes have the tag of a request")
    assert whole * 0.9 <= tagged <= whole, (tagged, whole)


def test_explain_says_what_it_is_made_of_and_that_goroutines_wait_without_threads(served):
    out = sonde("explain", "--store", served[0], "--pid", served[1], "--request", "GET /park")
    assert out.returncode == 0 and "untagged" in out.stdout and "a goroutine waits for a lock" in out.stdout, (out.stdout, out.stderr)
    rows = json.loads(sonde("explain", "--store", served[0], "--pid", served[1], "--request", "GET /lock", "--json").stdout)["rows"]
    assert [r["reason"] for r in rows if r["what"] == "wait"][:1] == ["lock"], rows
