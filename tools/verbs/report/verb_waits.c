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
#include "schema/base/units.h"
#include "tools/cli/verb.h"
#include "tools/print/json.h"
#include "tools/print/row.h"
#include "tools/print/term.h"
#include "tools/print/wrap.h"
#include "schema/base/strbuf.h"
#include "tools/requests/reqtags.h"
#include "tools/select/select.h"
#include "tools/verbs/report/waitverbs.h"
#include "tools/waits/javawaits.h"
#include "tools/waits/waitbrief.h"
#include "tools/waits/waitcells.h"
#include "tools/waits/waitsum.h"

#define DEFAULT_ROWS 20

struct waits_args {
	uint64_t rows;
	const char *by, *request, *slower;
	bool idle, neighbours, wakers, stacks;
};

/* clang-format off */
static const struct option WAITS_OPTIONS[] = {
	{"number", 'n', OPTION_MOST, "N", "how many rows (default 20; 0: all)", offsetof(struct waits_args, rows)},
	{"by", 0, OPTION_STRING, "WHAT", "command (default), process (default with --json), thread or container", offsetof(struct waits_args, by)},
	REQTAGS_OPTIONS(struct waits_args, request, slower),
	{"idle", 0, OPTION_FLAG, NULL, "include idle waits: event loops, workers without work, waiting daemons", offsetof(struct waits_args, idle)},
	{"neighbours", 0, OPTION_FLAG, NULL, "show who had the CPU while threads were ready to run", offsetof(struct waits_args, neighbours)},
	{"wakers", 0, OPTION_FLAG, NULL, "show who ended the waits; --stacks: where", offsetof(struct waits_args, wakers)},
	{"stacks", 0, OPTION_FLAG, NULL, NULL, offsetof(struct waits_args, stacks)},
	{0},
};
/* clang-format on */

static const char *const WAITS_EXAMPLES[] = {
	"sonde waits --last 15m",
	"sonde waits postgres --by thread --idle",
	"sonde waits postgres --neighbours --at 03:10",
	"sonde waits --request 'GET /checkout' --slower-than p99",
	NULL,
};

struct view {
	const struct verb_call *call;
	const struct waits_args *a;
	enum waitsum_by by;
	struct waitsum *w;
	struct javawaits java;
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
	to->n_variance += r->n_variance;
	to->total_variance += r->total_variance;
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

/* First waits that hold something up, then waits that were meant to take time, then those not over,
 * then idle ones. */
static int tier(const struct waitsum_row *r)
{
	return r->idle       ? 4 :
	       r->background ? 3 :
	       r->partial    ? 2 :
			       waitcell_is_timed(r) || !strcmp(r->reason, "sleep") ||
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
	if (!v->n)
		return;
	if (v->call->json) { /* the first of them are what a bounded answer has */
		qsort(v->rows, v->n, sizeof(*v->rows), by_matter);
		return;
	}
	qsort(v->rows, v->n, sizeof(*v->rows), by_looks);
	v->n = 1;
	for (size_t i = 1; i < v->w->n; i++)
		if (compare_looks(&v->rows[v->n - 1], &v->rows[i]))
			v->rows[v->n++] = v->rows[i];
		else
			merge(&v->rows[v->n - 1], &v->rows[i]);
	qsort(v->rows, v->n, sizeof(*v->rows), by_matter);
}

static int print_json(const struct view *v)
{
	json_t *j = json_envelope("waits", v->call->sel->from_ns, v->call->sel->to_ns);
	struct strbuf brief cleanup_strbuf = STRBUF_INIT;
	uint64_t left = v->most;

	waitbrief_waits(&brief, v->w);
	json_object_set_new(j, "summary", json_text_or_null(strbuf_str(&brief)));
	json_cut_list(j, "throttled", waitcell_held(&v->w->held), v->most);
	json_cut_list(j, "java", javawaits_json(&v->java, v->a->idle), v->most);

	for (size_t i = 0; i < v->n && left; i++)
		if (passes(v, &v->rows[i])) {
			struct row o = row_of_json();

			waitcell_row(&o, &v->rows[i]);
			json_array_append_new(json_rows(j), o.json);
			left--;
		}
	json_object_set_new(j, "idle_hidden", json_integer((json_int_t)v->hidden));
	json_object_set_new(j, "idle_hidden_ns", json_integer((json_int_t)v->hidden_ns));
	json_bound(j, v->shown);
	return json_print(j, stdout, 1);
}

static void notes(const struct view *v, bool about)
{
	char time[UNITS_MAX];

	if (v->shown > v->most)
		fprintf(stderr, "%zu more: -n %zu shows them\n", v->shown - (size_t)v->most,
			v->shown);
	if (v->hidden)
		fprintf(stderr, "%zu row%s of idle waits (%s) hidden: --idle shows them\n",
			v->hidden, v->hidden == 1 ? "" : "s",
			units_ns((int64_t)v->hidden_ns, time, sizeof(time)));
	if (v->lasting)
		fprintf(stderr,
			"%zu row%s of waits that are not over (%s), such as a daemon's, hidden: --idle shows them\n",
			v->lasting, v->lasting == 1 ? "" : "s",
			units_ns((int64_t)v->lasting_ns, time, sizeof(time)));
	if (about)
		fputs("~: an exact total was divided by stacks, which were taken of some waits; \u00b1: its standard error\n",
		      stderr);
}

/* What family java says of the same threads, and of who had what they waited for. */
static void print_java(const struct view *v)
{
	struct strbuf brief cleanup_strbuf = STRBUF_INIT;
	struct strbuf clean cleanup_strbuf = STRBUF_INIT;

	javawaits_brief(&brief, &v->java);
	strbuf_addshown(&clean, strbuf_str(&brief), brief.len);
	if (brief.len && !v->call->quiet)
		wrap_print(stdout, strbuf_str(&clean), 2);
	javawaits_print(&v->java, v->most, v->a->idle, v->call->wide ? 0 : term_width(stdout));
}

static void print_text(const struct view *v)
{
	struct row o = row_of_table();
	struct strbuf brief cleanup_strbuf = STRBUF_INIT;
	uint64_t left = v->most;
	bool about = false;

	waitbrief_waits(&brief, v->w);
	for (size_t i = 0; i < v->n && left; i++)
		if (passes(v, &v->rows[i])) {
			waitcell_row(&o, &v->rows[i]);
			about = about || !v->rows[i].exact;
			left--;
		}
	if (v->shown)
		waitcell_print(o.table, &brief, v->call);
	table_free(o.table);
	print_java(v);
	if (!v->call->quiet)
		notes(v, about);
}

static bool java_shows(const struct view *v)
{
	return v->java.n && (v->a->idle || !v->java.rows[0].idle);
}

static int nothing_but_idle(const struct view *v, struct err *e)
{
	if (v->shown || java_shows(v))
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
		text, units_ns(waited, sum, sizeof(sum)),
		units_ns(took > waited ? took - waited : 0, rest, sizeof(rest)));
}

