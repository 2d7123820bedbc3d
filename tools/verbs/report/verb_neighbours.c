/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sonde waits --neighbours and --wakers: who had the CPU while a process was ready to run, and who
 * ended its waits (tools/waits/waitpairs.h). They share one table, and were verbs: sonde neighbours
 * and sonde wakers are still understood.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "schema/base/array.h"
#include "schema/store/model/stored.h"
#include "schema/base/units.h"
#include "tools/cli/verb.h"
#include "tools/print/json.h"
#include "tools/print/term.h"
#include "tools/select/select.h"
#include "tools/verbs/report/waitverbs.h"
#include "tools/waits/waitbrief.h"
#include "tools/waits/waitcells.h"
#include "tools/waits/waitpairs.h"

#define DEFAULT_ROWS 20

#define STACKS_SHOWN 3
#define STACKS_JSON  20
#define END_MAX      64
/* in text, at most this many others per waiting process, with 1 % or more each; the rest is one
 * row */
#define OTHERS_SHOWN 5

#define ROWS_OPTION                                                                    \
	{                                                                              \
		"number", 'n', OPTION_MOST, "N", "how many rows (default 20; 0: all)", \
			offsetof(struct waitverbs_args, rows)                          \
	}
#define BY_OPTION                                                             \
	{                                                                     \
		"by", 0, OPTION_STRING, "WHAT",                               \
			"command (default) or process (default with --json)", \
			offsetof(struct waitverbs_args, by)                   \
	}

static const struct option PAIRS_OPTIONS[] = {
	ROWS_OPTION,
	BY_OPTION,
	{0},
};

static const struct option WAKERS_OPTIONS[] = {
	ROWS_OPTION,
	BY_OPTION,
	{"idle", 0, OPTION_FLAG, NULL, "include idle waits", offsetof(struct waitverbs_args, idle)},
	{"stacks", 0, OPTION_FLAG, NULL, "show the stacks that did the waking",
	 offsetof(struct waitverbs_args, stacks)},
	{0},
};

static const char *const NEIGHBOURS_EXAMPLES[] = {"sonde neighbours --at 03:10",
						  "sonde neighbours postgres --json", NULL};
static const char *const WAKERS_EXAMPLES[] = {"sonde wakers --last 15m",
					      "sonde wakers postgres --stacks", NULL};

struct view {
	const struct verb_call *call;
	const struct waitpairs *w;
	enum waitpairs_what what;
	size_t n, most; /* rows shown; as asked for: the other lists obey it, too */
	bool stacks;
	size_t hidden; /* idle rows not shown */
	uint64_t hidden_ns;
};

static const char *by_name(const struct view *v, const struct waitpairs_row *r)
{
	if (v->what == WAITPAIRS_WAKERS)
		return r->by.pid || *r->by.comm ? r->by.comm : "[timer or device]";
	if (r->kind == STORE_CULPRIT_THREAD)
		return *r->by.comm ? r->by.comm : "[unknown]";
	return r->kind == STORE_CULPRIT_IDLE ? "[CPU was idle]" : "[unknown]";
}

static void brief_of(const struct view *v, struct strbuf *out)
{
	if (v->what == WAITPAIRS_WAKERS)
		waitbrief_wakers(out, v->w);
	else
		waitbrief_neighbours(out, v->w);
}

/* --- JSON --- */

static void end_json(json_t *o, const char *prefix, const struct waitpairs_end *x)
{
	char key[32];

	snprintf(key, sizeof(key), "%scontainer", prefix);
	json_object_set_new(o, key, json_text_or_null(x->container));
	snprintf(key, sizeof(key), "%scomm", prefix);
	json_object_set_new(o, key, json_text_or_null(x->comm));
	snprintf(key, sizeof(key), "%spid", prefix);
	json_object_set_new(
		o, key, json_number_or_null(x->pid, x->pid || (*x->comm && x->n_processes == 1)));
	snprintf(key, sizeof(key), "%sprocesses", prefix);
	json_object_set_new(o, key, json_number_or_null(x->n_processes, x->n_processes != 0));
}

