#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# install: put the unpacked tarball below $PREFIX (default /usr/local), or take it away again (--uninstall). With systemd it also makes
# the user and group sonde and the store's folder; it starts nothing.
set -eu
cd "$(dirname "$0")"
prefix=${PREFIX:-/usr/local}
dest=${DESTDIR:-}

files() { find bin lib libexec share -type f | sort; }

case ${1:-} in
--uninstall)
	if [ -z "$dest" ] && [ -d /run/systemd/system ]; then
		systemctl disable --now sonded.service >/dev/null 2>&1 || :
	fi
	files | while IFS= read -r f; do rm -f "$dest$prefix/$f"; done
	rmdir "$dest$prefix/libexec/sonde" "$dest$prefix/lib/sonde" "$dest$prefix/share/doc/sonde/libraries" \
		"$dest$prefix/share/doc/sonde" 2>/dev/null || :
	echo "removed from $prefix; what was recorded stays in /var/lib/sonde"
	exit ;;
"") ;;
*) echo "usage: install.sh [--uninstall]     PREFIX=/usr/local" >&2; exit 2 ;;
esac

# each file is replaced in one step: a recorder that runs keeps its programs
files | while IFS= read -r f; do
	mkdir -p "$dest$prefix/${f%/*}"
	case $f in
	*.service) sed "s|^\(ExecStart[Pre]*=[-+]*\)/.*/libexec/|\1$prefix/libexec/|" "$f" >"$dest$prefix/$f.new" ;;
	*) cp "$f" "$dest$prefix/$f.new" ;;
	esac
	case $f in
	bin/*|libexec/*) chmod 0755 "$dest$prefix/$f.new" ;;
	*) chmod 0644 "$dest$prefix/$f.new" ;;
	esac
	mv -f "$dest$prefix/$f.new" "$dest$prefix/$f"
done
if [ -z "$dest" ]; then
	if command -v systemd-sysusers >/dev/null; then
		systemd-sysusers "$prefix/lib/sysusers.d/sonde.conf" || :
	fi
	if command -v systemd-tmpfiles >/dev/null; then
		systemd-tmpfiles --create "$prefix/lib/tmpfiles.d/sonde.conf" || :
	fi
	if [ -d /run/systemd/system ]; then
		systemctl daemon-reload || :
		systemctl try-restart sonded.service >/dev/null 2>&1 || :
	fi
fi
for program in sonde-push sonde-nvml; do
	[ -n "$dest" ] || "$prefix/libexec/sonde/$program" --help >/dev/null 2>&1 || echo "$program does not run here: it needs glibc 2.34 or newer; all else does"
done
echo "installed in $prefix:  sudo sonde record -d 10s"
