# SPDX-License-Identifier: Apache-2.0
"""sonde-push to Pyroscope: profiles arrive as push.v1 has them, a series for each program, and add up to what sonde says, number by number."""
import contextlib
import gzip
import json
import os
import re
import subprocess
import time
import uuid

import pytest

from clickhouse import Receiver, curl  # noqa: F401 (the fixture)
from conftest import BIN, BUILD, need
from wire import fields, packed

WEB = {"pid": 40, "comm": "app", "container": "web", "container_id": "c" * 64, "exe": "/bin/app", "tid": 40, "thread": "app"}
WORKER = {**WEB, "pid": 50, "tid": 51, "thread": "w2"}  # the same program, started again


class Pyroscope(Receiver):
    """profiles: [(labels, id, raw pprof), ...] of what was taken."""

    def __init__(self):
        super().__init__()
        self.profiles = []

    def take(self, path, body):
        assert path == "/push.v1.PusherService/Push"
        for series in fields(body)[1]:
            of = fields(series)
            labels = {f[1][0].decode(): f[2][0].decode() for f in map(fields, of[1])}
            [sample] = map(fields, of[2])
            assert str(uuid.UUID(sample[2][0].decode())) == sample[2][0].decode()
            self.profiles.append((labels, sample[2][0], gzip.decompress(sample[1][0])))

    def deduped(self, name, **labels):
        return list({i: raw for have, i, raw in self.profiles if have["__name__"] == name and labels.items() <= have.items()}.values())


def totals(raw):
    """{sample type: sum of its values}"""
    p = fields(raw)
    texts = [s.decode() for s in p[6]]
    values = [packed(fields(s)[2]) for s in p.get(2, [])]
    assert all(3 not in fields(s) for s in p.get(2, []))  # no labels
    stacks = [tuple(packed(fields(s)[1])) for s in p[2]]
    assert len(set(stacks)) == len(stacks)
    return {texts[fields(t)[1][0]]: sum(v[i] for v in values) for i, t in enumerate(p[1])}


def added(profiles, what):
    return sum(totals(raw)[what] for raw in profiles)


@pytest.fixture
def receiver():
    with contextlib.closing(Pyroscope()) as r:
        yield r


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    """Ten minutes: CPU time of two processes of a program in a container, and of three threads of the kernel; waits; a heap. -> (folder, end)"""
    program = os.path.join(BUILD, "tests", "putstore")
    need("build/tests/putstore", program)
    folder, now = str(tmp_path_factory.mktemp("pyroscope") / "store"), int(time.time()) // 10 * 10
    times = range(now - 600, now, 10)
    lines = [{"run": "cpu", "from": now - 600, "to": now, "bucket_s": 10, "period_ns": 10000000}]
    for i, ts in enumerate(times):
        lines += [{"kind": "cpu", "at": ts, "n": 3 + i, **WEB, "stack": ["main", "work"]}, {"kind": "cpu", "at": ts, "n": 2, **WORKER, "stack": ["main", "work"]},
                  {"kind": "cpu", "at": ts, "n": 1, **WORKER, "stack": ["main", "idle"]},
                  {"kind": "cpu", "at": ts, "n": 1, "pid": 9 + i % 3, "comm": f"kworker/{i % 3}:1", "exe": "", "stack": ["kthread"]},
                  {"kind": "cpu", "at": ts, "n": 50, "pid": 7, "comm": "sonde-cpu", "self": True, "stack": ["main", "read_ring"]}]
    lines.append({"run": "offcpu", "from": now - 600, "to": now, "bucket_s": 10})
    lines += [{"kind": "offcpu", "at": ts, "n": 4, "value": 10**9 + ts, **WEB, "stack": ["main", "wait"]} for ts in times]
    lines += [{"run": "goheap", "from": now - 600, "to": now, "bucket_s": 10}]
    for i, ts in enumerate(times):
        lines += [{"kind": kind, "at": ts, "n": n, "value": 100 * n, **WEB, "stack": ["main", "leak"]} for kind, n in (("alloc", 10), ("inuse", 5 * (i + 1)))]
    lines += [{"run": "scrape", "from": now - 600, "to": now, "bucket_s": 10}]
    for i, ts in enumerate(times):  # what the program says of the same, other than what was measured
        lines += [{"kind": kind, "at": ts, "n": n, "value": 7 * n, **WEB, "stack": ["main", "own"]}
                  for kind, n in (("gocpu", 11), ("goalloc", 10), ("goinuse", 5 * (i + 1)), ("gomutex", 2))]
    subprocess.run([program, folder], input="\n".join(map(json.dumps, lines)), text=True, check=True)
    return folder, now


def push(receiver, store, scratch, more="", args=("--once",), ok=True):
    with open(f"{scratch}/export.conf", "w", encoding="ascii") as f:
        f.write(f"[export.flames]\ntype = pyroscope\nurl = {receiver.url}\n{more}\n")
    done = subprocess.run([f"{BIN}/sonde-push", "--config", f"{scratch}/export.conf", "--store", store[0], "--state", f"{scratch}/state", *args],
                          capture_output=True, text=True, check=False, timeout=120)
    assert not ok or done.returncode == 0, done.stderr
    return done


def said(sonde, store, kind, *args):
    """What sonde says of all that has settled."""
    done = sonde("stacks", "--json", "--type", kind, "--from", store[1] - 600, "--to", store[1] - 60, *args, store=store[0], check=True)
    return json.loads(done.stdout)


