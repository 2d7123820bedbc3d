# SPDX-License-Identifier: Apache-2.0
"""Java's servers as Maven has them, inside TLS: each request as often as the server's own log has it; what is planted in them is found by name and line, before
and after a storm of collections."""
import collections
import json
import os
import pathlib
import re
import signal
import socket
import subprocess
import time

import pytest

from conftest import need, need_root, sql_all
from mavenjars import line_of, program
from scripting import TEMURIN
from servers import free_port
from sonded import until
from test_java_tls import Talker, asked, begun, certificate, ended, folders, keys  # noqa: F401

pytestmark = [pytest.mark.live, pytest.mark.long]
POSTGRES = "/usr/lib/postgresql/15/bin"


def told(talker, line=""):
    """The answer to one line, which is no JSON here."""
    talker.child.stdin.write(f"{line}\n".encode())
    talker.child.stdin.flush()
    return talker.child.stdout.readline().decode().strip()


def curl(port, how, paths, at_once=1):
    need("curl")
    done = subprocess.run(["curl", "-skf", f"--{how}", "--parallel", "--parallel-max", str(at_once), *[f"https://127.0.0.1:{port}{p}" for p in paths]],
                          capture_output=True, timeout=300)
    assert done.returncode == 0 and done.stdout == b"hello" * len(paths), done


def logged(folder):
    """{(protocol, operation, status): requests} of the server's own log."""
    with open(f"{folder}/access", encoding="ascii") as f:
        rows = [line.split() for line in f]
    return collections.Counter(("http2" if r[0].startswith("HTTP/2") else "http", f"{r[1]} {r[2]}", r[3]) for r in rows)


def stored(store, port):
    return collections.Counter({(p, *k): n for p in ("http", "http2") for k, n in asked(store, port, "server", p).items()})


@pytest.fixture
def postgres(scratch):
    """One that speaks TLS: its port, and the file of its log."""
    need_root()
    need("postgres", f"{POSTGRES}/postgres")
    port, at = free_port(), pathlib.Path(scratch) / "pg"
    at.mkdir()
    os.chmod(scratch, 0o755)
    cert, key = certificate(str(at))
    os.chmod(key, 0o600)
    for path in (at, cert, key):
        subprocess.run(["chown", "postgres", path], check=True)
    user = ["setpriv", "--reuid=postgres", "--regid=postgres", "--clear-groups"]
    made = subprocess.run([*user, f"{POSTGRES}/initdb", "-D", f"{at}/data", "-A", "trust", "-N"], capture_output=True, cwd="/")
    assert made.returncode == 0, made
    with open(at / "log", "wb") as log:
        server = subprocess.Popen([*user, f"{POSTGRES}/postgres", "-D", f"{at}/data", "-p", str(port), "-h", "127.0.0.1", "-k", "", "-c", "ssl=on", "-c", f"ssl_cert_file={cert}",
                                   "-c", f"ssl_key_file={key}", "-c", "log_statement=all"], stderr=log, stdout=log, cwd="/")

    def answers():
        with socket.socket() as s:
            return s.connect_ex(("127.0.0.1", port)) == 0
    try:
        assert until(answers, 60) and until(lambda: b"ready to accept" in open(at / "log", "rb").read(), 60)
        yield port, at / "log"
    finally:
        server.send_signal(signal.SIGINT)
        server.wait(60)


def statements(log):
    with open(log, encoding="utf-8") as f:
        text = f.read()
    return {name: text.count(f"AS {name}\n") for name in ("slow", "quick")}


def asked_of_shop(port, n):
    """Each path over HTTP/1.1 and over HTTP/2."""
    for how in ("http1.1", "http2"):
        curl(port, how, [f"/item{i}" for i in range(n)])
        curl(port, how, ["/crate"] * 3 * n)
        curl(port, how, ["/pay"] * 3 * n, at_once=6)
        curl(port, how, ["/list"] * 3)


