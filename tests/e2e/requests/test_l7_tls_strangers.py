# SPDX-License-Identifier: Apache-2.0
"""TLS inside of programs and libraries of others, as their registries have them: rustls and BoringSSL without symbols, as a program, as a module of Python and of
Node. Each request is counted, or `doctor` says why none is (make long-tls)."""
import http.server
import os
import shutil
import ssl
import subprocess
import textwrap
import threading

import pytest

import servers
import strangers
from conftest import BUILD, need, need_root, sql_all
from containers import fake_container
from sonded import until
from tlsservers import PYTHON, TALK, Server, asked, authority, planted, probes_in

pytestmark = pytest.mark.tls
N = 20
PATH = "/item/81547118154711?token=planted-in-a-query"
SECRETS = ("planted-in-a-query", "81547118154711")


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    need_root()
    return authority(str(tmp_path_factory.mktemp("tls")))


def stranger(name):
    try:
        return strangers.fetch(os.path.join(BUILD, "strangers"), name)
    except strangers.NoPackage as e:
        pytest.skip(f"missing: {e}")


class Counting:
    """An HTTPS server of this process, which counts what it is asked."""

    def __init__(self, files):
        counts = self.counts = {}

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self):
                counts[self.path] = counts.get(self.path, 0) + 1
                self.send_response(200)
                self.send_header("Content-Length", "5")
                self.end_headers()
                self.wfile.write(b"hello")

            def log_message(self, *_):
                pass
        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(files.cert, files.key)
        self.server.socket = context.wrap_socket(self.server.socket, server_side=True)
        self.port = self.server.server_address[1]
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.server.shutdown()
        self.server.server_close()


JS = textwrap.dedent("""
    const ask = async () => { for (let i = 0; i < %d; i++) { const r = await fetch("%s"%s); await r.text(); } console.log(%d); };
""")


def client(name, files, url, folder):
    """(argv, environment) of a program that waits for a line, asks N times, and prints N; and the file that has its TLS. A module says that it is loaded."""
    path = stranger(name)
    script = os.path.join(folder, "ask.mjs")
    env = dict(os.environ, SSL_CERT_FILE=files.ca, DENO_DIR=folder, HOME=folder)
    if name in ("bun", "deno"):
        wait = 'await Deno.stdin.read(new Uint8Array(1)); await ask();' if name == "deno" else 'process.stdin.once("data", async () => { await ask(); process.exit(0); });'
        with open(script, "w", encoding="ascii") as f:
            f.write(JS % (N, url, f', {{tls: {{ca: Bun.file("{files.ca}")}}}}' if name == "bun" else "", N) + wait)
        return ([path, "run", "--allow-all", "--cert", files.ca, script] if name == "deno" else [path, "run", script]), env, path
    if name == "impit":
        with open(script, "w", encoding="ascii") as f:
            f.write(f'import {{createRequire}} from "module"; const {{Impit}} = createRequire(import.meta.url)("{path}"); const c = new Impit({{ignoreTlsErrors: true}});\n'
                    'console.log("loaded"); process.stdin.once("data", async () => { for (let i = 0; i < %d; i++) { const r = await c.fetch("%s"); await r.text(); } console.log(%d); process.exit(0); });' % (N, url, N))
        need("node")
        return ["node", script], env, path
    assert name == "pyreqwest"
    source = textwrap.dedent(f"""
        import sys
        sys.path.insert(0, {os.path.dirname(os.path.dirname(path))!r})
        from pyreqwest.client import SyncClientBuilder
        c = SyncClientBuilder().add_root_certificate_pem(open({files.ca!r}, "rb").read()).build()
        print("loaded", flush=True)
        sys.stdin.readline()
        n = 0
        for i in range({N}):
            n += c.get({url!r}).build().send().text() == "hello"
        print(n)
    """)
    script = os.path.join(folder, "ask.py")  # not an argument: those are stored
    with open(script, "w", encoding="ascii") as f:
        f.write(source)
    return [shutil.which("python3.11") or PYTHON, script], env, path


def loaded(argv, env):
    """The running program, once it has loaded its module."""
    p = subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=env)
    if p.stdout.readline() != "loaded\n":
        p.kill()
        raise AssertionError(p.communicate()[1])
    return p


