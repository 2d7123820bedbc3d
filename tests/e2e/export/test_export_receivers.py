# SPDX-License-Identifier: Apache-2.0
"""Receivers that their makers publish beside sonde: the OpenTelemetry Collector, and Pyroscope's own handler and messages. What they have is what the store has,
number by number, stack by stack, while both sides are killed (make long-export)."""
import collections
import contextlib
import glob
import json
import os
import random
import signal
import subprocess
import time

import pytest

import livedin
import metrics
from clickhouse import curl  # noqa: F401 (the fixture)
from conftest import BIN, BUILD, need, need_root, sql_all
from otlpprofiles import flame
from test_export import scrape
from test_export_engines import free_port

pytestmark = pytest.mark.long
SEED = int(os.environ.get("SEED", "32"))


class Sink:
    """A receiver of tests/receivers as a process that can be killed and begun again; each of its lives writes a file of its own."""
    def __init__(self, name, folder):
        self.program, self.folder, self.lives = os.path.join(BUILD, "receivers", name), str(folder), 0
        if not os.path.exists(self.program):
            pytest.skip(f"missing: {self.program} (make receivers: Go, and the modules that tests/receivers/{name}/go.mod names)")
        self.start()

    def begin(self, args=(), **how):
        self.lives += 1
        env = {**os.environ, "SONDE_SINK": f"{self.folder}/sink-{self.lives:03}"}
        self.child = subprocess.Popen([self.program, *args], env=env, **how)

    def kill(self):
        self.child.kill()
        self.child.wait()

    close = kill

    def lines(self):
        """Whole ones: what a kill cut off was not acknowledged."""
        for path in sorted(glob.glob(f"{self.folder}/sink-*")):
            with open(path, encoding="utf-8") as f:
                yield from (line for line in f if line.endswith("\n"))


class Collector(Sink):
    def __init__(self, folder):
        self.port = free_port()
        pipelines = "".join(f"    {kind}: {{receivers: [otlp], exporters: [sink]}}\n" for kind in ("metrics", "logs", "traces", "profiles"))
        with open(f"{folder}/collector.yml", "w", encoding="ascii") as f:
            f.write(f"receivers: {{otlp: {{protocols: {{http: {{endpoint: '127.0.0.1:{self.port}'}}}}}}}}\nexporters: {{sink: {{}}}}\n"
                    f"service:\n  telemetry: {{metrics: {{level: none}}}}\n  pipelines:\n{pipelines}")
        self.url = f"http://127.0.0.1:{self.port}"
        super().__init__("collector", folder)

    def start(self):
        """Until it says that it is ready."""
        self.begin(["--config", f"{self.folder}/collector.yml", "--feature-gates", "service.profilesSupport"], stderr=subprocess.PIPE, text=True)
        said = []
        for line in self.child.stderr:
            said.append(line)
            if "Everything is ready" in line:
                return
        raise AssertionError("".join(said))

    def have(self, kind):
        for line in self.lines():
            what, text = line.split("\t", 1)
            if what == kind:
                yield json.loads(text)


class Pyroscope(Sink):
    def __init__(self, folder):
        super().__init__("pyroscope", folder)

    def start(self):
        self.begin(stdout=subprocess.PIPE, text=True)
        self.url = self.child.stdout.readline().strip()

    def profiles(self):
        """One of each id, as the server keeps them."""
        return list({p["id"]: p for p in map(json.loads, self.lines())}.values())


def attributes(items, texts=()):
    """{key: text or number}, as the Collector's JSON has them; those of profiles are in their dictionary."""
    out = {}
    for kv in items or ():
        [(form, value)] = kv["value"].items() if kv["value"] else [("stringValue", "")]
        key = kv["key"] if "key" in kv else texts[kv["keyStrindex"]]
        out[key] = int(value) if form == "intValue" else texts[value] if form == "stringValueStrindex" else value
    return out


def push(conf, store, folder, *args, ok=True):
    done = subprocess.run([f"{BIN}/sonde-push", "--config", conf, "--store", str(store), "--state", f"{folder}/state", *(args or ["--once"])], capture_output=True,
                          text=True, check=False, timeout=300)
    assert not ok or done.returncode == 0, done.stderr
    return done


