# SPDX-License-Identifier: Apache-2.0
"""Unwind rows equal readelf's: files of this machine, and files that are made here to be odd.

SONDE_ROWS=quick (the default: some libraries that everybody has), =SECONDS (all of /usr/bin and /usr/lib, largest first,
the rest in an order of this commit's, as far as that time goes), =full (all of them).
"""
import os
import re
import shutil
import subprocess

import pytest

import compare
import oracle

ROOT = compare.ROOT
HOW = os.environ.get("SONDE_ROWS", "quick")
QUICK = ["/lib/x86_64-linux-gnu/libc.so.6", "/lib64/ld-linux-x86-64.so.2", "/lib/x86_64-linux-gnu/libm.so.6",
         "/usr/lib/x86_64-linux-gnu/libcrypto.so.3", "/usr/lib/x86_64-linux-gnu/libstdc++.so.6",
         "/lib/x86_64-linux-gnu/libgcc_s.so.1", "/usr/lib/x86_64-linux-gnu/libz.so.1", "/bin/bash", "/usr/bin/perl",
         "/usr/bin/git"]


def sh(*command, **kw):
    done = subprocess.run(command, capture_output=True, text=True, errors="replace", **kw)
    assert done.returncode == 0, f"{command}: {done.stderr}"
    return done.stdout


def need(*programs):
    for name in programs:
        if not shutil.which(name):
            pytest.skip(f"missing: {name}")


def helper(name):
    return os.path.join(ROOT, os.environ.get("B", "build"), "tests", "rows", name)


def agrees(path, least=1):
    """Compares; what was found."""
    got = compare.compare(str(path))
    assert not got.wrong, [(hex(a), x, y) for a, x, y in got.wrong[:10]]
    assert got.raw >= least, f"{path}: {got.raw} rows"
    return got


def rows(path):
    got, said = compare.ours(str(path))
    assert got is not None, said
    return got


def seed():
    done = subprocess.run(["git", "-c", f"safe.directory={ROOT}", "-C", ROOT, "rev-parse", "HEAD"], capture_output=True,
                          text=True)
    return done.stdout.strip()


def test_every_row_of_the_files_of_this_machine_is_readelfs():
    need("readelf")
    if HOW == "quick":
        paths, budget = [os.path.realpath(p) for p in QUICK if os.path.exists(p)], 12
    else:
        paths, budget = compare.ordered(compare.files_of(["/usr/bin", "/usr/lib"]), seed()), None if HOW == "full" else float(HOW)
    total = compare.compare_all(paths, budget, os.cpu_count() or 1)
    print(total)
    assert total.files >= 3 and total.raw > 10000
    assert not total.wrong, total.wrong[:10]
    assert total.unsupported <= 0.001 * total.rows, str(total)
    assert not total.above


def test_rows_cost_at_most_25_ms_a_megabyte_of_eh_frame_and_6_bytes_each():
    cost = helper("rowcost")
    large = ["/usr/lib/x86_64-linux-gnu/libLLVM-14.so.1", "/usr/lib/jvm/java-17-openjdk-amd64/lib/server/libjvm.so",
             "/usr/bin/node", "/usr/lib/x86_64-linux-gnu/libcrypto.so.3", "/bin/bash"]
    said = sh(cost, *[p for p in large if os.path.exists(p)])
    print(said)
    for line in said.splitlines():
        ms, size, section, path = line.split(maxsplit=3)
        assert float(ms) <= 25 * int(size) / 2**20, f"{path}: {ms} ms for {size} bytes of .eh_frame"
        assert int(section) <= 6 * len(rows(path)), f"{path}: {section} bytes"


# ---- files made here ----

