# SPDX-License-Identifier: Apache-2.0
"""Presets about runtimes and libraries: each counts what the program knows that it did."""
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time

import pytest

import servers
from conftest import WORKLOADS, need, need_root, sql_all
from scripting import compiled
from test_pstack_java import jdk_of_sid

pytestmark = pytest.mark.long
PROGRAM = "sonde-probe"
PYTHON = "import gc, sys\ngc.disable()\nprint('ready', flush=True)\ninput()\nfor i in range(12): gc.collect(i % 3)\nimport colorsys\nprint('done', flush=True)\ninput()"
RUBY = "$stdout.sync = true; GC.disable; puts 'ready'; gets; 7.times { GC.start }; puts 'done'; gets"
NODE = "console.log('ready'); process.stdin.on('data', () => { for (let i = 0; i < 9; i++) gc(); console.log('done'); process.stdin.pause(); })"
PHP = """function asked($n) { return $n + 1; }
fwrite(STDOUT, "ready\\n"); fgets(STDIN);
for ($i = 0, $s = 0; $i < 40; $i++) $s = asked($s);
for ($i = 0; $i < 9; $i++) { try { throw new LogicException("n$i"); } catch (LogicException $e) {} }
fwrite(STDOUT, "done\\n"); fgets(STDIN);"""
CUDA = "int cuLaunchKernel(void *f, unsigned x, unsigned y, unsigned z, unsigned bx) { return f != 0 && x + y + z + bx == 0; }"
LAUNCHES = ("import ctypes, sys\ncu = ctypes.CDLL(sys.argv[1])\nprint('ready', flush=True)\ninput()\n"
            "for i in range(24): cu.cuLaunchKernel(None, 1 + i % 2, 1, 1, 256)\nprint('done', flush=True)\ninput()")
MALLOCS = ("import ctypes\nc = ctypes.CDLL(None)\nc.malloc.restype = ctypes.c_void_p\nprint('ready', flush=True)\ninput()\n"
           "for i in range(500): c.malloc(ctypes.c_size_t(9 << 20))\nprint('done', flush=True)\ninput()")
LOOKUPS = ("import socket\nprint('ready', flush=True)\ninput()\nfor i in range(5): socket.getaddrinfo('localhost', 80)\n"
           "try: socket.getaddrinfo('no such host', 80)\nexcept OSError: pass\nprint('done', flush=True)\ninput()")


def recorded(capture, command, *presets):
    """Records the presets in a program that says ready, works after a line, says done."""
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as p:
        try:
            assert p.stdout.readline() == "ready\n"
            cap = capture("--pid", p.pid, *(w for spec in presets for w in ("--probe", spec)), program=PROGRAM)
            p.stdin.write("\n")
            p.stdin.flush()
            said = p.stdout.readline()
            cap.stop()
            p.communicate("\n", timeout=60)
        finally:
            p.kill()
    assert p.returncode == 0  # nothing happened to it
    return said


def keys(store, probe):
    return {r["key"]: r["n"] for r in sql_all(store, "SELECT key, sum(hits) AS n FROM probe_stats WHERE probe = ? GROUP BY key", (probe,))}


def events(store, probe):
    return [{**json.loads(r["args"]), "ns": r["ns"]} for r in sql_all(store, "SELECT args, ns FROM probe_events WHERE probe = ? ORDER BY at_ns", (probe,))]


@pytest.mark.skipif(not os.path.exists("/usr/bin/python3.11"), reason="missing: Debian's python3.11")
def test_cpythons_collections_and_imports(capture, store):
    recorded(capture, ["/usr/bin/python3.11", "-c", PYTHON], "pygc", "pyimports", "one=pygc:/usr/bin/python3.11 generation==2")
    assert keys(store, "pygc") == {"0": 4, "1": 4, "2": 4} and keys(store, "one") == {"2": 4}
    assert keys(store, "pyimports") == {"colorsys": 1} and all(e["ns"] > 0 for e in events(store, "pygc"))


def test_rubys_collections(capture, store):
    need("ruby")
    recorded(capture, ["ruby", "-e", RUBY], "rubygc", "rubysweep")
    assert keys(store, "rubygc") == {"": 7} and keys(store, "rubysweep")[""] >= 7


def test_phps_functions_and_exceptions(capture, store):
    """Debian's PHP fires its probes when this is in its environment."""
    need("php8.2")
    recorded(capture, ["env", "USE_ZEND_DTRACE=1", "php8.2", "-d", "opcache.enable_cli=0", "-r", PHP],
             "calls=usdt:/usr/bin/php8.2:function__entry(name=str $1, file=str $2, line=int32 $3) by name",
             "thrown=usdt:/usr/bin/php8.2:exception__thrown(class=str $1) by class")
    assert keys(store, "calls")["asked"] == 40 and keys(store, "thrown")["LogicException"] == 9


def test_nodes_collections(capture, store):
    need("node")
    recorded(capture, [os.path.realpath(shutil.which("node")), "--expose-gc", "-e", NODE], "nodegc")
    assert keys(store, "nodegc")[""] >= 9  # those that it began itself, too


@pytest.mark.parametrize("version", ["17", "21", "25"])
def test_javas_collections(capture, store, version):
    """Debian's own, and those of its newest release in their own root."""
    need("java"), need("javac"), need_root()
    command = ["java"] if version == "17" else jdk_of_sid(version, "JavaCollects")
    classes = compiled("JavaCollects", 8) if version == "17" else "/classes"
    recorded(capture, [*command, "-XX:+UseSerialGC", "-cp", classes, "JavaCollects"], "javagc")
    assert keys(store, "javagc").get("true", 0) + keys(store, "javagc").get("false", 0) == 5


