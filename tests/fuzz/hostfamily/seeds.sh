#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# seeds.sh OUTDIR: real files of this host, and what other kernels write.
set -eu
out=$1/host_parse_fuzz
mkdir -p "$out"
for f in stat meminfo vmstat loadavg diskstats net/dev self/mountinfo self/stat self/io self/status pressure/io; do
	[ ! -r "/proc/$f" ] || head -c 4096 "/proc/$f" >"$out/$(echo "$f" | tr / -)"
done
printf '254:0 rbytes=4096 wbytes=8192 rios=1 wios=2 dbytes=0 dios=0\n' >"$out/io.stat"
printf '254:0 Read 4096\n254:0 Write 8192\n254:0 Total 12288\nTotal 12288\n' >"$out/blkio"
printf '30000 100000\n' >"$out/cpu.max"
printf 'anon 4096\nfile 8192\ninactive_file 4096\npgmajfault 3\n' >"$out/memory.stat"
printf '9223372036854771712\n' >"$out/limit_in_bytes"

out=$1/oomlog_fuzz
mkdir -p "$out"
cat >"$out/limit" <<'LOG'
<4>[ 1660.347558] python3 invoked oom-killer: gfp_mask=0xcc0(GFP_KERNEL), order=0, oom_score_adj=0
<6>[ 1660.347559] memory: usage 65536kB, limit 65536kB, failcnt 25
<6>[ 1660.347564] [  pid  ]   uid  tgid total_vm      rss rss_anon rss_file rss_shmem pgtables_bytes swapents oom_score_adj name
<6>[ 1660.347566] [     78]     0    78      740      436        0      436         0    45056        7             0 un share
<6>[ 1660.347570] [     77]     0    77    55339     9713     8064     1649         0   143360        0             0 tail
<6>[ 1660.347573] oom-kill:constraint=CONSTRAINT_MEMCG,nodemask=(null),cpuset=/,mems_allowed=0,oom_memcg=/docker/x,task_memcg=/docker/x,task=tail,pid=77,uid=0
<3>[ 1660.347600] Memory cgroup out of memory: Killed process 77 (tail) total-vm:221356kB, anon-rss:32256kB, file-rss:6596kB, shmem-rss:0kB, UID:0
LOG

out=$1/jvmfile_fuzz
mkdir -p "$out"
printf '7fd8767be000-7fd8767c6000 rw-s 00000000 fe:00 9987873                    /tmp/hsperfdata_root/13032\n' >"$out/maps"
for order in 0 1; do
	python3 - "$order" >"$out/file$order" <<'END'
import struct
import sys
c = "><"[int(sys.argv[1])]
def entry(name, type_, vector, data):
    at = 20 + (len(name) + 8) // 8 * 8
    return struct.pack(f"{c}iiicBBBi", at + len(data), 20, vector, type_, 0, 1, 3, at) + name.ljust(at - 20, b"\0") + data
entries = [entry(b"sun.os.hrt.frequency", b"J", 0, struct.pack(c + "q", 10**9)), entry(b"sun.gc.collector.0.name", b"B", 8, b"Copy\0\0\0\0"),
           *(entry(n, b"J", 0, struct.pack(c + "q", 77)) for n in (b"sun.gc.collector.0.time", b"sun.gc.generation.0.space.0.used", b"java.cls.loadedClasses",
                                                                   b"java.cls.unloadedClasses"))]
sys.stdout.buffer.write(struct.pack(">I", 0xcafec0c0) + bytes([int(sys.argv[1]), 2, 0, 1]) + struct.pack(c + "iiqii", 0, 0, 0, 32, len(entries)) + b"".join(entries))
END
done

out=$1/journalfile_fuzz
mkdir -p "$out"
for compact in 0 1; do
	python3 - "$compact" >"$out/journal$compact" <<'END'
import struct
import sys
compact = int(sys.argv[1])
item, head = (4, 72) if compact else (8, 64)
def put(at, body):
    global file
    file = file.ljust(at, b"\0") + body
def data(at, text, first=0, array=0, n=1):
    put(at, struct.pack("<BBxxxxxxQQQQQQQ", 1, 0, head + len(text), 7, 0, 0, first, array, n).ljust(head, b"\0") + text)
def entry(at, seq, *items):
    body = b"".join(struct.pack("<I", i) if compact else struct.pack("<QQ", i, 7) for i in items)
    put(at, struct.pack("<BxxxxxxxQQQQ", 3, 64 + len(body), seq, 1790000000000000 + seq, seq).ljust(64, b"\0") + body)
file = struct.pack("<8sIIB7x16s16s16s16sQQQQ", b"LPKSHHRH", 0, 4 | 16 * compact, 1, b"k" * 16, b"m" * 16, b"b" * 16, b"s" * 16, 256, 4096, 288, 16)
put(272, struct.pack("<BxxxxxxxQQQ", 4, 32, 320, 320))
data(320, b"CONTAINER_ID_FULL=x", 512, 1024, 3)
data(448, b"_UID=0")
entry(576 - 64, 1, 448, 704)
data(704, b"MESSAGE=no such table")
data(832, b"PRIORITY=3")
data(928, b"CONTAINER_PARTIAL_MESSAGE=true")
put(1024, struct.pack("<BxxxxxxxQQ", 6, 24 + 4 * item, 0) + b"".join(i.to_bytes(item, "little") for i in (1152, 1280, 0, 0)))
entry(1152, 2, 448, 704, 832)
entry(1280, 3, 704, 928)
sys.stdout.buffer.write(file)
END
done
