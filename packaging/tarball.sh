#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# tarball: what `make install` would put below PREFIX, with the static programs, packed: tarball.sh BUILD VERSION leaves
# BUILD/sonde-VERSION-x86_64.tar.xz, and unpacked BUILD/tarball/sonde-VERSION-x86_64, from where `./sonde` runs.
# Two runs give the same bytes: names are sorted, all times are that of debian/changelog.
set -eu
cd "$(dirname "$0")/.."
build=$1 name=sonde-$2-x86_64
into=$build/tarball/$name
when=$(date -d "$(sed -n 's/^ -- .*>  //p' debian/changelog | head -n 1)" +%s)

rm -rf "$build/tarball"
mkdir -p "$into"
make -s install B="$build" DESTDIR="$build/tarball/root" PREFIX=/usr/local
mv "$build"/tarball/root/usr/local/* "$into/"
rm -r "$build/tarball/root"
for program in "$build"/static/sonde* "$build"/static/with-libc/sonde*; do
	case ${program##*/} in
	sonde) to=$into/bin/sonde ;;
	*) to=$into/libexec/sonde/${program##*/} ;;
	esac
	strip -o "$to" "$program"
	chmod 0755 "$to"
done
strip "$into/libexec/sonde/sonde-debuginfod" "$into/libexec/sonde/sonde-nvml" "$into/lib/sonde/sonde.so"
ln -s bin/sonde "$into/sonde"
install -m 0755 packaging/install.sh "$into/install.sh"
install -m 0644 packaging/README.txt "$into/README"
install -m 0644 debian/changelog "$into/share/doc/sonde/changelog"

# the licences of the libraries that are in the programs
while read -r package; do
	[ -e "/usr/share/doc/$package/copyright" ] || { echo "tarball: no licence of $package here" >&2; exit 1; }
	install -D -m 0644 "/usr/share/doc/$package/copyright" "$into/share/doc/sonde/libraries/$package"
done <packaging/libraries.txt

chmod -R go=rX "$into"
tar -C "$build/tarball" --sort=name --mtime="@$when" --owner=0 --group=0 --numeric-owner --format=gnu -c "$name" |
	xz -9e -T1 >"$build/$name.tar.xz"
ls -l "$build/$name.tar.xz"
