# SPDX-License-Identifier: Apache-2.0
"""Names of code without a file, as runtimes write them for perf: perf maps and jitdumps, of a program that knows its shares (tests/workloads/jit.c) and
of runtimes that nobody here wrote. Where a walker of script frames knows the code, it is the one that is believed."""
import json
import os
import subprocess

import pytest

from conftest import WORKLOADS, need, need_root
from scripting import stacks
from test_pstack_php import JIT, PHP

MOVETEXT = os.path.join(WORKLOADS, "text", "movetext")
PYTHON = os.path.expanduser("~/.pyenv/versions/3.12.1/bin/python3.12")


def recorded(sonde, store, command, cwd=None):
    """The stacks of a program that says a line when its code is hot, and goes on for long; and what doctor says of its code."""
    child = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd=cwd)
    try:
        assert child.stdout.readline()
        doctor = json.loads(sonde("doctor", "--pid", child.pid, "--json", store=store, check=True).stdout)["rows"]
        sonde("record", "--freq", "499", "--duration", "2s", "--pid", child.pid, store=store, check=True)
    finally:
        child.kill()
        child.wait(20)
        child.stdin.close()
        child.stdout.close()
        for path in (f"/tmp/perf-{child.pid}.map", f"/tmp/jit-{child.pid}.dump"):
            if os.path.exists(path):
                os.unlink(path)
    return stacks(store, "cpu"), [r["text"] for r in doctor if r["name"] == "[jit]"]


def test_code_that_has_moved_has_the_names_and_lines_of_its_jitdump(sonde, store):
    need_root()
    found, doctor = recorded(sonde, store, [f"{WORKLOADS}/jit", "60", "dump"])
    assert [text.rsplit("; ", 1)[1] for text in doctor] == ["3 names from its jitdump"]
    leaves = [tuple(frames[-1]) for frames, _ in found if [f[1] for f in frames[-3:-1]] == ["main", "jit_loop"]]
    assert {leaf[1:] for leaf in leaves if leaf[1].startswith("jit_hot")} == {("jit_hot(Order, int)", "", 0)}
    warm = {leaf[1:] for leaf in leaves if leaf[1].startswith("jit_warm")}
    assert ("jit_warm", "warm.src", 8) in warm <= {("jit_warm", "warm.src", 7), ("jit_warm", "warm.src", 8)}


REGEXP = """
function runs(n) {
  return /(a+)+b|(c+)+d/.test(n ? 'aaaaaaaaaaaaaaaaaaac' : 'aaaaaaaaab');
}
"""
# (loop (local.set 1 (i32.add (i32.mul (local.get 1) (i32.const 3)) (local.get 0))) (br_if 0 (local.tee 0 (i32.sub (local.get 0) (i32.const 1)))))
WASM = """
const bytes = Buffer.from('0061736d0100000001060160017f017f03020100070801047370696e00000a1e011c01017f0340200141036c20006a2101200041016b22000d00' +
  '0b20010b000e046e616d6501070100047370696e', 'hex');
const { spin } = new WebAssembly.Instance(new WebAssembly.Module(bytes)).exports;
function runs(n) {
  return spin(n + 1);
}
for (let i = 0; i < 500; i++) runs(300000);
// V8 writes its jitdump by 2 MB: behind what was compiled for this, as much again
for (let i = 0; i < 8000; i++) new Function('x', `return x + ${i}`)(i);
"""
LOOP = """
for (let i = 0; i < 100; i++) runs(0);
console.log(1);
for (;;) runs(300000);
"""


@pytest.mark.parametrize("option,kind,text,name", [
    pytest.param("--perf-basic-prof", "perf map", REGEXP, "RegExp:(a+)+b|(c+)+d", id="perf map"),
    pytest.param("--perf-prof", "jitdump", WASM, "JS:spin-0-", id="jitdump", marks=pytest.mark.live)])