PROGRAM = """
#include <alloca.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
static volatile int sink;
static void on_signal(int n) { sink += n; }
static void *thread(void *x) { return x; }
__attribute__((noinline)) int grow(int n) { char *p = alloca(n); memset(p, n, n); return p[n / 2]; }
__attribute__((noinline)) int align(int n) { int v[8] __attribute__((aligned(64))); memset(v, n, sizeof(v)); return v[n & 7] + grow(n); }
__attribute__((noinline)) int six(int a, int b, int c, int d, int e, int f, int g, int h) { return printf("%d%d%d%d%d%d%d%d", a, b, c, d, e, f, g, h); }
__attribute__((noinline)) int sum(int n) { return n ? sum(n - 1) + six(n, 1, 2, 3, 4, 5, 6, n) : align(n + 9); }
int main(int n, char **v)
{
	pthread_t t;
	signal(SIGUSR1, on_signal);
	pthread_create(&t, 0, thread, v);
	pthread_join(t, 0);
	return sum(n);
}
"""


def build(where, name, *flags, cc="gcc", source=PROGRAM, libs=("-lm",)):
    text = where / f"{name}.c"
    text.write_text(source)
    out = where / name
    sh(cc, *flags, "-o", str(out), str(text), *libs)
    return out


def without_section_headers(path):
    with open(path, "r+b") as f:
        f.seek(40)
        f.write(bytes(8))
        f.seek(58)
        f.write(bytes(6))


def test_a_file_without_section_headers_has_the_same_rows(tmp_path):
    need("gcc")
    whole = build(tmp_path, "whole", "-O2")
    bare = tmp_path / "bare"
    shutil.copy(whole, bare)
    without_section_headers(bare)
    agrees(whole, 20)
    assert rows(bare) == rows(whole)


def names(path, index):
    sh(compare.INDEX, str(path), "-o", str(index))
    return [n for n in sh(compare.INDEX, "--dump", str(index)).splitlines() if n[0] != "#"]


def test_code_that_claims_too_much_room_costs_the_rows_only(tmp_path):
    need("gcc")
    path = build(tmp_path, "wide", "-O2")
    before = names(path, tmp_path / "index")
    assert before and rows(path)
    with open(path, "r+b") as f:
        head = f.read(64)
        at, n = int.from_bytes(head[32:40], "little"), int.from_bytes(head[56:58], "little")
        for i in range(n):
            f.seek(at + 56 * i)
            if f.read(8) == bytes([1, 0, 0, 0, 5, 0, 0, 0]):  # PT_LOAD, readable and executable: p_memsz
                f.seek(at + 56 * i + 40)
                f.write((1 << 40).to_bytes(8, "little"))
    assert rows(path) == []
    assert names(path, tmp_path / "index") == before


NO_EH = ("-fno-asynchronous-unwind-tables", "-fno-unwind-tables", "-nostdlib", "-shared", "-fPIC", "-O2", "-g")
PACKED = {"plain": (), "zlib": ("-gz=zlib",), "zlib-gnu": ("-gz=zlib-gnu",)}


@pytest.mark.parametrize("packed", PACKED)
def test_debug_frame_counts_where_there_is_no_eh_frame(tmp_path, packed):
    need("gcc")
    path = build(tmp_path, "lib.so", *NO_EH, *PACKED[packed])
    assert "debug_frame" in sh("readelf", "-SW", str(path))
    agrees(path, 20)
    assert "debug-frame" in compare.ours(str(path))[1]


def test_debug_frame_of_the_separate_debug_file_counts(tmp_path):
    need("gcc", "objcopy", "strip")
    path = build(tmp_path, "lib.so", *NO_EH)
    before = rows(path)
    sh("objcopy", "--only-keep-debug", str(path), str(path) + ".debug")
    sh("strip", str(path))
    assert rows(path) != before
    sh("objcopy", f"--add-gnu-debuglink={path}.debug", str(path), cwd=tmp_path)
    assert rows(path) == before


@pytest.mark.parametrize("flags", ("-gdwarf-2", "-gdwarf-3", "-gdwarf-4", "-gdwarf-5", "-gdwarf-3 -gdwarf64", "-gdwarf-5 -gdwarf64"))
def test_each_version_of_the_format_is_read(tmp_path, flags):
    need("clang")
    path = build(tmp_path, "lib.so", *NO_EH, *flags.split(), cc="clang")
    agrees(path, 20)


