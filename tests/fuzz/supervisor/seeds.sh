#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# seeds OUTDIR: OUTDIR/conf/ gets configurations with every key.
set -eu
mkdir -p "$1/conf"
printf '[store]\nbudget = 2G\nreserve = 512M\nage=14d\nsegment-age = 1h30m\nseal = no\n[record]\nfamilies=cpu,offcpu\nfreq=19\nargs = masked\n[limits]\ncpu=5\n' >"$1/conf/all"
printf '; a comment\n[store]\nbudgt = 1.5GiB\n' >"$1/conf/wrong"
