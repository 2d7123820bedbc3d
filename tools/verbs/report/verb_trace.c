/* SPDX-License-Identifier: Apache-2.0 */
/* sonde trace: one request with the requests it caused, as a tree (tools/requests/traces.h). */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "schema/base/mem.h"
#include "tools/cli/verb.h"
#include "tools/print/json.h"
#include "tools/requests/traceprint.h"
#include "tools/select/select.h"

#define ROWS_MOST  200 /* requests of all trees, but with -n 0 */
#define NAMED_MOST 20  /* trees of one trace id, without -n */

struct trace_args {
	uint64_t trees;
	const char *id;
	bool slowest;
};

/* clang-format off */
static const struct option TRACE_OPTIONS[] = {
	{"slowest", 0, OPTION_FLAG, NULL, "show the slowest request that no other request caused (default)", offsetof(struct trace_args, slowest)},
	{"id", 0, OPTION_STRING, "ID", "show this trace id or span id (from the request headers); same as a bare word", offsetof(struct trace_args, id)},
	{"number", 'n', OPTION_MOST, "N", "how many trees (default 1; for a trace id 20; 0: all, each whole in JSON too)", offsetof(struct trace_args, trees)},
	{0},
};
/* clang-format on */

static const char *const TRACE_EXAMPLES[] = {
	"sonde trace --slowest",
	"sonde trace --slowest -n 3 --comm nginx --last 15m",
	NULL,
};

static int id_of(const struct verb_call *call, const char **id, struct err *e)
{
	const struct trace_args *a = call->args;

	*id = a->id ? a->id : call->n_words ? call->words[0] : NULL;
	if (call->n_words + (a->id != NULL) > 1)
		return err_set(e, -EINVAL, EXIT_USAGE, "trace takes only one ID");
	if (*id && a->slowest)
		return err_set(e, -EINVAL, EXIT_USAGE, "--slowest and an ID cannot be combined");
	if (*id && !**id)
		return err_set(e, -EINVAL, EXIT_USAGE, "the ID is empty");
	return 0;
}

static int nothing(const struct verb_call *call, const struct traces *t, const char *id,
		   struct err *e)
{
	if (!t->known || !id)
		return select_nothing(call->sel, t->known ? NULL : "l7", "single requests",
				      "no single requests were stored", "sonde requests", e);
	err_set(e, -ENOENT, EXIT_NOTHING, "no stored request in %s has the ID %.100s",
		call->sel->range, id);
	err_fix(e, "sonde requests --slowest --json (it prints the trace IDs)");
	return -ENOENT;
}

/* Chooses the trees to show, slowest first. */
static size_t choose(const struct traces *t, const char *id, uint64_t most, uint32_t *out)
{
	size_t n = 0;

	for (size_t i = 0; i < t->n_roots && n < most; i++) {
		uint32_t root = t->roots[i];
		unsigned depth = 0;
		bool named = !id;

		for (uint32_t k = root; !named && k != TRACE_NONE;
		     k = traces_next(t, root, k, &depth))
			named = traces_named(t, k, id);
		if (named)
			out[n++] = root;
	}
	return n;
}

#define LEFT_OUT                                                                           \
	"%zu requests of kept windows of the flight ring are left out: ask for a shorter " \
	"time (--at TIME, --last 1m)"

static int print_json(const struct verb_call *call, const struct traces *t, const uint32_t *trees,
		      size_t n)
{
	const struct trace_args *a = call->args;
	const size_t most = a->trees >= OPTION_ALL ? SIZE_MAX : ROWS_MOST;
	size_t total = 0;
	json_t *o = json_envelope("trace", call->sel->from_ns, call->sel->to_ns);

	json_object_set_new(o, "trees", json_integer((json_int_t)n));
	json_object_set_new(o, "asked", json_integer((json_int_t)t->asked));
	json_object_set_new(o, "unlinked", json_integer((json_int_t)t->unlinked));
	if (t->left)
		json_warn(o, LEFT_OUT, t->left);
	for (size_t i = 0; i < n; i++) {
		traceprint_json(t, trees[i], most, json_rows(o));
		total += t->nodes[trees[i]].size;
	}
	json_bound_n(o, total, 0);
	return json_print(o, stdout, 1);
}

static void print_text(const struct verb_call *call, const struct traces *t, const uint32_t *trees,
		       size_t n)
{
	for (size_t i = 0; i < n; i++) {
		struct table *table = traceprint_tree(t, trees[i]);

		if (i)
			putchar('\n');
		traceprint_head(t, trees[i], stdout);
		table_print(table, stdout, call->wide ? 0 : term_width(stdout));
		table_free(table);
		traceprint_notes(t, trees[i], stdout);
	}
	if (!call->quiet && t->left)
		fprintf(stderr, LEFT_OUT "\n", t->left);
	if (!call->quiet && t->unlinked)
		fprintf(stderr, "%zu of %zu stored client requests have no known parent request\n",
			t->unlinked, t->asked);
}

static int trace_run(struct verb_call *call, struct err *e)
{
	const struct trace_args *a = call->args;
	struct traces t = {0};
	const char *id = NULL;
	uint32_t *trees = NULL;
	size_t n = 0;
	int rc = id_of(call, &id, e);

	if (!rc)
		rc = traces_read(call->sel, &t, e);
	if (!rc) {
		trees = mem_array(t.n_roots + 1, sizeof(*trees));
		n = choose(&t, id, a->trees ? a->trees : id ? NAMED_MOST : 1, trees);
	}
	if (!rc && !n)
		rc = nothing(call, &t, id, e);
	else if (!rc && call->json)
		rc = print_json(call, &t, trees, n);
	else if (!rc)
		print_text(call, &t, trees, n);
	free(trees);
	traces_release(&t);
	return verb_flush(rc, e);
}

const struct verb verb_trace = {
	.name = "trace",
	.summary = "show a request and the requests that it caused, as a tree",
	.usage = "[--slowest | ID] [-n N]",
	.examples = TRACE_EXAMPLES,
	.options = TRACE_OPTIONS,
	.args_size = sizeof(struct trace_args),
	.uses = VERB_SELECT | VERB_WORDS | VERB_JSON | VERB_PAGES,
	.run = trace_run,
};
