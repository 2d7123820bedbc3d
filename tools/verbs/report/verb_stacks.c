/* SPDX-License-Identifier: Apache-2.0 */
/* sonde stacks: the hottest functions as text, their callers (--callers) and callees
 * (--callees). */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "schema/base/array.h"
#include "schema/base/cleanup.h"
#include "schema/base/mem.h"
#include "schema/base/strbuf.h"
#include "schema/base/typed.h"
#include "schema/store/read/reader.h"
#include "tools/cli/verb.h"
#include "tools/fold/flame/flame_tree.h"
#include "tools/fold/fold.h"
#include "tools/fold/fold_kind.h"
#include "tools/fold/ranking/related.h"
#include "tools/fold/ranking/top.h"
#include "tools/fold/shortfall.h"
#include "tools/print/framename.h"
#include "tools/print/json.h"
#include "tools/print/table.h"
#include "tools/print/term.h"
#include "tools/print/when.h"
#include "tools/requests/reqtags.h"
#include "tools/select/filter.h"
#include "tools/select/select.h"

#define DEFAULT_ROWS 10

struct stacks_args {
	uint64_t rows;
	const char *callers, *callees, *type, *request, *slower;
	bool lines, no_inline, interpreter;
};

static const struct option STACKS_OPTIONS[] = {
	FOLD_KIND_OPTION(struct stacks_args, type),
	{"number", 'n', OPTION_MOST, "N", "how many rows (default 10; 0: all)",
	 offsetof(struct stacks_args, rows)},
	{"callers", 0, OPTION_STRING, "FUNC",
	 "show the paths that lead to a function (name or regular expression)",
	 offsetof(struct stacks_args, callers)},
	{"callees", 0, OPTION_STRING, "FUNC",
	 "show the paths from a function to where the time was spent",
	 offsetof(struct stacks_args, callees)},
	REQTAGS_OPTIONS(struct stacks_args, request, slower),
	{"lines", 0, OPTION_FLAG, NULL, "separate functions by line: name (file.c:12)",
	 offsetof(struct stacks_args, lines)},
	{"no-inline", 0, OPTION_FLAG, NULL, "count inlined functions as their caller",
	 offsetof(struct stacks_args, no_inline)},
	{"interpreter", 0, OPTION_FLAG, NULL,
	 "show the interpreter's own frames among those of its scripts",
	 offsetof(struct stacks_args, interpreter)},
	{0},
};

static const char *const STACKS_EXAMPLES[] = {
	"sonde stacks -n 20",
	"sonde stacks nginx --last 10m --json",
	"sonde stacks --callers '^deflate'",
	"sonde stacks --request 'GET /checkout' --slower-than p99 --type offcpu",
	NULL,
};

struct view { /* what all print functions need */
	const struct verb_call *call;
	const struct fold *f;
	struct flame_tree tree;
	size_t rows;
	char amounts[FOLD_TITLE_LEN], counts[FOLD_TITLE_LEN];
};

static double percent(uint64_t part, uint64_t whole)
{
	return whole ? 100.0 * (double)part / (double)whole : 0;
}

static unsigned width(const struct view *v)
{
	return v->call->wide ? 0 : term_width(stdout);
}

static void set_number(json_t *o, const char *key, uint64_t v)
{
	json_object_set_new(o, key, json_integer((json_int_t)v));
}

/* "self" and "total" prefix the field names, "" for totals of the answer; CPU time has special
 * names. */
static void set_amount(const struct view *v, json_t *o, const char *which, uint64_t n,
		       uint64_t amount)
{
	bool cpu = v->f->kind->kind == STORE_KIND_CPU && v->f->unit == STORE_TIME;
	char key[32];

	snprintf(key, sizeof(key), "%s%s%s", which, *which ? "_" : "",
		 cpu ? *which ? "ns" : "cpu_ns" : "value");
	set_number(o, key, amount);
	snprintf(key, sizeof(key), "%s%s%s", which, *which ? "_" : "", cpu ? "samples" : "n");
	set_number(o, key, n);
	snprintf(key, sizeof(key), "%s%scores", which, *which ? "_" : "");
	if (cpu)
		json_object_set_new(o, key, json_real(fold_cores(v->f, amount)));
}

