# SPDX-License-Identifier: Apache-2.0
"""sonde pstack of Node programs that were started without any option: each JavaScript frame of each thread against what V8 itself says of it
(tests/workloads/scripts/nodestand.js, by Error.prepareStackTrace). Other versions than this system's come from npm."""
import json
import os
import re
import shutil
import subprocess
import tempfile

import pytest

from conftest import ROOT, need, need_root
from scripting import NODES, Standing, between, node_of, rows, script, unpacked

STAND = os.path.join(ROOT, "tests", "workloads", "scripts", "nodestand.js")
TIERS = [["--no-opt", "--no-sparkplug"], ["--no-opt", "--always-sparkplug"], ["--maglev", "--no-opt"], ["--max-inlined-bytecode-size=0"],
         ["--interrupt-budget=1000"]]


@pytest.fixture(scope="module")
def store():
    """One for all of these: node is a large file, which is read once then."""
    base = tempfile.mkdtemp(prefix="sonde-test-")
    os.chmod(base, 0o755)
    yield os.path.join(base, "store")
    shutil.rmtree(base, ignore_errors=True)


def with_file(frames):
    """Functions of files: V8 shows builtins too, but not all of them. `frames` itself is left out, which has returned."""
    return [[function or "(anonymous)", file, line] for function, file, line in frames if file and not file.startswith("wasm:")]


def named_alike(seen, told):
    """V8 says no name where a function has none of its own; sonde says the name that V8's parser found for it ("Module.load"). One by a
    computed key ("[Symbol.iterator]") is a property, which sonde does not look for."""
    return seen == told or (told == "(anonymous)" and "." in seen) or seen.split(".")[-1] == told or (seen == "(anonymous)" and told[0] == "[")


def check(row, told):
    seen = with_file(script(row, "javascript"))
    assert not row["moved"] and not row["end"], row
    assert seen[0][0] == "readSync", seen
    seen, told = seen[1:], with_file(told)[1:]
    assert [f[1:] for f in seen] == [f[1:] for f in told]
    assert [] == [(s, t) for s, t in zip(seen, told) if not named_alike(s[0], t[0])]


def standing_rows(sonde, store, s):
    """The row of each thread that stands; they may still be on their way when the last of them has said its frames."""
    for _ in range(20):
        found = {}
        for row in rows(sonde, store, "-p", s.pid):
            frames = script(row, "javascript")
            if [f[0] for f in frames[:2]] == ["readSync", "stand"]:
                kind = next(k for k, told in s.told.items() if same_functions(frames, told) and k not in found)
                found[kind] = row
        if len(found) == len(s.told):
            return found
    raise AssertionError(f"{sorted(set(s.told) - set(found))} do not stand")


def same_functions(frames, told):
    return [f[2] for f in with_file(frames)[1:]] == [f[2] for f in with_file(told)[1:]]


def check_all(sonde, store, scratch, command):
    with Standing(command, cwd=scratch) as s:
        found = standing_rows(sonde, store, s)
    assert len(s.told) > 25
    for kind, row in found.items():
        check(row, s.told[kind])
    return found


def check_places(found):
    """Builtins by their own names, and natives between JavaScript's frames."""
    functions = [f[0] for f in script(found["map"], "javascript")]
    assert functions[3:6] == ["(anonymous)", "map", "map"], functions  # the callback, Array's map, the kind
    names = [f["function"] for f in found["parse"]["frames"]]
    assert any("JsonParse" in (n or "") for n in between(found["parse"], "javascript", "inside", "parse")) or "parse" in names
    assert "Builtins_JSEntry" in [f["function"] for f in found["plain"]["frames"]]
    assert [f["function"] for f in found["plain"]["frames"]][-1] == "_start"
    assert any(f["function"] in ("clone3", "clone", "__clone3") for f in found["map"]["frames"][-2:])


@pytest.mark.parametrize("args", [[], ["warm"]])
def test_javascript_frames_are_what_v8_says_and_at_their_places(sonde, store, scratch, args):
    """Interpreted, baseline and optimised with what was inlined, in worker threads too."""
    need_root()
    need("node")
    check_places(check_all(sonde, store, scratch, ["node", STAND, *args]))


