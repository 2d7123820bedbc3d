#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# seeds.sh OUTDIR: a recording with events that sonde-java takes, and answers of a machine, one a file
set -e
mkdir -p "$1/java_fuzz"
PYTHONPATH=tests/e2e/lib python3 - "$1/java_fuzz" <<'END'
import sys
from jfrfile import chunk
c = chunk(1795144200 * 10**9)
c.event("jdk.ObjectAllocationSample", startTime=2, eventThread=1, stackTrace=3, objectClass=1, weight=512)
c.event("jdk.ThreadPark", startTime=3, duration=9, eventThread=2, stackTrace=2)
with open(f"{sys.argv[1]}/chunk", "wb") as f:
    f.write(c.bytes())
END
printf '0\nRecording 1: name=sonde maxsize=32.0MB (running)\n' >"$1/java_fuzz/check"
printf '0\nStarted recording 12.\n' >"$1/java_fuzz/start"
printf '0\nOpenJDK 64-Bit Server VM version 17.0.15+6\nJDK 17.0.15\n' >"$1/java_fuzz/version"
