#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# seeds.sh OUTDIR: a line of each kind
set -eu
mkdir -p "$1/line"
printf '{"run": "x", "from_ns": 5, "to_ns": 9, "bucket_s": 1, "period_ns": 3}' > "$1/line/1"
printf '{"frame": "f", "module": "m", "path": "p", "build_id": "b", "file": "c", "line": 3, "offset": 9, "kernel": true, "inlined": false}' > "$1/line/2"
printf '{"process": "a", "pid": 1, "ppid": 2, "uid": 3, "start_ns": 4, "container": "c", "container_id": "d"}' > "$1/line/3"
printf '{"add": "alloc", "process": 0, "thread": "t", "tid": 1, "label": 8, "stack": [0, 1], "times": [5, 1, 8, 6, 2, 16]}' > "$1/line/4"
