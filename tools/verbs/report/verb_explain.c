/* SPDX-License-Identifier: Apache-2.0 */
/* sonde explain: why it was slow (tools/explain/chain/chain.h), and what else changed since the
 * time before (tools/explain/explain.h), in words and numbers. */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "schema/base/clock.h"
#include "schema/base/units.h"
#include "tools/cli/verb.h"
#include "tools/explain/chain/chain_print.h"
#include "tools/explain/explain.h"
#include "tools/explain/explain_limits.h"
#include "tools/explain/explain_request.h"
#include "tools/fold/fold_kind.h"
#include "tools/events/oomgrew.h"
#include "tools/logs/logrise.h"
#include "tools/print/json.h"
#include "tools/print/term.h"
#include "tools/print/when.h"
#include "tools/print/wrap.h"
#include "tools/requests/runprint.h"

#define RECORDED_WHOLE 0.9 /* of a window: as good as all of it */
#define DEFAULT_ROWS   5
#define DEFAULT_LIST   20 /* rows of each list but the statements */
#define HAPPENED_MOST  8
#define HUNG_MOST      5
#define KILLS_MOST     3
#define GREW_MOST      3 /* kills with the lines that grew before: each reads ten minutes again */

struct explain_args {
	uint64_t rows;
	int64_t before_ns;
	const char *request, *slower;
	bool sql;
};

static const struct option EXPLAIN_OPTIONS[] = {
	{"number", 'n', OPTION_MOST, "N", "how many statements (default 5; 0: all)",
	 offsetof(struct explain_args, rows)},
	{"before", 0, OPTION_DURATION, "TIME",
	 "compare with this much time before (default 10m, or the length of the range)",
	 offsetof(struct explain_args, before_ns)},
	REQTAGS_OPTIONS(struct explain_args, request, slower),
	{"sql", 0, OPTION_FLAG, NULL, "also print the query behind each number",
	 offsetof(struct explain_args, sql)},
	{0},
};

static const char *const EXPLAIN_EXAMPLES[] = {
	"sonde explain web --at 03:10",
	"sonde explain --last 5m --before 1h",
	"sonde explain web --from 03:00 --to 03:20 --json",
	"sonde explain --request 'GET /checkout' --slower-than p99",
	NULL,
};

/* The smallest change of the total CPU time (or of the first kind) that would be detected 80 % of
 * the time. */
static double detectable(const struct explain *x)
{
	return diff_detectable(&x->diff[0]->functions[0].total);
}

/* --- JSON --- */

static json_t *side_json(const struct explain *x, const struct explain_statement *s, int side)
{
	struct strbuf query cleanup_strbuf = STRBUF_INIT;
	json_t *o = json_object();

	json_object_set_new(o, "amount", json_integer((json_int_t)s->v.ns[side]));
	json_object_set_new(o, "samples", json_integer((json_int_t)s->v.samples[side]));
	json_object_set_new(o, "value", json_real(s->v.v[side]));
	json_object_set_new(o, "seconds", json_real(s->d->side[side].seconds));
	json_object_set_new(o, "query",
			    explain_query(x, s, side, &query) ? json_text(strbuf_str(&query)) :
								json_null());
	return o;
}

static json_t *inner_json(const struct explain_statement *s)
{
	const bool group = s->about == EXPLAIN_CONTAINER || s->about == EXPLAIN_COMMAND;
	json_t *o = json_object();

	if (!s->in) {
		json_decref(o);
		return json_null();
	}
	json_object_set_new(o, group ? "function" : "who", json_text(s->in));
	json_object_set_new(o, group ? "module" : "who_is", json_text(s->in_module));
	json_object_set_new(o, "amount_before", json_integer((json_int_t)s->in_ns[0]));
	json_object_set_new(o, "amount_after", json_integer((json_int_t)s->in_ns[1]));
	return o;
}

