# SPDX-License-Identifier: Apache-2.0
"""sonde-push by OTLP: requests that were kept are spans, each once by its id, below what `sonde trace` says that they were asked for."""
import contextlib
import json
import os
import socket
import subprocess
import time

import livedin
import pytest

from clickhouse import Receiver, curl  # noqa: F401 (the fixture)
from conftest import BIN
from test_push_otlp import attributes, push
from test_traces import TRACE, request
from wire import fields


class Tracer(Receiver):
    """spans: [(resource, span as its fields)]"""

    def __init__(self):
        super().__init__()
        self.spans, self.bodies = [], []

    def take(self, path, body):
        if path != "/v1/traces":
            return
        self.bodies.append(body)
        for resource in map(fields, fields(body)[1]):
            who = attributes(fields(resource[1][0])[1])
            for scope in map(fields, resource[2]):
                self.spans += [(who, fields(s)) for s in scope[2]]

    def deduped(self):
        """{span: (resource, span)}, as receivers keep them: one of each trace and span."""
        return {(s[1][0], s[2][0]): (who, s) for who, s in self.spans}

    def named(self):
        """{(operation, is it the server's): (resource, span)}"""
        out = {(s[5][0].decode(), s[6] == [2]): (who, s) for who, s in self.deduped().values()}
        assert len(out) == len(self.deduped())
        return out


@pytest.fixture
def receiver():
    with contextlib.closing(Tracer()) as r:
        yield r


