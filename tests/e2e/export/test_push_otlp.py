# SPDX-License-Identifier: Apache-2.0
"""sonde-push by OTLP: metrics are the numbers of sonde-export, under OpenTelemetry's names; events are logs; all of it once after dedupe."""
import contextlib
import os
import re
import sqlite3
import struct
import subprocess
import time

import pytest

import metrics
from clickhouse import Receiver, curl  # noqa: F401 (the fixture)
from conftest import BIN
from test_export import Made, scrape
from wire import fields


def value_of(data):
    f = fields(data)
    return f[1][0].decode() if 1 in f else f[3][0]


def attributes(items):
    return {fields(kv)[1][0].decode(): value_of(fields(kv)[2][0]) for kv in items}


def number(point):
    return struct.unpack("<d", struct.pack("<Q", point[4][0]))[0] if 4 in point else point[6][0]


def eights(data, form):
    return list(struct.unpack(f"<{len(data) // 8}{form}", data))


class Collector(Receiver):
    """points: [(resource, name, what of Metric it is, temporality, attributes, start, time, value, unit)]; logs: [(resource, record)]"""

    def __init__(self, partial=b""):
        super().__init__()
        self.points, self.logs, self.paths, self.bodies = [], [], [], []

    def take(self, path, body):
        self.paths.append(path)
        self.bodies.append((path, body))
        for resource in map(fields, fields(body)[1]):
            who = attributes(fields(resource[1][0])[1])
            for scope in map(fields, resource[2]):
                assert fields(scope[1][0])[1] == [b"sonde"]
                for item in map(fields, scope[2]):
                    if path.endswith("/v1/logs"):
                        self.logs.append((who, item))
                    else:
                        self.metric(who, item)

    def metric(self, who, m):
        [kind] = {5, 7, 9} & set(m)
        data = fields(m[kind][0])
        assert kind != 7 or (data[3] == [1] if data[2] == [1] else data[2] == [2])  # what only grows is told as differences, what stands as a sum
        for p in map(fields, data[1]):
            at = attributes(p.get(9 if kind == 9 else 7, []))
            if kind == 9:
                value = (p[4][0], eights(p[5][0].to_bytes(8, "little"), "d")[0], eights(p[6][0], "Q"), eights(p[7][0], "d"))
                assert sum(value[2]) == value[0] and len(value[2]) == len(value[3]) + 1
            else:
                value = number(p)
            self.points.append((who, m[1][0].decode(), kind, data.get(2, [0])[0], at, p.get(2, [0])[0], p[3][0], value, m[3][0].decode()))

    def deduped(self, name, **resource):
        """A point of each stream and time, as receivers keep them."""
        kept = {(str(p[0]), str(p[4]), p[6]): p for p in self.points if p[1] == name and resource.items() <= {k.replace(".", "_"): v for k, v in p[0].items()}.items()}
        return sorted(kept.values(), key=lambda p: p[6])


@pytest.fixture
def receiver():
    with contextlib.closing(Collector()) as r:
        yield r


@pytest.fixture
def made(scratch):
    """Ten minutes of two containers and the host, a row each ten seconds, up to where it has settled; then a newest bucket of nothing."""
    now = int(time.time()) // 10 * 10
    store = Made(f"{scratch}/made", now - 600)
    with sqlite3.connect(store.path) as db:
        [[process]] = db.execute("SELECT min(id) FROM process")
        client, tcp = (store.id_of(db, "text", {"value": v}) for v in ("client", "tcp"))
        for i, ts in enumerate(range(now - 600, now - 60, 10)):
            store.put(db, ts, "web", {"user_us": 1000 + i, "system_us": 3, "mem": 10 + i, "working": i, "rx_bytes": 100, "majflt": 1})
            store.put(db, ts, 'we"ird\\', {"user_us": 7, "tx_bytes": 5})
            db.execute("INSERT INTO host_row(ts, run, idle_us, irq_us, cpus, mem_total, mem_free, cached) VALUES(?, 1, 500000, 100, 4, 1000, 400, 300)", (ts - store.t0,))
            flow = {"ts": ts - store.t0, "run": 1, "process": process, "side": client, "protocol": tcp, "peer": tcp, "port": tcp, "mate": 0, "owner": tcp, "container": 0,
                    "connect_1ms": 1, "connect_10ms": 2, "connect_100ms": 0, "connect_1s": 0, "connect_long": 1, "connect_us": 5000}
            db.execute(f"INSERT INTO flow_row({', '.join(flow)}) VALUES({', '.join('?' * len(flow))})", list(flow.values()))
        store.put(db, now - 10, "web", {"user_us": 0})
        what = [store.id_of(db, "text", {"value": v}) for v in ("oom kill", "container", "web", "memory limit")]
        for i in range(3):
            db.execute("INSERT INTO event_row(ts, run, kind, subject, name, detail, which, caused_by, process, n, at_us) VALUES(?, 1, ?, ?, ?, ?, 0, 0, 0, 1, ?)",
                       (100 + 10 * i, *what, (store.t0 + 100) * 10**6 + (0 if i < 2 else 5)))
    return store, now