def test_stubs_that_nothing_describes_have_the_rules_of_those_that_are_described(tmp_path):
    need("gcc")
    for flags in (["-Wl,-z,lazy"], ["-Wl,-z,lazy", "-Wl,-z,ibtplt", "-fcf-protection=full"], ["-Wl,-z,now"]):
        told = build(tmp_path, "told", "-O2", *flags)
        silent = build(tmp_path, "silent", "-O2", "-Wl,--no-ld-generated-unwind-info", *flags)
        assert sh("readelf", "-wF", str(told)).count("FDE") > sh("readelf", "-wF", str(silent)).count("FDE")
        stubs = re.findall(r"\] (\.plt\S*) +PROGBITS +([0-9a-f]+) [0-9a-f]+ ([0-9a-f]+)", sh("readelf", "-SW", str(silent)))
        a, b = rows(told), rows(silent)
        for name, addr, size in stubs:
            lo, hi = int(addr, 16), int(addr, 16) + int(size, 16)
            for at in range(lo, hi):
                x, y = compare.rule_at(a, [r[0] for r in a], at), compare.rule_at(b, [r[0] for r in b], at)
                if (at - lo) % 16 in (9, 10) and "plt" in x:
                    continue  # in the middle of an instruction: GNU ld's threshold with IBT is one byte late
                assert words_at(x, at) == words_at(y, at), (flags, name, hex(at), x, y)


def words_at(rule, at):
    """A rule at one address: plt:N said as a plain row."""
    m = re.match(r"plt:(\d+)", rule)
    return f"rsp+{16 if at % 16 >= int(m.group(1)) else 8} same c-8" if m else rule


def test_musls_clone_entry_and_signal_return_are_known_by_their_code(tmp_path):
    need("musl-gcc")
    path = build(tmp_path, "static", "-static", "-O2", cc="musl-gcc")
    symbols = {n: int(a, 16) for a, n in re.findall(r"^([0-9a-f]+) \w (\S+)$", sh("nm", str(path)), re.M)}
    sh("strip", str(path))
    named = rows(path)
    starts = [r[0] for r in named]
    assert compare.rule_at(named, starts, symbols["_start"]) == "root"
    assert compare.rule_at(named, starts, symbols["__restore_rt"]) == "signal"
    assert compare.rule_at(named, starts, symbols["__restore_rt"] - 1) == "signal"
    clone = sh("objdump", "-d", f"--start-address={symbols['__clone']}", f"--stop-address={symbols['__clone'] + 96}", str(path))
    call, after = re.search(r"([0-9a-f]+):\s.*call +\*%r9\n\s*([0-9a-f]+):", clone).groups()
    assert compare.rule_at(named, starts, int(after, 16) - 1) == "root", call
    assert compare.rule_at(named, starts, symbols["__clone"]) == "rsp+8 same c-8"