static json_t *causes_json(const struct explain *x, const struct explain_statement *s)
{
	static const char *const what[] = {[EXPLAIN_NEIGHBOUR] = "neighbour",
					   [EXPLAIN_QUOTA] = "quota",
					   [EXPLAIN_WAKER] = "waker",
					   [EXPLAIN_HOLDER] = "holder"};
	static const char *const amount[] = {"amount_before", "amount_after"},
				 *const asked[] = {"query_before", "query_after"};
	json_t *list = json_array();

	for (size_t i = 0; i < s->n_causes; i++) {
		const struct explain_cause *c = &s->causes[i];
		json_t *o = json_object();

		json_object_set_new(o, "what", json_string(what[c->what]));
		json_object_set_new(o, "name", json_text(c->name));
		json_object_set_new(o, "container", json_text(c->of));
		json_object_set_new(o, "pid", json_number_or_null(c->pid, c->pid));
		for (int side = 0; side < 2; side++) {
			struct strbuf query cleanup_strbuf = STRBUF_INIT;

			json_object_set_new(o, amount[side], json_integer((json_int_t)c->ns[side]));
			json_object_set_new(o, asked[side],
					    explain_cause_query(x, s, c, side, &query) ?
						    json_text(strbuf_str(&query)) :
						    json_null());
		}
		json_array_append_new(list, o);
	}
	return list;
}

static json_t *statement_json(const struct explain *x, const struct explain_statement *s,
			      const char *store)
{
	static const char *const about[] = {"all", "container", "command", "function", "reason"};
	static const char *const change[] = {"more", "less", "began", "gone"};
	struct strbuf text cleanup_strbuf = STRBUF_INIT, command cleanup_strbuf = STRBUF_INIT;
	double percent = diff_percent(&s->v);
	json_t *o = json_object();

	explain_say(s, &text);
	explain_command(x, s, store, &command);
	json_object_set_new(o, "text", json_text(strbuf_str(&text)));
	json_object_set_new(o, "about", json_string(about[s->about]));
	json_object_set_new(o, "name", s->about == EXPLAIN_ALL ? json_null() : json_text(s->name));
	json_object_set_new(o, "module",
			    s->about == EXPLAIN_FUNCTION ? json_text(s->module) : json_null());
	json_object_set_new(o, "type", json_string(s->d->side[DIFF_AFTER].f->kind->name));
	json_object_set_new(o, "unit", json_string(diff_unit(s->d)));
	json_object_set_new(o, "change", json_string(change[s->change]));
	json_object_set_new(o, "difference", json_real(s->v.v[1] - s->v.v[0]));
	json_object_set_new(o, "percent",
			    isnan(percent) || s->change == EXPLAIN_BEGAN ? json_null() :
									   json_real(percent));
	json_object_set_new(o, "before", side_json(x, s, DIFF_BEFORE));
	json_object_set_new(o, "after", side_json(x, s, DIFF_AFTER));
	json_object_set_new(o, "mostly", inner_json(s));
	json_object_set_new(o, "causes", causes_json(x, s));
	json_set_time(o, "since", s->since_ns);
	json_object_set_new(o, "p", json_real(s->v.p));
	json_object_set_new(o, "q", json_real(s->v.q));
	json_object_set_new(o, "command", json_text(strbuf_str(&command)));
	return o;
}

/* Whose lines grew before the first kill of a container, or of a process outside of all. */
static void grew_read(const struct explain *x, enum oomgrew_of of, const char *name, int64_t at_ns,
		      struct oomgrew *out)
{
	oomgrew_read(x->sel[DIFF_AFTER]->store, of, name, at_ns, out);
}

static json_t *grew_json(const struct explain *x, enum oomgrew_of of, const char *name,
			 int64_t at_ns)
{
	struct oomgrew grew;
	json_t *j;

	grew_read(x, of, name, at_ns, &grew);
	j = oomgrew_json(&grew);
	oomgrew_release(&grew);
	return j;
}

