# SPDX-License-Identifier: Apache-2.0
"""A PostgreSQL backend that grows: a child of the postmaster that has not called exec, of a program without symbols."""
import subprocess
import time

import pytest

import servers
from conftest import need_root
from test_mem import own_bytes, rows_of

TURNS = 100


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
        c = capture("--period", 16, program="sonde-mem")
        with subprocess.Popen(["psql", "-qAt", *server.at], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as psql:
            def ask(sql):
                psql.stdin.write(sql + "\n")
                psql.stdin.flush()

            def answer(sql):
                ask(sql)
                return psql.stdout.readline().strip()
            pid = int(answer("SELECT pg_backend_pid();"))
            began = own_bytes(pid)
            ask("SET work_mem = '1GB'; BEGIN;")
            for i in range(TURNS):
                ask(f"DECLARE c{i} CURSOR FOR SELECT g, repeat('x', 60) FROM generate_series(1, 3000) g ORDER BY 2; FETCH 1 FROM c{i} \\g /dev/null")
                time.sleep(0.05)
            assert answer("SELECT 1;") == "1"
            own = own_bytes(pid)
            time.sleep(4)
            c.stop(60)
            psql.stdin.close()
            psql.wait()
    finally:
        server.stop()
    rows = rows_of(sonde, store, pid, "-n", "1000")
    of = {r["function"]: 0 for r in rows}
    for r in rows:
        of[r["function"]] += r["inuse_bytes"]
    print(began, own, rows[:6])
    assert own - began > 10 << 20
    assert sum(of.values()) == pytest.approx(own, rel=0.03), (own, rows[:5])
    assert of.get("[without a sample]", 0) < 0.1 * (own - began), of
    assert 0 < of["[from its parent]"] <= began, of
    # the tuples, by the function that makes them, and not by the allocator that has no name
    assert rows[0]["function"] == "heap_form_minimal_tuple" or rows[0]["file"], rows[:4]
    grew = rows_of(sonde, store, pid, "--growth")
    assert grew and grew[0]["function"] == rows[0]["function"], grew[:3]
