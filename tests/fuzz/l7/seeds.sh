#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# seeds.sh OUTDIR: a connection with a request and its answer; a packet of one message.
set -eu
mkdir -p "$1/l7_streams_fuzz" "$1/l7_message_fuzz"
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
    f.write(record(conn) + record(data(1, q, 2000)) + record(data(0, a, 3000)) + record(head(4) + bytes(32)))
with open(sys.argv[1] + "/l7_message_fuzz/entry", "wb") as f:
    # msg_head (texts: "http", no others), msg_about, five numbers, the text, two steps
    head = struct.pack("<IH7H2H8x", 32 + 32 + 40 + 8 + 8, 1, 5, 0, 0, 0, 0, 0, 0, 9, 2)
    f.write(head + struct.pack("<QIIqBB6x5Q", 1, 2, 3, 4, 1, 0, *range(5)) + b"http\0\0\0\0" + struct.pack("<2I", 7, 8))
END
