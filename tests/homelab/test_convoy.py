# SPDX-License-Identifier: Apache-2.0
"""A lock convoy of twenty seconds at a database in a container: six clients at one row, each of which holds it for a tenth of a second.
With coarse recording alone all of it is in steps of ten seconds; with the flight ring each second has the stacks that waited, the
statements and the log's lines. The truth is pgbench's own log of each transaction."""
import collections
import os
import sys
import tempfile
import time

import pytest

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, *(os.path.join(os.path.dirname(HERE), "e2e", d) for d in ("", "lib", "lib/servers", "host", "sonded"))]

from conftest import need, segments  # noqa: E402
from containers import engine  # noqa: E402
from images import Images  # noqa: E402
from services import POSTGRES  # noqa: E402
from sonded import Sonded, until  # noqa: E402
from test_flight import ask, kept, rows  # noqa: E402

pytestmark = [pytest.mark.docker, pytest.mark.long]

SECONDS, CLIENTS = 20, 6
CONVOY = """BEGIN;
UPDATE till SET n = n + 1 WHERE id = 1;
SELECT pg_sleep(0.1);
DO $$ BEGIN RAISE WARNING 'the till was locked'; END $$;
COMMIT;
"""
STARTS = (f"{POSTGRES}/bin/initdb -D /data/pg -A trust -N >/dev/null && exec {POSTGRES}/bin/postgres -D /data/pg "
          "-c listen_addresses=127.0.0.1 -k /tmp -c dynamic_shared_memory_type=mmap")


class Shop:
    """An engine with a database, whose clients are in a container of its network."""

    def __init__(self):
        need(f"{POSTGRES}/bin/postgres")
        self.engine = engine(own_root=True)
        with tempfile.TemporaryDirectory() as scratch:
            tools = [f"{POSTGRES}/bin/{name}" for name in ("postgres", "initdb", "pgbench", "psql")]
            Images(self.engine, scratch).make("postgres", tools, [f"{POSTGRES}/lib", "/usr/share/postgresql/15", "/usr/share/zoneinfo"],
                                              {"/convoy.sql": CONVOY}, owner=70)
        self.run("run", "-d", "--name", "db", "--network", "none", "--user", "70:70", "postgres", "/bin/sh", "-c", STARTS)
        assert until(lambda: self.psql("SELECT 1").returncode == 0, 60), self.psql("SELECT 1").stderr
        self.psql("CREATE TABLE till(id int PRIMARY KEY, n int); INSERT INTO till VALUES(1, 0)")

    def run(self, *words):
        done = self.engine.docker(*words)
        assert done.returncode == 0, done.stderr
        return done.stdout

    def psql(self, sql):
        return self.engine.docker("exec", "db", f"{POSTGRES}/bin/psql", "-h", "127.0.0.1", "-U", "postgres", "-Atc", sql)

    def convoy(self, name):
        """{second: transactions that ended in it}, by pgbench itself."""
        said = self.run("run", "--rm", "--name", name, "--network", "container:db", "--user", "70:70", "-w", "/tmp", "postgres", "/bin/sh", "-c",
                        f"{POSTGRES}/bin/pgbench -h 127.0.0.1 -U postgres -n -c {CLIENTS} -j {CLIENTS} -T {SECONDS} -l -f /convoy.sql postgres >/dev/null 2>/tmp/err; "
                        "cat /tmp/pgbench_log.*")
        ended = collections.Counter(int(line.split()[4]) for line in said.splitlines())
        assert sum(ended.values()) > 100, said
        return ended


def at_seconds(store, ended):
    """What is there of each second of the convoy: (waits with stacks, statements, lines)."""
    a, b = min(ended) - 2, max(ended) + 2  # a statement is of when it was asked
    stacks = {}
    for path in segments(store):  # stacks have numbers of their own in each file; PostgreSQL waits for a row at its latch
        for r in rows(path, "SELECT w.ts AS ts, group_concat(DISTINCT f.function) AS functions FROM waits w JOIN stack_frames f ON f.stack_id = w.stack_id"
                            f" WHERE w.comm = 'postgres' AND w.container = 'db' AND f.function = 'ProcSleep' AND w.ts BETWEEN {a - 8} AND {b} GROUP BY w.ts"):
            stacks[r["ts"]] = r["functions"]
    statements = {r["ts"]: r["n"] for r in rows(store, "SELECT ts, count(*) AS n FROM request_log WHERE side = 'server' AND protocol = 'postgres'"
                                                f" AND operation LIKE 'UPDATE till%' AND ts BETWEEN {a} AND {b} GROUP BY ts")}
    lines = {r["ts"]: r["n"] for r in rows(store, f"SELECT ts, sum(messages) AS n FROM log_seconds WHERE source = 'db' AND pattern LIKE '%till was locked%'"
                                           f" AND ts BETWEEN {a} AND {b} GROUP BY ts")}
    return stacks, statements, lines


def test_a_lock_convoy_with_coarse_recording_alone_and_with_the_ring(tmp_path):
    shop = Shop()
    try:
        said = {}
        for ring in ("off", "on"):
            store = str(tmp_path / ring)
            with Sonded(store, "--families", "cpu,offcpu,host,l7,logs", "--flight", ring, "--cpu", "0", prefix=shop.engine.prefix) as d:
                assert until(lambda: all(d.running(f) for f in ("cpu", "offcpu", "l7", "logs")), 60), d.said()  # noqa: B023
                time.sleep(22)
                ended = shop.convoy(f"convoy-{ring}")
                time.sleep(25)
                if ring == "on":
                    assert ask(store, "keep", "--last", "90s", "--why", "a convoy").returncode == 0
                    assert until(lambda: "a convoy" in kept(d)["last_why"], 150), (kept(d), d.said())  # noqa: B023
            said[ring] = (ended, *at_seconds(store, ended))
    finally:
        shop.engine.stop()
    for ring, (ended, stacks, statements, lines) in said.items():
        print(f"ring {ring}: {sum(ended.values())} transactions in {len(ended)} s; seconds with stacks of waits {len(stacks)}, with statements "
              f"{len(statements)} ({sum(statements.values())}), with lines {len(lines)} ({sum(lines.values())})")
    ended, stacks, statements, lines = said["off"]
    assert all(s % 10 == 0 for s in stacks) and not lines and sum(statements.values()) < sum(ended.values()), said["off"]
    ended, stacks, statements, lines = said["on"]
    inside = range(min(ended) + 2, max(ended) - 1)
    assert len(inside) >= SECONDS - 5
    for s in inside:
        assert s in stacks, (s, stacks)
        assert statements.get(s) and lines.get(s), (s, statements, lines)
    assert sum(statements.values()) == sum(lines.values()) == sum(ended.values()), (statements, lines, ended)
