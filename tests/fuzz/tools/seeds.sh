#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# seeds.sh OUTDIR: the forms of docs/man/sonde.1, one a file
set -eu
mkdir -p "$1/when"
n=0
for form in now 2026-11-20T03:10:00Z 2026-11-20T03:10:00.250+01:00 '2026-11-20 03:10' 2026-11-20 03:10 03:10:07.5 \
	'today 03:10' 'yesterday 03:10' yesterday -2h -1h30m 1795144200 1795144200.25 1795144200000 10s 250ms 1w2d 15min 90; do
	n=$((n + 1))
	printf '%s' "$form" > "$1/when/$n"
done

# folded stacks, and a profile with everything that is read, in four variants
mkdir -p "$1/folded" "$1/pprof" "$1/perfscript" "$1/json"
printf '# note\nmy app 812/815 [001] 12.5: 10101010 cpu-clock:pppH:\n\t 55d0c0ffee work+0x1c (/usr/bin/app)\n\t 7f00 [unknown] (/lib/x.so)\n\n' > "$1/perfscript/1"
printf 'x 1 2.0: cycles:\n\tffffffff81000000 f ([kernel.kallsyms])\n abc small (inlined)\n def g(int) (/tmp/perf-1.map)\n\ny 1/2\n' > "$1/perfscript/2"
printf 'x 1 U 2.0: 1 cycles:u: 1100 f (x)\ny 1 2.1: 1 faults:\n12 f (x)\n  x.c:7\n\n' > "$1/perfscript/3"
printf '{"shared":{"frames":[{"name":"a","line":1}]},"profiles":[{"type":"sampled","unit":"none","samples":[[0]],"weights":[1.5]},{"type":"evented","unit":"none","events":[{"type":"O","frame":0,"at":0},{"type":"C","frame":0,"at":2}]}]}' > "$1/json/1"
printf '{"meta":{"interval":1,"startTime":1},"threads":[{"pid":"1","tid":2,"samples":{"stack":[0],"time":[1],"weight":[2]},"stackTable":{"prefix":[null],"frame":[0]},"frameTable":{"func":[0]},"funcTable":{"name":[0],"resource":[0]},"resourceTable":{"name":[0]},"stringArray":["f"]}]}' > "$1/json/2"
printf 'main;work 1.5\nmain 0.0000001\n' > "$1/folded/4"
printf 'main;work;small 30\nmain;do_sys_[k];x_[j];y_[i] 2\n# note\n\n 3\nmain;a\\x3bb 7\r\n' > "$1/folded/1"
printf 'main;work\n' > "$1/folded/2"
printf 'main;work 99999999999999999999\n' > "$1/folded/3"
message() {
	cat <<EOF
sample_type { type: 1 unit: 2 } sample_type { type: 3 unit: $1 }
sample { location_id: 1 location_id: 2 value: 3 value: 30 label { key: 5 num: 812 } label { key: 6 str: 7 }
  label { key: 15 num: 813 } label { key: 16 str: 7 } label { key: 17 str: 7 } label { key: 18 str: 7 } }
sample { location_id: 3 value: $2 value: 10 }
sample { value: 1 value: 10 }
mapping { id: 1 memory_start: 4194304 memory_limit: 8388608 filename: 8 build_id: 9 }
mapping { id: 2 filename: 10 } mapping { id: 3 filename: 14 }
location { id: 1 mapping_id: 1 address: 4194400 line { function_id: 1 line: 5 } line { function_id: 2 line: 9 } }
location { id: 2 mapping_id: 2 address: 77 line { function_id: 3 } }
location { id: 3 mapping_id: 3 address: 99 } location { id: 4 address: 99 }
function { id: 1 name: 11 system_name: 11 filename: 12 start_line: 3 } function { id: 2 name: 13 }
function { id: 3 }
string_table: "" string_table: "samples" string_table: "count" string_table: "cpu" string_table: "nanoseconds"
string_table: "pid" string_table: "comm" string_table: "app" string_table: "/usr/bin/app" string_table: "aa11"
string_table: "[kernel.kallsyms]" string_table: "small" string_table: "app.c" string_table: "main"
string_table: "/tmp/perf-812.map" string_table: "tid" string_table: "thread" string_table: "container"
string_table: "container_id" string_table: "bytes"
time_nanos: 1795144200000000000 duration_nanos: 10000000000 period_type { type: 3 unit: 4 } period: 10
default_sample_type: 3 comment: 7
EOF
}
if command -v protoc > /dev/null; then
	n=0
	for kind in '4 1' '19 1' '4 -1' '2 1'; do
		n=$((n + 1))
		# shellcheck disable=SC2086
		message $kind | protoc -Itests/unit/tools --encode=perftools.profiles.Profile profile.proto > "$1/pprof/$n"
	done
