/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/checks/checks.h"

#include <errno.h>
#include <math.h>
#include <sqlite3.h>
#include <stdlib.h>
#include <string.h>

#include "schema/base/array.h"
#include "schema/base/cleanup.h"
#include "schema/base/cli/quantity.h"
#include "schema/base/clock.h"
#include "schema/base/mem.h"
#include "schema/base/units.h"
#include "tools/checks/checkdata.h"
#include "tools/events/oomgrew.h"
#include "tools/print/json.h"
#include "tools/print/when.h"
#include "tools/select/filter.h"

#define SUBJECTS_MAX 1000 /* rows of one check; the rest is dropped */
#define LINES_MOST   5    /* subjects with their growing lines: each reads an hour again */
#define PAST_S       300  /* checked so long ago, commands name the time */
#define STALE_S      180  /* the background recorder has stored something within this time */

struct running {
	const char *store;
	sqlite3 *db;
	struct check_results *out;
	size_t cap;
	int64_t earlier_s; /* 0: what recovered is not asked */
	struct err *e;
};

/* --- a query --- */

/* How a check is asked. */
struct asked {
	int64_t to_s;
	int window_min, for_min;
	enum check_state as; /* what its rows are */
};

static void bind(sqlite3_stmt *st, const struct checkfile *c, const struct asked *how,
		 const char *subject)
{
	/* a local check may group by ts / 60 */
	const int64_t end_s = c->own ? how->to_s / 60 * 60 : how->to_s;
	const struct {
		const char *name;
		double value;
	} numbers[] = {{":from", (double)(end_s - 60 * how->window_min)},
		       {":to", (double)end_s},
		       {":threshold", c->threshold},
		       {":for", how->for_min}};
	int at;

	for (size_t i = 0; i < ARRAY_SIZE(numbers); i++) {
		at = sqlite3_bind_parameter_index(st, numbers[i].name);
		/* an integer, so that a division by 60 stays whole */
		if (at && numbers[i].value == floor(numbers[i].value))
			sqlite3_bind_int64(st, at, (int64_t)numbers[i].value);
		else if (at)
			sqlite3_bind_double(st, at, numbers[i].value);
	}
	for (size_t i = 0; i < c->n_binds; i++) {
		at = sqlite3_bind_parameter_index(st, c->binds[i].name);
		if (at && c->binds[i].is_text)
			sqlite3_bind_text(st, at, c->binds[i].text, -1, SQLITE_TRANSIENT);
		else if (at)
			sqlite3_bind_double(st, at, c->binds[i].number);
	}
	at = sqlite3_bind_parameter_index(st, ":subject");
	if (at && subject)
		sqlite3_bind_text(st, at, subject, -1, SQLITE_TRANSIENT);
}

static int refused(struct running *r, const struct checkfile *c, struct err *e)
{
	err_set(e, -EINVAL, c->own ? EXIT_USAGE : EXIT_RUNTIME, "check %s: %s", c->name,
		sqlite3_errmsg(r->db));
	err_fix(e, "sonde check --list --json   shows the checks that ship with sonde");
	return -EINVAL;
}

/* A view that this store does not have: its data was never recorded. */
static bool is_missing(sqlite3 *db)
{
	return !strncmp(sqlite3_errmsg(db), "no such table: ", strlen("no such table: "));
}

static int column(sqlite3_stmt *st, const char *name)
{
	for (int i = 0; i < sqlite3_column_count(st); i++)
		if (!strcmp(sqlite3_column_name(st, i), name))
			return i;
	return -1;
}

static json_t *cell(sqlite3_stmt *st, int i)
{
	switch (sqlite3_column_type(st, i)) {
	case SQLITE_NULL:
		return json_null();
	case SQLITE_INTEGER:
		return json_integer(sqlite3_column_int64(st, i));
	case SQLITE_FLOAT:
		return json_real(sqlite3_column_double(st, i));
	default:
		return json_text((const char *)sqlite3_column_text(st, i));
	}
}

