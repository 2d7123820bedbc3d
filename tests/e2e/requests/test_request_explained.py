# SPDX-License-Identifier: Apache-2.0
"""`explain --request`: each request counts once, whoever saw it; nearly all of the time of servers that serve one request after the other is explained, and the rest has
its reason. Threads of Python in the everyday run; gunicorn, php-fpm, Java, PostgreSQL and MariaDB by `make long-explained`."""
import contextlib
import http.client
import json
import os
import shutil
import subprocess
import sys
import tempfile
import textwrap
import threading
import time

import livedin
import pytest
import servers
from conftest import LIB, need_root, sql_all
from containers import cgroup_roots, fake_container
from test_request_time import recorded
from test_traces import AT, request, store_of

RELAY = os.path.join(LIB, "servers", "relay.py")
EXPLAINED = {"cpu", "wait", "run queue"}


def explained(said):
    return sum(r["total_ns"] for r in said["rows"] if r["what"] in EXPLAINED) / said["took_ns"]


@pytest.fixture
def ask(sonde):
    def call(store, operation, *args):
        return json.loads(sonde("explain", "--json", "--request", operation, *args, store=store, check=True).stdout)
    return call


# ---- planted ----

PASSED_ON = (request(1, 7, "nginx", "server", 70, took_us=9000), request(1, 7, "nginx", "client", 80, 70, "opener", 100, 8500),
             request(1, 8, "gunicorn", "server", 90, 80, "bytes", 200, 8000))


def test_a_request_that_is_passed_on_is_one(tmp_path, ask, sonde):
    store = store_of(tmp_path, *PASSED_ON)
    said = ask(store, "GET /1")
    assert (said["requests"], said["took_ns"], said["side"]) == (1, 8_000_000, "server")
    assert [(s["comm"], s["requests"], s["took_ns"]) for s in said["services"]] == [("gunicorn", 1, 8_000_000), ("nginx", 1, 9_000_000)]
    text = sonde("explain", "--request", "GET /1", store=store, check=True).stdout
    assert "1 kept request 'GET /1': 8 ms together, answered by gunicorn" in text and "1 answered by nginx, 9 ms (--comm nginx)" in text
    said = ask(store, "GET /1", "--comm", "nginx")
    assert (said["requests"], said["took_ns"]) == (1, 9_000_000)
    assert [(r["operation"], r["n"]) for r in said["rows"] if r["what"] == "asked"] == [("GET /1", 1)]


def test_a_request_that_only_its_client_saw_is_explained_as_that(tmp_path, ask, sonde):
    store = store_of(tmp_path, request(1, 7, "web", "client", 80, took_us=5000), [{**row, "nth": "2"} for row in request(1, 7, "web", "client", 81, took_us=3000)])
    said = ask(store, "GET /1")
    assert (said["requests"], said["took_ns"], said["side"]) == (2, 8_000_000, "client")
    assert [r["what"] for r in said["rows"]] == ["elsewhere"] and "10.0.0.5:80" in said["rows"][0]["text"]
    out = sonde("flame", "--request", "GET /1", "-o", tmp_path / "x.folded", store=store)
    assert out.returncode == 4 and "only as their clients saw them" in out.stderr, out.stderr


def test_an_operation_that_was_only_counted_is_not_said_to_be_unknown(tmp_path, sonde):
    store = str(tmp_path / "s")
    livedin.put(store, [{"run": "l7", "from": AT, "to": AT + 30, "bucket_s": 10},
                        {"request": "GET /some", "protocol": "http", "service": "10.0.0.5:80", "status": "200", "at": AT, "n": 7, "total_ns": 7000000, "max_ns": 2000000,
                         "pid": 7, "comm": "web", "side": 2}])
    out = sonde("explain", "--request", "GET /some", store=store)
    assert out.returncode == 4 and "7 requests 'GET /some' were counted" in out.stderr and "none was kept by itself" in out.stderr, out.stderr
    out = sonde("explain", "--request", "GET /other", store=store)
    assert out.returncode == 4 and "no request 'GET /other' was kept" in out.stderr, out.stderr


# ---- made ----

