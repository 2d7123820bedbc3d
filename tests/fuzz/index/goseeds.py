#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""goseeds OUTDIR: seeds for gotables_fuzz: a small pclntab of each generation, as loaders/index/go/pclntab.h and its
neighbours tell the format, with the code that Go's runtime has in the functions that goframe.h names (both manners: with
frame pointers pushed, as from Go 1.21 on, and stored, as before)."""
import os
import struct
import sys

TEXT = 0x401000

# name, code, depths: (value, up to) ...
PUSH = bytes.fromhex("554889e5")
STORE = bytes.fromhex("4883ec1848896c2410488d6c2410")
OUT = bytes.fromhex("488b6c24104883c418c3")
G = bytes.fromhex("64488b0425f8ffffff")
LOADS = bytes.fromhex("488b6638")
FUNCS = [
    ("runtime.systemstack", PUSH + G + bytes.fromhex("483b83b8000000488b6238ffd7488b60385dc35dffe7"), [(0, 1), (8, 40)]),
    ("runtime.morestack", G + bytes.fromhex("48896f60488b6338e800000000c3"), [(0, 30)]),
    ("runtime.asmcgocall", PUSH + bytes.fromhex("4889e2488b66384883ec104883e4f048897c240848893c24e8000000004889f45dc3"
                                                "4889e24883ec104883e4f048891424e800000000488b34244889f45dc3"), [(0, 1), (8, 80)]),
    ("runtime.nanotime1", STORE + LOADS + bytes.fromhex("4883e4f0ffd04c89e4") + OUT, [(0, 4), (24, 44), (0, 46)]),
    ("runtime.walltime1", STORE + bytes.fromhex("4889e5") + LOADS + OUT, [(0, 4), (24, 40)]),
    ("runtime.cgocallback", PUSH + bytes.fromhex("4889fcffd0488b66385dc3"), [(0, 1), (8, 14), (0, 15)]),
    ("runtime.sigfwd", bytes.fromhex("4889e34883e4f0ffd04889dcc3"), [(0, 13)]),
    ("runtime.mcall", bytes.fromhex("498b66385041ffd458c3"), [(0, 10)]),
    ("gogo", bytes.fromhex("488b23488b6b28ffe3"), [(0, 9)]),
    ("runtime.goexit", b"\x90\xc3", [(0, 2)]),
    ("runtime.sigreturn", bytes.fromhex("48c7c00f0000000f05"), [(0, 9)]),
    ("runtime.asyncPreempt", PUSH + b"\x9c\x90\x9d\x5d\xc3", [(0, 1), (8, 5), (16, 7), (8, 8), (0, 9)]),
    ("syscall.rawVforkSyscall", bytes.fromhex("415c0f054154c3"), [(0, 2), (-8, 6), (0, 7)]),
    ("main.big", bytes.fromhex("4881ec001000004889ac24f80f0000c3"), [(0, 7), (0x1000, 16)]),
    ("main.user", bytes.fromhex("4154554881ec000000014883e4c0c3"), [(0, 2), (8, 3), (16, 9), (1 << 24, 14)]),
]
USER_FLAGS = {"main.user": 2}


def varint(v):
    out = b""
    while v >= 0x80:
        out += bytes([v & 0x7f | 0x80])
        v >>= 7
    return out + bytes([v])


def pc_table(steps):
    out, value, at = b"", -1, 0
    for v, end in steps:
        if end <= at:
            break
        d = v - value
        out += varint((d << 1) if d >= 0 else (-d << 1) - 1) + varint(end - at)
        value, at = v, end
    return out + b"\0"


class Blob:
    def __init__(self, first=b""):
        self.bytes = first

    def add(self, b):
        at = len(self.bytes)
        self.bytes += b
        return at


def trees(gen, names):
    """Two calls, the second inside the first."""
    f = names.add(b"main.inner\0")
    g = names.add(b"main.outer\0")
    if gen == 20:
        return struct.pack("<B3xIIi", 0, f, 1, 9) + struct.pack("<B3xIIi", 0, g, 2, 9)
    first = 1 if gen == 2 else 0
    return struct.pack("<hBxiiII", -1, 0, first, 7, f, 1) + struct.pack("<hBxiiII", 0, 0, first, 8, g, 2)


def seed(gen):
    names, pctab, code = Blob(), Blob(b"\0"), b""
    if gen == 2:  # all offsets count from the table's beginning: one blob behind functab
        head_len = 8 + 8 + (2 * len(FUNCS) + 1) * 8 + 8
        names = pctab = Blob(b"\0" * head_len)
    tree = trees(gen, names)
    rows = []
    for name, body, depths in FUNCS:
        size = len(body)
        rows.append(dict(name=names.add(name.encode() + b"\0"), start=len(code), flags=USER_FLAGS.get(name, 0),
                         pcsp=pctab.add(pc_table([(v, min(e, size)) for v, e in depths])),
                         file=pctab.add(pc_table([(1 if gen == 2 else 0, size)])),
                         line=pctab.add(pc_table([(5, 1), (6, size)])),
                         inl=pctab.add(pc_table([(v, min(e, size)) for v, e in ((-1, 1), (1, 2), (0, 3), (-1, size))]))))
        code += body + b"\xcc" * (-size % 16)
    memory = code + tree
    tree_at = len(code)
    pcln = Blob()
    files = b"/src/main.go\0"
    word = "<Q" if gen in (2, 16) else "<I"
    base = TEXT if gen in (2, 16) else 0
    functab_len = (2 * len(FUNCS) + 1) * struct.calcsize(word)
    records = []
    start = head_len - functab_len - 8 if gen == 2 else 0
    body = names if gen == 2 else Blob(b"\0" * (functab_len + -functab_len % 8))
    for r in rows:
        body.bytes += b"\0" * (-len(body.bytes) % 8)
        at = len(body.bytes)
        funcdata_n = 5 if gen in (2, 16) else 4
        b = struct.pack(word, base + r["start"]) + struct.pack("<iiIIIII", r["name"], 0, 0, r["pcsp"], r["file"], r["line"], 3)
        if gen >= 16:
            b += struct.pack("<I", 0)
        if gen == 20:
            b += struct.pack("<i", 4)
        b += bytes([0, r["flags"] if gen >= 18 else 0, 0, funcdata_n]) + struct.pack("<III", 0, 0, r["inl"])
        b += b"\0" * (-(at + len(b)) % struct.calcsize(word))
        none = 0 if gen in (2, 16) else 0xffffffff
        b += struct.pack(word, none) * (funcdata_n - 1) + struct.pack(word, (TEXT if base else 0) + tree_at)
        body.bytes += b
        records.append((base + r["start"], at))
    functab = b"".join(struct.pack(word, v) for pair in records for v in pair) + struct.pack(word, base + len(code))
    magic = {2: 0xfffffffb, 16: 0xfffffffa, 18: 0xfffffff0, 20: 0xfffffff1}[gen]
    head = struct.pack("<IBBBBQ", magic, 0, 0, 1, 8, len(FUNCS))
    if gen == 2:
        file_at = body.add(files)
        body.bytes += b"\0" * (-len(body.bytes) % 4)
        array = body.add(struct.pack("<II", 2, file_at))
        table = bytearray(body.bytes)
        table[:16 + len(functab)] = head + functab
        table[16 + len(functab):20 + len(functab)] = struct.pack("<I", array)
    else:
        n = 8 + 8 * (8 if gen >= 18 else 7)
        cu = struct.pack("<II", 0, 0xffffffff)
        at = [n]
        for part in (names.bytes, cu, files, pctab.bytes):
            at.append(at[-1] + len(part))
        pad = -at[4] % 8
        words = [1] + ([0] if gen >= 18 else []) + at[:4] + [at[4] + pad]
        body = bytearray(body.bytes)
        body[:len(functab)] = functab
        table = head + struct.pack("<%dQ" % len(words), *words) + names.bytes + cu + files + pctab.bytes + b"\0" * pad + body
    return struct.pack("<I", len(table)) + bytes(table) + memory


def main():
    out = sys.argv[1]
    os.makedirs(out, exist_ok=True)
    for gen in (2, 16, 18, 20):
        with open(os.path.join(out, "hand%d" % gen), "wb") as f:
            f.write(seed(gen))
    with open(os.path.join(out, "build"), "wb") as f:
        f.write(b"\xff Go buildinf:\x08\x02" + b"\0" * 16 + b"\x08go1.26.8\0\0\0")


if __name__ == "__main__":
    main()