static json_t *stacks_json(const struct waitpairs_row *r)
{
	json_t *list = json_array();

	for (size_t i = 0; i < r->n_stacks; i++) {
		json_t *o = json_object();

		json_object_set_new(o, "stack", json_text(r->stacks[i].path));
		json_object_set_new(o, "count", json_integer((json_int_t)r->stacks[i].n));
		json_object_set_new(o, "total_ns", json_integer((json_int_t)r->stacks[i].total_ns));
		json_array_append_new(list, o);
	}
	return list;
}

static json_t *row_json(const struct view *v, const struct waitpairs_row *r)
{
	static const char *const kinds[] = {"thread", "idle", "unknown"}, *const contexts[] = {
										  "thread",
										  "interrupt"};
	json_t *o = json_object();

	end_json(o, "", &r->who);
	end_json(o, "by_", &r->by);
	if (v->what == WAITPAIRS_WAKERS) {
		json_object_set_new(o, "reason", json_text(r->reason));
		json_object_set_new(o, "idle", json_boolean(r->idle));
		json_object_set_new(o, "context",
				    json_text(contexts[r->kind == STORE_WAKE_INTERRUPT]));
		json_object_set_new(o, "function",
				    r->n_stacks ? json_text_or_null(r->stacks[0].function) :
						  json_null());
		if (v->stacks)
			json_cut_list(o, "stacks", stacks_json(r), STACKS_JSON);
	} else {
		json_object_set_new(o, "who", json_text(kinds[r->kind < 3 ? r->kind : 2]));
	}
	json_object_set_new(o, "count", json_integer((json_int_t)r->n));
	json_object_set_new(o, "total_ns", json_integer((json_int_t)r->total_ns));
	json_object_set_new(o, "share",
			    json_real(r->whole_ns ? (double)r->total_ns / (double)r->whole_ns : 0));
	return o;
}

static int print_json(const struct view *v)
{
	json_t *j = json_envelope(v->call->verb->name, v->call->sel->from_ns, v->call->sel->to_ns);
	struct strbuf brief cleanup_strbuf = STRBUF_INIT;

	brief_of(v, &brief);
	json_object_set_new(j, "summary", json_text_or_null(strbuf_str(&brief)));
	for (size_t i = 0; i < v->n; i++)
		json_array_append_new(json_rows(j), row_json(v, &v->w->rows[i]));
	if (v->what == WAITPAIRS_NEIGHBOURS) {
		json_cut_list(j, "throttled", waitcell_held(&v->w->held), v->most);
		json_object_set_new(
			j, "steal_ns",
			json_number_or_null(v->w->held.steal_ns, v->w->held.cpu_ns != 0));
		json_object_set_new(j, "cpu_time_ns",
				    json_number_or_null(v->w->held.cpu_ns, v->w->held.cpu_ns != 0));
	}
	json_bound(j, v->w->n);
	return json_print(j, stdout, 1);
}

/* --- for people --- */

/* The waiting process is named only in the first of its rows. */
static void who_text(struct table *t, const struct view *v, const struct waitpairs_row *r,
		     bool first)
{
	waitcell_pid(t, r->who.pid, r->who.n_processes);
	table_cell(t, r->who.comm);
	waitcell_name(t, r->who.container);
	if (v->what == WAITPAIRS_WAKERS)
		table_cell(t, r->reason);
	if (first)
		waitcell_duration(t, r->whole_ns, true);
	else
		table_cell(t, "");
}

