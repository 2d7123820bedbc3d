# SPDX-License-Identifier: Apache-2.0
"""sonde heap on a store whose contents are known: what it prints is compared with text that was computed by hand."""
import json
import math
import os
import subprocess

import pytest

from conftest import BUILD, need

AT = 1795144200
RATE = 4096
APP = {"pid": 40, "comm": "app", "tid": 40, "thread": "app"}
LEAK, CACHE, LATE = (["main", [name, "app.go", line]] for name, line in (("leak", 12), ("cache", 30), ("late", 44)))
# leak: 64 bytes each, 100 more every 10 s; cache: 8192 bytes each, as many as ever; late: at the end alone
STORE = [
    {"run": "goheap", "from": AT, "to": AT + 80, "bucket_s": 10},
    {"rate": RATE, "at": AT, **APP},
    *({**APP, "kind": kind, "label": 64, "at": AT + 10 * i, "n": n, "value": 64 * n, "stack": LEAK}
      for i in range(8) for kind, n in (("alloc", 100), ("inuse", 100 * (i + 1)))),
    {**APP, "kind": "alloc", "label": 8192, "at": AT + 10, "n": 500, "value": 500 * 8192, "stack": CACHE},
    *({**APP, "kind": "inuse", "label": 8192, "at": AT + 10 * i, "n": 90, "value": 90 * 8192, "stack": CACHE} for i in range(8)),
    {**APP, "kind": "inuse", "label": 65536, "at": AT + 70, "n": 2, "value": 131072, "stack": LATE},
]
RANGE = ["--from", str(AT), "--to", str(AT + 80)]


def scaled(n, size):
    """As go tool pprof: what a sample of this size stands for."""
    return n / (1 - math.exp(-size / RATE))


@pytest.fixture(scope="module")
def planted(tmp_path_factory):
    path = str(tmp_path_factory.mktemp("heap") / "store")
    need("build/tests/putstore", os.path.join(BUILD, "tests", "putstore"))
    subprocess.run([os.path.join(BUILD, "tests", "putstore"), path], input="\n".join(map(json.dumps, STORE)), text=True, check=True)
    return path


GOLDEN = {
    (): """\
ALLOCATED    IN USE  OBJECTS  WHO  FUNCTION  LINE
 3.15 MiB  3.15 MiB    51601  app  leak      app.go:12
 4.52 MiB   833 KiB      104  app  cache     app.go:30
      0 B   128 KiB        2  app  late      app.go:44
""",
    ("--alloc",): """\
ALLOCATED    IN USE  OBJECTS  WHO  FUNCTION  LINE
 4.52 MiB   833 KiB      104  app  cache     app.go:30
 3.15 MiB  3.15 MiB    51601  app  leak      app.go:12
""",
    ("--growth",): """\
   GROWN      GROWTH    IN USE  OBJECTS  WHO  FUNCTION  LINE
3.15 MiB  +142 MiB/h  3.15 MiB    51601  app  leak      app.go:12
""",
    ("-n", "1"): """\
ALLOCATED    IN USE  OBJECTS  WHO  FUNCTION  LINE
 3.15 MiB  3.15 MiB    51601  app  leak      app.go:12
""",
}


@pytest.mark.parametrize("args", GOLDEN, ids=lambda a: " ".join(a) or "plain")
def test_what_it_prints(sonde, planted, args):
    assert sonde("heap", *RANGE, *args, store=planted, check=True).stdout == GOLDEN[args]


def row(function, line, inuse, alloc, size, growth=None, grown=None):
    """Of (sampled objects, size) as they were put in."""
    amounts = {f"{name}_{unit}": round(scaled(n, size) * by) for name, n in (("inuse", inuse), ("alloc", alloc))
               for unit, by in (("bytes", size), ("objects", 1))}
    return {"who": "app", "use": None, "function": function, "module": "app", "file": "app.go", "line": line, **amounts, "growth_bytes_per_s": growth,
            "grown_bytes": grown}


