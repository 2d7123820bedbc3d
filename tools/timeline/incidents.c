/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/timeline/incidents.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "schema/base/array.h"
#include "schema/base/clock.h"
#include "schema/base/hash.h"
#include "schema/base/idmap.h"
#include "schema/base/mem.h"
#include "schema/store/read/days.h"
#include "tools/print/when.h"
#include "tools/select/askrows.h"
#include "tools/select/filter.h"
#include "tools/waits/waitheld.h"

struct instance {
	uint32_t row;
	char *id, *started;
	int64_t start_ns;  /* as its runtime says; where that is no time, of its first process that
			      is known */
	uint64_t restarts; /* as its runtime counts them */
};

struct reading {
	const struct selection *sel;
	struct incidents *out;
	size_t cap;
	struct idmap exits_of;    /* hash of (row, status) -> how many, over all segments */
	struct idmap instance_of; /* hash of (id, started) -> instance */
	struct instance *instances;
	size_t n_instances, cap_instances;
	struct waitheld held;
	bool offcpu;
};

static uint64_t name_key(const char *name)
{
	return hash_bytes(HASH_SEED, name, strlen(name));
}

static uint32_t row_named(struct reading *r, const char *name, const char *id)
{
	const uint64_t key = name_key(name);
	uint64_t at;

	if (idmap_get(&r->out->row_of, key, &at))
		return (uint32_t)at;
	mem_grow(r->out->rows, r->out->n, r->cap);
	r->out->rows[r->out->n] =
		(struct incident_container){.name = mem_strdup(name), .id = mem_strdup(id)};
	idmap_set(&r->out->row_of, key, r->out->n);
	return (uint32_t)r->out->n++;
}

/* UINT32_MAX where a filter leaves it out. */
static uint32_t row_of(struct reading *r, const char *name, const char *id, const char *comm)
{
	const struct store_process_row p = select_process_row(comm, name, id);

	return select_wants_process(r->sel, &p) ? row_named(r, name, id) : UINT32_MAX;
}

/* --- rows --- */

static void take_instance(void *ctx, sqlite3_stmt *st)
{
	struct reading *r = ctx;
	const char *name = askrows_text(st, 0), *id = askrows_text(st, 1),
		   *started = askrows_text(st, 2);
	const uint32_t row = row_of(r, name, id, "");
	const int64_t start_ns = sqlite3_column_int64(st, 4);
	struct instance *x;
	bool fresh;
	uint64_t *at;

	if (row == UINT32_MAX)
		return;
	at = idmap_ref(
		&r->instance_of,
		hash_bytes(hash_bytes(HASH_SEED, id, strlen(id) + 1), started, strlen(started)),
		&fresh);
	if (fresh) {
		*at = r->n_instances;
		mem_grow(r->instances, r->n_instances, r->cap_instances);
		r->instances[r->n_instances++] =
			(struct instance){row, mem_strdup(id), mem_strdup(started), start_ns, 0};
	}
	x = &r->instances[*at];
	x->start_ns = start_ns < x->start_ns ? start_ns : x->start_ns;
	if ((uint64_t)sqlite3_column_int64(st, 3) > x->restarts)
		x->restarts = (uint64_t)sqlite3_column_int64(st, 3);
}

static void count(struct incident_count *c, uint64_t n, int64_t first_ns, int64_t last_ns)
{
	if (!c->n || first_ns < c->first_ns)
		c->first_ns = first_ns;
	if (!c->n || last_ns > c->last_ns)
		c->last_ns = last_ns;
	c->n += n;
}

static void take_oom(void *ctx, sqlite3_stmt *st)
{
	struct reading *r = ctx;
	const char *comm = askrows_text(st, 1);
	const uint32_t row = row_of(r, askrows_text(st, 0), "", comm);
	struct incident_container *c;

	if (row == UINT32_MAX)
		return;
	c = &r->out->rows[row];
	count(&c->oom, (uint64_t)sqlite3_column_int64(st, 2),
	      sqlite3_column_int64(st, 3) * NSEC_PER_SEC,
	      sqlite3_column_int64(st, 4) * NSEC_PER_SEC);
	free(c->oom_comm);
	c->oom_comm = mem_strdup(comm);
}

