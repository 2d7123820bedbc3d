/* SPDX-License-Identifier: Apache-2.0 */
/* sonde mcp: answers assistants by the Model Context Protocol. */
#include <stdio.h>
#include <unistd.h>

#include "schema/base/cli/options.h"
#include "schema/base/clock.h"
#include "schema/base/sibling.h"
#include "schema/base/version.h"
#include "tools/cli/verb.h"
#include "tools/mcp/mcp.h"

#define SECONDS   30
#define MEMORY_MB 768

struct mcp_args {
	bool install;
	int64_t timeout_ns;
	uint64_t memory_mb;
};

/* clang-format off */
static const struct option MCP_OPTIONS[] = {
	{"install", 0, OPTION_FLAG, NULL, "print how to add sonde to Claude, VS Code, Cursor, Codex and others", offsetof(struct mcp_args, install)},
	{"timeout", 0, OPTION_DURATION, "TIME", "time limit of each query (default 30s)", offsetof(struct mcp_args, timeout_ns)},
	{"memory", 0, OPTION_UINT, "MB", "memory limit of each query (default 768)", offsetof(struct mcp_args, memory_mb), .min = 64, .max = 65536},
	{0},
};
/* clang-format on */

static const char *const MCP_EXAMPLES[] = {
	"sonde mcp --install",
	"sonde mcp --store ~/stores/nas",
	NULL,
};

/* As a member of a JSON list. */
static void print_args(const char *store)
{
	printf("\"args\": [\"mcp\"");
	if (store)
		printf(", \"--store\", \"%s\"", store);
	printf("]");
}

static int print_install(const char *sonde, const char *store)
{
	const char *option = store ? " --store " : "", *dir = store ? store : "";

	printf("Claude Code\n  claude mcp add sonde -- %s mcp%s%s\n\n", sonde, option, dir);
	printf("Claude Desktop (claude_desktop_config.json), Cursor (~/.cursor/mcp.json), Gemini CLI (~/.gemini/settings.json)\n"
	       "  {\"mcpServers\": {\"sonde\": {\"command\": \"%s\", ",
	       sonde);
	print_args(store);
	printf("}}}\n\nVS Code (.vscode/mcp.json)\n"
	       "  {\"servers\": {\"sonde\": {\"type\": \"stdio\", \"command\": \"%s\", ",
	       sonde);
	print_args(store);
	printf("}}}\n\nCodex (~/.codex/config.toml)\n  [mcp_servers.sonde]\n  command = \"%s\"\n  args = [\"mcp\"",
	       sonde);
	if (store)
		printf(", \"--store\", \"%s\"", store);
	printf("]\n\nA host that you reach by ssh: the command is ssh, its arguments are HOST sonde mcp\n"
	       "  claude mcp add nas -- ssh nas sonde mcp\n");
	return 0;
}

static int mcp_run(struct verb_call *call, struct err *e)
{
	const struct mcp_args *a = call->args;
	const struct mcp_options base = {
		.store = call->hint_store,
		.version = SONDE_VERSION,
		.seconds = a->timeout_ns ?
				   (unsigned)((a->timeout_ns + NSEC_PER_SEC - 1) / NSEC_PER_SEC) :
				   SECONDS,
		.memory_mb = a->memory_mb ? (unsigned)a->memory_mb : MEMORY_MB};
	struct mcp_options o = base;
	char path[PATH_MAX];
	int rc = sibling_find("sonde", path, e);

	if (rc)
		return rc;
	if (a->install)
		return verb_flush(print_install(path, call->hint_store), e);
	if (isatty(STDIN_FILENO) && !call->quiet)
		fprintf(stderr,
			"sonde mcp: an assistant starts this and speaks to it over standard input; sonde mcp --install says how (Ctrl-D ends it)\n");
	o.sonde = path;
	return mcp_serve(&o, e);
}

const struct verb verb_mcp = {
	.name = "mcp",
	.summary = "answer an assistant's questions over standard input (Model Context Protocol)",
	.usage = "[--install]",
	.examples = MCP_EXAMPLES,
	.more = "Read-only: it runs the other verbs, each with limits. It opens no network connection.",
	.options = MCP_OPTIONS,
	.args_size = sizeof(struct mcp_args),
	.uses = VERB_STORE,
	.run = mcp_run,
};
