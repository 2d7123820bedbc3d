# SPDX-License-Identifier: Apache-2.0
"""Source lines and inlined functions: what sonde-index knows of random addresses equals what llvm-symbolizer says, for all
that compilers, compressors, dwz and separate debug files make of debug information; and large ones come in a second step."""
import glob
import os
import shutil
import subprocess
import tempfile

import pytest

import symbolizer
from conftest import BIN, ROOT, WORKLOADS, need, need_root, scale
from test_maps import READY, server  # noqa: F401 (a fixture)

SOURCES = os.path.join(ROOT, "tests", "e2e", "lines")
ADDRESSES = scale(2000, 10000)


def run(*command, **more):
    done = subprocess.run(command, capture_output=True, text=True, **more)
    assert done.returncode == 0, f"{command}: {done.stderr}"
    return done.stdout


def index_of(path, *options):
    run(f"{BIN}/sonde-index", path, "-o", path + ".idx", *options)
    return path + ".idx"


def agrees(path, asked=None, count=ADDRESSES):
    index = index_of(path)
    differ = symbolizer.compare(index, asked or path, count, seed=1)
    told = "\n".join(f"{a:x}\n  sonde {o}\n  llvm  {t}" for a, o, t in differ[:5])
    assert len(differ) <= count / 1000, f"{len(differ)} of {count} differ\n{told}"


BUILT = tempfile.TemporaryDirectory(prefix="sonde-lines-")


def built(scratch, compiler, source, *options):
    """The program, in `scratch`: each kind is compiled once."""
    need(compiler, shutil.which(compiler))
    need("llvm-symbolizer", symbolizer.llvm())
    kept = os.path.join(BUILT.name, "".join(c if c.isalnum() else "_" for c in " ".join((compiler, source, *options))))
    if not os.path.exists(kept):
        run(compiler, "-O2", "-o", kept, os.path.join(SOURCES, source), *options, cwd=scratch)
    return shutil.copy(kept, os.path.join(scratch, "many"))


@pytest.mark.parametrize("version", [2, 3, 4, 5])
@pytest.mark.parametrize("compiler", ["gcc", "clang"])
def test_every_version_of_dwarf_agrees_with_llvm_symbolizer(scratch, compiler, version):
    agrees(built(scratch, compiler, "many.c", "-g", f"-gdwarf-{version}"))


# C++ is compiled once in the everyday tests, as DWARF 5: each further version costs seconds of compiler (make long-capture)
@pytest.mark.parametrize("version", [5, pytest.param(4, marks=pytest.mark.long), pytest.param(2, marks=pytest.mark.soak),
                                     pytest.param(3, marks=pytest.mark.soak)])
def test_cxx_agrees(scratch, version):
    agrees(built(scratch, "g++", "many.cc", "-g", f"-gdwarf-{version}"))


@pytest.mark.soak
@pytest.mark.parametrize("compiler,options", [
    ("g++", ["-g", "-O3", "-flto"]), ("g++", ["-g", "-ffunction-sections", "-Wl,--gc-sections"]),
    ("g++", ["-g", "-gdwarf64"]), ("g++", ["-g1"]), ("g++", ["-g", "-no-pie", "-static"]), ("clang++", ["-g", "-O3"])])
def test_other_ways_to_build_agree_too(scratch, compiler, options):
    agrees(built(scratch, compiler, "many.cc", *options))


def test_rust_agrees(scratch):
    need("rustc", shutil.which("rustc"))
    need("llvm-symbolizer", symbolizer.llvm())
    out = os.path.join(scratch, "many")
    run("rustc", "-g", "-C", "opt-level=2", "-o", out, os.path.join(SOURCES, "many.rs"))
    agrees(out)


@pytest.mark.parametrize("packing", ["zlib", "zlib-gnu"])
def test_compressed_sections_are_read(scratch, packing):
    path = built(scratch, "g++", "many.cc", "-g", "-gdwarf-5")
    packed = path + ".packed"
    run("objcopy", f"--compress-debug-sections={packing}", path, packed)
    agrees(packed, asked=path)