def configure(folder, **sections):
    path = f"{folder}/receivers.conf"
    with open(path, "w", encoding="ascii") as f:
        f.writelines(f"[export.{name}]\nbackfill = 1d\n{text}\n" for name, text in sections.items())
    return path


@pytest.fixture(scope="module")
def lived(tmp_path_factory):
    """A store in which every verb finds something, all of which has settled. -> (folder, begin, end)"""
    folder, end = str(tmp_path_factory.mktemp("receivers") / "store"), int(time.time()) // 60 * 60 - 120
    later = [livedin.run("host", end, end + 120, 1), {"fact": "host_row", "at": end + 110}]
    livedin.put(folder, [*livedin.looked_at(end, 1), *later])
    return folder, end - livedin.SPAN, end


@pytest.fixture(scope="module")
def recorded(tmp_path_factory):
    """Twenty seconds of this host, which lists files and asks a server for them; then a bucket an hour later, so that all of it has settled. -> (folder, begin, end)"""
    need_root()
    need("curl")
    folder, port = str(tmp_path_factory.mktemp("receivers") / "recorded"), free_port()
    begin = int(time.time()) - 5
    work = [subprocess.Popen(args, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True) for args in (
        ["sh", "-c", "while :; do ls -lR /usr/lib >/dev/null; done"], ["python3", "-m", "http.server", "--directory", "/usr/share", "--bind", "127.0.0.1", str(port)],
        ["sh", "-c", f"while :; do curl -s http://127.0.0.1:{port}/ http://127.0.0.1:{port}/nothing >/dev/null; done"])]
    try:
        done = subprocess.run([f"{BIN}/sonde", "record", "-q", "--families", "cpu,offcpu,host,net,l7", "-d", "20s", "--store", folder], check=False, capture_output=True,
                              text=True)
        assert done.returncode == 0, done.stderr
    finally:
        for w in work:
            os.killpg(w.pid, signal.SIGKILL)
            w.wait()
    end = int(time.time()) + 5
    livedin.put(folder, [livedin.run("host", end + 3000, end + 3120, 1), {"fact": "host_row", "at": end + 3110}])
    return folder, begin, end


# --- the Collector ---

def points(collector):
    """{(resource, metric, attributes, time): (form, point)}: one of each stream and time."""
    out = {}
    for request in collector.have("metrics"):
        for resource in request["resourceMetrics"]:
            who = attributes(resource["resource"]["attributes"])
            for m in (m for scope in resource["scopeMetrics"] for m in scope["metrics"]):
                [form] = {"sum", "gauge", "histogram"} & set(m)
                for p in m[form]["dataPoints"]:
                    at = attributes(p.get("attributes"))
                    out[str(who), m["name"], str(at), p["timeUnixNano"]] = (form if m[form].get("aggregationTemporality") != 2 else "standing", p)
    return out


def number(point):
    return float(point["asDouble"]) if "asDouble" in point else float(point["asInt"])


def same_numbers(collector, store, folder):
    """What came up is what Prometheus' counters have come to, each of them; histograms part by part."""
    told = scrape(store, f"{folder}/prometheus")
    mine = ("sonde_export", "sonde_store", "sonde_build")
    counters = [v for name, values in told.items() if name.endswith("_total") and not name.startswith(mine) for v in values.values()]
    sums, spreads = collections.Counter(), collections.Counter()
    for (who, name, at, _), (form, p) in points(collector).items():
        if form == "sum":
            sums[who, name, at] += number(p)
        elif form == "histogram":
            spreads["n"] += int(p["count"])
            spreads["sum"] += p.get("sum", 0)
            assert sum(map(int, p["bucketCounts"])) == int(p["count"])
    assert sorted(round(v, 6) for v in sums.values()) == pytest.approx(sorted(round(v, 6) for v in counters)) and len(counters) > 20
    ends = {end: sum(sum(values.values()) for name, values in told.items() if name.endswith("_seconds" + end) and name.replace(end, "_bucket") in told)
            for end in ("_count", "_sum")}
    assert spreads["n"] == ends["_count"] and spreads["sum"] == pytest.approx(ends["_sum"])


