# SPDX-License-Identifier: Apache-2.0
"""Captures of real servers and their clients on loopback, made by tcpdump, with what the server itself counted.

Each function (folder, file) starts a server, captures what its clients do, writes `file`, and returns facts about it: a dict
with "port" and whatever the server, or the client, counts. Raises servers.Missing where the machine lacks a program.
"""
import concurrent.futures
import contextlib
import ctypes
import glob
import importlib
import json
import os
import re
import shutil
import socket
import struct
import subprocess
import threading
import time
import zlib

import servers
from servers import find, free_port, wait_port


class Capture:
    """tcpdump of some ports of loopback; what was sent before the end of the block is in the file."""

    def __init__(self, path, *ports, snap=0):
        self.path, self.ports, self.snap = path, ports, snap

    def __enter__(self):
        what = " or ".join(f"port {p}" for p in (*self.ports, 9))
        self.p = subprocess.Popen([find("tcpdump", "/usr/bin/tcpdump", "/usr/sbin/tcpdump"), "-i", "lo", "-U", "-s", str(self.snap), "-B", "65536",
                                   "-Z", "root", "-w", self.path, what], stderr=subprocess.PIPE, text=True)
        for line in self.p.stderr:
            if "listening on" in line:
                return self
        raise servers.Missing("the right to capture")

    def __exit__(self, *_):
        mark = b"the capture ends here"
        end = time.monotonic() + 100
        while time.monotonic() < end:
            with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
                s.sendto(mark, ("127.0.0.1", 9))
            with open(self.path, "rb") as f:
                f.seek(max(0, os.path.getsize(self.path) - 400))
                if mark in f.read():
                    break
            time.sleep(0.05)
        self.p.terminate()
        said = self.p.stderr.read()
        self.p.wait()
        dropped = re.search(r"(\d+) packets dropped", said)
        assert not dropped or dropped[1] == "0", said


def run(*argv, **kw):
    done = subprocess.run(argv, capture_output=True, text=True, timeout=120, **kw)
    assert not done.returncode, f"{argv}: {done.stdout[-500:]}{done.stderr[-500:]}"
    return done.stdout