/* Family host records each restart; without it, the instances show those that were seen. */
static void take_restart(void *ctx, sqlite3_stmt *st)
{
	struct reading *r = ctx;
	const uint32_t row = row_of(r, askrows_text(st, 0), askrows_text(st, 1), "");

	if (row != UINT32_MAX)
		count(&r->out->rows[row].restarted, (uint64_t)sqlite3_column_int64(st, 2),
		      sqlite3_column_int64(st, 3), sqlite3_column_int64(st, 4));
}

/* Ends and starts, in order of time. */
static void take_life(void *ctx, sqlite3_stmt *st)
{
	struct reading *r = ctx;
	const uint32_t row = row_of(r, askrows_text(st, 0), askrows_text(st, 1), "");
	struct incident_container *c;

	if (row == UINT32_MAX)
		return;
	c = &r->out->rows[row];
	free(c->down_how);
	c->down_how = NULL;
	c->down_ns = 0;
	if (!strcmp(askrows_text(st, 2), "stopped")) {
		c->down_ns = sqlite3_column_int64(st, 4);
		c->down_how = mem_strdup(askrows_text(st, 3));
	} else {
		c->up_ns = sqlite3_column_int64(st, 4);
	}
}

static void take_exit(void *ctx, sqlite3_stmt *st)
{
	struct reading *r = ctx;
	const uint32_t row = row_of(r, askrows_text(st, 0), "", askrows_text(st, 1)),
		       status = (uint32_t)sqlite3_column_int64(st, 2);
	bool fresh;
	uint64_t *n;

	if (row == UINT32_MAX)
		return;
	n = idmap_ref(&r->exits_of, hash_u64(hash_u64(HASH_SEED, row), status), &fresh);
	*n = (fresh ? 0 : *n) + (uint64_t)sqlite3_column_int64(st, 3);
	if (*n <= r->out->rows[row].exits)
		return;
	r->out->rows[row].exits = *n;
	r->out->rows[row].exit_status = status;
}

static void take_run(void *ctx, sqlite3_stmt *st)
{
	struct reading *r = ctx;

	(void)st;
	r->offcpu = true;
}

static int read_held(void *ctx, struct store_segment *seg, const char *path, struct err *e)
{
	struct reading *r = ctx;
	const struct store_query q = {.from_ns = r->sel->from_ns, .to_ns = r->sel->to_ns};
	const struct store_dict *dict;
	int rc = store_segment_processes(seg, &dict, e);

	(void)path;
	return rc ? rc : waitheld_read(&r->held, r->sel, seg, dict, &q, e);
}

struct question {
	struct reading *r;
	const char *sql;
	void (*take)(void *ctx, sqlite3_stmt *st);
};

static int ask(void *ctx, struct store_segment *seg, const char *path, struct err *e)
{
	const struct question *q = ctx;

	return askrows(q->r->sel, seg, path, q->sql, q->take, q->r, e);
}

