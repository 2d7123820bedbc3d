# SPDX-License-Identifier: Apache-2.0
"""Family l7 inside TLS with programs that nobody here wrote: each request is counted, as often as the program was asked
(make long-tls)."""
import os
import shutil
import signal
import subprocess
import textwrap
import time

import pytest

from conftest import BIN, need, need_root, scale, sql_all
from servers import free_port
from sonded import until
from tlsservers import PYTHON, TALK, Server, asked, certificate, client, planted, probes_in, which

pytestmark = pytest.mark.tls

GO = """
package main
import ("crypto/tls"; "fmt"; "net"; "net/http"; "os")
func main() {
	c, err := tls.LoadX509KeyPair(os.Args[1], os.Args[2])
	if err != nil { panic(err) }
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil { panic(err) }
	fmt.Println(l.Addr().(*net.TCPAddr).Port)
	http.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) { w.Write([]byte("hello")) })
	s := &http.Server{TLSNextProto: map[string]func(*http.Server, *tls.Conn, http.Handler){}}
	s.Serve(tls.NewListener(l, &tls.Config{Certificates: []tls.Certificate{c}}))
}
"""
NODE = """
const fs = require('fs'), [cert, key] = process.argv.slice(2);
const s = require('https').createServer({cert: fs.readFileSync(cert), key: fs.readFileSync(key)},
                                        (q, r) => { r.setHeader('Content-Length', 5); r.end('hello'); });
s.listen(0, '127.0.0.1', () => console.log(s.address().port));
"""
SECRETS = ("planted-in-a-header", "planted-in-a-query")
PATH = "/item/81547118154711?token=planted-in-a-query"


@pytest.fixture(scope="module")
def pair(tmp_path_factory):
    need_root()
    return certificate(str(tmp_path_factory.mktemp("tls")))


@pytest.fixture
def running():
    started = []

    def start(*argv, sig=signal.SIGTERM, **kw):
        p = subprocess.Popen([str(a) for a in argv], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True, **kw)
        started.append((p, sig))
        return p
    yield start
    for p, sig in reversed(started):
        os.killpg(p.pid, sig)
        p.wait(30)


def answers(port):
    """Something listens there."""
    return subprocess.run(["bash", "-c", f"exec 3<>/dev/tcp/127.0.0.1/{port}"], stderr=subprocess.DEVNULL, check=False).returncode == 0


def go_program(folder, *flags):
    need("go")
    (folder / "main.go").write_text(GO)
    (folder / "go.mod").write_text("module talk\n\ngo 1.19\n")
    subprocess.run(["go", "build", *flags, "-o", "talk", "."], cwd=folder, check=True)
    return str(folder / "talk")


def node_program(folder):
    need("node")
    (folder / "talk.js").write_text(NODE)
    return "node", str(folder / "talk.js")


HTTP = {
    "go": (lambda d: (go_program(d),), "talk"),
    "go, stripped": (lambda d: (go_program(d, "-ldflags=-s -w"),), "talk"),
    "go, PIE, stripped": (lambda d: (go_program(d, "-buildmode=pie", "-ldflags=-s -w"),), "talk"),
    "node": (node_program, "node"),
    "python": (lambda d: (PYTHON, TALK, "sync"), "libssl.so.3"),
    "python, asyncio": (lambda d: (PYTHON, TALK, "asyncio"), "libssl.so.3"),
}


@pytest.mark.parametrize("which_one", HTTP)
def test_a_server_s_requests_are_counted_as_in_clear(capture, store, pair, tmp_path, which_one):
    make, name = HTTP[which_one]
    with Server(*make(tmp_path), *pair) as server:
        c = capture("-v", program="sonde-l7")
        probes_in(c, name)
        total = sum(client(pair[0], server.port, n, PATH) for n in (1, 40, 7, 200))
        c.stop()
    assert asked(store, server.port, "server") == {("GET /item/{id}", "200"): total}, c.said()
    assert not planted(store, *SECRETS)


NODE_CLIENT = """
const https = require('https'), fs = require('fs'), [cert, port, n] = process.argv.slice(2);
function ask(left) {
  if (!left) return;
  https.get({host: 'localhost', port, path: '/item/7', ca: fs.readFileSync(cert), agent: false}, r => { r.resume(); r.on('end', () => ask(left - 1)); });
}
ask(Number(n));
"""


@pytest.mark.parametrize("program", ["asyncio", "node"])
def test_the_first_request_of_a_client_that_gives_its_library_memory_is_counted(capture, store, pair, tmp_path, program):
    own = tmp_path / "node-of-this-test"  # others on this host may run a file called node, whose probes are told first
    with Server(PYTHON, TALK, "sync", *pair) as server:
        if program == "node":
            need("node")
            shutil.copy(os.path.realpath(which("node")), own)
            (tmp_path / "client.js").write_text(NODE_CLIENT)
            holder = subprocess.Popen([own, "-e", "setInterval(() => 0, 1000)"])  # so that its probes are there already
        try:
            c = capture("-v", program="sonde-l7")
            probes_in(c, "libssl.so.3")
            if program == "node":
                probes_in(c, own.name)
                subprocess.run([own, str(tmp_path / "client.js"), pair[0], str(server.port), "20"], check=True)
            else:
                assert client(pair[0], server.port, 20, "/item/7", how="aioclient") == 20
            c.stop()
        finally:
            if program == "node":
                holder.kill()
                holder.wait()
    for side in ("client", "server"):
        assert asked(store, server.port, side) == {("GET /item/{id}", "200"): 20}, (side, c.said())


