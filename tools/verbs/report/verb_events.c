/* SPDX-License-Identifier: Apache-2.0 */
/* sonde events: lists events in order of time (tools/events/event_list.h). */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "schema/base/array.h"
#include "schema/base/clock.h"
#include "tools/cli/verb.h"
#include "tools/events/eventlogs.h"
#include "tools/events/event_list.h"
#include "tools/print/json.h"
#include "tools/print/table.h"
#include "tools/print/term.h"
#include "tools/print/when.h"
#include "tools/select/select.h"

#define DEFAULT_ROWS 40
#define LOGS_SHOWN   3

struct events_args {
	uint64_t rows;
	const char *kind;
	bool all;
};

/* clang-format off */
static const struct option EVENTS_OPTIONS[] = {
	{"number", 'n', OPTION_MOST, "N", "show the newest N (default 40; 0: all)", offsetof(struct events_args, rows)},
	{"kind", 0, OPTION_STRING, "KIND", "only this kind: started, stopped, restarted, 'oom kill', full, throttled, ...",
	 offsetof(struct events_args, kind)},
	{"all", 0, OPTION_FLAG, NULL, "one row per event, also for processes that failed soon after they started", offsetof(struct events_args, all)},
	{0},
};
/* clang-format on */

static const char *const EVENTS_EXAMPLES[] = {
	"sonde events --last 24h",
	"sonde events web --from 03:00 --to 03:20 --all",
	"sonde events --kind restarted --json",
	NULL,
};

struct view {
	const struct verb_call *call;
	struct event_list all;
	struct eventlogs logs;
	size_t shown; /* events that pass the filters; those that are not printed are `gone` */
	size_t left;  /* of those */
};

static bool passes(const struct view *v, const struct listed_event *x)
{
	const struct events_args *a = v->call->args;

	return !x->gone && (!a->kind || !strcmp(a->kind, x->kind) ||
			    (!strcmp(a->kind, "restarted") && !strcmp(x->kind, "restart loop")));
}

static int by_last(const void *a, const void *b)
{
	const struct listed_event *x = a, *y = b;

	if (x->last_ns != y->last_ns)
		return x->last_ns < y->last_ns ? -1 : 1;
	return (x->first_ns > y->first_ns) - (x->first_ns < y->first_ns);
}

/* The newest by their last time: what goes on is news. Processes come after containers, file
 * systems and the host, of which there are fewer. */
static void choose(struct view *v)
{
	const struct events_args *a = v->call->args;
	const uint64_t most = a->rows ? a->rows : DEFAULT_ROWS;

	if (v->all.n)
		qsort(v->all.rows, v->all.n, sizeof(*v->all.rows), by_last);
	for (int process = 0; process < 2; process++)
		for (size_t i = v->all.n; i-- > 0;) {
			struct listed_event *x = &v->all.rows[i];

			if ((strcmp(x->subject, "process") == 0) != process || !passes(v, x))
				continue;
			x->gone = v->shown++ >= most;
			v->left += x->gone;
		}
}

/* NULL: no log is known. For a row of several ends, the log of the last one. */
static const struct eventlog *log_of(const struct view *v, const struct listed_event *x)
{
	bool ends = !strcmp(x->kind, "stopped") || !strcmp(x->kind, "restart loop");

	return ends && *x->which ? eventlogs_find(&v->logs, x->which, x->first_ns - NSEC_PER_SEC,
						  x->last_ns + NSEC_PER_SEC) :
				   NULL;
}

static json_t *row_json(const struct view *v, const struct listed_event *x)
{
	struct strbuf text cleanup_strbuf = STRBUF_INIT;
	json_t *o = json_object();

	listed_event_say(x, &text);
	json_set_time(o, "first", x->first_ns);
	json_set_time(o, "last", x->last_ns);
	json_object_set_new(o, "kind", json_text(x->kind));
	json_object_set_new(o, "subject", json_text(x->subject));
	json_object_set_new(o, "name", json_text_or_null(x->name));
	json_object_set_new(o, "which", json_text_or_null(x->which));
	json_object_set_new(o, "detail", json_text_or_null(x->detail));
	json_object_set_new(o, "container", json_text_or_null(x->container));
	json_object_set_new(o, "comm", json_text_or_null(x->comm));
	json_object_set_new(o, "pid", json_number_or_null(x->pid, x->pid));
	json_object_set_new(o, "caused_by", json_text_or_null(x->by));
	json_object_set_new(o, "count", json_integer((json_int_t)x->n));
	json_object_set_new(o, "bad", json_boolean(listed_event_is_bad(x)));
	json_object_set_new(o, "text", json_text(strbuf_str(&text)));
	json_object_set_new(o, "log", eventlog_json(log_of(v, x)));
	return o;
}

static int print_json(const struct view *v)
{
	json_t *j = json_envelope("events", v->call->sel->from_ns, v->call->sel->to_ns);

	for (size_t i = 0; i < v->all.n; i++)
		if (passes(v, &v->all.rows[i]))
			json_array_append_new(json_rows(j), row_json(v, &v->all.rows[i]));
	json_bound(j, v->shown);
	if (!v->all.recorded)
		json_warn(
			j,
			"family host was not recorded then: only ends of processes and clock changes are known");
	return json_print(j, stdout, 1);
}

