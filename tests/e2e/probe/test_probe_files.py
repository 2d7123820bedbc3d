# SPDX-License-Identifier: Apache-2.0
"""Which files a probe is in: several versions of a library, a container's, one that is replaced, one whose notes lie."""
import contextlib
import json
import os
import random
import shutil
import subprocess
import sys

import pytest

from conftest import BIN, WORKLOADS, need, need_root, sql_all
from containers import fake_container

pytestmark = pytest.mark.long
PROGRAM = "sonde-probe"
VERSION = "int sink; __attribute__((noinline)) int answer(int n) { %s return n * %d; }"
CALLS = ("import ctypes, sys\nlib = ctypes.CDLL(sys.argv[1])\nprint('ready', flush=True)\ninput()\n"
         "print(sum(lib.answer(i) for i in range(int(sys.argv[2]))), flush=True)\ninput()")
NOTES = """
#define NOTE(name) __asm__ volatile("990: nop\\n.pushsection .note.stapsdt,\\"?\\",\\"note\\"\\n.balign 4\\n.4byte 992f-991f, 994f-993f, 3\\n" \\
    "991: .asciz \\"stapsdt\\"\\n992: .balign 4\\n993: .8byte 990b, 0, 0\\n.asciz \\"app\\"\\n.asciz \\"" name "\\"\\n.asciz \\"-4@%%edi\\"\\n994: .balign 4\\n.popsection\\n" :: "D"(n))
#include <stdio.h>
__attribute__((noinline)) void one(int n) { NOTE("one"); }
__attribute__((noinline)) void two(int n) { NOTE("two"); }
int main(void) { puts("ready"); fflush(stdout); getchar(); for (int i = 0; i < 33; i++) { one(i); two(-i); } puts("done"); fflush(stdout); getchar(); return 0; }
"""

TEXTS = "#include <string.h>\nint sink; __attribute__((noinline)) int answer(char *s) { int n = strlen(s); memset(s, 'z', n); sink++; return n; }"
SAYS = ("import ctypes, sys\nlib = ctypes.CDLL(sys.argv[1])\nprint('ready', flush=True)\ninput()\n"
        "print(sum(lib.answer(ctypes.create_string_buffer(bytes(97 + i % 23 for i in range(n)))) for n in (0, 1, 254, 255, 256, 700)), flush=True)\ninput()")


@contextlib.contextmanager
def running(*command):
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as p:
        try:
            assert p.stdout.readline() == "ready\n"
            yield p
        finally:
            p.kill()


def line(p):
    p.stdin.write("\n")
    p.stdin.flush()
    return p.stdout.readline()


def hits(store, probe):
    return sql_all(store, "SELECT coalesce(sum(hits), 0) AS n FROM probe_stats WHERE probe = ?", (probe,))[0]["n"]


def build(source, path, *how):
    need("gcc")
    subprocess.run(["gcc", "-O2", "-w", "-x", "c", "-", "-o", path, *how], input=source, text=True, check=True, timeout=120)


def test_one_probe_is_in_three_versions_of_a_library_at_once(capture, store):
    paths = []
    for i in range(3):
        os.makedirs(f"{store}.v{i}")
        paths.append(f"{store}.v{i}/libversions-of-a-test.so.{i}")
        build(VERSION % ("sink++;" * i, i + 2), paths[-1], "-shared", "-fPIC")
    with contextlib.ExitStack() as all_:
        programs = [all_.enter_context(running(sys.executable, "-c", CALLS, path, str(10 + i))) for i, path in enumerate(paths)]
        cap = capture("--probe", "answer=func:libversions-of-a-test.so*:answer%return(n=int32 $1, ret=int32) by ret", program=PROGRAM)
        said = [int(line(p)) for p in programs]
        cap.stop()
    assert said == [sum(n * (i + 2) for n in range(10 + i)) for i in range(3)]
    rows = sql_all(store, "SELECT pid, args FROM probe_events WHERE probe = 'answer' ORDER BY at_ns")
    for i, p in enumerate(programs):
        assert [json.loads(r["args"]) for r in rows if r["pid"] == p.pid] == [{"n": n, "ret": n * (i + 2)} for n in range(10 + i)]
    assert sql_all(store, "SELECT sum(hits) AS n FROM probes WHERE probe = 'answer'")[0]["n"] == 33 == hits(store, "answer")


