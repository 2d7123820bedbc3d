# SPDX-License-Identifier: Apache-2.0
"""Shares of Java's methods in recorded stacks against what async-profiler says of the same run: both look at one process at once, async-profiler from inside (by a
signal each 2 ms of a thread's CPU time, so that it needs no hardware counters), sonde from outside."""
import collections
import fcntl
import hashlib
import json
import math
import os
import re
import signal
import subprocess
import zipfile

import pytest

from conftest import need, need_root
from scripting import CACHE, begun, stacks
from test_pstack_java import TEMURIN, compiled
from test_script_oracles import FREQ, agree

pytestmark = pytest.mark.live

VERSION = "4.0"
SHA256 = "8ee8ad096f2b9e3f1fbfc48a5c635dc2e837a5278a36e126fc1392eb6fd1f068"  # of its library for this processor
WAY = ("JavaShares.alpha", "JavaShares.beta", "JavaShares.gamma")


def library():
    """libasyncProfiler.so, of Maven Central, under build/; skips where it cannot be had."""
    need("mvn")
    path = os.path.join(CACHE, f"async-profiler-{VERSION}.so")
    os.makedirs(CACHE, exist_ok=True)
    with open(os.path.join(CACHE, "lock"), "w", encoding="utf-8") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not os.path.exists(path):
            artifact = f"tools.profiler:async-profiler:{VERSION}"
            done = subprocess.run(["mvn", "-q", "dependency:get", f"-Dartifact={artifact}", "-Dtransitive=false"], capture_output=True, timeout=300)
            jar = os.path.expanduser(f"~/.m2/repository/tools/profiler/async-profiler/{VERSION}/async-profiler-{VERSION}.jar")
            if done.returncode or not os.path.exists(jar):
                pytest.skip(f"missing: async-profiler {VERSION} of Maven Central")
            with zipfile.ZipFile(jar) as z, open(path, "wb") as out:
                out.write(z.read("linux-x64/libasyncProfiler.so"))
    with open(path, "rb") as f:
        assert hashlib.file_digest(f, "sha256").hexdigest() == SHA256, "async-profiler of Maven Central is another one"
    return path


def both(sonde, store, java, options, file):
    """Runs JavaShares under both."""
    child = subprocess.Popen([java, *options, "-cp", compiled("JavaShares"), "JavaShares", "10"], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    try:
        child.stdout.readline()
        sonde("pstack", "-p", child.pid, store=store, check=True)
        jcmd = os.path.join(os.path.dirname(os.path.realpath(java)), "jcmd")
        done = subprocess.run([jcmd, str(child.pid), "JVMTI.agent_load", library(), f'"start,event=ctimer,interval=2ms,collapsed,file={file}"'],
                              capture_output=True, text=True)
        assert "return code: 0" in done.stdout, done.stdout + done.stderr
        record = subprocess.Popen(["sonde", "record", "--store", store, "--families", "cpu", "--freq", str(FREQ), "--duration", "2m", "--pid", str(child.pid)],
                                  stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        begun(record)
        child.stdin.write(b"\n")
        child.stdin.flush()
        said = b" "
        while said and b'"cpu"' not in said:  # async-profiler speaks there too
            said = child.stdout.readline()
        record.send_signal(signal.SIGINT)
        record.communicate(timeout=360)
        child.stdin.close()
        child.wait(30)
    finally:
        child.kill()
        child.wait(20)
        child.stdout.close()
    return json.loads(said)["cpu"]


def plain(name):
    """Lambdas' classes have numbers, which both write in ways of their own."""
    return re.sub(r"\$\$Lambda.*\.", "$$Lambda.", name.replace("/", "."))


def told_by_async_profiler(file):
    """[(methods, root first, samples)]"""
    with open(file, encoding="utf-8") as f:
        lines = [line.rsplit(" ", 1) for line in f]
    return [([plain(re.sub(r"_\[.\]$", "", name)) for name in frames.split(";")], int(n)) for frames, n in lines]


def told_by_sonde(store):
    return [([plain(name) for runtime, name, _, _ in frames if runtime == "java" and name], n) for frames, n in stacks(store, "cpu")]


def inclusive(told):
    """Samples by each of these methods, of those that are in one of them; and all of the thread that works."""
    out = collections.Counter()
    for frames, n in told:
        found = [name for name in WAY if name in frames]
        out.update({found[0]: n} if found else {})
    return out, sum(n for frames, n in told if "JavaShares.turn" in frames)


APART = ["-XX:-Inline"]


@pytest.mark.parametrize("java", ["/usr/bin/java", TEMURIN])
@pytest.mark.parametrize("options", [["-Xint"], APART, [*APART, "-XX:TieredStopAtLevel=1"]])
def test_shares_of_java_methods_are_those_of_async_profiler(sonde, store, scratch, java, options):
    """Interpreted, and compiled by both compilers."""
    need_root()
    need(java, java)
    file = f"{scratch}/collapsed"
    both(sonde, store, java, options, file)
    agree(inclusive(told_by_sonde(store))[0], inclusive(told_by_async_profiler(file))[0], WAY)


@pytest.mark.parametrize("java", ["/usr/bin/java", TEMURIN])
def test_no_inlined_method_has_more_than_async_profiler_says(sonde, store, scratch, java):
    """Where a thread has lost its CPU in what was inlined, only the method that was compiled is told."""
    need_root()
    need(java, java)
    file = f"{scratch}/collapsed"
    both(sonde, store, java, [], file)
    (ours, n), (theirs, m) = inclusive(told_by_sonde(store)), inclusive(told_by_async_profiler(file))
    print({name: (round(ours[name] / n, 3), round(theirs[name] / m, 3)) for name in WAY}, n, m)
    if min(n, m) < 200:
        pytest.skip(f"missing: time for this program ({n} and {m} samples)")
    for name in WAY:
        p = (ours[name] + theirs[name]) / (n + m)
        assert ours[name] / n <= theirs[name] / m + 0.02 + 3 * math.sqrt(p * (1 - p) * (1 / n + 1 / m)), (name, ours, theirs)