static json_t *incidents_json(const struct explain *x)
{
	json_t *list = json_array();
	size_t n_grew = 0;

	for (size_t i = 0; i < x->incidents[DIFF_AFTER].n; i++) {
		const struct incident_container *c = &x->incidents[DIFF_AFTER].rows[i];
		const struct incident_container *b =
			incidents_named(&x->incidents[DIFF_BEFORE], c->name);
		struct strbuf text cleanup_strbuf = STRBUF_INIT;
		json_t *o;

		incidents_say(c, &text);
		if (!text.len)
			continue;
		o = json_object();
		json_object_set_new(o, "container", json_text(c->name));
		json_object_set_new(o, "text", json_text(strbuf_str(&text)));
		json_object_set_new(o, "restarts", json_integer((json_int_t)c->restarts.n));
		json_object_set_new(o, "oom", json_integer((json_int_t)c->oom.n));
		json_object_set_new(
			o, "restarts_before",
			json_number_or_null(b ? b->restarts.n : 0, b || x->host_before));
		json_object_set_new(o, "oom_before",
				    json_number_or_null(b ? b->oom.n : 0, b || x->host_before));
		if (c->oom.n && n_grew++ < GREW_MOST)
			json_object_set_new(
				o, "grew",
				grew_json(x, OOMGREW_CONTAINER, c->name, c->oom.first_ns));
		json_array_append_new(list, o);
	}
	return list;
}

static json_t *logged_json(const struct explain *x)
{
	json_t *list = json_array();

	for (size_t i = 0; i < x->n_rises; i++) {
		const struct logrise *r = &x->rises[i];
		struct strbuf text cleanup_strbuf = STRBUF_INIT;
		json_t *o = json_object();

		logrise_say(r, &text);
		json_object_set_new(o, "source", json_text(r->pattern->source));
		json_object_set_new(o, "level", json_text(LOGREAD_NAMES[r->pattern->level]));
		json_object_set_new(o, "pattern", json_text(r->pattern->pattern));
		json_object_set_new(o, "before", json_integer((json_int_t)r->before));
		json_object_set_new(o, "after", json_integer((json_int_t)r->after));
		json_object_set_new(o, "text", json_text(strbuf_str(&text)));
		json_object_set_new(o, "failed", logfailed_json(&x->failed[i]));
		json_array_append_new(list, o);
	}
	return list;
}

/* All other events of that time: limits, full disks, images, the clock. */
static json_t *happened_json(const struct explain *x)
{
	json_t *list = json_array();

	for (size_t i = 0; i < x->happenings.n; i++) {
		const struct listed_event *h = &x->happenings.rows[i];
		struct strbuf text cleanup_strbuf = STRBUF_INIT;
		json_t *o;

		if (listed_event_is_incident(h))
			continue;
		o = json_object();
		listed_event_say(h, &text);
		json_set_time(o, "time", h->first_ns);
		json_object_set_new(o, "kind", json_text(h->kind));
		json_object_set_new(o, "name", json_text_or_null(h->name));
		json_object_set_new(o, "text", json_text(strbuf_str(&text)));
		json_array_append_new(list, o);
	}
	return list;
}

static json_t *hung_json(const struct explain *x)
{
	json_t *list = json_array();

	for (size_t i = 0; i < x->hung[DIFF_AFTER].n; i++) {
		struct strbuf text cleanup_strbuf = STRBUF_INIT;
		json_t *o;

		if (!explain_say_hung(x, i, &text))
			continue;
		o = runprint_row_json(&x->hung[DIFF_AFTER].rows[i]);
		json_object_set_new(o, "text", json_text(strbuf_str(&text)));
		json_array_append_new(list, o);
	}
	return list;
}

static json_t *windows_json(struct selection *const sel[2], const struct explain_asked *asked)
{
	json_t *j = json_envelope("explain", sel[DIFF_AFTER]->from_ns, sel[DIFF_AFTER]->to_ns);

	json_set_time(j, "before_from", sel[DIFF_BEFORE]->from_ns);
	json_set_time(j, "before_to", sel[DIFF_BEFORE]->to_ns);
	json_set_time(j, "asked_from", asked->from_ns);
	json_set_time(j, "asked_to", asked->to_ns);
	json_object_set_new(j, "slower", json_text_or_null(asked->felt.what));
	return j;
}