class Put:
    """A store of family l7 whose requests begin so many seconds before now; the newest bucket is now."""

    def __init__(self, scratch, *requests):
        self.dir, self.now = f"{scratch}/made", int(time.time()) // 10 * 10
        self.rows = []
        self.add(*requests, (0, request(9999, 99, "late", "server", 9999)))

    def add(self, *requests):
        """(seconds before now, what test_traces.request makes)"""
        for ago, rows in requests:
            ts = self.now - ago
            for row in rows:
                row = {**row, "at": ts // 10 * 10, **({"at_us": ts * 1000000 + row["at_us"] % 1000000} if "at_us" in row else {})}
                self.rows.append(row)
        newest = max(r["at"] for r in self.rows)
        lines = [{"run": "l7", "from": self.now - 900, "to": newest + 10, "bucket_s": 10, "period_ns": 0}, *self.rows]
        subprocess.run(["rm", "-rf", self.dir], check=True)
        livedin.put(self.dir, lines)


def said(sonde, store, *args):
    """{operation: row} of `sonde trace` of all of it."""
    rows = json.loads(sonde("trace", "--json", "-n", 999, "--from", store.now - 900, "--to", store.now + 10, *args, store=store.dir, check=True).stdout)["rows"]
    return {r["operation"]: r for r in rows}


def chain(ago=300, trace="", **more):
    """web answers 1, asks 2 of db, which asks 4; nobody knows for whom web asks 5; what 6 was asked for is not kept."""
    return [(ago, request(1, 7, "web", "server", 70, took_us=9000, trace=trace, container="web", container_id="c" * 64, **more)),
            (ago, request(2, 7, "web", "client", 80, 70, "thread", 100, 5000, container="web", container_id="c" * 64)),
            (ago, request(2, 8, "db", "server", 90, 80, "bytes", 200, 4000)), (ago, request(4, 8, "db", "client", 95, 90, "opener", 300, 2000)),
            (ago, request(5, 7, "web", "client", 85, container="web", container_id="c" * 64)),
            (ago, request(6, 7, "web", "client", 86, 12345, "thread", 400, container="web", container_id="c" * 64))]


def hexed(data):
    return data.hex().lstrip("0")


def test_spans_are_the_trees_that_sonde_trace_draws_number_by_number(receiver, sonde, scratch):
    store = Put(scratch, *chain())
    push(receiver, store, scratch, "signals = traces")
    told, spans = said(sonde, store), receiver.named()
    assert len(receiver.spans) == len(spans) == 6
    for (operation, server), (who, s) in spans.items():
        row = told[operation]
        end = row["answered_by" if server else "asked_by"]
        assert (s[8][0] - s[7][0]) // 1000 == end["total_us"] and (who["process.executable.name"], who["process.pid"]) == (end["comm"], end["pid"])
        assert 15 not in s and attributes(s[9])["http.response.status_code"] == 200
        if not server:
            assert hexed(s[2][0]) == row["span"]
    assert spans["GET /1", True][1][7][0] == (store.now - 300) * 10**9
    for child, parent in ((("GET /2", False), ("GET /1", True)), (("GET /2", True), ("GET /2", False)), (("GET /4", False), ("GET /2", True))):
        assert spans[child][1][4] == spans[parent][1][2] and spans[child][1][1] == spans[parent][1][1]
    assert (told["GET /2"]["parent"], told["GET /4"]["parent"]) == ("46", "50")
    assert 4 not in spans["GET /1", True][1] and 4 not in spans["GET /5", False][1] and hexed(spans["GET /6", False][1][4][0]) == f"{12345:x}"
    assert len({s[1][0] for _, s in spans.values()}) == 3 and all(len(s[1][0]) == 16 and len(s[2][0]) == 8 for _, s in spans.values())
    who, s = spans["GET /1", True]
    assert (who["service.name"], who["container.id"], who["host.name"]) == ("web", "c" * 64, os.uname().nodename)
    at = attributes(s[9])
    assert (at["http.request.method"], at["http.route"], at["server.address"], at["server.port"]) == ("GET", "/1", "10.0.0.5", 80)
    assert attributes(spans["GET /2", False][1][9])["url.template"] == "/2" and attributes(spans["GET /4", False][1][9])["sonde.linked_by"] == "opener"


def test_a_trace_is_the_headers_for_all_that_belongs_to_it(receiver, scratch):
    other = "ab" * 16
    store = Put(scratch, *chain(trace=TRACE), (290, request(11, 7, "web", "server", 170)), (290, request(12, 7, "web", "client", 180, 170, "thread", 100)),
                (290, request(13, 7, "web", "client", 181, 170, "thread", 200, trace=other)), (290, request(14, 8, "db", "client", 182, 0, trace="not-hex")),
                (290, request(15, 9, "app", "server", 190, trace=TRACE)), (290, request(16, 9, "app", "client", 191, 190, "thread", 100, trace=other)))
    push(receiver, store, scratch, "signals = traces")
    spans = receiver.named()
    traces = {key: s[1][0].hex() for key, (_, s) in spans.items()}
    assert [traces[k] for k in (("GET /1", True), ("GET /2", False), ("GET /2", True), ("GET /4", False))] == [TRACE] * 4
    assert [traces[k] for k in (("GET /11", True), ("GET /12", False), ("GET /13", False))] == [other] * 3  # whose root has none
    assert traces["GET /14", False] not in (TRACE, other) and attributes(spans["GET /14", False][1][9])["sonde.trace"] == "not-hex"
    asked = spans["GET /16", False][1]
    assert traces["GET /16", False] == other and 4 not in asked
    link = fields(asked[13][0])
    assert (link[1][0].hex(), link[2]) == (TRACE, spans["GET /15", True][1][2])


def test_what_failed_is_an_error_and_what_had_no_answer_has_no_length(receiver, scratch):
    failed, silent = request(1, 7, "web", "server", 70), request(2, 7, "web", "client", 80)
    failed[0].update(status="500", result="error", why="failed")
    silent[0].update(status="", result="no-answer", why="failed")
    del silent[0]["total_us"], silent[0]["first_us"]
    push(receiver, Put(scratch, (300, failed), (300, silent)), scratch, "signals = traces")
    (_, bad), (_, none) = receiver.named()["GET /1", True], receiver.named()["GET /2", False]
    assert fields(bad[15][0]) == {2: [b"error"], 3: [2]} and attributes(bad[9])["error.type"] == "500"
    assert fields(none[15][0]) == {2: [b"no-answer"], 3: [2]} and attributes(none[9])["error.type"] == "no-answer" and none[7] == none[8]


def test_what_took_minutes_is_sent_when_it_has_ended_with_what_was_asked_for_it(receiver, scratch):
    def newest(ago):
        return ago, request(9999 - ago, 99, "late", "server", 9999 - ago)

    long, part = request(1, 7, "web", "server", 70, took_us=200 * 10**6), request(2, 7, "web", "client", 80, 70, "thread", 100)
    part[0]["why"] = "linked"
    other = (400, request(3, 7, "web", "server", 71))
    store = Put(scratch)
    for rows, sent in (([other, newest(200)], {"GET /3"}), ([other, newest(0), (390, long), (390, part)], {"GET /3", "GET /1", "GET /2"})):
        store.rows = []
        store.add(*rows)
        push(receiver, store, scratch, "signals = traces")
        assert {operation for operation, _ in receiver.named()} == sent and len(receiver.spans) == len(receiver.deduped())
    assert receiver.named()["GET /2", False][1][4] == receiver.named()["GET /1", True][1][2]


def test_spans_are_the_same_when_they_are_sent_again_and_none_is_lost_or_doubled(receiver, scratch):
    store = Put(scratch, *(x for ago in range(80, 600, 20) for x in [(ago, request(ago, 7, "web", "server", 1000 + ago)), (ago, request(ago, 8, "db", "client", 2000 + ago, 1000 + ago, "thread", 50))]))

    def taken_and(answer):
        def then(h, body):
            receiver.take(h.path, body)
            return answer(h)
        return then

    for answer in (lambda h: h.say(429, Retry_After="1"), lambda h: h.say(503), lambda h: h.connection.shutdown(socket.SHUT_RDWR)):
        for first in (taken_and(answer), lambda h, body, answer=answer: answer(h)):
            receiver.answers.append(first)
            assert push(receiver, store, scratch, "signals = traces", ok=False).returncode == 1
    push(receiver, store, scratch, "signals = traces")
    assert len(receiver.spans) > len(receiver.deduped()) == 2 * 26
    for (_, span) in {s[2][0]: s for _, s in receiver.spans}.items():
        assert len({(s[1][0], s[4][0] if 4 in s else b"") for _, s in receiver.spans if s[2] == span[2]}) == 1


def test_opentelemetrys_own_messages_know_every_field_of_a_span(receiver, scratch):
    pytest.importorskip("opentelemetry.proto", reason="missing: opentelemetry-proto (PyPI)")
    from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
    push(receiver, Put(scratch, *chain(trace=TRACE)), scratch, "signals = traces")
    for body in receiver.bodies:
        message = ExportTraceServiceRequest()
        message.ParseFromString(body)
        size = message.ByteSize()
        message.DiscardUnknownFields()
        assert message.ByteSize() == size == len(body)
        assert {s.kind for r in message.resource_spans for x in r.scope_spans for s in x.spans} <= {2, 3}
