# SPDX-License-Identifier: Apache-2.0
"""What is growth and what is not: pages that a child copies, files that are read, memory that is given back and taken again, and
processes that come and go."""
import contextlib
import json
import os
import sys
import time

import pytest

from conftest import need_root
from test_mem import ready, rows_of, started, warmed_python

SECONDS = 10
MIB = 64

COPIES = f"""
import os, sys, time
data = bytearray({MIB} << 20)
def copying(part):
    for i in range(part * len(data) // 100, (part + 1) * len(data) // 100, 4096):
        data[i] = 1
for i in range(0, len(data), 4096):
    data[i] = 1
child = os.fork()
if not child:
    for part in range(100):
        copying(part)
        time.sleep({SECONDS} / 60)
    os.write(1, b"%d\\n" % os.getpid())
    sys.stdin.read(1)
    os._exit(0)
os.waitpid(child, 0)
"""

BACKUP = f"""
import sys, time
def backup(path):
    with open(path, "rb", buffering=0) as f:
        while f.read(1 << 16):
            time.sleep(0.002)
end = time.time() + {SECONDS}
while time.time() < end:
    backup(sys.argv[1])
print(0, flush=True)
sys.stdin.read(1)
"""

# Each worker holds 4 MiB at its end; there are two at a time.
WORKERS = f"""
import os, sys, time
def serve():
    held = bytearray(4 << 20)
    time.sleep(0.3)
    os._exit(0)
end = time.time() + {SECONDS}
while time.time() < end:
    for _ in range(2):
        if not os.fork():
            serve()
    for _ in range(2):
        os.wait()
print(0, flush=True)
sys.stdin.read(1)
"""


def script(scratch, name, text):
    """Its own command name: what processes of a kind do together is asked by it."""
    path = os.path.join(scratch, name)
    with open(path, "w", encoding="ascii") as f:
        f.write(f"#!{os.path.realpath(sys.executable)}\n{text}")
    os.chmod(path, 0o755)
    return path


def grown(sonde, store, *args):
    done = sonde("heap", *args, "--growth", "--json", store=store, check=True)
    return json.loads(done.stdout)["rows"]


@pytest.mark.long
def test_what_is_growth_and_what_is_not(sonde, store, capture, scratch):
    need_root()
    big = os.path.join(scratch, "big")
    with open(big, "wb") as f:
        for _ in range(100):
            f.write(bytes(1 << 20))
    leak = ready("c", scratch)[0]
    jemalloc = "/usr/lib/x86_64-linux-gnu/libjemalloc.so.2"
    c = capture("--apart", "--period", 100, program="sonde-mem")
    warmed_python(sonde, store)
    since = ["--from", f"{time.time():.3f}"]
    with contextlib.ExitStack() as stack:
        copies, backup, workers = (stack.enter_context(started([script(scratch, name, text), big]))
                                   for name, text in (("copies", COPIES), ("backup", BACKUP), ("preforker", WORKERS)))
        reuse = stack.enter_context(started(["env", *([f"LD_PRELOAD={jemalloc}"] if os.path.exists(jemalloc) else []), leak, "256", str(SECONDS), "reuse"]))
        child = int(copies.stdout.readline())
        time.sleep(3)
        copied = ["--to", f"{time.time():.3f}"]  # on a busy host the others may take several times as long
        for one in (backup, workers, reuse):
            one.stdout.readline()
        c.stop(60)
        first = rows_of(sonde, store, child, "--growth", *since, *copied)[0]
        assert first["function"] == "copying" and first["inuse_bytes"] == pytest.approx(MIB << 20, rel=0.15), first
        for who in (["-p", backup.pid], ["-p", reuse.pid], ["--comm", "preforker"]):
            assert json.loads(sonde("heap", *who, "--json", store=store, check=True).stdout)["rows"], who
            assert grown(sonde, store, *who, *since) == [], who


@pytest.mark.long
def test_the_kinds_of_memory_are_drawn_compared_and_exported(sonde, store, capture, scratch):
    need_root()
    leak = ready("c", scratch)[0]
    c = capture("--apart", "--period", 100, program="sonde-mem")
    with started([leak, "256", "6"]) as child:
        kept = int(child.stdout.readline())
        time.sleep(3)
        c.stop(60)
        pid = child.pid
    total = {}
    for kind in ("mem", "pagefaults"):
        folded = os.path.join(scratch, f"{kind}.folded")
        sonde("flame", "--type", kind, "-p", pid, "-o", folded, store=store, check=True)
        with open(folded, encoding="utf-8") as f:
            lines = [line.rpartition(" ") for line in f.read().splitlines()]
        total[kind] = {name: sum(int(n) for stack, _, n in lines if name in stack.split(";")) for name in ("leaky", "churn")}
        page = os.path.join(scratch, f"{kind}.html")
        sonde("flame", "--type", kind, "-p", pid, "-o", page, store=store, check=True)
        assert os.path.getsize(page) > 10000
        sonde("export", "pprof", "--type", kind, "-p", pid, "-o", os.path.join(scratch, f"{kind}.pb.gz"), store=store, check=True)
    assert total["mem"]["leaky"] == pytest.approx(kept, rel=0.15) and total["mem"]["churn"] <= 17 << 20, total
    assert total["pagefaults"]["churn"] == pytest.approx(6 * 50 // 5 * (16 << 20), rel=0.15), total
    end = float(c.last("done")["to"])
    begin = float(c.last("done")["from"])
    half = (begin + end) / 2
    diff = sonde("diff", "--type", "mem", "-p", pid, "--from", f"{half:.3f}", "--to", f"{end:.3f}", "--vs-from", f"{begin:.3f}", "--vs-to", f"{half:.3f}", store=store)
    assert "leaky" in diff.stdout, (diff.stdout, diff.stderr)
