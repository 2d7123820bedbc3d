# SPDX-License-Identifier: Apache-2.0
"""Large bodies: what is downloaded faster than it can be copied is counted all the same, in clear and inside TLS, and after a loss a request
is blind and no error (make long-tls)."""
import concurrent.futures
import json
import os
import subprocess
import textwrap

import pytest

import servers
from conftest import LIB, need, need_root, sql_all
from containers import fake_container
from tlsservers import PYTHON, Server, certificate, probes_in

pytestmark = pytest.mark.tls
SIZE, N = 10_000_000, 40
WEBCALLS = os.path.join(LIB, "servers", "webcalls.py")


@pytest.fixture(scope="module")
def nginx(tmp_path_factory):
    """(a container's prefix and name, the ports of kinds of servers)"""
    need_root()
    need("curl")
    need("nginx", "/usr/sbin/nginx")
    folder = str(tmp_path_factory.mktemp("nginx"))
    cert, key = certificate(folder)
    os.chmod(folder, 0o755)
    for path in os.path.dirname(folder), os.path.dirname(os.path.dirname(folder)):
        os.chmod(path, 0o755)
    with open(os.path.join(folder, "large"), "wb") as f:
        f.write(os.urandom(SIZE))
    kinds = {(proto, tls, sendfile): servers.free_port() for proto in ("http", "http2") for tls in (False, True) for sendfile in ("off", "on")}
    chunked = {(tls,): servers.free_port() for tls in (False, True)}

    def server(port, options, rest):
        return f"server {{ listen 127.0.0.1:{port} {options}; {rest} }}\n"
    conf = os.path.join(folder, "nginx.conf")
    with open(conf, "w", encoding="ascii") as f:
        f.write(textwrap.dedent(f"""
            daemon off; user root; worker_processes 2; pid {folder}/pid; error_log {folder}/error;
            events {{}}
            http {{ access_log off; root {folder}; ssl_certificate {cert}; ssl_certificate_key {key}; client_body_temp_path {folder}/t; proxy_temp_path {folder}/p;
                fastcgi_temp_path {folder}/f; uwsgi_temp_path {folder}/u; scgi_temp_path {folder}/s;
            """) + "".join(server(port, " ".join(w for w, yes in (("ssl", tls), ("http2", proto == "http2")) if yes), f"sendfile {sendfile};")
                           for (proto, tls, sendfile), port in kinds.items())
                + "".join(server(port, "ssl" if tls else "", "ssi on; ssi_types *; gzip on; gzip_types *; gzip_comp_level 1;") for (tls,), port in chunked.items()) + "}")
    with fake_container() as (container, prefix):
        r = servers.Running(["nginx"])
        try:
            servers.wait_port(next(iter(kinds.values())), r.start([*prefix, "/usr/sbin/nginx", "-c", conf, "-p", folder]))
            yield container, prefix, cert, {**{("chunked", *k, "off"): v for k, v in chunked.items()}, **kinds}
        finally:
            r.stop()


def download(prefix, cert, proto, tls, port):
    how = {"http": "--http1.1", "chunked": "--http1.1", "http2": "--http2" if tls else "--http2-prior-knowledge"}[proto]
    done = subprocess.run([*prefix, "curl", "-sf", "--compressed", how, "--cacert", cert, "-o", "/dev/null", "-w", "%{size_download}",
                           f"http{'s' if tls else ''}://localhost:{port}/large"], capture_output=True, text=True, check=True)
    assert int(done.stdout) >= SIZE


CASES = [(proto, tls, sendfile) for proto in ("http2", "http", "chunked") for tls in (False, True) for sendfile in ("off", "on") if proto != "chunked" or sendfile == "off"]


@pytest.mark.parametrize("case", CASES, ids=lambda c: f"{c[0]}{', TLS' if c[1] else ''}, sendfile {c[2]}")
def test_each_download_is_counted_or_blind_and_none_an_error(capture, store, nginx, case):
    container, prefix, cert, ports = nginx
    proto, tls, _ = case
    port = ports[case]
    c = capture("-v", "--cgroup", f"/docker/{container}", program="sonde-l7")
    if tls:
        probes_in(c, "libssl.so.3")
    with concurrent.futures.ThreadPoolExecutor(4) as four:
        list(four.map(lambda _: download(prefix, cert, proto, tls, port), range(N)))
    done = c.stop(60)
    for side in ("client", "server"):
        got = {(r["result"], r["status"]): r["n"] for r in sql_all(
            store, "SELECT result, status, sum(requests) AS n FROM requests WHERE service LIKE ? AND side = ? AND protocol = ? GROUP BY 1, 2",
            (f"%:{port}", side, "http2" if proto == "http2" else "http"))}
        rows = sql_all(store, "SELECT seen, parsed, skipped, blind FROM request_bytes WHERE service LIKE ? AND side = ?", (f"%:{port}", side))
        assert all(r["seen"] == r["parsed"] + r["skipped"] + r["blind"] for r in rows), rows
        told = side, got, done["lost_total"], rows
        assert set(got) <= {("ok", "200"), ("blind", "")}, told
        if proto == "http2":
            assert got == {("ok", "200"): N} and not done["lost_total"], told
        assert sum(got.values()) + (N if sum(r["blind"] for r in rows) else 0) >= N, told
        assert N * SIZE <= sum(r["seen"] for r in rows) + done["lost_total"] * N * SIZE and sum(r["seen"] for r in rows) <= 1.05 * N * (SIZE + 10000), told


@pytest.mark.parametrize("tls", [False, True])
def test_the_status_at_the_end_of_a_large_call_of_grpc_web_is_told(capture, store, tmp_path, tls):
    """Of a call that is larger than what is copied of any, the end is."""
    need_root()
    pair = certificate(str(tmp_path)) if tls else ()
    with fake_container() as (container, prefix), Server(*prefix, PYTHON, WEBCALLS, *pair, stdin=subprocess.PIPE) as server:
        c = capture("-v", "--cgroup", f"/docker/{container}", program="sonde-l7")
        if tls:
            probes_in(c, "libssl.so.3")
        server.p.stdin.write("\n")
        server.p.stdin.flush()
        did = json.loads(server.p.stdout.readline())
        server.p.stdin.close()
        server.p.wait(60)
        done = c.stop()
    words = {0: ("ok", "OK"), 5: ("error", "NOT_FOUND"), 13: ("error", "INTERNAL")}
    want = {(f"POST h{path}", *words[code]): 1 for path, code in did.items()}
    for side in ("client", "server"):
        got = {(r["operation"], r["result"], r["status"]): r["n"] for r in sql_all(
            store, "SELECT operation, result, status, sum(requests) AS n FROM requests WHERE service LIKE ? AND side = ? AND protocol IN ('http', 'http2') GROUP BY 1, 2, 3", (f"%:{server.port}", side))}
        rows = sql_all(store, "SELECT seen, parsed, skipped, blind FROM request_bytes WHERE service LIKE ? AND side = ?", (f"%:{server.port}", side))
        assert got == want, (side, got, rows, done)
        assert all(r["seen"] == r["parsed"] + r["skipped"] and not r["blind"] for r in rows), rows
