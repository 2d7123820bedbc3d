# SPDX-License-Identifier: Apache-2.0
"""sonde-l7 beside the servers' own counters, on real servers and their clients under load (talks.py, without its packet captures)."""
import collections
import os
import re
import shutil
import subprocess
import tempfile

import pytest
import servers
import talks
from conftest import Capture, sql_all

pytestmark = [pytest.mark.live, pytest.mark.requests, pytest.mark.filterwarnings("ignore::DeprecationWarning")]  # of the clients


class Seen:
    """In place of tcpdump: sonde-l7 watches while the block runs; what it stored stands where the packets would."""

    def __init__(self, path, *ports, snap=0):
        self.store = os.path.join(os.path.dirname(path), "store")

    def __enter__(self):
        self.cap = Capture(self.store, program="sonde-l7").start()
        return self

    def __exit__(self, *_):
        try:
            self.done = self.cap.stop(60)
        finally:
            self.cap.close()


@pytest.fixture(scope="module")
def made():
    """made(name): (store, what is known of it); each is made once."""
    done, folders = {}, []
    keep, talks.Capture = talks.Capture, Seen

    def make(name):
        if name not in done:
            folder = tempfile.mkdtemp(prefix="sonde-l7-")  # which another user can enter: postgres runs as one
            os.chmod(folder, 0o755)
            folders.append(folder)
            try:
                known = talks.ALL[name](folder, os.path.join(folder, "x"))
            except servers.Missing as e:
                pytest.skip(f"missing: {e}")
            done[name] = os.path.join(folder, "store"), known
        return done[name]
    yield make
    talks.Capture = keep
    for folder in folders:
        shutil.rmtree(folder, ignore_errors=True)


SIDES = ["client", "server"]


def rows(made_, side):
    """Requests at the server's port as one side saw them: [{operation, status, result, n}]."""
    store, known = made_
    return sql_all(store, f"SELECT operation, status, result, protocol, sum(requests) AS n FROM requests WHERE side = '{side}'"
                          f" AND service LIKE '%:{known['port']}' GROUP BY 1, 2, 3, 4")


def count(rows_, *begin):
    return sum(r["n"] for r in rows_ if r["operation"].startswith(begin))


def all_known(rows_):
    return not [r for r in rows_ if r["result"] in ("blind", "no-answer")]


def bytes_add_up(store):
    return all(r["seen"] == r["parsed"] + r["skipped"] + r["blind"] for r in sql_all(store, "SELECT seen, parsed, skipped, blind FROM request_bytes"))


@pytest.mark.parametrize("side", SIDES)
def test_redis_counts_the_same_commands_and_errors(made, side):
    at = made("redis")
    by = collections.Counter()
    for r in rows(at, side):
        words = r["operation"].split(" ")
        by[" ".join(words[:2]) if words[0] in ("CONFIG", "COMMAND") else words[0]] += r["n"]
    by.pop("INFO")  # is counted after it has told
    by.pop("NOSUCH")
    assert dict(by) == {k: n + rejected for k, (n, rejected, _) in at[1]["calls"].items()}
    assert all_known(rows(at, side)) and bytes_add_up(at[0])


@pytest.mark.parametrize("side", SIDES)
@pytest.mark.parametrize("name", ["http", "http2"])
def test_http_counts_what_nginx_logged(made, name, side):
    at = made(name)
    logged = collections.Counter(line.split(" ")[2] for line in at[1]["lines"])
    told = collections.Counter()
    for r in rows(at, side):
        told[r["status"]] += r["n"]
    assert told == logged
    assert count(rows(at, side), "GET /u/{id}") == sum("/u/77" in line for line in at[1]["lines"])


@pytest.mark.parametrize("side", SIDES)
def test_postgres_counts_each_statement_in_each_of_pgbenchs_modes(made, side):
    at = made("postgres")
    r = rows(at, side)
    for statement in ("BEGIN", "END", "UPDATE pgbench_accounts", "SELECT abalance", "UPDATE pgbench_tellers", "UPDATE pgbench_branches", "INSERT INTO pgbench_history"):
        assert count(r, statement) == at[1]["transactions"], statement
    assert [(x["operation"], x["status"], x["n"]) for x in r if x["result"] == "error"] == [("select ?/?", "22012", 1)]
    assert all_known(r)