static json_t *evidence_of(struct running *r, const struct checkfile *c, const char *sql,
			   int64_t to_s, const char *subject)
{
	json_t *rows = json_array();
	sqlite3_stmt *st = NULL;

	if (sqlite3_prepare_v2(r->db, sql, -1, &st, NULL) != SQLITE_OK || !st) {
		json_decref(rows);
		return NULL;
	}
	bind(st, c,
	     &(struct asked){.to_s = to_s, .window_min = c->window_min, .for_min = c->for_min},
	     subject);
	for (int n = 0; n < CHECKS_EVIDENCE && sqlite3_step(st) == SQLITE_ROW; n++) {
		json_t *o = json_object();

		for (int i = 0; i < sqlite3_column_count(st); i++)
			json_object_set_new(o, sqlite3_column_name(st, i), cell(st, i));
		json_array_append_new(rows, o);
	}
	sqlite3_finalize(st);
	return rows;
}

/* --- results --- */

static void put(struct running *r, const struct checkfile *c, enum check_state state,
		const char *subject, double value, const char *text)
{
	struct check_results *out = r->out;

	mem_grow(out->rows, out->n, r->cap);
	out->rows[out->n++] = (struct check_result){.check = c,
						    .state = state,
						    .subject = mem_strdup(subject ? subject : ""),
						    .value = value,
						    .to_s = out->to_s,
						    .lasted_min = state == CHECK_PENDING,
						    .text = mem_strdup(text ? text : "")};
	out->bad += state == CHECK_BAD;
	out->critical += state == CHECK_BAD && c->critical;
	out->pending += state == CHECK_PENDING;
	out->recovered += state == CHECK_RECOVERED;
	out->unmeasured += state == CHECK_UNMEASURED;
}

/* Of the check whose rows begin at `first`: the one that fails, or will. */
static struct check_result *failing(const struct check_results *out, size_t first,
				    const char *subject)
{
	for (size_t i = first; i < out->n; i++)
		if ((out->rows[i].state == CHECK_BAD || out->rows[i].state == CHECK_PENDING) &&
		    !strcmp(out->rows[i].subject, subject))
			return &out->rows[i];
	return NULL;
}

static const char *text_at(sqlite3_stmt *st, int i)
{
	return i < 0 ? NULL : (const char *)sqlite3_column_text(st, i);
}

/* A subject that fails already is not put again; what is pending has lasted as long as is asked. */
static void take(struct running *r, const struct checkfile *c, size_t first,
		 const struct asked *how, sqlite3_stmt *st, const int columns[3])
{
	const char *subject = text_at(st, columns[0]);
	struct check_result *known = failing(r->out, first, subject ? subject : "");

	if (!known)
		put(r, c, how->as, subject, sqlite3_column_double(st, columns[1]),
		    text_at(st, columns[2]));
	else if (known->state == CHECK_PENDING && how->as == CHECK_PENDING)
		known->lasted_min = how->for_min;
}

static int ask(struct running *r, const struct checkfile *c, size_t first, const struct asked *how,
	       const char **rest)
{
	sqlite3_stmt *st = NULL;
	int columns[3], rc;

	if (sqlite3_prepare_v2(r->db, c->sql, -1, &st, rest) != SQLITE_OK)
		return is_missing(r->db) ? -ENODATA : refused(r, c, r->e);
	columns[0] = column(st, "subject");
	columns[1] = column(st, "value");
	columns[2] = column(st, "text");
	if (columns[0] < 0 || columns[1] < 0) {
		sqlite3_finalize(st);
		return err_set(r->e, -EINVAL, c->own ? EXIT_USAGE : EXIT_RUNTIME,
			       "check %s: its query must return the columns subject and value",
			       c->name);
	}
	bind(st, c, how, NULL);
	for (int n = 0; (rc = sqlite3_step(st)) == SQLITE_ROW && n < SUBJECTS_MAX; n++)
		take(r, c, first, how, st, columns);
	rc = rc == SQLITE_DONE || rc == SQLITE_ROW ? 0 : refused(r, c, r->e);
	sqlite3_finalize(st);
	return rc;
}

/* What has not failed for as long as it must: it is asked over the last minute, the last two, ...
 * Only of checks whose window is what must last: in a longer one a minute says nothing. */
