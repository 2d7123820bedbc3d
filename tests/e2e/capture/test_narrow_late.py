# SPDX-License-Identifier: Apache-2.0
"""A recording of some processes whose sonde-maps is stopped while one of them begins, works and ends: what it did is stored once it is
known, or is among the lost; nothing is left out without a word."""
import json
import os
import subprocess
import sys
import time

import pytest

from conftest import need_root, sql_all
from publishing import maps_still
from sonded import until

NAME = "latecomer"
MIB, ASKS, BURN_S = 48, 30, 0.6
STILL_S = 8  # longer than records wait for it

PROGRAM = f"""#!{os.path.realpath(sys.executable)}
import http.client, http.server, json, os, resource, sys, threading, time
def keeps():
    held = bytearray({MIB} << 20)
    for at in range(0, len(held), 4096):
        held[at] = 1
    return held
class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    def do_GET(self):
        self.send_response(200)
        self.send_header("Content-Length", "2")
        self.end_headers()
        self.wfile.write(b"ok")
    def log_message(self, *args):
        pass
def asks():
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    c = http.client.HTTPConnection("127.0.0.1", server.server_port)
    for _ in range({ASKS}):
        c.request("GET", "/late")
        c.getresponse().read()
    c.close()
def burns():
    while time.process_time() < {BURN_S}:
        pass
held = dict(mem=keeps, l7=asks, host=burns, rests=int)[sys.argv[1]]()
used = resource.getrusage(resource.RUSAGE_SELF)
with open("/proc/self/status") as f:
    own = sum(int(line.split()[1]) << 10 for line in f if line.startswith("RssAnon"))
print(json.dumps(dict(pid=os.getpid(), own=own, faults=used.ru_minflt, cpu_us=(used.ru_utime + used.ru_stime) * 1e6)), flush=True)
if sys.argv[1] in ("mem", "rests"):
    sys.stdin.read(1)
"""


def begun(scratch, family):
    path = os.path.join(scratch, NAME)
    with open(path, "w", encoding="ascii") as f:
        f.write(PROGRAM)
    os.chmod(path, 0o755)
    return subprocess.Popen([path, family], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)


def mem_is_whole(store, did):
    (row,) = sql_all(store, f"SELECT sum(n) AS n FROM amounts WHERE type = 'pagefaults' AND pid = {did['pid']}")
    assert row["n"] == pytest.approx(did["faults"], rel=0.1), (row, did)
    rows = sql_all(store, f"SELECT stack_id, max(value) AS bytes FROM amounts WHERE type = 'mem' AND pid = {did['pid']} AND function NOT IN ('[without a sample]', '[no stack]') GROUP BY stack_id")
    assert MIB << 20 <= 1.15 * sum(r["bytes"] for r in rows) and sum(r["bytes"] for r in rows) <= 1.15 * did["own"], (rows, did)


def l7_is_whole(store, _):
    rows = sql_all(store, f"SELECT side, sum(requests) AS n FROM requests WHERE comm = '{NAME}' AND operation = 'GET /late' GROUP BY side")
    assert {r["side"]: r["n"] for r in rows} == {"client": ASKS, "server": ASKS}, rows


def host_is_whole(store, did):
    (row,) = sql_all(store, f"SELECT sum(user_us + system_us) AS us FROM process_stats WHERE pid = {did['pid']}")
    (ended,) = sql_all(store, f"SELECT sum(user_us + system_us) AS us FROM ended_stats WHERE comm = '{NAME}'")
    assert (row["us"] or 0) + (ended["us"] or 0) >= 0.9 * did["cpu_us"], (row, ended, did)


WHOLE = {"mem": mem_is_whole, "l7": l7_is_whole, "host": host_is_whole}


@pytest.mark.long
@pytest.mark.parametrize("family", WHOLE)
def test_what_a_late_process_did_is_stored_or_counted(capture, store, scratch, family):
    need_root()
    cap = capture("--bucket", "1s", "--comm", NAME, *(["--period", "16"] if family == "mem" else []), program=f"sonde-{family}")
    before = begun(scratch, "rests")
    assert until(lambda: family != "host" or sql_all(store, f"SELECT 1 FROM process_stats WHERE comm = '{NAME}'"), 120)
    with maps_still(cap):
        child = begun(scratch, family)
        did = json.loads(child.stdout.readline())
        time.sleep(STILL_S)
    time.sleep(6)
    done = cap.stop(60)
    for each in (before, child):
        each.communicate()
    assert done["seen"] == done["samples"] + done["lost_total"], done
    if not done["lost"]["unknown"]:
        WHOLE[family](store, did)
