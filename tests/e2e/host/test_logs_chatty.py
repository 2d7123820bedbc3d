# SPDX-License-Identifier: Apache-2.0
"""A container that writes 20 000 lines a second for 20 s: each counts, and what that takes. In Docker, whose file is rotated meanwhile, and in a file of Docker's form."""
import glob
import json
import os
import secrets
import subprocess
import sys
import time

import pytest

from conftest import need, need_root, sql_all
from containers import engine
from journal import journal
from sonded import until
from test_logs import WAIT, lines, reads

pytestmark = pytest.mark.long

RATE, SECONDS = 20000, 20
TO_REACH = 2  # % of a core
# a tenth of a second at a time; every hundredth line is an error
WRITES = """import sys, time
path, rate, seconds = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
n, begin = 0, time.monotonic()
with open(path, "w") as f:
    for step in range(10 * seconds):
        out = []
        for n in range(n + 1, n + 1 + rate // 10):
            level = "ERROR" if n % 100 == 0 else "INFO"
            out.append('{"log":"%s request %d of user %d took 12 ms\\\\n","stream":"stdout","time":"2026-11-29T18:00:00.123456789Z"}\\n' % (level, n, n % 977))
        f.write("".join(out))
        f.flush()
        time.sleep(max(0, begin + (step + 1) / 10 - time.monotonic()))
print(n)
"""
# what busybox can do
CHATS = ("s=0; while [ $s -lt {steps} ]; do awk 'BEGIN {{ for (i = 1; i <= {step}; i++) print (i % 100 ? \"INFO\" : \"ERROR\") \" request \" i \" took 12 ms\" }}'; usleep 70000; s=$((s+1)); done")


def cpu_s(pid):
    """CPU time of sonde-logs and of the reader that it starts, and not of what names processes (sonde-maps)."""
    found = []
    for path in [f"/proc/{pid}/comm", *(f"/proc/{p}/comm" for t in glob.glob(f"/proc/{pid}/task/*/children") for p in open(t, encoding="ascii").read().split())]:
        with open(path, encoding="ascii") as f:
            if f.read().strip() in ("sonde-logs", "sonde-logread"):
                found.append(int(path.split("/")[2]))
    assert len(found) == 2, found
    return sum(time.clock_gettime((~p << 3) | 2) for p in found)


def told(name, before, after, took, n):
    used = after - before
    print(f"{name}: {n} lines in {took:.1f} s, {n / took:.0f} a second: sonde-logs {used:.2f} s of CPU, {1e6 * used / n:.2f} us a line, {100 * used / took:.2f} % of a core "
          f"(to reach: {TO_REACH}); load {os.getloadavg()[0]:.0f}")
    assert 100 * used / took <= TO_REACH * max(1, n / took / RATE)


