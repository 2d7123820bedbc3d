# SPDX-License-Identifier: Apache-2.0
"""The twelve questions that owners of a host ask (tests/homelab asks them at the prompt), through the tools of sonde mcp: each has its answer in the facts of the
first call. On a made store, so that a person needs no model to judge them: what was planted must be named, with its amount. The sums of bytes are bounded."""
import json
import re
import time

import livedin
import pytest
from test_mcp import Client

EACH = 14000  # bytes of one answer
ALL = 60000   # of a whole investigation: the first calls of three questions that follow each other


def planted(end):
    """Beside what livedin has: three minutes of an incident, in which db's rows are locked, and a leak."""
    return livedin.looked_at(end, 1)


@pytest.fixture(scope="module")
def asked(tmp_path_factory):
    end = int(time.time()) // 10 * 10
    store = str(tmp_path_factory.mktemp("twelve") / "store")
    livedin.put(store, planted(end))
    client = Client(store)
    yield client, end
    client.close()


def spike(end):
    return {"from": str(end - 660), "to": str(end - 610)}


def ago(end, seconds):
    return {"from": str(end - seconds), "to": str(end)}


#: question -> (tool, its arguments from the end of the store, what the answer must say)
QUESTIONS = {
    "1 who used the CPU, in which line": ("investigate", spike, ["restic", "zstd_encode", r"zstd\.go"]),
    "2 why was it slow": ("explain", lambda end: {**spike(end), "before": "5m"}, ["restic", r"more|began"]),
    "3 whose memory grows": ("memory", lambda end: ago(end, 1200), [r'"container":"web"', r"MiB"]),
    "4 who was OOM-killed and why": ("events", lambda end: {**ago(end, 1200), "view": "oom"}, ["tail", "4711", "web", r"512 MiB"]),
    "5 what restarts and why": ("events", lambda end: ago(end, 1200), ["cache", "restart", "exit 1"]),
    "6 who fills the disk, who does the I/O": ("disk", lambda end: ago(end, 1200), [r'"containers"', "db", "/srv|read"]),
    "7 who talks to whom": ("network", lambda end: {**ago(end, 1200), "view": "map"}, ["web", "db", "5432"]),
    "8 what is slow or fails, with its SQL": ("requests", lambda end: {**ago(end, 1200), "view": "failed"}, ["SELECT cart", r'"errors":5']),
    "9 what did the slow requests do": ("trace", lambda end: ago(end, 1200), ["GET /checkout", "SELECT cart", "db"]),
    "10 what changed between two times": ("diff", lambda end: {**spike(end), "baseline": "5m"}, ["zstd_encode", r'"change']),
    "11 is anything wrong now": ("overview", lambda end: ago(end, 1200), ["oom", "web", "critical"]),
    "12 what does sonde cost": ("overview", lambda end: {}, [r'"self_cores"', r'"lost"']),
}


@pytest.mark.parametrize("question", QUESTIONS)
def test_the_first_call_has_the_answer(question, asked):
    client, end = asked
    tool, arguments, facts = QUESTIONS[question]
    answer, failed = client.call(tool, **arguments(end))
    text = json.dumps(answer, separators=(",", ":"), ensure_ascii=False)
    assert not failed and len(text.encode()) <= EACH, (question, len(text))
    for fact in facts:
        assert re.search(fact, text), (question, fact, text)


def test_a_whole_investigation_is_small(asked):
    """From "something was slow" to the line of code, as an assistant would: the page of the time, the function's callers, its lines, the requests, one trace."""
    client, end = asked
    sizes = {}
    for name, arguments in (("overview", {}), ("investigate", spike(end)), ("cpu_stacks", {**spike(end), "what": "restic"}),
                            ("cpu_stacks", {**spike(end), "view": "lines", "function": "zstd_encode"}), ("requests", spike(end)), ("waits", spike(end)), ("trace", {})):
        answer, _ = client.call(name, **arguments)
        sizes[f"{name} {arguments.get('view', '')}"] = len(json.dumps(answer, separators=(",", ":")))
    print(sizes, sum(sizes.values()))
    assert sum(sizes.values()) <= ALL, sizes