def separate(path):
    """Debug information into a file of its own beside the program, as Debian does it."""
    run("objcopy", "--only-keep-debug", path, path + ".debug")
    shutil.copy(path, path + ".stripped")
    run("strip", path + ".stripped")
    run("objcopy", f"--add-gnu-debuglink={path}.debug", path + ".stripped")
    return path + ".stripped"


def test_a_separate_debug_file_is_read(scratch):
    path = built(scratch, "g++", "many.cc", "-g", "-gdwarf-5")
    agrees(separate(path), asked=path)


def test_a_debug_file_for_lines_alone_is_found_too(scratch):
    """The program keeps its symbols: the debug file is wanted for its lines."""
    path = built(scratch, "g++", "many.cc", "-g", "-gdwarf-5")
    run("objcopy", "--only-keep-debug", path, path + ".debug")
    shutil.copy(path, path + ".bare")
    run("strip", "--strip-debug", path + ".bare")
    run("objcopy", f"--add-gnu-debuglink={path}.debug", path + ".bare")
    agrees(path + ".bare", asked=path)


@pytest.mark.parametrize("version", [5, pytest.param(4, marks=pytest.mark.long)])
def test_what_dwz_shares_within_a_file_is_followed(scratch, version):
    need("dwz", shutil.which("dwz"))
    path = built(scratch, "g++", "many.cc", "-g", f"-gdwarf-{version}")
    shutil.copy(path, path + ".dwz")
    run("dwz", path + ".dwz")
    agrees(path + ".dwz", asked=path)


@pytest.mark.parametrize("version", [5, pytest.param(4, marks=pytest.mark.long)])
def test_what_dwz_shares_among_files_is_followed_and_told_where_it_is_missing(scratch, version):
    need("dwz", shutil.which("dwz"))
    one = built(scratch, "g++", "many.cc", "-g", f"-gdwarf-{version}")
    shutil.copy(one, one + ".whole")
    shutil.copy(one, os.path.join(scratch, "two"))
    run("dwz", "-m", "shared.dwz", "many", "two", cwd=scratch)
    agrees(one, asked=one + ".whole")
    os.rename(os.path.join(scratch, "shared.dwz"), os.path.join(scratch, "gone"))
    assert "dwz" in run(f"{BIN}/sonde-index", "--dump", index_of(one)).split("# lines-note", 1)[1].split("\n")[0]


def test_what_libelf_cannot_unpack_is_said(scratch):
    """A section that claims to be compressed with zstd (ch_type 2)."""
    path = built(scratch, "gcc", "many.c", "-g", "-gz=zlib")
    where = run("readelf", "-SW", path)
    at = next(line.split("]", 1)[1].split() for line in where.splitlines() if ".debug_info" in line)
    with open(path, "r+b") as f:
        f.seek(int(at[3], 16))
        f.write(b"\2\0\0\0")
    said = run(f"{BIN}/sonde-index", "--dump", index_of(path))
    assert "# lines 0 rows" in said and "zstd" in said.split("# lines-note", 1)[1].split("\n")[0]
    assert " main\n" in said


def test_split_debug_information_has_lines_and_says_what_is_missing(scratch):
    path = built(scratch, "gcc", "many.c", "-g", "-gsplit-dwarf")
    index = index_of(path)
    assert ".dwo" in run(f"{BIN}/sonde-index", "--dump", index).split("# lines-note", 1)[1].split("\n")[0]
    main = next(line.split()[0] for line in run("nm", path).splitlines() if line.endswith(" T main"))
    assert "many.c:" in run(f"{BIN}/sonde-index", "--at", index, input=main + "\n")


@pytest.mark.soak
def test_the_largest_debug_file_of_this_machine_agrees(scratch):
    """Debian's libjvm.so (openjdk-17-dbg) or python3 (python3-dbg), where they are installed."""
    need("llvm-symbolizer", symbolizer.llvm())
    found = glob.glob("/usr/lib/debug/.build-id/*/*.debug")
    largest = max(found, key=os.path.getsize, default=None)
    need("a large debug file below /usr/lib/debug (openjdk-17-dbg)", largest and os.path.getsize(largest) > 5e6)
    agrees(shutil.copy(largest, os.path.join(scratch, "large")))