def test_each_line_of_a_chatty_container_counts_and_it_costs_little(capture, store, scratch):
    need_root()
    container = secrets.token_hex(32)
    with journal(scratch, empty=["/var/log/journal", "/var/lib/docker"]) as j:
        folder = f"{j.root}/var/lib/docker/containers/{container}"
        os.makedirs(folder)
        cap = capture("--files", f"{scratch}/*.log", program="sonde-logs", bucket="10s", prefix=["nsenter", "-t", str(j.child.pid), "-m", "--"])
        reads(store, f"{scratch}/probe.log")
        before, began = cpu_s(cap.pid), time.monotonic()
        done = subprocess.run([sys.executable, "-c", WRITES, f"{folder}/{container}-json.log", str(RATE), str(SECONDS)], capture_output=True, text=True, check=True)
        n, took = int(done.stdout), time.monotonic() - began
        want = {"info": n - n // 100, "error": n // 100}
        assert until(lambda: lines(store, container[:12]) == want, WAIT), (lines(store), want)
        told("a file of Docker's form", before, cpu_s(cap.pid), took, n)
        cap.stop()
    (row,) = sql_all(store, "SELECT sum(messages) AS n, max(pattern) AS pattern FROM log_patterns WHERE level = 'error'")
    assert (row["n"], row["pattern"]) == (n // 100, "request * of user * took * ms")


@pytest.mark.docker
def test_each_line_of_a_chatty_container_of_docker_counts_through_its_rotation(capture, store, scratch):
    need_root()
    need("docker")
    e = engine()
    try:
        image = e.image()
        cap = capture("--files", f"{scratch}/*.log", program="sonde-logs", bucket="10s", prefix=e.prefix)
        reads(store, f"{scratch}/probe.log")
        script = CHATS.format(steps=10 * SECONDS, step=RATE // 10).replace("awk", "busybox awk").replace("usleep", "busybox usleep")
        before, began = cpu_s(cap.pid), time.monotonic()
        done = e.docker("run", "--name", "chatty", "--network", "none", "--log-opt", "max-size=10m", "--log-opt", "max-file=4", image, "/bin/sh", "-c", script + "; sleep 3",
                        timeout=300)
        took = time.monotonic() - began - 3
        assert done.returncode == 0
        n = RATE * SECONDS
        want = {"info": n - n // 100, "error": n // 100}
        assert until(lambda: lines(store, "chatty") == want, WAIT), (lines(store), want)
        told("Docker", before, cpu_s(cap.pid), took, n)
        cap.stop()
        rotated = glob.glob(f"/proc/{e.daemon.pid}/root/var/lib/docker/containers/*/*-json.log.*")
        assert rotated, "it was rotated"
        assert not [r for r in sql_all(store, "SELECT sum(cuts) AS n FROM logs WHERE source = 'chatty'") if r["n"]]
    finally:
        e.stop()


def test_pieces_of_long_lines_and_traces_in_json_are_one_message_each(capture, store, scratch):
    """Docker cuts a line into pieces of 16 KiB; a trace has a record for each of its lines."""
    need_root()
    container = secrets.token_hex(32)
    with journal(scratch, empty=["/var/log/journal", "/var/lib/docker"]) as j:
        folder = f"{j.root}/var/lib/docker/containers/{container}"
        os.makedirs(folder)
        cap = capture("--files", f"{scratch}/*.log", program="sonde-logs", prefix=["nsenter", "-t", str(j.child.pid), "-m", "--"])
        reads(store, f"{scratch}/probe.log")

        def record(text, stream="stdout"):
            return json.dumps({"log": text, "stream": stream, "time": "2026-11-29T18:00:00.5Z"}) + "\n"
        trace = ["ERROR cannot pay order 7", "Traceback (most recent call last):", '  File "/app/shop.py", line 3, in pay', "    bank.ask(order)", "TimeoutError: no answer of bank"]
        with open(f"{folder}/{container}-json.log", "w", encoding="ascii") as f:
            for i in range(40):
                long = f"ERROR answer {i} is too long: " + "x" * 50000
                other = f"INFO {i}\n"
                pieces = [long[k:k + 16384] for k in range(0, len(long), 16384)]
                for k, piece in enumerate(pieces):  # the other stream's lines come in between
                    f.write(record(piece + ("\n" if k == len(pieces) - 1 else ""), "stderr") + record(other))
                f.write("".join(record(line + "\n", "stderr") for line in trace))
                f.write(record(json.dumps({"level": "warning", "msg": f"slow answer {i}", "at": i}) + "\n"))
        want = {"error": 40 * (1 + len(trace)), "info": 160, "warning": 40}
        assert until(lambda: lines(store, container[:12]) == want, WAIT), (lines(store, container[:12]), want)
        time.sleep(2.5)
        cap.stop()
    got = {(r["level"], r["pattern"]): r["n"] for r in sql_all(store, "SELECT level, pattern, sum(messages) AS n FROM log_patterns GROUP BY 1, 2")}
    assert got == {("error", "answer * is too long *"): 40, ("error", "cannot pay order *"): 40, ("warning", "slow answer *"): 40}, got
