#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# seeds.sh OUTDIR: how many bytes of series and stacks, those, then a block of a packed table
set -eu
mkdir -p "$1/extension"
printf '\10\1\1\0\0\2\2\1\1\1\0\2\1\2\1\3\3\1\0\1' >"$1/extension/1"
printf '\14\1\1\0\0\2\2\1\1\3\3\2\1\1\0\3\0\1\0\1\12\1\2' >"$1/extension/2"
printf '\4\1\1\0\0\1\0\1' >"$1/extension/3"
