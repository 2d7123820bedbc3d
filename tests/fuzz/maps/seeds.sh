#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# seeds.sh OUTDIR: side-band records of each kind, and a talk of sonde-maps.
set -eu
exec /usr/bin/python3 - "$1" <<'PY'
import os
import struct
import sys

out = sys.argv[1]
for name in ("sideband_fuzz", "mapspack_fuzz", "rowsets_fuzz", "textmove_fuzz"):
    os.makedirs(f"{out}/{name}", exist_ok=True)


def seed(name, kind, data):
    with open(f"{out}/{kind}/{name}", "wb") as f:
        f.write(data)


def text(s):
    s = s.encode() + b"\0"
    return s + b"\0" * (-len(s) % 8)


def record(name, kind, misc, body):
    body += struct.pack("<IIQII", 1, 1, 123456789, 1, 0)
    seed(name, "sideband_fuzz", struct.pack("<IHH", kind, misc, 8 + len(body)) + body)


place = struct.pack("<IIQQQ", 10, 11, 0x400000, 0x2000, 0x1000)
record("mmap2", 10, 2, place + struct.pack("<IIQQ", 8, 1, 77, 3) + struct.pack("<II", 5, 2) + text("/usr/bin/true"))
record("mmap2_id", 10, 1 << 14 | 2, place + struct.pack("<BBH20s", 20, 0, 0, bytes(range(20))) + struct.pack("<II", 5, 2)
       + text("//anon"))
record("comm", 3, 0, struct.pack("<II", 10, 11) + text("thread"))
record("exec", 3, 1 << 13, struct.pack("<II", 10, 10) + text("true"))
record("fork", 7, 0, struct.pack("<IIIIQ", 10, 9, 10, 9, 5))
record("exit", 4, 0, struct.pack("<IIIIQ", 10, 9, 10, 9, 5))
record("lost", 2, 0, struct.pack("<QQ", 1, 99))
record("cgroup", 19, 0, struct.pack("<Q", 42) + text("/docker/x"))
record("other", 5, 0, struct.pack("<QQQ", 1, 2, 3))


def message(kind, fixed, *strings):
    body = fixed + b"".join(s.encode() + b"\0" for s in strings)
    body += b"\0" * (-len(body) % 8)
    return struct.pack("<II", kind, 8 + len(body)) + body


def lens(*strings):
    return struct.pack(f"<{len(strings)}I", *map(len, strings))


words = ("comm", "/exe", "a b", "/cg")
process = message(3, struct.pack("<QQQIIIII", 5, 4, 3, 10, 1, 1, 0, 10) + lens(*words) + b"\0" * 4, *words)
image = message(5, struct.pack("<II32sII", 1, 0, b"abc", 3, 6), "/lib/x")
where = struct.pack("<QQQQQIIII", 6, 4, 0x1000, 0x2000, 0, 10, 1, 1, 0)
talk = [message(1, struct.pack("<IIii", 1, 1, 5, 0)), image, process, message(7, where), message(2, b""),
        message(9, struct.pack("<QQ", 7, 2)), process, message(7, where), message(2, b""),
        message(6, struct.pack("<IIII", 1, 2, 0, 3), "", "why"), message(8, struct.pack("<Q", 9)),
        message(10, struct.pack("<7Q", *range(7))), message(4, struct.pack("<QQII", 9, 4, 10, 0)),
        message(64, struct.pack("<II", 1, 1))]
for i, m in enumerate(talk):
    seed(f"one{i}", "mapspack_fuzz", m)
seed("talk", "mapspack_fuzz", b"".join(talk))
seed("sets", "mapspack_fuzz", bytes([10, 90, 0, 1, 1, 50, 20, 10, 3, 0, 1, 25, 0, 200, 9, 1, 1, 3, 255, 1, 0, 0, 0, 5, 254,
                                     20, 0, 0, 0, 1, 5, 5, 5, 1, 1, 6]))

before, behind = ("{} r-xp {} fe:00 247580     /usr/bin/node\n".format(*x) for x in (("00b72000-00c00000", "00772000"), ("02400000-025fe000", "02000000")))
seed("hole", "textmove_fuzz", f"{before}00c00000-02400000 r-xp 00000000 00:00 0 \n{behind}".encode())
seed("parts", "textmove_fuzz", f"{before}00c00000-00e00000 r-xp 00000000 00:00 0 \n00e00000-02400000 rw-p 00000000 00:00 0 \n{behind}".encode())
with open("/proc/self/maps", "rb") as f:
    seed("own", "textmove_fuzz", f.read())

# struct unwind_head, two pages, three rules, one extension, two rows (probes/lib/tables.h)
parts = [1 << 32, 2 << 48 | 1 << 32 | 1, 0, 3, 2 << 16 | 2 << 4 | 6, 1, 2, (9 << 16 | 2) << 32 | 1 << 16 | 1]
seed("small", "rowsets_fuzz", struct.pack("<QIIIIIIII", 0x1000, 2, 2, 3, 1, 2, 0, 0, 0) + struct.pack("<8Q", *parts))
large = [i % 3 << 48 | 1 << 32 | i for i in range(260)] + parts[2:5] + [0, 0] + [0x10001 | (0x10002 << 32)] * 130
seed("parts", "rowsets_fuzz", struct.pack("<QIIIIIIII", 0x1000, 2, 260, 3, 1, 260, 0, 0, 0) + struct.pack(f"<{len(large)}Q", *large))
PY
