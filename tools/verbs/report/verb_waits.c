/* SPDX-License-Identifier: Apache-2.0 */
/* sonde waits: what threads waited for, how often and how long, by process and reason
 * (tools/waits/waitsum.h). */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "schema/base/array.h"
#include "schema/base/cleanup.h"
#include "schema/base/mem.h"
#include "tools/cli/verb.h"
#include "tools/print/json.h"
#include "tools/print/term.h"
#include "tools/requests/reqtags.h"
#include "tools/select/select.h"
#include "tools/waits/waitbrief.h"
#include "tools/waits/waitcells.h"
#include "tools/waits/waitsum.h"

#define DEFAULT_ROWS 20

struct waits_args {
	uint64_t rows;
	const char *by, *request, *slower;
	bool idle;
};

/* clang-format off */
static const struct option WAITS_OPTIONS[] = {
	{"number", 'n', OPTION_UINT, "N", "how many rows (default 20)", offsetof(struct waits_args, rows)},
	{"by", 0, OPTION_STRING, "WHAT", "command (default), process (default with --json), thread or container", offsetof(struct waits_args, by)},
	REQTAGS_OPTIONS(struct waits_args, request, slower),
	{"idle", 0, OPTION_FLAG, NULL, "include idle waits: event loops, workers without work, waiting daemons", offsetof(struct waits_args, idle)},
	{0},
};
/* clang-format on */

static const char *const WAITS_EXAMPLES[] = {
	"sonde waits --last 15m",
	"sonde waits postgres --by thread --idle",
	"sonde waits --request 'GET /checkout' --slower-than p99",
	NULL,
};

struct view {
	const struct verb_call *call;
	const struct waits_args *a;
	enum waitsum_by by;
	struct waitsum *w;
	struct waitsum_row *rows; /* in text: sorted, with rows that look the same merged; strings
				     belong to w */
	size_t n;
	size_t shown, hidden; /* rows that pass the filter; idle rows that do not */
	uint64_t hidden_ns, most;
	size_t lasting; /* in text: rows that do not pass because they are not over, and are not
			   idle */
	uint64_t lasting_ns;
};

static bool passes(const struct view *v, const struct waitsum_row *r)
{
	return v->a->idle || v->a->request || !(v->call->json ? r->idle : r->background);
}

static void count(struct view *v)
{
	v->most = v->a->rows ? v->a->rows : DEFAULT_ROWS;
	for (size_t i = 0; i < v->n; i++) {
		const struct waitsum_row *r = &v->rows[i];

		if (passes(v, r)) {
			v->shown++;
		} else if (!r->idle) {
			v->lasting++;
			v->lasting_ns += r->total_ns;
		} else {
			v->hidden++;
			v->hidden_ns += r->total_ns;
		}
	}
}

/* --- what looks the same to people is one row --- */

static int compare_texts(const char *a, const char *b)
{
	return strcmp(a ? a : "", b ? b : "");
}

static int compare_looks(const struct waitsum_row *x, const struct waitsum_row *y)
{
	int c = compare_texts(x->container, y->container);

	c = c ? c : compare_texts(x->comm, y->comm);
	c = c ? c : compare_texts(x->thread, y->thread);
	c = c ? c : compare_texts(x->reason, y->reason);
	c = c ? c : (int)x->idle - (int)y->idle;
	c = c ? c : (int)x->partial - (int)y->partial;
	return c ? c : (x->pid > y->pid) - (x->pid < y->pid);
}

/* Among rows that look the same, the one with the most time comes first: its function and object
 * are shown for all. */
static int by_looks(const void *a, const void *b)
{
	const struct waitsum_row *x = a, *y = b;
	int c = compare_looks(x, y);

	return c ? c : (x->total_ns < y->total_ns) - (x->total_ns > y->total_ns);
}

static void merge(struct waitsum_row *to, const struct waitsum_row *r)
{
	to->n += r->n;
	to->total_ns += r->total_ns;
	to->max_ns = r->max_ns > to->max_ns ? r->max_ns : to->max_ns;
	to->exact = to->exact && r->exact;
	to->n_processes = r->n_processes > to->n_processes ? r->n_processes : to->n_processes;
	to->one_pid = to->one_pid == r->one_pid ? to->one_pid : 0;
	to->function = to->function ? to->function : r->function;
	to->purpose = to->purpose ? to->purpose : r->purpose;
	to->purpose_ns += r->purpose_ns;
	to->timer_ns += r->timer_ns;
	to->ruled_ns += r->ruled_ns;
	if (!to->object) {
		to->object = r->object;
		to->peer = r->peer;
		to->by = r->by;
		to->by_tid = r->by_tid;
	}
	if (!to->hist)
		to->hist = r->hist;
	else if (r->hist)
		hist_merge(to->hist, r->hist);
}

static bool is_timed(const struct waitsum_row *r)
{
	return r->timer_ns * 2 > r->total_ns;
}

/* First waits that hold something up, then waits that were meant to take time, then those not over,
 * then idle ones. */