static int read_part(struct reading *r, const struct store_part *part, struct err *e)
{
	static const struct {
		const char *table; /* as askrows_part's; NULL: it asks tables, and a view that the
				      dictionary has made */
		const char *sql;
		void (*take)(void *ctx, sqlite3_stmt *st);
	} questions[] = {
		{NULL,
		 "SELECT c.name, c.runtime_id, c.started, c.restarts, min(p.start_ns) FROM containers c JOIN process p ON p.container = c.id"
		 " WHERE c.name <> '' AND c.started <> '' GROUP BY c.id",
		 take_instance},
		{"end_row",
		 "SELECT container, comm, sum(n), min(ts), max(ts) FROM process_ends WHERE how = 'out of memory' AND container <> ''"
		 " AND ts BETWEEN ?1 AND ?2 GROUP BY 1, 2",
		 take_oom},
		{"event_row",
		 "SELECT name, which, sum(n), min(at_ns), max(at_ns) FROM events WHERE kind = 'restarted' AND subject = 'container'"
		 " AND at_ns / 1000000000 BETWEEN ?1 AND ?2 GROUP BY 1, 2",
		 take_restart},
		{"event_row",
		 "SELECT name, which, kind, detail, at_ns FROM events WHERE subject = 'container' AND kind IN ('stopped', 'started', 'restarted')"
		 " AND at_ns / 1000000000 BETWEEN ?1 AND ?2 ORDER BY at_ns, kind = 'stopped' DESC",
		 take_life},
		{"end_row",
		 "SELECT container, '', status, sum(n) FROM process_ends WHERE how = 'exit' AND status <> 0 AND container <> ''"
		 " AND ts BETWEEN ?1 AND ?2 GROUP BY 1, 3",
		 take_exit},
		{NULL,
		 "SELECT 1 FROM run WHERE family = 'offcpu' AND to_ns / 1000000000 >= ?1 AND from_ns / 1000000000 <= ?2 LIMIT 1",
		 take_run},
	};
	struct store_segment *seg;
	const struct store_dict *dict;
	int rc = select_segment(r->sel, part->path, &seg, e);

	if (!rc)
		rc = store_segment_processes(seg, &dict, e);
	if (!rc && (!part->day || store_segment_has(seg, "throttle_row")))
		rc = askrows_segments(r->sel, part, read_held, r, e);
	for (size_t i = 0; !rc && i < ARRAY_SIZE(questions); i++) {
		struct question q = {r, questions[i].sql, questions[i].take};

		rc = select_segment(r->sel, part->path, &seg, e);
		if (rc || (questions[i].table && !store_segment_has(seg, questions[i].table)))
			continue;
		if (part->day && !askrows_may(seg, questions[i].sql))
			rc = askrows_segments(r->sel, part, ask, &q, e);
		else
			rc = ask(&q, seg, part->path, e);
	}
	return rc;
}

/* --- instances, one after the other --- */

static int by_row_and_time(const void *a, const void *b)
{
	const struct instance *x = a, *y = b;

	if (x->row != y->row)
		return x->row < y->row ? -1 : 1;
	return (x->start_ns > y->start_ns) - (x->start_ns < y->start_ns);
}

static void count_inside(const struct reading *r, struct incident_count *c, uint64_t n,
			 int64_t at_ns)
{
	if (n && at_ns >= r->sel->from_ns && at_ns < r->sel->to_ns)
		count(c, n, at_ns, at_ns);
}

/* On a busy host a process may be named only after its container has restarted, and is then
 * recorded as the later instance's. */
static void place_instances(struct reading *r)
{
	for (size_t i = 0; i < r->n_instances; i++) {
		int64_t started_ns;

		if (strchr(r->instances[i].started, 'T') &&
		    !when_parse(r->instances[i].started, 0, &started_ns))
			r->instances[i].start_ns = started_ns;
	}
}

static void count_starts(struct reading *r)
{
	place_instances(r);
	if (r->n_instances)
		qsort(r->instances, r->n_instances, sizeof(*r->instances), by_row_and_time);
	for (size_t i = 0; i < r->n_instances; i++) {
		const struct instance *x = &r->instances[i],
				      *last = i && x[-1].row == x->row ? x - 1 : NULL;
		struct incident_container *c = &r->out->rows[x->row];

		if (last && strcmp(last->id, x->id))
			count_inside(r, &c->made_anew, 1, x->start_ns);
		else if (last)
			count_inside(r, &c->restarts,
				     x->restarts > last->restarts ? x->restarts - last->restarts :
								    1,
				     x->start_ns);
		else
			count_inside(r, &c->restarts, x->restarts > 0, x->start_ns);
	}
}