# Each directive that some compiler, library or person uses, in one file.
ODD = r"""
	.text
	.globl first
first:	.cfi_startproc
	push %rbp
	.cfi_def_cfa_offset 16
	.cfi_offset 6, -16
	mov %rsp, %rbp
	.cfi_def_cfa_register 6
	.cfi_remember_state
	.cfi_remember_state
	.cfi_remember_state
	leave
	.cfi_def_cfa 7, 8
	ret
	.cfi_restore_state
	nop
	.cfi_restore_state
	nop
	.cfi_def_cfa 7, 8
	.cfi_restore 6
	nop
	.cfi_restore_state
	nop
	.cfi_endproc
other_registers: .cfi_startproc
	nop
	.cfi_def_cfa 10, 0
	nop
	.cfi_def_cfa 0, 24
	nop
	.cfi_def_cfa 7, 20
	nop
	.cfi_def_cfa 6, -16
	nop
	.cfi_def_cfa 7, 600000
	nop
	.cfi_register 16, 5
	nop
	.cfi_def_cfa 7, 0
	nop
	.cfi_register 6, 3
	nop
	.cfi_undefined 16
	nop
	.cfi_endproc
saved: .cfi_startproc
	.cfi_def_cfa 6, 16
	.cfi_escape 0x10,0x6,0x2,0x76,0x74		# RBP at RBP - 12
	nop
	.cfi_escape 0x10,0x6,0x3,0x9c,0x23,0x02		# at CFA + 2
	nop
	.cfi_offset 6, -40000
	nop
	.cfi_offset 6, 8
	nop
	.cfi_val_offset 6, -16
	nop
	.cfi_same_value 6
	nop
	.cfi_def_cfa 7, 8
	.cfi_offset 6, -16
	nop
	.cfi_def_cfa 7, 16
	nop
	.cfi_endproc
popped_all: .cfi_startproc
	nop
	.cfi_def_cfa_offset 0
	nop
	.cfi_endproc
ra_elsewhere: .cfi_startproc
	nop
	.cfi_offset 16, -16
	nop
	.cfi_endproc
rsp_elsewhere: .cfi_startproc
	nop
	.cfi_register 7, 8
	nop
	.cfi_endproc
drap: .cfi_startproc
	nop
	.cfi_def_cfa 10, 0
	nop
	.cfi_escape 0x10,0x6,0x2,0x76,0			# RBP at RBP + 0
	nop
	.cfi_escape 0xf,0x3,0x76,0x78,0x6		# CFA = *(RBP - 8)
	nop
	.cfi_def_cfa 7, 8
	nop
	.cfi_endproc
expressions: .cfi_startproc
	.cfi_escape 0x0f,0x05,0x77,0x28,0x06,0x23,0x08	# *(RSP + 40) + 8
	nop
	.cfi_escape 0x0f,0x04,0x77,0x28,0x23,0x08	# RSP + 40 + 8
	nop
	.cfi_escape 0x0f,0x09,0x77,0x10,0x73,0x00,0x38,0x1e,0x22,0x06,0x96	# *(RSP + 8 * RBX + 16), nop
	nop
	.cfi_escape 0x0f,0x0a,0x73,0x00,0x33,0x24,0x77,0x10,0x22,0x06,0x23,0x08	# the same, shifted, + 8
	nop
	.cfi_escape 0x0f,0x03,0x30,0x06,0x06		# **0
	nop
	.cfi_escape 0x0f,0x0b,0x77,0x08,0x80,0x00,0x3f,0x1a,0x39,0x2a,0x33,0x24,0x22	# PLT with 9
	nop
	.cfi_escape 0x2e,0x10				# GNU_args_size
	.cfi_escape 0x2f,0x03,0x02			# GNU_negative_offset_extended
	nop
	.cfi_endproc
	.fill 32, 1, 0xcc
"""


def assembled(where, source, *flags):
    text = where / "odd.s"
    text.write_text(source + '\t.section .note.GNU-stack,"",@progbits\n')
    out = where / "odd.so"
    sh("gcc", "-shared", "-nostdlib", *flags, "-o", str(out), str(text))
    return out


@pytest.mark.parametrize("sections", (".eh_frame", ".debug_frame"))
def test_odd_directives_say_what_readelf_reads_in_them(tmp_path, sections):
    need("gcc")
    path = assembled(tmp_path, f"\t.cfi_sections {sections}\n" + ODD)
    got = agrees(path, 40)
    said = {r for _, r in rows(path)}
    assert {"rdi" in r for r in said} == {True, False}
    for expected in ("*(rbp-8)+0 [rbp+0] c-8", "rsp+0 same rdi", "rsp+20 same c-8", "unsupported:return-address",
                     "unsupported:cfa-register", "unsupported:cfa-expression", "root", "rsp+48 same c-8"):
        assert expected in said, (expected, sorted(said))
    assert got.unsupported


def test_a_signal_frame_begins_one_byte_earlier(tmp_path):
    need("gcc")
    context = ".cfi_escape 0x0f,0x04,0x77,0xa0,0x01,0x06"  # *(RSP + 160)
    path = assembled(tmp_path, f"""
	.text
	.fill 16, 1, 0x90
handler_return: .cfi_startproc
	.cfi_signal_frame
	{context}
	mov $15, %rax
	syscall
	.cfi_endproc
	.fill 64, 1, 0x90
no_context: .cfi_startproc
	.cfi_signal_frame
	nop
	.cfi_endproc
""")
    got = {r: a for a, r in reversed(rows(path))}
    text = int(re.search(r"\] \.text +PROGBITS +([0-9a-f]+)", sh("readelf", "-SW", str(path))).group(1), 16)
    assert got["signal"] == text + 15
    assert got["unsupported:return-address"] == text + 16 + 9 + 64


