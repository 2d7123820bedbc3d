#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# seeds.sh OUTDIR: a record of a connection, a request and its answer; a message of one entry.
set -eu
mkdir -p "$1/l7_streams_fuzz" "$1/l7_said_fuzz"
python3 - "$1" <<'END'
import struct, sys
def head(what, direction=0, flags=0, at=1000):
    return struct.pack("<QQQIIBBHI", 1, 1, at, 7, 7, what, direction, flags, 0)
def record(b):
    return struct.pack("<H", len(b)) + b
conn = head(1, 0, 1) + struct.pack("<QIIHHHHB3xI", 5, 0, 1, 2, 6, 80, 40000, 2, 0) + bytes(32 + 108 + 4)
def data(direction, b, at):
    return head(3 - 1, direction, 0, at) + struct.pack("<QIIHHI16x", 0, len(b), len(b), 0, 0, 0) + b
q, a = b"GET / HTTP/1.1\r\nHost: h\r\n\r\n", b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi"
with open(sys.argv[1] + "/l7_streams_fuzz/http", "wb") as f:
    f.write(record(conn) + record(data(1, q, 2000)) + record(data(0, a, 3000)) + record(head(4) + bytes(16)))
with open(sys.argv[1] + "/l7_said_fuzz/entry", "wb") as f:
    f.write(struct.pack("<IBBBBQIIq8Q5HHHH", 128, 1, 1, 0, 0, 1, 2, 3, 4, *range(8), 5, 0, 0, 0, 0, 9, 2, 0).ljust(117, b"a").ljust(128, b"\0"))
END