def test_a_file_that_is_replaced_while_a_probe_is_in_it_stays_the_one_that_was_asked_for(capture, store):
    path = store + ".app"
    shutil.copy(os.path.join(WORKLOADS, "probed"), path)
    with running(path) as old:
        cap = capture("--probe", f"half=func:{path}:half%return(n=int32 $1, ret=int32)", program=PROGRAM)
        with open(path + ".new", "wb") as f, open(os.path.join(WORKLOADS, "probed"), "rb") as was:
            f.write(was.read() + bytes(range(256)) * 64)
        os.chmod(path + ".new", 0o755)
        os.rename(path + ".new", path)
        with running(path) as new:
            assert json.loads(line(new))
            assert json.loads(line(old))
            cap.stop()
            for p in (new, old):
                p.communicate("\n", timeout=60)
                assert p.returncode == 0
    rows = sql_all(store, "SELECT pid, count(*) AS n FROM probe_events WHERE probe = 'half' GROUP BY pid")
    assert {r["pid"]: r["n"] for r in rows} == {old.pid: 100}


def test_a_library_that_was_replaced_and_is_still_in_use_is_found(capture, store):
    path = f"{store}.gone/libgone-of-a-test.so.1"
    os.makedirs(os.path.dirname(path))
    build(VERSION % ("", 7), path, "-shared", "-fPIC")
    with running(sys.executable, "-c", CALLS, path, "12") as p:
        os.unlink(path)
        cap = capture("--probe", "answer=func:libgone-of-a-test.so.1:answer%return(n=int32 $1, ret=int32)", program=PROGRAM)
        assert int(line(p)) == 7 * sum(range(12))
        cap.stop()
    assert hits(store, "answer") == 12


def test_a_text_that_a_function_was_given_is_kept_to_255_bytes(capture, store):
    """As it was at the begin: the function overwrites it."""
    path = store + ".texts.so"
    build(TEXTS, path, "-shared", "-fPIC")
    with running(sys.executable, "-c", SAYS, path) as p:
        cap = capture("--probe", f"given=func:{path}:answer%return(s=str $1, ret=int32)", program=PROGRAM)
        assert int(line(p)) == 1466
        cap.stop()
    given = [json.loads(r["args"]) for r in sql_all(store, "SELECT args FROM probe_events ORDER BY at_ns")]
    whole = "".join(chr(97 + i % 23) for i in range(700))
    assert [(e["s"], e["ret"]) for e in given] == [(whole[:min(n, 255)], n) for n in (0, 1, 254, 255, 256, 700)]


def test_notes_that_lie_cost_their_own_probes_only(capture, store):
    need("objcopy")
    path = store + ".notes"
    build(NOTES, path)
    subprocess.run(["objcopy", "--dump-section", ".note.stapsdt=" + store + ".section", path], check=True)
    with open(store + ".section", "rb") as f:
        notes = f.read()
    with running(path) as p:
        cap = capture("--probe", f"one=usdt:{path}:one by arg1", "--probe", f"two=usdt:{path}:app:two rate 0", program=PROGRAM)
        assert line(p) == "done\n"
        cap.stop()
    assert hits(store, "one") == hits(store, "two") == 33 and len(sql_all(store, "SELECT DISTINCT key FROM probe_stats WHERE probe = 'one'")) == 33
    draw = random.Random(52)
    for _ in range(12):  # the fuzzer does the rest
        lie = bytearray(notes)
        for _ in range(6):
            lie[draw.randrange(len(lie))] = draw.randrange(256)
        with open(store + ".lie", "wb") as f:
            f.write(lie)
        subprocess.run(["objcopy", "--update-section", ".note.stapsdt=" + store + ".lie", path, path + ".lie"], check=True)
        said = subprocess.run([os.path.join(BIN, "sonde-index"), path + ".lie", "--places", ""], capture_output=True, timeout=60, check=False)
        assert said.returncode == 0 and b" main\n" in said.stdout  # its functions are there


def test_a_file_of_a_container_by_the_containers_name_and_the_path_inside(capture, store):
    path = os.path.realpath(os.path.join(WORKLOADS, "probed"))
    with fake_container() as (identity, prefix), running(*prefix, path) as p, running(path) as other:
        cap = capture("--container", identity[:12], "--probe", f"half=func:{identity[:12]}{path}:half(n=int32 $1)", program=PROGRAM)
        assert json.loads(line(p)) and json.loads(line(other))
        cap.stop()
    assert hits(store, "half") == 100  # those of the other one, which has the same file, are not among them
    assert sql_all(store, "SELECT DISTINCT container FROM probe_events")[0]["container"].startswith(identity[:12])


def test_what_no_file_is_called_is_refused(store):
    need_root()
    for spec, why in (("func:no-such-program-anywhere:main", "no process has mapped a file"), ("malloc:no-such-container/lib/libc.so.6", "no-such-container")):
        said = subprocess.run([os.path.join(BIN, PROGRAM), "--store", store, "--duration", "1s", "--probe", spec], capture_output=True, text=True, timeout=60, check=False)
        assert said.returncode == 2 and why in said.stderr, said.stderr