static int waits_of(struct verb_call *call, struct err *e)
{
	struct view v = {.call = call, .a = call->args};
	struct reqtags tags = {0};
	int rc = waitcell_by(v.a->by, &v.by, e);

	if (!v.a->by && !call->json)
		v.by = WAITSUM_BY_COMMAND;
	if (!rc)
		rc = reqtags_find(call->sel, v.a->request, v.a->slower, &tags, e);
	if (!rc && !v.a->request)
		rc = javawaits_read(call->sel, &v.java, e);
	if (!rc)
		rc = waitsum_make_tagged(call->sel, v.by, v.a->request ? &tags.tags : NULL, &v.w,
					 e);
	if (rc && e->exit == EXIT_NOTHING && java_shows(&v)) { /* recorded without offcpu */
		*e = (struct err){0};
		v.w = mem_alloc(sizeof(*v.w));
		rc = 0;
	}
	if (!rc && v.a->request && !call->quiet && !call->json)
		tell_whole(&v, &tags);
	reqtags_release(&tags);
	if (rc) {
		javawaits_release(&v.java);
		return rc;
	}
	rows_make(&v);
	count(&v);
	rc = nothing_but_idle(&v, e);
	if (!rc && call->json)
		rc = print_json(&v);
	else if (!rc)
		print_text(&v);
	free(v.rows);
	javawaits_release(&v.java);
	waitsum_free(v.w);
	return verb_flush(rc, e);
}

static int waits_of_pairs(struct verb_call *call, struct err *e)
{
	const struct waits_args *a = call->args;
	const struct waitverbs_args pairs = {
		.rows = a->rows, .by = a->by, .stacks = a->stacks, .idle = a->idle};

	if (a->neighbours && a->wakers)
		return err_set(e, -EINVAL, EXIT_USAGE,
			       "--neighbours and --wakers are two answers: give one of them");
	if (a->request || a->slower)
		return err_set(e, -EINVAL, EXIT_USAGE,
			       "--request cannot be combined with --neighbours or --wakers");
	return waitverbs_pairs(call, a->wakers ? WAITPAIRS_WAKERS : WAITPAIRS_NEIGHBOURS, &pairs,
			       e);
}

static int waits_run(struct verb_call *call, struct err *e)
{
	const struct waits_args *args = call->args;

	if (args->neighbours || args->wakers)
		return waits_of_pairs(call, e);
	if (args->stacks)
		return err_set(e, -EINVAL, EXIT_USAGE, "--stacks needs --wakers");
	return waits_of(call, e);
}

const struct verb verb_waits = {
	.name = "waits",
	.summary = "show what threads waited for, how often and how long",
	.usage = "[WHAT] [--neighbours|--wakers] [--by WHAT]",
	.examples = WAITS_EXAMPLES,
	.options = WAITS_OPTIONS,
	.args_size = sizeof(struct waits_args),
	.uses = VERB_SELECT | VERB_SELECT_WORD | VERB_JSON | VERB_PAGES,
	.run = waits_run,
};
