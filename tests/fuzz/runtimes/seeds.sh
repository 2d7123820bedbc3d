#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# seeds.sh OUTDIR: a small process for each shape of frames, as python_fuzz lays it out, and line tables of python3's own.
set -eu
out=$1
mkdir -p "$out/python_fuzz" "$out/pylines_fuzz" "$out/php_fuzz" "$out/perl_fuzz" "$out/ruby_fuzz" "$out/beam_fuzz" "$out/hotspot_fuzz" "$out/v8_fuzz" "$out/v8tables_fuzz" "$out/v8flow_fuzz"
python3 - "$out" <<'END'
import re
import struct
import sys

BASE = 0x10000
out = sys.argv[1]


def process(choice):
    mem = bytearray(0x800)
    shape, kind = 1 + choice % 3, 1 + choice // 3 % 4

    def put(at, *words):
        struct.pack_into(f"<{len(words)}Q", mem, at, *words)

    def text(at, s, width=1, ascii_=True):
        put(at, 1, BASE + (24 if kind == 1 else 16), len(s))
        if kind == 1:
            mem[at + 24:at + 24 + len(s)] = s.encode("latin-1")
            return
        put(at + 24, width << 2 | 1 << 5 | ascii_ << 6)
        data = s.encode({1: "latin-1", 2: "utf-16-le", 4: "utf-32-le"}[width])
        start = at + (32 if ascii_ else 48)
        mem[start:start + len(data)] = data

    put(32, 72)                       # PyCode_Type.tp_basicsize
    put(40, BASE + 0x80)              # the interpreter
    put(0x80, 0, BASE + 0xa0)
    put(0xa0, 0, 7, BASE + (0x100 if shape == 1 or choice & 0x40 else 0xc0))  # the thread
    put(0xc0, BASE + 0x100, 0)        # a _PyCFrame, in the first native frame
    put(0x100, BASE + 0x120, BASE + 0x300, BASE + 0x300 + 72 if shape > 1 else 4, 0)
    put(0x120, 0, BASE + 0x300, BASE + 0x300 + 72 if shape > 1 else 2 ** 64 - 1, 1 if shape == 2 else 3)
    put(0x300, 1, BASE, 4, 10, BASE + 0x380, BASE + 0x400, BASE + 0x480, BASE + 0x500)
    text(0x380, "app.py")
    text(0x400, "f\u20ac" if kind > 1 else "f", 2, False)
    text(0x480, "A.f\U0001f40d" if kind > 1 else "f", 4, False)
    put(0x500, 1, BASE + 24, 4)
    mem[0x518:0x51c] = b"\xd9\0\0\x80"
    return bytes([choice]) + bytes(mem)


def php(choice):
    mem = bytearray(0x600)

    def put(at, *words):
        struct.pack_into(f"<{len(words)}Q", mem, at, *words)

    def string(at, s):
        put(at, 6 << 32 | 1, 0, len(s))
        mem[at + 24:at + 24 + len(s)] = s.encode()
        return BASE + at

    def function(at, kind, name, of=0):
        put(at, kind, name, of, 4 << 32, BASE + 0x400, string(0x380, "a.php"))
        return BASE + at

    def frame(at, func, top, back, this=0):
        put(at, BASE + 0x420, 0, 0, func, this, top, back)
        return BASE + at

    put(0x400 + 24, 7)
    put(0x420 + 24, 8)
    put(0x300, 0, string(0x320, "Class"))
    main = frame(0x40, function(0x200, 2, 0), 1 << 17, 0)
    evaled = frame(0x80, function(0x240, 4, 0), 1 << 17, main)
    put(0x500, 0, BASE + 0x520, BASE + 0x80)  # a generator, which waits for another
    put(0x520, 0, 0, 0)
    held = frame(0xc0, 0, 8, evaled, BASE + 0x500)
    called = frame(0x100, function(0x280, 2, string(0x350, "f"), BASE + 0x300), 0, held)
    put(0, frame(0x140, function(0x2c0, 1, string(0x350, "f")), 0, called))
    return bytes([choice]) + bytes(mem)


for choice in (0, 0x80, 0x40):
    with open(f"{out}/php_fuzz/process{choice}", "wb") as f:
        f.write(php(choice))


