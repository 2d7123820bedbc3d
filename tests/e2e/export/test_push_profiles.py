# SPDX-License-Identifier: Apache-2.0
"""sonde-push's profiles by OTLP, where a configuration asks for what is in development: what arrives is what `sonde flame` says, stack by stack."""
import contextlib
import json

import pytest

from clickhouse import curl  # noqa: F401 (the fixture)
from otlpprofiles import PATH, Profiles, flame
from test_push_otlp import push as push_otlp
from test_push_pyroscope import store  # noqa: F401 (the fixture)

MORE = "signals = profiles-v1development"


class At:
    def __init__(self, folder):
        self.dir = folder


def push(receiver, store, scratch, more=MORE, **how):  # noqa: F811
    return push_otlp(receiver, At(store[0]), scratch, more, **how)


@pytest.fixture
def receiver():
    with contextlib.closing(Profiles()) as r:
        yield r


def said(sonde, store, kind, number, seconds=540, *args):  # noqa: F811
    """{stack: value} of what has settled, or of its last seconds."""
    done = sonde("flame", "--json", "--type", kind, "--from", store[1] - 60 - seconds, "--to", store[1] - 60, *args, store=store[0], check=True)
    return flame(json.loads(done.stdout)["rows"], number)


def test_every_kind_arrives_stack_by_stack_as_sonde_says(store, receiver, sonde, scratch):  # noqa: F811
    push(receiver, store, scratch)
    assert {p[0]["sonde.profile"] for p in receiver.profiles} == {"process_cpu", "offcpu", "memory", "gocpu", "gomemory", "gomutex"}
    for name, kind, of, number in (("process_cpu", "samples", "cpu", "self_samples"), ("process_cpu", "cpu", "cpu", "self_ns"), ("offcpu", "delay", "offcpu", "self_value"),
                                   ("offcpu", "events", "offcpu", "self_n"), ("memory", "alloc_space", "alloc", "self_value"), ("gocpu", "cpu", "gocpu", "self_value"),
                                   ("gomutex", "contentions", "gomutex", "self_n")):
        assert receiver.stacks(name, kind) == said(sonde, store, of, number), (name, kind)
    web = said(sonde, store, "cpu", "self_ns", 540, "--container", "web")
    assert receiver.stacks("process_cpu", "cpu", container_name="web", service_name="web", process_executable_name="app") == web
    standing = receiver.deduped("memory", "inuse_space")
    assert sum(standing[-1][5].values()) == 54 * 500 and len(standing) == 9
    assert {(p[1], p[2]) for p in receiver.profiles if p[0]["sonde.profile"] == "process_cpu"} == {("samples", "count"), ("cpu", "nanoseconds")}


def test_nobody_gets_them_who_did_not_ask(store, receiver, scratch):  # noqa: F811
    paths = []
    receiver.take = lambda path, body: paths.append(path)
    push(receiver, store, scratch, "")
    assert paths and PATH not in paths
    paths.clear()
    push(receiver, store, scratch, "signals = logs, profiles-v1development\nprofiles = gomutex\npath = /otlp", args=("--once", "--state", f"{scratch}/other"))
    assert set(paths) == {"/otlp" + PATH}


def test_what_is_refused_for_now_is_sent_again_with_the_same_ids(store, receiver, sonde, scratch):  # noqa: F811
    def taken_and_refused(h, body):
        receiver.take(h.path, body)
        return h.say(503)

    for answer in (lambda h, body: h.say(429, Retry_After="1"), taken_and_refused, lambda h, body: h.say(200, b"<html>")):
        receiver.answers.append(answer)
        assert push(receiver, store, scratch, ok=False).returncode == 1
    push(receiver, store, scratch)
    assert len(receiver.profiles) > len({p[3] for p in receiver.profiles})
    assert receiver.stacks("process_cpu", "cpu") == said(sonde, store, "cpu", "self_ns")


def test_what_is_rejected_is_counted(store, receiver, scratch):  # noqa: F811
    def partial(h, body):
        receiver.take(h.path, body)
        return h.say(200, b"\x0a\x02\x08\x03", Content_Type="application/x-protobuf")

    receiver.answers.append(partial)
    assert "rejected 3 of" in push(receiver, store, scratch).stderr
    assert "3 refused for good" in push(receiver, store, scratch, args=["--status"]).stdout


def test_opentelemetrys_own_messages_know_every_field_of_a_profile(store, receiver, scratch):  # noqa: F811
    pytest.importorskip("opentelemetry.proto.profiles.v1development", reason="missing: opentelemetry-proto (PyPI)")
    from opentelemetry.proto.collector.profiles.v1development.profiles_service_pb2 import ExportProfilesServiceRequest
    push(receiver, store, scratch)
    for body in receiver.bodies:
        message = ExportProfilesServiceRequest()
        message.ParseFromString(body)
        size = message.ByteSize()
        message.DiscardUnknownFields()
        assert message.ByteSize() == size == len(body)
