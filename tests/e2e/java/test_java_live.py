# SPDX-License-Identifier: Apache-2.0
"""Family java on real Java virtual machines: what is stored equals what the program counted itself, and nothing is left running."""
import contextlib
import json
import os
import signal
import subprocess
import time

import pytest

from conftest import BIN, need, need_root, sql_all
from javas import TEMURIN, compiled, other_jdk
from sonded import until

PROGRAM = "sonde-java"
THREAD_DUMP = "Full thread dump"


class Jvm:
    def __init__(self, *options, java=("java",), prefix=(), cwd=None):
        need(java[0])
        self.child = subprocess.Popen([*prefix, *java, "-Xmx128m", *options, "-cp", compiled("JavaInside"), "JavaInside"], stdin=subprocess.PIPE,
                                      stdout=subprocess.PIPE, stderr=subprocess.STDOUT, cwd=cwd)
        self.said = []
        self.told()

    @property
    def pid(self):
        return self.child.pid

    def told(self, line="so far"):
        """What it has done until now."""
        self.child.stdin.write(f"{line}\n".encode())
        self.child.stdin.flush()
        while True:
            text = self.child.stdout.readline().decode()
            assert text, self.said
            if text.startswith("{"):
                return json.loads(text)
            self.said.append(text)

    def jcmd(self, command):
        return subprocess.run(["jcmd", str(self.pid), command], capture_output=True, text=True, check=True, timeout=120).stdout

    def close(self):
        """Ends it; all that it printed besides its numbers."""
        if self.child.poll() is None:
            with contextlib.suppress(BrokenPipeError):
                self.child.stdin.close()
            try:
                self.child.wait(60)
            except subprocess.TimeoutExpired:
                self.child.kill()
                self.child.wait()
        rest = self.child.stdout.read().decode()
        self.child.stdout.close()
        return "".join(self.said) + rest


@pytest.fixture
def jvm():
    need_root()
    running = []

    def begin(*options, **kw):
        running.append(Jvm(*options, **kw))
        return running[-1]
    yield begin
    for j in running:
        assert THREAD_DUMP not in j.close()


@pytest.fixture
def folder(scratch):
    return os.path.join(scratch, "recorded")


def recorded(capture, folder, *args, **kw):
    """A capture, once it says that it records."""
    cap = capture("--record-dir", folder, *args, program=PROGRAM, **kw)
    assert until(lambda: "is recorded" in cap.said(), 180), cap.said()
    return cap


def flame(sonde, store, kind):
    """[(frames, root first, value)] of the folded flame graph."""
    path = f"{store}.{kind}.folded"
    sonde("flame", "--type", kind, "-o", path, store=store, check=True)
    with open(path, encoding="utf-8") as f:
        return [(line.rsplit(" ", 1)[0].split(";"), int(line.rsplit(" ", 1)[1])) for line in f]


def sum_of(rows, *functions):
    return sum(value for frames, value in rows if all(any(fn in f for f in frames) for fn in functions))


def compare(sonde, store, before, after):
    """What was recorded against what the program counted from `before` to `after`, both taken while it was recorded."""
    did = {k: after[k] - before[k] for k in before}
    alloc, lock = flame(sonde, store, "java-alloc"), flame(sonde, store, "java-lock")
    small, large = sum_of(alloc, "JavaInside.small", "new byte[]"), sum_of(alloc, "JavaInside.large", "new int[]")
    truth = did["small"] / (did["small"] + did["large"])
    assert abs(small / (small + large) - truth) <= 0.03, (small, large, did)
    waits = sql_all(store, "SELECT class, owner, place, sum(n) AS n, sum(ns) AS ns FROM java_waits WHERE kind = 'monitor' GROUP BY 1, 2, 3")
    mine = [w for w in waits if w["class"] == "JavaInside$Till" and w["place"].startswith("JavaInside.pay:")]
    assert mine and {w["owner"] for w in mine} == {"holds"}, waits
    assert sum_of(lock, "JavaInside.pay", "monitor JavaInside$Till") == pytest.approx(sum(w["ns"] for w in mine), rel=0.001)
    thrown = sum_of(flame(sonde, store, "java-exception"), "java.lang.IllegalStateException", "JavaInside.refuse")
    parked = sum_of(flame(sonde, store, "java-park"), "JavaInside.doze")
    # it was recorded a little longer than from one number to the other
    assert did["waited"] * 0.95 <= sum(w["ns"] for w in mine), (waits, did)
    assert did["waits"] - 2 <= sum(w["n"] for w in mine) and did["thrown"] - 1 <= thrown and did["parked"] * 0.95 <= parked, (waits, thrown, parked, did)
    return {"small": small, "large": large, "waited": sum(w["ns"] for w in mine), "thrown": thrown, "parked": parked}, did


def record(capture, jvm, store, folder, sonde, seconds, *args):
    cap = recorded(capture, folder, "--interval", "2s", *(args or ("--pid", jvm.pid)))
    before, began = jvm.told(), time.monotonic()
    time.sleep(seconds)
    after, ended = jvm.told(), time.monotonic()
    cap.stop()
    told, did = compare(sonde, store, before, after)
    print(cap.said(), told, did, f"{ended - began:.2f} s")
    return cap, told, did


def test_what_a_java_program_does_is_recorded_as_it_counts_it_and_the_recording_ends(capture, store, sonde, jvm, folder):
    j = jvm()
    cap, _, _ = record(capture, j, store, folder, sonde, 6)
    assert "keeps four threads" in cap.said()
    assert "No available recordings" in j.jcmd("JFR.check") and not os.listdir(folder)
    said = sql_all(store, "SELECT state, reason, version, pid FROM java_recorded")
    assert [(s["state"], s["reason"], s["pid"]) for s in said] == [("recorded", "", j.pid)] and said[0]["version"].startswith("17."), said