static void row_text(struct table *t, const struct view *v, const struct waitpairs_row *r,
		     bool first)
{
	who_text(t, v, r, first);
	waitcell_percent(t, r->total_ns, r->whole_ns);
	if (v->what == WAITPAIRS_WAKERS)
		table_cellf(t, "%llu", (unsigned long long)r->n);
	else
		waitcell_duration(t, r->total_ns, true);
	waitcell_pid(t, r->by.pid, r->by.n_processes);
	table_cellf(t, "%s%s", by_name(v, r),
		    v->what == WAITPAIRS_WAKERS && r->kind == STORE_WAKE_INTERRUPT && *r->by.comm ?
			    " (interrupt)" :
			    "");
	waitcell_name(t, r->by.container);
	if (v->what == WAITPAIRS_WAKERS)
		table_cell(t, r->n_stacks && *r->stacks[0].function ? r->stacks[0].function : "-");
}

static void rest_text(struct table *t, const struct view *v, const struct waitpairs_row *r,
		      size_t n, uint64_t ns, uint64_t times)
{
	who_text(t, v, r, false);
	waitcell_percent(t, ns, r->whole_ns);
	if (v->what == WAITPAIRS_WAKERS)
		table_cellf(t, "%llu", (unsigned long long)times);
	else
		waitcell_duration(t, ns, true);
	table_cell(t, "-");
	table_cellf(t, "[%zu others]", n);
	table_cell(t, "-");
	if (v->what == WAITPAIRS_WAKERS)
		table_cell(t, "-");
}

static bool is_same_who(const struct waitpairs_row *a, const struct waitpairs_row *b)
{
	return a->who.pid == b->who.pid && !strcmp(a->who.comm, b->who.comm) &&
	       !strcmp(a->who.container, b->who.container) && !strcmp(a->reason, b->reason);
}

/* Rows from..to belong to one waiting process: prints the first of them, and the rest as one.
 * Returns the number of printed rows. */
static size_t one_text(struct table *t, const struct view *v, size_t from, size_t to)
{
	const struct waitpairs_row *rows = v->w->rows;
	size_t shown = 1;
	uint64_t ns = 0, times = 0;

	while (from + shown < to && shown < OTHERS_SHOWN &&
	       rows[from + shown].total_ns * 100 >= rows[from].whole_ns)
		shown++;
	shown += from + shown + 1 == to; /* a rest of one row is printed as itself */
	for (size_t i = from; i < from + shown; i++)
		row_text(t, v, &rows[i], i == from);
	for (size_t i = from + shown; i < to; i++) {
		ns += rows[i].total_ns;
		times += rows[i].n;
	}
	if (from + shown < to)
		rest_text(t, v, &rows[from], to - from - shown, ns, times);
	return shown + (from + shown < to);
}

/* Returns how many waiting processes were omitted. The rows of one process stay together. */
static size_t all_text(struct table *t, const struct view *v)
{
	size_t told = 0, left = 0;

	for (size_t i = 0, k; i < v->w->n; i = k) {
		for (k = i + 1; k < v->w->n && is_same_who(&v->w->rows[i], &v->w->rows[k]);)
			k++;
		if (told < v->n)
			told += one_text(t, v, i, k);
		else
			left++;
	}
	return left;
}

/* "812 postgres", or "postgres" for several processes. */
static const char *end_text(const struct waitpairs_end *x, const char *name, char buf[END_MAX])
{
	if (x->pid)
		snprintf(buf, END_MAX, "%u %s", x->pid, name);
	else
		snprintf(buf, END_MAX, "%s", name);
	return buf;
}

/* Prints the wakers with the longest waits below the table, each stack with its share by time of
 * the wake-ups whose stack was taken. */