@pytest.mark.parametrize("when", ["before", "during"])
@pytest.mark.parametrize("name", ["pyreqwest", "impit"])
def test_requests_of_a_module_with_rustls_are_counted(capture, store, files, tmp_path, name, when):
    """Loaded before the capture begins, or during it."""
    with fake_container() as (container, prefix), Counting(files) as server:
        argv, env, path = client(name, files, f"https://localhost:{server.port}{PATH}", str(tmp_path))
        first = loaded([*prefix, *argv], env) if when == "before" else None
        c = capture("-v", "--cgroup", f"/docker/{container}", program="sonde-l7")
        first = first or loaded([*prefix, *argv], env)
        probes_in(c, os.path.basename(path))
        out, err = first.communicate("\n", timeout=360)
        assert out.strip() == str(N), err
        c.stop()
    assert server.counts == {PATH: N}
    assert asked(store, server.port, "client") == {("GET /item/{id}", "200"): N}, c.said()
    assert not planted(store, *SECRETS)


@pytest.mark.parametrize("name, library", [("bun", "boringssl"), ("deno", "rustls")])
def test_a_program_that_cannot_be_read_is_blind_and_doctor_says_why(capture, sonde, store, files, tmp_path, name, library):
    """Neither symbols nor .eh_frame: nothing says where a function begins."""
    with fake_container() as (container, prefix), Counting(files) as server:
        argv, env, _ = client(name, files, f"https://localhost:{server.port}{PATH}", str(tmp_path))
        c = capture("-v", "--cgroup", f"/docker/{container}", program="sonde-l7")
        first = subprocess.Popen([*prefix, *argv], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=env)
        pid = first.pid
        told = until(lambda: (lambda t: t if "is not read" in t else None)(sonde("doctor", "--pid", str(pid), store=store).stdout), 60)
        out, err = first.communicate("\n", timeout=360)
        assert out.strip() == str(N), err
        c.stop()
    assert server.counts == {PATH: N}
    assert f"{library} is not read: it has no symbols, and nothing else identifies its functions without doubt" in told, told
    (row,) = sql_all(store, "SELECT sum(seen) AS seen, sum(parsed) AS parsed, sum(skipped) AS skipped, sum(blind) AS blind FROM request_bytes WHERE service LIKE ? AND side = 'client'",
                     (f"%:{server.port}",))
    assert row["seen"] == row["parsed"] + row["skipped"] + row["blind"] and row["blind"] > N * len(PATH), row
    assert not planted(store, *SECRETS)


ENVOY = """
static_resources:
  listeners:
  - address: {{socket_address: {{address: 127.0.0.1, port_value: {port}}}}}
    filter_chains:
    - transport_socket:
        name: envoy.transport_sockets.tls
        typed_config:
          "@type": type.googleapis.com/envoy.extensions.transport_sockets.tls.v3.DownstreamTlsContext
          common_tls_context:
            tls_certificates: [{{certificate_chain: {{filename: {cert}}}, private_key: {{filename: {key}}}}}]
      filters:
      - name: envoy.filters.network.http_connection_manager
        typed_config:
          "@type": type.googleapis.com/envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager
          stat_prefix: x
          http_filters: [{{name: envoy.filters.http.router, typed_config: {{"@type": type.googleapis.com/envoy.extensions.filters.http.router.v3.Router}}}}]
          route_config: {{virtual_hosts: [{{name: x, domains: ["*"], routes: [{{match: {{prefix: "/"}}, direct_response: {{status: 200, body: {{inline_string: hello}}}}}}]}}]}}
"""


def test_requests_of_envoy_are_counted(capture, store, files, tmp_path):
    path, port = stranger("envoy"), servers.free_port()
    conf = tmp_path / "envoy.yaml"
    conf.write_text(ENVOY.format(port=port, cert=files.cert, key=files.key))
    with fake_container() as (container, prefix):
        r = servers.Running(["envoy"])
        try:
            servers.wait_port(port, r.start([*prefix, path, "-c", str(conf), "--disable-hot-restart", "--concurrency", "1", "-l", "off"]), 60)
            c = capture("-v", "--cgroup", f"/docker/{container}", program="sonde-l7")
            probes_in(c, "envoy")
            done = subprocess.run([PYTHON, TALK, "client", files.ca, str(port), str(N)], input=PATH + "\n", stdout=subprocess.PIPE, text=True, timeout=60, check=True)
            assert int(done.stdout) == N
            c.stop()
        finally:
            r.stop()
    assert asked(store, port, "server") == {("GET /item/{id}", "200"): N}, c.said()
    assert not planted(store, *SECRETS)


