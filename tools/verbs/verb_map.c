/* SPDX-License-Identifier: Apache-2.0 */
/* sonde map: the map of services of a window: which container or command opens connections to which (tools/net/netmap.h). */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "tools/cli/verb.h"
#include "tools/net/netprint.h"
#include "tools/print/json.h"
#include "tools/select/select.h"

struct map_args {
	bool dot;
};

static const struct option MAP_OPTIONS[] = {
	{"dot", 0, OPTION_FLAG, NULL, "for Graphviz: sonde map --dot | dot -Tsvg", offsetof(struct map_args, dot)},
	{0},
};

static const char *const MAP_EXAMPLES[] = {
	"sonde map --last 15m",
	"sonde map --json",
	NULL,
};

static int missing(const struct verb_call *call, bool known, struct err *e)
{
	if (!known) {
		err_set(e, -ENOENT, EXIT_NOTHING, "no connections were recorded in %s: family net was not", call->sel->range);
		err_fix(e, "sudo sonde record --families net");
	} else {
		err_set(e, -ENOENT, EXIT_NOTHING, "nobody talked to anybody in %s", call->sel->range);
		err_fix(e, "sonde net --listen");
	}
	return -ENOENT;
}

static int map_json(const struct verb_call *call, const struct netmap *m)
{
	json_t *o = json_envelope("map", call->sel->from_ns, call->sel->to_ns);

	for (size_t i = 0; i < m->n_edges; i++)
		json_array_append_new(json_rows(o), netprint_edge_json(m, &m->edges[i]));
	return json_print(o, stdout, 1);
}

static void map_text(const struct netmap *m)
{
	struct table *t = netprint_map(m);

	table_print(t, stdout, term_width(stdout));
	table_free(t);
}

static void map_dot(const struct netmap *m)
{
	struct strbuf text cleanup_strbuf = STRBUF_INIT;

	netprint_dot(m, &text);
	fputs(strbuf_str(&text), stdout);
}

static int map_run(struct verb_call *call, struct err *e)
{
	const struct map_args *a = call->args;
	struct netmap m;
	int rc = netmap_make(call->sel, &m, e);

	if (!rc && !m.n_edges)
		rc = missing(call, m.known, e);
	else if (!rc && call->json)
		rc = map_json(call, &m);
	else if (!rc && a->dot)
		map_dot(&m);
	else if (!rc)
		map_text(&m);
	netmap_release(&m);
	if (!rc && (fflush(stdout) || ferror(stdout)))
		rc = err_set(e, -EIO, EXIT_RUNTIME, "cannot write standard output: %s", strerror(errno));
	return rc;
}

const struct verb verb_map = {
	.name = "map",
	.summary = "the map of services: which container or command opens connections to which",
	.usage = "[WHAT] [--dot]",
	.examples = MAP_EXAMPLES,
	.options = MAP_OPTIONS,
	.args_size = sizeof(struct map_args),
	.uses = VERB_SELECT | VERB_SELECT_WORD | VERB_JSON | VERB_PAGES,
	.run = map_run,
};
