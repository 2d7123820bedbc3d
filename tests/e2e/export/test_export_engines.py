# SPDX-License-Identifier: Apache-2.0
"""Real engines beside sonde: what they answer is what the store has (make long-export)."""
import contextlib
import json
import os
import signal
import socket
import sqlite3
import subprocess
import threading
import time
import urllib.error
import urllib.parse
import urllib.request

import pytest

from clickhouse import Receiver
from conftest import BIN, need, need_root, sql_all
from serving import Serve
from test_export import Made, one
from test_push import SECRET, push

pytestmark = pytest.mark.long


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


class Prometheus:
    """A Prometheus of its own that scrapes one address each second."""

    def __init__(self, folder, target):
        need("prometheus")
        self.port = free_port()
        os.makedirs(folder)
        with open(f"{folder}/prometheus.yml", "w", encoding="ascii") as f:
            f.write("global: {scrape_interval: 1s, scrape_timeout: 1s}\nscrape_configs:\n- job_name: sonde\n"
                    f"  static_configs:\n  - targets: ['{target}']\n")
        with open(f"{folder}/log", "w", encoding="ascii") as log:
            self.child = subprocess.Popen(["prometheus", f"--config.file={folder}/prometheus.yml", f"--storage.tsdb.path={folder}/data",
                                           f"--web.listen-address=127.0.0.1:{self.port}"], stdout=log, stderr=log)

    def ask(self, query):
        """[(labels, value)] of an instant query; [] while it is starting."""
        url = f"http://127.0.0.1:{self.port}/api/v1/query?" + urllib.parse.urlencode({"query": query})
        with contextlib.suppress(OSError), urllib.request.urlopen(url, timeout=10) as r:
            return [(x["metric"], float(x["value"][1]) if "value" in x else x["values"]) for x in json.load(r)["data"]["result"]]
        return []

    def value(self, query):
        return sum(v for _, v in self.ask(query))

    def until(self, query, value):
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline:
            got = self.value(query)
            if got == pytest.approx(value, rel=1e-12):
                return
            time.sleep(0.2)
        raise AssertionError(f"{query} is {self.value(query)}, not {value}")

    def close(self):
        self.child.send_signal(signal.SIGTERM)
        self.child.wait(30)


class Writer(threading.Thread):
    """Puts a row a second into a store; now and then it begins a segment, and removes the one before the last."""

    def __init__(self, store, seconds):
        super().__init__()
        self.store, self.seconds, self.put, self.paths = store, seconds, 0, [store.path]

    def run(self):
        for i in range(self.seconds):
            now = int(time.time())
            if i % 20 == 19:
                self.paths.append(self.store.begin(now))
            if len(self.paths) > 8:
                os.remove(self.paths.pop(0))
            self.store.container(now, "web", user_us=1000 + i, mem=i, periods=1)
            self.put += 1000 + i
            time.sleep(1)


def test_what_prometheus_counts_is_what_was_put_there_over_restarts_and_rotation(scratch):
    store = Made(f"{scratch}/made", int(time.time()) - 5)
    port, env = free_port(), {"STATE_DIRECTORY": f"{scratch}/state"}
    server = Serve(store.dir, listen=f"127.0.0.1:{port}", env=env)
    writer = Writer(store, 240)
    with contextlib.closing(Prometheus(f"{scratch}/prometheus", f"127.0.0.1:{port}")) as prometheus:
        writer.start()
        while writer.is_alive():
            writer.join(13)
            server.end(signal.SIGKILL)
            server.close()
            server = Serve(store.dir, listen=f"127.0.0.1:{port}", env=env)
        prometheus.until('sonde_container_cpu_seconds_total{container="web",mode="user"}', writer.put / 1e6)
        assert prometheus.value('resets(sonde_container_cpu_seconds_total{container="web",mode="user"}[10m])') == 0
        assert prometheus.value('sonde_container_memory_bytes{container="web",kind="all"}') == writer.seconds - 1
        assert prometheus.value("sonde_export_missed_seconds_total") == 0
        assert prometheus.value("count({__name__=~'sonde_.*'})") == prometheus.value("sonde_export_series")
    server.end()
    server.close()


