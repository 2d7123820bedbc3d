#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# tree: a copy of this tree, without what is built: tree.sh TO
set -eu
cd "$(dirname "$0")/.."
mkdir -p "$1"
if [ -e .git ] && command -v git >/dev/null; then
	git -c safe.directory="$PWD" ls-files -z --cached --others --exclude-standard
else
	find . -path ./build -prune -o \( -type f -o -type l \) -print0
fi | tar -c --null --ignore-failed-read -T - | tar -x -C "$1"
