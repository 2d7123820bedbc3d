#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# newcomer: from README.md alone: install, record a program of one's own, find its hot line, find yesterday's spike in the
# sample store, open a report. A command is taken from README or from what was printed so far, never from here: `follow
# WORDS` runs the last one there that begins with these words, and ends all of this where there is none.
#
# In the folder of the clone, built, as root. PREFIX: where to install (default /usr).
set -eu
cd "$(dirname "$0")/../.."
prefix=${PREFIX:-/usr}
work=$(mktemp -d)
seen=$work/seen
trap 'rm -rf "$work"' EXIT
# README's commands as they stand once sonde is installed
sed -e 's|build/bin/sonde|sonde|g' README.md | tr '`|' '\n\n' >"$seen"
PATH=$prefix/bin:$PATH
export PATH SONDE_STORE="$work/store"

fail() { echo "newcomer: $1"; exit 1; }

# Type it; what it says has been seen.
try() {
	echo "newcomer: \$ $1"
	sh -c "$1" >"$work/out" 2>&1 </dev/null || { cat "$work/out"; fail "this failed: $1"; }
	cat "$work/out" >>"$seen"
	tail -n 12 "$work/out"
}
# The last command that was printed and begins so: without a prompt, up to where the next one or a remark begins.
printed() {
	sed -n "s/^.*\\(sonde $1.*\\)\$/\\1/p" "$seen" | sed -e 's/   .*$//' -e 's/, then.*$//' -e 's/[[:space:]]*$//' | tail -n 1
}
follow() {
	command=$(printed "$1")
	[ -n "$command" ] || fail "no command 'sonde $1...' was printed on the way here"
	try "$command${2:-}"
}
says() { grep -q "$1" "$work/out" || fail "'$1' is not in what was printed"; }

grep -q "make install" README.md || fail "README does not say how to install"
try "make -s install PREFIX=$prefix"
try "sonde"
says "sonde record -d 10s"
follow "doctor"

# a program of one's own, with one hot line
cat >"$work/app.c" <<'C'
static volatile unsigned long sum;
static void busy(void)
{
	for (unsigned long i = 0; i < 100000; i++)
		sum += i * i; /* hot */
}
int main(void)
{
	for (int i = 0; i < 12000; i++)
		busy();
	return 0;
}
C
gcc -g -O1 -o "$work/app" "$work/app.c"
grep -q "sonde record -- make" "$seen" || fail "README does not say how to record a command"
try "sonde record -d 4s -- $work/app"
follow "stacks"
says busy
follow "lines"
says "sum += i \* i; /\* hot \*/"
hottest=$(awk '/^ *[0-9.]+ %/ && $1 + 0 > most { most = $1 + 0; line = $0 } END { print line }' "$work/out")
case $hottest in
*"for (unsigned"*|*"sum += "*) ;;
*) fail "the hot line is not first: $hottest" ;;
esac

# yesterday, in the store that is made up for looking around
unset SONDE_STORE
sample=$(sed -n 's/^.*\(sh scripts\/sample\.sh\).*$/\1/p' "$seen" | tail -n 1)
[ -n "$sample" ] || fail "README does not tell of the sample store"
try "SONDE=$prefix/bin/sonde $sample $work/sample"
follow "timeline"
says restic
follow "flame --comm restic" " --text"
says "zstd"
grep -q "sonde report" "$seen" || fail "no command for a report was printed"
try "sonde report --at 'yesterday 03:15' --store $work/sample -o $work/report.html"
grep -q "Content-Security-Policy" "$work/report.html" || fail "the report is not the page"
grep -q "restic" "$work/report.html" || fail "the report does not name who it was"
try "make -s uninstall PREFIX=$prefix"
echo "newcomer: all of it was printed on the way"