def check_planted(store, sonde, before, after, storm, of="JavaTomcat"):
    """The three that are planted: the first line of `heap` (but for a storm's own, which allocates 4 GB), the first monitor of `waits`, the statement that takes the
    most time."""
    heap = [(r["function"], r["line"]) for r in json.loads(sonde("heap", "--json", store=store, check=True).stdout)["rows"]]
    assert not storm or heap[0] == (f"{of}.storm", line_of(of, "storm")), heap
    assert [row for row in heap if row[0] != f"{of}.storm"][0] == (f"{of}.crate", line_of(of, "allocates")), heap
    waits = json.loads(sonde("waits", "--json", store=store, check=True).stdout)["java"][0]
    line = line_of(of, "convoy")  # the machine says of a compiled method the line that follows
    assert waits["class"] == f"{of}$Till" and waits["place"] in (f"{of}.pay:{line}", f"{of}.pay:{line + 1}") and waits["owner"], waits
    rows = sql_all(store, "SELECT operation, sum(requests) AS n, sum(total_ns) AS ms FROM requests WHERE side = 'client' AND protocol LIKE 'postgres%' GROUP BY 1 ORDER BY ms DESC")
    got = {name: sum(r["n"] for r in rows if f"AS {name}" in r["operation"]) for name in before}
    assert got == {name: after[name] - before[name] for name in before} and "pg_sleep" in rows[0]["operation"], (rows, before, after)


def waited(folder):
    """[(thread, when it ended in ns, ns)] of each wait of 1 ms or longer of a request over HTTP/1.1 in the convoy, as the server counts them."""
    with open(f"{folder}/waited", encoding="ascii") as f:
        rows = [[int(x) for x in line.split()[1:]] for line in f if line.startswith("HTTP/1.1 ")]
    return [(tid, ms * 1_000_000, ns) for tid, ms, ns in rows if ns >= 1_000_000]


def check_joined(store, sonde, waits):
    """Waits for the monitor belong to the requests whose threads waited, by thread and time: to those of HTTP/1.1, which has a thread for each request, that are kept."""
    said = json.loads(sonde("explain", "--json", "--request", "GET /pay", store=store, check=True).stdout)
    rows = [r for r in said["rows"] if r["what"] == "java"]
    line = line_of("JavaTomcat", "convoy")
    assert rows and all((r["reason"], r["object"]) == ("monitor", "JavaTomcat$Till") and "exec" in r["by"] for r in rows), said
    assert {r["function"] for r in rows} <= {f"JavaTomcat.pay:{line}", f"JavaTomcat.pay:{line + 1}"}, rows
    kept = sql_all(store, "SELECT tid, at_ns, total_us * 1000 AS ns FROM request_log WHERE side = 'server' AND protocol = 'http' AND operation = 'GET /pay'")
    truth = [ns for tid, at, ns in waits if any(k["tid"] == tid and k["at_ns"] <= at <= k["at_ns"] + k["ns"] for k in kept)]
    got = sum(r["total_ns"] for r in rows), sum(r["n"] for r in rows)
    print("joined", got, sum(truth), len(truth), len(kept), len(waits))
    assert got[0] == pytest.approx(sum(truth), rel=0.05) and abs(got[1] - len(truth)) <= 1, (got, truth, kept, said)