static int ask_pending(struct running *r, const struct checkfile *c, size_t first)
{
	const size_t before = r->out->pending;
	const char *rest;
	int rc = 0;

	if (c->for_min != c->window_min || c->for_min > CHECKS_PENDING_MIN)
		return 0;
	for (int min = 1; min < c->for_min && !rc; min++) {
		rc = ask(r, c, first,
			 &(struct asked){.to_s = r->out->to_s,
					 .window_min = min,
					 .for_min = min,
					 .as = CHECK_PENDING},
			 &rest);
		if (r->out->pending == before)
			break;
	}
	return rc;
}

/* "480 of 512 MiB, ...; leaky (leak.c:24) of web by 93 MiB to 95 MiB" */
static void lines_add(const struct running *r, struct check_result *x)
{
	struct strbuf text = STRBUF_INIT;
	struct oomgrew grew;

	oomgrew_read_steady(r->store, x->subject, r->out->to_s * NSEC_PER_SEC, &grew);
	if (grew.n) {
		strbuf_addf(&text, "%s; grew: ", x->text);
		oomgrew_say(&grew, &text);
		free(x->text);
		x->text = strbuf_take(&text);
	}
	strbuf_release(&text);
	oomgrew_release(&grew);
}

static bool is_measured(const struct running *r, const struct checkfile *c)
{
	return !c->needs[0] || checkdata_last(r->db, c->needs) >= r->out->to_s - STALE_S;
}

static int run_one(struct running *r, const struct checkfile *c)
{
	const size_t first = r->out->n;
	struct asked how = {.to_s = r->out->to_s,
			    .window_min = c->window_min,
			    .for_min = c->for_min,
			    .as = CHECK_BAD};
	const char *rest = "";
	int rc = is_measured(r, c) ? ask(r, c, first, &how, &rest) : -ENODATA;
	size_t bad;

	if (rc == -ENODATA) {
		put(r, c, CHECK_UNMEASURED, NULL, 0, NULL);
		return 0;
	}
	bad = r->out->n;
	for (size_t i = first; !rc && i < bad; i++) {
		r->out->rows[i].evidence =
			evidence_of(r, c, rest, r->out->to_s, r->out->rows[i].subject);
		if (c->lines && i - first < LINES_MOST)
			lines_add(r, &r->out->rows[i]);
	}
	if (!rc)
		rc = ask_pending(r, c, first);
	how.to_s -= r->earlier_s;
	how.as = CHECK_RECOVERED;
	if (!rc && r->earlier_s)
		rc = ask(r, c, first, &how, &rest);
	if (!rc && r->out->n == first)
		put(r, c, CHECK_FINE, NULL, 0, NULL);
	return rc;
}

static int by_check(const void *a, const void *b)
{
	const struct check_result *x = a, *y = b;
	int c = strcmp(x->check->name, y->check->name);

	c = c ? c : (int)x->state - (int)y->state;
	return c ? c : strcmp(x->subject, y->subject);
}

static int run_all(const char *store, const struct checkfiles *checks, int64_t to_s,
		   int64_t earlier_s, struct check_results *out, struct err *e)
{
	struct running r = {.store = store, .out = out, .earlier_s = earlier_s, .e = e};
	int rc;

	*out = (struct check_results){.n_checks = checks->n, .to_s = to_s};
	rc = checkdata_open(store, checks, to_s, earlier_s, &r.db, e);
	if (rc)
		return rc;
	for (size_t i = 0; !rc && i < checks->n; i++)
		rc = run_one(&r, &checks->rows[i]);
	checkdata_close(r.db);
	if (rc)
		check_results_release(out);
	else if (out->n)
		qsort(out->rows, out->n, sizeof(*out->rows), by_check);
	return rc;
}

int checks_run(const char *store, const struct checkfiles *checks, int64_t to_s,
	       struct check_results *out, struct err *e)
{
	return run_all(store, checks, to_s, CHECKS_BEFORE_S, out, e);
}

int checks_run_now(const char *store, const struct checkfiles *checks, int64_t to_s,
		   struct check_results *out, struct err *e)
{
	return run_all(store, checks, to_s, 0, out, e);
}

