# SPDX-License-Identifier: Apache-2.0
"""What seven servers log, as they write it: few patterns, and each error in one that says what it is. Counted beside grep."""
import contextlib
import os
import re
import shutil
import socket
import subprocess
import time

import pytest

import servers
from conftest import need, need_root
from sonded import until
from talks import free_port, library, wait_port
from test_logs import WAIT, lines, messages, patterns, reads

pytestmark = pytest.mark.long
POSTGRES = "/usr/lib/postgresql/15/bin"


def run(*argv, **kw):
    return subprocess.run([str(a) for a in argv], capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL, timeout=300, **kw)


def start(argv, log):
    with open(log, "wb") as f:
        return subprocess.Popen([str(a) for a in argv], stdin=subprocess.DEVNULL, stdout=f, stderr=f)


def postgres(folder, log):
    os.chmod(folder, 0o755)
    shutil.chown(folder, "postgres")
    user = ["setpriv", "--reuid=postgres", "--regid=postgres", "--clear-groups"]
    assert run(*user, f"{POSTGRES}/initdb", "-D", f"{folder}/data", "-A", "trust", "-N").returncode == 0
    server = start([*user, f"{POSTGRES}/postgres", "-D", f"{folder}/data", "-k", folder, "-c", "listen_addresses=", "-c", "log_connections=on",
                    "-c", "log_lock_waits=on", "-c", "log_checkpoints=on"], log)
    psql = ["psql", "-h", folder, "-U", "postgres", "-q", "-c"]
    assert until(lambda: run(*psql, "SELECT 1").returncode == 0, 60)
    run(*psql, "CREATE TABLE a(id int PRIMARY KEY, b text NOT NULL); INSERT INTO a VALUES(1, 'x')")
    for i in range(12):
        for statement in (f"SELECT * FROM missing_{i}", f"INSERT INTO a VALUES(1, 'y{i}')", f"INSERT INTO a VALUES({i + 5}, NULL)", "SELECT 1/0", f"SELECT 'x{i}'::int",
                          f"SELEKT {i}", f"SELECT nope_{i} FROM a", f"DO $$ BEGIN RAISE WARNING 'low on room: % left', {i}; END $$"):
            run(*psql, statement)
        run("psql", "-h", folder, "-U", f"stranger{i}", "-q", "-c", "SELECT 1")
    return server, r" (ERROR|FATAL|WARNING|PANIC):  "


def mariadb(folder, log):
    assert run("mariadb-install-db", f"--datadir={folder}/data", "--user=root", "--auth-root-authentication-method=normal", "--skip-test-db").returncode == 0
    server = start(["mariadbd", "--no-defaults", f"--datadir={folder}/data", f"--socket={folder}/sock", "--skip-networking", "--user=root", "--log-warnings=9",
                    f"--pid-file={folder}/pid"], log)
    client = ["mariadb", "-S", f"{folder}/sock"]
    assert until(lambda: run(*client, "-u", "root", "-e", "SELECT 1").returncode == 0, 60)
    for i in range(30):
        run(*client, "-u", f"stranger{i}", "-psecret", "-e", "SELECT 1")
        run(*client, "-u", "root", "-e", f"KILL CONNECTION_ID(); SELECT {i}")
    return server, r"\[(ERROR|Warning)\]"


def nginx(folder, log):
    with open(f"{folder}/conf", "w", encoding="ascii") as f:
        f.write(f"pid {folder}/pid; error_log stderr info; daemon off; user root; events {{}} http {{ access_log off; client_max_body_size 1k;\n"
                f"server {{ listen unix:{folder}/sock; root {folder}; location /up/ {{ proxy_pass http://127.0.0.1:9; }} location /no/ {{ deny all; }} }} }}\n")
    server = start(["nginx", "-c", f"{folder}/conf", "-p", folder], log)
    assert until(lambda: os.path.exists(f"{folder}/sock"), 60)
    for i in range(60):
        run("curl", "-s", "--unix-socket", f"{folder}/sock", f"http://x/page-{i}.html", f"http://x/up/{i}", f"http://x/no/{i}")
        run("curl", "-s", "--unix-socket", f"{folder}/sock", "-d", "y" * 2000, f"http://x/post/{i}")
    return server, r"\[(error|warn|crit|alert|emerg)\]"


