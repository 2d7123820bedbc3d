# SPDX-License-Identifier: Apache-2.0
#
# section: how the guests' scripts report on their standard output; guest.py reads it. Taken in with `. /etc/section.sh`.

# NAME COMMAND...: run it, print what it said
section() {
	name=$1
	shift
	echo "=== $name"
	"$@" </dev/null >/run/out 2>/run/err
	rc=$?
	cat /run/out
	[ -z "$(tail -c 1 /run/out)" ] || echo
	sed 's/^/! /' /run/err
	echo "=== $name ends $rc"
}
