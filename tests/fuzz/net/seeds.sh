#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# seeds.sh OUTDIR: this host's own counts, and a few records of zeros.
set -eu
mkdir -p "$1/net_counts_fuzz" "$1/net_records_fuzz"
for f in snmp netstat; do
	[ ! -r "/proc/net/$f" ] || head -c 4096 "/proc/net/$f" >"$1/net_counts_fuzz/$f"
done
head -c 1920 /dev/zero | tr '\0' '\1' >"$1/net_records_fuzz/ones"
