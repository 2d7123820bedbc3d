# SPDX-License-Identifier: Apache-2.0
"""How far a name reaches that has no size: never into what another table says is another function's. The oracles: the objects
that musl's archive is made of, and what readelf reads in .eh_frame."""
import glob
import os
import re
import shutil
import subprocess

import pytest

from conftest import BIN

MUSL = "/usr/lib/x86_64-linux-musl"

ASM = """
	.text
	.globl unsized
	.type unsized, @function
unsized:
	.cfi_startproc
	xor %eax, %eax
	ret
	.cfi_endproc
	.p2align 6
	.type hidden, @function
hidden:
	.cfi_startproc
	mov $1, %eax
	ret
	.cfi_endproc
	.size hidden, .-hidden
	.globl bare
	.type bare, @function
bare:
	xor %edx, %edx
	ret
	.p2align 6
	.type hidden2, @function
hidden2:
	.cfi_startproc
	mov $2, %eax
	ret
	.cfi_endproc
	.size hidden2, .-hidden2
"""


def run(*argv):
    return subprocess.run(argv, capture_output=True, text=True, check=True).stdout


def names(path, tmp_path):
    """{address: (size, name)} as sonde-index has them."""
    run(f"{BIN}/sonde-index", path, "-o", f"{tmp_path}/index", "--no-lines")
    rows = (line.split(None, 2) for line in run(f"{BIN}/sonde-index", "--dump", f"{tmp_path}/index").splitlines())
    return {int(r[0], 16): (int(r[1], 16), r[2]) for r in rows if len(r) == 3 and re.fullmatch("[0-9a-f]{16}", r[0])}


def symbols(path, *options):
    """(address, size, name) of each function that readelf shows as defined."""
    for line in run("readelf", "-sW", *options, path).splitlines():
        m = re.match(r" *\d+: ([0-9a-f]+) +(\d+) (?:FUNC|IFUNC|NOTYPE) +\S+ +\S+ +\d+ ([^ @]+)", line)
        if m:
            yield int(m[1], 16), int(m[2]), m[3]


@pytest.mark.skipif(not os.path.exists(f"{MUSL}/libc.a"), reason="missing: musl-dev")
def test_no_function_of_musl_without_a_size_reaches_beyond_the_object_it_came_from(tmp_path):
    objects = {}
    for line in run("nm", "-A", "--defined-only", f"{MUSL}/libc.a").splitlines():
        m = re.match(r"\S+:(\S+):([0-9a-f]+) [TtWw] (\S+)$", line)
        if m:
            objects[m[3]] = (m[1], int(m[2], 16))
    sizes = {}
    member = None
    for line in run("objdump", "-h", f"{MUSL}/libc.a").splitlines():
        member = line.split(":")[0] if "file format" in line else member
        m = re.match(r" *\d+ \.text +([0-9a-f]+) ", line)
        if m:
            sizes[member] = int(m[1], 16)
    have, checked = names(f"{MUSL}/libc.so", tmp_path), []
    for addr, size, name in symbols(f"{MUSL}/libc.so", "--dyn-syms"):
        if size or name not in objects or addr not in have or objects[name][0] not in sizes:
            continue
        left = sizes[objects[name][0]] - objects[name][1]
        assert have[addr][0] <= left + 15, f"{name}: {have[addr][0]} bytes, {left} to the end of its object"  # 15: padding
        checked.append(name)
    assert {"memset", "memcpy", "setjmp"} <= set(checked) and len(checked) > 20
    memset = next(addr for addr, _, name in symbols(f"{MUSL}/libc.so", "--dyn-syms") if name == "memset")
    assert have[memset][0] == sizes["memset.lo"]


def test_a_function_without_a_size_ends_where_eh_frame_says_that_one_ends_or_another_begins(tmp_path):
    (tmp_path / "a.s").write_text(ASM)
    run("gcc", "-shared", "-nostdlib", "-o", f"{tmp_path}/full.so", f"{tmp_path}/a.s")
    run("strip", "-o", f"{tmp_path}/a.so", f"{tmp_path}/full.so")
    at = {name: addr for addr, _, name in symbols(f"{tmp_path}/full.so")}
    have = names(f"{tmp_path}/a.so", tmp_path)
    assert have[at["unsized"]] == (3, "unsized")
    assert have[at["bare"]] == (at["hidden2"] - at["bare"], "bare")
    assert not any(at[h] in range(a, a + size) for h in ("hidden", "hidden2") for a, (size, _) in have.items())


@pytest.mark.skipif(not shutil.which("readelf"), reason="missing: readelf")
def test_no_name_without_a_size_crosses_an_edge_that_readelf_reads_in_the_eh_frame_of_this_machines_libraries(tmp_path):
    paths = {os.path.realpath(p) for p in glob.glob("/usr/lib/x86_64-linux-gnu/*.so*")}
    loose_ones = 0
    for path in sorted(p for p in paths if 100000 < os.path.getsize(p) < 3 << 20)[:60]:
        loose = {addr for addr, size, _ in symbols(path, "--dyn-syms") if not size}
        if not loose:
            continue
        have = names(path, tmp_path)
        edges = [int(w, 16) for m in re.findall(r"FDE cie=\S+ pc=([0-9a-f]+)\.\.([0-9a-f]+)", run("readelf", "--debug-dump=frames", path))
                 for w in m]
        for addr in loose & set(have):
            assert not [e for e in edges if addr < e < addr + have[addr][0]], f"{path}: {have[addr]} at {addr:x}"
            loose_ones += 1
    assert loose_ones
