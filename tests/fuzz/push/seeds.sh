#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# seeds.sh OUTDIR: configurations, replies.
set -eu
mkdir -p "$1/push_target_fuzz" "$1/push_reply_fuzz"
printf '[export.a]\n  url = https://h:1\ntables = cost,\n loss\ntables = cpu_samples\nuser = me\npassword-file = /p\ndatabase = d\nevery = 5m\ncompression = none\n' >"$1/push_target_fuzz/rows"
printf '# no\n[export.b]\ntype = pyroscope\nurl = http://h/\nprofiles = cpu, memory\ntenant = t-1\ntoken-file = /t\nca-file = /c\n[export.c]\ntype = otlp\nurl = http://h\nsignals = metrics, logs\npath = /otlp\n' >"$1/push_target_fuzz/two"
printf '[export.a]\nulr = 1\n' >"$1/push_target_fuzz/key"
printf '[export.a]\ntype = otlp\nurl = http://h\nprofiles = cpu\nsignals = profiles-v1development\ntimeout = 1h\nbackfill = 2d\n' >"$1/push_target_fuzz/profiles"
printf '\002\000\000\000\050Content-Type: application/x-protobuf\r\nRetry-After: 7\r\n\012\002\010\003' >"$1/push_reply_fuzz/partial"
printf '\000\000\000\000\020Retry-After: 70\r\nCode: 60. DB::Exception' >"$1/push_reply_fuzz/exception"
printf '\001\000\000\000\000{"code":"invalid_argument"}' >"$1/push_reply_fuzz/final"
