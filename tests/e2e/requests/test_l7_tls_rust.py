# SPDX-License-Identifier: Apache-2.0
"""Requests inside rustls, and inside OpenSSL where it is part of a stranger's program: each is counted, as often as the programs
say (make long-tls)."""
import os
import shutil
import subprocess

import pytest

import rustprograms
import servers
from conftest import BIN, BUILD, need, need_root, sql_all
from containers import fake_container
from test_l7_tls_mysql import check as mysql_check, started
from tlsservers import PYTHON, TALK, Server, asked, authority, planted, probes_in

pytestmark = pytest.mark.tls
N = 20
PATH = "/item/81547118154711?token=planted-in-a-query"
SECRETS = ("planted-in-a-header", "planted-in-a-query", "81547118154711")
WANT = {("GET /item/{id}", "200"): 15, ("POST /item/{id}", "200"): 5}


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    need_root()
    return authority(str(tmp_path_factory.mktemp("tls")))


def program(name):
    try:
        return rustprograms.build(os.path.join(BUILD, "rustls"), name)
    except rustprograms.NoCrates as e:
        pytest.skip(f"missing: {e}")


def ask(path, how, ca, port, n=N, prefix=()):
    done = subprocess.run([*prefix, path, "client", how, ca, str(port), str(n)], input=PATH + "\n", stdout=subprocess.PIPE, text=True, timeout=120, check=True)
    assert int(done.stdout) == n


def check(store, port, said):
    rows = sql_all(store, "SELECT side, sum(seen) AS seen, sum(parsed) AS parsed, sum(skipped) AS skipped, sum(blind) AS blind FROM request_bytes WHERE "
                   "service LIKE ? GROUP BY side", (f"%:{port}",))
    for side in ("client", "server"):
        got = {}
        for protocol in ("http", "http2"):
            got.update(asked(store, port, side, protocol))
        assert got == WANT, (side, rows, said)
    assert len(rows) == 2 and all(r["seen"] == r["parsed"] + r["skipped"] and not r["blind"] for r in rows), rows
    assert not planted(store, *SECRETS)


@pytest.mark.parametrize("how", ["h1", "h2", "sync"])
@pytest.mark.parametrize("name", rustprograms.PROGRAMS)
def test_the_first_twenty_requests_of_a_process_are_counted_on_both_sides(capture, store, files, name, how):
    path = program(name)
    with fake_container() as (container, prefix), Server(*prefix, path, "server", how, files.cert_der, files.key_der) as server:
        c = capture("-v", "--cgroup", f"/docker/{container}", program="sonde-l7")
        probes_in(c, os.path.basename(path))
        ask(path, how, files.ca_der, server.port, prefix=prefix)
        c.stop()
    check(store, server.port, c.said())


@pytest.mark.parametrize("name", ["0.21", "0.22", "0.23"])
def test_a_program_without_symbols_is_read_all_the_same(capture, store, files, tmp_path, name):
    need("strip")
    path = str(tmp_path / "nameless")
    subprocess.run(["strip", "-o", path, program(name)], check=True)
    with fake_container() as (container, prefix), Server(*prefix, path, "server", "h2", files.cert_der, files.key_der) as server:
        c = capture("-v", "--cgroup", f"/docker/{container}", program="sonde-l7")
        probes_in(c, "nameless")
        ask(path, "h2", files.ca_der, server.port, prefix=prefix)
        c.stop()
    check(store, server.port, c.said())


@pytest.mark.parametrize("how", ["h1", "h2"])
@pytest.mark.parametrize("symbols", ["symbols", "stripped"])
def test_requests_of_axum_and_reqwest_are_counted_on_both_sides(capture, store, files, tmp_path, symbols, how):
    path = program("stack")
    if symbols == "stripped":
        need("strip")
        path = str(tmp_path / "stack")
        subprocess.run(["strip", "-o", path, program("stack")], check=True)
    with fake_container() as (container, prefix), Server(*prefix, path, "server", files.cert, files.key) as server:
        c = capture("-v", "--cgroup", f"/docker/{container}", program="sonde-l7")
        probes_in(c, "stack")
        ask(path, how, files.ca, server.port, prefix=prefix)
        c.stop()
    check(store, server.port, c.said())