@pytest.mark.parametrize("side", SIDES)
def test_mariadb_counts_the_same_statements(made, side):
    at = made("mysql")
    r, com = rows(at, side), at[1]["com"]
    assert count(r, "BEGIN") == com["begin"] and count(r, "COMMIT") == com["commit"]
    assert count(r, "DELETE FROM") == com["delete"] and count(r, "UPDATE ") == com["update"]
    assert count(r, "PREPARE ") == com["stmt_prepare"] and count(r, "CLOSE") == com["stmt_close"]
    assert count(r, "SELECT ", "select ") == com["select"] and count(r, "load data") == com["load"] == 1
    assert all_known(r)


@pytest.mark.parametrize("side", SIDES)
def test_memcached_counts_hits_and_misses_as_the_server(made, side):
    at = made("memcached")
    r, stats = rows(at, side), at[1]["stats"]
    assert count(r, "set ") == stats["cmd_set"] and count(r, "delete ") == stats["delete_hits"]
    assert sum(x["n"] for x in r if x["status"] == "HIT") == stats["get_hits"]
    assert all_known(r)


@pytest.mark.parametrize("side", SIDES)
def test_mqtt_and_dns_count_what_was_sent(made, side):
    at = made("mqtt")
    by = collections.Counter()
    for r in rows(at, side):
        by[r["operation"]] += r["n"]
    assert by["PUBLISH home/{id}/temp"] == 4 * at[1]["n"] and by["DELIVER home/{id}/temp"] >= 3 * at[1]["n"]
    at = made("dns")
    assert sum(r["n"] for r in rows(at, side)) == at[1]["n"]


@pytest.mark.parametrize("side", SIDES)
def test_rabbitmq_counts_what_was_published(made, side):
    at = made("amqp")
    r = rows(at, side)
    assert count(r, "PUBLISH (default) jobs") == 2 * at[1]["n"] and count(r, "DELIVER") >= at[1]["delivered"]
    assert [(x["operation"], x["status"]) for x in r if x["result"] == "error"] == [("QUEUE DECLARE nowhere", "404")]


@pytest.mark.parametrize("side", SIDES)
def test_grpc_counts_the_same_calls_as_the_server(made, side):
    at = made("grpc")
    by = collections.Counter()
    for r in rows(at, side):
        by[r["operation"]] += r["n"]
    assert dict(by) == {f"GRPC {m}": n for m, n in at[1]["calls"].items()}


@pytest.mark.parametrize("side", SIDES)
def test_php_fpm_logs_the_same_requests(made, side):
    at = made("fastcgi")
    told = collections.Counter()
    for r in rows(at, side):
        told[r["status"]] += r["n"]
    assert told == collections.Counter(line.split(" ")[-1] for line in at[1]["lines"])


# ---- what the packets of talks.py do not have ----

def test_postgres_from_before_over_a_unix_socket_counts_what_pg_stat_database_does(tmp_path):
    folder = tempfile.mkdtemp(prefix="sonde-l7-")
    os.chmod(folder, 0o755)
    try:
        r = servers.postgres(folder, load=False)
    except servers.Missing as e:
        pytest.skip(f"missing: {e}")
    at = ["-h", folder, *r.at[2:]]
    bench = servers.find("pgbench", "/usr/lib/postgresql/15/bin/pgbench")
    try:
        with Seen(os.path.join(folder, "x")) as seen:
            subprocess.run([bench, "-n", "-c", "2", "-t", "200", *at], check=True, capture_output=True)
        for side in SIDES:
            got = collections.Counter()
            for x in sql_all(seen.store, f"SELECT operation, requests FROM requests WHERE side = '{side}' AND protocol = 'postgres' AND service LIKE '{folder}/%'"):
                got[x["operation"].split(" ")[0]] += x["requests"]
            assert (got["BEGIN"], got["END"], got["UPDATE"], got["INSERT"]) == (400, 400, 1200, 400), got
    finally:
        r.stop()
        shutil.rmtree(folder, ignore_errors=True)


