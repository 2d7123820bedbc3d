# SPDX-License-Identifier: Apache-2.0
"""Kinds of value beside CPU samples: what is put into a store comes out by --type and --unit in each form.

The stores are written by tests/workloads/putstore.c; oracles are the numbers put in, plain SQLite, and go tool pprof.
"""
import glob
import json
import math
import os
import re
import sqlite3
import subprocess

import pytest
from conftest import BUILD, ROOT, need, segments

T0 = 1800000000
RANGE = ["--from", str(T0), "--to", str(T0 + 600)]
RATE = 524288


def put(folder, lines):
    program = os.path.join(BUILD, "tests", "putstore")
    need("build/tests/putstore", program)
    subprocess.run([program, folder], input="\n".join(map(json.dumps, lines)), text=True, check=True)


def run_of(family, recording=0, **more):
    return {"run": family, "from": T0, "to": T0 + 60, "bucket_s": 10, "recording": recording, **more}


def at(second, kind, n, value, *stack, **more):
    return {"kind": kind, "at": T0 + second, "n": n, "value": value, "stack": ["main", *stack], **more}


WAITS = [at(1, "offcpu", 4, 4_000_000_000, "read", max=3_000_000_000), at(11, "offcpu", 2, 500_000_000, "read"),
         at(12, "offcpu", 10, 1_500_000_000, "lock", ["futex", "wait.c", 7]), at(13, "runqueue", 100, 250_000, "read")]
HEAP = [{"rate": RATE, "at": T0},
        at(5, "alloc", 10, 10240, ["make", "app.go", 12], label=1024), at(15, "alloc", 5, 5120, ["make", "app.go", 12], label=1024),
        at(15, "alloc", 1, 1 << 20, ["big", "app.go", 40], label=1 << 20),
        at(5, "inuse", 10, 10240, ["make", "app.go", 12], label=1024), at(15, "inuse", 4, 4096, ["make", "app.go", 12], label=1024),
        at(15, "inuse", 1, 1 << 20, ["big", "app.go", 40], label=1 << 20)]
CPU = [at(s, "cpu", 99, 0, "spin") for s in range(10)]


@pytest.fixture(scope="module")
def mixed(tmp_path_factory):
    """A recording of three families, begun together."""
    folder = str(tmp_path_factory.mktemp("kinds") / "mixed")
    put(folder, [run_of("cpu", 7, period_ns=10101010), *CPU, {"loss": "ring", "at": T0, "n": 3},
                 run_of("offcpu", 7), *WAITS, {"loss": "map", "at": T0, "n": 5}, run_of("goheap", 7), *HEAP])
    return folder


def scaled(n, size):
    return pytest.approx(n / (1 - math.exp(-size / RATE)), abs=1)


def top(sonde, store, *args):
    out = json.loads(sonde("stacks", "--json", *args, store=store, check=True).stdout)
    return out, {r["function"]: r for r in out["rows"]}


def test_a_recording_of_several_families_is_one(mixed, sonde):
    recordings = json.loads(sonde("status", "--json", store=mixed, check=True).stdout)
    assert "cpu,offcpu,goheap" in json.dumps(recordings)
    for which in ([], ["--rec", "last"], ["--rec", "1"]):
        assert top(sonde, mixed, *which, "--type", "offcpu")[1]["read"]["self_n"] == 6
        assert top(sonde, mixed, *which)[1]["spin"]["self_samples"] == 990


def test_without_a_type_it_is_cpu_and_the_others_change_nothing(mixed, sonde):
    out, rows = top(sonde, mixed, *RANGE)
    assert out["type"] == "cpu" and out["unit"] == "ns" and out["samples"] == 990 and out["cpu_ns"] == 990 * 10101010
    assert set(rows) == {"main", "spin"} and [w for w in out["warnings"] if "3 samples" in w] and len(out["warnings"]) == 1


def test_waits_are_ranked_by_time_or_by_number(mixed, sonde):
    out, rows = top(sonde, mixed, *RANGE, "--type", "offcpu")
    assert (out["type"], out["unit"], out["n"], out["value"]) == ("offcpu", "ns", 16, 6_000_000_000)
    assert (rows["read"]["self_value"], rows["read"]["self_n"]) == (4_500_000_000, 6)
    assert out["rows"][0]["function"] == "read"
    out, rows = top(sonde, mixed, *RANGE, "--type", "offcpu", "--unit", "events")
    assert out["unit"] == "events" and out["rows"][0]["function"] == "futex" and rows["futex"]["self_value"] == 10
    text = sonde("stacks", *RANGE, "--type", "offcpu", store=mixed, check=True).stdout
    assert re.split(r"\s{2,}", text.splitlines()[0].strip()) == ["SELF", "TIME", "TOTAL", "TIME", "WAITS", "FUNCTION", "MODULE"]
    assert re.split(r"\s{2,}", text.splitlines()[1].strip()) == ["75.0 %", "4.5 s", "75.0 %", "4.5 s", "6", "read", "app"]