static void warn(void *ctx, const char *sentence)
{
	json_warn(ctx, "%s", sentence);
}

static json_t *envelope(const struct view *v)
{
	json_t *j = json_envelope("stacks", v->f->from_ns, v->f->to_ns);

	json_object_set_new(j, "type", json_string(v->f->kind->name));
	json_object_set_new(j, "unit", json_string(store_unit_name(v->f->unit)));
	json_object_set_new(j, "counted", json_string(store_kind_counted(v->f->kind)));
	set_amount(v, j, "", v->f->nodes[0].total_samples, v->f->nodes[0].total_ns);
	shortfall_each(v->f, warn, j);
	return j;
}

/* --- the top --- */

static int top_json(const struct view *v, const struct top *top)
{
	json_t *j = envelope(v);

	for (size_t i = 0; i < top->n_rows && i < v->rows; i++) {
		const struct top_row *r = &top->rows[i];
		const struct fold_frame *fr = &v->tree.frames[r->frame];
		json_t *o = json_object();

		json_object_set_new(o, "function", json_text(fr->name));
		json_object_set_new(o, "module", json_text_or_null(fr->module));
		json_object_set_new(o, "file", json_text_or_null(fr->file));
		json_object_set_new(o, "inlined", json_boolean(r->inlined));
		set_amount(v, o, "self", r->self_samples, r->self_ns);
		set_amount(v, o, "total", r->total_samples, r->total_ns);
		json_array_append_new(json_rows(j), o);
	}
	json_bound(j, top->n_rows);
	return json_print(j, stdout, 1);
}

static void function_cell(struct table *t, const char *name, bool inlined)
{
	if (inlined)
		table_cellf(t, "%s (inlined)", name);
	else
		table_cell(t, name);
}

/* Prints the command that shows the lines of the hottest function, if its lines are known. */
static void say_lines(const struct view *v, const struct top *top)
{
	const struct fold_frame *fr = top->n_rows ? &v->tree.frames[top->rows[0].frame] : NULL;
	const struct select_args *a = v->call->select;
	struct strbuf command cleanup_strbuf = STRBUF_INIT;
	char from[40], to[40];

	if (v->call->quiet || !fr || !*fr->file || v->f->kind->kind != STORE_KIND_CPU)
		return;
	strbuf_addf(&command, "%s lines ", typed_sonde(false));
	filter_word(fr->name, &command);
	if (v->call->sel->filter_text[0])
		strbuf_addf(&command, " %s", v->call->sel->filter_text);
	if (a->last_ns || a->from || a->to || a->at || a->rec)
		strbuf_addf(&command, " --from %s --to %s",
			    when_zoned(v->call->sel->from_ns, from, sizeof(from)),
			    when_zoned(v->call->sel->to_ns, to, sizeof(to)));
	stores_options(v->call->hint_store, &command);
	fprintf(stderr, "next:  %s\n", strbuf_str(&command));
}

/* The titles in `v` live as long as the table. Counts have a separate column, unless the
 * amounts are counts. */
static struct table *top_table(struct view *v)
{
	const char *amounts = fold_amount_title(v->f, v->amounts, sizeof(v->amounts)),
		   *counts = fold_count_title(v->f, v->counts, sizeof(v->counts));
	const struct table_column all[] = {{"SELF", TABLE_RIGHT},  {amounts, TABLE_RIGHT},
					   {"TOTAL", TABLE_RIGHT}, {amounts, TABLE_RIGHT},
					   {counts, TABLE_RIGHT},  {"FUNCTION", TABLE_MIDDLE},
					   {"MODULE", TABLE_LEFT}};
	struct table_column columns[ARRAY_SIZE(all)];
	size_t n = 0;