SERVERS = {
    "node": (["node", "-e", "require('http').createServer((q, a) => a.end('hi')).listen(PORT, '127.0.0.1')"], 3000),
    "python threads": (["/usr/bin/python3", "-c", """
import http.server
class H(http.server.BaseHTTPRequestHandler):
    protocol_version = 'HTTP/1.1'
    def do_GET(self):
        self.send_response(200); self.send_header('Content-Length', '2'); self.end_headers(); self.wfile.write(b'hi')
    def log_message(self, *a): pass
http.server.ThreadingHTTPServer(('127.0.0.1', PORT), H).serve_forever()"""], 500),
    "python asyncio": (["/usr/bin/python3", "-c", """
import asyncio
async def serve(r, w):
    try:
        while True:
            await r.readuntil(b'\\r\\n\\r\\n')
            w.write(b'HTTP/1.1 200 OK\\r\\nContent-Length: 2\\r\\n\\r\\nhi')
            await w.drain()
    except (asyncio.IncompleteReadError, ConnectionError):
        w.close()
async def main():
    await (await asyncio.start_server(serve, '127.0.0.1', PORT)).serve_forever()
asyncio.run(main())"""], 3000),
}


def go_server(folder):
    with open(os.path.join(folder, "main.go"), "w") as f:
        f.write("package main\nimport (\"fmt\"; \"net/http\"; \"os\")\nfunc main() {\nhttp.HandleFunc(\"/\", func(w http.ResponseWriter, r *http.Request) "
                "{ fmt.Fprint(w, \"hi\") })\nhttp.ListenAndServe(\"127.0.0.1:\"+os.Args[1], nil)\n}\n")
    done = subprocess.run([servers.find("go"), "build", "-o", "server", "main.go"], cwd=folder, capture_output=True, text=True,
                          env={**os.environ, "GOCACHE": os.path.join(folder, "cache"), "GOFLAGS": "-mod=mod", "GO111MODULE": "off"})
    assert not done.returncode, done.stderr
    return [os.path.join(folder, "server"), "PORT"], 5000


def java_server(folder):
    with open(os.path.join(folder, "S.java"), "w") as f:
        f.write("import com.sun.net.httpserver.*; import java.net.*;\npublic class S { public static void main(String[] a) throws Exception {\n"
                "HttpServer s = HttpServer.create(new InetSocketAddress(\"127.0.0.1\", Integer.parseInt(a[0])), 0);\n"
                "s.createContext(\"/\", x -> { x.sendResponseHeaders(200, 2); x.getResponseBody().write(\"hi\".getBytes()); x.close(); });\n s.start(); } }\n")
    return [servers.find("java"), os.path.join(folder, "S.java"), "PORT"], 1000


@pytest.mark.parametrize("name", [*SERVERS, "go", "java"])
def test_each_request_to_a_server_in_this_language_is_counted_on_both_sides(name, tmp_path):
    port = servers.free_port()
    r = servers.Running([])
    try:
        argv, n = go_server(str(tmp_path)) if name == "go" else java_server(str(tmp_path)) if name == "java" else SERVERS[name]
        argv = [servers.find(argv[0]), *(a.replace("PORT", str(port)) for a in argv[1:])]
        load = servers.find("h2load")
        servers.wait_port(port, r.start(argv, cwd=str(tmp_path)), 60)
        with Seen(str(tmp_path / "x")) as seen:
            done = subprocess.run([load, "--h1", "-n", str(n), "-c", "8", f"http://127.0.0.1:{port}/u/7"], capture_output=True, text=True, check=True)
        assert re.search(rf"{n} succeeded", done.stdout), done.stdout
    except servers.Missing as e:
        pytest.skip(f"missing: {e}")
    finally:
        r.stop()
    for side in SIDES:
        got = sql_all(seen.store, f"SELECT sum(requests) AS n FROM requests WHERE side = '{side}' AND service LIKE '%:{port}' AND status = '200'")
        assert got[0]["n"] == n, (side, got)
    assert bytes_add_up(seen.store)
