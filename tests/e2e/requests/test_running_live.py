# SPDX-License-Identifier: Apache-2.0
"""Three statements that block in PostgreSQL are shown at once, as pg_stat_activity has them, and where their backends stand."""
import json
import os
import shutil
import subprocess
import tempfile

import pytest
import servers
from conftest import BIN, need_root
from sonded import until

pytestmark = [pytest.mark.live, pytest.mark.requests]

ACTIVITY = "SELECT pid, client_port, extract(epoch FROM query_start) FROM pg_stat_activity WHERE wait_event_type = 'Lock' ORDER BY pid"


@pytest.fixture(scope="module")
def postgres():
    need_root()
    folder = tempfile.mkdtemp()
    try:
        server = servers.postgres(folder, load=False)
    except servers.Missing as e:
        pytest.skip(str(e))
    yield server
    server.stop()
    shutil.rmtree(folder, ignore_errors=True)


def ask(store, *words):
    done = subprocess.run([f"{BIN}/sonde", "requests", "--running", "--json", "--store", store, *words], capture_output=True, text=True, timeout=60)
    return json.loads(done.stdout)["rows"] if not done.returncode else []


def test_three_statements_that_block_are_shown_with_who_and_since_when(postgres, tmp_path):
    store, psql = str(tmp_path / "store"), [servers.find("psql", "/usr/lib/postgresql/15/bin/psql"), "-X", "-A", "-t", "-q", *postgres.at]

    def session(text):
        p = subprocess.Popen(psql, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True)
        p.stdin.write(text)
        p.stdin.flush()
        return p
    recorder = subprocess.Popen([f"{BIN}/sonde", "record", "--families", "cpu,offcpu,l7", "--store", store], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    assert until(lambda: b"l7" in os.read(recorder.stderr.fileno(), 4096), 60)
    holder = session("BEGIN; LOCK TABLE pgbench_branches;\n")
    assert until(lambda: subprocess.run([*psql, "-c", "SELECT count(*) FROM pg_locks WHERE mode = 'AccessExclusiveLock'"], capture_output=True, text=True).stdout.strip() == "1", 20)
    clients = [session("SELECT * FROM pgbench_branches WHERE bid = 1;\n") for _ in range(3)]
    try:
        assert until(lambda: len(subprocess.run([*psql, "-c", ACTIVITY], capture_output=True, text=True).stdout.split()) == 3, 20)
        known = [line.split("|") for line in subprocess.run([*psql, "-c", ACTIVITY], capture_output=True, text=True, check=True).stdout.split()]
        rows = until(lambda: (lambda rows: rows if len(rows) == 3 else None)([r for r in ask(store) if r["protocol"] == "postgres"]), 30)
        assert {(str(r["server"]["pid"]), r["client"]["address"].split(":")[1]) for r in rows} == {(pid, port) for pid, port, _ in known}
        assert {r["client"]["pid"] for r in rows} == {c.pid for c in clients} and {r["client"]["comm"] for r in rows} == {"psql"}
        for r in rows:
            begin = next(float(at) for pid, _, at in known if pid == str(r["server"]["pid"]))
            assert abs(r["since_ns"] / 1e9 - begin) < 0.1 and r["operation"] == "SELECT * FROM pgbench_branches WHERE bid = ?"
    finally:
        recorder.terminate()
        recorder.communicate(timeout=60)
        holder.kill()
        for p in (holder, *clients):
            p.stdin.close()
            p.wait(timeout=30)
    ended = [r for r in ask(store) if r["protocol"] == "postgres"]  # the recording stored where each thread stood
    assert len(ended) == 3 and all("ProcSleep" in r["stack"] and r["doing"].startswith("waits") for r in ended), ended