def perl(choice):
    mem = bytearray(0xc00)

    def put(at, *words):
        struct.pack_into(f"<{len(words)}Q", mem, at, *words)
        return BASE + at

    def sv(at, kind, body, u=0, flags=0):
        return put(at, body, (kind | flags) << 32 | 1, u)

    def hek(at, text, utf8=0):
        struct.pack_into("<II", mem, at, 0, len(text))
        mem[at + 8:at + 8 + len(text)] = text
        mem[at + 9 + len(text)] = utf8
        return BASE + at

    def text(at, s):
        mem[at:at + len(s)] = s
        return BASE + at

    def cop(at, line):
        struct.pack_into("<IIQQ", mem, at + 32, 0, line, 0, BASE + (0x880 if choice & 0x40 else 0x800))
        return BASE + at

    def context(at, kind, caller, back=0, cv=0):
        put(at, kind, 0, caller)
        put(at + 48, back)
        put(at + 72, cv)

    def info(at, contexts, outer, last, kind):
        put(at, 0, contexts, outer, 0, (10 << 32) | (last & 0xffffffff), kind << 32)
        return BASE + at

    text(0x800, b"/srv/a.pl")
    sv(0x880, 9, BASE + 0x8a0)  # the glob of a file's name
    put(0x8a0 + 32, hek(0x8e0, b"_</srv/a.pl"))
    names = hek(0x900, b"P\xebrl")
    # two stashes: with one name, with several
    for at, many in ((0x400, 0), (0x500, 1)):
        aux = at + 0x40 if not choice & 0x20 else at + 0x80 + 8 * 8
        sv(at, 12, BASE + at + 0x20, BASE + at + 0x80, 0x02000000)
        put(at + 0x20 + 24, 7)
        put(aux, BASE + 0x930 if many else names)
        struct.pack_into("<i", mem, aux + 28, many)
    put(0x930, names)
    # a sub by its glob, whose other glob it was defined for; one by its name alone
    sv(0x600, 13, BASE + 0x620)
    put(0x620 + 32, 0, 0, BASE + 0x111, BASE + 0x680, BASE + 0x800)
    put(0x620 + 48, BASE + 0x111)
    sv(0x680, 9, BASE + 0x6a0, BASE + 0x6e0)
    sv(0x720, 9, BASE + 0x740)
    put(0x6e0 + 56, BASE + 0x720)
    put(0x740 + 32, hek(0x780, "ώ".encode(), 1), BASE + 0x400)
    sv(0xa00, 13, BASE + 0xa20)
    put(0xa20 + 32, BASE + 0x500, 0, BASE + 0x222, hek(0x7b0, b"named"), BASE + 0x800)
    struct.pack_into("<II", mem, 0xa20 + 88, 7, 0x8000)
    first, second = cop(0x100, 3), cop(0x160, 4)
    context(0x1c0, 9, second, 0, BASE + 0x600)
    context(0x228, 11, first)
    context(0x290, 2, first)
    context(0x2f8, 9, first, 1, BASE + 0xa00)
    context(0x360, 9, first, 1, BASE + 0xa00)
    outer = info(0x40, BASE + 0xb00, 0, 0, 1)
    context(0xb00, 10, second)
    inner = info(0x80, BASE + 0x1c0, outer, 4, 3)
    if choice & 0x40:
        put(0, first, inner)
    else:
        put(0, 0, put(0x20, inner, first))
    return bytes([choice]) + bytes(mem)


for choice in (0, 0x80, 0x40, 0x60, 0x20):
    with open(f"{out}/perl_fuzz/process{choice}", "wb") as f:
        f.write(perl(choice))


