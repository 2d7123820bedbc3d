/* SPDX-License-Identifier: Apache-2.0 */
/* sonde waits: what threads waited for, how often and how long, by process and reason (tools/waitsum.h). */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "tools/json.h"
#include "tools/select.h"
#include "tools/term.h"
#include "tools/verb.h"
#include "tools/waitcells.h"
#include "tools/waitsum.h"

#define DEFAULT_ROWS 20

struct waits_args {
	uint64_t rows;
	const char *by;
	bool idle;
};

static const struct option WAITS_OPTIONS[] = {
	{"number", 'n', OPTION_UINT, "N", "how many rows (default 20)", offsetof(struct waits_args, rows)},
	{"by", 0, OPTION_STRING, "WHAT", "process (default), thread, command, container", offsetof(struct waits_args, by)},
	{"idle", 0, OPTION_FLAG, NULL, "idle waits too: event loops, workers without work", offsetof(struct waits_args, idle)},
	{0},
};

static const char *const WAITS_EXAMPLES[] = {
	"sonde waits --last 15m",
	"sonde waits postgres --by thread --idle",
	NULL,
};

struct view {
	const struct verb_call *call;
	const struct waits_args *a;
	struct waitsum *w;
	size_t shown, hidden;   /* rows that pass; idle ones that do not */
	uint64_t hidden_ns, most;
};

static bool passes(const struct view *v, const struct waitsum_row *r)
{
	return v->a->idle || !r->idle;
}

static void count(struct view *v)
{
	v->most = v->a->rows ? v->a->rows : DEFAULT_ROWS;
	for (size_t i = 0; i < v->w->n; i++) {
		const struct waitsum_row *r = &v->w->rows[i];

		if (passes(v, r)) {
			v->shown++;
		} else {
			v->hidden++;
			v->hidden_ns += r->total_ns;
		}
	}
}

static bool has_hist(const struct waitsum_row *r)
{
	for (size_t i = 0; i < HIST_SLOTS; i++)
		if (r->hist[i])
			return true;
	return false;
}

/* No quantile lies above the longest, which is known better than a slot's bounds. */
static uint64_t quantile(const struct waitsum_row *r, double q)
{
	uint64_t ns = (uint64_t)hist_quantile(r->hist, q);

	return r->max_ns && ns > r->max_ns ? r->max_ns : ns;
}

static json_t *row_json(const struct waitsum_row *r)
{
	bool hist = has_hist(r);
	json_t *o = json_object();

	json_object_set_new(o, "container", waitcell_text(r->container));
	json_object_set_new(o, "comm", waitcell_text(r->comm));
	json_object_set_new(o, "pid", waitcell_number(r->pid, r->pid != 0));
	json_object_set_new(o, "thread", waitcell_text(r->thread));
	json_object_set_new(o, "reason", json_text(r->reason));
	json_object_set_new(o, "function", waitcell_text(r->function));
	json_object_set_new(o, "object", waitcell_text(r->object));
	json_object_set_new(o, "by_thread", waitcell_text(r->by));
	json_object_set_new(o, "by_tid", waitcell_number(r->by_tid, r->by != NULL));
	json_object_set_new(o, "idle", json_boolean(r->idle));
	json_object_set_new(o, "partial", json_boolean(r->partial));
	json_object_set_new(o, "exact", json_boolean(r->exact));
	json_object_set_new(o, "count", json_integer((json_int_t)r->n));
	json_object_set_new(o, "total_ns", json_integer((json_int_t)r->total_ns));
	json_object_set_new(o, "p50_ns", waitcell_number(quantile(r, 0.5), hist));
	json_object_set_new(o, "p95_ns", waitcell_number(quantile(r, 0.95), hist));
	json_object_set_new(o, "p99_ns", waitcell_number(quantile(r, 0.99), hist));
	json_object_set_new(o, "max_ns", waitcell_number(r->max_ns, r->max_ns != 0));
	return o;
}

static int print_json(const struct view *v)
{
	json_t *j = json_envelope("waits", v->call->sel->from_ns, v->call->sel->to_ns);
	uint64_t left = v->most;

	for (size_t i = 0; i < v->w->n && left; i++)
		if (passes(v, &v->w->rows[i])) {
			json_array_append_new(json_rows(j), row_json(&v->w->rows[i]));
			left--;
		}
	json_object_set_new(j, "idle_hidden", json_integer((json_int_t)v->hidden));
	json_object_set_new(j, "idle_hidden_ns", json_integer((json_int_t)v->hidden_ns));
	if (v->shown > v->most)
		json_warn(j, "%zu more rows: -n %zu shows them", v->shown - (size_t)v->most, v->shown);
	return json_print(j, stdout, 1);
}