	for (size_t i = 0; i < ARRAY_SIZE(all); i++)
		if (all[i].title != counts || !fold_is_count(v->f))
			columns[n++] = all[i];
	return table_new(columns, n);
}

static int top_print(struct view *v)
{
	char buf[32];
	uint64_t whole = v->f->nodes[0].total_ns;
	struct table *t;
	struct top top;
	int ret = 0;

	top_of_flat(&top, &v->tree, v->f);
	if (v->call->json) {
		ret = top_json(v, &top);
		top_release(&top);
		return ret;
	}
	t = top_table(v);
	for (size_t i = 0; i < top.n_rows && i < v->rows; i++) {
		const struct top_row *r = &top.rows[i];

		table_cellf(t, "%.1f %%", percent(r->self_ns, whole));
		table_cell(t, fold_amount(v->f, r->self_ns, buf, sizeof(buf)));
		table_cellf(t, "%.1f %%", percent(r->total_ns, whole));
		table_cell(t, fold_amount(v->f, r->total_ns, buf, sizeof(buf)));
		if (!fold_is_count(v->f))
			table_cellf(t, "%llu", (unsigned long long)r->self_samples);
		function_cell(t, v->tree.frames[r->frame].name, r->inlined);
		table_cell(t, v->tree.frames[r->frame].module);
	}
	table_print(t, stdout, width(v));
	table_free(t);
	fflush(stdout);
	say_lines(v, &top);
	top_release(&top);
	return 0;
}

/* --- callers and callees --- */

static int related_json(const struct view *v, const struct related *r)
{
	json_t *j = envelope(v);

	for (size_t i = 0; i < r->n_paths && i < v->rows; i++) {
		json_t *o = json_object(), *path = json_array();

		for (size_t k = 0; k < r->paths[i].n; k++)
			json_array_append_new(
				path, json_text(v->tree.frames[r->paths[i].frames[k]].name));
		json_object_set_new(o, "path", path);
		set_amount(v, o, "", r->paths[i].samples, r->paths[i].ns);
		json_object_set_new(o, "share", json_real(percent(r->paths[i].ns, r->ns) / 100));
		json_array_append_new(json_rows(j), o);
	}
	json_bound(j, r->n_paths);
	return json_print(j, stdout, 1);
}

static void functions_say(const struct view *v, const struct related *r)
{
	char buf[32];

	if (v->call->quiet)
		return;
	fprintf(stderr, "%zu function%s match%s, together %.1f %% of the %s (%s%s):\n",
		r->n_functions, r->n_functions == 1 ? "" : "s", r->n_functions == 1 ? "es" : "",
		percent(r->ns, v->f->nodes[0].total_ns),
		fold_is_cores(v->f) ? "CPU time" : v->f->kind->what,
		fold_amount(v->f, r->ns, buf, sizeof(buf)), fold_is_cores(v->f) ? " cores" : "");
	for (size_t i = 0; i < r->n_functions && i < DEFAULT_ROWS; i++) {
		const struct fold_frame *fr = &v->tree.frames[r->functions[i]];
		cleanup_strbuf struct strbuf line = STRBUF_INIT;

		term_add_middle(&line, fr->name, v->call->wide ? SIZE_MAX : 80);
		term_printf(stderr, "  %s  %s\n", strbuf_str(&line), fr->module);
	}
	if (r->n_functions > DEFAULT_ROWS)
		fprintf(stderr, "  (%zu more)\n", r->n_functions - DEFAULT_ROWS);
}

/* SHARE, TIME, WAITS, PATH; what is counted has its number once. */
static struct table *paths_table(struct view *v)
{
	const struct table_column columns[] = {
		{"SHARE", TABLE_RIGHT},
		{fold_amount_title(v->f, v->amounts, sizeof(v->amounts)), TABLE_RIGHT},
		{fold_is_count(v->f) ? "PATH" :
				       fold_count_title(v->f, v->counts, sizeof(v->counts)),
		 fold_is_count(v->f) ? TABLE_MIDDLE : TABLE_RIGHT},
		{"PATH", TABLE_MIDDLE},
	};