static void stacks_text(const struct view *v)
{
	for (size_t i = 0; i < v->n; i++) {
		const struct waitpairs_row *r = &v->w->rows[i];
		char who[END_MAX], by[END_MAX];
		uint64_t n = 0, ns = 0;

		for (size_t k = 0; k < r->n_stacks; k++) {
			n += r->stacks[k].n;
			ns += r->stacks[k].total_ns;
		}
		if (!n)
			continue;
		term_printf(stdout, "\n%s (%s), woken by %s: stacks of %llu in %llu\n",
			    end_text(&r->who, r->who.comm, who), r->reason,
			    end_text(&r->by, by_name(v, r), by), (unsigned long long)n,
			    (unsigned long long)r->n);
		for (size_t k = 0; k < r->n_stacks && k < STACKS_SHOWN; k++)
			term_printf(stdout, "  %5.1f %%  %s\n",
				    ns ? 100 * (double)r->stacks[k].total_ns / (double)ns : 0,
				    r->stacks[k].path);
		if (r->n_stacks > STACKS_SHOWN)
			printf("  and %zu more\n", r->n_stacks - STACKS_SHOWN);
	}
}

static void held_text(const struct waitheld *h)
{
	for (size_t i = 0; i < h->n; i++) {
		struct strbuf name cleanup_strbuf = STRBUF_INIT;
		char time[UNITS_MAX];

		waitbrief_held_name(&name, &h->rows[i]);
		term_printf(stdout,
			    "throttled by its CPU quota: %s for %s, in %llu of %llu periods\n",
			    strbuf_str(&name),
			    units_ns((int64_t)h->rows[i].throttled_ns, time, sizeof(time)),
			    (unsigned long long)h->rows[i].throttled,
			    (unsigned long long)h->rows[i].periods);
	}
	if (h->cpu_ns && h->steal_ns * 1000 >= h->cpu_ns)
		printf("stolen by the hypervisor: %.1f %% of the CPU time\n",
		       100 * (double)h->steal_ns / (double)h->cpu_ns);
}

static void print_text(const struct view *v)
{
	static const struct table_column neighbours[] =
		{
			{"PID", TABLE_RIGHT},        {"NAME", TABLE_MIDDLE},
			{"CONTAINER", TABLE_MIDDLE}, {"WAITED", TABLE_RIGHT},
			{"SHARE", TABLE_RIGHT},      {"TIME", TABLE_RIGHT},
			{"PID", TABLE_RIGHT},        {"WHO RAN", TABLE_MIDDLE},
			{"CONTAINER", TABLE_MIDDLE},
		},
					 wakers[] = {
						 {"PID", TABLE_RIGHT},
						 {"NAME", TABLE_MIDDLE},
						 {"CONTAINER", TABLE_MIDDLE},
						 {"WAITED FOR", TABLE_LEFT},
						 {"TOTAL", TABLE_RIGHT},
						 {"SHARE", TABLE_RIGHT},
						 {"TIMES", TABLE_SPARE_RIGHT},
						 {"PID", TABLE_SPARE_RIGHT},
						 {"WOKEN BY", TABLE_MIDDLE},
						 {"CONTAINER", TABLE_SPARE},
						 {"MOST IN", TABLE_SPARE},
					 };
	bool woken = v->what == WAITPAIRS_WAKERS;
	struct strbuf brief cleanup_strbuf = STRBUF_INIT;
	char time[UNITS_MAX];
	size_t left;
	struct table *t = table_new(woken ? wakers : neighbours,
				    woken ? ARRAY_SIZE(wakers) : ARRAY_SIZE(neighbours));

	brief_of(v, &brief);
	left = all_text(t, v);
	waitcell_print(t, &brief, v->call);
	table_free(t);
	held_text(&v->w->held);
	if (v->stacks)
		stacks_text(v);
	if (v->call->quiet)
		return;
	if (left)
		fprintf(stderr, "%zu more waiting: -n %zu shows them\n", left, v->w->n);
	if (v->hidden)
		fprintf(stderr, "%zu row%s of idle waits (%s) hidden: --idle shows them\n",
			v->hidden, v->hidden == 1 ? "" : "s",
			units_ns((int64_t)v->hidden_ns, time, sizeof(time)));
}