def same_events(collector, store):
    said = collections.Counter((r["kind"], r["name"]) for r in sql_all(store, "SELECT kind, name, n FROM events"))
    logs = {attributes(log["attributes"])["log.record.uid"]: log for request in collector.have("logs") for resource in request["resourceLogs"]
            for scope in resource["scopeLogs"] for log in scope["logRecords"]}
    assert collections.Counter(log["eventName"] for log in logs.values()) == collections.Counter(kind for kind, _ in said.elements())


def same_requests(collector, store):
    said = collections.Counter((r["operation"], r["total_us"] or 0) for r in sql_all(store, "SELECT operation, total_us FROM request_spans"))
    spans = {(s["traceId"], s["spanId"]): s for request in collector.have("traces") for resource in request["resourceSpans"]
             for scope in resource["scopeSpans"] for s in scope["spans"]}
    assert collections.Counter((s["name"], (int(s["endTimeUnixNano"]) - int(s["startTimeUnixNano"])) // 1000) for s in spans.values()) == said
    assert all(s["parentSpanId"] in {span for _, span in spans} for s in spans.values() if s.get("parentSpanId"))


class Dictionary:
    """Of a request's profiles, in the Collector's JSON."""
    def __init__(self, d):
        self.d, self.texts = d, d["stringTable"]

    def stack(self, index):
        """Names of functions, root first, with file and line."""
        out = []
        for i in self.d["stackTable"][index].get("locationIndices", ()):
            for line in self.d["locationTable"][i].get("lines", ()):
                f = self.d["functionTable"][line.get("functionIndex", 0)]
                out.append((self.texts[f.get("nameStrindex", 0)], self.texts[f.get("filenameStrindex", 0)], int(line.get("line", 0))))
        return tuple(reversed(out))


def stacks(collector, name, kind):
    """{stack: value}: one profile of each id."""
    out, seen = collections.Counter(), set()
    for request in collector.have("profiles"):
        d = Dictionary(request["dictionary"])
        for resource in request["resourceProfiles"]:
            if attributes(resource["resource"]["attributes"], d.texts)["sonde.profile"] != name:
                continue
            for p in (p for scope in resource["scopeProfiles"] for p in scope["profiles"]):
                if d.texts[p["sampleType"]["typeStrindex"]] != kind or p["profileId"] in seen:
                    continue
                seen.add(p["profileId"])
                for s in p["samples"]:
                    out[d.stack(s.get("stackIndex", 0))] += sum(map(int, s["values"]))
    return dict(out)


def said(sonde, store, kind, value):
    """{stack: value} of `sonde flame`."""
    folder, begin, end = store
    done = sonde("flame", "--json", "--type", kind, "--from", begin, "--to", end, store=folder, check=True)
    return flame(json.loads(done.stdout)["rows"], value)


def names(stacks_):
    """{names, root first: value}: a flame graph has one frame for all lines and files of a function."""
    out = collections.Counter()
    for stack, value in stacks_.items():
        out[";".join(name for name, _, _ in stack)] += value
    return dict(out)


SIGNALS = "signals = metrics, logs, traces, profiles-v1development"


@pytest.fixture
def collector(scratch):
    with contextlib.closing(Collector(scratch)) as c:
        yield c


def test_the_collector_has_what_the_store_has(lived, collector, sonde, scratch):
    push(configure(scratch, otel=f"type = otlp\nurl = {collector.url}\n{SIGNALS}"), lived[0], scratch)
    same_events(collector, lived[0])
    same_requests(collector, lived[0])
    for name, of, kind, value in (("process_cpu", "cpu", "cpu", "self_ns"), ("process_cpu", "samples", "cpu", "self_samples"), ("offcpu", "delay", "offcpu", "self_value"),
                                  ("memory", "alloc_space", "alloc", "self_value")):
        assert stacks(collector, name, of) == said(sonde, lived, kind, value), (name, of)


def same_stacks(collector, sonde, store):
    for name, of, kind, value in (("process_cpu", "cpu", "cpu", "self_ns"), ("offcpu", "delay", "offcpu", "self_value")):
        have, want = (names(x) for x in (stacks(collector, name, of), said(sonde, store, kind, value)))
        assert have == want and len(want) > 50, (name, set(have.items()) ^ set(want.items()))


def test_the_collector_has_what_was_recorded_of_this_host(recorded, collector, sonde, scratch):
    push(configure(scratch, otel=f"type = otlp\nurl = {collector.url}\n{SIGNALS}"), recorded[0], scratch)
    same_numbers(collector, recorded[0], scratch)
    same_events(collector, recorded[0])
    same_requests(collector, recorded[0])
    same_stacks(collector, sonde, recorded)


def until_taken(receiver, conf, store, folder):
    """Both sides are killed at random, a dozen times; then it goes on to the end."""
    chance = random.Random(SEED)
    for _ in range(12):
        sender = subprocess.Popen([f"{BIN}/sonde-push", "--config", conf, "--store", store, "--state", f"{folder}/state"], stderr=subprocess.DEVNULL)
        time.sleep(chance.uniform(0.02, 0.4))  # wherever it is then
        if chance.random() < 0.5:
            receiver.kill()
            time.sleep(chance.uniform(0, 0.1))
            sender.kill()
            sender.wait()
            receiver.start()
        else:
            sender.kill()
            sender.wait()


@pytest.mark.parametrize("which", ["lived", "recorded"])
def test_nothing_is_lost_or_doubled_while_the_collector_and_the_sender_are_killed(which, request, collector, sonde, scratch):
    store = request.getfixturevalue(which)
    conf = configure(scratch, otel=f"type = otlp\nurl = {collector.url}\n{SIGNALS}")
    until_taken(collector, conf, store[0], scratch)
    push(conf, store[0], scratch)
    if which == "recorded":
        same_numbers(collector, store[0], scratch)
    same_events(collector, store[0])
    same_requests(collector, store[0])
    assert names(stacks(collector, "process_cpu", "cpu")) == names(said(sonde, store, "cpu", "self_ns"))


# --- Pyroscope ---

@pytest.fixture
def pyroscope(scratch):
    with contextlib.closing(Pyroscope(scratch)) as p:
        yield p


def of_pyroscope(pyroscope, name, kind):
    out = collections.Counter()
    for p in pyroscope.profiles():
        if p["labels"]["__name__"] == name:
            [i] = [i for i, t in enumerate(p["types"]) if t.split(":")[0] == kind]
            out.update({stack or "[no stack]": values[i] for stack, values in p["stacks"].items()})
    return {k: v for k, v in out.items() if v}


@pytest.mark.parametrize("which", ["lived", "recorded"])
def test_pyroscope_has_the_stacks_that_sonde_has(which, request, pyroscope, sonde, scratch):
    store = request.getfixturevalue(which)
    push(configure(scratch, flames=f"type = pyroscope\nurl = {pyroscope.url}"), store[0], scratch)
    for name, of, kind, value in (("process_cpu", "cpu", "cpu", "self_ns"), ("process_cpu", "samples", "cpu", "self_samples"), ("offcpu", "delay", "offcpu", "self_value")):
        have, want = of_pyroscope(pyroscope, name, of), names(said(sonde, store, kind, value))
        assert have == want and want, (name, of, set(have.items()) ^ set(want.items()))


def test_nothing_is_lost_or_doubled_while_pyroscope_and_the_sender_are_killed(lived, pyroscope, sonde, scratch):
    conf = f"{scratch}/receivers.conf"

    class Moved:
        """It comes back at another port."""
        kill = pyroscope.kill

        @staticmethod
        def start():
            pyroscope.start()
            configure(scratch, flames=f"type = pyroscope\nurl = {pyroscope.url}")

    configure(scratch, flames=f"type = pyroscope\nurl = {pyroscope.url}")
    until_taken(Moved, conf, lived[0], scratch)
    push(conf, lived[0], scratch)
    for name, of, kind, value in (("process_cpu", "cpu", "cpu", "self_ns"), ("offcpu", "delay", "offcpu", "self_value"), ("memory", "alloc_space", "alloc", "self_value")):
        assert of_pyroscope(pyroscope, name, of) == names(said(sonde, lived, kind, value))