def ruby(choice):
    mem = bytearray(0x1000)

    def put(at, *words):
        struct.pack_into(f"<{len(words)}Q", mem, at, *words)

    def text(at, s):
        if choice & 1:
            put(at, 5, 0, len(s))
            mem[at + 24:at + 24 + len(s)] = s.encode()
        else:
            put(at, 5 | len(s) << 14)
            mem[at + 16:at + 16 + len(s)] = s.encode()
        return BASE + at

    def memo(at, kind, *words):
        put(at, kind << 12 | 0x1a, 0, *words)
        return BASE + at

    put(0, BASE + 0x20, BASE + 0x40, 1, 8)  # the VM, fs_base at 0: its table; the slot
    put(0x40, 0, 0, BASE + 0x60, BASE + 0x60)
    put(0x60, BASE + 0x48, BASE + 0x80)     # the thread-local block; a list of one thread, whose id is that of the fuzzer
    put(0x80, BASE + 0x800, 0x400 // 8, BASE + 0xb80, 0, 0, 0, BASE + 0xc0)
    put(0xc0, 0, 0, 0, 0, 0, BASE + 0x80)
    code = memo(0x100, 7, BASE + 0x140)
    put(0x140, 20 << 32, BASE + 0x200)
    put(0x140 + 64, text(0x2a0, "a.rb"), 0, text(0x2d0, "block in f"))
    put(0x140 + 120, BASE + 0x300, 0, 2, BASE + 0x320)
    put(0x300, 7, 0, 9)
    put(0x320, 0x4081, 0, 0, 0, 0, 0, 3)
    put(0x400, 0x1a | 6 << 12, 0, BASE + 0x430, 0, BASE + 0x700)   # a method
    put(0x430, 0, 0, 0, 0, 11 << 4)
    put(0x460, 7 | 1 << 13 | 1 << 15, 0, BASE + 0x480)
    put(0x480, 7, 0, 64, 0, BASE + 0x4b0)
    put(0x4b0 + 176, text(0x670, "each"), 11 << 12 | 0x0c)
    put(0x6c0, 0, 0, BASE + 0x460)
    put(0x700, 3)
    put(0x700 + 152 if choice & 1 else 0x798, text(0x7c0, "Shop"))
    put(0x380, BASE + 0x400, 0, 0x55550081, BASE + 0x400, 0, 0x22220021, 0x1a | 2 << 12, BASE + 0x400)
    put(0xb80, BASE + 0x210, 0, 0, 0, BASE + 0x390)
    put(0xbc0, BASE + 0x218, 0, code, 0, BASE + 0x3a8)
    return bytes([choice]) + bytes(mem)


for choice in range(8):
    with open(f"{out}/ruby_fuzz/process{choice}", "wb") as f:
        f.write(ruby(choice))
def beam(choice, binary, gap, wide):
    """Atoms, two modules, a stack of one caller. `binary`: texts of atoms are binaries (28); `gap`: the interrupted place lies between modules; `wide`: of places."""
    mem = bytearray(0x1200)
    atoms = ("false", "true", "lists", "map", "Elixir.Shop", "-total/1-fun-0-", "wrap", "Upper", "error")

    def put(at, *words):
        struct.pack_into(f"<{len(words)}Q", mem, at, *words)

    def atom(text):
        return atoms.index(text) << 6 | 0xb

    def chars(at, s):
        for i, c in enumerate(s):
            put(at + 16 * i, ord(c) << 4 | 15, BASE + at + 16 * (i + 1) | 1 if i + 1 < len(s) else 0x3b)
        return BASE + at | 1

    table = (BASE + 0x280, 2, 8, BASE + 0x280)
    put(0, *table, *table, *table)
    put(0xc8, BASE + 0x2a0)
    put(0x148, BASE + 0x3f0, 0)
    put(0x160, 0x3b, BASE + 0x613, BASE + 0x610, BASE + 0x9d8, BASE + 0x3f0)
    put(0x280, BASE + 0x400, BASE + (0x8c0 if gap else 0x9c0), BASE + 0x9c0, BASE + 0xc00)
    put(0x2a0, BASE + 0x2b0)
    for i, text in enumerate(atoms):
        at, name = 0xc00 + 40 * i, 0xd80 + 32 * i
        put(0x2b0 + 8 * i, BASE + at)
        struct.pack_into("<IHHIIQ", mem, at + 16, i, len(text), len(text), 0, 0, BASE + name + 2 * binary)
        mem[name + 16 * binary:name + 16 * binary + len(text)] = text.encode()
    for start, lines, functions in ((0x400, 0x840, (0x4c0, 0x600, 0x7c0, 0x838)), (0x9c0, 0xb40, (0xa68, 0xab0, 0xb38))):
        n = len(functions) - 1
        put(start, n)
        put(start + 72, BASE + lines)
        put(start + 8 * (17 if start == 0x400 else 11), *(BASE + f for f in functions))
        for i, f in enumerate(functions[:-1]):
            module = "lists" if start == 0x400 else "Elixir.Shop"
            put(f + 16, atom(module), atom(("map", "wrap", "-total/1-fun-0-", "Upper")[i + (start != 0x400)]), i)
        places = 0xf00
        at = lines + 24 + 8 * (n + 1)
        put(lines, BASE + 0xf20, 4 if wide else 2, BASE + places, *(BASE + at + 8 * i for i in range(n)), BASE + at + 24)
        put(at, BASE + functions[0] + 8, BASE + functions[1] + 8, BASE + functions[n - 1] + 8, BASE + functions[n])
    struct.pack_into("<4I" if wide else "<4H", mem, 0xf00, 7, 8 | (1 << 24 if wide else 0), 9, 10)
    put(0xf20, chars(0xf40, "lists.erl"), atom("error"))
    return bytes([choice]) + bytes(mem)


def beam_below(how):
    """The same, in C code: `how` the code takes its stack back; a scheduler whose thread runs a process."""
    mem = bytearray(beam(5, 0, 0, 0)) + bytearray(0x400)
    at = lambda x: x + 1  # noqa: E731: the first byte chooses
    mem[at(0x800):at(0x800) + len(how)] = how
    struct.pack_into("<2Q", mem, at(0x90), BASE + 0x1000, 0)
    struct.pack_into("<2Q", mem, at(0x1000), 0x7f0000001000, BASE + 0x1100)
    struct.pack_into("<Q", mem, at(0x1100), 0x1233)
    struct.pack_into("<5Q", mem, at(0x1150), BASE + 0x1210, BASE + 0x1280, 0, BASE + 0x1200, BASE + 0x1300)
    struct.pack_into("<2Q", mem, at(0x1178), 0, 0x20)
    return bytes(mem)


for choice in range(4):
    for shape in range(8):
        with open(f"{out}/beam_fuzz/process{choice}{shape}", "wb") as f:
            f.write(beam(choice, shape & 1, shape & 2, shape & 4))
for i, how in enumerate((b"\x85\xc0\x49\x8b\x65\x58\xc3", b"\x48\x89\xec", b"\x49\x89\xc5", b"\x49\x8b\xa5\x98\0\0\0")):
    with open(f"{out}/beam_fuzz/below{i}", "wb") as f:
        f.write(beam_below(how))
for i, name in enumerate(("$lists:map/2", "$'Elixir.Enum':map/2-CodeInfoPrologue", "$'Elixir.Shop':'-total/1-fun-0-'/2", "$shares:'-wrap/1-fun-0-'/1",
                          "$'Elixir.Shop':'-map/2-lists^map/1-0-'/2", "$global::shared", "$'Up':'a b'/255", "$a:b/256")):
    with open(f"{out}/beam_fuzz/name{i}", "wb") as f:
        f.write(b"\0" + name.encode())
NUMBERS = re.findall(r"HOTSPOT_(\w+)", re.sub(r"/\*.*?\*/", "", open("probes/runtimes/hotspot_layout.h").read(), flags=re.S)
                     .split("enum hotspot_number {")[1].split("HOTSPOT_N\n")[0])


def hotspot(choice):
    """An interpreted frame, a compiled one with something inlined, a stub's; then the one that native code has called."""
    mem = bytearray(0x1000)
    new = choice & 1

    def put(at, *words):
        struct.pack_into(f"<{len(words)}Q", mem, at, *words)

    numbers = dict(VERSION=25 if new else 17, THREADS=BASE + 0x300, FIRST_THREAD=BASE + 0x340, HEAPS=BASE + 0x800, LOW=BASE + 0x900, HIGH=BASE + 0xc00,
                   INTERPRETER=BASE + 0x880, CALL_RETURN=BASE + 0x990, LIST_THREADS=8, THREAD_NEXT=0, THREAD_OS=8, THREAD_ANCHOR=16, OS_PTHREAD=0,
                   ANCHOR_FP=8, ANCHOR_PC=16, ARRAY_DATA=8, HEAP_MEMORY=0, HEAP_MAP=16, HEAP_SHIFT=40, SPACE_HIGH=8, BLOCK_USED=8,
                   BLOB_SIZE=8, BLOB_FRAME=12, BLOB_CODE=16, BLOB_CODE_OFFSET=16, NM_METHOD=24, NM_ORIG_PC=72, NM_DEOPT=32, NM_DEOPT_OFFSET=32,
                   NM_PCS=40, NM_IMMUTABLE=64, NM_IMMUTABLE_SIZE=44, NM_PCS_END=44, NM_SCOPES=48, NM_SCOPES_OFFSET=48, NM_METADATA=56, NM_MUTABLE=80,
                   NM_RELOCATIONS=56, PC_SCOPE=4, METHOD_CONST=8, CONST_POOL=0, CONST_CODE_SIZE=8, CONST_NAME=10, CONST_FLAGS=12, POOL_TAGS=8,
                   POOL_LENGTH=16, POOL_SOURCE=20, CLASS_SOURCE=8, SYMBOL_BODY=6, BUFFER_LIMIT=8, BYTES_DATA=4, SIZE_CONST=16, SIZE_POOL=24, SIZE_PC=16,
                   SIZE_BLOCK=16, HAS_LINES=1, CALL_WRAPPER=2 ** 64 - 6, ONE_HEAP=BASE + 0x820)
    for i, name in enumerate(NUMBERS):
        put(8 * i, numbers.get(name, 0))
    put(0x300, 1, BASE + 0x310, BASE + 0x340)                     # the list of threads
    put(0x340, 0, BASE + 0x380, BASE + 0x500, BASE + 0x520, BASE + 0x980)  # a thread: its anchor in an interpreted frame
    put(0x380, 7)
    put(0x520, BASE + 0x560, BASE + 0xa80)                        # fp: the caller's
    put(0x520 - 8, 0)
    put(0x520 - 24, BASE + 0xd00)
    put(0x520 - 64, BASE + 0xd40 + 16 + 2)
    put(0x530 + 16, BASE + 0x5c0, BASE + 0x990)                   # the compiled frame, 32 bytes
    put(0x5c0 - 48, BASE + 0x640)
    put(0x5c0, BASE + 0x700, BASE + 0x980)
    put(0x640, 0, 0, 0)
    put(0x800, 1, BASE + 0x808 + 8, BASE + 0x820)
    put(0x820, BASE + 0x900, BASE + 0xc00, BASE + 0xc80, 0, 0, 4)
    put(0x880, BASE + 0x970, 0x30)
    mem[0xc80:0xcb0] = bytes([0xff] * 16 + list(range(32)))
    put(0xa00, 0, 1, BASE + 0xe80)                                # a block and its blob
    struct.pack_into("<II", mem, 0xa18, 0x180, 4)
    put(0xa20, BASE + 0xa70 if not new else 0x60, BASE + 0xd00, 0)
    struct.pack_into("<II", mem, 0xa38, 0x110 if not new else 0x20, 0x120 if not new else 0x80)
    put(0xa40, BASE + 0xb00 if not new else 0x30, 0xd8 if not new else 0, BASE + 0xaa0, 0, BASE + 0xae8)
    struct.pack_into("<ii", mem, 0xac0 if new else 0xb20, 0x10, 1)
    mem[0xad0:0xadc] = mem[0xb00:0xb0c] = bytes([1, 4 + 1 * new, 1 + new, 2 + new, 0 + new, 1 + new, 1 + new] + [new] * 5)
    put(0xae8, BASE + 0xd00, BASE + 0xd00)
    put(0xd00, 0, BASE + 0xd40)
    put(0xd40, BASE + 0xd80, 20 | 1 << 16 | 1 << 32)
    mem[0xd40 + 16 + 20:0xd40 + 16 + 24] = bytes([0x0a, 0x21, 0x21, 0])
    put(0xd80, BASE + 0xe00, BASE + 0xe20, 3 | 2 << 32, 0, BASE + 0xe40, BASE + 0xe60)
    put(0xe00, BASE + 0xe40, 2)
    mem[0xe24:0xe28] = b"\1\1\1\1"
    for at, s in ((0xe40, b"Shop"), (0xe60, b"Shop.java")):
        struct.pack_into("<H", mem, at, len(s))
        mem[at + 6:at + 6 + len(s)] = s
    mem[0xe80:0xe88] = b"nmethod\0"
    return bytes([choice]) + bytes(mem)


for choice in range(8):
    with open(f"{out}/hotspot_fuzz/process{choice}", "wb") as f:
        f.write(hotspot(choice))
    # the same, interrupted where compiled code ends: what it does there is the first bytes
    for i, code in enumerate((b"\x5d\xc3", b"\x5d\x49\x3b\xa7\0\0\0\0\x0f\x87\0\0\0\0\xc3", b"\x85\x05\0\0\0\0\xc5\xf8\x77\xc3")):
        with open(f"{out}/hotspot_fuzz/end{choice}{i}", "wb") as f:
            f.write(code + hotspot(choice)[len(code):] if code[0] & 7 == choice else bytes([choice]) + code + hotspot(choice)[len(code) + 1:])
def v8(shape):
    """A builtin that interprets, baseline code and optimised code with one function inlined, each of the same function."""
    mem = bytearray(0x2000)
    maps = {}

    def put(at, *words):
        struct.pack_into(f"<{len(words)}Q", mem, at, *[w % 2 ** 64 for w in words])

    def tagged(at):
        return BASE + at + 1

    def small(n):
        return n << 32

    def new(at, kind, *words):
        if kind not in maps:
            maps[kind] = 0xc00 + 16 * len(maps)
            put(maps[kind], tagged(maps[255]) if maps.get(255) else tagged(0xc00))
            struct.pack_into("<H", mem, maps[kind] + 12, kind)
        put(at, tagged(maps[kind]), *words)
        return tagged(at)

    def text(at, kind, s):
        new(at, kind)
        struct.pack_into("<I", mem, at + 12, len(s))
        mem[at + 16:at + 16 + len(s)] = s.encode("latin-1")
        return tagged(at)

    def array(at, data):
        new(at, 190, small(len(data)))
        mem[at + 16:at + 16 + len(data)] = bytes(data)
        return tagged(at)

    maps[255] = 0xc00
    put(0xc00, tagged(0xc00))
    struct.pack_into("<H", mem, 0xc0c, 255)
    put(0, 0x10000 - 0x1000)
    struct.pack_into("<I", mem, 8, 0x1000)
    mem[16:40] = bytes([1, 1, 1, 1, 2, 2, 3, 1] * 3)
    name, file = text(0x300, 40, "sell"), text(0x320, 40, "shop.js")
    source = text(0x340, 40, "function sell() {\n  rest()\n}\n")
    script = new(0x380, 167, source, file, 0)
    scope = new(0x3c0, 261, small(2 | 3 << 12), 0, 0, name, 0, small(13), small(30))
    codes = new(0x400, 191, small(4), 0, 0, array(0x480, [1, 4, 3, 0, 4, 0x4c]))
    mem[0x400 + 54:0x400 + 58] = bytes([4, 6, 7, 7])
    shared = new(0x4c0, 262, codes, scope, 0, script)
    function, context = new(0x500, 2066, 0, 0, shared), new(0x540, 205)
    for fp, at in ((0x100 - 16, small(53)), (0x180 - 16, context), (0x200 - 16, context)):
        put(fp - 40, at, codes, 0, function, context)
    put(0x1010, 0)
    optimised = shape != 4
    code = new(0x600, 245, 0, 0, array(0x4a0, [4, 9, 60]), 0, BASE + 0x1020, 13 if optimised else 11)
    struct.pack_into("<II", mem, 0x638, 0x40, 0)
    new(0x1010, 252, code)
    struct.pack_into("<II", mem, 0x1060, 2, 1 | 1 << 1 | 1 << 4 | 1 << 7)
    mem[0x1068:0x1070] = bytes([0x15, 1, 0, 0, 0x16, 1, 0, 0])
    literals = new(0x700, 175, small(2), shared, shared)
    translations = array(0x740, [2, 0, 4, 4, 24, 0, 0, 0, 31, 2, 24, 2, 2, 0] if shape == 2 else [0, 6, 4, 4, 1, 0, 0, 0, 1, 0, 0, 0])
    data = new(0x780, 175, small(17), translations, 0, literals, 0, 0, 0, shared, 0, small(0x38), small(2), 0, 0, 0, 0, 0, 0, 0)
    check = b"\x0f\x85"  # to an exit; an addition; another check, of the first or of the second
    mem[0x1020:0x1060] = (check + struct.pack("<i", 0x38 - 6) + b"\x90" * 14 + check + struct.pack("<i", 0x38 + 4 * (shape & 1) - 26) +
                          b"\x90" * 29 + b"\xc3" + b"\x41\xff\x55\x10" * 2)
    put(0x610, data)
    return bytes([shape]) + bytes(mem)


for shape in range(5):
    with open(f"{out}/v8_fuzz/process{shape}", "wb") as f:
        f.write(v8(shape))
question, add = b"\x49\x3b\x65\xa0", b"\x41\x03\xc1"
for name, code in (("line", b"\x0f\x85\x0d\0\0\0" + add + b"\x0f\x85\x08\0\0\0" + add + b"\xc3" + bytes(16)),
                   ("loop", add + question + b"\x0f\x87\xf3\xff\xff\xff\x41\xff\x55\x10\xe9\xea\xff\xff\xff"),
                   ("kept", add + question + b"\x0f\x97\xc1" + add + b"\x85\xc9\x75\xef\x41\xff\x55\x10\xeb\xe9"),
                   ("byte", add + b"\x41\x80\x7d\xb1\0\x74\xf6\xe8\0\0\0\0\xeb\xef"),
                   ("byte kept", add + b"\x41\x0f\xb6\x75\xb1" + add + b"\x40\x84\xf6\x74\xf0\xe8\0\0\0\0\xeb\xe9"),
                   ("table", b"\x83\xf8\x02\x73\x0b\x4c\x8d\x15\x05\0\0\0\x41\xff\x24\xc2\xc3" + struct.pack("<QQ", 16, 0))):
    with open(f"{out}/v8flow_fuzz/{name}", "wb") as f:
        f.write(bytes([4, 16 if name in ("line", "table") else 0]) + code)
for name, table in (("positions", b"\5\0\1\4\3\0\x38\x2c\7\0\x11\x43\x94\6\4\xd8\3"), ("baseline", b"\x20\0\x10\4\7\x81\1"),
                    ("safepoint", b"\x15\0\2\0\0\0\x93\0\0\0\x15\1\0\0\x16\2\x20\0"), ("translation", b"\0\0\2\0\4\4\x18\0\0\0\x1f\2\x18\2\2\0"),
                    ("again", b"\6\0\2\0\2\2\x18\4\0\0\2\x0e\2\2\x25\x1f\2")):
    with open(f"{out}/v8tables_fuzz/{name}", "wb") as f:
        f.write(table)
for choice in list(range(12)) + [0x80, 0x41, 0x42, 0xc1, 0xc2, 0x21, 0x31]:
    with open(f"{out}/python_fuzz/shape{choice}", "wb") as f:
        f.write(process(choice))
codes = [c for c in compile(open(struct.__file__).read() + "\n".join(f"def f{i}():\n  x(\n {i},\n y)\n" for i in range(9)), "x", "exec").co_consts
         if hasattr(c, "co_code")]
for i, c in enumerate(codes[:8]):
    with open(f"{out}/pylines_fuzz/code{i}", "wb") as f:
        f.write(struct.pack("<iq", c.co_firstlineno, 6) + (c.co_linetable if hasattr(c, "co_linetable") else c.co_lnotab))
for name, table in (("lnotab", b"\6\1\x32\xc8\0\x64\4\2"), ("pep626", b"\4\1\4\x80\4\1")):
    with open(f"{out}/pylines_fuzz/{name}", "wb") as f:
        f.write(struct.pack("<iq", 7, 4) + table)
END