def test_its_json(sonde, planted):
    told = json.loads(sonde("heap", *RANGE, "--json", store=planted, check=True).stdout)
    assert (told["schema"], told["from_ns"], told["to_ns"], told["warnings"]) == (
        "sonde.heap/1", AT * 10**9, (AT + 80) * 10**9, [])
    assert told["rows"] == [row("leak", 12, 800, 800, 64), row("cache", 30, 90, 500, 8192), row("late", 44, 2, 0, 65536)]
    told = json.loads(sonde("heap", *RANGE, "--growth", "--json", store=planted, check=True).stdout)
    (only,) = told["rows"]
    assert abs(only["growth_bytes_per_s"] / (scaled(100, 64) * 64 / 10) - 1) < 1e-4  # of whole bytes
    assert only == row("leak", 12, 800, 800, 64, only["growth_bytes_per_s"], only["inuse_bytes"])


@pytest.mark.parametrize("args,code,says", [
    (["--growth", "--alloc"], 2, "--growth and --alloc cannot be combined"),
    (["--last", "1h", "nobody"], 2, "nobody"),
    (["--from", str(AT + 5000), "--to", str(AT + 6000)], 4, ""),
    (["--growth", "--from", str(AT), "--to", str(AT + 30)], 4, "changed 2 times in"),
    (["--growth", "--from", str(AT + 5), "--to", str(AT + 15)], 4, "too little to tell growth by"),
])
def test_what_it_refuses(sonde, planted, args, code, says):
    done = sonde("heap", *args, store=planted)
    assert done.returncode == code and says in done.stderr and done.stdout == "", done.stderr


MIB = 1 << 20
JAVA = {"pid": 50, "comm": "java", "tid": 50, "thread": "java", "lang": "java", "start": AT - 100}


def first_touches(grows, represents):
    """Of a Java program: what one line has each 10 s, MiB; bytes that its largest sample represents."""
    yield {"run": "mem", "from": AT, "to": AT + 80, "bucket_s": 10}
    for i in range(8):
        yield {**JAVA, "kind": "mem", "at": AT + 10 * i, "n": 256 * grows * i, "value": grows * MIB * i, "max": represents, "stack": ["main", ["held", "", 21]]}


def put(tmp_path, lines):
    need("build/tests/putstore", os.path.join(BUILD, "tests", "putstore"))
    path = str(tmp_path / "store")
    subprocess.run([os.path.join(BUILD, "tests", "putstore"), path], input="\n".join(map(json.dumps, lines)), text=True, check=True)
    return path


@pytest.mark.parametrize("grows,represents,named", [(1, 0, True), (1, MIB // 2, True), (1, MIB, False), (10, 7 * MIB, True), (10, 8 * MIB, False)])
def test_a_line_grows_by_more_than_chance(sonde, tmp_path, grows, represents, named):
    """Nine samples are three times their error: it grew by seven times `grows`."""
    store = put(tmp_path, first_touches(grows, represents))
    done = sonde("heap", "--growth", *RANGE, "--json", store=store, check=True)
    assert [(r["function"], r["grown_bytes"]) for r in json.loads(done.stdout)["rows"]] == ([("held", 7 * grows * MIB)] if named else [])


def test_of_a_java_program_it_says_where_the_lines_that_allocate_are(sonde, tmp_path):
    store = put(tmp_path, first_touches(10, 0))
    for args in ([], ["--growth"]):
        said = sonde("heap", *RANGE, *args, store=store, check=True).stderr
        assert "java (pid 50) is a Java program" in said and "record --families java -p 50 -d 1m" in said and "heap -p 50 --alloc" in said, said
    assert json.loads(sonde("heap", *RANGE, "--json", store=store, check=True).stdout)["java"] == [50]
    assert sonde("heap", *RANGE, "-q", store=store, check=True).stderr == ""
    os.mkdir(tmp_path / "known")
    both = put(tmp_path / "known", [*first_touches(10, 0), {"run": "java", "from": AT, "to": AT + 80, "bucket_s": 10},
                                    {**JAVA, "kind": "java-alloc", "at": AT + 20, "n": 3, "value": 30 * MIB, "stack": ["main", ["held", "", 21], "new byte[]"]}])
    known = sonde("heap", *RANGE, store=both, check=True)
    assert "Java program" not in known.stderr and json.loads(sonde("heap", *RANGE, "--json", store=both, check=True).stdout)["java"] == []
