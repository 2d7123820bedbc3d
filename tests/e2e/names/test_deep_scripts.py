# SPDX-License-Identifier: Apache-2.0
"""Deep recursions of scripts in recorded stacks: whole and right to 400 frames, and what is deeper ends with its reason."""
import glob
import json
import os
import shutil
import signal
import sqlite3
import subprocess
import time

import pytest

from conftest import need, need_root
from scripting import NODES, begun, node_of, stacks
from test_pstack_java import TEMURIN
from test_python_frames import DEBIAN, PYENV

# deep(n) calls itself in line 2, and spin() in line 3
PROGRAMS = {
    "python": """import sys, time
def deep(n):
    if n: return deep(n - 1)
    return spin()
def spin():
    until = time.time() + 300
    while time.time() < until: pass
sys.setrecursionlimit(100000)
sys.stdout.write("x"); sys.stdout.flush(); sys.stdin.readline()
deep(int(sys.argv[1]))
""",
    "php": """<?php
function deep($n) {
    if ($n) return deep($n - 1);
    return spin();
}
function spin() { for (;;) microtime(true); }
echo "x"; fgets(STDIN);
deep((int)$argv[1]);
""",
    "ruby": """def deep(n)
  return deep(n - 1) if n > 0
  spin
end
def spin; loop { Process.clock_gettime(0) }; end
$stdout.write("x"); $stdout.flush; $stdin.gets
deep(ARGV[0].to_i)
""",
    "javascript": """function deep(n) {
  if (n) return deep(n - 1);
  return spin();
}
function spin() { for (const until = Date.now() + 300000; Date.now() < until;); }
require("fs").writeSync(1, "x"); require("fs").readSync(0, Buffer.alloc(1));
deep(+process.argv[2]);
""",
    "java": """public class Deep {
    static long deep(int n) {
        if (n > 0) return deep(n - 1);
        return spin();
    }
    static long spin() { long until = System.nanoTime() + 300_000_000_000L, i = 0; while (System.nanoTime() < until) i++; return i; }
    public static void main(String[] a) throws Exception { System.out.print("x"); System.out.flush(); System.in.read(); deep(Integer.parseInt(a[0])); }
}
"""}
SECONDS = 0.4
CUT = {"deeper than the limit", "the copy of the stack was too short"}
NAMES = {"python": ("deep.py", 3, 4), "php": ("deep.php", 3, 4), "ruby": ("deep.rb", 2, 3), "javascript": ("deep.js", 2, 3), "java": ("Deep.java", 3, 4)}


def program(runtime, interpreter, folder, options):
    path = os.path.join(folder, NAMES[runtime][0])
    with open(path, "w", encoding="utf-8") as f:
        f.write(PROGRAMS[runtime])
    if runtime != "java":
        return [interpreter, *options, path]
    subprocess.run([os.path.join(os.path.dirname(interpreter), "javac"), "-d", folder, path], check=True)
    return [interpreter, *options, "-cp", folder, "Deep"]


def endings(store):
    """{how user stacks ended: samples}"""
    out = {}
    for path in glob.glob(os.path.join(store, "*.db")):
        db = sqlite3.connect(f"file:{path}?mode=ro", uri=True)
        for name, n in db.execute("SELECT reason, samples FROM unwinding"):
            out[name] = out.get(name, 0) + n
        db.close()
    return out


def cpu_seconds(pid):
    with open(f"/proc/{pid}/stat", encoding="utf-8") as f:
        fields = f.read().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def record(sonde, store, command, depth):
    """[(script frames innermost first, is its root native, samples)] of SECONDS that the program had a CPU."""
    child = subprocess.Popen([*command, str(depth)], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    try:
        child.stdout.read(1)
        sonde("pstack", "-p", child.pid, store=store, check=True)  # makes the indexes, as a host that records always has them
        capture = subprocess.Popen(["sonde", "record", "--store", store, "--families", "cpu", "--freq", "499", "--duration", "4m",
                                    "--pid", str(child.pid)], stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        begun(capture)
        child.stdin.write(b"\n")
        child.stdin.close()
        until = cpu_seconds(child.pid) + SECONDS
        while cpu_seconds(child.pid) < until:
            time.sleep(0.02)
        capture.send_signal(signal.SIGINT)
        assert capture.wait(60) in (0, 130), capture.stdout.read()
        capture.stdout.close()
    finally:
        child.kill()
        child.wait(20)
        child.stdout.close()
    return stacks(store, "cpu")


def in_spin(frames):
    return any((f[1] or "") in ("spin", "Deep.spin") for f in frames)


def judge(sonde, store, scratch, runtime, interpreter, options=()):
    command = program(runtime, interpreter, scratch, options)
    _, calls, last = NAMES[runtime]
    name = "Deep.deep" if runtime == "java" else "deep"
    samples = 0
    for frames, n in record(sonde, store, command, 395):
        script = [f for f in reversed(frames) if f[0] == runtime]
        deep = [f for f in script if f[1] == name]
        if not in_spin(frames):
            continue
        assert all((f[2] or "").endswith(NAMES[runtime][0]) and f[3] == (last if i == 0 else calls) for i, f in enumerate(deep)), deep[:3]
        assert len(deep) == 396 and frames[0][0] != runtime, (len(deep), endings(store))
        samples += n
    return command, name, samples


def live(*case):
    return pytest.param(*case, marks=pytest.mark.live)


CASES = [("python", DEBIAN, ()), live("javascript", shutil.which("node"), ("--no-opt",)), live("php", shutil.which("php"), ("-n",)),
         live("ruby", shutil.which("ruby"), ("--disable-gems",)), live("java", shutil.which("java"), ("-Xint",)), live("java", shutil.which("java"), ())]


@pytest.mark.parametrize("runtime,interpreter,options", CASES)
def test_a_recursion_of_400_is_whole_and_a_deeper_one_ends_with_its_reason(sonde, store, scratch, runtime, interpreter, options):
    need_root()
    need(runtime, interpreter or "")
    command, name, samples = judge(sonde, store, scratch, runtime, interpreter, options)
    assert samples > 20
    shutil.rmtree(store)
    found = [(sum(f[1] == name for f in frames), frames[0], n, in_spin(frames)) for frames, n in record(sonde, store, command, 3000)]
    in_it = sum(n for _, _, n, spins in found if spins)
    assert in_it > 20 and all(deep > 400 for deep, _, _, spins in found if spins), found
    told, others = endings(store), sum(n for _, _, n, spins in found if not spins)
    assert sum(told.get(reason, 0) for reason in CUT) >= in_it and told.get("complete", 0) <= others, told


@pytest.mark.live
@pytest.mark.parametrize("interpreter", PYENV or [None])
def test_a_recursion_in_each_python(sonde, store, scratch, interpreter):
    if not interpreter:
        pytest.skip("missing: interpreters of pyenv")
    test_a_recursion_of_400_is_whole_and_a_deeper_one_ends_with_its_reason(sonde, store, scratch, "python", interpreter, ())


@pytest.mark.live
@pytest.mark.parametrize("version", NODES)
def test_a_recursion_in_each_node(sonde, store, scratch, version):
    judge(sonde, store, scratch, "javascript", node_of(version), ("--no-opt",))


@pytest.mark.live
@pytest.mark.parametrize("options", [("-Xint",), ("-XX:TieredStopAtLevel=1",), ()])
def test_a_recursion_in_the_newest_java(sonde, store, scratch, options):
    need("java 25", TEMURIN)
    test_a_recursion_of_400_is_whole_and_a_deeper_one_ends_with_its_reason(sonde, store, scratch, "java", TEMURIN, options)