def push(receiver, store, scratch, more="", args=("--once",), ok=True):
    with open(f"{scratch}/export.conf", "w", encoding="ascii") as f:
        f.write(f"[export.otel]\ntype = otlp\nurl = {receiver.url}\n{more}\n")
    done = subprocess.run([f"{BIN}/sonde-push", "--config", f"{scratch}/export.conf", "--store", store.dir, "--state", f"{scratch}/state", *args],
                          capture_output=True, text=True, check=False, timeout=120)
    assert not ok or done.returncode == 0, done.stderr
    return done


def test_metrics_add_up_to_those_of_sonde_export_under_opentelemetrys_names(made, receiver, scratch):
    store, now = made
    push(receiver, store, scratch)
    assert receiver.heads[0]["Content-Type"] == "application/x-protobuf" and receiver.heads[0]["Content-Encoding"] == "gzip"
    told = scrape(store.dir, f"{scratch}/prometheus")
    cpu = receiver.deduped("container.cpu.time", container_name="web")
    assert {(p[2], p[3], p[8]) for p in cpu} == {(7, 1, "s")}
    for mode in ("user", "system"):
        assert sum(p[7] for p in cpu if p[4] == {"cpu.mode": mode}) == pytest.approx(metrics.total(told, "sonde_container_cpu_seconds_total", container="web", mode=mode))
    assert cpu[0][0] == {"host.name": os.uname().nodename, "service.name": "web", "container.name": "web", "container.id": "web", "container.image.name": "web:1"}
    times = sorted({(p[5], p[6]) for p in cpu})
    assert all(a[1] == b[0] for a, b in zip(times, times[1:])) and times[0][0] == (now - 600) * 10**9  # one range after the other
    assert [p[7] for p in receiver.deduped("container.network.io", container_name='we"ird\\') if p[4]["network.io.direction"] == "transmit"] == [30] * 9
    assert [p[7] for p in receiver.deduped("container.memory.usage", container_name="web")][-1] == 10 + 53
    assert [p[7] for p in receiver.deduped("container.memory.working_set")][-1] == 53
    assert sum(p[7] for p in receiver.deduped("sonde.container_major_faults")) == metrics.total(told, "sonde_container_major_faults_total") == 54
    host = receiver.deduped("system.cpu.time", service_name="sonde")
    assert sum(p[7] for p in host if p[4]["cpu.mode"] == "idle") == pytest.approx(metrics.total(told, "sonde_host_cpu_seconds_total", mode="idle"))
    assert sum(p[7] for p in host if p[4]["cpu.mode"] == "interrupt") == pytest.approx(metrics.total(told, "sonde_host_cpu_seconds_total", mode="irq"))
    assert {p[4]["system.memory.state"]: p[7] for p in receiver.deduped("system.memory.usage")} == {"free": 400, "cached": 300}
    assert receiver.deduped("system.memory.limit")[0][4] == {} and receiver.deduped("system.cpu.logical.count")[0][7] == 4


def test_every_number_that_prometheus_is_told_is_there(made, receiver, scratch):
    store, _ = made
    push(receiver, store, scratch, "signals = metrics")
    told = scrape(store.dir, f"{scratch}/prometheus")
    counters = [v for name, values in told.items() if name.endswith("_total") and not name.startswith("sonde_export") for v in values.values()]
    sums = {}
    for p in {(str(p[0]), p[1], str(p[4]), p[6]): p for p in receiver.points if p[2] == 7 and p[3] == 1}.values():
        key = (str(p[0]), p[1], str(p[4]))
        sums[key] = sums.get(key, 0) + p[7]
    assert sorted(round(v, 6) for v in sums.values()) == sorted(round(v, 6) for v in counters) and len(counters) == 9
    spread = receiver.deduped("sonde.connect")
    assert {(p[2], p[3], p[8], tuple(p[7][3])) for p in spread} == {(9, 1, "s", (0.001, 0.01, 0.1, 1.0))} and [sum(n) for n in zip(*(p[7][2] for p in spread))] == [54, 108, 0, 0, 54]
    assert sum(p[7][0] for p in spread) == metrics.total(told, "sonde_connect_seconds_count")
    assert sum(p[7][1] for p in spread) == pytest.approx(metrics.total(told, "sonde_connect_seconds_sum"))


def test_events_are_logs_and_equal_ones_are_told_apart(made, receiver, scratch):
    store, _ = made
    push(receiver, store, scratch, "signals = logs\npath = /otlp")
    assert set(receiver.paths) == {"/otlp/v1/logs"} and len(receiver.logs) == 3
    who, log = receiver.logs[0]
    assert (who["service.name"], who["container.name"], log[12], log[2]) == ("web", "web", [b"oom kill"], [13])
    assert value_of(log[5][0]) == "container web: oom kill, memory limit" and log[1][0] == (store.t0 + 100) * 10**9
    assert attributes(log[6])["sonde.count"] == 1
    assert len({attributes(log[6])["log.record.uid"] for _, log in receiver.logs}) == 3