/* list: the most rows of each list but "rows". */
static int print_json(const struct explain *x, const struct chain *c,
		      const struct explain_limits *limits, size_t shown, size_t list,
		      const char *store)
{
	json_t *j = windows_json(x->sel, &x->asked), *compared = json_array();

	for (size_t i = 0; i < x->n_diffs; i++)
		json_array_append_new(compared, json_string(x->fold[2 * i]->kind->what));
	json_object_set_new(j, "compared", compared);
	json_object_set_new(j, "limits", explain_limits_json(limits, store));
	json_object_set_new(j, "chain", chain_json(c));
	json_object_set_new(j, "changed", json_boolean(x->n > 0));
	json_object_set_new(j, "detectable", json_real(detectable(x)));
	json_object_set_new(j, "unit", json_string(diff_unit(x->diff[0])));
	for (size_t i = 0; i < shown; i++)
		json_array_append_new(json_rows(j), statement_json(x, &x->rows[i], store));
	json_cut_list(j, "incidents", incidents_json(x), list);
	json_cut_list(j, "happened", happened_json(x), list);
	json_object_set_new(j, "logged", logged_json(x));
	json_cut_list(j, "hung", hung_json(x), list);
	json_cut_list(j, "new_connections", netnew_json(&x->talk), list);
	if (x->uncompared.len)
		json_warn(j, "not compared because too little was recorded: %s",
			  strbuf_str(&x->uncompared));
	json_bound(j, x->n);
	return json_print(j, stdout, 1);
}

/* --- for people --- */

static void print_query(int side, const struct strbuf *query)
{
	printf("    %s: %s\n", side == DIFF_AFTER ? "now" : "before", strbuf_str(query));
}

static void print_queries(const struct explain *x, const struct explain_statement *s, int side)
{
	struct strbuf text cleanup_strbuf = STRBUF_INIT;

	if (explain_query(x, s, side, &text))
		print_query(side, &text);
	for (size_t i = 0; i < s->n_causes; i++) {
		strbuf_reset(&text);
		if (explain_cause_query(x, s, &s->causes[i], side, &text))
			print_query(side, &text);
	}
}

static void print_statement(const struct explain *x, const struct explain_statement *s, size_t i,
			    bool sql, const char *store)
{
	struct strbuf text cleanup_strbuf = STRBUF_INIT;
	char since[32];

	strbuf_addf(&text, "%zu. ", i + 1);
	explain_say(s, &text);
	if (s->since_ns)
		strbuf_addf(&text, "; since about %s",
			    when_local(s->since_ns, clock_utc_ns(), since, sizeof(since)));
	wrap_print(stdout, strbuf_str(&text), 3);
	strbuf_reset(&text);
	explain_command(x, s, store, &text);
	printf("    %s\n", strbuf_str(&text));
	for (int side = DIFF_AFTER; sql && side >= DIFF_BEFORE; side--)
		print_queries(x, s, side);
}

static void print_grew(const struct explain *x, enum oomgrew_of of, const char *name, int64_t at_ns)
{
	struct strbuf text cleanup_strbuf = STRBUF_INIT, shown cleanup_strbuf = STRBUF_INIT;
	struct oomgrew grew;

	grew_read(x, of, name, at_ns, &grew);
	if (grew.n) {
		strbuf_addstr(&text, "   grew in the 10 min before: ");
		oomgrew_say(&grew, &text);
		strbuf_addshown(&shown, text.buf, text.len);
		wrap_print(stdout, strbuf_str(&shown), 6);
	}
	oomgrew_release(&grew);
}