class Talker:
    def __init__(self, *argv, prefix=()):
        self.p = subprocess.Popen([*prefix, *map(str, argv)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.port = int(self.p.stdout.readline())

    def end(self):
        self.p.stdin.close()
        self.p.wait(30)
        self.p.stdout.close()


def get(port, path, times):
    for i in range(times):
        c = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
        c.request("GET", path, headers={"X-Request-Id": path.rsplit("/", 1)[-1]})
        a = c.getresponse()
        a.read()
        assert a.status == 200, (path, a.status)
        c.close()


def test_the_time_of_a_thread_that_waits_for_another_server_is_explained(tmp_path, ask):
    need_root()
    store, running = str(tmp_path / "s"), []
    with fake_container() as (container, prefix):
        try:
            running.append(Talker(sys.executable, RELAY, "server", prefix=prefix))
            running.append(Talker(sys.executable, RELAY, "threads", running[0].port, prefix=prefix))
            with recorded(store, container):
                get(running[1].port, "/twice/asked", 8)
        finally:
            for r in reversed(running):
                r.end()
    took = [r["total_us"] for r in sql_all(store, "SELECT total_us FROM request_log WHERE side = 'server' AND operation = 'GET /twice/asked'")]
    said = ask(store, "GET /twice/asked")
    assert (said["requests"], said["took_ns"]) == (len(took), 1000 * sum(took)) and len(took) >= 4
    assert explained(said) >= 0.9, said["rows"]
    (asked,) = [r for r in said["rows"] if r["what"] == "asked"]
    assert asked["n"] == 2 * len(took) and asked["total_ns"] <= said["took_ns"]
    assert said["rows"][0]["what"] == "wait" and said["rows"][0]["reason"] == "network", said["rows"]


# ---- live ----

APP = textwrap.dedent("""
    import os, time, psycopg2, pymysql
    kept = {}
    def pg():
        if "pg" not in kept:
            kept["pg"] = psycopg2.connect(host="127.0.0.1", port=int(os.environ["PG"]), user="postgres", dbname="postgres")
            kept["pg"].autocommit = True
        return kept["pg"].cursor()
    def my():
        if "my" not in kept:
            kept["my"] = pymysql.connect(host="127.0.0.1", port=int(os.environ["MY"]), user="root", autocommit=True)
        return kept["my"].cursor()
    def app(env, start):
        path = env["PATH_INFO"]
        if path == "/postgres":
            c = pg(); c.execute("SELECT pg_sleep(0.03)"); c.fetchall()
        elif path == "/mariadb":
            c = my(); c.execute("SELECT SLEEP(0.03)"); c.fetchall()
        elif path == "/nap":
            time.sleep(0.03)
        start("200 OK", [("Content-Length", "2")])
        return [b"ok"]
""")

PHP = "<?php $d = new PDO('mysql:host=127.0.0.1;port=%d', 'root', ''); $d->query('SELECT SLEEP(0.031)')->fetchAll(); echo 'ok';"

JAVA = textwrap.dedent("""
    import com.sun.net.httpserver.*;
    import java.net.*;
    import java.util.concurrent.*;
    public class Served {
        public static void main(String[] args) throws Exception {
            HttpServer s = HttpServer.create(new InetSocketAddress("127.0.0.1", Integer.parseInt(args[0])), 64);
            s.setExecutor(Executors.newFixedThreadPool(4));
            s.createContext("/", x -> {
                try { Thread.sleep(30); } catch (InterruptedException e) { }
                x.sendResponseHeaders(200, 2);
                x.getResponseBody().write("ok".getBytes());
                x.close();
            });
            s.start();
        }
    }
""")


@pytest.fixture(scope="module")
def stack(tmp_path_factory):
    """(a recording of five kinds of servers, all of whose connections to databases are older than it; when the second half began)"""
    need_root()
    folder, store, running, ends = tempfile.mkdtemp(prefix="sonde-explained-"), str(tmp_path_factory.mktemp("x") / "s"), [], []
    os.chmod(folder, 0o755)
    try:
        with fake_container() as (container, prefix):
            try:
                ports = begin(folder, container, prefix, running)
                for port, path in ports:
                    get(port, path, 6)  # each worker has its connection
                with recorded(store, container):
                    for _ in range(2):  # the first is over when the sides of older connections are known
                        clients = [threading.Thread(target=get, args=(port, path, 25)) for port, path in ports]
                        for t in clients:
                            t.start()
                        for t in clients:
                            t.join()
                        time.sleep(2)
                        ends.append(time.time() - 1)
            except servers.Missing as e:
                pytest.skip(f"missing: {e}")
            finally:
                for r in reversed(running):
                    r.stop()
        yield store, time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(ends[0]))
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def begin(folder, container, prefix, running):
    def server(name, port, argv, seconds=30, **kw):
        r = servers.Running([name])
        running.append(r)
        servers.wait_port(port, r.start([*prefix, *argv], **kw), seconds)

    os.mkdir(os.path.join(folder, "pg"))
    running.append(servers.postgres(os.path.join(folder, "pg"), load=False))
    for root in cgroup_roots():  # what it starts from now on is in there
        with contextlib.suppress(OSError), open(os.path.join(root, "docker", container, "cgroup.procs"), "w", encoding="utf-8") as f:
            f.write(str(running[0].started[0][0].pid))
    data, my = os.path.join(folder, "my"), servers.free_port()
    subprocess.run([servers.find("mariadb-install-db"), f"--datadir={data}", "--user=root", "--auth-root-authentication-method=normal", "--skip-test-db"], check=True, capture_output=True)
    server("mariadbd", my, [servers.find("mariadbd", "/usr/sbin/mariadbd"), "--no-defaults", f"--datadir={data}", f"--socket={folder}/my.sock", f"--port={my}", "--bind-address=127.0.0.1",
                            "--user=root", f"--pid-file={folder}/my.pid"], 60)
    with open(os.path.join(folder, "app.py"), "w", encoding="utf-8") as f:
        f.write(APP)
    app = servers.free_port()
    server("gunicorn", app, [servers.find("gunicorn"), "-w", "2", "-b", f"127.0.0.1:{app}", "--chdir", folder, "app:app"], env=dict(os.environ, PG=running[0].at[3], MY=str(my)))
    fpm, web = servers.free_port(), servers.free_port()
    with open(os.path.join(folder, "fpm.conf"), "w", encoding="utf-8") as f:
        f.write(f"[global]\nerror_log = {folder}/fpm.log\ndaemonize = no\n[www]\nuser = root\ngroup = root\nlisten = 127.0.0.1:{fpm}\npm = static\npm.max_children = 2\n")
    with open(os.path.join(folder, "x.php"), "w", encoding="utf-8") as f:
        f.write(PHP % my)
    server("php-fpm8.2", fpm, [servers.find("php-fpm8.2", "/usr/sbin/php-fpm8.2"), "-R", "-F", "-y", f"{folder}/fpm.conf"])
    with open(os.path.join(folder, "nginx.conf"), "w", encoding="utf-8") as f:
        f.write(f"worker_processes 1; pid {folder}/nginx.pid; error_log {folder}/nginx.log; daemon off; user root; events {{}} http {{ access_log off; server {{ listen 127.0.0.1:{web};\n"
                f"location / {{ fastcgi_pass 127.0.0.1:{fpm}; fastcgi_param SCRIPT_FILENAME {folder}/x.php; fastcgi_param REQUEST_METHOD $request_method; fastcgi_param REQUEST_URI $uri; }} }} }}\n")
    server("nginx", web, [servers.find("nginx"), "-c", f"{folder}/nginx.conf", "-p", folder])
    with open(os.path.join(folder, "Served.java"), "w", encoding="utf-8") as f:
        f.write(JAVA)
    subprocess.run([servers.find("javac"), "-d", folder, f"{folder}/Served.java"], check=True, capture_output=True)
    java = servers.free_port()
    server("java", java, [servers.find("java"), "-Xmx64m", "-cp", folder, "Served", str(java)], 60)
    return [(app, "/postgres"), (app, "/mariadb"), (app, "/nap"), (web, "/php"), (java, "/java")]


@pytest.mark.live
@pytest.mark.parametrize("operation, comm, slept_ns", [("GET /postgres", "gunicorn", 30_000_000), ("GET /mariadb", "gunicorn", 30_000_000), ("GET /nap", "gunicorn", 30_000_000),
                                                       ("GET /php", "php-fpm8.2", 31_000_000), ("GET /java", "java", 30_000_000), ("SELECT pg_sleep(?)", "postgres", 30_000_000),
                                                       ("SELECT SLEEP(?)", "mariadbd", 30_000_000)])
def test_nearly_all_of_the_time_of_a_server_is_explained(stack, ask, operation, comm, slept_ns):
    said = ask(stack[0], operation, "--comm", comm, "--from", stack[1])
    print(f"{operation} of {comm}: {said['requests']} requests, {explained(said):.1%} explained")
    for r in said["rows"]:
        print("  ", r["text"][:110])
    waited = sum(r["total_ns"] for r in said["rows"] if r["what"] == "wait")
    assert waited >= 0.9 * slept_ns * said["requests"] and explained(said) >= 0.9, said["rows"]
