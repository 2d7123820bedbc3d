#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# A record of what was changed in a process.
set -eu
mkdir -p "$1/goheap_force_fuzz"
echo "sonde-goheap 1 812 4064098 65024 10040640 9223372036854775809 5764744 524288" >"$1/goheap_force_fuzz/record"