# ---- code that nothing describes ----

def test_instructions_end_where_objdump_says():
    need("objdump")
    said = set()
    for path in ("/lib/x86_64-linux-gnu/libc.so.6", "/usr/lib/x86_64-linux-gnu/libz.so.1", compare.INDEX):
        for line in oracle.lines_of(["objdump", "-d", "--insn-width=16", os.path.realpath(path)]):
            part = line.split("\t")
            # a prefix alone is no instruction; fwait before one is one
            if len(part) > 2 and "(bad)" not in part[2] and not re.match(r"(\w+16|[defgcs]s|rex\S*|repn?z|lock|fst?\w+) *$|f(n?st[ce]w|save|clex|init)",
                                                                         part[2].strip()):
                said.add(part[1].replace(" ", ""))
    said = sorted(said)
    done = subprocess.run([helper("insnlen")], input="\n".join(said), capture_output=True, text=True, check=True)
    wrong = [(code, n) for code, n in zip(said, done.stdout.split()) if int(n) * 2 != len(code)]
    assert len(said) > 20000
    assert not wrong, wrong[:20]


def test_followed_code_has_the_rows_that_its_compiler_wrote():
    paths = ["/bin/bash", "/usr/lib/x86_64-linux-gnu/libz.so.1", "/usr/lib/x86_64-linux-gnu/libsqlite3.so.0",
             "/lib/x86_64-linux-gnu/libc.so.6"]
    said = sh(helper("followed"), *[os.path.realpath(p) for p in paths if os.path.exists(p)])
    print(said)
    for line in said.splitlines():
        same, different, silent = (int(n) for n in line.split()[:3])
        assert different <= 0.01 * same, line
        assert silent <= 0.08 * same, line


@pytest.mark.parametrize("headers", (True, False), ids=("sections", "no sections"))
def test_what_stands_before_the_code_of_its_segment_is_not_followed(tmp_path, headers):
    """Code and headers in one segment at address 0, and data full of zeros: none of them is a function."""
    need("gcc")
    path = build(tmp_path, "together", "-O2", "-shared", "-fPIC", "-nostdlib", "-fno-asynchronous-unwind-tables",
                 "-Wl,-z,noseparate-code", source="""
                 static int other(int x) { return x * 3; }
                 int (*pointer)(int) = other;
                 void *zeros[4] = {0, other, 0};
                 int sigaction(int a, void *b, void *c) { (void)b; (void)c; return pointer(a) + 1; }""", libs=())
    text = int(re.search(r" \.text +PROGBITS +([0-9a-f]+)", sh("readelf", "-SW", str(path))).group(1), 16)
    if not headers:
        without_section_headers(path)
    found = [address for address, row in rows(path) if row != "none"]
    assert text in found, "its code is followed"
    assert min(found) >= (text if headers else 64)


@pytest.mark.parametrize("how", ("musl", "musl stripped", "glibc"))
def test_each_step_of_a_program_finds_its_caller(tmp_path, how):
    """The processor as oracle: every instruction that runs, with the return address and RBP that the call left."""
    need("musl-gcc" if "musl" in how else "gcc")
    path = build(tmp_path, "library", "-O2", "-static", "-no-pie", cc="musl-gcc" if "musl" in how else "gcc",
                 source=open(os.path.join(ROOT, "tests", "rows", "library.c")).read())
    if "stripped" in how:
        sh("strip", str(path))
    sh(compare.INDEX, str(path), "-o", str(tmp_path / "index"))
    (tmp_path / "rows").write_text(sh(compare.INDEX, "--dump-rows", str(tmp_path / "index")))
    done = subprocess.run([helper("stepper"), str(tmp_path / "rows"), str(path)], capture_output=True, text=True,
                          errors="replace", env={"HOME": "/", "LC_ALL": "C"})
    assert done.returncode == 0, done.stderr
    steps, right, wrong, none, other = (int(n) for n in done.stdout.split()[-5:])
    print(how, steps, right, wrong, none, other)
    assert steps > 50000
    assert not wrong, done.stderr
    assert none + other <= 0.002 * steps
