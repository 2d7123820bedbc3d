#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# check: from a clone to the everyday tests: installs what they need, builds, runs unit, layout and end-to-end tests.
# The last line says how many passed, failed and were skipped.
set -eu
cd "$(dirname "$0")/.."
if [ "$(id -u)" != 0 ]; then
	echo "check: not root: the end-to-end tests that record are skipped (sudo sh scripts/check.sh runs them)" >&2
fi
sh scripts/deps.sh test
exec make -j"$(nproc)" --output-sync=line check
