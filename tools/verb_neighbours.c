/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sonde neighbours and sonde wakers: who had the CPU while a process was ready to run, and who ended its waits
 * (tools/waitpairs.h). Two verbs with one table.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "schema/store/waits.h"
#include "tools/json.h"
#include "tools/select.h"
#include "tools/term.h"
#include "tools/verb.h"
#include "tools/waitcells.h"
#include "tools/waitpairs.h"

#define DEFAULT_ROWS 20

#define STACKS_SHOWN 3

struct pairs_args {
	uint64_t rows;
	bool stacks;            /* of wakers */
};

static const struct option PAIRS_OPTIONS[] = {
	{"number", 'n', OPTION_UINT, "N", "how many rows (default 20)", offsetof(struct pairs_args, rows)},
	{0},
};

static const struct option WAKERS_OPTIONS[] = {
	{"number", 'n', OPTION_UINT, "N", "how many rows (default 20)", offsetof(struct pairs_args, rows)},
	{"stacks", 0, OPTION_FLAG, NULL, "the stacks in which they woke", offsetof(struct pairs_args, stacks)},
	{0},
};

static const char *const NEIGHBOURS_EXAMPLES[] = {"sonde neighbours --at 03:10", "sonde neighbours postgres --json", NULL};
static const char *const WAKERS_EXAMPLES[] = {"sonde wakers --last 15m", "sonde wakers postgres --stacks", NULL};

struct view {
	const struct verb_call *call;
	const struct waitpairs *w;
	enum waitpairs_what what;
	size_t n;
	bool stacks;
};

static const char *by_name(const struct view *v, const struct waitpairs_row *r)
{
	if (v->what == WAITPAIRS_WAKERS)
		return r->by.pid || *r->by.comm ? r->by.comm : "[idle CPU: a timer or a device]";
	if (r->kind == STORE_CULPRIT_THREAD)
		return *r->by.comm ? r->by.comm : "[unknown]";
	return r->kind == STORE_CULPRIT_IDLE ? "[nobody: the CPU was idle]" : "[unknown]";
}

/* --- JSON --- */

static void end_json(json_t *o, const char *prefix, const struct waitpairs_end *x)
{
	char key[32];

	snprintf(key, sizeof(key), "%scontainer", prefix);
	json_object_set_new(o, key, waitcell_text(x->container));
	snprintf(key, sizeof(key), "%scomm", prefix);
	json_object_set_new(o, key, waitcell_text(x->comm));
	snprintf(key, sizeof(key), "%spid", prefix);
	json_object_set_new(o, key, waitcell_number(x->pid, x->pid || *x->comm));
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
	static const char *const kinds[] = {"thread", "idle", "unknown"}, *const contexts[] = {"thread", "interrupt"};
	json_t *o = json_object();

	end_json(o, "", &r->who);
	end_json(o, "by_", &r->by);
	if (v->what == WAITPAIRS_WAKERS) {
		json_object_set_new(o, "reason", json_text(r->reason));
		json_object_set_new(o, "context", json_text(contexts[r->kind == STORE_WAKE_INTERRUPT]));
		json_object_set_new(o, "function", r->n_stacks ? waitcell_text(r->stacks[0].function) : json_null());
		if (v->stacks)
			json_object_set_new(o, "stacks", stacks_json(r));
	} else {
		json_object_set_new(o, "who", json_text(kinds[r->kind < 3 ? r->kind : 2]));
	}
	json_object_set_new(o, "count", json_integer((json_int_t)r->n));
	json_object_set_new(o, "total_ns", json_integer((json_int_t)r->total_ns));
	json_object_set_new(o, "share", json_real(r->whole_ns ? (double)r->total_ns / (double)r->whole_ns : 0));
	return o;
}

static json_t *held_json(const struct waitpairs *w)
{
	json_t *list = json_array();

	for (size_t i = 0; i < w->n_held; i++) {
		json_t *o = json_object();

		json_object_set_new(o, "cgroup", json_text(w->held[i].cgroup));
		json_object_set_new(o, "periods", json_integer((json_int_t)w->held[i].periods));
		json_object_set_new(o, "throttled", json_integer((json_int_t)w->held[i].throttled));
		json_object_set_new(o, "throttled_ns", json_integer((json_int_t)w->held[i].throttled_ns));
		json_array_append_new(list, o);
	}
	return list;
}