@pytest.mark.live
@pytest.mark.parametrize("version", NODES)
def test_node_of_other_versions_is_read_right(sonde, store, scratch, version):
    """Each as it is started, and with each of its compilers."""
    need_root()
    node = node_of(version)
    for args in ([], ["warm"]):
        check_places(check_all(sonde, store, scratch, [node, STAND, *args]))
    for options in TIERS:
        if not subprocess.run([node, *options, "-e", "0"], capture_output=True).returncode:
            check_all(sonde, store, scratch, [node, *options, STAND, "warm"])


BUSY = """
const rests = () => Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, Math.random() * 2);
function one(n) {
  return n % 2 ? two(n - 1) : three(n - 1);
}
function two(n) {
  return n <= 0 ? rests() : [n].map(x => one(x - 1));
}
function three(n) {
  return n <= 0 ? rests() : one(n - 1) + 1;
}
const { Worker, isMainThread } = require('worker_threads');
if (isMainThread) {
  for (let i = 0; i < 3; i++) new Worker(__filename);
  require('fs').writeSync(1, 'x');
  require('fs').readSync(0, Buffer.alloc(1));
  process.exit(0);
}
for (;;) one(Math.random() * 30 | 0);
"""


@pytest.mark.long
def test_a_node_program_that_does_not_stand_still_is_never_shown_torn(sonde, store, scratch):
    """Each frame stands on a line that calls the frame before it, while its code is being compiled and its objects move."""
    need_root()
    need("node")
    path = os.path.join(scratch, "busy.js")
    with open(path, "w", encoding="utf-8") as f:
        f.write(BUSY)
    lines, shown = BUSY.splitlines(), 0
    child = subprocess.Popen(["node", path], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    try:
        child.stdout.read(1)
        for _ in range(40):
            for row in rows(sonde, store, "-p", child.pid):
                frames = [f for f in script(row, "javascript") if f[0] in ("one", "two", "three", "rests")]
                for callee, caller in zip(frames, frames[1:]):
                    assert caller[1] == path and callee[0] + "(" in lines[caller[2] - 1], (callee, caller)
                shown += len(frames) > 2 and not row["moved"]
            if shown >= 20:
                break
        assert shown >= 3
    finally:
        child.kill()
        child.wait(20)
        child.stdin.close()
        child.stdout.close()


MODULE = """
import { readSync, writeSync } from 'node:fs';
function deep(n) {
  if (n)
    return deep(n - 1) + 1;
  writeSync(1, '{}\\n');
  return readSync(0, Buffer.alloc(1));
}
export const held = [1].map(() =>
  deep(5000));
"""


def test_modules_say_their_url_and_a_deep_stack_says_that_it_is_cut(sonde, store, scratch):
    need_root()
    need("node")
    path = os.path.join(scratch, "held.mjs")
    with open(path, "w", encoding="utf-8") as f:
        f.write(MODULE)
    with Standing(["node", path]) as s:
        [row] = [r for r in rows(sonde, store, "-p", s.pid) if r["tid"] == s.pid]
    frames = script(row, "javascript")
    assert frames[1] == ["deep", f"file://{path}", 7]
    assert set(map(tuple, frames[2:])) == {("deep", f"file://{path}", 5)} and len(frames) > 100
    assert row["end"]


LIE = """
#include <stdint.h>
#include <unistd.h>
#define N(name, value) int v8dbg_##name = value;
%s
const char *text = "%s-node.1";
uint64_t object[64];
void *block; uint32_t size = 1 << 16;
const char *version(void) __asm__("_ZN2v82V810GetVersionEv");
__asm__(".globl _ZN2v82V810GetVersionEv\\n_ZN2v82V810GetVersionEv: mov text(%%rip),%%rax\\nret\\n"
	".globl _ZN2v88internal7Isolate23CurrentEmbeddedBlobCodeEv\\n_ZN2v88internal7Isolate23CurrentEmbeddedBlobCodeEv: mov block(%%rip),%%rax\\nret\\n"
	".globl _ZN2v88internal7Isolate27CurrentEmbeddedBlobCodeSizeEv\\n_ZN2v88internal7Isolate27CurrentEmbeddedBlobCodeSizeEv: mov size(%%rip),%%eax\\nret\\n"
	"stands: push %%rbp\\nmov %%rsp,%%rbp\\nlea object+1(%%rip),%%rdi\\npush %%rdi\\npush %%rdi\\npush %%rdi\\npush %%rdi\\npush %%rdi\\n"
	"push %%rdi\\ncall reads\\nleave\\nret\\n");
long stands(void);
__attribute__((used)) long reads(void) { char c; write(1, "x", 1); return read(0, &c, 1); }
int main(void) {
	for (int i = 0; i < 64; i++)
		object[i] = (uint64_t)object + 1;
	block = (void *)((uintptr_t)stands & ~0xfffull);
	return (int)stands() + !version();
}
"""


def liar(scratch, version, numbers):
    """A program with the names of V8's, whose objects are all one that leads to itself, and what pstack and doctor say of it."""
    source, program = os.path.join(scratch, "lie.c"), os.path.join(scratch, "lie")
    with open(source, "w", encoding="utf-8") as f:
        f.write(LIE % ("\n".join(f"N({n}, {v})" for n, v in numbers), version))
    subprocess.run(["gcc", "-O1", "-g", "-rdynamic", "-fno-pie", "-no-pie", "-w", "-o", program, source], check=True, capture_output=True)
    return program


@pytest.mark.parametrize("version,known", [("11.3.244.8", True), ("7.9.1", False)])
def test_a_process_that_lies_about_v8_is_not_believed(sonde, store, scratch, version, known):
    """Its stack is shown as native, nobody falls; a version that is not known is told as such."""
    need_root()
    need("gcc")
    with open(os.path.join(ROOT, "loaders", "index", "runtimes", "v8part.c"), encoding="utf-8") as f:
        names = re.findall(r'^\t\{"(\w+)", V8_(\w+)\},$', f.read(), re.M)
    numbers = [(n, {"FP_CONTEXT": -8, "FP_FUNCTION": -16}.get(number, 0)) for n, number in names if not n.startswith(("_Z", "napi"))]
    program = liar(scratch, version, [*numbers, ("TaggedSize", 8), ("SmiShiftSize", 31)])
    child = subprocess.Popen([program], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    try:
        child.stdout.read(1)
        [row] = rows(sonde, store, "-p", child.pid)
        told = json.loads(sonde("doctor", "--pid", child.pid, "--json", store=store, check=True).stdout)["rows"]
    finally:
        child.stdin.close()
        child.wait(20)
        child.stdout.close()
    assert "main" in [f["function"] for f in row["frames"]] and not script(row, "javascript")
    [said] = [r for r in told if r["name"] == "javascript"]
    assert said["state"] == ("ok" if known else "warn")
    assert said["text"].startswith(f"version of V8 {'.'.join(version.split('.')[:2])}: ")


@pytest.mark.live
def test_debian_s_node_as_a_stripped_library_is_read_right(sonde, store, scratch):
    """Bookworm's, whose builtins have no symbols. It wants its modules under /usr/share: in a mount namespace of its own."""
    need_root()
    need("unshare")
    usr = unpacked("bookworm", "nodejs libnode108 libuv1 libc-ares2 libnghttp2-14 libicu72 libbrotli1 node-acorn node-undici "
                               "node-cjs-module-lexer node-busboy node-xtend".split())
    starts = f'mount --bind {usr}/share /usr/share && exec env LD_LIBRARY_PATH={usr}/lib/x86_64-linux-gnu {usr}/bin/node "$@"'
    for args in ([], ["warm"]):
        check_all(sonde, store, scratch, ["unshare", "-m", "sh", "-c", starts, "node", STAND, *args])
