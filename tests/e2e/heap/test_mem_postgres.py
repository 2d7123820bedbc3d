# SPDX-License-Identifier: Apache-2.0
"""A PostgreSQL backend that grows: a child of the postmaster that has not called exec, of a program without symbols."""
import collections
import json
import subprocess
import time

import pytest

import servers
from conftest import need_root
from test_mem import own_bytes, rows_of

TURNS = 200
TUPLES = "heap_form_minimal_tuple"
WARM_S = 240
SORTED = "SELECT g, repeat('x', 60) FROM generate_series(1, {}) g ORDER BY 2"


class Session:
    """psql, and the backend that it talks to."""

    def __init__(self, server):
        self.psql = subprocess.Popen(["psql", "-qAt", *server.at], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.pid = int(self.answer("SELECT pg_backend_pid();"))
        self.ask("SET work_mem = '1GB'; BEGIN;")

    def ask(self, sql):
        self.psql.stdin.write(sql + "\n")
        self.psql.stdin.flush()

    def answer(self, sql):
        self.ask(sql)
        return self.psql.stdout.readline().strip()

    def keeps(self, name, rows):
        """A cursor more, with its sorted rows."""
        self.ask(f"DECLARE {name} CURSOR FOR {SORTED.format(rows)}; FETCH 1 FROM {name} \\g /dev/null")

    def close(self):
        self.psql.stdin.close()
        self.psql.wait()


def warmed(sonde, store, server):
    """Sessions until the names of the server's functions are known: on a busy host its file is read late."""
    end = time.monotonic() + WARM_S
    while time.monotonic() < end:
        session = Session(server)
        session.keeps("c", 60000)
        assert session.answer("SELECT 1;") == "1"
        time.sleep(3)
        done = sonde("heap", "-p", session.pid, "--json", store=store)
        session.close()
        if not done.returncode and any(r["function"] == TUPLES for r in json.loads(done.stdout)["rows"][:3]):
            return
    pytest.fail(f"the functions of the server are not known after {WARM_S} s")


@pytest.mark.long
@pytest.mark.live
def test_a_backend_s_growth_has_its_lines_and_the_rest_its_cause(sonde, store, capture, scratch):
    """A session that keeps a cursor more every turn, each over sorted rows."""
    need_root()
    try:
        server = servers.postgres(scratch, load=False)
    except servers.Missing as e:
        pytest.skip(f"missing: {e}")
    try:
        c = capture("--apart", "--period", 16, program="sonde-mem")
        warmed(sonde, store, server)
        since = ["--from", f"{time.time():.3f}"]
        session = Session(server)
        began = own_bytes(session.pid)
        for i in range(TURNS):
            session.keeps(f"c{i}", 3000)
            time.sleep(0.05)
        assert session.answer("SELECT 1;") == "1"
        own = own_bytes(session.pid)
        time.sleep(3)
        c.stop(60)
        session.close()
    finally:
        server.stop()
    rows = rows_of(sonde, store, session.pid, "-n", "1000")
    of = collections.Counter()
    for r in rows:
        of[r["function"]] += r["inuse_bytes"]
    print(began, own, rows[:6])
    assert own - began > 20 << 20
    assert sum(of.values()) == pytest.approx(own, rel=0.03), (own, rows[:5])
    assert of["[without a sample]"] < 0.1 * (own - began), of
    assert 0 < of["[from its parent]"] <= began, of
    # the tuples, by the function that makes them, and not by the allocator, which has no name
    assert rows[0]["function"] == TUPLES, rows[:4]
    grew = rows_of(sonde, store, session.pid, "--growth", *since)
    assert grew and grew[0]["function"] == TUPLES, grew[:3]