@pytest.mark.parametrize("version", ["17", "25"])
def test_tomcat_with_postgresql(capture, store, sonde, keys, folders, postgres, tmp_path, version):
    """What the driver prepared before the recording is known by its number alone: here it sends each statement with its text."""
    db, log = postgres
    shop = Talker(keys, str(tmp_path), f"jdbc:postgresql://127.0.0.1:{db}/postgres?user=postgres&sslmode=require&prepareThreshold=0", java=(TEMURIN if version == "25" else "java",),
                  classes=program("JavaTomcat", "tomcat"), main="JavaTomcat", options=("-Dtomcat.util.scan.StandardJarScanFilter.jarsToSkip=*",))
    try:
        asked_of_shop(shop.port, 1)
        for i, line in enumerate(("calm", "storm")):
            at, before, queries, paid = f"{store}{i}", logged(tmp_path), statements(log), len(waited(tmp_path))
            l7, java = begun(capture, folders, shop.pid, only=False, store=at)
            assert told(shop, line) == "done"
            asked_of_shop(shop.port, 8)
            time.sleep(2)
            ended(java)
            l7.stop()
            did = logged(tmp_path) - before
            assert sum(did.values()) == 2 * 59 and stored(at, shop.port) == did, (stored(at, shop.port), did)
            check_planted(at, sonde, queries, statements(log), line == "storm")
            check_joined(at, sonde, waited(tmp_path)[paid:])
    finally:
        said = shop.close()
    assert "Full thread dump" not in said, said


def test_jetty(capture, store, keys, folders, tmp_path):
    need_root()
    server = Talker(keys, str(tmp_path), classes=program("JavaJetty", "jetty"), main="JavaJetty")
    try:
        curl(server.port, "http2", ["/before"])
        assert until(lambda: sum(logged(tmp_path).values()) == 1, 30)  # it logs what it has answered
        before = logged(tmp_path)
        l7, java = begun(capture, folders, server.pid)
        for how in ("http1.1", "http2"):
            curl(server.port, how, [f"/item{i % 9}" for i in range(40)], at_once=5)
        assert until(lambda: sum(logged(tmp_path).values()) == 81, 30)
        ended(java)
        l7.stop()
    finally:
        said = server.close()
    did = logged(tmp_path) - before
    assert sum(did.values()) == 80 and stored(store, server.port) == did and "Full thread dump" not in said, (stored(store, server.port), did)


def broker(folder, keys, classes):
    """A Kafka broker by itself, plain without keys: (its process, its port, the port of its counters)."""
    port, control, jmx = free_port(), free_port(), free_port()
    how = "SSL" if keys else "PLAINTEXT"
    inside = [f"ssl.keystore.location={keys}", "ssl.keystore.type=PKCS12", "ssl.keystore.password=changeit", "ssl.key.password=changeit", f"ssl.truststore.location={keys}",
              "ssl.truststore.type=PKCS12", "ssl.truststore.password=changeit", "ssl.endpoint.identification.algorithm="]
    with open(f"{folder}/conf", "w", encoding="ascii") as f:
        f.write("\n".join(["process.roles=broker,controller", "node.id=1", f"controller.quorum.voters=1@127.0.0.1:{control}",
                           f"listeners=CLIENTS://127.0.0.1:{port},CONTROLLER://127.0.0.1:{control}", "controller.listener.names=CONTROLLER",
                           "inter.broker.listener.name=CLIENTS", f"listener.security.protocol.map=CONTROLLER:PLAINTEXT,CLIENTS:{how}", f"log.dirs={folder}/logs",
                           *(inside if keys else []), "offsets.topic.replication.factor=1", "num.partitions=1", ""]))
    run = ["java", "-Xmx256m", "-cp", classes]
    subprocess.run([*run, "kafka.tools.StorageTool", "format", "-t", "AAAAAAAAAAAAAAAAAAAAAA", "-c", f"{folder}/conf"], check=True, capture_output=True, timeout=120)
    told = [f"-Dcom.sun.management.jmxremote.{k}" for k in (f"port={jmx}", f"rmi.port={jmx}", "authenticate=false", "ssl=false", "host=127.0.0.1")]
    with open(f"{folder}/said", "wb") as said:
        return subprocess.Popen([*run[:2], *told, "-Djava.rmi.server.hostname=127.0.0.1", *run[2:], "kafka.Kafka", f"{folder}/conf"], stdout=said, stderr=said), port, jmx


KAFKA_APIS = {"Produce": "PRODUCE", "Fetch": "FETCH", "ListOffsets": "LIST OFFSETS", "Metadata": "METADATA"}


