#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# readme-line N: print README.md's N-th command line, verbatim: the text of its N-th ```sh block, which
# holds exactly one line.
set -eu
awk -v want="$1" '
	/^```sh$/ { inside = 1; block++; next }
	/^```$/   { inside = 0 }
	inside && block == want { print; lines++ }
	END { exit lines == 1 ? 0 : 1 }
' "$(dirname "$0")/../README.md"
