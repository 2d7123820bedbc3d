#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# demo: from a clone to a flame graph of this host: installs what the build needs, builds, records ten seconds of
# everything, prints who was hottest, leaves ./sonde-flame.html. Options are passed on to `sonde record`.
set -eu
cd "$(dirname "$0")/.."
sh scripts/deps.sh build
make -s -j"$(nproc)"
as_root=
[ "$(id -u)" = 0 ] || as_root=sudo
$as_root build/bin/sonde record -d 10s "$@"
$as_root build/bin/sonde stacks -n 10
$as_root build/bin/sonde flame -o sonde-flame.html
