#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# seeds.sh OUTDIR: lines as servers and engines write them; the first byte is the form.
set -eu
out=$1/logs_fuzz
mkdir -p "$out"
printf '\000INFO a\nTraceback (most recent call last):\n  File "x"\nValueError: bad\n{"level":"error","msg":"x y z"}\nts=1 level=warn msg="a b" k=v\n' >"$out/plain"
printf '\001{"log":"ERROR a\\u00e9 \\"b\\"\\n","stream":"stderr","time":"2026-11-29T18:00:00.5Z"}\n{"log":"piece","stream":"stdout","time":"2026-11-29T18:00:00Z"}\n' >"$out/docker"
printf '\0022026-11-29T18:00:00.5+01:00 stderr P ERROR a\n2026-11-29T18:00:00Z stderr F b\n' >"$out/cri"
printf '\003\000\000\000\017\012\006stderr\032\005hello\000\000\000\017' >"$out/local"
# compressed: as gzip writes it, two members, a cut one, and the header of Docker's, whose time is in the extra field
packed=$1/logs_packed_fuzz
mkdir -p "$packed"
printf 'INFO a\nERROR b\n' >"$packed/lines"
gzip -c "$packed/lines" >"$packed/one"
cat "$packed/one" "$packed/one" >"$packed/two"
head -c 30 "$packed/one" >"$packed/cut"
{
	printf '\037\213\010\004\000\000\000\000\000\377\043\000{"lastTime":"2026-11-29T18:00:00Z"}'
	tail -c +17 "$packed/one"
} >"$packed/docker"