def test_code_of_node_that_is_no_function_of_javascript_has_names_and_functions_are_the_walker_s(sonde, store, scratch, option, kind, text, name):
    need_root()
    need("node")
    path = os.path.join(scratch, "runs.js")
    with open(path, "w", encoding="utf-8") as f:
        f.write(text + LOOP)
    found, doctor = recorded(sonde, store, ["node", option, "--always-sparkplug", path], cwd=scratch)
    assert len(doctor) == 1 and doctor[0].endswith(f" names from its {kind}"), doctor
    inside = [(frames, n) for frames, n in found if any(f[1] and f[1].startswith(name) for f in frames)]
    assert sum(n for _, n in inside) >= 0.8 * sum(n for frames, n in found if "Builtins_JSEntry" in [f[1] for f in frames]), found[:3]
    for frames, _ in inside:
        script = [f[1] for f in frames if f[0] == "javascript" and f[2] == path]
        assert script[:2] == ["(anonymous)", "runs"], frames
        assert not [f for f in frames if f[1] and path in f[1]]  # as the file would have named them: "JS:~runs PATH:2:14"


# (func (export "g") (call $f)), which V8 has no name for
STANDS = """
const fs = require('fs');
const bytes = Buffer.from('0061736d0100000001040160000002070101' + '6d0166000003020100070501016700010a0601040010000b', 'hex');
const wasm = new WebAssembly.Instance(new WebAssembly.Module(bytes), { m: { f: function rests() { fs.writeSync(1, '1\\n'); fs.readSync(0, Buffer.alloc(1)); } } });
wasm.exports.g();
"""


def test_threads_of_a_program_with_a_perf_map_have_its_names_in_pstack(sonde, store, scratch):
    need_root()
    need("node")
    child = subprocess.Popen(["node", "--perf-basic-prof", "-e", STANDS], stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd=scratch)
    try:
        child.stdout.readline()
        rows = json.loads(sonde("pstack", "--json", "-p", child.pid, store=store, check=True).stdout)["rows"]
    finally:
        child.stdin.close()
        child.wait(20)
        child.stdout.close()
    with open(f"/tmp/perf-{child.pid}.map", encoding="utf-8") as f:
        names = {line.split(" ", 2)[2].rstrip("\n") for line in f}
    os.unlink(f"/tmp/perf-{child.pid}.map")
    [row] = [r for r in rows if r["tid"] == child.pid]
    functions = [f["function"] for f in row["frames"]]
    between = functions[functions.index("rests") + 1:]
    assert [f for f in between if f in names and f.startswith(("JS:", "Stub:", "Function:"))], (functions, [f["module"] for f in row["frames"]])


PHP_JIT = [PHP, "-n", "-d", "zend_extension=opcache.so", *JIT, "opcache.file_update_protection=0", "-d", "opcache.jit=function", "-d"]
SPIN = {"py": "def spin():\n    x = 0\n    for i in range(300000):\n        x += i\n    return x\nprint(1, flush=True)\nwhile True:\n    spin()\n",
        "php": "<?php\nfunction spin() { $x = 0; for ($i = 0; $i < 300000; $i++) $x = ($x + $i) % 1000003; return $x; }\n"
               "for ($i = 0; $i < 20; $i++) spin();\necho \"1\\n\";\nwhile (true) spin();\n"}


@pytest.mark.live
@pytest.mark.parametrize("command,suffix,kind,name", [
    ([*PHP_JIT, "opcache.jit_debug=0x10"], "php", "perf map", "JIT$spin"),
    ([*PHP_JIT, "opcache.jit_debug=0x20"], "php", "jitdump", "JIT$spin"),
    ([PYTHON, "-X", "perf"], "py", "perf map", "py::spin:")])