void check_results_release(struct check_results *r)
{
	for (size_t i = 0; i < r->n; i++) {
		free(r->rows[i].subject);
		free(r->rows[i].text);
		json_decref(r->rows[i].evidence);
	}
	free(r->rows);
	*r = (struct check_results){0};
}

const char *check_state_name(enum check_state s)
{
	static const char *const names[] = {"fine", "bad", "pending", "recovered", "not measured"};

	return names[s];
}

/* "1 kill", of kills. */
static int unit_length(const char *unit, double value)
{
	size_t n = strlen(unit);

	return (int)(value == 1 && n > 3 && unit[n - 1] == 's' && !strchr(unit, '/') ? n - 1 : n);
}

/* ", 97.66 %"; a duration as everywhere: ", 29 min". */
static void value_say(const struct check_result *r, struct strbuf *out)
{
	static const struct {
		const char *unit;
		double seconds;
	} TIMES[] = {{"days", 86400}, {"h", 3600}, {"min", 60}, {"ms", 0.001}};
	char text[UNITS_MAX];

	for (size_t i = 0; i < ARRAY_SIZE(TIMES); i++)
		if (!strcmp(r->check->unit, TIMES[i].unit)) {
			strbuf_addf(out, ", %s",
				    units_seconds(r->value * TIMES[i].seconds, text, sizeof(text)));
			return;
		}
	if (r->value >= 10000 && r->value < 1e15) { /* a count: 36 240 */
		strbuf_addf(out, ", %s %s", units_count((uint64_t)r->value, text, sizeof(text)),
			    r->check->unit);
		return;
	}
	strbuf_addf(out, fabs(r->value) < 9999.5 ? ", %.4g%s%.*s" : ", %.0f%s%.*s", r->value,
		    r->check->unit[0] ? " " : "", unit_length(r->check->unit, r->value),
		    r->check->unit);
}

void check_say(const struct check_result *r, struct strbuf *out)
{
	strbuf_addf(out, "%s: %.200s", r->check->name, *r->subject ? r->subject : "-");
	if (r->state == CHECK_RECOVERED) {
		strbuf_addstr(out, " has recovered");
		return;
	}
	value_say(r, out);
	if (*r->text)
		strbuf_addf(out, " (%.500s)", r->text);
	if (r->state == CHECK_PENDING)
		strbuf_addf(out, "; for %d of %d min", r->lasted_min, r->check->for_min);
}

/* A command of now, as of then: its --last, else an hour, ends at `to_s`. */
static void next_past(int64_t to_s, struct strbuf *out)
{
	static const char *const ranged[] = {"sonde timeline ", "sonde sql @", "sonde requests --s",
					     "sonde requests --f"};
	cleanup_free char *now = mem_strdup(strbuf_str(out));
	char *last = strstr(now, " --last "), from[40], to[40];
	int64_t length_ns = 3600 * NSEC_PER_SEC;
	bool fits = last && !quantity_ns(last + strlen(" --last "), &length_ns);

	for (size_t i = 0; i < ARRAY_SIZE(ranged) && !last; i++)
		fits = fits || !strncmp(now, ranged[i], strlen(ranged[i]));
	when_zoned(to_s * NSEC_PER_SEC - length_ns, from, sizeof(from));
	when_zoned(to_s * NSEC_PER_SEC, to, sizeof(to));
	strbuf_reset(out);
	strbuf_add(out, now, last && fits ? (size_t)(last - now) : strlen(now));
	if (fits)
		strbuf_addf(out, " --from %s --to %s", from, to);
	else if (!strcmp(now, "sonde requests --running"))
		strbuf_addf(out, " --at %s", to);
}

void check_next(const struct check_result *r, struct strbuf *out)
{
	const char *from = r->check->next, *at;

	while ((at = strstr(from, "{subject}"))) {
		strbuf_add(out, from, (size_t)(at - from));
		filter_word(r->subject, out);
		from = at + strlen("{subject}");
	}
	strbuf_addstr(out, from);
	if (clock_utc_ns() / NSEC_PER_SEC > r->to_s + PAST_S)
		next_past(r->to_s, out);
}