def redis(folder, log):
    server = start(["redis-server", "--port", "0", "--unixsocket", f"{folder}/sock", "--dir", folder, "--loglevel", "debug"], log)
    client = ["redis-cli", "-s", f"{folder}/sock"]
    assert until(lambda: run(*client, "ping").stdout == "PONG\n", 60)
    for i in range(20):
        run(*client, "set", f"k{i}", "x" * i)
        run(*client, "bgsave")
        run(*client, "config", "set", "dir", folder)
        run(*client, "replicaof", "127.0.0.1", "9")
        time.sleep(0.1)
        run(*client, "replicaof", "no", "one")
    return server, r"^\d+:[A-Z] .{20,27} # "


def haproxy(folder, log):
    with open(f"{folder}/conf", "w", encoding="ascii") as f:
        f.write("global\n log stdout format raw local0\ndefaults\n mode http\n log global\n timeout connect 1s\n timeout client 2s\n timeout server 2s\n"
                f"frontend fe\n bind unix@{folder}/sock\n default_backend be\nbackend be\n"
                + "".join(f" server s{i} 127.0.0.1:{9 + i} check inter 300ms\n" for i in range(5)))
    server = start(["haproxy", "-f", f"{folder}/conf", "-db"], log)
    assert until(lambda: os.path.exists(f"{folder}/sock"), 60)
    for i in range(40):
        run("curl", "-s", "--unix-socket", f"{folder}/sock", f"http://x/{i}")
    return server, r"^\[(WARNING|ALERT)\]"


class Ends:
    """What was left running, as a process is ended."""

    def __init__(self, running):
        self.running = running

    def terminate(self):
        self.running.stop()

    def wait(self, _):
        pass


def rabbitmq(folder, log):
    pika, names, port = library("pika"), free_port(), free_port()
    env = dict(os.environ, RABBITMQ_NODENAME="logs@localhost", RABBITMQ_NODE_PORT=str(port), RABBITMQ_NODE_IP_ADDRESS="127.0.0.1", RABBITMQ_DIST_PORT=str(free_port()),
               RABBITMQ_MNESIA_BASE=folder, RABBITMQ_LOG_BASE=folder, RABBITMQ_LOGS=log, RABBITMQ_ENABLED_PLUGINS_FILE="/dev/null", ERL_EPMD_PORT=str(names),
               ERL_EPMD_ADDRESS="127.0.0.1", HOME=folder)
    r = servers.Running(["beam.smp"])
    wait_port(names, r.start([shutil.which("epmd"), "-port", str(names), "-address", "127.0.0.1"], env=env))
    wait_port(port, r.start(["/usr/lib/rabbitmq/bin/rabbitmq-server"], env=env), 90)

    def connected(**kw):
        return pika.BlockingConnection(pika.ConnectionParameters("127.0.0.1", port, **kw))
    for i in range(12):
        for kw in ({"credentials": pika.PlainCredentials(f"stranger{i}", f"Tr0ub4dor{i}")}, {"virtual_host": f"nowhere{i}"}):
            with contextlib.suppress(pika.exceptions.AMQPError):
                connected(**kw)
        c = connected()
        for ask in (lambda ch: ch.queue_declare(f"missing{i}", passive=True), lambda ch: ch.basic_publish(f"exchange{i}", "x", b"y") or ch.queue_declare("after"),  # noqa: B023
                    lambda ch: (ch.queue_declare(f"q{i}"), ch.queue_declare(f"q{i}", exclusive=True))):  # noqa: B023
            with contextlib.suppress(pika.exceptions.AMQPError):
                ask(c.channel())
        with socket.create_connection(("127.0.0.1", port)) as s:
            s.sendall(b"GET / HTTP/1.1\r\n\r\n")
            s.recv(100)
        c._impl._transport.abort()  # without a goodbye
    time.sleep(2)
    return Ends(r), r"\[(error|warning)\]"


