#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# seeds OUTDIR: heads and questions as browsers send them, messages as assistants do.
set -eu
mkdir -p "$1/serve_guard" "$1/serve_question" "$1/serve_mcp_post"
n=0
seed() {
	n=$((n + 1))
	# shellcheck disable=SC2059
	printf "$2" >"$1/$n"
}
token=abcdefghij0123456789
seed "$1/serve_guard" "localhost:7766\nhttp://localhost:7766\nsame-origin\ncors\nsonde=$token\nBearer $token"
seed "$1/serve_guard" "127.0.0.1\n\nnone\nnavigate\na=b; sonde=$token; c=d\n"
seed "$1/serve_guard" "[::1]:80\nhttps://[::1]:80\ncross-site\nnavigate\n\nBearer $token"
seed "$1/serve_guard" "nas.local\nhttp://nas.local\nsame-site\nno-cors\nsonde=x\n"
seed "$1/serve_guard" "X.org:8443\nnull\n\n\n\n"
seed "$1/serve_guard" "evil.example\nhttp://evil.example\n\n\n\n"
seed "$1/serve_question" "last=20m&pid=1&pid=2&self&what=web"
seed "$1/serve_question" "query=select 1&last=1h&number=5"
seed "$1/serve_question" "output=x&what=-x&last&self=yes&last=1&last=2"
seed "$1/serve_question" '{"rows":[{"verb":"ps","json":[1],"options":[{"name":"last","arg":"TIME","repeatable":true}]}]}'
meta='"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28"}'
seed "$1/serve_mcp_post" 'application/json\n2026-07-28\ntools/call\nsql\n{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"sql",'"$meta"'}}'
seed "$1/serve_mcp_post" 'application/json\n\n\n\n{"jsonrpc":"2.0","id":"x","method":"initialize","params":{}}'
seed "$1/serve_mcp_post" 'application/json; charset=utf-8\n2025-06-18\n\n\n{"jsonrpc":"2.0","method":"notifications/initialized"}'
seed "$1/serve_mcp_post" 'application/json\n2026-07-28\nresources/read\nx\n{"id":0,"method":"resources/read","params":{"uri":"y",'"$meta"'}}'
seed "$1/serve_mcp_post" 'application/json\n\n\n\n{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"x"}}'
seed "$1/serve_mcp_post" 'text/plain\n\n\n\n[]'
seed "$1/serve_mcp_post" 'application/json\n2031-01-01\n\n\n{"id":1,"result":{}}'
