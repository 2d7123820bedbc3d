# SPDX-License-Identifier: Apache-2.0
"""symbolizer: compares what sonde-index says of addresses with what llvm-symbolizer says."""
import os
import random
import shutil
import subprocess

from conftest import BIN


def llvm():
    """Path of llvm-symbolizer, or None."""
    return shutil.which("llvm-symbolizer") or shutil.which("llvm-symbolizer-14")


def functions(index):
    """[(start, size)] of what the index knows of, but PLT stubs. Between functions is padding, where nothing runs."""
    out = subprocess.run([f"{BIN}/sonde-index", "--dump", index], capture_output=True, text=True,
                         errors="surrogateescape", check=True).stdout
    rows = [line.split(" ", 2) for line in out.splitlines() if line[0] != "#"]
    return [(int(start, 16), int(size, 16)) for start, size, name in rows if not name.endswith("@plt")]


def some_addresses(index, count, seed):
    rng = random.Random(seed)
    known = functions(index)
    chosen = rng.choices(known, [size for _, size in known], k=count)
    return [start + rng.randrange(size) for start, size in chosen]


def blocks(text):
    """[[(function, file, line, column)]] of both programs' form."""
    out = []
    for block in text.rstrip("\n").split("\n\n"):
        lines = block.split("\n")
        frames = []
        for function, place in zip(lines[::2], lines[1::2]):
            file, line, column = place.rsplit(":", 2)
            frames.append((function, file, int(line), int(column)))
        out.append(frames)
    return out


def ask_sonde(index, addresses):
    text = "".join(f"{a:x}\n" for a in addresses)
    return blocks(subprocess.run([f"{BIN}/sonde-index", "--at", index], input=text, capture_output=True, text=True,
                                 errors="surrogateescape", check=True).stdout)


def ask_llvm(path, addresses):
    """Names from the file, demangled by c++filt, as sonde's library does."""
    text = "".join(f"0x{a:x}\n" for a in addresses)
    said = subprocess.run([llvm(), f"--obj={path}", "--inlines", "--functions=linkage", "--no-demangle"], input=text,
                          capture_output=True, text=True, errors="surrogateescape", check=True).stdout
    readable = subprocess.run(["c++filt", "-i"], input=said, capture_output=True, text=True, errors="surrogateescape",
                              check=True).stdout
    return blocks(readable)


def same_place(ours, theirs):
    """Without debug information llvm-symbolizer takes a bare file name of the symbol table, at line 0."""
    if ours[1:] == ("??", 0, 0) and theirs[2:] == (0, 0) and "/" not in theirs[1]:
        return True
    return os.path.normpath(ours[1]) == os.path.normpath(theirs[1]) and ours[2:] == theirs[2:]


def same(ours, theirs):
    """Equal chains: inlined functions, and file, line and column of every frame. The physical function's name is that of
    the symbol table, which other tests look at."""
    if len(ours) != len(theirs) or [f[0] for f in ours[:-1]] != [f[0] for f in theirs[:-1]]:
        return False
    return all(same_place(a, b) for a, b in zip(ours, theirs))


def compare(index, path, count, seed):
    """[(address, ours, theirs)] of those that differ. `path`: the file that llvm-symbolizer reads."""
    addresses = some_addresses(index, count, seed)
    ours, theirs = ask_sonde(index, addresses), ask_llvm(path, addresses)
    assert len(ours) == len(theirs) == count
    return [(a, o, t) for a, o, t in zip(addresses, ours, theirs) if not same(o, t)]