static void row_text(struct table *t, const struct listed_event *x)
{
	char first[32], last[32];
	int64_t now = clock_utc_ns();

	table_cell(t, when_local(x->first_ns, now, first, sizeof(first)));
	table_cell(t, x->last_ns - x->first_ns >= NSEC_PER_SEC ?
			      when_local(x->last_ns, now, last, sizeof(last)) :
			      "");
	table_cell(t, x->kind);
	if (!strcmp(x->subject, "process") && *x->container)
		table_cellf(t, "%s: %s", x->container, x->name);
	else
		table_cell(t, *x->name ? x->name : x->subject);
	table_cell(t, x->detail);
	table_cell(t, x->by);
	if (x->n > 1)
		table_cellf(t, "%llu", (unsigned long long)x->n);
	else
		table_cell(t, "");
	table_row_color(t, listed_event_is_bad(x) ? TERM_RED : TERM_PLAIN);
}

/* Logs of the newest rows that have one. */
static void print_logs(const struct view *v)
{
	size_t n = 0, first = v->all.n;
	char time[32];

	for (size_t i = v->all.n; i-- > 0 && n < LOGS_SHOWN;)
		if (passes(v, &v->all.rows[i]) && log_of(v, &v->all.rows[i])) {
			first = i;
			n++;
		}
	for (size_t i = first; i < v->all.n; i++) {
		const struct eventlog *log =
			passes(v, &v->all.rows[i]) ? log_of(v, &v->all.rows[i]) : NULL;

		if (!log)
			continue;
		printf("\n"
		       "last lines %s wrote before %s:\n",
		       v->all.rows[i].name,
		       when_local(log->at_ns, clock_utc_ns(), time, sizeof(time)));
		eventlog_print(log, stdout);
	}
}

static void print_text(const struct view *v)
{
	static const struct table_column columns[] = {
		{"TIME", TABLE_LEFT},   {"TO", TABLE_LEFT},  {"WHAT", TABLE_LEFT},
		{"WHO", TABLE_MIDDLE},  {"HOW", TABLE_TEXT}, {"BY", TABLE_MIDDLE},
		{"TIMES", TABLE_RIGHT},
	};
	struct table *t = table_new(columns, ARRAY_SIZE(columns));
	size_t ooms = 0;

	for (size_t i = 0; i < v->all.n; i++) {
		const struct listed_event *x = &v->all.rows[i];

		if (!passes(v, x))
			continue;
		ooms += !strcmp(x->kind, "oom kill");
		row_text(t, x);
	}
	table_omit_empty(t);
	table_print(t, stdout, v->call->wide ? 0 : term_width(stdout));
	table_free(t);
	print_logs(v);
	if (v->call->quiet)
		return;
	if (v->left)
		fprintf(stderr, "%zu more: -n %zu shows them\n", v->left, v->shown);
	if (ooms)
		fprintf(stderr, "details of out-of-memory kills: sonde oom\n");
	if (!v->all.recorded)
		fprintf(stderr,
			"family host was not recorded then: only ends of processes and clock changes are known\n");
}

static int nothing(const struct view *v, struct err *e)
{
	const struct events_args *a = v->call->args;
	const struct selection *sel = v->call->sel;

	err_set(e, -ENOENT, EXIT_NOTHING, "no events%s%s%s%s in %s%s", a->kind ? " of kind " : "",
		a->kind ? a->kind : "", *sel->what ? " of " : "", sel->what, sel->range,
		v->all.recorded ? "" : ", but family host was not recorded");
	err_fix(e, v->all.recorded ? "sonde events --last 7d" :
				     "sudo sonde record --families cpu,host -d 30s");
	return -ENOENT;
}

static int events_run(struct verb_call *call, struct err *e)
{
	const struct events_args *a = call->args;
	struct view v = {.call = call};
	int rc = event_list_read(call->sel, a->all, &v.all, e);

	if (rc)
		return rc;
	rc = eventlogs_read(call->sel, &v.logs, e);
	choose(&v);
	if (!rc && !v.shown)
		rc = nothing(&v, e);
	else if (!rc && call->json)
		rc = print_json(&v);
	else if (!rc)
		print_text(&v);
	event_list_release(&v.all);
	eventlogs_release(&v.logs);
	return rc;
}

const struct verb verb_events = {
	.name = "events",
	.summary =
		"list events: containers that start and stop, kills, limits, full disks, clock changes",
	.usage = "[WHAT] [--last 24h] [--kind KIND] [--all]",
	.examples = EVENTS_EXAMPLES,
	.options = EVENTS_OPTIONS,
	.args_size = sizeof(struct events_args),
	.uses = VERB_SELECT | VERB_SELECT_WORD | VERB_JSON | VERB_PAGES,
	.run = events_run,
};
