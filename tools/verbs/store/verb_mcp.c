/* SPDX-License-Identifier: Apache-2.0 */
/* sonde mcp: answers assistants by the Model Context Protocol. */
#include <jansson.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "schema/base/cleanup.h"
#include "schema/base/cli/options.h"
#include "schema/base/clock.h"
#include "schema/base/limits/child.h"
#include "schema/base/sibling.h"
#include "schema/base/strbuf.h"
#include "schema/base/version.h"
#include "tools/cli/verb.h"
#include "tools/mcp/mcp.h"
#include "tools/print/json.h"
#include "tools/select/filter.h"

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

/* A text as JSON and TOML write it; the caller frees it. */
static char *quoted(const char *text)
{
	json_t *v = json_text(text);
	char *out = json_dumps(v, JSON_ENCODE_ANY);

	json_decref(v);
	return out;
}

/* The values of "command" and "args" as JSON and TOML write them, and both as a shell does. */
struct words {
	char *program, *args;
	struct strbuf shell;
};

static void words_make(const char *sonde, const char *store, struct words *w)
{
	cleanup_free char *dir = store ? quoted(store) : NULL;
	struct strbuf args = STRBUF_INIT;

	*w = (struct words){.program = quoted(sonde), .shell = STRBUF_INIT};
	strbuf_addstr(&args, "[\"mcp\"");
	filter_word(sonde, &w->shell);
	strbuf_addstr(&w->shell, " mcp");
	if (store) {
		strbuf_addf(&args, ", \"--store\", %s", dir);
		stores_options(store, &w->shell);
	}
	strbuf_addch(&args, ']');
	w->args = strbuf_take(&args);
}

static int print_install(const char *sonde, const char *store)
{
	struct words w;

	words_make(sonde, store, &w);
	printf("Claude Code\n  claude mcp add sonde -- %s\n\n", strbuf_str(&w.shell));
	printf("Claude Desktop (claude_desktop_config.json), Cursor (~/.cursor/mcp.json), Gemini CLI (~/.gemini/settings.json)\n"
	       "  {\"mcpServers\": {\"sonde\": {\"command\": %s, \"args\": %s}}}\n\n",
	       w.program, w.args);
	printf("VS Code (.vscode/mcp.json)\n"
	       "  {\"servers\": {\"sonde\": {\"type\": \"stdio\", \"command\": %s, \"args\": %s}}}\n\n",
	       w.program, w.args);
	printf("Codex (~/.codex/config.toml)\n  [mcp_servers.sonde]\n  command = %s\n  args = %s\n\n",
	       w.program, w.args);
	printf("A host that you reach by ssh: the command is ssh, its arguments are HOST sonde mcp\n"
	       "  claude mcp add nas -- ssh nas sonde mcp\n\n"
	       "Where sonde serve runs, the same over HTTP (with a token: --header 'Authorization: Bearer TOKEN')\n"
	       "  claude mcp add --transport http sonde http://127.0.0.1:7766/mcp\n");
	free(w.program);
	free(w.args);
	strbuf_release(&w.shell);
	return 0;
}

/* The store as a program started elsewhere finds it; one that is not there yet as it was given. */
static int install(const char *sonde, const char *store, struct err *e)
{
	char path[PATH_MAX];

	return verb_flush(print_install(sonde, store && realpath(store, path) ? path : store), e);
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
		.memory_mb = a->memory_mb ? (unsigned)a->memory_mb : MEMORY_MB,
		.spans_fd = child_spans_make()};
	struct mcp_options o = base;
	char path[PATH_MAX];
	int rc = sibling_find("sonde", path, e);

	if (rc)
		return rc;
	if (a->install)
		return install(path, call->hint_store, e);
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
	.more = "Read-only: it runs the other verbs, each with limits. It opens no network connection; over HTTP sonde serve offers the same at /mcp.",
	.options = MCP_OPTIONS,
	.args_size = sizeof(struct mcp_args),
	.uses = VERB_STORE,
	.run = mcp_run,
};