def clickhouse(folder, log):
    server, port = shutil.which("clickhouse-server") or "/usr/sbin/clickhouse-server", free_port()
    with open(f"{folder}/users.xml", "w", encoding="ascii") as f:
        f.write("<yandex><profiles><default/></profiles><quotas><default/></quotas><users><default><password/><networks><ip>::/0</ip></networks>"
                "<profile>default</profile><quota>default</quota></default></users></yandex>")
    with open(f"{folder}/config.xml", "w", encoding="ascii") as f:
        f.write(f"<yandex><logger><level>trace</level><log>{log}</log><errorlog>{folder}/errors</errorlog></logger><http_port>{free_port()}</http_port><tcp_port>{port}</tcp_port>"
                f"<interserver_http_port>{free_port()}</interserver_http_port><listen_host>127.0.0.1</listen_host><path>{folder}/data/</path><tmp_path>{folder}/tmp/</tmp_path>"
                f"<users_config>{folder}/users.xml</users_config><default_profile>default</default_profile><default_database>default</default_database>"
                "<mark_cache_size>5368709</mark_cache_size></yandex>")
    r = servers.Running(["clickhouse"])
    wait_port(port, r.start([server, f"--config-file={folder}/config.xml"], cwd=folder), 60)
    for i in range(12):
        for sql in (f"SELECT * FROM missing_{i}", f"SELECT nope_{i} FROM system.one", f"SELEKT {i}", f"SELECT toInt32('x{i}')", f"CREATE TABLE t{i} (a Int8) ENGINE = Nothing{i}",
                    "SELECT throwIf(1)", f"SELECT number FROM system.numbers LIMIT {i}"):
            run("clickhouse-client", "--host", "127.0.0.1", "--port", port, "-q", sql)
        run("clickhouse-client", "--host", "127.0.0.1", "--port", port, "--user", f"stranger{i}", "--password", "Tr0ub4dor", "-q", "SELECT 1")
    return Ends(r), r"<(Error|Warning|Fatal|Critical)>"


SERVERS = {"postgres": (postgres, "psql"), "mariadb": (mariadb, "mariadbd"), "nginx": (nginx, "nginx"), "redis": (redis, "redis-server"), "haproxy": (haproxy, "haproxy"), "rabbitmq": (rabbitmq, "/usr/lib/rabbitmq/bin/rabbitmq-server"),
           "clickhouse": (clickhouse, "/usr/sbin/clickhouse-server")}


@pytest.mark.parametrize("name", SERVERS)
def test_what_a_server_logs_has_few_patterns_and_every_error_has_one(capture, store, scratch, name):
    need_root()
    make, program = SERVERS[name]
    need(program)
    cap = capture("--files", f"{scratch}/*.log", program="sonde-logs")
    reads(store, f"{scratch}/probe.log")
    folder, log = f"{scratch}/of-{name}", f"{scratch}/{name}.log"
    os.mkdir(folder)
    server, bad = make(folder, log)
    server.terminate()
    server.wait(60)
    with open(log, encoding="utf-8", errors="replace") as f:
        wrote = f.read().splitlines()
    assert until(lambda: lines(store).get(log) == len(wrote), WAIT), (lines(store), len(wrote))
    time.sleep(2.5)  # the last message is over after a second without lines
    cap.stop()
    found, matches = patterns(store, log), [line for line in wrote if re.search(bad, line)]
    print(f"{name}: {len(wrote)} lines, {len(matches)} bad, {len(found)} patterns", *(f"{p['n']:6} {p['level']:8} {p['pattern']}" for p in found), sep="\n")
    assert len(matches) >= 5 and 1 <= len(found) <= 60
    assert sum(p["n"] for p in found) == messages(store, log, "warning", "error", "fatal")
    assert messages(store, log, "warning", "error", "fatal") == len(matches)
    assert not [p for p in found if p["pattern"] in ("~other", "*")]