def test_nginx_with_files_by_sendfile_and_without(capture, store, pair, tmp_path, running):
    need("nginx", shutil.which("nginx") or "/usr/sbin/nginx")
    ports = free_port(), free_port()
    (tmp_path / "item").write_text("hello")
    os.chmod(tmp_path, 0o755)
    (tmp_path / "nginx.conf").write_text(textwrap.dedent(f"""
        daemon off; user root; worker_processes 2; pid {tmp_path}/pid; error_log {tmp_path}/error;
        events {{}}
        http {{ access_log {tmp_path}/access; root {tmp_path}; default_type text/plain;
            ssl_certificate {pair[0]}; ssl_certificate_key {pair[1]};
            server {{ listen 127.0.0.1:{ports[0]} ssl; sendfile on; }}
            server {{ listen 127.0.0.1:{ports[1]} ssl; sendfile off; }} }}"""))
    running("nginx", "-c", tmp_path / "nginx.conf", "-p", tmp_path)
    until(lambda: all(answers(p) for p in ports))
    c = capture("-v", program="sonde-l7")
    probes_in(c, "libssl.so.3")
    for port in ports:
        assert client(pair[0], port, 150, "/item") == 150
    c.stop()
    for port in ports:
        assert asked(store, port, "server") == {("GET /item", "200"): 150}, c.said()


def test_redis_commands_are_counted_as_its_own_statistics_say(capture, store, pair, tmp_path, running):
    need("redis-server")
    port = free_port()
    cli = ["redis-cli", "--tls", "--cacert", pair[0], "-h", "localhost", "-p", str(port)]
    running("redis-server", "--port", 0, "--tls-port", port, "--bind", "127.0.0.1", "--tls-cert-file", pair[0], "--tls-key-file", pair[1], "--tls-ca-cert-file",
            pair[0], "--tls-auth-clients", "no", "--save", "", "--dir", tmp_path)
    until(lambda: answers(port))
    c = capture("-v", program="sonde-l7")
    probes_in(c, "libssl.so.3")
    subprocess.run(["redis-benchmark", "--tls", "--cacert", pair[0], "-h", "localhost", "-p", str(port), "-n", "3000", "-c", "5", "-t", "set,get", "-q"],
                   check=True, stdout=subprocess.DEVNULL)
    stats = subprocess.run([*cli, "INFO", "commandstats"], check=True, capture_output=True, text=True).stdout
    c.stop()
    calls = {line.split(":")[0].removeprefix("cmdstat_").upper(): int(line.split("calls=")[1].split(",")[0]) for line in stats.splitlines() if "calls=" in line}
    rows = sql_all(store, "SELECT operation, sum(requests) AS n FROM requests WHERE service LIKE ? AND side = 'server' AND protocol = 'redis' GROUP BY 1", (f"%:{port}",))
    got = {r["operation"].split()[0]: 0 for r in rows}
    for r in rows:
        got[r["operation"].split()[0]] += r["n"]
    assert got.get("SET") == calls["SET"] and got.get("GET") == calls["GET"], (rows, calls, c.said())


