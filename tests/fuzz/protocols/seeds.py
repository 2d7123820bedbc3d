# SPDX-License-Identifier: Apache-2.0
"""seeds.py OUTDIR: the conversations of the unit tests, and the kept captures, as inputs of protocol_fuzz.h and packet_fuzz."""
import glob
import os
import re
import struct
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
ESCAPES = {"r": b"\r", "n": b"\n", "t": b"\t", "\\": b"\\", '"': b'"', "?": b"?", "'": b"'", "a": b"\a"}


def c_text(source):
    """The bytes of C string literals, one behind the other."""
    out = b""
    for literal in re.findall(r'"((?:[^"\\]|\\.)*)"', source):
        at = 0
        while at < len(literal):
            if literal[at] != "\\":
                out += literal[at].encode()
                at += 1
                continue
            found = re.match(r"\\(?:x([0-9a-fA-F]+)|([0-7]{1,3})|(.))", literal[at:])
            out += bytes([int(found[1], 16) & 255]) if found[1] else bytes([int(found[2], 8) & 255]) if found[2] else ESCAPES[found[3]]
            at += len(found[0])
    return out


def pieces(turns, kind):
    out = bytes([kind])
    for side, data in turns:
        for i in range(0, len(data), 255):
            part = data[i:i + 255]
            out += bytes([side, len(part)]) + part
    return out


def save(folder, name, data):
    os.makedirs(folder, exist_ok=True)
    with open(os.path.join(folder, name), "wb") as f:
        f.write(data)


def from_tests(out):
    for path in glob.glob(f"{ROOT}/tests/unit/loaders/lib/protocols/*_test.c"):
        name = os.path.basename(path)[:-7]
        with open(path, encoding="utf-8") as f:
            source = f.read()
        for n, table in enumerate(re.findall(r"static const struct turn \w+\[\] = \{(.*?)END\s*\};", source, re.S)):
            turns = [(int(m[1] == "S"), c_text(m[2])) for m in re.finditer(r'\b([CS])\(((?:\s*"(?:[^"\\]|\\.)*")+)\)', table)]
            for kind in (1, 0):
                save(f"{out}/{name}_stream", f"{n}-{kind}", pieces(turns, kind))
                save(f"{out}/conn", f"{name}-{n}-{kind}", pieces(turns, kind | 128))
            if name == "dns":
                save(f"{out}/dns_stream", f"{n}-datagrams", pieces(turns, 3))
                save(f"{out}/dns_stream", f"{n}-multicast", pieces(turns, 3 | 64))
            if name == "http" and b"websocket" in turns[0][1]:
                save(f"{out}/websocket_stream", str(n), pieces(turns[2:], 1))


def block(kind, body):
    """Of pcapng."""
    body += b"\0" * (-len(body) % 4)
    return struct.pack("<II", kind, 12 + len(body)) + body + struct.pack("<I", 12 + len(body))


def from_captures(out):
    for path in glob.glob(f"{ROOT}/tests/e2e/captures/*.pcap"):
        with open(path, "rb") as f:
            f.read(24)
            data, ng = bytes([1]), block(0x0a0d0d0a, struct.pack("<IHHq", 0x1a2b3c4d, 1, 0, -1)) + block(1, struct.pack("<HHIHHB7x", 1, 0, 0, 9, 1, 9))
            while len(head := f.read(16)) == 16 and len(data) < 20000:
                packet = f.read(struct.unpack("<IIII", head)[2])
                if len(packet) < 256:
                    data += bytes([len(packet)]) + packet
                    ng += block(6, struct.pack("<IIIII", 0, 0, len(ng), len(packet), len(packet)) + packet)
        save(f"{out}/packet", os.path.basename(path), data)
        save(f"{out}/packet", os.path.basename(path) + "ng", ng)


if __name__ == "__main__":
    from_tests(sys.argv[1])
    from_captures(sys.argv[1])