static int print_json(const struct view *v)
{
	json_t *j = json_envelope(v->call->verb->name, v->call->sel->from_ns, v->call->sel->to_ns);

	for (size_t i = 0; i < v->n; i++)
		json_array_append_new(json_rows(j), row_json(v, &v->w->rows[i]));
	if (v->what == WAITPAIRS_NEIGHBOURS) {
		json_object_set_new(j, "throttled", held_json(v->w));
		json_object_set_new(j, "steal_ns", waitcell_number(v->w->steal_ns, v->w->cpu_ns != 0));
		json_object_set_new(j, "cpu_time_ns", waitcell_number(v->w->cpu_ns, v->w->cpu_ns != 0));
	}
	if (v->n < v->w->n)
		json_warn(j, "%zu more rows: -n %zu shows them", v->w->n - v->n, v->w->n);
	return json_print(j, stdout, 1);
}

/* --- for people --- */

static void row_text(struct table *t, const struct view *v, const struct waitpairs_row *r)
{
	table_cellf(t, "%u", r->who.pid);
	table_cell(t, r->who.comm);
	table_cell(t, *r->who.container ? r->who.container : "-");
	if (v->what == WAITPAIRS_WAKERS)
		table_cell(t, r->reason);
	waitcell_duration(t, r->whole_ns, true);
	waitcell_percent(t, r->total_ns, r->whole_ns);
	if (v->what == WAITPAIRS_WAKERS)
		table_cellf(t, "%llu", (unsigned long long)r->n);
	else
		waitcell_duration(t, r->total_ns, true);
	if (r->by.pid)
		table_cellf(t, "%u", r->by.pid);
	else
		table_cell(t, "-");
	table_cellf(t, "%s%s", by_name(v, r), v->what == WAITPAIRS_WAKERS && r->kind == STORE_WAKE_INTERRUPT && r->by.pid ?
		    " (interrupt)" : "");
	table_cell(t, *r->by.container ? r->by.container : "-");
	if (v->what == WAITPAIRS_WAKERS)
		table_cell(t, r->n_stacks && *r->stacks[0].function ? r->stacks[0].function : "-");
}

/* Those who woke longest, below the table: each with its share of the wake-ups whose stack was taken, by time. */
static void stacks_text(const struct view *v)
{
	for (size_t i = 0; i < v->n; i++) {
		const struct waitpairs_row *r = &v->w->rows[i];
		uint64_t n = 0, ns = 0;

		for (size_t k = 0; k < r->n_stacks; k++) {
			n += r->stacks[k].n;
			ns += r->stacks[k].total_ns;
		}
		if (!n)
			continue;
		term_printf(stdout, "\n%u %s (%s), woken by %u %s: stacks of %llu in %llu\n", r->who.pid, r->who.comm, r->reason, r->by.pid,
		       by_name(v, r), (unsigned long long)n, (unsigned long long)r->n);
		for (size_t k = 0; k < r->n_stacks && k < STACKS_SHOWN; k++)
			term_printf(stdout, "  %5.1f %%  %s\n", ns ? 100 * (double)r->stacks[k].total_ns / (double)ns : 0, r->stacks[k].path);
		if (r->n_stacks > STACKS_SHOWN)
			printf("  and %zu more\n", r->n_stacks - STACKS_SHOWN);
	}
}

static void held_text(const struct waitpairs *w)
{
	for (size_t i = 0; i < w->n_held; i++)
		term_printf(stdout, "held back by its CPU quota: %s for %.2f s, in %llu of %llu periods\n", w->held[i].cgroup,
		       (double)w->held[i].throttled_ns / 1e9, (unsigned long long)w->held[i].throttled,
		       (unsigned long long)w->held[i].periods);
	if (w->cpu_ns && w->steal_ns * 1000 >= w->cpu_ns)
		printf("taken by the hypervisor: %.1f %% of the CPUs' time\n", 100 * (double)w->steal_ns / (double)w->cpu_ns);
}

