#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# seeds.sh OUTDIR: histograms as schema/store/hist.h has them
set -eu
mkdir -p "$1/hist"
n=0
for form in '[0,1]' '[9,6,0,3]' '[63,9223372036854775807]' ' [ 20 , 3 , 1 ] ' '[5]' '[]' '[64,1]' '[1,2,]' '[1,-2]'; do
	n=$((n + 1))
	printf '%s' "$form" > "$1/hist/$n"
done
# blocks as schema/store/pack.h has them: a ts, then form, buckets, rows
mkdir -p "$1/pack"
printf '\0\0\0\0\0\0\0\0\1\0\2\0\3\5\12\1\1\2' > "$1/pack/1"
printf '\0\0\0\0\2\0\0\0\1\0\1\376\377\3\1\1\1\200\200\4' > "$1/pack/2"