def test_gos_collections_pauses_and_channels(capture, store):
    path = os.path.join(WORKLOADS, "probed-go")
    if not os.path.exists(path):
        pytest.skip("missing: workload probed-go (was its compiler there?)")
    said = recorded(capture, [path, "collects"], f"gogc:{path}", f"gopause:{path}", f"gorecv:{path}", f"gosend:{path}", f"gosema:{path}")
    did = json.loads(said)
    assert keys(store, "gogc")[""] == did["collections"] and keys(store, "gopause")[""] >= 2 * did["collections"]
    assert keys(store, "gorecv")[""] >= did["messages"] <= keys(store, "gosend")[""]
    assert keys(store, "gosema")[""] >= did["waits"]


def test_libraries_of_c(capture, store):
    recorded(capture, [sys.executable, "-c", MALLOCS], "malloc")
    assert sql_all(store, "SELECT sum(slot_23) AS n, sum(sum) AS bytes FROM probe_stats WHERE probe = 'malloc'")[0]["n"] == 500


def test_lookups_of_hosts(capture, store):
    recorded(capture, [sys.executable, "-c", LOOKUPS], "getaddrinfo")
    assert keys(store, "getaddrinfo") == {"localhost": 5, "no such host": 1}
    assert [e["ret"] == 0 for e in events(store, "getaddrinfo")] == [True] * 5 + [False]


def test_launches_of_a_library_that_stands_in_for_cuda(capture, store):
    need("gcc")
    library = os.path.join(os.path.dirname(store), "libcuda.so.1")
    subprocess.run(["gcc", "-O2", "-shared", "-fPIC", "-x", "c", "-", "-o", library], input=CUDA, text=True, check=True, timeout=120)
    recorded(capture, [sys.executable, "-c", LAUNCHES, library], "cudalaunch")
    assert keys(store, "cudalaunch") == {"1": 12, "2": 12} and {e["blocks"] for e in events(store, "cudalaunch")} == {256}


def test_lines_of_a_shell(capture, store):
    need("bash")
    tty = ("import os, pty, sys\npid, fd = pty.fork()\nif not pid: os.execv('/bin/bash', ['bash', '--norc', '--noprofile', '-i'])\n"
           "os.write(fd, b'echo begun\\n')\nseen = b''\n"
           "while seen.count(b'begun') < 2: seen += os.read(fd, 4096)\nprint('ready', flush=True)\ninput()\n"
           "os.write(fd, b'echo so much\\nexit\\n')\n"
           "try:\n while os.read(fd, 4096): pass\nexcept OSError: pass\nos.waitpid(pid, 0)\nprint('done', flush=True)\ninput()")
    with subprocess.Popen([sys.executable, "-c", tty], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as p:
        assert p.stdout.readline() == "ready\n"
        cap = capture("--probe", "readline", program=PROGRAM)
        p.stdin.write("\n")
        p.stdin.flush()
        assert p.stdout.readline() == "done\n"
        cap.stop()
        p.communicate("\n", timeout=60)
    assert [e["ret"] for e in events(store, "readline")][-2:] in (["echo so much", "exit"], ["exit"])  # it reads the first one before


def test_interrupts_have_their_time(capture, store):
    cap = capture("--probe", "softirqtime", "--probe", "softirq", program=PROGRAM)
    subprocess.run([sys.executable, "-c", "import time\nfor i in range(50): time.sleep(.01)"], check=True)
    cap.stop()
    timed, counted = keys(store, "softirqtime"), keys(store, "softirq")
    assert sum(timed.values()) > 0 and set(timed) <= set(map(str, range(10))) and all(e["ns"] > 0 for e in events(store, "softirqtime"))
    assert set(timed) & set(counted)


def test_queries_locks_and_checkpoints_of_postgresql(capture, store):
    need_root()
    folder = tempfile.mkdtemp(prefix="sonde-probe-pg-")
    try:
        r = servers.postgres(folder, load=False)
    except servers.Missing as e:
        pytest.skip(f"missing: {e}")
    try:
        def sql(*texts):
            return subprocess.Popen(["psql", *r.at[:-1], "-qAt", "-d", "postgres", *(w for t in texts for w in ("-c", t))], stdout=subprocess.PIPE, text=True)
        sql("CREATE TABLE held(n int)").communicate(timeout=60)
        cap = capture(*(w for spec in ("pgquery", "pglock", "pgcheckpoint") for w in ("--probe", spec)), program=PROGRAM)
        for i in range(9):
            assert sql(f"SELECT {i} + 100").communicate(timeout=60)[0] == f"{i + 100}\n"
        holder = sql("BEGIN; LOCK TABLE held; SELECT pg_sleep(1.5); COMMIT")
        time.sleep(0.5)
        waiter = sql("INSERT INTO held VALUES (1)")
        assert waiter.communicate(timeout=60) and holder.communicate(timeout=60)
        sql("CHECKPOINT").communicate(timeout=60)
        cap.stop()
    finally:
        r.stop()
        shutil.rmtree(folder, ignore_errors=True)
    said = [e["query"] for e in events(store, "pgquery")]
    assert [q for q in said if q.endswith("+ 100")] == [f"SELECT {i} + 100" for i in range(9)]
    assert len(events(store, "pglock")) == 1 and events(store, "pglock")[0]["ns"] > 200_000_000
    assert len(events(store, "pgcheckpoint")) >= 1
