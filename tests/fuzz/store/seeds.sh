#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# seeds.sh OUTDIR: histograms as schema/store/model/hist.h has them
set -eu
mkdir -p "$1/hist"
n=0
for form in '[0,1]' '[9,6,0,3]' '[63,9223372036854775807]' ' [ 20 , 3 , 1 ] ' '[5]' '[]' '[64,1]' '[1,2,]' '[1,-2]'; do
	n=$((n + 1))
	printf '%s' "$form" > "$1/hist/$n"
done
# columns as schema/store/packed/column.h has them, inflated: form, how many values, then those
mkdir -p "$1/column"
printf '\1\4\0\2\2\2\7' > "$1/column/1"
printf '\2\2\0\376\377\377\377\377\377\377\377\377\1\3' > "$1/column/2"
printf '\3\3\0\2\30\11\0\1\310\1' > "$1/column/3"
printf '\4\3\0cc1\0\0-O2 -g\0' > "$1/column/4"
printf '\5\5\0\0\0\4\0\1' > "$1/column/5"
# tables of six columns as tests/fuzz/store/packedcolumns_fuzz.c puts them together: order, rows - 1, then columns: form, ...
mkdir -p "$1/packedcolumns"
printf '\0\1\1\1\2\2\2\11\4\11\4\11\4\10\2\2\0\2\2\2\2\0\2\2\6\12\2\12\2\0\1\2\2' > "$1/packedcolumns/1"
printf '\2\1\1\1\2\2\2\6\2\4\4\4a\0b\0\7\0\2\2\4\6\0\0' > "$1/packedcolumns/2"
# what sonded made do less, as schema/store/files/shedlog.h has it
mkdir -p "$1/shedlog"
printf '100 cpu rate 49 99\n150 offcpu step 1 3\n200 cpu full 0 3\n300 * full 0 0\n' > "$1/shedlog/1"
printf '100 net hung 0 0\n90 net full 0 0\n1 l7 memory 0 0\n' > "$1/shedlog/2"