LIBRARY = r"""
#include <openssl/ssl.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <netinet/in.h>
#include <unistd.h>

/* N requests, each on a connection of its own; how many were answered. */
int fetch_all(int port, const char *path, int n)
{
	SSL_CTX *ctx = SSL_CTX_new(TLS_client_method());
	int good = 0;

	for (int i = 0; i < n; i++) {
		struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons(port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
		char ask[512], answer[4096];
		int fd = socket(AF_INET, SOCK_STREAM, 0), len = snprintf(ask, sizeof(ask), "GET %s HTTP/1.1\r\nHost: localhost\r\n\r\n", path), got = 0, more;
		SSL *ssl = SSL_new(ctx);

		if (connect(fd, (struct sockaddr *)&to, sizeof(to)))
			return good;
		SSL_set_fd(ssl, fd);
		if (SSL_connect(ssl) == 1 && SSL_write(ssl, ask, len) == len) {
			while (!memmem(answer, got, "hello", 5) && (more = SSL_read(ssl, answer + got, sizeof(answer) - got)) > 0)
				got += more;
			good += got > 5;
		}
		SSL_free(ssl);
		close(fd);
	}
	return good;
}
"""
PROGRAM = r"""
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>

/* Each line of standard input: how many requests. */
int main(int argc, char **argv)
{
	int (*fetch_all)(int, const char *, int) = 0;
	int n;

	(void)argc;
	while (scanf("%d", &n) == 1) {
		if (!fetch_all)
			fetch_all = (int (*)(int, const char *, int))dlsym(dlopen(argv[1], RTLD_NOW), "fetch_all");
		printf("%d\n", fetch_all(atoi(argv[2]), getenv("ITEM"), n));
		fflush(stdout);
	}
	return 0;
}
"""


def test_a_library_whose_name_says_nothing_is_searched_once_its_process_has_tls_that_is_not_read(capture, store, files, tmp_path):
    """It is loaded long after its process began, has OpenSSL inside, and is called libfetch.so: its first connections are blind, and the others are counted."""
    need("gcc")
    static = [p for p in ("/usr/lib/x86_64-linux-gnu/libssl.a", "/usr/lib/x86_64-linux-gnu/libcrypto.a") if os.path.exists(p)]
    if len(static) != 2:
        pytest.skip("missing: libssl.a (libssl-dev)")
    library, program = tmp_path / "libfetch.so", tmp_path / "late"
    for source, out, how in ((LIBRARY, library, ["-shared", "-fPIC", "-Wl,-Bsymbolic"]), (PROGRAM, program, [])):
        (tmp_path / "source.c").write_text(source)
        subprocess.run(["gcc", "-O2", "-D_GNU_SOURCE", *how, "-o", str(out), str(tmp_path / "source.c"), *(static if out is library else [])], check=True)
    with fake_container() as (container, prefix), Counting(files) as server:
        p = subprocess.Popen([*prefix, str(program), str(library), str(server.port)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=dict(os.environ, ITEM=PATH))

        def ask(n):
            p.stdin.write(f"{n}\n")
            p.stdin.flush()
            assert int(p.stdout.readline()) == n
        c = capture("-v", "--cgroup", f"/docker/{container}", program="sonde-l7")
        ask(1)
        probes_in(c, "libfetch.so")
        ask(N)
        p.communicate()
        c.stop()
    assert server.counts == {PATH: N + 1}
    assert asked(store, server.port, "client") == {("GET /item/{id}", "200"): N}, c.said()
    (row,) = sql_all(store, "SELECT sum(blind) AS blind FROM request_bytes WHERE service LIKE ? AND side = 'client'", (f"%:{server.port}",))
    assert row["blind"] > len(PATH), row
    assert not planted(store, *SECRETS)