def test_what_is_refused_for_now_is_sent_again_and_is_the_same(made, receiver, scratch):
    store, _ = made

    def taken_and_refused(h, body):
        receiver.take(h.path, body)
        return h.say(503)

    for answer in (lambda h, body: h.say(429, Retry_After="1"), lambda h, body: h.say(200, b"<html>please log in"), lambda h, body: h.say(400, b"<html>"),
                   taken_and_refused):
        receiver.answers.append(answer)
        assert push(receiver, store, scratch, ok=False).returncode == 1
    push(receiver, store, scratch)
    cpu = [p for p in receiver.deduped("container.cpu.time", container_name="web") if p[4]["cpu.mode"] == "user"]
    assert round(sum(p[7] for p in cpu) * 1e6) == sum(1000 + i for i in range(54))
    assert len(receiver.points) > len({(str(p[0]), p[1], str(p[4]), p[6]) for p in receiver.points})


def test_what_was_tried_is_sent_to_the_same_end_when_the_store_has_grown(made, receiver, scratch):
    store, now = made

    def taken_and_refused(h, body):
        receiver.take(h.path, body)
        return h.say(503)

    more = "signals = metrics\nbackfill = 90s"
    receiver.answers.append(taken_and_refused)
    assert push(receiver, store, scratch, more, ok=False).returncode == 1
    [(start, end)] = {(p[5], p[6]) for p in receiver.points if p[3] == 1}
    with sqlite3.connect(store.path) as db:
        for ts in (now - 60, now - 50, now - 40, now, now + 10, now + 20):
            store.put(db, ts, "web", {"user_us": 5})
    push(receiver, store, scratch, more)
    cpu = [p for p in receiver.deduped("container.cpu.time", container_name="web") if p[4]["cpu.mode"] == "user"]
    assert (cpu[0][5], cpu[0][6]) == (start, end) and all(a[6] == b[5] for a, b in zip(cpu, cpu[1:])) and len(cpu) > 1
    with sqlite3.connect(store.path) as db:
        assert round(sum(p[7] for p in cpu) * 1e6) == db.execute("SELECT sum(user_us) FROM cgroup_row JOIN container c ON c.id = container AND c.name = 'web' WHERE ts + ? >= ? AND ts + ? < ?",
                                                              (store.t0, start // 10**9, store.t0, cpu[-1][6] // 10**9)).fetchone()[0]


def test_what_is_rejected_is_counted_and_holds_up_nothing(made, receiver, scratch):
    store, _ = made

    def partial(h, body):  # rejected_data_points 2, error_message "old"
        receiver.take(h.path, body)
        return h.say(200, b"\x0a\x07\x08\x02\x12\x03old", Content_Type="application/x-protobuf")

    def whole(h, body):
        receiver.take(h.path, body)
        return h.say(200, b"", Content_Type="application/x-protobuf")

    receiver.answers += [partial, lambda h, body: h.say(400, b"\x08\x03", Content_Type="application/x-protobuf"), whole]
    done = push(receiver, store, scratch, "signals = metrics")
    assert "rejected 2 of" in done.stderr and "refused it for good" in done.stderr and "old" not in done.stderr
    refused = int(re.search(r"(\d+) refused for good", push(receiver, store, scratch, "signals = metrics", ["--status"]).stdout)[1])
    ranges = {p[6] for p in receiver.points if p[3] == 1}
    assert len(ranges) == 8 and refused > 2 + len(receiver.points) / 8 / 2  # one of nine was not taken at all


def test_opentelemetrys_own_messages_know_every_field(made, receiver, scratch):
    pytest.importorskip("opentelemetry.proto", reason="missing: opentelemetry-proto (PyPI)")
    from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest
    from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest
    store, _ = made
    push(receiver, store, scratch)
    for path, body in receiver.bodies:
        message = (ExportLogsServiceRequest if path.endswith("logs") else ExportMetricsServiceRequest)()
        message.ParseFromString(body)
        size = message.ByteSize()
        message.DiscardUnknownFields()
        assert message.ByteSize() == size == len(body)


WRONG = (("signals = profiles", "not a valid value"), ("profiles = cpu", "need type pyroscope"), ("path = nowhere", "not a valid value"), ("path = /a?b", "not a valid value"), ("tables = events", "only type clickhouse supports"))


def test_a_configuration_of_the_wrong_type_says_so(made, receiver, scratch):
    for more, words in WRONG:
        done = push(receiver, made[0], scratch, more, ok=False)
        assert done.returncode == 2 and words in done.stderr