def test_memory_is_scaled_as_sampled_and_what_stands_is_the_last(mixed, sonde):
    out, rows = top(sonde, mixed, *RANGE, "--type", "alloc")
    assert rows["make"]["self_value"] == scaled(15360, 1024) and rows["make"]["self_n"] == scaled(15, 1024)
    assert rows["big"]["self_value"] == scaled(1 << 20, 1 << 20)
    out, rows = top(sonde, mixed, *RANGE, "--type", "inuse")
    assert rows["make"]["self_value"] == scaled(4096, 1024) and rows["make"]["self_n"] == scaled(4, 1024)
    out, rows = top(sonde, mixed, "--from", str(T0), "--to", str(T0 + 9), "--type", "inuse")
    assert set(rows) == {"main", "make"} and rows["make"]["self_value"] == scaled(10240, 1024)
    text = sonde("stacks", *RANGE, "--type", "inuse", "--unit", "objects", store=mixed, check=True).stdout
    assert "OBJECTS" in text.splitlines()[0] and "make" in text.splitlines()[1]


def test_every_form_says_the_same(mixed, sonde, tmp_path):
    for kind, unit in (("offcpu", "time"), ("offcpu", "events"), ("alloc", "bytes"), ("inuse", "objects"), ("runqueue", "time")):
        out, _ = top(sonde, mixed, *RANGE, "--type", kind, "--unit", unit)
        ask = [*RANGE, "--type", kind, "--unit", unit]
        for form in ("folded", "json", "html"):
            sonde("flame", *ask, "-o", tmp_path / f"x.{form}", store=mixed, check=True)
        folded = [line.rpartition(" ") for line in (tmp_path / "x.folded").read_text().splitlines()]
        assert sum(int(n) for _, _, n in folded) == out["value"]
        flame = json.loads((tmp_path / "x.json").read_text())
        assert (flame["type"], flame["unit"], flame["value"], flame["n"]) == (kind, out["unit"], out["value"], out["n"])
        assert sum(r["self_value"] for r in flame["rows"]) == out["value"]


def raw(path, *args):
    need("go")
    done = subprocess.run(["go", "tool", "pprof", *args, str(path)], capture_output=True, text=True,
                          env=dict(os.environ, PPROF_TMPDIR="/nonexistent"))
    assert done.returncode == 0, done.stderr
    return done.stdout


def samples_of(text):
    """[[values]], and the names of the sample types as go tool pprof reads them."""
    body = text.split("Samples:\n")[1].split("Locations\n")[0].splitlines()
    return body[0].split(), [[int(v) for v in m.group(1).split()] for m in (re.match(r"\s*([\d ]+): ", line) for line in body[1:])
                             if m]


def test_pprof_has_gos_own_types_for_memory(mixed, sonde, tmp_path):
    for kind in ("alloc", "inuse"):
        sonde("export", "pprof", *RANGE, "--type", kind, "-o", tmp_path / "x.pb.gz", store=mixed, check=True)
        text = raw(tmp_path / "x.pb.gz", "-raw")
        types, values = samples_of(text)
        assert [t.replace("[dflt]", "") for t in types] == ["alloc_objects/count", "alloc_space/bytes", "inuse_objects/count",
                                                            "inuse_space/bytes"]
        assert [t for t in types if "[dflt]" in t] == [f"{kind}_space/bytes[dflt]"]
        assert "PeriodType: space bytes" in text and f"Period: {RATE}" in text
        assert sorted(values) == [[scaled(1, 1 << 20), scaled(1 << 20, 1 << 20)] * 2,
                                  [scaled(15, 1024), scaled(15360, 1024), scaled(4, 1024), scaled(4096, 1024)]]
        assert "bytes:[1024]" in text and "bytes:[1048576]" in text


def test_pprof_of_waits_counts_and_delays(mixed, sonde, tmp_path):
    sonde("export", "pprof", *RANGE, "--type", "offcpu", "-o", tmp_path / "x.pb.gz", store=mixed, check=True)
    types, values = samples_of(raw(tmp_path / "x.pb.gz", "-raw"))
    assert types == ["events/count", "delay/nanoseconds[dflt]"]
    assert sorted(values) == [[6, 4_500_000_000], [10, 1_500_000_000]]
    top_line = raw(tmp_path / "x.pb.gz", "-top").splitlines()
    assert any(re.search(r"^\s+4\.50?s\s+75\.00%.* read$", line) for line in top_line), top_line