/* Kills of processes in no container. */
static bool print_kills(const struct explain *x, bool begun)
{
	size_t n = 0;

	for (size_t i = 0; i < x->happenings.n; i++) {
		const struct listed_event *h = &x->happenings.rows[i];
		struct strbuf text cleanup_strbuf = STRBUF_INIT, shown cleanup_strbuf = STRBUF_INIT;

		if (strcmp(h->kind, "oom kill") != 0 || *h->container ||
		    !strcmp(h->subject, "container") || ++n > KILLS_MOST)
			continue;
		if (!begun)
			printf("events in this range:\n");
		begun = true;
		listed_event_say(h, &text);
		strbuf_addshown(&shown, text.buf, text.len);
		wrap_print(stdout, strbuf_str(&shown), 3);
		print_grew(x, OOMGREW_COMM, *h->comm ? h->comm : h->name, h->first_ns);
	}
	return begun;
}

/* All other events of that time. `begun`: the headline is already printed. Returns whether it is
 * now. */
static bool print_happened(const struct explain *x, bool begun)
{
	size_t n = 0;

	for (size_t i = 0; i < x->happenings.n; i++) {
		const struct listed_event *h = &x->happenings.rows[i];
		struct strbuf text cleanup_strbuf = STRBUF_INIT, shown cleanup_strbuf = STRBUF_INIT;
		char at[32];

		if (listed_event_is_incident(h) || ++n > HAPPENED_MOST)
			continue;
		if (!begun)
			printf("events in this range:\n");
		begun = true;
		listed_event_say(h, &text);
		strbuf_addf(&text, ", at %s",
			    when_local(h->first_ns, clock_utc_ns(), at, sizeof(at)));
		strbuf_addshown(&shown, text.buf, text.len);
		wrap_print(stdout, strbuf_str(&shown), 3);
	}
	if (n > HAPPENED_MOST)
		printf("%zu more events: sonde events\n", n - HAPPENED_MOST);
	return begun;
}

/* Errors and warnings that were logged more often than before. */
static bool print_logged(const struct explain *x)
{
	for (size_t i = 0; i < x->n_rises; i++) {
		struct strbuf text cleanup_strbuf = STRBUF_INIT, shown cleanup_strbuf = STRBUF_INIT;

		if (!i)
			printf("logged in this range:\n");
		logrise_say(&x->rises[i], &text);
		if (x->failed[i].errors) {
			strbuf_addstr(&text, "; ");
			logfailed_say(&x->failed[i], &text);
		}
		strbuf_addshown(&shown, text.buf, text.len);
		wrap_print(stdout, strbuf_str(&shown), 3);
	}
	return x->n_rises > 0;
}

/* Events of containers in the range, and whether they also occurred before. */
static bool print_incidents(const struct explain *x)
{
	bool any = false;
	size_t n_grew = 0;

	for (size_t i = 0; i < x->incidents[DIFF_AFTER].n; i++) {
		const struct incident_container *c = &x->incidents[DIFF_AFTER].rows[i];
		const struct incident_container *b =
			incidents_named(&x->incidents[DIFF_BEFORE], c->name);
		struct strbuf text cleanup_strbuf = STRBUF_INIT,
				   before cleanup_strbuf = STRBUF_INIT;

		incidents_say(c, &text);
		if (!text.len)
			continue;
		if (!any)
			printf("events in this range:\n");
		any = true;
		if (b)
			incidents_say(b, &before);
		if (before.len || x->host_before)
			strbuf_addstr(&text, before.len ? "; also before" : "; not before");
		wrap_print(stdout, strbuf_str(&text), 3);
		if (c->oom.n && n_grew++ < GREW_MOST)
			print_grew(x, OOMGREW_CONTAINER, c->name, c->oom.first_ns);
	}
	return print_happened(x, print_kills(x, any));
}

/* Requests that lasted. */
static bool print_hung(const struct explain *x)
{
	size_t n = 0;

	for (size_t i = 0; i < x->hung[DIFF_AFTER].n; i++) {
		struct strbuf text cleanup_strbuf = STRBUF_INIT;
		char since[32];

		if (!explain_say_hung(x, i, &text) || ++n > HUNG_MOST)
			continue;
		if (n == 1)
			printf("requests that lasted:\n");
		strbuf_addf(&text, ", since %s",
			    when_local(x->hung[DIFF_AFTER].rows[i].at_ns, clock_utc_ns(), since,
				       sizeof(since)));
		wrap_print(stdout, strbuf_str(&text), 3);
	}
	if (n > HUNG_MOST)
		printf("%zu more: sonde requests --running\n", n - HUNG_MOST);
	return n > 0;
}

