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
