# SPDX-License-Identifier: Apache-2.0
"""sonde pstack of Ruby programs that were started without any option: each Ruby frame of each thread against what the program itself
says by Thread#backtrace_locations (tests/workloads/scripts/rubystand.rb)."""
import os
import re
import subprocess

import pytest

from conftest import ROOT, need, need_root
from scripting import Standing, between, of_sid, rows, script, unpacked, with_its_libraries, with_its_loader

STAND = os.path.join(ROOT, "tests", "workloads", "scripts", "rubystand.rb")
RUBY = "/usr/bin/ruby"
# version -> suite, its packages, how a program of it runs
SUITES = {"2.7": ("bullseye", "ruby2.7 libruby2.7 libyaml-0-2 libgmp10 libcrypt1 libffi7 libreadline8 zlib1g libtinfo6 libgdbm6 libssl1.1".split(),
                  with_its_libraries),
          "3.3": ("trixie", "ruby3.3 libruby3.3 libc6 libyaml-0-2 libgmp10 libcrypt1 libffi8 zlib1g libgcc-s1".split(), with_its_loader),
          "3.4": ("experimental", ["ruby3.4", "libruby3.4", *of_sid("libc6 libyaml-0-2 libgmp10 libcrypt1 libffi8 zlib1g libgcc-s1")], with_its_loader)}


def plain(label):
    """Without the class, which Ruby itself says only from 3.4 on."""
    return re.sub(r"[A-Z][\w:]*[#.](?=\S+$)", "", label)


def as_ruby_says(frames, plain=plain):
    """A function of C has the line of who called it."""
    told, at = [], [None, None]
    for function, file, line in reversed(frames):
        at = [file, line] if file else at
        told.append([plain(function), *at])
    return told[::-1]


def of_ruby_34(frames):
    """Ruby's own backtraces leave out, from 3.4 on, the method around a `rescue` or `ensure`, which has the place of that."""
    out, skip = [], False
    for label, file, line in frames:
        if not skip:
            out.append([re.sub("^(rescue|ensure) in ", "", label), file, line])
        skip = label.startswith(("rescue in ", "ensure in "))
    return out


def check_all(sonde, store, scratch, command, plain=plain, shown=list):
    """Every frame of every thread. Returns the rows by kind, and what a program says of itself."""
    with Standing([*command, "--disable-gems", STAND], cwd=scratch) as s:
        seen = {str(r["tid"]): r for r in rows(sonde, store, "-p", s.pid)}
    kinds = {}
    assert len(s.told["threads"]) > 25
    for tid, (kind, frames) in s.told["threads"].items():
        row = seen[tid]
        assert not row["moved"], row
        got, want = shown(as_ruby_says(script(row, "ruby"), plain)), [[label, file or None, line or None] for label, file, line in frames]
        # what `eval` compiled has no name of its own from 3.4 on: Ruby says the one of the code around it
        assert [["" if "<compiled>" in g[0] else w[0], *w[1:]] for g, w in zip(got, want)] == [["" if "<compiled>" in g[0] else g[0], *g[1:]] for g in got], kind
        assert len(got) == len(want), kind
        kinds[kind] = row
    return kinds


def check_places(kinds):
    names = [f["function"] for f in kinds["sort"]["frames"] if f["runtime"]]
    assert "rb_yield" in between(kinds["each"], "ruby", "block (2 levels) in by_each", "map")
    assert between(kinds["recursion"], "ruby", "recursion", "recursion") == [] and "sort_by" in names
    assert all(not r["end"] for kind, r in kinds.items() if kind not in ("fiber", "enumerator"))


def test_ruby_frames_are_what_the_program_says_and_at_their_places(sonde, store, scratch):
    need_root()
    need("ruby", RUBY)
    check_places(check_all(sonde, store, scratch, [RUBY]))


def test_the_program_itself_is_one_frame(sonde, store, scratch):
    """Ruby has another one below it, of the same name, which its own backtraces leave out."""
    need_root()
    need("ruby", RUBY)
    path = os.path.join(scratch, "stand.rb")
    with open(path, "w", encoding="utf-8") as f:
        f.write("def f\n  $stdin.read\nend\nputs '{}'\n$stdout.flush\nf\n")
    with Standing([RUBY, "--disable-gems", path]) as s:
        (row,) = [r for r in rows(sonde, store, "-p", s.pid) if r["tid"] == s.pid]
        assert script(row, "ruby")[1:] == [["f", path, 2], ["<main>", path, 6]], row


@pytest.mark.live
@pytest.mark.parametrize("version", SUITES)
def test_ruby_of_debian_s_other_suites_is_read_right(sonde, store, scratch, version):
    need_root()
    suite, packages, runs = SUITES[version]
    kinds = check_all(sonde, store, scratch, runs(unpacked(suite, packages), f"ruby{version}"), **({"plain": str, "shown": of_ruby_34} if version >= "3.4" else {}))
    if version == "2.7":
        return check_places(kinds)
    found = [f[0] for f in script(kinds["each"], "ruby")]
    assert found[:6] == ["Thread::Queue#pop", "Object#stand", "block (2 levels) in Object#by_each", "Array#map", "block in Object#by_each",
                         "Array#each"]
    assert [f[0] for f in script(kinds["method"], "ruby")][2:6] == ["block in Box.once", "Box.stand_in_block", "Box.once", "Box#method"]