def test_profiles_add_up_to_what_sonde_says(store, receiver, sonde, scratch):
    push(receiver, store, scratch)
    names = {(have["__name__"], have["service_name"], have["comm"]) for have, _, _ in receiver.profiles}
    assert names == {("process_cpu", "web", "app"), ("process_cpu", "kworker", "kworker"), ("offcpu", "web", "app"), ("memory", "web", "app"),
                     ("gocpu", "web", "app"), ("gomemory", "web", "app"), ("gomutex", "web", "app")}
    assert all(have["__delta__"] == "false" and have["host"] == os.uname().nodename for have, _, _ in receiver.profiles)
    assert receiver.heads[0]["Content-Type"] == "application/proto" and "Content-Encoding" not in receiver.heads[0]
    web, kernel = receiver.deduped("process_cpu", container="web"), receiver.deduped("process_cpu", comm="kworker")
    assert len(web) == len(receiver.deduped("memory")) == 9
    cpu = said(sonde, store, "cpu", "--container", "web")
    assert (added(web, "cpu"), added(web, "samples")) == (cpu["cpu_ns"], cpu["samples"])
    assert added(web, "cpu") + added(kernel, "cpu") == said(sonde, store, "cpu")["cpu_ns"]
    waits = said(sonde, store, "offcpu")
    assert (added(receiver.deduped("offcpu"), "delay"), added(receiver.deduped("offcpu"), "events")) == (waits["value"], waits["n"])
    heap = [totals(raw) for raw in receiver.deduped("memory")]
    assert sum(t["alloc_space"] for t in heap) == said(sonde, store, "alloc")["value"] == 54 * 1000  # each profile is a difference
    assert heap[-1]["inuse_space"] == said(sonde, store, "inuse")["value"] == 54 * 500               # and this is how it stood
    assert [t["inuse_space"] for t in heap] == [500 * 6 * (i + 1) for i in range(9)]
    assert added(receiver.deduped("gocpu"), "cpu") == said(sonde, store, "gocpu")["value"] == 54 * 77
    assert added(receiver.deduped("gomutex"), "contentions") == said(sonde, store, "gomutex")["n"] == 54 * 2
    own = [totals(raw) for raw in receiver.deduped("gomemory")]
    assert sum(t["alloc_space"] for t in own) == said(sonde, store, "goalloc")["value"] == 54 * 70
    assert own[-1]["inuse_space"] == said(sonde, store, "goinuse")["value"] == 54 * 35


def test_gos_own_pprof_reads_them_stack_by_stack(store, receiver, sonde, scratch):
    need("go")
    push(receiver, store, scratch, "profiles = cpu")
    paths = []
    for i, raw in enumerate(receiver.deduped("process_cpu")):
        paths.append(f"{scratch}/{i}.pb")
        with open(paths[-1], "wb") as f:
            f.write(raw)
    out = subprocess.run(["go", "tool", "pprof", "-top", "-nodefraction=0", "-unit=ms", *paths], capture_output=True, text=True, check=True).stdout
    flat = {name: float(ms) for ms, name in re.findall(r"^ *([\d.]+)m?s? .*% +(\S+)$", out, re.M)}
    rows = {}
    for r in said(sonde, store, "cpu")["rows"]:
        rows[r["function"]] = rows.get(r["function"], 0) + r["self_ns"] / 1e6
    assert flat == rows and flat["work"] > flat["idle"] > 0


def test_what_is_refused_for_now_is_sent_again_and_has_the_same_id(store, receiver, scratch):
    def taken_and_refused(h, body):
        receiver.take(h.path, body)
        return h.say(500)

    for answer in (lambda h, body: h.say(429, Retry_After="1"), lambda h, body: h.say(200, b"<html>please log in"),
                   lambda h, body: h.say(400, b"<html>bad gateway"), taken_and_refused):
        receiver.answers.append(answer)
        assert push(receiver, store, scratch, ok=False).returncode == 1
    push(receiver, store, scratch)
    assert len(receiver.deduped("process_cpu", container="web")) == 9
    assert len(receiver.profiles) > len({i for _, i, _ in receiver.profiles}) == 9 * 7


def test_a_profile_that_will_never_be_taken_holds_up_none_of_the_others(store, receiver, scratch):
    def too_large(h, body):
        names = {fields(pair)[2][0] for series in fields(body)[1] for pair in fields(series)[1]}
        if b"offcpu" in names:
            receiver.answers.append(too_large)
            return h.say(400, b'{"code":"invalid_argument","message":"the profile is too large"}')
        receiver.answers.append(too_large)
        receiver.take(h.path, body)
        return h.say(200)

    receiver.answers.append(too_large)
    done = push(receiver, store, scratch, "tenant = ours")
    assert "refused it for good" in done.stderr and "too large" not in done.stderr
    assert receiver.heads[0]["X-Scope-OrgID"] == "ours"
    assert not receiver.deduped("offcpu") and len(receiver.deduped("memory")) == len(receiver.deduped("process_cpu", comm="app")) == 9
    assert re.search(r"flames +\d+ s behind, 54 rows sent, 0 s missed, 9 refused for good", push(receiver, store, scratch, args=["--status"]).stdout)


def test_a_configuration_of_the_wrong_type_says_so(store, receiver, scratch):
    for more, words in (("tables = events", "only type clickhouse supports"), ("profiles = wall", "not a valid value"), ("signals = logs", "only type otlp supports"), ("type = otlp", "already set in line")):
        done = push(receiver, store, scratch, more, ok=False)
        assert done.returncode == 2 and words in done.stderr