/* `told`: other changes were printed before this. */
static void print_unchanged(const struct explain *x, bool told)
{
	struct strbuf text cleanup_strbuf = STRBUF_INIT;
	char amount[48];

	strbuf_addf(&text, "nothing%s changed: of what was compared (", told ? " else" : "");
	for (size_t i = 0; i < x->n_diffs; i++)
		strbuf_addf(&text, "%s%s", i ? ", " : "", x->fold[2 * i]->kind->what);
	strbuf_addf(&text, "), no difference is both above noise and above %.0f %% of the total",
		    100 * EXPLAIN_LEAST);
	wrap_print(stdout, strbuf_str(&text), 2);
	printf("(a change of %s or more in the total would be detected 80 %% of the time)\n",
	       explain_amount(x->diff[0], detectable(x), amount, sizeof(amount)));
}

static void print_text(const struct explain *x, const struct chain *c,
		       const struct explain_limits *limits, size_t shown, bool sql,
		       const char *store)
{
	bool told = c->n || x->talk.n;

	explain_limits_print(limits, store, stdout);
	chain_print(c, stdout);
	if (c->n && x->n)
		printf("what else differed:\n");
	for (size_t i = 0; i < shown; i++)
		print_statement(x, &x->rows[i], i, sql, store);
	if (shown < x->n)
		printf("%zu more: -n %zu shows them\n", x->n - shown, x->n);
	told |= print_incidents(x);
	told |= print_logged(x);
	told |= print_hung(x);
	netnew_print(&x->talk, stdout);
	if (!x->n)
		print_unchanged(x, told);
}

/* For how long the time before was recorded, of what is compared. -1: all of it. */
static double recorded_before(const struct explain *x)
{
	const struct selection *sel = x->sel[DIFF_BEFORE];
	uint64_t most = 0;

	for (size_t i = 0; i < x->n_diffs; i++) {
		uint64_t ns = fold_recorded_ns(x->fold[2 * i + DIFF_BEFORE]);

		most = ns > most ? ns : most;
	}
	return !most || (double)most > RECORDED_WHOLE * (double)(sel->to_ns - sel->from_ns) ?
		       -1 :
		       (double)most / NSEC_PER_SEC;
}

/* `recorded`: seconds of the time before; -1: all of it, or it does not matter. */
static void print_windows(struct selection *const sel[2], const struct explain_asked *asked,
			  double recorded)
{
	char seconds[32];
	struct strbuf text cleanup_strbuf = STRBUF_INIT;

	strbuf_addstr(&text, sel[DIFF_AFTER]->range);
	if (asked->felt.what) {
		strbuf_addf(&text, ", the part of %s in which ", asked->range);
		strbuf_addshown(&text, asked->felt.what, strlen(asked->felt.what));
		strbuf_addstr(&text, " was slower");
	}
	strbuf_addf(&text, ", against %s", sel[DIFF_BEFORE]->range);
	if (recorded >= 0)
		strbuf_addf(&text, ", of which %s were recorded",
			    units_seconds(recorded, seconds, sizeof(seconds)));
	strbuf_addf(&text, "%s%s", sel[DIFF_AFTER]->filter_text[0] ? "   " : "",
		    sel[DIFF_AFTER]->filter_text);
	wrap_print(stderr, strbuf_str(&text), 2);
}

static void print_range(const struct explain *x)
{
	struct strbuf text cleanup_strbuf = STRBUF_INIT;

	print_windows(x->sel, &x->asked, recorded_before(x));
	if (!x->uncompared.len)
		return;
	strbuf_addf(&text, "not compared because too little was recorded: %s",
		    strbuf_str(&x->uncompared));
	wrap_print(stderr, strbuf_str(&text), 2);
}

/* --- where the time of some requests went --- */