def test_statements_of_sqlx_are_counted_on_both_sides(capture, store, files, tmp_path):
    """TLS begins in the midst of a connection there."""
    path = program("stack")
    key = str(tmp_path / "server-key.pem")
    shutil.copy(files.key, key)
    for folder in (tmp_path, *tmp_path.parents[:3], os.path.dirname(files.cert)):
        os.chmod(folder, 0o755)
    shutil.chown(key, "postgres")
    os.chmod(key, 0o600)
    data = tmp_path / "postgres"
    data.mkdir()
    try:
        server = servers.postgres(str(data), load=False, settings=("fsync=off", "ssl=on", f"ssl_cert_file={files.cert}", f"ssl_key_file={key}"))
    except servers.Missing as e:
        pytest.skip(f"missing: {e}")
    port = server.at[3]
    try:
        asks = subprocess.Popen([path, "sql", files.ca, port, str(N)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        c = capture("-v", program="sonde-l7")
        probes_in(c, "stack")
        probes_in(c, "libssl.so.3")
        assert int(asks.communicate("\n", timeout=360)[0]) == N
        c.stop()
    finally:
        server.stop()
    for side in ("client", "server"):
        got = sql_all(store, "SELECT operation, result, sum(requests) AS n FROM requests WHERE service LIKE ? AND side = ? AND protocol = 'postgres' GROUP BY 1, 2", (f"%:{port}", side))
        assert [(r["result"], r["n"]) for r in got if r["operation"] == "SELECT ? + ?"] == [("ok", N)], (side, got)
    rows = sql_all(store, "SELECT side, sum(seen) AS seen, sum(parsed) AS parsed, sum(skipped) AS skipped, sum(blind) AS blind FROM request_bytes WHERE service LIKE ? GROUP BY 1", (f"%:{port}",))
    all_ = sql_all(store, "SELECT side, protocol, operation, result, requests, request_bytes, response_bytes FROM requests WHERE service LIKE ? ORDER BY 1, 3", (f"%:{port}",))
    assert len(rows) == 2 and all(r["seen"] == r["parsed"] + r["skipped"] and not r["blind"] for r in rows), "\n".join(map(str, (*rows, *all_)))


def test_statements_of_sqlx_to_mysql_are_counted_on_both_sides(capture, store, files, tmp_path):
    need("mariadbd", "/usr/sbin/mariadbd")
    path, r = program("stack"), servers.Running(["mariadbd"])
    try:
        port = started(r, str(tmp_path), files.cert, files.key)
        asks = subprocess.Popen([path, "mysql", files.ca, str(port), str(N)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        c = capture("-v", program="sonde-l7")
        probes_in(c, "stack")
        probes_in(c, "libssl.so.3")
        assert int(asks.communicate("\n", timeout=360)[0]) == N
        c.stop()
    finally:
        r.stop()
    mysql_check(store, port, {"CONNECT": 1, "SELECT ? + ?": N})


def test_what_cannot_be_read_is_told_by_doctor_with_the_reason(sonde, store, files, tmp_path):
    """ring 0.16, which rustls 0.20 uses, has nothing that tells its functions apart without their names."""
    need("strip")
    path = str(tmp_path / "nameless")
    subprocess.run(["strip", "-o", path, program("0.20")], check=True)
    with Server(path, "server", "h1", files.cert_der, files.key_der) as server:
        told = sonde("doctor", "--pid", server.pid, store=store).stdout
    assert "rustls is not read: it has no symbols, and nothing else identifies its functions without doubt" in told, told


def test_connections_side_by_side_keep_their_own_requests(capture, store, files):
    """Eight clients at a time on two threads: no request is counted for another connection, and none is missing."""
    path = program("0.21")
    with fake_container() as (container, prefix), Server(*prefix, path, "server", "h1", files.cert_der, files.key_der) as server:
        c = capture("-v", "--cgroup", f"/docker/{container}", program="sonde-l7")
        probes_in(c, os.path.basename(path))
        clients = [subprocess.Popen([*prefix, path, "client", "h1", files.ca_der, str(server.port), str(N)], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                    text=True) for _ in range(8)]
        for i, p in enumerate(clients):
            p.stdin.write(f"/item-of-{'abcdefgh'[i]}\n")
            p.stdin.flush()
        assert [int(p.communicate(timeout=120)[0]) for p in clients] == [N] * 8
        c.stop()
    want = {(f"{method} /item-of-{x}", "200"): n for x in "abcdefgh" for method, n in (("GET", 15), ("POST", 5))}
    for side in ("client", "server"):
        assert asked(store, server.port, side) == want, c.said()
    rows = sql_all(store, "SELECT c.comm, r.operation, sum(r.requests) AS n FROM requests r JOIN processes c ON c.id = r.process_id WHERE service LIKE ? AND side = "
                   "'client' AND protocol = 'http' GROUP BY r.process_id, r.operation", (f"%:{server.port}",))
    assert sorted(r["n"] for r in rows) == sorted([15, 5] * 8)


STATIC = r"""
#include <openssl/ssl.h>
#include <openssl/err.h>
#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
/* static CA PORT N ex|plain: waits for a line, then asks N times on one connection; prints how many were answered */
int main(int argc, char **argv)
{
	SSL_CTX *ctx = SSL_CTX_new(TLS_client_method());
	struct sockaddr_in a = {.sin_family = AF_INET, .sin_port = htons(atoi(argv[2])), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	int fd = socket(AF_INET, SOCK_STREAM, 0), good = 0, ex = argc > 4 && !strcmp(argv[4], "ex");
	char buf[65536], ask[256];
	SSL *s;

	if (getchar() != '\n' || connect(fd, (void *)&a, sizeof(a)) || !SSL_CTX_load_verify_locations(ctx, argv[1], NULL))
		return 1;
	SSL_CTX_set_verify(ctx, SSL_VERIFY_PEER, NULL);
	s = SSL_new(ctx);
	SSL_set_fd(s, fd);
	if (SSL_connect(s) != 1)
		return 1;
	snprintf(ask, sizeof(ask), "GET /item/81547118154711?token=planted-in-a-query HTTP/1.1\r\nHost: localhost\r\n\r\n");
	for (int i = 0; i < atoi(argv[3]); i++) {
		size_t n = strlen(ask), got = 0;

		if (ex ? !SSL_write_ex(s, ask, n, &n) : SSL_write(s, ask, (int)n) <= 0)
			return 2;
		while (got < 5 || memcmp(buf + got - 5, "hello", 5)) {
			int k = 0;

			n = 0;
			if (ex ? !SSL_read_ex(s, buf + got, sizeof(buf) - got, &n) : (k = SSL_read(s, buf + got, sizeof(buf) - got)) <= 0)
				return 3;
			got += ex ? n : (size_t)k;
		}
		good++;
	}
	printf("%d\n", good);
	return 0;
}
"""


@pytest.mark.parametrize("how", ["plain", "ex"])
@pytest.mark.parametrize("symbols", ["symbols", "stripped", "stripped, static and anywhere"])
def test_openssl_inside_of_a_program_is_read(capture, store, files, tmp_path, symbols, how):
    lib = "/usr/lib/x86_64-linux-gnu/libssl.a"
    need("libssl.a (libssl-dev)", lib)
    source, path = tmp_path / "static.c", str(tmp_path / "staticssl")
    source.write_text(STATIC)
    how_linked = ["-static-pie"] if "static" in symbols else []
    subprocess.run(["gcc", "-O2", *how_linked, "-o", path, str(source), lib, lib.replace("ssl.a", "crypto.a"), "-ldl", "-lpthread"], check=True)
    if "stripped" in symbols:
        subprocess.run(["strip", path], check=True)
    with fake_container() as (container, prefix), Server(*prefix, PYTHON, TALK, "sync", files.cert, files.key) as server:
        first = subprocess.Popen([*prefix, path, files.ca, str(server.port), str(N), how], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        c = capture("-v", "--cgroup", f"/docker/{container}", program="sonde-l7")
        probes_in(c, "staticssl")
        assert int(first.communicate("\n", timeout=360)[0]) == N
        c.stop()
    assert asked(store, server.port, "client") == {("GET /item/{id}", "200"): N}, c.said()
    assert not planted(store, *SECRETS)


@pytest.mark.parametrize("symbols", ["symbols", "stripped"])
def test_openssl_that_cargo_builds_is_read(capture, store, files, tmp_path, symbols):
    path = program("vendored")
    if symbols == "stripped":
        need("strip")
        path = str(tmp_path / "vendored")
        subprocess.run(["strip", "-o", path, program("vendored")], check=True)
    with fake_container() as (container, prefix), Server(*prefix, PYTHON, TALK, "sync", files.cert, files.key) as server:
        first = subprocess.Popen([*prefix, path, files.ca, str(server.port), str(N)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        c = capture("-v", "--cgroup", f"/docker/{container}", program="sonde-l7")
        probes_in(c, "vendored")
        assert int(first.communicate(PATH + "\n", timeout=360)[0]) == N
        c.stop()
    assert asked(store, server.port, "client") == {("GET /item/{id}", "200"): N}, c.said()
    assert not planted(store, *SECRETS)


def test_a_program_that_holds_two_libraries_is_told_so(sonde, store, files):
    """rustup: rustls with AWS-LC, and OpenSSL for curl."""
    need("rustup")
    real = os.path.realpath(shutil.which("rustup"))
    index = os.path.join(str(store), "rustup.idx")
    os.makedirs(str(store), exist_ok=True)
    subprocess.run([os.path.join(BIN, "sonde-index"), "--no-lines", real, "-o", index], check=True, stdout=subprocess.DEVNULL)
    sites = subprocess.run([os.path.join(BIN, "sonde-index"), "--dump-tls", index], check=True, capture_output=True, text=True).stdout
    if "rustls" not in sites:
        pytest.skip("missing: a rustup with rustls")
    assert " rustls write entry" in sites and " rustls read result record" in sites and "blind" not in sites, sites
