#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# seeds.sh OUTDIR: answers, profiles, sockets and messages.
set -eu
mkdir -p "$1/scrape_answer_fuzz" "$1/scrape_profile_fuzz" "$1/scrape_sockets_fuzz" "$1/scrape_fetch_fuzz"
printf 'HTTP/1.0 200 OK\r\nContent-Length: 5\r\n\r\nhello' >"$1/scrape_answer_fuzz/ok"
printf 'HTTP/1.1 400 Bad Request\r\n\r\nClient sent an HTTP request to an HTTPS server.\n' >"$1/scrape_answer_fuzz/tls"
printf 'HTTP/1.0 200 OK\r\n\r\n/debug/pprof/ <tr><td>23</td><td><a href=goroutine?debug=1>' >"$1/scrape_answer_fuzz/page"
# types contentions/count and delay/nanoseconds, a sample of location 7, its mapping, location and strings
printf '\012\004\010\001\020\002\012\004\010\003\020\004\022\011\012\002\007\007\022\003\005\250\106\032\014\010\001\020\200\200\200\002\030\200\200\300\002\042\010\010\007\020\001\030\264\244\200\002' >"$1/scrape_profile_fuzz/mutex"
printf '2\0002\013contentions2\005count2\005delay2\013nanoseconds' >>"$1/scrape_profile_fuzz/mutex"
printf '0  sl  local_address\n   0: 0100007F:1F90 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 11 1 0\n' >"$1/scrape_sockets_fuzz/v4"
printf '\000\001\004\000\000\000\001\000\000\000\001\000\000\000\000\000\000\000' >"$1/scrape_fetch_fuzz/stack"
