#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# deb: build Debian's package of this tree, in a copy of it, by debian/: deb.sh BUILD leaves BUILD/sonde_VERSION_ARCH.deb.
# Two builds of one tree give the same bytes, wherever it lies: all times are those of debian/changelog.
set -eu
cd "$(dirname "$0")/.."
build=$1
command -v dh >/dev/null || { echo "deb: no debhelper here; sh scripts/deps.sh package" >&2; exit 1; }
work=$build/deb
rm -rf "$work"
sh packaging/tree.sh "$work/sonde"
cd "$work/sonde"
DEB_BUILD_OPTIONS="parallel=$(nproc) noautodbgsym" dpkg-buildpackage -b -us -uc >../log 2>&1 || { tail -n 30 ../log >&2; exit 1; }
cd - >/dev/null
mv "$work"/sonde_*.deb "$build/"
rm -rf "$work/sonde"
ls -l "$build"/sonde_*.deb
