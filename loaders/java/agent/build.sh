#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# build.sh FOLDER OUT JAVAC JAR: the agent's jar; an empty file where there is no JDK, or none that makes classes for Java 8.
set -e
from=$1 out=$2 javac=$3 jar=$4
made=$out.classes
rm -rf "$made" "$out"
mkdir -p "$made/boot" "$made/taps"
if [ -n "$javac" ] && [ -n "$jar" ]; then
	options="--release 8 -Xlint:-options -g:none -encoding UTF-8"
	if "$javac" $options -d "$made" "$from"/agent/sonde/tls/*.java &&
		"$javac" $options -d "$made/boot" "$from"/boot/sonde/tls/*.java &&
		"$javac" $options -cp "$made/boot" -d "$made/taps" "$from"/taps/sonde/tls/*.java; then
		# the same bytes each time, where jar can do that (17 and newer)
		"$jar" --create --file "$out.part" --manifest "$from/manifest" --date 2026-01-01T00:00:00Z -C "$made" . 2>/dev/null ||
			"$jar" cfm "$out.part" "$from/manifest" -C "$made" .
		mv "$out.part" "$out"
	fi
fi
rm -rf "$made"
[ -e "$out" ] || {
	echo "  no javac and jar that make classes for Java 8: the TLS of Java programs will not be read" >&2
	: >"$out"
}
