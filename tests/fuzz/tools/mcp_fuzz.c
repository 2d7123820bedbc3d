/* SPDX-License-Identifier: Apache-2.0 */
/*
 * covers: tools/mcp/rpc.c
 * covers: tools/mcp/mcptools.c
 * covers: tools/mcp/shape.c
 *
 * Any line is a message or not; any arguments are taken or refused, and become words of which none
 * but those of the table begins with '-' unless it is --name=value; any JSON is shaped, and fits.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "tools/mcp/mcptools.h"
#include "tools/mcp/rpc.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_tool(const struct mcp_tool *t, const json_t *args)
{
	const struct mcp_view *view;
	struct err e = {0};

	if (mcp_view_of(t, args, &view, &e)) {
		if (!*e.what)
			abort();
		return;
	}
	for (const struct mcp_step *s = view->steps; s->name; s++) {
		struct mcp_words w;

		mcp_words(s, args, "sonde", "store", &w);
		if (w.argv[w.n] || w.n >= MCP_WORDS)
			abort();
		mcp_words_release(&w);
	}
}

static void check_shape(const json_t *v, bool raw)
{
	const struct shape s = {.most = 7, .raw = raw};
	json_t *made = shape_answer(v, &s);

	if (!made)
		abort();
	if (shape_fit(made, 2000) && json_dumpb(made, NULL, 0, SHAPE_DUMP) > 2000)
		abort();
	json_decref(made);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct rpc_message m;
	json_t *error = NULL;

	if (!rpc_read((const char *)data, size, &m, &error)) {
		for (const struct mcp_tool *t = MCP_TOOLS; t->name; t++)
			check_tool(t, m.params);
		if (m.id)
			json_decref(rpc_initialized(&m, "1", ""));
	}
	if (m.root) {
		check_shape(m.root, false);
		check_shape(m.root, true);
	}
	json_decref(error);
	rpc_release(&m);
	return 0;
}
