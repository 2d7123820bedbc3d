#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# seeds.sh OUTDIR: the forms of docs/man/sonde.1, one a file
set -eu
mkdir -p "$1/when"
n=0
for form in now 2026-11-20T03:10:00Z 2026-11-20T03:10:00.250+01:00 '2026-11-20 03:10' 2026-11-20 03:10 03:10:07.5 \
	'today 03:10' 'yesterday 03:10' yesterday -2h -1h30m 1795144200 1795144200.25 1795144200000 10s 250ms 1w2d 15min 90; do
	n=$((n + 1))
	printf '%s' "$form" > "$1/when/$n"
done
