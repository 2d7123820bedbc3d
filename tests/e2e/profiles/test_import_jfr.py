# SPDX-License-Identifier: Apache-2.0
"""`sonde import` of recordings of Java's flight recorder that are made here byte by byte (tests/e2e/lib/jfrfile.py): what each holds is known.
Those of real JVMs: test_import_java.py."""
import collections
import gzip
import os

import pytest
from conftest import sql_all
from jfrfile import TYPES, Chunk, chunk, varint

AT = 1795144200 * 10**9


def folded(sonde, store, *args):
    done = sonde("export", "folded", "--rec", "last", *args, store=store, check=True)
    return collections.Counter({k: int(n) for k, n in (x.rsplit(" ", 1) for x in done.stdout.splitlines())})


def filled(first_id=40, period="10 ms", at=AT):
    c = chunk(at, first_id, period)
    for i in range(30):
        c.event("jdk.ExecutionSample", startTime=i * 10**8 // 2, sampledThread=1, stackTrace=1 if i % 3 else 2, state=1)
    for i in range(4):
        c.event("jdk.ThreadPark", startTime=i * 10**8, duration=3_000_000, eventThread=2, stackTrace=3)
        c.event("jdk.JavaMonitorEnter", startTime=i * 10**8, duration=7, eventThread=1, stackTrace=1)
        c.event("jdk.ObjectAllocationSample", startTime=i * 10**8, eventThread=1, stackTrace=2, objectClass=1, weight=2**33)
        c.event("jdk.JavaExceptionThrow", startTime=i * 10**8, eventThread=1, stackTrace=9)
    return c


def test_each_kind_of_event_is_a_kind_of_value(sonde, tmp_path):
    (tmp_path / "x.jfr").write_bytes(filled().bytes())
    store = str(tmp_path / "store")
    said = sonde("import", tmp_path / "x.jfr", store=store, check=True).stderr
    assert "imported 30 samples (time on CPU)" in said and "and 4 exceptions (exceptions thrown): --type exception" in said
    assert folded(sonde, store) == {"com.shop.W.main;com.shop.W.hot": 20, "com.shop.W.main;com.shop.W.cold": 10}
    assert sql_all(store, "SELECT sum(cpu_ns) AS ns, min(pid) AS pid, min(comm) AS comm, min(line) AS line, max(line) AS last FROM cpu_samples") == [
        {"ns": 300_000_000, "pid": 4321, "comm": "java", "line": 7, "last": 9}]
    rows = sql_all(store, "SELECT type, thread, tid, function, module, sum(n) AS n, sum(value) AS v FROM amounts GROUP BY 1 ORDER BY 1")
    assert [tuple(r.values()) for r in rows] == [
        ("alloc", "main", 101, "com.shop.W.cold", "[java]", 4, 2**35), ("block", "w\u00e4iter", 102, "write", "libc.so.6", 4, 12_000_000),
        ("exception", "main", 101, "[no stack]", "", 4, 4), ("mutex", "main", 101, "com.shop.W.hot", "[java]", 4, 28_000_000)]
    seconds = sql_all(store, "SELECT ts, sum(samples) AS n FROM cpu_samples GROUP BY 1 ORDER BY 1")
    assert [(r["ts"] * 10**9 - AT, r["n"]) for r in seconds] == [(0, 20), (10**9, 10)]
    assert "S3cret" not in str(sql_all(store, "SELECT args FROM processes"))


def test_chunks_whose_types_have_other_numbers_add_up(sonde, tmp_path):
    with gzip.open(tmp_path / "x.jfr.gz", "wb") as f:
        f.write(filled().bytes() + filled(first_id=900, period="20 ms", at=AT + 2 * 10**9).bytes())
    store = str(tmp_path / "store")
    sonde("import", tmp_path / "x.jfr.gz", store=store, check=True)
    assert sql_all(store, "SELECT sum(cpu_ns) AS ns FROM cpu_samples")[0]["ns"] == 30 * 10**7 + 30 * 2 * 10**7
    assert {r["type"]: r["n"] for r in sql_all(store, "SELECT type, sum(n) AS n FROM amounts GROUP BY 1")} == {
        "alloc": 8, "block": 8, "exception": 8, "mutex": 8}


@pytest.mark.parametrize("args, kinds", [(["--type", "block"], {"block": 4}), (["--event", "jdk.JavaMonitorEnter"], {"mutex": 4})])
def test_one_kind_or_event_alone(sonde, tmp_path, args, kinds):
    (tmp_path / "x.jfr").write_bytes(filled().bytes())
    store = str(tmp_path / "store")
    sonde("import", tmp_path / "x.jfr", *args, store=store, check=True)
    assert {r["type"]: r["n"] for r in sql_all(store, "SELECT type, sum(n) AS n FROM amounts GROUP BY 1")} == kinds
    assert sql_all(store, "SELECT count(*) AS n FROM cpu_samples")[0]["n"] == 0


def test_samples_without_a_period_are_counted(sonde, tmp_path):
    (tmp_path / "x.jfr").write_bytes(filled(period=None).bytes())
    store = str(tmp_path / "store")
    sonde("import", tmp_path / "x.jfr", "--freq", 50, store=store, check=True)
    assert sql_all(store, "SELECT sum(samples) AS n, sum(cpu_ns) AS ns FROM cpu_samples") == [{"n": 30, "ns": 30 * 20_000_000}]


def test_samples_of_threads_that_sleep_are_no_time_on_cpu(sonde, tmp_path):
    c = chunk(AT)
    for i in range(6):
        c.event("jdk.ExecutionSample", startTime=i * 10**8, sampledThread=1, stackTrace=1, state=1 + i % 2)
    (tmp_path / "x.jfr").write_bytes(c.bytes())
    store = str(tmp_path / "store")
    sonde("import", tmp_path / "x.jfr", store=store, check=True)
    assert sql_all(store, "SELECT type, sum(n) AS n, sum(value) AS v FROM amounts GROUP BY 1") == [{"type": "wallclock", "n": 6, "v": 60_000_000}]


def test_a_recording_that_ends_early_is_read_so_far(sonde, tmp_path):
    whole = filled().bytes()
    (tmp_path / "x.jfr").write_bytes(whole + filled(at=AT + 2 * 10**9).bytes()[:300])
    store = str(tmp_path / "store")
    said = sonde("import", tmp_path / "x.jfr", store=store, check=True).stderr
    assert "1 of chunks that were not finished" in said and sum(folded(sonde, store).values()) == 30
    (tmp_path / "y.jfr").write_bytes(whole[:400])
    done = sonde("import", tmp_path / "y.jfr", store=str(tmp_path / "none"))
    assert done.returncode == 2 and "no chunk of it was finished" in done.stderr and not os.path.exists(tmp_path / "none")


def test_what_is_wrong_is_said(sonde, tmp_path):
    whole = filled().bytes()
    for change, says in (((66, b"\0\0"), "not compressed"), ((4, b"\0\1"), "version is not 2"), ((56, bytes(8)), "does not tick")):
        at, b = change
        (tmp_path / "x.jfr").write_bytes(whole[:at] + b + whole[at + len(b):])
        done = sonde("import", tmp_path / "x.jfr", store=str(tmp_path / "none"))
        assert done.returncode == 2 and says in done.stderr
    (tmp_path / "x.jfr").write_bytes(whole)
    done = sonde("import", tmp_path / "x.jfr", "--event", "jdk.FileRead", store=str(tmp_path / "none"))
    assert done.returncode == 2 and "it holds jdk.ExecutionSample (30), " in done.stderr
    (tmp_path / "x.jfr").write_bytes(chunk(AT).bytes())
    assert sonde("import", tmp_path / "x.jfr", store=str(tmp_path / "none")).returncode == 4


def test_types_that_hold_themselves_do_not_hang_it(sonde, tmp_path):
    types = {**TYPES, "jdk.types.Loop": [("a", "jdk.types.Loop", ""), ("b", "jdk.types.Loop", "list")], "jdk.types.Empty": [],
             "jdk.types.Many": [("x", "jdk.types.Empty", "list")]}
    for kind, raw in (("jdk.types.Loop", bytes(60)), ("jdk.types.Many", varint(2**60)), ("jdk.types.Symbol", b"\3" + varint(2**62))):
        c = Chunk(types, AT)
        c.pools[kind] = [(1, raw)]
        (tmp_path / "x.jfr").write_bytes(c.bytes())
        assert sonde("import", tmp_path / "x.jfr", store=str(tmp_path / "none")).returncode in (2, 4)
