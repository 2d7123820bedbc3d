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
# columns as schema/store/column.h has them, inflated: form, how many values, then those
mkdir -p "$1/column"
printf '\1\4\0\2\2\2\7' > "$1/column/1"
printf '\2\2\0\376\377\377\377\377\377\377\377\377\1\3' > "$1/column/2"
printf '\3\3\0\2\30\11\0\1\310\1' > "$1/column/3"
printf '\4\3\0cc1\0\0-O2 -g\0' > "$1/column/4"
