/* SPDX-License-Identifier: Apache-2.0 */
/* How bad a line says that it is: lines of real servers, as they write them. */
#include <string.h>

#include "loaders/logs/level.h"
#include "schema/base/array.h"
#include "tests/unit/test.h"

static enum line_level of(const char *s)
{
	return level_of(s, strlen(s));
}

TEST(lines_of_servers_have_their_level)
{
	static const struct {
		const char *line;
		enum line_level level;
	} lines[] = {
		{"2026-11-29 18:00:00.123 UTC [71] ERROR:  relation \"x\" does not exist at character 15",
		 LEVEL_ERROR},
		{"2026-11-29 18:00:00.123 UTC [1] LOG:  database system is ready to accept connections",
		 LEVEL_INFO},
		{"2026-11-29 18:00:00.123 UTC [71] FATAL:  password authentication failed for user \"u\"",
		 LEVEL_FATAL},
		{"2026/11/29 18:00:00 [error] 29#29: *1 open() \"/x\" failed (2: No such file)",
		 LEVEL_ERROR},
		{"2026/11/29 18:00:00 [warn] 29#29: conflicting server name", LEVEL_WARNING},
		{"1:M 29 Nov 2026 18:00:00.123 # WARNING overcommit_memory is set to 0",
		 LEVEL_WARNING},
		{"1:M 29 Nov 2026 18:00:00.123 * Ready to accept connections tcp", LEVEL_INFO},
		{"1:M 29 Nov 2026 18:00:00.123 # Can't save in background: fork: Cannot allocate memory",
		 LEVEL_WARNING},
		{"2026-11-29T18:00:00.000000Z 0 [ERROR] [MY-010123] [Server] Fatal error: Please read",
		 LEVEL_ERROR},
		{"2026-11-29 18:00:00 0 [Warning] option 'x': unsigned value 0 adjusted",
		 LEVEL_WARNING},
		{"2026-11-29 18:00:00 0 [Note] mariadbd: ready for connections.", LEVEL_INFO},
		{"E1129 18:00:00.123456       1 reflector.go:147] failed to list", LEVEL_ERROR},
		{"I1129 18:00:00.123456       1 leaderelection.go:250] attempting", LEVEL_INFO},
		{"time=\"2026-11-29T18:00:00Z\" level=error msg=\"cannot connect\"", LEVEL_ERROR},
		{"ts=2026-11-29T18:00:00Z caller=main.go:1 lvl=warn msg=slow", LEVEL_WARNING},
		{"{\"level\":\"error\",\"msg\":\"boom\",\"time\":1}", LEVEL_ERROR},
		{"{\"level\":50,\"time\":1,\"pid\":1,\"msg\":\"boom\"}", LEVEL_ERROR},
		{"{\"t\":{\"$date\":\"x\"},\"s\":\"W\",  \"c\":\"NETWORK\", \"msg\":\"slow\"}",
		 LEVEL_WARNING},
		{"{\"severity\":\"CRITICAL\",\"message\":\"x\"}", LEVEL_FATAL},
		{"[18:00:00 WRN] Slow request", LEVEL_WARNING},
		{"18:00:00.123 ERR cannot read", LEVEL_ERROR},
		{"ERROR:root:cannot read", LEVEL_ERROR},
		{"2026-11-29 18:00:00,123 - app.db - ERROR - lost", LEVEL_ERROR},
		{"[2026-11-29 18:00:00,123: ERROR/MainProcess] consumer: Cannot connect",
		 LEVEL_ERROR},
		{"Traceback (most recent call last):", LEVEL_ERROR},
		{"panic: runtime error: index out of range", LEVEL_FATAL},
		{"thread 'main' panicked at src/main.rs:2:5:", LEVEL_ERROR},
		{"TypeError: Cannot read properties of undefined (reading 'x')", LEVEL_ERROR},
		{"Error: listen EADDRINUSE: address already in use :::80", LEVEL_ERROR},
		{"error reading /etc/x", LEVEL_ERROR},
		{"<3>lost carrier", LEVEL_ERROR},
		{"SEVERE: Servlet.service() threw", LEVEL_ERROR},
		{"INFO:     172.17.0.1:5000 - \"GET /error HTTP/1.1\" 200 OK", LEVEL_INFO},
		{"172.17.0.1 - - [29/Nov/2026:18:00:00 +0000] \"GET /error HTTP/1.1\" 200 5 \"-\" \"curl\"",
		 LEVEL_UNKNOWN},
		{"no error was found", LEVEL_UNKNOWN},
		{"there were 3 warnings", LEVEL_UNKNOWN},
		{"", LEVEL_UNKNOWN},
		{"*", LEVEL_UNKNOWN},
		{"{\"level\":", LEVEL_UNKNOWN},
	};

	for (size_t i = 0; i < ARRAY_SIZE(lines); i++)
		if (of(lines[i].line) != lines[i].level)
			fail_msg("%s: %s", lines[i].line, LEVEL_NAMES[of(lines[i].line)]);
}
