#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# sample: a made-up store, to look around in before anything is recorded: all of yesterday on a small server, with one
# spike in the night. It goes in through `sonde import`, hour by hour, as the text that `perf script` prints.
#
#   sh scripts/sample.sh [DIR]       default: ./sonde-sample; SONDE names the program (build/bin/sonde)
set -eu
here=$(dirname "$0")
dir=${1:-sonde-sample}
sonde=${SONDE:-$here/../build/bin/sonde}
[ ! -e "$dir" ] || { echo "sample: there is something called $dir already" >&2; exit 1; }
text=$(mktemp -d)
trap 'rm -rf "$text"' EXIT

# Each second, each program has a sample of one second with the probability of its use of the CPU.
hour() {
	awk -v hour="$1" 'BEGIN {
		srand(1 + hour)
		stack["nginx"] = "deflate_slow:libz.so.1.2.13 ngx_http_gzip_body_filter:nginx ngx_http_process_request:nginx main:nginx"
		stack["postgres"] = "hash_search_with_hash_value:postgres ExecScan:postgres exec_simple_query:postgres main:postgres"
		stack["python3"] = "_PyEval_EvalFrameDefault:python3.11 Py_RunMain:python3.11"
		stack["restic"] = "github.com/klauspost/compress/zstd.(*bestFastEncoder).Encode:restic main.(*Archiver).SaveBlob:restic main.runBackup:restic"
		pid["nginx"] = 812; pid["postgres"] = 900; pid["python3"] = 1200; pid["restic"] = 31007
		n = split("nginx postgres python3 restic", who, " ")
		for (s = 0; s < 3600; s++) {
			day = hour >= 8 && hour < 22
			use["nginx"] = day ? 0.35 : 0.08; use["postgres"] = day ? 0.22 : 0.06; use["python3"] = 0.03
			use["restic"] = hour == 3 && s >= 600 && s < 1440 ? 0.97 : 0
			for (i = 1; i <= n; i++)
				if (rand() < use[who[i]] || s == 3599 && i == 1)
					put(who[i], s)
		}
	}
	function put(comm, second,    k, part, frame, at) {
		printf "%s %d [000] %d.000000: 1000000000 cpu-clock: \n", comm, pid[comm], second + 100
		at = split(stack[comm], frame, " ")
		for (k = 1; k <= at; k++) {
			split(frame[k], part, ":")
			printf "\t%x %s+0x1 (/usr/bin/%s)\n", 4194304 + 4096 * k, part[1], part[2]
		}
		print ""
	}'
}

midnight=$(date -d "$(date -d yesterday +%Y-%m-%d)" +%s)
for h in 0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23; do
	hour $h >"$text/$h.perf"
	"$sonde" import "$text/$h.perf" --at $((midnight + 3600 * (h + 1))) --store "$dir" -q
done
echo "made $dir: all of yesterday on a small server, made up"
echo "next:  $sonde timeline --store $dir --from yesterday --to today"