static json_t *part_json(const struct reqexplain *x, const struct reqpart *p)
{
	struct strbuf text cleanup_strbuf = STRBUF_INIT;
	json_t *o = json_object();

	explain_request_say(x, p, &text);
	json_object_set_new(o, "text", json_text(strbuf_str(&text)));
	json_object_set_new(o, "what", json_string(explain_request_what(p->what)));
	json_object_set_new(o, "total_ns", json_integer((json_int_t)p->ns));
	json_object_set_new(o, "share",
			    x->took_ns ? json_real((double)p->ns / (double)x->took_ns) :
					 json_null());
	json_object_set_new(o, "n", json_number_or_null(p->n, p->n));
	json_object_set_new(o, "who", json_text(p->who));
	json_object_set_new(o, "reason", json_text(p->reason));
	json_object_set_new(o, "function", json_text(p->function));
	json_object_set_new(o, "object", json_text(p->object));
	json_object_set_new(o, "peer", json_text(p->peer));
	json_object_set_new(o, "by", json_text(p->by));
	json_object_set_new(o, "by_tid", json_number_or_null(p->by_tid, p->by_tid));
	json_object_set_new(o, "operation", json_text(p->operation));
	json_object_set_new(o, "service", json_text(p->service));
	json_object_set_new(o, "protocol", json_text(p->protocol));
	return o;
}

/* The first is the one whose requests are summed. */
static json_t *services_json(const struct reqexplain *x)
{
	json_t *list = json_array();

	for (size_t i = 0; i < x->chosen.n_services; i++) {
		const struct explain_service *s = &x->chosen.services[i];

		json_array_append_new(list,
				      json_pack("{s:o, s:o, s:I, s:I}", "container",
						json_text(s->container), "comm", json_text(s->comm),
						"requests", (json_int_t)s->n, "took_ns",
						(json_int_t)s->took_ns));
	}
	return list;
}

static int request_json(const struct verb_call *call, const struct reqexplain *x)
{
	const struct explain_args *a = call->args;
	json_t *j = json_envelope("explain", call->sel->from_ns, call->sel->to_ns);

	json_object_set_new(j, "requests", json_integer((json_int_t)x->chosen.n));
	json_object_set_new(j, "side", json_string(x->chosen.server ? "server" : "client"));
	json_object_set_new(j, "services", services_json(x));
	json_object_set_new(j, "took_ns", json_integer((json_int_t)x->took_ns));
	json_object_set_new(j, "slower_us",
			    json_number_or_null(x->tags.slower_us, x->tags.slower_us >= 0));
	for (size_t i = 0; i < x->n && (!a->rows || i < a->rows); i++)
		json_array_append_new(json_rows(j), part_json(x, &x->parts[i]));
	json_bound(j, x->n);
	return json_print(j, stdout, 1);
}

static void request_text(const struct explain_args *a, const struct reqexplain *x)
{
	struct strbuf head cleanup_strbuf = STRBUF_INIT, others cleanup_strbuf = STRBUF_INIT;

	explain_request_head(x, a->request, &head);
	wrap_print(stdout, strbuf_str(&head), 2);
	for (size_t i = 0; i < x->n; i++) {
		struct strbuf line cleanup_strbuf = STRBUF_INIT;

		if (x->parts[i].what == REQPART_ASKED &&
		    (!i || x->parts[i - 1].what != REQPART_ASKED))
			puts("at the same time, mostly while it waited:");
		if (x->parts[i].what == REQPART_JAVA &&
		    (!i || x->parts[i - 1].what != REQPART_JAVA))
			puts("of these waits, as Java recorded them:");
		strbuf_addstr(&line, "  ");
		explain_request_say(x, &x->parts[i], &line);
		wrap_print(stdout, strbuf_str(&line), 5);
	}
	explain_request_others(x, &others);
	if (others.len)
		wrap_print(stdout, strbuf_str(&others), 2);
}

