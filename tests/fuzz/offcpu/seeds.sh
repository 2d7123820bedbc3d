#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# seeds.sh OUTDIR: real files of this host, both versions of cpu.stat, and a stream of stacks and their ends.
set -eu
out=$1
mkdir -p "$out/offcpu_quota_fuzz" "$out/offcpu_record_fuzz"
head -n 3 /proc/stat >"$out/offcpu_quota_fuzz/stat"
printf 'nr_periods 310\nnr_throttled 287\nthrottled_time 8312345678\n' >"$out/offcpu_quota_fuzz/v1"
printf 'usage_usec 9\nnr_periods 12\nnr_throttled 3\nthrottled_usec 4500\nnr_bursts 0\n' >"$out/offcpu_quota_fuzz/v2"
python3 - "$out/offcpu_record_fuzz" <<'END'
import struct
import sys


def event(time, tid, end=0, kernel=0, user=0):  # struct stack_event
    return struct.pack("<5Q4I4H16s", time, 1, 2, 0, 0, tid, tid, 0, 0, kernel, user, 0, end, b"worker")


def record(b):
    return bytes([len(b) // 8]) + b


def stack(time, tid, frames):
    return record(event(time, tid, 0, len(frames), 0) + struct.pack(f"<{len(frames)}Q", *frames))


def ended(out, tid, blocked, ready, weight, has):
    return record(event(out + blocked + ready, tid, 255) + struct.pack("<3QI2BH", out, blocked, ready, weight, 4, has, 0))


leading = [150, 250, 350, 450]
streams = {
    "paired": [stack(100, 7, leading), ended(100, 7, 50, 5, 1, 1), stack(200, 7, [450]), ended(200, 7, 0, 9, 4, 0)],
    "late": [ended(100, 7, 50, 5, 1, 1), stack(100, 7, leading), stack(100, 7, leading)],
    "lost": [stack(100, 7, leading), stack(200, 7, [250]), ended(300, 7, 1, 1, 2, 1), stack(400, 8, [])],
    "broken": [record(b"x" * 64), record(event(1, 1, 255, 65535, 3)), record(event(1, 1, 255)), b"\xff"],
}
for name, records in streams.items():
    for symbols in (0, 1):
        with open(f"{sys.argv[1]}/{name}{symbols}", "wb") as f:
            f.write(bytes([symbols]) + b"".join(records))
END
