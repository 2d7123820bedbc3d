#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# seeds.sh OUTDIR: the unit tests' conversations and the kept captures
set -eu
exec /usr/bin/python3 "$(dirname "$0")/seeds.py" "$1"
