/* SPDX-License-Identifier: Apache-2.0 */
/*
 * mcptools: the tools that `sonde mcp` offers. Each runs one or a few verbs, all of which only
 * read the store; a table says which, and which arguments become which of their options.
 *
 * Every value becomes one word, --option=VALUE, or a word that does not begin with '-': nothing
 * that a client sends becomes an option. There is no shell. Pure.
 */
#ifndef SONDE_TOOLS_MCPTOOLS_H
#define SONDE_TOOLS_MCPTOOLS_H

#include <jansson.h>
#include <stddef.h>

#include "schema/base/err.h"
#include "tools/mcp/shape.h"

#define MCP_STEPS 6
#define MCP_WORDS 32

struct mcp_step {
	const char *name, *verb; /* its answer's name; NULL ends the list */
	const char *args[4];     /* fixed options */
	const char *takes; /* letters: r range, a only at, w a word and the filters, c the filters,
			      n number of rows, o of, f function, C callers, E callees, q query,
			      i id, s sort, b before, B baseline, k kind */
	size_t most;       /* rows if the client says nothing */
	struct shape shape;
	size_t each; /* rows of one, where what is counted has several: a tree of requests; 0: one
		      */
};

struct mcp_view {
	const char *name; /* NULL: the tool has one view; after the last one all is NULL */
	struct mcp_step steps[MCP_STEPS + 1];
};

struct mcp_tool {
	const char *name, *title, *about;
	const char *params; /* as mcp_step.takes, of all its steps; v: view */
	const char *hint;   /* what to ask next */
	struct mcp_view views[5];
};

/* In the order of the list; ended by a NULL name. */
extern const struct mcp_tool MCP_TOOLS[];

/* NULL: there is no such tool. */
const struct mcp_tool *mcp_tool_find(const char *name);
/* [{name, description, inputSchema, ...}]; the caller owns it. */
json_t *mcp_tools_list(void);
/* What the arguments ask of a tool: its view. -EINVAL: an argument that it does not take, or of the
 * wrong type; `e` says which. */
int mcp_view_of(const struct mcp_tool *t, const json_t *args, const struct mcp_view **view,
		struct err *e);

struct mcp_words {
	const char *argv[MCP_WORDS]; /* NULL-terminated */
	char *made[MCP_WORDS];       /* those of them that mcp_words_release frees */
	size_t n, n_made;
	size_t rows; /* how many rows were asked for */
	size_t each; /* mcp_step.each, or 1 */
};
/* The command line of a step; `store` NULL: the default. Release in any case. */
void mcp_words(const struct mcp_step *step, const json_t *args, const char *sonde,
	       const char *store, struct mcp_words *out);
void mcp_words_release(struct mcp_words *w);

#endif