def test_other_runtimes_name_their_code(sonde, store, scratch, command, suffix, kind, name):
    need_root()
    if not command[0] or not os.path.exists(command[0]):
        pytest.skip("missing: its interpreter")
    path = os.path.join(scratch, f"spin.{suffix}")
    with open(path, "w", encoding="utf-8") as f:
        f.write(SPIN[suffix])
    found, doctor = recorded(sonde, store, [*command, path], cwd=scratch)
    assert len(doctor) == 1 and doctor[0].endswith(f" names from its {kind}"), doctor
    named = sum(n for frames, n in found if any(f[0] in ("", None) and f[1] and f[1].startswith(name) for f in frames))
    assert named >= 0.9 * sum(n for _, n in found), found[:5]


BUN = """
function inner(n) { let s = 0; for (let i = 0; i < n; i++) s = (s * 31 + i) % 1000003; return s; }
function outer(n) { let s = 0; for (let i = 0; i < 50; i++) s += inner(n + i); return s; }
let t = 0;
for (let i = 0; i < 3000; i++) t += outer(200);
console.log(1);
for (;;) t += outer(2000);
"""


@pytest.mark.live
def test_compiled_functions_of_bun_have_the_names_of_its_jitdump(sonde, store, scratch):
    """Of npm's package, told to write it as doctor says."""
    need_root()
    need("npm")
    if subprocess.run(["npm", "pack", "@oven/bun-linux-x64@1.4.5"], cwd=scratch, capture_output=True).returncode:
        pytest.skip("missing: Bun 1.4.5 of npm")
    subprocess.run(["tar", "-xzf", "oven-bun-linux-x64-1.4.5.tgz"], cwd=scratch, check=True)
    bun, path = os.path.join(scratch, "package", "bin", "bun"), os.path.join(scratch, "shares.js")
    with open(path, "w", encoding="utf-8") as f:
        f.write(BUN)
    command = ["env", "BUN_JSC_useJITDump=1", f"BUN_JSC_jitDumpDirectory={scratch}", bun, path]
    found, doctor = recorded(sonde, store, command, cwd=scratch)
    assert "names from its jitdump" in doctor[0]
    total = sum(n for frames, n in found)
    ours = tuple(f"{name}#" for name in ("inner", "outer", path))  # the optimiser puts what is called into what calls it
    named = sum(n for frames, n in found if (frames[-1][1] or "").startswith("JSC-") and any(o in frames[-1][1] for o in ours))
    assert named >= 0.9 * total > 0, (named, total)


# --- text that a program copied to its old place (tests/workloads/text/movetext.c)


def share(store):
    found = stacks(store, "cpu")
    named = sum(n for frames, n in found if any(f[1] == "spin_in_moved_text" for f in frames) and any(f[1] == "main" for f in frames))
    return named, sum(n for _, n in found)


@pytest.mark.parametrize("how", ["remap", "map"])
def test_text_that_was_copied_before_the_recording_has_its_names(sonde, store, how):
    need_root()
    child = subprocess.Popen([MOVETEXT, how, "60"], stdout=subprocess.PIPE)
    try:
        assert child.stdout.readline() == b"moved\n"
        sonde("record", "-q", "--families", "cpu", "--freq", "499", "-d", "2s", "--pid", child.pid, store=store, check=True)
    finally:
        child.kill()
        child.wait(20)
        child.stdout.close()
    named, all_ = share(store)
    assert all_ > 20 and named >= 0.9 * all_, (named, all_)


@pytest.mark.parametrize("how", ["remap", "map"])
def test_text_that_is_copied_during_the_recording_has_its_names(sonde, store, how):
    need_root()
    sonde("record", "-q", "--families", "cpu", "--freq", "499", "--", MOVETEXT, how, "2", store=store, check=True)
    found = stacks(store, "cpu")
    inside = sum(n for frames, n in found if any(f[1] == "spin_in_moved_text" for f in frames))
    assert inside > 20 and inside >= 0.8 * sum(n for frames, n in found if any(f[1] == "main" for f in frames) or any((f[1] or "").startswith("[anon]") for f in frames))