def test_no_lines_leaves_them_out(scratch):
    path = built(scratch, "gcc", "many.c", "-g")
    said = run(f"{BIN}/sonde-index", "--dump", index_of(path, "--no-lines"))
    assert "# lines 0 rows" in said and " main\n" in said


# ---- in two steps ----

def large(scratch):
    """A program that runs until its input ends, with 3 MB of debug information to read."""
    source = os.path.join(scratch, "waits.c")
    with open(source, "w", encoding="utf-8") as f:
        f.write("#include <unistd.h>\nint main(void) { char c; return read(0, &c, 1) < 0; }\n")
    path = os.path.join(scratch, "waits")
    run("gcc", "-g", "-O0", "-o", path, source)
    strings = os.path.join(scratch, "strings")
    run("objcopy", "-O", "binary", "--only-section=.debug_str", "--set-section-flags", ".debug_str=alloc", path, strings)
    with open(strings, "ab") as f:
        f.write(b"x" * 3000000 + b"\0")
    run("objcopy", "--update-section", f".debug_str={strings}", path)
    return path


def lines_of(index):
    return int(run(f"{BIN}/sonde-index", "--dump", index).split("# lines ", 1)[1].split()[0])


def test_large_debug_information_comes_in_a_second_step(scratch, store, server):  # noqa: F811
    need_root()
    path = large(scratch)
    connect, _, _ = server("--store", store)
    client = connect()
    with subprocess.Popen([path], stdin=subprocess.PIPE) as child:
        state, first, _, fds = client.want(path)
        assert (state, fds) == (READY, 1)
        image = max(i for i, p in client.images.items() if p == path)
        client.until(lambda: client.index[image][1] != first)
        state, second, _, fds = client.index[image]
        assert (state, fds) == (READY, 1)
        child.stdin.close()
    assert lines_of(os.path.join(store, "images", first)) == 0
    assert lines_of(os.path.join(store, "images", second)) > 0


def test_no_second_step_where_lines_are_not_wanted(scratch, store, server):  # noqa: F811
    need_root()
    path = large(scratch)
    connect, _, _ = server("--store", store, "--no-lines")
    client = connect()
    with subprocess.Popen([path], stdin=subprocess.PIPE) as child:
        state, key, _, _ = client.want(path)
        assert state == READY
        child.stdin.close()
    assert lines_of(os.path.join(store, "images", key)) == 0


def test_a_second_step_that_fails_leaves_the_names_and_is_not_tried_again(scratch, store, server):  # noqa: F811
    need_root()
    path = large(scratch)
    program = os.path.join(scratch, "index")
    with open(program, "w", encoding="utf-8") as f:
        f.write(f'#!/bin/sh\n[ "$1" = --all-lines ] && kill -SEGV $$\nexec {BIN}/sonde-index "$@"\n')
    os.chmod(program, 0o755)
    connect, _, _ = server("--store", store, "--index", program)
    client = connect()
    with subprocess.Popen([path], stdin=subprocess.PIPE) as child:
        _, first, _, _ = client.want(path)
        image = max(i for i, p in client.images.items() if p == path)
        client.until(lambda: client.index[image][1] != first)
        state, second, _, _ = client.index[image]
        assert state == READY
        child.stdin.close()
    said = run(f"{BIN}/sonde-index", "--dump", os.path.join(store, "images", second))
    assert " main\n" in said and "failed" in said.split("# lines-note", 1)[1].split("\n")[0]


def test_record_without_lines_names_functions_alone(sonde, store, sql):
    need_root()
    program = os.path.join(WORKLOADS, "hotlines")
    need("workload hotlines", program)
    sonde("record", "--no-lines", "--", program, "1", store=store, check=True)  # until it ends
    rows = sql(store, "SELECT function, file, line FROM cpu_samples WHERE function IN ('hot', 'outer')")
    assert rows and {(r["file"], r["line"]) for r in rows} <= {("", 0), (None, 0), (None, None)}