def test_postgresql_s_statements_are_counted_as_pgbench_says(capture, store, pair, tmp_path, running):
    places = "/usr/lib/postgresql/15/bin"
    need("postgres", f"{places}/postgres")
    port, data = free_port(), tmp_path / "data"
    for path in (tmp_path, *tmp_path.parents[:2]):
        os.chmod(path, 0o755)
    data.mkdir()
    key = tmp_path / "key.pem"
    shutil.copy(pair[1], key)
    shutil.copy(pair[0], tmp_path / "cert.pem")
    for path in (data, key, tmp_path / "cert.pem"):
        shutil.chown(path, "postgres")
    os.chmod(key, 0o600)
    as_postgres = ["setpriv", "--reuid=postgres", "--regid=postgres", "--clear-groups"]
    subprocess.run([*as_postgres, f"{places}/initdb", "-D", str(data), "-A", "trust"], check=True, stdout=subprocess.DEVNULL, cwd="/")
    running(*as_postgres, f"{places}/postgres", "-D", data, "-p", port, "-h", "127.0.0.1", "-k", "", "-c", "ssl=on", "-c", f"ssl_cert_file={tmp_path}/cert.pem",
            "-c", f"ssl_key_file={key}", sig=signal.SIGINT, cwd="/")
    until(lambda: answers(port))
    env = {**os.environ, "PGSSLMODE": "require", "PGHOST": "127.0.0.1", "PGPORT": str(port), "PGUSER": "postgres"}
    bench = [which("pgbench") or f"{places}/pgbench"]
    until(lambda: subprocess.run([*bench, "-i", "-q", "postgres"], env=env, stderr=subprocess.DEVNULL, check=False).returncode == 0)
    c = capture("-v", program="sonde-l7")
    probes_in(c, "libssl.so.3")
    subprocess.run([*bench, "-n", "-S", "-c", "3", "-t", "400", "postgres"], env=env, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    c.stop()
    rows = sql_all(store, "SELECT operation, sum(requests) AS n FROM requests WHERE service LIKE ? AND side = 'server' AND protocol LIKE 'postgres%' "
                   "GROUP BY 1", (f"%:{port}",))
    assert [r["n"] for r in rows if "abalance" in r["operation"]] == [1200], (rows, c.said())


@pytest.mark.parametrize("program,library", [("curl", "libssl.so.3"), ("wget", "libgnutls.so.30")])
def test_clients_that_live_for_one_request_are_counted(capture, store, pair, tmp_path, running, program, library):
    need(program)
    command = {"curl": ["curl", "-sf", "--cacert", pair[0]], "wget": ["wget", "-qO-", "--ca-certificate", pair[0]]}[program]
    running(PYTHON, "-c", f"import ctypes, time; ctypes.CDLL('{library}'); time.sleep(999)")  # so that its probes are there already
    with Server(PYTHON, TALK, "sync", *pair) as server:
        c = capture("-v", program="sonde-l7")
        probes_in(c, library)
        for _ in range(12):
            done = subprocess.run([*command, f"https://localhost:{server.port}{PATH}"], capture_output=True, check=True)
            assert done.stdout == b"hello"
        c.stop()
    for side in ("client", "server") if library == "libssl.so.3" else ("client",):
        assert asked(store, server.port, side) == {("GET /item/{id}", "200"): 12}, c.said()
    assert not planted(store, *SECRETS)


def test_probes_go_with_the_last_that_maps_the_file(capture, store, pair, tmp_path):
    program = go_program(tmp_path, "-ldflags=-s -w")
    with Server(program, *pair) as server:
        c = capture("-v", program="sonde-l7")
        probes_in(c, "talk")
        assert client(pair[0], server.port, 3, "/item") == 3  # a capture of nothing at all ends with another word
    until(lambda: "probes taken out" in c.said(), seconds=40)
    c.stop()


class Toggle:
    """Probes of the kernel's own at each site that the index names, all switched on and off together."""

    EVENTS = "/sys/kernel/tracing/uprobe_events"

    def __init__(self, path, folder):
        self.group = f"sonde_{os.getpid()}_{time.monotonic_ns() % 1000000}"
        index = os.path.join(folder, "index")
        subprocess.run([os.path.join(BIN, "sonde-index"), path, "-o", index, "--no-lines"], check=True, stdout=subprocess.DEVNULL)
        told = subprocess.run([os.path.join(BIN, "sonde-index"), "--dump-tls", index], check=True, capture_output=True, text=True).stdout
        self.sites = sorted({line.split()[0] for line in told.splitlines()})
        for site in self.sites:
            self.write(self.EVENTS, f"p:{self.group}/at_{site} {path}:0x{site}")

    @staticmethod
    def write(path, text):
        fd = os.open(path, os.O_WRONLY | os.O_APPEND)
        try:
            os.write(fd, text.encode() + b"\n")
        finally:
            os.close(fd)

    def switch(self, on):
        self.write(f"/sys/kernel/tracing/events/{self.group}/enable", "1" if on else "0")

    def hits(self):
        with open("/sys/kernel/tracing/uprobe_profile", encoding="ascii") as f:
            return sum(int(line.split()[-1]) for line in f if f"at_{self.sites[0]}" in line or any(f"at_{s} " in line for s in self.sites))

    def close(self):
        self.switch(False)
        for site in self.sites:
            self.write(self.EVENTS, f"-:{self.group}/at_{site}")


def library_of(pid, name):
    with open(f"/proc/{pid}/maps", encoding="utf-8") as f:
        return next(line.split()[-1] for line in f if name in line)


@pytest.mark.parametrize("which_one", ["python", "go, stripped", "node"])
def test_probes_that_come_and_go_change_nothing(pair, tmp_path, which_one):
    make, name = HTTP[which_one]
    with Server(*make(tmp_path), *pair) as server:
        toggle = Toggle(library_of(server.pid, name), tmp_path)
        try:
            end, on, times = time.monotonic() + scale(4, 60), False, 0
            with subprocess.Popen([PYTHON, "-c", f"import subprocess, time\nwhile time.monotonic() < {end}: "
                                   f"subprocess.run([{PYTHON!r}, {TALK!r}, 'client', {pair[0]!r}, '{server.port}', '40'], input={PATH.encode()!r}, check=True)"],
                                  stdout=subprocess.DEVNULL) as talk:  # each answer is compared
                while talk.poll() is None:
                    on = not on
                    toggle.switch(on)
                    times += 1
                    time.sleep(0.5)
            assert talk.returncode == 0 and server.p.poll() is None
            assert times > 2 and toggle.hits() > 0
        finally:
            toggle.close()
        assert client(pair[0], server.port, 40, PATH) == 40
