# SPDX-License-Identifier: Apache-2.0
"""Statements that block in PostgreSQL and MariaDB are shown at once, as the servers' own lists have them, with the stack of the thread that works on each: while they
block, and where it stood when the recording ended."""
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


# of MariaDB: the thread's number in the kernel, and since when its statement runs
PROCESSLIST = "SELECT tid, unix_timestamp(now(6)) - time_ms / 1000 FROM information_schema.processlist WHERE info LIKE 'UPDATE%' AND command = 'Query' ORDER BY tid"


@pytest.fixture(scope="module", params=["postgres", "mariadb"])
def blocking(request):
    """(server, its protocol, argv of its client, ...)"""
    need_root()
    folder = tempfile.mkdtemp()
    os.chmod(folder, 0o755)
    try:
        server = getattr(servers, request.param)(folder, load=False)
        yield Postgres(server) if request.param == "postgres" else Mariadb(server)
    except servers.Missing as e:
        pytest.skip(f"missing: {e}")
    server.stop()
    shutil.rmtree(folder, ignore_errors=True)


class Database:
    def __init__(self, server):
        self.server = server

    def told(self, text):
        """The rows that a statement gives, each a list of texts."""
        done = subprocess.run([*self.argv, *self.once, text], capture_output=True, text=True, check=True)
        return [line.split(self.between) for line in done.stdout.splitlines() if line]

    def session(self, text):
        p = subprocess.Popen(self.argv, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True)
        p.stdin.write(text)
        p.stdin.flush()
        return p


class Postgres(Database):
    protocol, comm, once, between = "postgres", "psql", ["-c"], "|"
    hold, held = "BEGIN; LOCK TABLE pgbench_branches;\n", "SELECT 1 FROM pg_locks WHERE mode = 'AccessExclusiveLock'"
    block, operation = "SELECT * FROM pgbench_branches WHERE bid = 1;\n", "SELECT * FROM pgbench_branches WHERE bid = ?"
    stands = ["ProcSleep", "LockAcquireExtended", "PostgresMain"]

    def __init__(self, server):
        super().__init__(server)
        self.argv = [servers.find("psql", "/usr/lib/postgresql/15/bin/psql"), "-X", "-A", "-t", "-q", *server.at]

    def blocked(self):
        """{the number of the thread: since when}"""
        return {int(pid): float(at) for pid, _, at in self.told(ACTIVITY)}


class Mariadb(Database):
    protocol, comm, once, between = "mysql", "mariadb", ["-e"], "\t"
    hold, held = "BEGIN; UPDATE test.t SET v = 2 WHERE id = 1;\n", "SELECT 1 FROM information_schema.innodb_trx WHERE trx_rows_modified = 1"
    block, operation = "UPDATE test.t SET v = 3 WHERE id = 1;\n", "UPDATE test.t SET v = ? WHERE id = ?"
    stands = ["dispatch_command", "mysql_execute_command"]

    def __init__(self, server):
        super().__init__(server)
        self.argv = [servers.find("mariadb"), *server.at, "-N", "-B", "--unbuffered"]
        self.told("CREATE DATABASE IF NOT EXISTS test; CREATE TABLE test.t (id INT PRIMARY KEY, v INT) ENGINE=InnoDB; INSERT INTO test.t VALUES (1, 1)")

    def blocked(self):
        return {int(tid): float(at) for tid, at in self.told(PROCESSLIST)}


def ask(store, *words):
    done = subprocess.run([f"{BIN}/sonde", "requests", "--running", "--json", "--store", store, *words], capture_output=True, text=True, timeout=60)
    return json.loads(done.stdout)["rows"] if not done.returncode else []


def stands(row, db):
    return row["stack"] and row["doing"] and row["doing"].startswith("waits") and all(name in row["stack"] for name in db.stands)


def test_statements_that_block_are_shown_with_who_since_when_and_where_they_stand(blocking, tmp_path):
    db, store = blocking, str(tmp_path / "store")
    recorder = subprocess.Popen([f"{BIN}/sonde", "record", "--families", "cpu,offcpu,l7", "--store", store], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    assert until(lambda: b"l7" in os.read(recorder.stderr.fileno(), 4096), 60)
    holder = db.session(db.hold)
    assert until(lambda: len(db.told(db.held)) == 1, 20)
    clients = [db.session(db.block) for _ in range(3)]

    def three():
        rows = [r for r in ask(store) if r["protocol"] == db.protocol and r["operation"] == db.operation]
        return rows if len(rows) == 3 and all(r["stack"] for r in rows) else None
    try:
        known = until(lambda: (lambda b: b if len(b) == 3 else None)(db.blocked()), 20)
        rows = until(three, 40)
        assert {r["server"]["tid"] for r in rows} == set(known)
        assert {r["client"]["pid"] for r in rows} == {c.pid for c in clients} and {r["client"]["comm"] for r in rows} == {db.comm}
        for r in rows:
            assert abs(r["since_ns"] / 1e9 - known[r["server"]["tid"]]) < 0.1
            assert stands(r, db), r
    finally:
        recorder.terminate()
        recorder.communicate(timeout=360)
        holder.kill()
        for p in (holder, *clients):
            p.stdin.close()
            p.wait(timeout=180)
    ended = [r for r in ask(store) if r["protocol"] == db.protocol]  # the recording stored where each thread stood
    assert len(ended) == 3 and all(stands(r, db) for r in ended), ended