@pytest.mark.parametrize("options", [["--yjit", "--yjit-call-threshold=1"],
                                     pytest.param(["--mjit", "--mjit-wait", "--mjit-min-calls=20"], marks=pytest.mark.live)])  # it runs a compiler
def test_names_stay_right_with_ruby_s_jits(sonde, store, scratch, options):
    need_root()
    need("ruby", RUBY)
    done = subprocess.run([RUBY, *options, "-e", "1"], capture_output=True, text=True)
    if done.returncode or done.stderr:
        pytest.skip(f"missing: a ruby with {options[0]}")
    check_all(sonde, store, scratch, [RUBY, *options])


BUSY = """
def rests
  sleep [0.0001, 0.02].sample
end
def one(n)
  n.odd? ? two(n - 1) : three(n - 1)
end
def two(n)
  n <= 0 ? rests : [n].each { |x| one(x - 1) }
end
def three(n)
  n <= 0 ? rests : Fiber.new { one(n - 1) }.resume
end
4.times { Thread.new { loop { one(rand(30)) } } }
puts "x"
$stdout.flush
$stdin.read
"""


@pytest.mark.long
def test_a_ruby_program_that_does_not_stand_still_is_never_shown_torn(sonde, store, scratch):
    """Each frame stands on a line that calls the frame before it."""
    need_root()
    need("ruby", RUBY)
    path = os.path.join(scratch, "busy.rb")
    with open(path, "w", encoding="utf-8") as f:
        f.write(BUSY)
    lines, shown = BUSY.splitlines(), 0
    child = subprocess.Popen([RUBY, "--disable-gems", path], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    try:
        child.stdout.read(1)
        for _ in range(40):
            for row in rows(sonde, store, "-p", child.pid):
                frames = [f for f in script(row, "ruby") if f[0] not in ("<main>", "read")]
                assert not frames or not row["moved"], row
                for callee, caller in zip(frames, frames[1:]):
                    if caller[1] == path and not callee[0].startswith("block"):
                        assert plain(callee[0]) in lines[caller[2] - 1], (callee, caller)
                shown += len(frames) > 2
            if shown >= 20:
                break
        assert shown >= 3
    finally:
        child.kill()
        child.wait(20)
        child.stdin.close()
        child.stdout.close()


def lying(scratch):
    """A program with the names of an interpreter's and a context that leads nowhere; with an argument it is busy."""
    labels = ", ".join(f"&&l{i}" for i in range(200))
    body = "\n".join(f"l{i}: n += {i + 3} * n; if (n == {i}) goto *table[n];" for i in range(200))
    source = os.path.join(scratch, "lie.c")
    with open(source, "w", encoding="utf-8") as f:
        f.write(f"""
#include <stdint.h>
#include <unistd.h>
const char ruby_version[] = "3.1.2";
__thread uint64_t *context;
static volatile int busy;
static uint64_t thread[16], ec[16], frames[64], flags[4] = {{0, 0, 0x22220001}};
__attribute__((noinline)) uint64_t rb_thread_current(void) {{ return context[6]; }}
__attribute__((noinline)) int vm_exec_core(int n) {{
	static const void *const table[] = {{ {labels} }};
	char c;
	if (n > 1000) goto *table[n % 200];
	write(1, "x", 1);
	while (busy)
		;
	n = (int)read(0, &c, 1);
	{body}
	return n;
}}
int main(int argc, char **argv) {{
	busy = argc > 1 && argv;
	context = ec;
	ec[0] = (uint64_t)frames;
	ec[1] = 64;
	ec[2] = (uint64_t)frames;
	ec[6] = (uint64_t)thread;
	thread[5] = (uint64_t)ec;
	for (int i = 0; i < 64; i += 8) {{
		frames[i] = frames[i + 2] = (uint64_t)frames;
		frames[i + 4] = (uint64_t)&flags[2];
	}}
	return vm_exec_core((int)rb_thread_current() & 7);
}}
""")
    subprocess.run(["gcc", "-O1", "-g", "-rdynamic", "-o", os.path.join(scratch, "lie"), source], check=True, capture_output=True)
    return os.path.join(scratch, "lie")


def test_a_process_that_lies_about_ruby_is_not_believed(sonde, store, scratch):
    """Its stack is shown as native, and nobody falls."""
    need_root()
    need("gcc")
    child = subprocess.Popen([lying(scratch)], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    try:
        child.stdout.read(1)
        [row] = rows(sonde, store, "-p", child.pid)
    finally:
        child.kill()
        child.wait(20)
        child.stdin.close()
        child.stdout.close()
    names = [f["function"] for f in row["frames"] if not f["kernel"]]
    assert "main" in names and "vm_exec_core" in names and not script(row, "ruby")
