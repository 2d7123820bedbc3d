#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# release: all that people install, in one folder: release.sh BUILD VERSION leaves BUILD/release/ with Debian's package, the static
# tarball, the container image with its compose file, the changes, an SPDX list of what they are made of, and SHA256SUMS over all of it
# (`sha256sum -c SHA256SUMS`). The version is that of debian/changelog; two runs give the same bytes.
set -eu
cd "$(dirname "$0")/.."
build=$1 version=$2
into=$build/release
when=$(date -d "$(sed -n 's/^ -- .*>  //p' debian/changelog | head -n 1)" +%s)

rm -rf "$into"
mkdir -p "$into"
cp "$build"/sonde_"$version"_*.deb "$build/sonde-$version-x86_64.tar.xz" "$build/sonde-$version-x86_64.image.tar.xz" \
	"$build/sonde-$version.compose.yaml" "$into/"
cp debian/changelog "$into/CHANGES"
python3 packaging/sbom.py "$version" "$when" "$into"/* >"$build/sonde-$version.spdx.json"
mv "$build/sonde-$version.spdx.json" "$into/"
(cd "$into" && sha256sum -- * >../SHA256SUMS && mv ../SHA256SUMS .)
ls -l "$into"