@pytest.mark.parametrize("inside", [True, False], ids=["inside", "plain"])
def test_a_kafka_broker_and_its_client(capture, store, keys, folders, tmp_path, inside):
    """Each API as often as the broker counts it, on connections that are older than the recording and on the client's new ones."""
    need_root()
    classes = program("JavaKafka", "kafka")
    server, port, jmx = broker(str(tmp_path), keys if inside else None, classes)
    try:
        def answers():
            with socket.socket() as s, socket.socket() as t:
                return not s.connect_ex(("127.0.0.1", port)) and not t.connect_ex(("127.0.0.1", jmx))
        assert until(answers, 120), open(tmp_path / "said", encoding="utf-8").read()[-3000:]
        client = Talker(f"127.0.0.1:{port}", keys if inside else "-", str(jmx), classes=classes, main="JavaKafka")
        client.ask("store shop 3")
        client.ask("fetch shop 3")
        time.sleep(1)  # a fetch that waits for more is answered
        if inside:
            l7, java = begun(capture, folders, server.pid, client.pid)
        else:
            l7 = capture("--pid", server.pid, "--pid", client.pid, program="sonde-l7")
        before = client.ask("counts")
        end = client.ask("store shop 40")["end"]
        assert client.ask("fetch shop 43")["fetched"] >= 43 and end == 43
        time.sleep(1)
        did = {api: n - before.get(api, 0) for api, n in client.ask("counts").items()}
        if inside:
            ended(java)
        l7.stop()
        rows = sql_all(store, "SELECT side, protocol, operation, sum(requests) AS n FROM requests WHERE service LIKE ? GROUP BY 1, 2, 3", (f"%:{port}",))
        assert {r["protocol"] for r in rows} - {"tls"} == {"kafka"}, rows
        got = {side: {api: sum(r["n"] for r in rows if r["side"] == side and f"{r['operation']} ".startswith(f"{name} ")) for api, name in KAFKA_APIS.items()}
               for side in ("server", "client")}
        wanted = {api: did.get(api, 0) for api in KAFKA_APIS}
        assert got["server"] == wanted and wanted["Produce"] == 40 and wanted["Fetch"] >= 4, (got, did, rows)
        # the answer to what the consumer asks for in advance lies unread while it does not poll
        assert got["client"] in (wanted, {**wanted, "Fetch": wanted["Fetch"] - 1}), (got, did, rows)
        said = client.close()
        assert "Full thread dump" not in said + open(tmp_path / "said", encoding="utf-8").read()
    finally:
        server.terminate()
        server.wait(60)


@pytest.mark.parametrize("provider", ["openssl", "jdk"])
def test_netty(capture, store, folders, tmp_path, provider):
    """Its own library has BoringSSL in it and no file any more; its connections have no descriptor but those of Java."""
    need_root()
    server = Talker(*certificate(str(tmp_path)), str(tmp_path), provider, classes=program("JavaNetty", "netty"), main="JavaNetty")
    try:
        curl(server.port, "http2", ["/before"])
        assert until(lambda: sum(logged(tmp_path).values()) == 1, 30)
        before = logged(tmp_path)
        if provider == "jdk":
            l7, java = begun(capture, folders, server.pid)
        else:
            with open(f"/proc/{server.pid}/maps", encoding="ascii") as f:
                assert any("tcnative" in line and "(deleted)" in line for line in f)
            l7 = capture("-v", "--pid", server.pid, program="sonde-l7")
            assert until(lambda: re.search(r"probes in \S*tcnative", l7.said()), 180), l7.said()
        for how in ("http1.1", "http2"):
            curl(server.port, how, [f"/item{i % 9}" for i in range(40)], at_once=5)
        assert until(lambda: sum(logged(tmp_path).values()) == 81, 30)
        if provider == "jdk":
            ended(java)
        l7.stop()
    finally:
        said = server.close()
    did = logged(tmp_path) - before
    assert sum(did.values()) == 80 and stored(store, server.port) == did and "Full thread dump" not in said, (stored(store, server.port), did, said)
