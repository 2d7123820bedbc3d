#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# check-fresh: README's two command lines, verbatim, on a new and empty Debian 12: a debootstrap minbase
# chroot with /proc, /sys and /dev of this host, the host's package sources, and a clone of what is committed here.
#
#   scripts/check-fresh.sh [--keep] [LINE...]      LINE: 1 or 2, or newcomer; 1, newcomer, 2 by default
#   E2E="FILE..." narrows the end-to-end tests to these files 
#   FRESH_SECONDS=N ends each of them after so long (default 1500)
#
# newcomer (tests/fresh/newcomer.sh) goes on from line 1: installs, and follows what is printed to a hot line, to yesterday's
# spike and to a report.
#
# Exit 0: all did what README says. 77: cannot be tried here, the last line says why. Needs root.
set -eu
cd "$(dirname "$0")/.."
root=$PWD
keep=
[ "${1:-}" != --keep ] || { keep=1; shift; }
lines=${*:-1 newcomer 2}

skip() { echo "missing: $1"; exit 77; }
[ "$(id -u)" = 0 ] || skip "root"
sh scripts/deps.sh fresh || skip "debootstrap (could not be installed)"
command -v git >/dev/null || skip "git"

# The package source of this host, whatever it is: read now, written only into the chroot.
source_uri() {
	sed -n 's/^URIs: *\([^ ]*\).*/\1/p' /etc/apt/sources.list.d/*.sources 2>/dev/null
	sed -n 's/^deb \(\[[^]]*\] \)\{0,1\}\([^ ]*\) bookworm .*/\2/p' /etc/apt/sources.list /etc/apt/sources.list.d/*.list 2>/dev/null
}
uri=$(source_uri | head -n 1)
[ -n "$uri" ] || skip "a Debian package source in /etc/apt"

dir=$(mktemp -d /var/tmp/sonde-fresh-XXXXXX)
chmod 0755 "$dir" # it becomes a root that ordinary users look into
mounted=
finish() {
	for m in $mounted; do
		umount -l "$m" || true
	done
	if [ -z "$keep" ] && ! grep -q " $dir[/ ]" /proc/mounts; then
		rm -rf --one-file-system "$dir"
	fi
}
trap finish EXIT
trap 'exit 1' INT TERM

echo "fresh: a new Debian 12 (minbase) in $dir"
debootstrap --variant=minbase --include=ca-certificates bookworm "$dir" "$uri" >"$dir.log" 2>&1 || {
	tail -n 5 "$dir.log"
	rm -f "$dir.log"
	skip "a package source that debootstrap can use"
}
rm -f "$dir.log"
rm -rf "$dir/etc/apt/sources.list" "$dir/etc/apt/sources.list.d"
cp -rL /etc/apt/sources.list.d "$dir/etc/apt/" 2>/dev/null || true
cp -L /etc/apt/sources.list "$dir/etc/apt/" 2>/dev/null || true
cp -rL /etc/apt/apt.conf.d "$dir/etc/apt/" 2>/dev/null || true
cp -rL /etc/apt/trusted.gpg.d /etc/apt/keyrings "$dir/etc/apt/" 2>/dev/null || true
cp -rnL /usr/share/keyrings "$dir/usr/share/" 2>/dev/null || true
cp -rL /usr/local/share/ca-certificates "$dir/usr/local/share/" 2>/dev/null || true
cp -L /etc/ssl/certs/ca-certificates.crt "$dir/etc/ssl/certs/" 2>/dev/null || true
cp -L /etc/resolv.conf /etc/hosts "$dir/etc/" 2>/dev/null || true

tree=src/sonde
mkdir -p "$dir/src"
git clone -q --no-hardlinks "$root" "$dir/$tree"
mount --bind "$dir" "$dir" # a root that is a mount point, as unshare(1) wants it
mounted=$dir
for m in proc sys dev; do
	mount --rbind "/$m" "$dir/$m"
	mount --make-rslave "$dir/$m"
	mounted="$dir/$m $mounted"
done

inside() {
	timeout -k 30 "${FRESH_SECONDS:-1500}" chroot "$dir" /usr/bin/env -i HOME=/root PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin \
		LANG=C.UTF-8 ${http_proxy:+http_proxy="$http_proxy"} ${https_proxy:+https_proxy="$https_proxy"} \
		${CI:+CI="$CI"} ${E2E:+E2E="$E2E"} /bin/sh -c "cd /$tree && $1" </dev/null
}

for n in $lines; do
	if [ "$n" = newcomer ]; then
		line="sh tests/fresh/newcomer.sh"
	else
		line=$(sh scripts/readme-line.sh "$n") || { echo "fresh: README.md has no single line in its sh block $n"; exit 1; }
	fi
	echo "fresh: \$ $line"
	began=$SECONDS
	inside "$line" || { echo "fresh: README's line $n failed: $line"; exit 1; }
	echo "fresh: line $n took $((SECONDS - began)) s"
	if [ "$n" = 1 ]; then
		html=$(find "$dir/$tree" -maxdepth 1 -name '*.html' -size +10k | head -n 1)
		[ -n "$html" ] || { echo "fresh: README's line 1 left no flame graph"; exit 1; }
		grep -q "Content-Security-Policy" "$html" || { echo "fresh: $html is not the page"; exit 1; }
	fi
done