def redis(folder, path, n=20000):
    server, bench, cli = find("redis-server"), find("redis-benchmark"), find("redis-cli")
    port = free_port()
    r = servers.Running(["redis-server"])
    try:
        wait_port(port, r.start([server, "--port", str(port), "--bind", "127.0.0.1", "--save", "", "--dir", folder]))
        with Capture(path, port):
            run(bench, "-p", str(port), "-n", str(n), "-P", "16", "-c", "5", "-q", "-t", "set,get,lpush,lrange_100,mset")
            run(bench, "-p", str(port), "-n", str(n // 10), "-c", "5", "-q", "-r", "1000", "-t", "set,get,incr,sadd,zadd")
            subprocess.run([cli, "-p", str(port)], input="set a 1\nlpush a 2\nmulti\nincr a\nexec\nnosuch\n", text=True, capture_output=True, check=True)
            stats = run(cli, "-p", str(port), "info", "commandstats")
    finally:
        r.stop()
    calls = {m[1].replace("|", " ").upper(): (int(m[2]), int(m[3]), int(m[4]))
             for m in re.finditer(r"cmdstat_(\S+?):calls=(\d+).*?rejected_calls=(\d+),failed_calls=(\d+)", stats)}
    return {"port": port, "calls": calls}


def nginx(folder, path, n=10000, h2=False):
    server, load = find("nginx", "/usr/sbin/nginx"), find("h2load")
    port = free_port()
    conf, log = os.path.join(folder, "nginx.conf"), os.path.join(folder, "access.log")
    with open(os.path.join(folder, "big.txt"), "w") as f:
        f.write("x" * 200000)
    with open(conf, "w") as f:
        f.write(f"worker_processes 1; pid {folder}/pid; error_log /dev/null; daemon off; user root; events {{}}\n"
                f"http {{ keepalive_requests 1000000; log_format plain '$request_method $uri $status'; access_log {log} plain;\n"
                f"server {{ listen 127.0.0.1:{port}{' http2' if h2 else ''}; root {folder}; location /u/ {{ return 200 hello; }}\n"
                "location /none { return 204; } location /broken { return 503; } } }\n")
    r = servers.Running(["nginx"])
    at = f"http://127.0.0.1:{port}"
    kind = [] if h2 else ["--h1"]
    try:
        wait_port(port, r.start([server, "-c", conf, "-p", folder]))
        with Capture(path, port):
            run(load, *kind, "-n", str(n), "-c", "4", "-m", "16", at + "/u/77")
            run(load, *kind, "-n", str(n // 10), "-c", "2", "-m", "8", at + "/u/alice/photos", at + "/none", at + "/broken")
            run(load, *kind, "-n", "20", "-c", "2", "-m", "2", at + "/big.txt")
    finally:
        r.stop()
    with open(log) as f:
        lines = f.read().split("\n")[:-1]
    return {"port": port, "lines": lines}


def postgres(folder, path, n=300):
    r = servers.postgres(folder, load=False)
    port = int(r.at[3])
    bench = find("pgbench", "/usr/lib/postgresql/15/bin/pgbench")
    try:
        with Capture(path, port):
            for mode in ("simple", "extended", "prepared"):
                run(bench, "-n", "-M", mode, "-c", "2", "-t", str(n), *r.at)
            subprocess.run(["psql", "-X", *r.at], input="select 1/0;\nselect 1 \\; select 2;\nselect * from pgbench_branches where bid in (1, 2, 3);\n", text=True,
                           capture_output=True)
    finally:
        r.stop()
    return {"port": port, "transactions": 3 * 2 * n}


def mariadb(folder, path, n=200):
    server, setup, bench, client = find("mariadbd", "/usr/sbin/mariadbd"), find("mariadb-install-db"), find("sysbench"), find("mariadb")
    port = free_port()
    data, sock = os.path.join(folder, "data"), os.path.join(folder, "sock")
    run(setup, f"--datadir={data}", "--user=root", "--auth-root-authentication-method=normal", "--skip-test-db")
    r = servers.Running(["mariadbd"])
    base = [client, "-h", "127.0.0.1", "-P", str(port), "-u", "root", "--protocol=tcp"]
    load = [bench, "--db-driver=mysql", "--mysql-host=127.0.0.1", f"--mysql-port={port}", "--mysql-user=root", "--tables=1", "--table-size=1000",
            "--threads=2", f"--events={n}", "--time=0", "oltp_read_write"]
    try:
        wait_port(port, r.start([server, "--no-defaults", f"--datadir={data}", f"--socket={sock}", f"--port={port}", "--bind-address=127.0.0.1",
                                 "--user=root", f"--pid-file={folder}/pid", "--local-infile=1"]), 60)
        with Capture(path, port):
            run(*base, "-e", "create database sbtest; create table sbtest.l (a int)")
            run(*load, "prepare")
            run(*load, "run")
            run(*load, "--db-ps-mode=disable", "run")
            with open(os.path.join(folder, "lines"), "w") as f:
                f.write("\n".join(map(str, range(5000))))
            run(*base, "--local-infile=1", "-e", f"load data local infile '{folder}/lines' into table sbtest.l")
            subprocess.run([*base, "-C", "-f", "-e", "select repeat('a', 100000); select nope; select * from sbtest.l limit 3000"], capture_output=True)
            told = run(*base, "-N", "-e", "show global status like 'Com\\_%'")
    finally:
        r.stop()
    return {"port": port, "com": {k: int(v) for k, v in re.findall(r"^Com_(\w+)\t(\d+)$", told, re.M)}}


def lines(port, talk):
    """(text to send, what the answer ends with) one after the other over a connection."""
    with socket.create_connection(("127.0.0.1", port), 10) as s:
        for send, end in talk:
            s.sendall(send)
            got = b""
            while end and not got.endswith(end):
                more = s.recv(65536)
                assert more, got
                got += more


def memcached(folder, path, n=500):
    server = find("memcached")
    port = free_port()
    r = servers.Running(["memcached"])
    try:
        wait_port(port, r.start([server, "-u", "root", "-l", "127.0.0.1", "-p", str(port), "-U", "0"]))
        with Capture(path, port):
            for i in range(n):
                key = b"user:%d" % i
                lines(port, [(b"set " + key + b" 0 0 6\r\nEND\r\n1\r\n", b"STORED\r\n"), (b"get " + key + b" gone\r\n", b"END\r\n"), (b"get gone\r\n", b"END\r\n"),
                             (b"delete " + key + b"\r\n", b"DELETED\r\n"), (b"mg x v\r\n", b"EN\r\n")])
            with socket.create_connection(("127.0.0.1", port)) as s:
                s.sendall(b"stats\r\n")
                told = b""
                while not told.endswith(b"END\r\n"):
                    told += s.recv(65536)
    finally:
        r.stop()
    return {"port": port, "stats": {k: int(v) for k, v in re.findall(r"STAT (\w+) (\d+)\r", told.decode())}}


def nats(folder, path, n=500):
    server = find("nats-server", "/usr/sbin/nats-server")
    port = free_port()
    r = servers.Running(["nats-server"])
    try:
        wait_port(port, r.start([server, "-a", "127.0.0.1", "-p", str(port)]))
        with Capture(path, port):
            talk = [(b"CONNECT {\"verbose\":false,\"headers\":true,\"no_responders\":true}\r\nSUB svc 1\r\nSUB _INBOX.a.* 2\r\nPING\r\n", b"PONG\r\n")]
            for i in range(n):
                talk.append((b"PUB svc _INBOX.a.%d 5\r\nhello\r\n" % i, b"\r\nhello\r\n"))
                talk.append((b"PUB _INBOX.a.%d 2\r\nhi\r\n" % i, b"\r\nhi\r\n"))
            talk.append((b"PUB nobody _INBOX.a.x 0\r\n\r\n", b"NATS/1.0 503\r\n\r\n\r\n"))
            lines(port, talk)
    finally:
        r.stop()
    return {"port": port, "n": n}


def mosquitto(folder, path, n=20):
    server, pub, sub = find("mosquitto", "/usr/sbin/mosquitto"), find("mosquitto_pub"), find("mosquitto_sub")
    port = free_port()
    conf = os.path.join(folder, "m.conf")
    with open(conf, "w") as f:
        f.write(f"listener {port} 127.0.0.1\nallow_anonymous true\n")
    r = servers.Running(["mosquitto"])
    try:
        wait_port(port, r.start([server, "-c", conf]))
        with Capture(path, port):
            got = subprocess.Popen(["stdbuf", "-oL", sub, "-h", "127.0.0.1", "-p", str(port), "-t", "home/#", "-q", "2", "-C", str(3 * n), "-d"], stdout=subprocess.PIPE, text=True)
            for line in got.stdout:
                if "SUBACK" in line or "Subscribed" in line:
                    break
            for version in ("mqttv311", "mqttv5"):
                for qos in (0, 1, 2):
                    if version == "mqttv5" and qos:
                        continue
                    subprocess.run([pub, "-V", version, "-h", "127.0.0.1", "-p", str(port), "-t", "home/12/temp", "-q", str(qos), "-l"],
                                   input="21\n" * n, text=True, check=True)
            got.communicate(timeout=120)
    finally:
        r.stop()
    return {"port": port, "n": n}


def dns(folder, path, n=200):
    server = find("dnsmasq", "/usr/sbin/dnsmasq")
    port = free_port()
    r = servers.Running(["dnsmasq"])
    try:
        wait_port(port, r.start([server, "--keep-in-foreground", "--no-resolv", "--no-hosts", "--port", str(port), "--listen-address=127.0.0.1",
                                 "--bind-interfaces", "--user=root", "--pid-file=", "--address=/example.com/10.1.2.3", "--conf-file=/dev/null",
                                 "--cname=x.example.org,www.example.com"]))
        with Capture(path, port):
            for i in range(n):
                name = b"\3www\7example\3com\0" if i % 2 else b"\4host\7example\3net\0"
                ask = struct.pack(">HHHHHH", i, 0x100, 1, 0, 0, 0) + name + struct.pack(">HH", 1 if i % 4 < 2 else 28, 1)
                if i % 10:
                    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
                        s.settimeout(10)
                        s.connect(("127.0.0.1", port))
                        s.send(ask)
                        s.recv(4096)
                else:
                    with socket.create_connection(("127.0.0.1", port), 10) as s:
                        s.sendall(struct.pack(">H", len(ask)) + ask)
                        s.recv(4096)
    finally:
        r.stop()
    return {"port": port, "n": n}


def clickhouse(folder, path, n=20):
    server, client = find("clickhouse-server", "/usr/sbin/clickhouse-server"), find("clickhouse-client")
    port, http, inter = free_port(), free_port(), free_port()
    conf, users = os.path.join(folder, "config.xml"), os.path.join(folder, "users.xml")
    with open(users, "w") as f:
        f.write("<yandex><profiles><default/></profiles><quotas><default/></quotas><users><default><password/><networks><ip>::/0</ip></networks>"
                "<profile>default</profile><quota>default</quota></default></users></yandex>")
    with open(conf, "w") as f:
        f.write(f"<yandex><logger><level>none</level></logger><http_port>{http}</http_port><tcp_port>{port}</tcp_port><interserver_http_port>{inter}</interserver_http_port>"
                f"<listen_host>127.0.0.1</listen_host><path>{folder}/data/</path><tmp_path>{folder}/tmp/</tmp_path><users_config>{users}</users_config>"
                "<default_profile>default</default_profile><default_database>default</default_database><mark_cache_size>5368709</mark_cache_size></yandex>")
    r = servers.Running(["clickhouse"])
    ask = [client, "--host", "127.0.0.1", "--port", str(port)]
    try:
        wait_port(port, r.start([server, f"--config-file={conf}"], cwd=folder), 60)
        before = run(*ask, "-q", "select event, value from system.events")
        with Capture(path, port):
            run(*ask, "-q", "create table t (a UInt32, s String, n Nullable(Float64), l Array(String), f FixedString(3), e Enum8('x' = 1, 'y' = 2), "
                "p Tuple(Int8, Array(Date)), d DateTime) engine = Memory")
            for i in range(n):
                for compression in ("0", "1"):
                    run(*ask, "--compression", compression, "-q", f"select number, toString(number) as s, [1, {i}], ('a', 2.5) from system.numbers limit 2000")
                run(*ask, "-q", "insert into t format TSV", input="7\tit\\'s\t\\N\t['a','b']\tabc\ty\t(1,['2020-01-01'])\t2020-01-01 00:00:00\n" * 50)
            run(*ask, "-q", "select * from t")
            run(*ask, "-n", "-q", "select sum(a), count() from t group by e with totals; select 'a\\'b', 3")
            subprocess.run([*ask, "-q", "select * from nowhere where a = 'secret'"], capture_output=True)
        after = run(*ask, "-q", "select event, value from system.events")
    finally:
        r.stop()
    counts = [dict(line.split("\t") for line in text.split("\n") if line) for text in (before, after)]
    return {"port": port, "n": n, "events": {k: int(counts[1][k]) - int(counts[0][k]) for k in ("Query", "SelectQuery")} | {"InsertQuery": int(counts[1]["InsertQuery"])}}


def library(name):
    """A module of Debian's python3-NAME."""
    try:
        return importlib.import_module(name)
    except ImportError:
        raise servers.Missing(f"python3-{name}") from None


@contextlib.contextmanager
def rabbit(folder):
    """(its port, what runs it) of a RabbitMQ, until the end of the block."""
    library("pika")
    server, epmd = "/usr/lib/rabbitmq/bin/rabbitmq-server", find("epmd")  # the one in the path becomes another user
    if not os.path.exists(server):
        raise servers.Missing("rabbitmq-server")
    port, names = free_port(), free_port()
    env = dict(os.environ, RABBITMQ_NODENAME="talk@localhost", RABBITMQ_NODE_PORT=str(port), RABBITMQ_NODE_IP_ADDRESS="127.0.0.1",
               RABBITMQ_DIST_PORT=str(free_port()), RABBITMQ_MNESIA_BASE=folder, RABBITMQ_LOG_BASE=folder, RABBITMQ_ENABLED_PLUGINS_FILE="/dev/null",
               ERL_EPMD_PORT=str(names), ERL_EPMD_ADDRESS="127.0.0.1", HOME=folder)
    r = servers.Running(["beam.smp"])
    try:
        wait_port(names, r.start([epmd, "-port", str(names), "-address", "127.0.0.1"], env=env))
        wait_port(port, r.start([server], env=env), 300)  # on a busy machine it takes minutes
        yield port, r
    finally:
        r.stop()


def rabbitmq(folder, path, n=300):
    pika = library("pika")
    with rabbit(folder) as (port, _):
        with Capture(path, port):
            c = pika.BlockingConnection(pika.ConnectionParameters("127.0.0.1", port))
            ch = c.channel()
            ch.queue_declare("jobs")
            for i in range(n):
                ch.basic_publish("", "jobs", b"x" * (i * 7 % 5000))
            ch.confirm_delivery()
            for i in range(n):
                ch.basic_publish("", "jobs", b"confirmed")
            got = 0
            for method, _, _ in ch.consume("jobs", inactivity_timeout=10):
                got += 1
                if got > n // 2:
                    ch.basic_ack(method.delivery_tag)
                if got == 2 * n - 10:
                    break
            ch.cancel()
            ch.basic_get("jobs", auto_ack=True)
            try:
                ch.queue_declare("nowhere", passive=True)
            except pika.exceptions.ChannelClosedByBroker:
                pass
            c.close()
    return {"port": port, "n": n, "delivered": got}


def kafka(folder, path, n=2000):
    """librdkafka's mock broker, in this process."""
    kcat = find("kcat", "/usr/bin/kafkacat")
    try:
        lib = ctypes.CDLL("librdkafka.so.1")
    except OSError:
        raise servers.Missing("librdkafka1") from None
    for f in ("rd_kafka_conf_new", "rd_kafka_new", "rd_kafka_mock_cluster_new"):
        getattr(lib, f).restype = ctypes.c_void_p
    lib.rd_kafka_mock_cluster_bootstraps.restype = ctypes.c_char_p
    why = ctypes.create_string_buffer(200)
    client = ctypes.c_void_p(lib.rd_kafka_new(0, ctypes.c_void_p(lib.rd_kafka_conf_new()), why, len(why)))
    cluster = ctypes.c_void_p(lib.rd_kafka_mock_cluster_new(client, 1))
    port = int(lib.rd_kafka_mock_cluster_bootstraps(cluster).decode().split(":")[1])
    base = [kcat, "-b", f"127.0.0.1:{port}"]
    text = "".join(f"message {i}\n" for i in range(n))
    try:
        with Capture(path, port):
            run(*base, "-P", "-t", "orders", "-X", "linger.ms=1", "-X", "batch.num.messages=20", input=text)
            run(*base, "-P", "-t", "clicks", "-z", "lz4", "-X", "acks=0", input=text)
            got = run(*base, "-C", "-t", "orders", "-o", "beginning", "-e", "-q").count("\n")
            run(*base, "-L")
    finally:
        lib.rd_kafka_mock_cluster_destroy(cluster)
        lib.rd_kafka_destroy(client)
    return {"port": port, "n": n, "got": got}


def grpc(folder, path, n=300):
    grpc = library("grpc")
    calls = {}

    class Handler(grpc.GenericRpcHandler):
        def service(self, details):
            def one(request, context):
                calls[details.method] = calls.get(details.method, 0) + 1
                if details.method.endswith("/Fail"):
                    context.abort(grpc.StatusCode.NOT_FOUND, "no such thing")
                return request * 2

            def many(request, context):
                calls[details.method] = calls.get(details.method, 0) + 1
                yield from [request] * 5
            return grpc.unary_stream_rpc_method_handler(many) if details.method.endswith("/List") else grpc.unary_unary_rpc_method_handler(one)

    server = grpc.server(concurrent.futures.ThreadPoolExecutor(4))
    server.add_generic_rpc_handlers((Handler(),))
    port = server.add_insecure_port("127.0.0.1:0")
    server.start()
    try:
        with Capture(path, port):
            with grpc.insecure_channel(f"127.0.0.1:{port}") as channel:
                for i in range(n):
                    channel.unary_unary("/shop.Cart/Get")(b"x" * (i * 97 % 30000), metadata=[("user", str(i))])
                    list(channel.unary_stream("/shop.Cart/List")(b"y"))
                for _ in range(7):
                    try:
                        channel.unary_unary("/shop.Cart/Fail")(b"")
                    except grpc.RpcError:
                        pass
                done = [channel.unary_unary("/shop.Cart/Get").future(b"z") for _ in range(n)]
                [d.result() for d in done]
    finally:
        server.stop(0).wait()
    return {"port": port, "calls": calls}


def zookeeper(folder, path, n=100):
    client, java = library("kazoo.client"), find("java")
    jar = "/usr/share/java/zookeeper.jar"
    if not os.path.exists(jar):
        raise servers.Missing("zookeeper")
    port = free_port()
    conf = os.path.join(folder, "zoo.cfg")
    with open(conf, "w") as f:
        f.write(f"tickTime=2000\ndataDir={folder}/data\nclientPort={port}\nclientPortAddress=127.0.0.1\nadmin.enableServer=false\n4lw.commands.whitelist=*\n")
    r = servers.Running(["java"])
    try:
        wait_port(port, r.start([java, "-cp", jar, "org.apache.zookeeper.server.quorum.QuorumPeerMain", conf], cwd=folder), 60)
        with Capture(path, port):
            zk = client.KazooClient(hosts=f"127.0.0.1:{port}")
            zk.start(timeout=20)
            zk.ensure_path("/app/users")
            for i in range(n):
                zk.create(f"/app/users/{i}", b"x" * i)
                zk.set(f"/app/users/{i}", b"y")
            done = [zk.get_async(f"/app/users/{i}") for i in range(n)]
            [d.get(timeout=10) for d in done]
            zk.get_children("/app/users")
            try:
                zk.set("/app/users/7", b"z", version=99)
            except importlib.import_module("kazoo.exceptions").BadVersionError:
                pass
            zk.stop()
    finally:
        r.stop()
    return {"port": port, "n": n}


def read(s, n):
    got = b""
    while len(got) < n:
        more = s.recv(n - len(got))
        if not more:
            raise EOFError
        got += more
    return got


def recording_server(listener, serve):
    """serve(socket) for each connection, until the listener is closed."""
    def accept():
        while True:
            try:
                s, _ = listener.accept()
            except OSError:
                return
            threading.Thread(target=serve, args=(s,), daemon=True).start()

    threading.Thread(target=accept, daemon=True).start()


def cassandra(folder, path, n=100):
    """cassandra-driver with a server that records, and answers what its client needs."""
    cluster, query = library("cassandra.cluster"), library("cassandra.query")
    policies, errors = library("cassandra.policies"), library("cassandra")
    counts = {}
    listener = socket.create_server(("127.0.0.1", 0))
    port = listener.getsockname()[1]

    def word(text):
        return struct.pack(">H", len(text)) + text

    def result(version, op, body):
        if op == 5:
            return 6, struct.pack(">H", 2) + word(b"CQL_VERSION") + b"\0\1" + word(b"3.4.5") + word(b"COMPRESSION") + b"\0\0"
        if op in (1, 11):
            return 2, b""
        if op == 9:
            return 8, struct.pack(">iH", 4, 4) + body[4:8] + (struct.pack(">iii", 4, 0, 0) if version >= 4 else struct.pack(">ii", 4, 0)) + struct.pack(">ii", 4, 0)
        if b"broken" in body:
            return 0, struct.pack(">iH", 0x2200, 3) + b"bad"
        if op == 7 and b"system" in body:  # one row of the only node, no others
            names = (b"cluster_name", b"data_center", b"rack", b"partitioner", b"release_version")
            head = struct.pack(">iiiH", 2, 1, len(names), 6) + b"system" + struct.pack(">H", 5) + b"local" + b"".join(word(x) + struct.pack(">H", 13) for x in names)
            row = b"".join(struct.pack(">i", 3) + b"one" for _ in names)
            return 8, head + (struct.pack(">i", 1) + row if b"system.local" in body else struct.pack(">i", 0))
        return 8, struct.pack(">i", 1)

    def serve(s):
        try:
            while True:
                version, _, stream, op, length = struct.unpack(">BBhBi", read(s, 9))
                body = read(s, length)
                counts[op] = counts.get(op, 0) + 1
                if version > 4:  # as an older server says
                    what, out = 0, struct.pack(">iH", 10, 7) + b"beta no"
                    version = 4
                else:
                    what, out = result(version, op, body)
                s.sendall(struct.pack(">BBhBi", version | 0x80, 0, stream, what, len(out)) + out)
        except (EOFError, OSError):
            pass

    recording_server(listener, serve)
    try:
        with Capture(path, port):
            for version in (3, 4):
                c = cluster.Cluster(["127.0.0.1"], port=port, protocol_version=version, schema_metadata_enabled=False, token_metadata_enabled=False, compression=False,
                                    load_balancing_policy=policies.WhiteListRoundRobinPolicy(["127.0.0.1"]))
                s = c.connect()
                put = s.prepare("INSERT INTO shop.t (a) VALUES (now())")
                for i in range(n):
                    s.execute(f"SELECT * FROM shop.users WHERE name = 'secret{i}' AND id IN (1, 2, {i})")
                [f.result() for f in [s.execute_async(put) for _ in range(n)]]
                batch = query.BatchStatement()
                batch.add("UPDATE shop.t SET a = 1")
                batch.add(put)
                s.execute(batch)
                try:
                    s.execute("SELECT broken FROM shop.t")
                except errors.InvalidRequest:
                    pass
                c.shutdown()
    finally:
        listener.close()
    return {"port": port, "n": 2 * n, "counts": counts}


def mongo(folder, path, n=100):
    """pymongo with a server that records, and answers what its client needs."""
    pymongo, bson = library("pymongo"), library("bson")
    counts = {}
    listener = socket.create_server(("127.0.0.1", 0))
    port = listener.getsockname()[1]

    def answer(body):
        name = next(iter(body))
        if name not in ("ismaster", "hello"):
            counts[name] = counts.get(name, 0) + 1
        if name == "find":
            return {"cursor": {"id": 0, "ns": f"{body['$db']}.{body[name]}", "firstBatch": [{"_id": i, "name": "x" * 50} for i in range(5)]}, "ok": 1.0}
        if name == "drop":
            return {"ok": 0.0, "code": 26, "codeName": "NamespaceNotFound", "errmsg": "ns not found"}
        if name in ("ismaster", "hello"):
            return {"ismaster": True, "helloOk": True, "maxBsonObjectSize": 16777216, "maxMessageSizeBytes": 48000000, "maxWriteBatchSize": 100000,
                    "maxWireVersion": 13, "minWireVersion": 0, "compression": body.get("compression", []), "ok": 1.0}
        return {"n": 1, "ok": 1.0}

    def serve(s):
        try:
            while True:
                length, number, _, op = struct.unpack("<iiii", read(s, 16))
                body, packed = read(s, length - 16), op == 2012
                if packed:
                    op = struct.unpack("<i", body[:4])[0]
                    body = zlib.decompress(body[9:])
                if op == 2004:
                    at = body.index(b"\0", 4) + 9
                    out = struct.pack("<iqii", 8, 0, 0, 1) + bson.encode(answer(bson.decode(body[at:])))
                    reply = 1
                else:
                    flags, = struct.unpack("<I", body[:4])
                    size, = struct.unpack("<i", body[5:9])
                    said = answer(bson.decode(body[5:5 + size]))
                    if flags & 2:
                        continue
                    out = struct.pack("<IB", 0, 0) + bson.encode(said)
                    reply = 2013
                if packed:
                    out = struct.pack("<iiB", reply, len(out), 2) + zlib.compress(out)
                    reply = 2012
                s.sendall(struct.pack("<iiii", 16 + len(out), 0, number, reply) + out)
        except (EOFError, OSError):
            pass

    recording_server(listener, serve)
    try:
        with Capture(path, port):
            for more in ("", "&compressors=zlib"):
                c = pymongo.MongoClient(f"mongodb://127.0.0.1:{port}/?directConnection=true{more}")
                shop = c.shop.orders
                for i in range(n):
                    shop.insert_one({"_id": i, "secret": "y" * (i * 100)})
                    list(shop.find({"name": "secret"}))
                shop.update_many({"a": 1}, {"$set": {"b": 2}})
                shop.with_options(write_concern=pymongo.WriteConcern(w=0)).insert_one({"_id": "unheard"})
                c.shop.command("drop", "nowhere", check=False)
                c.close()
    finally:
        listener.close()
    return {"port": port, "counts": counts}


def tls(folder, path, n=12):
    openssl = find("openssl")
    port = free_port()
    key, cert = os.path.join(folder, "key"), os.path.join(folder, "cert")
    run(openssl, "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-keyout", key, "-out", cert, "-days", "1", "-subj", "/CN=shop.example")
    r = servers.Running(["openssl"])
    try:
        wait_port(port, r.start([openssl, "s_server", "-accept", f"127.0.0.1:{port}", "-key", key, "-cert", cert, "-WWW"], cwd=folder))
        with open(os.path.join(folder, "page"), "w") as f:
            f.write("hello\n" * 3000)
        with Capture(path, port):
            for i in range(n):
                subprocess.run([openssl, "s_client", "-connect", f"127.0.0.1:{port}", "-servername", "shop.example", "-quiet", ("-tls1_3", "-tls1_2")[i % 2]],
                               input=b"GET /page HTTP/1.0\r\n\r\n", capture_output=True, check=True, timeout=20)
    finally:
        r.stop()
    return {"port": port, "n": n}


def ssh(folder, path):
    server, client, keygen = find("sshd", "/usr/sbin/sshd"), find("ssh"), find("ssh-keygen")
    port = free_port()
    for name in ("host", "user"):
        run(keygen, "-q", "-t", "ed25519", "-N", "", "-f", os.path.join(folder, name))
    shutil.copy(os.path.join(folder, "user.pub"), os.path.join(folder, "allowed"))
    with open(os.path.join(folder, "conf"), "w") as f:
        f.write(f"Port {port}\nListenAddress 127.0.0.1\nHostKey {folder}/host\nAuthorizedKeysFile {folder}/allowed\nPidFile none\nStrictModes no\nUsePAM no\n")
    os.makedirs("/run/sshd", exist_ok=True)
    r = servers.Running(["sshd"])
    try:
        wait_port(port, r.start([server, "-D", "-f", os.path.join(folder, "conf")]))
        with Capture(path, port):
            for _ in range(5):
                run(client, "-F", "none", "-p", str(port), "-i", os.path.join(folder, "user"), "-o", "StrictHostKeyChecking=no", "-o", "UserKnownHostsFile=/dev/null",
                    "root@127.0.0.1", "seq 20000")
    finally:
        r.stop()
    return {"port": port}


def php(folder, path, n=100):
    fpm, server, load = find("php-fpm", *sorted(glob.glob("/usr/sbin/php-fpm*"))), find("nginx", "/usr/sbin/nginx"), find("h2load")
    port, front = free_port(), free_port()
    with open(os.path.join(folder, "index.php"), "w") as f:
        f.write("<?php if (isset($_GET['bad'])) { http_response_code(404); echo 'gone'; } else { echo str_repeat('x', 20000); }")
    log = os.path.join(folder, "access.log")
    with open(os.path.join(folder, "fpm.conf"), "w") as f:
        f.write(f"[global]\nerror_log = {folder}/error.log\n[www]\nuser = root\ngroup = root\nlisten = 127.0.0.1:{port}\npm = static\npm.max_children = 2\n"
                f"access.log = {log}\naccess.format = \"%m %r %s\"\n")
    with open(os.path.join(folder, "nginx.conf"), "w") as f:
        f.write(f"worker_processes 1; pid {folder}/pid; error_log /dev/null; daemon off; user root; events {{}}\n"
                f"http {{ access_log off; upstream php {{ server 127.0.0.1:{port}; keepalive 2; }} server {{ listen 127.0.0.1:{front}; location / {{\n"
                f"fastcgi_pass php; fastcgi_keep_conn on; fastcgi_param SCRIPT_FILENAME {folder}/index.php; fastcgi_param REQUEST_METHOD $request_method;\n"
                "fastcgi_param REQUEST_URI $request_uri; fastcgi_param QUERY_STRING $query_string; fastcgi_param SCRIPT_NAME /index.php;\n"
                "fastcgi_param CONTENT_LENGTH $content_length; fastcgi_param SERVER_NAME shop; } } }\n")
    r = servers.Running(["php-fpm"])
    try:
        wait_port(port, r.start([fpm, "-F", "-R", "-n", "-y", os.path.join(folder, "fpm.conf")]))
        wait_port(front, r.start([server, "-c", os.path.join(folder, "nginx.conf"), "-p", folder]))
        with Capture(path, port):
            at = f"http://127.0.0.1:{front}"
            run(load, "--h1", "-n", str(n), "-c", "2", at + "/user/77")
            run(load, "--h1", "-n", str(n // 10), "-c", "1", at + "/?bad=1")
    finally:
        r.stop()
    with open(log) as f:
        lines = f.read().split("\n")[:-1]
    return {"port": port, "n": n, "lines": lines}


ALL = {"redis": redis, "http": nginx, "http2": lambda folder, path, n=10000: nginx(folder, path, n, h2=True), "postgres": postgres, "mysql": mariadb,
       "memcached": memcached, "nats": nats, "mqtt": mosquitto, "dns": dns, "clickhouse": clickhouse, "amqp": rabbitmq, "kafka": kafka,
       "grpc": grpc, "fastcgi": php, "zookeeper": zookeeper, "mongodb": mongo,
       "cassandra": cassandra}


def tshark(path, port, decode, *fields, where=None):
    """Rows of fields, as Wireshark's dissectors say."""
    argv = [find("tshark"), "-r", path, "-d", f"tcp.port=={port},{decode}", "-Y", where or decode, "-T", "fields", "-E", "occurrence=a", "-E", "aggregator=|"]
    for f in fields:
        argv += ["-e", f]
    done = subprocess.run(argv, capture_output=True, text=True, timeout=300)
    return [line.split("\t") for line in done.stdout.split("\n") if line.strip()]


def replay(path, *args):
    here = os.path.join(os.path.dirname(os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))), os.environ.get("B", "build"), "bin", "sonde")
    done = subprocess.run([here, "replay", path, "--json", *args], capture_output=True, text=True, timeout=120)
    assert done.returncode in (0, 4), done.stderr
    return json.loads(done.stdout)