static void row_text(struct table *t, const struct waitsum_row *r)
{
	bool hist = has_hist(r) && !r->partial;

	if (r->pid)
		table_cellf(t, "%u", r->pid);
	else
		table_cell(t, "-");
	table_cell(t, r->thread ? r->thread : *r->comm ? r->comm : "-");
	table_cell(t, *r->container ? r->container : "-");
	table_cellf(t, "%s%s%s", r->reason, r->idle ? ", idle" : "", r->partial ? ", not over" : "");
	table_cellf(t, "%s%llu", r->exact ? "" : "~", (unsigned long long)r->n);
	waitcell_duration(t, r->total_ns, true);
	waitcell_duration(t, quantile(r, 0.5), hist);
	waitcell_duration(t, quantile(r, 0.95), hist);
	waitcell_duration(t, quantile(r, 0.99), hist);
	waitcell_duration(t, r->max_ns, r->max_ns != 0);
	table_cell(t, r->function ? r->function : "-");
	if (!r->object)
		table_cell(t, "-");
	else if (r->by && !strcmp(r->reason, "lock"))
		table_cellf(t, "%s, ended by %s %u", r->object, r->by, r->by_tid);
	else
		table_cell(t, r->object);
}

static void print_text(const struct view *v)
{
	static const struct table_column columns[] = {
		{"PID", TABLE_RIGHT}, {"NAME", TABLE_MIDDLE}, {"CONTAINER", TABLE_MIDDLE}, {"WAITED FOR", TABLE_LEFT},
		{"TIMES", TABLE_RIGHT}, {"TOTAL", TABLE_RIGHT}, {"P50", TABLE_RIGHT}, {"P95", TABLE_RIGHT},
		{"P99", TABLE_RIGHT}, {"LONGEST", TABLE_RIGHT}, {"MOSTLY IN", TABLE_MIDDLE},
		{"MOSTLY ON", TABLE_MIDDLE},
	};
	struct table *t = table_new(columns, sizeof(columns) / sizeof(*columns));
	uint64_t left = v->most;

	for (size_t i = 0; i < v->w->n && left; i++)
		if (passes(v, &v->w->rows[i])) {
			row_text(t, &v->w->rows[i]);
			left--;
		}
	table_print(t, stdout, v->call->wide ? 0 : term_width(stdout));
	table_free(t);
	if (v->call->quiet)
		return;
	if (v->shown > v->most)
		fprintf(stderr, "%zu more: -n %zu shows them\n", v->shown - (size_t)v->most, v->shown);
	if (v->hidden)
		fprintf(stderr, "%zu idle rows (%.1f s) are hidden: --idle shows them\n", v->hidden, (double)v->hidden_ns / 1e9);
}

static int nothing_but_idle(const struct view *v, struct err *e)
{
	if (v->shown)
		return 0;
	err_set(e, -ENOENT, EXIT_NOTHING, "all %zu rows are idle waits", v->hidden);
	err_fix(e, "sonde waits --idle");
	return -ENOENT;
}

static int waits_run(struct verb_call *call, struct err *e)
{
	struct view v = {.call = call, .a = call->args};
	enum waitsum_by by;
	int rc = waitcell_by(v.a->by, &by, e);

	if (!rc)
		rc = waitsum_make(call->sel, by, &v.w, e);
	if (rc)
		return rc;
	count(&v);
	rc = nothing_but_idle(&v, e);
	if (!rc && call->json)
		rc = print_json(&v);
	else if (!rc)
		print_text(&v);
	waitsum_free(v.w);
	if (!rc && (fflush(stdout) || ferror(stdout)))
		rc = err_set(e, -EIO, EXIT_RUNTIME, "cannot write standard output: %s", strerror(errno));
	return rc;
}

const struct verb verb_waits = {
	.name = "waits",
	.summary = "what threads waited for, how often and how long",
	.usage = "[WHAT] [--by WHAT] [--idle] [-n N]",
	.examples = WAITS_EXAMPLES,
	.options = WAITS_OPTIONS,
	.args_size = sizeof(struct waits_args),
	.uses = VERB_SELECT | VERB_SELECT_WORD | VERB_JSON | VERB_PAGES,
	.run = waits_run,
};