static int request_run(struct verb_call *call, struct err *e)
{
	const struct explain_args *a = call->args;
	struct selection *sel = NULL;
	struct reqexplain x = {0};
	int ret = 0;

	if (a->before_ns || a->sql)
		ret = err_set(
			e, -EINVAL, EXIT_USAGE,
			"--request cannot be combined with --before or --sql: it does not compare");
	if (!ret)
		ret = select_new(call->select, call->store, call->words, call->n_words,
				 call->quiet || call->json, &sel, e);
	call->sel = sel;
	if (!ret)
		ret = explain_request(sel, a->request, a->slower, &x, e);
	if (!ret && call->json)
		ret = request_json(call, &x);
	else if (!ret)
		request_text(a, &x);
	explain_request_release(&x);
	call->sel = NULL;
	select_free(sel);
	return ret;
}

/* Samples cannot be compared, but requests may: `why` is what explain_compare says. */
static int chain_alone(struct verb_call *call, struct explain *x, int why, struct err *e)
{
	struct err ignored = {0};
	struct explain_limits limits = {0};
	struct chain chain = {0};
	json_t *j;
	int ret = chain_make(call->store, x, NULL, call->hint_store, &chain, &ignored);

	if (!ret)
		ret = explain_limits_read(x->sel, &limits, &ignored);
	if (ret || (!chain.n && !limits.n)) {
		ret = why;
	} else if (call->json) {
		j = windows_json(x->sel, &x->asked);
		json_object_set_new(j, "limits", explain_limits_json(&limits, call->hint_store));
		json_object_set_new(j, "chain", chain_json(&chain));
		json_warn(j, "%s", e->what);
		json_bound(j, 0);
		ret = json_print(j, stdout, 1);
	} else {
		if (!call->quiet)
			print_windows(x->sel, &x->asked, -1);
		explain_limits_print(&limits, call->hint_store, stdout);
		chain_print(&chain, stdout);
		printf("what else differed is not known: %s\n", e->what);
	}
	explain_limits_release(&limits);
	chain_release(&chain);
	return ret == why ? ret : verb_flush(ret, e);
}

static int answer(struct verb_call *call, struct explain *x, struct err *e)
{
	const struct explain_args *a = call->args;
	const char *store = call->hint_store;
	size_t shown = a->rows ? (size_t)a->rows : DEFAULT_ROWS;
	struct explain_limits limits = {0};
	struct chain chain;
	int ret = chain_make(call->store, x, x, store, &chain, e);

	if (!ret)
		ret = explain_limits_read(x->sel, &limits, e);
	shown = shown < x->n ? shown : x->n;
	if (!ret && !call->quiet)
		print_range(x);
	if (!ret && call->json)
		ret = print_json(x, &chain, &limits, shown,
				 a->rows ? (size_t)a->rows : DEFAULT_LIST, store);
	else if (!ret)
		print_text(x, &chain, &limits, shown, a->sql, store);
	explain_limits_release(&limits);
	chain_release(&chain);
	return verb_flush(ret, e);
}

static int explain_run(struct verb_call *call, struct err *e)
{
	const struct explain_args *a = call->args;
	struct explain x;
	int ret;

	if (a->request || a->slower)
		return a->request ?
			       request_run(call, e) :
			       err_set(e, -EINVAL, EXIT_USAGE, "--slower-than needs --request");
	ret = explain_open(call->store, call->select, call->words, call->n_words, a->before_ns, &x,
			   e);
	if (ret)
		return ret;
	ret = explain_compare(&x, e);
	if (!ret)
		ret = answer(call, &x, e);
	else if (e->exit == EXIT_NOTHING)
		ret = chain_alone(call, &x, ret, e);
	explain_release(&x);
	return ret;
}

const struct verb verb_explain = {
	.name = "explain",
	.summary = "say why it was slow, and what else changed compared with the time before",
	.usage = "[WHAT] [--before TIME] [-n N]",
	.examples = EXPLAIN_EXAMPLES,
	.options = EXPLAIN_OPTIONS,
	.args_size = sizeof(struct explain_args),
	.uses = VERB_SELECT | VERB_SELECT_WORD | VERB_SELECT_LATER | VERB_JSON | VERB_PAGES,
	.run = explain_run,
};