	return table_new(columns, ARRAY_SIZE(columns) - fold_is_count(v->f));
}

static void paths_print(struct view *v, const struct related *r)
{
	char buf[32];
	struct table *t = paths_table(v);
	uint64_t rest = 0;

	for (size_t i = 0; i < r->n_paths; i++) {
		const struct related_path *p = &r->paths[i];
		cleanup_strbuf struct strbuf path = STRBUF_INIT;

		if (i >= v->rows) {
			rest += p->ns;
			continue;
		}
		for (size_t k = 0; k < p->n; k++) {
			if (k)
				strbuf_addch(&path, ';');
			framename_add(&path, v->tree.frames[p->frames[k]].name);
			if (v->tree.frames[p->frames[k]].inlined)
				strbuf_addstr(&path, " (inlined)");
		}
		table_cellf(t, "%.1f %%", percent(p->ns, r->ns));
		table_cell(t, fold_amount(v->f, p->ns, buf, sizeof(buf)));
		if (!fold_is_count(v->f))
			table_cellf(t, "%llu", (unsigned long long)p->samples);
		table_cell(t, strbuf_str(&path));
	}
	table_print(t, stdout, width(v));
	table_free(t);
	if (r->n_paths > v->rows)
		printf("%.1f %% in %zu more\n", percent(rest, r->ns), r->n_paths - v->rows);
}

static int related_print(struct view *v, const char *text, enum related_side side, struct err *e)
{
	struct related r;
	int ret = related_init(&r, &v->tree, text, side, e);

	if (ret)
		return ret;
	if (v->call->json) {
		ret = related_json(v, &r);
	} else {
		functions_say(v, &r);
		paths_print(v, &r);
	}
	related_release(&r);
	return ret;
}

static int stacks_run(struct verb_call *call, struct err *e)
{
	const struct stacks_args *a = call->args;
	struct view v = {.call = call, .rows = a->rows ? (size_t)a->rows : DEFAULT_ROWS};
	struct fold_opts opts = {.lines = a->lines,
				 .no_inline = a->no_inline,
				 .interpreter = a->interpreter,
				 .flat = !a->callers && !a->callees};
	struct reqtags tags = {0};
	struct fold *f = NULL;
	int ret;

	if (a->callers && a->callees)
		return err_set(e, -EINVAL, EXIT_USAGE,
			       "--callers and --callees cannot be combined");
	ret = fold_kind_of(a->type, call->sel, &opts, e);
	if (!ret)
		ret = reqtags_find(call->sel, a->request, a->slower, &tags, e);
	opts.tags = a->request ? &tags.tags : NULL;
	if (!ret)
		ret = fold_make(call->sel, &opts, &f, e);
	if (!ret && a->request && !call->quiet && !call->json)
		reqtags_tell(&tags, a->request);
	reqtags_release(&tags);
	if (ret)
		return ret;
	v.f = f;
	if (a->callers || a->callees)
		flame_tree_init(&v.tree, f, 0, false);
	if (!call->quiet && !call->json)
		shortfall_print(f, stderr);
	if (a->callers)
		ret = related_print(&v, a->callers, RELATED_CALLERS, e);
	else if (a->callees)
		ret = related_print(&v, a->callees, RELATED_CALLEES, e);
	else
		ret = top_print(&v);
	flame_tree_release(&v.tree);
	fold_free(f);
	return verb_flush(ret, e);
}

const struct verb verb_stacks = {
	.name = "stacks",
	.summary = "print the hottest functions, their callers and callees",
	.usage = "[WHAT] [-n N] [--callers FUNC | --callees FUNC]",
	.examples = STACKS_EXAMPLES,
	.options = STACKS_OPTIONS,
	.args_size = sizeof(struct stacks_args),
	.uses = VERB_SELECT | VERB_HOSTS | VERB_SELECT_WORD | VERB_JSON | VERB_PAGES,
	.run = stacks_run,
};