def test_a_type_that_is_not_there_says_what_is(mixed, sonde):
    done = sonde("stacks", *RANGE, "--type", "mutex", store=mixed)
    assert done.returncode == 4 and "no time that locks were waited for (mutex)" in done.stderr
    assert "there is cpu, offcpu, runqueue, alloc, inuse" in done.stderr
    done = sonde("flame", *RANGE, "--type", "inus", store=mixed)
    assert done.returncode == 2 and "known are cpu, offcpu, runqueue, alloc, inuse, mutex, block" in done.stderr
    done = sonde("stacks", *RANGE, "--type", "alloc", "--unit", "time", store=mixed)
    assert done.returncode == 2 and "it has objects and bytes" in done.stderr


def test_without_cpu_the_most_telling_type_is_taken_and_the_others_are_named(sonde, tmp_path):
    put(str(tmp_path / "one"), [run_of("offcpu"), WAITS[0]])
    assert top(sonde, str(tmp_path / "one"), *RANGE)[0]["type"] == "offcpu"
    put(str(tmp_path / "two"), [run_of("goheap"), *HEAP])
    done = sonde("stacks", *RANGE, store=str(tmp_path / "two"), check=True)
    assert "no CPU samples" in done.stderr and "this is --type inuse; there is also alloc" in done.stderr
    assert done.stdout == sonde("stacks", *RANGE, "--type", "inuse", store=str(tmp_path / "two"), check=True).stdout


def test_of_memory_the_newest_segment_that_tells_of_a_process_holds(sonde, tmp_path):
    """A capture over two segments: the first tells 8192 bytes, the second 4096, and one process is in the first only."""
    put(str(tmp_path / "s"), [run_of("goheap"), at(5, "inuse", 8, 8192, "make"), at(5, "inuse", 1, 100, "gone", pid=200)])
    first = segments(str(tmp_path / "s"))[0]
    os.rename(first, str(tmp_path / "first.db"))
    put(str(tmp_path / "s"), [run_of("goheap"), at(25, "inuse", 4, 4096, "make")])
    os.rename(str(tmp_path / "first.db"), os.path.join(str(tmp_path / "s"), "20200101T000000Z-0001.db"))
    assert len(segments(str(tmp_path / "s"))) == 2
    _, rows = top(sonde, str(tmp_path / "s"), *RANGE, "--type", "inuse")
    assert (rows["make"]["self_value"], rows["gone"]["self_value"]) == (4096, 100)


def test_sql_over_many_segments_joins_amounts(sonde, tmp_path):
    put(str(tmp_path / "s"), [run_of("offcpu"), *WAITS])
    os.rename(segments(str(tmp_path / "s"))[0], str(tmp_path / "first.db"))
    put(str(tmp_path / "s"), [run_of("offcpu"), *WAITS])
    os.rename(str(tmp_path / "first.db"), os.path.join(str(tmp_path / "s"), "20200101T000000Z-0001.db"))
    for copies in (0, 12):  # few are attached, many go through a virtual table
        for i in range(copies):
            path = os.path.join(str(tmp_path / "s"), f"201901{i + 1:02}T000000Z-0001.db")
            with open(segments(str(tmp_path / "s"))[-1], "rb") as src, open(path, "wb") as dst:
                dst.write(src.read())
        n = len(segments(str(tmp_path / "s")))
        out = sonde("sql", "--csv", "SELECT a.type, sum(a.n), sum(a.value), count(DISTINCT k.folded) FROM amounts a JOIN stacks k"
                    " ON k.id = a.stack_id GROUP BY 1 ORDER BY 1", store=str(tmp_path / "s"), check=True).stdout
        assert out.splitlines()[1:] == [f"offcpu,{16 * n},{6_000_000_000 * n},2", f"runqueue,{100 * n},{250_000 * n},1"]
        kinds = sonde("sql", "--csv", "SELECT name FROM kinds ORDER BY id", store=str(tmp_path / "s"), check=True).stdout
        assert kinds.split()[1:] == ["cpu", "offcpu", "runqueue", "alloc", "inuse", "mutex", "block", "standing", "goroutine", "threadcreate", "gocpu", "goalloc",
                                     "goinuse", "goblock", "gomutex", "wallclock", "exception", "pagefaults", "mem", "memwait", "probe", "probetime", "pages",
                                     "java-alloc", "java-lock", "java-park", "java-exception", "majorfaults"]