fi

mkdir -p "$1/checkfile_fuzz"
cp tools/checks/queries/*.sql tools/checks/queries/*/*.sql "$1/checkfile_fuzz/"
printf '!-- x: y\n-- level = loud\n-- window = 5: minutes\nSELECT 1;\n' >"$1/checkfile_fuzz/files"

mkdir -p "$1/jfr"
PYTHONPATH=tests/e2e/lib python3 - "$1/jfr" <<'END'
import sys
from jfrfile import chunk
for i, period in enumerate(("10 ms", None)):
    c = chunk(1795144200 * 10**9, 40 + i, period)
    c.event("jdk.ExecutionSample", startTime=1, sampledThread=1, stackTrace=1, state=1 + i)
    c.event("jdk.ObjectAllocationSample", startTime=2, eventThread=1, stackTrace=3, objectClass=1, weight=512)
    c.event("jdk.ThreadPark", startTime=3, duration=9, eventThread=2, stackTrace=2)
    with open(f"{sys.argv[1]}/{i}", "wb") as f:
        f.write(c.bytes() * (1 + i))
c = chunk(1795144200 * 10**9)
c.constant("jdk.types.StackTrace", 9, truncated=False, frames=[])
c.event("jdk.ExecutionSample", startTime=1, sampledThread=1, stackTrace=9, state=1)
with open(f"{sys.argv[1]}/empty", "wb") as f:  # the first stack has no frame
    f.write(c.bytes())
END

# messages of assistants: both eras, each kind of request, arguments of several tools; and an answer of a verb, to be shaped
mkdir -p "$1/mcp"
n=0
meta='"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28"}'
for line in '{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25"}}' \
	'{"jsonrpc":"2.0","id":"x","method":"tools/list","params":{'"$meta"'}}' \
	'{"jsonrpc":"2.0","id":0,"method":"tools/call","params":{"from":"03:10","to":"-2h","last":"15m","at":"now","what":"web","container":"db","limit":7}}' \
	'{"jsonrpc":"2.0","id":0,"method":"tools/call","params":{"query":"select 1","limit":200,"view":"callers","function":"f","sort":"mem","kind":"oom kill"}}' \
	'{"jsonrpc":"2.0","id":3,"method":"x","params":{"view":"lines","function":"f","of":"mem","before":"1h","baseline":"1d","id":"ff"}}' \
	'{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":0}}' \
	'{"from_ns":1795907208412532206,"from":"2026-11-28T23:06:48.412Z","rows":[{"cpu_ns":5111111060,"rss_bytes":1048576,"cpu_cores":0.2,"share":0.1,"args":"a\u001bb","how":null,"x_us":1500,"time":1795907208.5,"ts":1795907208,"memory":{"now":1.5,"before":null},"path":["a","b"],"value":3}],"unit":"ns","total":9,"rest":8,"warnings":["8 more rows: -n 9 shows them","lost"]}'; do
	n=$((n + 1))
	printf '%s' "$line" > "$1/mcp/$n"
done