static int tier(const struct waitsum_row *r)
{
	return r->idle       ? 4 :
	       r->background ? 3 :
	       r->partial    ? 2 :
			       is_timed(r) || !strcmp(r->reason, "sleep") ||
				    !strcmp(r->reason, "child");
}

static int by_matter(const void *a, const void *b)
{
	const struct waitsum_row *x = a, *y = b;
	int c = tier(x) - tier(y);

	c = c ? c : (x->total_ns < y->total_ns) - (x->total_ns > y->total_ns);
	return c ? c : compare_looks(x, y);
}

static void rows_make(struct view *v)
{
	v->rows = mem_array(v->w->n, sizeof(*v->rows));
	memcpy(v->rows, v->w->rows, v->w->n * sizeof(*v->rows));
	v->n = v->w->n;
	if (v->call->json)
		return;
	qsort(v->rows, v->n, sizeof(*v->rows), by_looks);
	v->n = 1;
	for (size_t i = 1; i < v->w->n; i++)
		if (compare_looks(&v->rows[v->n - 1], &v->rows[i]))
			v->rows[v->n++] = v->rows[i];
		else
			merge(&v->rows[v->n - 1], &v->rows[i]);
	qsort(v->rows, v->n, sizeof(*v->rows), by_matter);
}

/* No quantile can exceed the longest wait, which is known more exactly than the bounds of a
 * histogram slot. */
static uint64_t quantile(const struct waitsum_row *r, double q)
{
	uint64_t ns = r->hist ? (uint64_t)hist_quantile(r->hist, q) : 0;

	return r->max_ns && ns > r->max_ns ? r->max_ns : ns;
}

static json_t *row_json(const struct waitsum_row *r)
{
	bool hist = r->hist != NULL;
	json_t *o = json_object();

	json_object_set_new(o, "container", waitcell_text(r->container));
	json_object_set_new(o, "comm", waitcell_text(r->comm));
	json_object_set_new(o, "pid", waitcell_number(r->pid, r->pid != 0));
	json_object_set_new(o, "thread", waitcell_text(r->thread));
	json_object_set_new(o, "processes", json_integer((json_int_t)r->n_processes));
	json_object_set_new(o, "reason", json_text(r->reason));
	json_object_set_new(o, "purpose", waitcell_text(r->purpose));
	json_object_set_new(o, "purpose_ns", waitcell_number(r->purpose_ns, r->purpose != NULL));
	json_object_set_new(o, "function", waitcell_text(r->function));
	json_object_set_new(o, "object", waitcell_text(r->object));
	json_object_set_new(o, "peer", waitcell_text(r->peer));
	json_object_set_new(o, "by_thread", waitcell_text(r->by));
	json_object_set_new(o, "by_tid", waitcell_number(r->by_tid, r->by != NULL));
	json_object_set_new(o, "idle", json_boolean(r->idle));
	json_object_set_new(o, "timer_ns", json_integer((json_int_t)r->timer_ns));
	json_object_set_new(o, "background", json_boolean(r->background));
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
	struct strbuf brief cleanup_strbuf = STRBUF_INIT;
	uint64_t left = v->most;

	waitbrief_waits(&brief, v->w);
	json_object_set_new(j, "summary", waitcell_text(strbuf_str(&brief)));
	json_object_set_new(j, "throttled", waitcell_held(&v->w->held));

	for (size_t i = 0; i < v->n && left; i++)
		if (passes(v, &v->rows[i])) {
			json_array_append_new(json_rows(j), row_json(&v->rows[i]));
			left--;
		}
	json_object_set_new(j, "idle_hidden", json_integer((json_int_t)v->hidden));
	json_object_set_new(j, "idle_hidden_ns", json_integer((json_int_t)v->hidden_ns));
	if (v->shown > v->most)
		json_warn(j, "%zu more rows: -n %zu shows them", v->shown - (size_t)v->most,
			  v->shown);
	return json_print(j, stdout, 1);
}

static void row_text(struct table *t, const struct waitsum_row *r)
{
	const char *about = r->exact ? "" : "~";
	bool hist = r->hist && !r->partial;
	char time[24];

	waitcell_pid(t, r->pid ? r->pid : r->one_pid, r->n_processes);
	table_cell(t, r->thread ? r->thread : *r->comm ? r->comm : "-");
	waitcell_name(t, r->container);
	table_cellf(t, "%s%s%s%s%s%s", r->reason, is_timed(r) ? ", timed" : "",
		    r->purpose_ns * 2 > r->total_ns ? ": " : "",
		    r->purpose_ns * 2 > r->total_ns ? r->purpose : "", r->idle ? ", idle" : "",
		    r->partial ? ", not over" : "");
	table_cellf(t, "%s%llu", about, (unsigned long long)r->n);
	table_cellf(t, "%s%s", about, waitcell_time(r->total_ns, time));
	waitcell_duration(t, r->max_ns, r->max_ns != 0);
	table_cell(t, r->function ? r->function : "-");
	if (!r->object)
		table_cell(t, "-");
	else if (r->by && !strcmp(r->reason, "lock"))
		table_cellf(t, "%s, ended by %s %u", r->object, r->by, r->by_tid);
	else if (r->peer)
		table_cellf(t, "%s (%s)", r->object, r->peer);
	else
		table_cell(t, r->object);
	waitcell_duration(t, quantile(r, 0.5), hist);
	waitcell_duration(t, quantile(r, 0.95), hist);
	waitcell_duration(t, quantile(r, 0.99), hist);
}

