# SPDX-License-Identifier: Apache-2.0
"""Java's virtual machines, by what they write of themselves: compared with jstat, which reads the same file at rest."""
import json
import os
import shutil
import subprocess

import pytest

from conftest import ROOT, need, sql_all
from sonded import until
from test_host import first_row

HEAP = os.path.join(ROOT, "tests", "workloads", "scripts", "JavaHeap.java")


def java(*options, rounds=3, prefix=()):
    need("java")
    p = subprocess.Popen([*prefix, "java", "-Xmx64m", *options, HEAP, str(rounds)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    return p


def end(p):
    p.stdin.close()
    p.wait()
    p.stdout.close()


def rows(store, pid):
    return sql_all(store, f"SELECT * FROM jvm_stats WHERE pid = {pid} ORDER BY ts") if first_row(store) else []


def jstat(pid):
    need("jstat")
    done = subprocess.run(["jstat", "-gc", str(pid)], capture_output=True, text=True, check=True)
    head, values = (line.split() for line in done.stdout.splitlines()[:2])
    return {k: float(v.replace(",", ".")) for k, v in zip(head, values) if v != "-"}


def total(some, column):
    return sum(r[column] or 0 for r in some)


def settled(store, pid):
    """What jstat says once the newest row says the same of what may move last (classes that are loaded while it waits)."""
    told = {}

    def same():
        told.update(jstat(pid))
        of = rows(store, pid)
        return of and total(of, "full_gcs") >= 3 and abs(of[-1]["metaspace_used"] / 1024 - told["MU"]) < 1 and abs(of[-1]["old_used"] / 1024 - told["OU"]) < 1
    assert until(same, 30), (told, rows(store, pid))
    return told


def assert_is_what_jstat_says(of, told):
    """All of a machine that began after the recorder, at rest."""
    assert total(of, "young_gcs") == told["YGC"] and total(of, "full_gcs") == told["FGC"] >= 3
    assert abs(total(of, "young_gc_us") - 1e6 * told["YGCT"]) <= 1000 + len(of) and abs(total(of, "full_gc_us") - 1e6 * told["FGCT"]) <= 1000 + len(of)
    last = of[-1]
    assert abs(last["old_used"] / 1024 - told["OU"]) < 1 and abs(last["old_committed"] / 1024 - told["OC"]) < 1
    assert abs(last["metaspace_used"] / 1024 - told["MU"]) < 1 and abs(last["metaspace_committed"] / 1024 - told["MC"]) < 1
    assert last["young_used"] <= last["young_committed"] and 0 < last["old_max"] <= (64 << 20) + 4096
    assert last["comm"] == "java" and last["version"] and last["collector"] and last["threads"] >= last["daemon_threads"] > 0
    assert total(of, "safepoints") >= total(of, "full_gcs") and total(of, "safepoint_us") >= total(of, "full_gc_us") > 0
    assert last["classes"] > 100 and total(of, "classes_loaded") >= last["classes"]


@pytest.mark.long
@pytest.mark.parametrize("collector", ["G1", "Serial", "Parallel"])
def test_heap_and_collections_are_what_jstat_says_by_each_collector(collector, capture, store):
    c = capture(program="sonde-host")
    assert until(lambda: first_row(store), 20)
    p = java(f"-XX:+Use{collector}GC")
    try:
        assert p.stdout.readline() == "3\n"
        told = settled(store, p.pid)
        c.stop()
    finally:
        end(p)
    assert_is_what_jstat_says(rows(store, p.pid), told)


def perf_file(pid):
    """Of a process in our root, by its own mapping."""
    with open(f"/proc/{pid}/maps", encoding="utf-8") as f:
        return next((line.split()[-1] for line in f if "/hsperfdata_" in line), None)


def java_child(pid):
    done = subprocess.run(["pgrep", "-P", str(pid), "java"], capture_output=True, text=True, check=False)
    return int(done.stdout) if done.stdout.strip() else 0


def test_each_machine_has_its_own_file_whatever_others_lie_there(capture, sonde, store):
    """One in a pid namespace of its own, one that writes none and finds another's under its pid, one whose file is damaged later."""
    need("pgrep")
    c = capture(program="sonde-host")
    assert until(lambda: first_row(store), 20)
    inside, silent, damaged = java(prefix=["unshare", "-pf", "--kill-child"]), java("-XX:-UsePerfData"), java()
    planted = None
    try:
        for p in (inside, silent, damaged):
            assert p.stdout.readline() == "3\n"
        own = perf_file(damaged.pid)
        planted = f"{os.path.dirname(own)}/{silent.pid}"
        shutil.copy(own, planted)
        pid = java_child(inside.pid)
        assert until(lambda: rows(store, pid), 30)
        told = settled(store, damaged.pid)
        with open(own, "r+b") as f:
            f.write(b"\0\0\0\0")
        assert until(lambda: f"the heap of java {damaged.pid} is not recorded: {own}: it is damaged" in c.said(), 30)
        c.stop()
        assert perf_file(pid) != own and rows(store, pid)[-1]["old_used"] > 0
    finally:
        for p in (inside, silent, damaged):
            end(p)
        if planted:
            os.unlink(planted)
    assert_is_what_jstat_says(rows(store, damaged.pid), told)
    assert not rows(store, silent.pid)
    answer = json.loads(sonde("timeline", "--of", "jvm", "--json", "--last", "10m", store=store, check=True).stdout)
    assert {r["who"] for r in answer["rows"]} == {f"java {pid}", f"java {damaged.pid}"} | other_machines(store)
    answer = json.loads(sonde("timeline", "--of", "gc", "--json", "--last", "10m", store=store, check=True).stdout)
    assert next(r for r in answer["rows"] if r["who"] == f"java {damaged.pid}")["most"] > 0


def other_machines(store):
    """Of others on this host."""
    return {f"{r['container'] or r['comm']} {r['pid']}" for r in sql_all(store, "SELECT DISTINCT container, comm, pid FROM jvm_stats")}
