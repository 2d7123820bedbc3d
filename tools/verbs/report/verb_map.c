/* SPDX-License-Identifier: Apache-2.0 */
/* sonde map: the map of services of a range: which container or command connects to which
 * (tools/net/netmap.h). */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "schema/base/array.h"
#include "tools/cli/verb.h"
#include "tools/net/netdraw.h"
#include "tools/net/netlive.h"
#include "tools/net/netprint.h"
#include "tools/page/map_page.h"
#include "tools/page/output_note.h"
#include "tools/print/json.h"
#include "tools/print/outfile.h"
#include "tools/select/select.h"

#define DEFAULT_ROWS 100

struct map_args {
	uint64_t rows;
	const char *output;
	bool dot, drawing, open, live;
};

/* clang-format off */
static const struct option MAP_OPTIONS[] = {
	{"number", 'n', OPTION_MOST, "N", "how many connections between services, the most used ones (default 100; 0: all)", offsetof(struct map_args, rows)},
	{"output", 'o', OPTION_STRING, "FILE", "draw into FILE.svg, FILE.html (with the table) or FILE.dot", offsetof(struct map_args, output)},
	{"open", 0, OPTION_FLAG, NULL, "open the file in a browser", offsetof(struct map_args, open)},
	{"live", 0, OPTION_FLAG, NULL, "after the table, print each new connection as it appears, until Ctrl-C", offsetof(struct map_args, live)},
	{"dot", 0, OPTION_FLAG, NULL, "print for Graphviz: sonde map --dot | dot -Tsvg", offsetof(struct map_args, dot)},
	{"drawing", 0, OPTION_FLAG, NULL, "with --json: add the positions of boxes and lines", offsetof(struct map_args, drawing)},
	{0},
};
/* clang-format on */

static const char *const MAP_EXAMPLES[] = {
	"sonde map --last 15m",
	"sonde map -o map.html",
	"sonde map --json",
	NULL,
};

enum map_form { MAP_SVG, MAP_HTML, MAP_DOT };

static int form_of(const struct map_args *a, enum map_form *form, struct err *e)
{
	static const struct {
		const char *end;
		enum map_form form;
	} forms[] = {{".svg", MAP_SVG}, {".html", MAP_HTML}, {".htm", MAP_HTML}, {".dot", MAP_DOT}};

	for (size_t i = 0; a->output && i < ARRAY_SIZE(forms); i++)
		if (outfile_ends_with(a->output, forms[i].end)) {
			*form = forms[i].form;
			return 0;
		}
	if (a->output)
		err_set(e, -EINVAL, EXIT_USAGE,
			"the name of a map must end in .svg, .html or .dot: '%.200s'", a->output);
	else
		err_set(e, -EINVAL, EXIT_USAGE, "--open needs a file (-o)");
	err_fix(e, "sonde map -o map.html");
	return -EINVAL;
}

static int args_check(const struct verb_call *call, struct err *e)
{
	const struct map_args *a = call->args;
	enum map_form form;

	if (a->live && (a->output || a->open || a->dot || a->drawing)) {
		err_set(e, -EINVAL, EXIT_USAGE,
			"--live only prints lines; sonde serve shows a drawing that updates");
		err_fix(e, "sonde map --live");
		return -EINVAL;
	}
	if (a->live && store_names_hosts()) {
		err_set(e, -EINVAL, EXIT_USAGE,
			"--live follows one store; connections between hosts need the data of both");
		err_fix(e, "sonde map --last 5m --store DIR --store DIR");
		return -EINVAL;
	}
	if (a->live)
		return netlive_check(call, e);
	if (a->output || a->open)
		return form_of(a, &form, e);
	if (!a->drawing || call->json)
		return 0;
	err_set(e, -EINVAL, EXIT_USAGE, "--drawing needs --json");
	err_fix(e, "sonde map --json --drawing; a picture: sonde map -o map.svg");
	return -EINVAL;
}

/* A drawing has all of them, if it was not asked otherwise: its lines name rows by their place. */
static size_t most_of(const struct map_args *a)
{
	return a->rows ? (size_t)a->rows : a->drawing ? OPTION_ALL : DEFAULT_ROWS;
}