static void notes(const struct view *v, bool about)
{
	if (v->shown > v->most)
		fprintf(stderr, "%zu more: -n %zu shows them\n", v->shown - (size_t)v->most,
			v->shown);
	if (v->hidden)
		fprintf(stderr, "%zu row%s of idle waits (%.1f s) hidden: --idle shows them\n",
			v->hidden, v->hidden == 1 ? "" : "s", (double)v->hidden_ns / 1e9);
	if (v->lasting)
		fprintf(stderr,
			"%zu row%s of waits that are not over (%.1f s), such as a daemon's, hidden: --idle shows them\n",
			v->lasting, v->lasting == 1 ? "" : "s", (double)v->lasting_ns / 1e9);
	if (about)
		fputs("~: an exact total was divided by sampled stacks\n", stderr);
}

static void print_text(const struct view *v)
{
	static const struct table_column columns[] = {
		{"PID", TABLE_RIGHT},       {"NAME", TABLE_MIDDLE},     {"CONTAINER", TABLE_MIDDLE},
		{"WAITED FOR", TABLE_LEFT}, {"TIMES", TABLE_RIGHT},     {"TOTAL", TABLE_RIGHT},
		{"LONGEST", TABLE_RIGHT},   {"MOSTLY IN", TABLE_SPARE}, {"MOSTLY ON", TABLE_SPARE},
		{"P50", TABLE_SPARE_RIGHT}, {"P95", TABLE_SPARE_RIGHT}, {"P99", TABLE_SPARE_RIGHT},
	};
	struct table *t = table_new(columns, ARRAY_SIZE(columns));
	struct strbuf brief cleanup_strbuf = STRBUF_INIT;
	uint64_t left = v->most;
	bool about = false;

	waitbrief_waits(&brief, v->w);
	for (size_t i = 0; i < v->n && left; i++)
		if (passes(v, &v->rows[i])) {
			row_text(t, &v->rows[i]);
			about = about || !v->rows[i].exact;
			left--;
		}
	waitcell_print(t, &brief, v->call);
	table_free(t);
	if (!v->call->quiet)
		notes(v, about);
}

static int nothing_but_idle(const struct view *v, struct err *e)
{
	if (v->shown)
		return 0;
	err_set(e, -ENOENT, EXIT_NOTHING, "only idle%s waits were found (%zu rows)",
		v->lasting ? " or unfinished" : "", v->hidden + v->lasting);
	err_fix(e, "sonde waits --idle");
	return -ENOENT;
}

/* The total time of the requests, and the part that is in no wait: CPU time, or unknown. */
static void tell_whole(const struct view *v, const struct reqtags *tags)
{
	cleanup_free char *text = reqtags_text(tags, v->a->request);
	uint64_t waited = 0, took = (uint64_t)tags->total_us * 1000;
	char sum[24], rest[24];

	for (size_t i = 0; i < v->w->n; i++)
		waited += v->w->rows[i].total_ns;
	fprintf(stderr,
		"%s; %s of that were waits; the other %s were CPU time or could not be matched\n",
		text, waitcell_time(waited, sum),
		waitcell_time(took > waited ? took - waited : 0, rest));
}

static int waits_run(struct verb_call *call, struct err *e)
{
	struct view v = {.call = call, .a = call->args};
	struct reqtags tags = {0};
	int rc = waitcell_by(v.a->by, &v.by, e);

	if (!v.a->by && !call->json)
		v.by = WAITSUM_BY_COMMAND;
	if (!rc)
		rc = reqtags_find(call->sel, v.a->request, v.a->slower, &tags, e);
	if (!rc)
		rc = waitsum_make_tagged(call->sel, v.by, v.a->request ? &tags.tags : NULL, &v.w,
					 e);
	if (!rc && v.a->request && !call->quiet && !call->json)
		tell_whole(&v, &tags);
	reqtags_release(&tags);
	if (rc)
		return rc;
	rows_make(&v);
	count(&v);
	rc = nothing_but_idle(&v, e);
	if (!rc && call->json)
		rc = print_json(&v);
	else if (!rc)
		print_text(&v);
	free(v.rows);
	waitsum_free(v.w);
	return verb_flush(rc, e);
}

const struct verb verb_waits = {
	.name = "waits",
	.summary = "show what threads waited for, how often and how long",
	.usage = "[WHAT] [--by WHAT] [--idle] [-n N]",
	.examples = WAITS_EXAMPLES,
	.options = WAITS_OPTIONS,
	.args_size = sizeof(struct waits_args),
	.uses = VERB_SELECT | VERB_SELECT_WORD | VERB_JSON | VERB_PAGES,
	.run = waits_run,
};