static void take_held(struct reading *r)
{
	for (size_t i = 0; i < r->held.n; i++) {
		const struct waitheld_row *h = &r->held.rows[i];
		uint32_t row;

		if (!h->wanted || !*h->container)
			continue;
		row = row_named(r, h->container, ""); /* may move the rows */
		r->out->rows[row].throttled_ns += h->throttled_ns;
	}
}

int incidents_read(const struct selection *sel, struct incidents *out, struct err *e)
{
	struct reading r = {.sel = sel, .out = out};
	const struct store_part *parts;
	const size_t n = select_parts(sel, &parts);
	int rc = 0;

	*out = (struct incidents){0};
	for (size_t i = 0; !rc && i < n; i++)
		rc = read_part(&r, &parts[i], e);
	if (!rc) {
		count_starts(&r);
		take_held(&r);
	}
	out->throttling_known = r.offcpu;
	for (size_t i = 0; i < r.n_instances; i++) {
		free(r.instances[i].id);
		free(r.instances[i].started);
	}
	free(r.instances);
	waitheld_release(&r.held);
	idmap_release(&r.exits_of);
	idmap_release(&r.instance_of);
	if (rc)
		incidents_release(out);
	return rc;
}

bool incident_ended_badly(const struct incident_container *c)
{
	static const char *const fine[] = {"", "exit 0", "exit 130", "exit 143"};

	for (size_t i = 0; i < ARRAY_SIZE(fine); i++)
		if (!strcmp(c->down_how, fine[i]))
			return false;
	return strncmp(c->down_how, "signal 15", 9) != 0 &&
	       strncmp(c->down_how, "signal 2 ", 9) != 0;
}

void incidents_release(struct incidents *x)
{
	for (size_t i = 0; i < x->n; i++) {
		free(x->rows[i].name);
		free(x->rows[i].id);
		free(x->rows[i].oom_comm);
		free(x->rows[i].down_how);
	}
	free(x->rows);
	idmap_release(&x->row_of);
	*x = (struct incidents){0};
}

const struct incident_count *incident_count(const struct incident_container *c, enum incident what)
{
	return what == INCIDENT_OOM     ? &c->oom :
	       what == INCIDENT_RESTART ? &c->restarts :
					  &c->made_anew;
}

static void say_count(const struct incident_container *c, enum incident what, uint64_t n,
		      struct strbuf *out)
{
	static const char *const words[] = {[INCIDENT_OOM] = "out of memory",
					    [INCIDENT_RESTART] = "restarted",
					    [INCIDENT_MADE_ANEW] = "created again"};

	if (!n)
		return;
	strbuf_addstr(out, words[what]);
	if (n > 1)
		strbuf_addf(out, " %llu times", (unsigned long long)n);
	if (what == INCIDENT_OOM)
		strbuf_addf(out, " (%.64s)", c->oom_comm);
	else if (what == INCIDENT_RESTART && !c->oom.n && c->exits &&
		 2 * c->exits >= n) /* so it ended, as a rule */
		strbuf_addf(out, " (exit %u)", c->exit_status);
}

void incident_say(const struct incident_container *c, enum incident what, struct strbuf *out)
{
	say_count(c, what, incident_count(c, what)->n, out);
}

void incidents_say(const struct incident_container *c, struct strbuf *out)
{
	const size_t before = out->len;

	for (int what = 0; what < INCIDENTS; what++) {
		const uint64_t n = what == INCIDENT_RESTART ?
					   incident_restarts(c)->n :
					   incident_count(c, (enum incident)what)->n;

		if (!n)
			continue;
		strbuf_addf(out, "%s%s", out->len == before ? c->name : "",
			    out->len == before ? ": " : ", ");
		say_count(c, (enum incident)what, n, out);
	}
}

const struct incident_container *incidents_named(const struct incidents *x, const char *name)
{
	uint64_t at;

	return idmap_get(&x->row_of, name_key(name), &at) ? &x->rows[at] : NULL;
}