def test_what_prometheus_says_of_this_host_is_what_sonde_says(scratch):
    need_root()
    need("prometheus")
    store, port = f"{scratch}/store", free_port()
    recorder = subprocess.Popen([f"{BIN}/sonde", "record", "-q", "--families", "cpu,offcpu,host,net", "-d", "30s", "--store", store],
                                stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    server = Serve(store, listen=f"127.0.0.1:{port}", env={"STATE_DIRECTORY": f"{scratch}/state"})
    with contextlib.closing(Prometheus(f"{scratch}/prometheus", f"127.0.0.1:{port}")) as prometheus:
        assert recorder.wait(180) == 0
        for query, sql in (("sonde_host_cpu_seconds_total{mode='user'}", "SELECT sum(user_us) / 1e6 AS v FROM host_stats"),
                           ("sum(sonde_profile_samples_total)", "SELECT sum(samples) AS v FROM cpu_samples WHERE NOT self"),
                           ("sum(sonde_thread_seconds_total{state='ready'})", "SELECT sum(total_ns) / 1e9 AS v FROM wait_totals WHERE state = 'ready' AND NOT self"),
                           ("sum(sonde_connections_opened_total)", "SELECT sum(opened) AS v FROM flows WHERE NOT self"),
                           ("sum(sonde_process_ends_total)", "SELECT sum(n) AS v FROM process_ends")):
            prometheus.until(query, one(store, sql))
        blocked = {r["reason"]: r["s"] for r in sql_all(store, "SELECT reason, sum(total_ns) / 1e9 AS s FROM wait_totals WHERE state = 'blocked' AND NOT self GROUP BY 1")}
        told = {labels["reason"]: v for labels, v in prometheus.ask("sum by (reason) (sonde_thread_seconds_total{state='blocked'})")}
        assert told == pytest.approx(blocked)
    server.end()
    server.close()


def test_an_argument_that_was_typed_is_not_sent(scratch):
    need_root()
    receiver = Receiver()
    store = f"{scratch}/store"
    subprocess.run([f"{BIN}/sonde", "record", "-q", "--store", store, "--args", "full", "--", "sh", "-c", f": --password={SECRET}; i=0; while [ $i -lt 60000 ]; do i=$((i+1)); done"],
                   check=True, capture_output=True)
    samples = sum(r["n"] for r in sql_all(store, "SELECT sum(samples) AS n FROM cpu_samples"))
    assert any(SECRET in r["args"] for r in sql_all(store, "SELECT args FROM processes"))
    conf = f"{scratch}/all.conf"
    with open(conf, "w", encoding="ascii") as f:
        f.write(f"[export.fleet]\nurl = {receiver.url}\ncompression = none\n")
    [segment] = [f"{store}/{n}" for n in os.listdir(store) if n.endswith(".db")]
    with sqlite3.connect(segment) as db:  # so that all of it has settled
        db.execute("INSERT INTO sample(ts, series, n) SELECT 3600, max(id), 1 FROM series")
        db.execute("UPDATE run SET to_ns = to_ns + 3600000000000")
    push(conf, store, scratch)
    assert sum(r["samples"] for r in receiver.deduped("cpu_samples")) == samples > 0
    assert SECRET.encode() not in receiver.bytes
    receiver.close()


class ClickHouse:
    """Debian's ClickHouse server on the loopback, with a password."""

    def __init__(self, folder):
        need("clickhouse-server")
        os.makedirs(f"{folder}/data")
        self.port, self.folder = free_port(), folder
        with open(f"{folder}/config.xml", "w", encoding="ascii") as f:
            f.write(f"<clickhouse><logger><level>error</level><log>{folder}/log</log><errorlog>{folder}/err</errorlog></logger><http_port>{self.port}</http_port>"
                    f"<tcp_port>{free_port()}</tcp_port><listen_host>127.0.0.1</listen_host><path>{folder}/data/</path><tmp_path>{folder}/tmp/</tmp_path>"
                    f"<user_files_path>{folder}/files/</user_files_path><mark_cache_size>67108864</mark_cache_size><users_config>users.xml</users_config>"
                    "<default_profile>default</default_profile><default_database>default</default_database></clickhouse>")
        with open(f"{folder}/users.xml", "w", encoding="ascii") as f:
            f.write("<clickhouse><profiles><default><allow_experimental_low_cardinality_type>1</allow_experimental_low_cardinality_type></default></profiles>"
                    f"<users><default><password>{SECRET}</password><networks><ip>::/0</ip></networks><profile>default</profile><quota>default</quota></default></users>"
                    "<quotas><default/></quotas></clickhouse>")
        self.start()

    def start(self):
        with open(f"{self.folder}/out", "a", encoding="ascii") as out:
            self.child = subprocess.Popen(["clickhouse-server", f"--config-file={self.folder}/config.xml"], cwd=self.folder, stdout=out, stderr=out)
        deadline = time.monotonic() + 60
        while self.ask("SELECT 1") != "1":
            assert time.monotonic() < deadline and self.child.poll() is None
            time.sleep(0.2)

    def kill(self):
        self.child.kill()
        self.child.wait()

    close = kill

    def ask(self, query):
        """The answer as text; "" while nobody answers."""
        request = urllib.request.Request(f"http://127.0.0.1:{self.port}/", data=query.encode(), headers={"X-ClickHouse-User": "default", "X-ClickHouse-Key": SECRET})
        try:
            with urllib.request.urlopen(request, timeout=60) as r:
                return r.read().decode().strip()
        except urllib.error.HTTPError as e:
            raise AssertionError(e.read().decode()[:500]) from e
        except OSError:
            return ""


def test_clickhouse_has_what_the_store_has_over_crashes_of_both(scratch):
    """All rows of ten minutes, sent while the server and the sender are killed again and again: after dedupe each is there once."""
    now = int(time.time()) // 10 * 10
    store = Made(f"{scratch}/made", now - 3000)
    with sqlite3.connect(store.path) as db:
        for i, ts in enumerate(range(now - 3000, now, 10)):
            for name in ("web", "db", "cache"):
                store.put(db, ts, name, {"user_us": 1000 + i, "mem": i})
    with open(f"{scratch}/secret", "w", encoding="ascii") as f:
        f.write(SECRET)
    with contextlib.closing(ClickHouse(f"{scratch}/clickhouse")) as server:
        schema = subprocess.run([f"{BIN}/sonde-push", "--schema", "--store", store.dir], capture_output=True, text=True, check=True).stdout
        for statement in schema.split(";\n"):
            if statement.strip():
                server.ask(statement)
        conf = f"{scratch}/export.conf"
        with open(conf, "w", encoding="ascii") as f:
            f.write(f"[export.fleet]\nurl = http://127.0.0.1:{server.port}\nuser = default\npassword-file = {scratch}/secret\n")
        for i in range(6):
            sender = subprocess.Popen([f"{BIN}/sonde-push", "--config", conf, "--store", store.dir, "--state", f"{scratch}/state", "--once"],
                                      stderr=subprocess.DEVNULL)
            time.sleep(0.05 * (i + 1))  # it is in the midst of it, wherever
            sender.kill()
            sender.wait()
            if i % 2:
                server.kill()
                push(conf, store.dir, scratch, ok=False)
                server.start()
        push(conf, store.dir, scratch)
        want = one(store.dir, f"SELECT sum(user_us) AS v FROM container_stats WHERE ts < {now - 60}")
        assert int(server.ask("SELECT sum(user_us) FROM sonde.cgroup_stats FINAL")) == want
        assert server.ask("SELECT container, count() FROM sonde.cgroup_stats FINAL GROUP BY container ORDER BY container") == \
            "cache\t294\ndb\t294\nweb\t294"