static void print_text(const struct view *v)
{
	static const struct table_column neighbours[] = {
		{"PID", TABLE_RIGHT}, {"NAME", TABLE_MIDDLE}, {"CONTAINER", TABLE_MIDDLE}, {"WAITED", TABLE_RIGHT},
		{"SHARE", TABLE_RIGHT}, {"TIME", TABLE_RIGHT}, {"PID", TABLE_RIGHT}, {"WHO RAN", TABLE_MIDDLE},
		{"CONTAINER", TABLE_MIDDLE},
	}, wakers[] = {
		{"PID", TABLE_RIGHT}, {"NAME", TABLE_MIDDLE}, {"CONTAINER", TABLE_MIDDLE}, {"WAITED FOR", TABLE_LEFT},
		{"TOTAL", TABLE_RIGHT}, {"SHARE", TABLE_RIGHT}, {"TIMES", TABLE_RIGHT}, {"PID", TABLE_RIGHT},
		{"WOKEN BY", TABLE_MIDDLE}, {"CONTAINER", TABLE_MIDDLE}, {"MOSTLY IN", TABLE_MIDDLE},
	};
	bool woken = v->what == WAITPAIRS_WAKERS;
	struct table *t = table_new(woken ? wakers : neighbours,
				    woken ? sizeof(wakers) / sizeof(*wakers) : sizeof(neighbours) / sizeof(*neighbours));

	for (size_t i = 0; i < v->n; i++)
		row_text(t, v, &v->w->rows[i]);
	table_print(t, stdout, v->call->wide ? 0 : term_width(stdout));
	table_free(t);
	held_text(v->w);
	if (v->stacks)
		stacks_text(v);
	if (v->n < v->w->n && !v->call->quiet)
		fprintf(stderr, "%zu more: -n %zu shows them\n", v->w->n - v->n, v->w->n);
}

static int pairs_run(struct verb_call *call, enum waitpairs_what what, struct err *e)
{
	const struct pairs_args *a = call->args;
	struct waitpairs *w = NULL;
	struct view v = {.call = call, .what = what, .stacks = a->stacks};
	int rc = waitpairs_make(call->sel, what, &w, e);

	if (rc)
		return rc;
	v.w = w;
	v.n = a->rows ? (size_t)a->rows : DEFAULT_ROWS;
	v.n = v.n < w->n ? v.n : w->n;
	if (call->json)
		rc = print_json(&v);
	else
		print_text(&v);
	waitpairs_free(w);
	if (!rc && (fflush(stdout) || ferror(stdout)))
		rc = err_set(e, -EIO, EXIT_RUNTIME, "cannot write standard output: %s", strerror(errno));
	return rc;
}

static int neighbours_run(struct verb_call *call, struct err *e)
{
	return pairs_run(call, WAITPAIRS_NEIGHBOURS, e);
}

static int wakers_run(struct verb_call *call, struct err *e)
{
	return pairs_run(call, WAITPAIRS_WAKERS, e);
}

const struct verb verb_neighbours = {
	.name = "neighbours",
	.summary = "who had the CPU while others were ready to run",
	.usage = "[WHAT] [-n N]",
	.examples = NEIGHBOURS_EXAMPLES,
	.options = PAIRS_OPTIONS,
	.args_size = sizeof(struct pairs_args),
	.uses = VERB_SELECT | VERB_SELECT_WORD | VERB_JSON | VERB_PAGES,
	.run = neighbours_run,
};

const struct verb verb_wakers = {
	.name = "wakers",
	.summary = "who ended the waits of whom",
	.usage = "[WHAT] [--stacks] [-n N]",
	.examples = WAKERS_EXAMPLES,
	.options = WAKERS_OPTIONS,
	.args_size = sizeof(struct pairs_args),
	.uses = VERB_SELECT | VERB_SELECT_WORD | VERB_JSON | VERB_PAGES,
	.run = wakers_run,
};