static int map_json(const struct verb_call *call, struct netmap *m)
{
	const struct map_args *a = call->args;
	json_t *o = json_envelope("map", call->sel->from_ns, call->sel->to_ns);
	const size_t all = m->n_edges;

	netmap_keep(m, most_of(a));
	if (m->asked_known)
		json_object_set_new(o, "requests_unplaced", json_integer((json_int_t)m->unplaced));
	if (a->drawing) {
		struct netdraw d;

		netdraw_make(m, &d);
		json_object_set_new(o, "drawing", netdraw_json(&d));
		netdraw_release(&d);
	}
	for (size_t i = 0; i < m->n_edges; i++)
		json_array_append_new(json_rows(o), netprint_edge_json(m, &m->edges[i]));
	json_bound(o, all);
	return json_print(o, stdout, 1);
}

static void map_text(const struct verb_call *call, struct netmap *m)
{
	const size_t all = m->n_edges;
	struct strbuf unplaced cleanup_strbuf = STRBUF_INIT;
	struct table *t;

	netmap_keep(m, most_of(call->args));
	t = netprint_map(m);
	table_print(t, stdout, term_width(stdout));
	table_free(t);
	netprint_unplaced(&unplaced, m);
	if (unplaced.len)
		printf("%s\n", strbuf_str(&unplaced));
	if (m->n_edges < all && !call->quiet)
		fprintf(stderr, "%zu more: -n %zu shows them\n", all - m->n_edges, all);
}

static void map_dot(const struct netmap *m)
{
	struct strbuf text cleanup_strbuf = STRBUF_INIT;

	netprint_dot(m, &text);
	fputs(strbuf_str(&text), stdout);
}

static int map_file(const struct verb_call *call, const struct netmap *m, struct err *e)
{
	const struct map_args *a = call->args;
	cleanup_outfile struct outfile out = OUTFILE_INIT;
	struct strbuf title cleanup_strbuf = STRBUF_INIT, dot cleanup_strbuf = STRBUF_INIT;
	enum map_form form = MAP_SVG;
	uint64_t bytes = 0;
	int rc = form_of(a, &form, e);

	strbuf_addf(&title, "Map of services%s%s", *call->sel->what ? " of " : "", call->sel->what);
	if (!rc)
		rc = outfile_open(&out, a->output, e);
	if (!rc && form == MAP_DOT) {
		netprint_dot(m, &dot);
		fputs(strbuf_str(&dot), out.f);
	} else if (!rc) {
		(form == MAP_HTML ? map_page_html : map_page_svg)(m, strbuf_str(&title),
								  call->sel->range, out.f);
	}
	if (!rc)
		rc = outfile_commit(&out, &bytes, e);
	if (!rc)
		output_note_say(call, a->output, OUTPUT_SVG, bytes);
	return rc || !a->open ? rc : output_note_open(a->output, e);
}

static int map_run(struct verb_call *call, struct err *e)
{
	const struct map_args *a = call->args;
	struct netmap m = {0};
	int rc = args_check(call, e);

	if (!rc)
		rc = netmap_make(call->sel, &m, e);
	if (!rc)
		rc = netmap_add_requests(call->sel, &m, e);
	if (!rc && a->live && (call->json || !m.n_edges))
		;
	else if (!rc && !m.n_edges)
		rc = select_nothing(call->sel, m.known ? NULL : "net", "connections",
				    "no connections", "sonde net --listen", e);
	else if (!rc && a->output)
		rc = map_file(call, &m, e);
	else if (!rc && call->json)
		rc = map_json(call, &m);
	else if (!rc && a->dot)
		map_dot(&m);
	else if (!rc)
		map_text(call, &m);
	netmap_release(&m);
	if (!rc && a->live)
		return netlive_run(call, e);
	return verb_flush(rc, e);
}

static bool map_pages(const struct verb_call *call)
{
	return !((const struct map_args *)call->args)->live;
}

const struct verb verb_map = {
	.name = "map",
	.summary = "show the map of services: which container or command connects to which",
	.usage = "[WHAT] [-o FILE | --live]",
	.examples = MAP_EXAMPLES,
	.options = MAP_OPTIONS,
	.args_size = sizeof(struct map_args),
	.uses = VERB_SELECT | VERB_HOSTS | VERB_SELECT_WORD | VERB_JSON | VERB_PAGES,
	.pages = map_pages,
	.run = map_run,
};