static int by_of(const char *word, const struct verb_call *call, enum waitsum_by *by, struct err *e)
{
	int rc = waitcell_by(word, by, e);

	if (!rc && !word && !call->json)
		*by = WAITSUM_BY_COMMAND;
	if (rc || *by == WAITSUM_BY_PROCESS || *by == WAITSUM_BY_COMMAND)
		return rc;
	err_set(e, -EINVAL, EXIT_USAGE, "--by must be command or process here, not %s", word);
	err_fix(e, "--by process");
	return -EINVAL;
}

/* Frees idle rows: the waker that ends a wait for work brings the work. */
static void hide_idle(struct view *v, struct waitpairs *w)
{
	size_t n = 0;

	for (size_t i = 0; i < w->n; i++) {
		if (!w->rows[i].idle) {
			w->rows[n++] = w->rows[i];
			continue;
		}
		v->hidden++;
		v->hidden_ns += w->rows[i].total_ns;
		waitpairs_row_release(&w->rows[i]);
	}
	w->n = n;
}

/* Sums rows by name; takes `w`. */
static struct waitpairs *folded(struct waitpairs *w)
{
	struct waitpairs *f = waitpairs_fold(w);

	f->held = w->held;
	w->held = (struct waitheld){0};
	waitpairs_free(w);
	return f;
}

int waitverbs_pairs(struct verb_call *call, enum waitpairs_what what,
		    const struct waitverbs_args *a, struct err *e)
{
	struct waitpairs *w = NULL;
	struct view v = {.call = call, .what = what, .stacks = a->stacks};
	enum waitsum_by by;
	int rc = by_of(a->by, call, &by, e);

	if (!rc)
		rc = waitpairs_make(call->sel, what, &w, e);
	if (!rc && what == WAITPAIRS_WAKERS)
		rc = waitpairs_know_idle(w, call->sel, e);
	if (!rc && by == WAITSUM_BY_COMMAND)
		w = folded(w);
	if (!rc && !a->idle && !call->json)
		hide_idle(&v, w);
	if (!rc && !w->n) {
		rc = err_set(e, -ENOENT, EXIT_NOTHING, "only idle waits were found (%zu rows)",
			     v.hidden);
		err_fix(e, "sonde waits --wakers --idle");
	}
	if (!rc) {
		v.w = w;
		v.most = a->rows ? (size_t)a->rows : DEFAULT_ROWS;
		v.n = v.most < w->n ? v.most : w->n;
		if (call->json)
			rc = print_json(&v);
		else
			print_text(&v);
	}
	if (w)
		waitpairs_free(w);
	return verb_flush(rc, e);
}

static int neighbours_run(struct verb_call *call, struct err *e)
{
	return waitverbs_pairs(call, WAITPAIRS_NEIGHBOURS, call->args, e);
}

static int wakers_run(struct verb_call *call, struct err *e)
{
	return waitverbs_pairs(call, WAITPAIRS_WAKERS, call->args, e);
}

const struct verb verb_neighbours = {
	.name = "neighbours",
	.now = "waits --neighbours",
	.summary = "show which processes took CPU time from others",
	.usage = "[WHAT] [--by WHAT] [-n N]",
	.examples = NEIGHBOURS_EXAMPLES,
	.options = PAIRS_OPTIONS,
	.args_size = sizeof(struct waitverbs_args),
	.uses = VERB_SELECT | VERB_SELECT_WORD | VERB_JSON | VERB_PAGES,
	.run = neighbours_run,
};

const struct verb verb_wakers = {
	.name = "wakers",
	.now = "waits --wakers",
	.summary = "show which thread woke which",
	.usage = "[WHAT] [--by WHAT] [--idle] [--stacks] [-n N]",
	.examples = WAKERS_EXAMPLES,
	.options = WAKERS_OPTIONS,
	.args_size = sizeof(struct waitverbs_args),
	.uses = VERB_SELECT | VERB_SELECT_WORD | VERB_JSON | VERB_PAGES,
	.run = wakers_run,
};
