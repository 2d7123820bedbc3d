/* SPDX-License-Identifier: Apache-2.0 */
#include "schema/store/read/waits.h"

#include <errno.h>
#include <sqlite3.h>
#include <stdio.h>
#include <string.h>

#include "schema/base/array.h"
#include "schema/base/clock.h"
#include "schema/base/strbuf.h"
#include "schema/store/model/stored.h"
#include "schema/store/packed/sample_sums.h"
#include "schema/store/read/reading.h"

#define CLASSES 64
/* Joined to a table x of times and tasks: keeps the rows in the window that no other run covers.
 * Which those are is computed once. */
#define CHOSEN                                                                                            \
	" JOIN task t ON t.id = x.task LEFT JOIN run_hidden h ON h.run = t.run AND h.process = t.process" \
	" AND x.ts + ?4 BETWEEN h.first_ts AND h.last_ts WHERE h.run IS NULL AND x.ts BETWEEN ?1 AND ?2 AND (?3 = 0 OR t.run = ?3)"

#define IN_WINDOW \
	" JOIN task t ON t.id = x.task WHERE x.ts BETWEEN ?1 AND ?2 AND (?3 = 0 OR t.run = ?3)"

struct waitread {
	struct store_segment *s;
	const struct store_query *q;
	sqlite3_stmt *st; /* NULL: there is nothing to read */
	char names[CLASSES][24];
	int states[CLASSES];
};

static int64_t ceil_s(int64_t ns)
{
	int64_t s = ns / (int64_t)NSEC_PER_SEC;

	return s + (ns % (int64_t)NSEC_PER_SEC > 0);
}

static void classes_load(struct waitread *r)
{
	sqlite3_stmt *st;

	for (int i = 0; i < CLASSES; i++) {
		snprintf(r->names[i], sizeof(r->names[i]), "class %d", i);
		r->states[i] = STORE_STATE_BLOCKED;
	}
	if (sqlite3_prepare_v2(r->s->db,
			       "SELECT id, name, state FROM wait_class WHERE id BETWEEN 0 AND 63",
			       -1, &st, NULL))
		return;
	while (sqlite3_step(st) == SQLITE_ROW) {
		int id = sqlite3_column_int(st, 0);

		snprintf(r->names[id], sizeof(r->names[id]), "%s",
			 (const char *)sqlite3_column_text(st, 1));
		r->states[id] = sqlite3_column_int(st, 2);
	}
	sqlite3_finalize(st);
}

/* A table of sums of this archive, none of which has two captures at once. */
static bool has_table(struct store_segment *s, const char *name)
{
	sqlite3_stmt *st = NULL;
	bool there;

	if (sqlite3_prepare_v2(s->db, "SELECT 1 FROM main.sqlite_schema WHERE name = ?1", -1, &st,
			       NULL))
		return false;
	sqlite3_bind_text(st, 1, name, -1, SQLITE_STATIC);
	there = sqlite3_step(st) == SQLITE_ROW;
	sqlite3_finalize(st);
	return there;
}

/* 1; or -errno. */
static int ask(struct waitread *r, const char *sql, struct err *e)
{
	struct store_segment *s = r->s;

	r->st = reading_prepare(s, sql, e);
	if (!r->st)
		return e && e->code ? e->code : -EIO;
	sqlite3_bind_int64(r->st, 1, ceil_s(r->q->from_ns) - s->t0);
	sqlite3_bind_int64(r->st, 2, ceil_s(r->q->to_ns) - s->t0 - 1);
	sqlite3_bind_int64(r->st, 3, r->q->run);
	sqlite3_bind_int64(r->st, 4, s->t0);
	return 1;
}

static int begin(struct waitread *r, struct store_segment *s, const struct store_query *q,
		 struct err *e)
{
	const struct store_dict *dict;
	int rc = store_segment_tasks(s, &dict, e);

	*r = (struct waitread){.s = s, .q = q};
	if (!rc)
		classes_load(r);
	return rc;
}

/* The columns of a table x of sums, of all of a file. 1; or -errno. */
static int begin_sums(struct waitread *r, struct store_segment *s, const struct store_query *q,
		      const char *columns, const char *from, struct err *e)
{
	struct strbuf sql cleanup_strbuf = STRBUF_INIT;
	int rc = begin(r, s, q, e);

	strbuf_addf(&sql,
		    "SELECT %s FROM %s JOIN task t ON t.id = x.task WHERE ?3 = 0 OR t.run = ?3",
		    columns, from);
	return rc ? rc : ask(r, strbuf_str(&sql), e);
}

/* The columns of a table x in the window, of the rows that count. 1; or -errno. */
static int begin_rows(struct waitread *r, struct store_segment *s, const struct store_query *q,
		      const char *columns, const char *from, struct err *e)
{
	struct strbuf sql cleanup_strbuf = STRBUF_INIT;
	int rc = begin(r, s, q, e);
	const bool all = !rc && reading_alone(s);

	if (!rc && !all)
		rc = reading_views(s, NULL, e);
	strbuf_addf(&sql, "SELECT %s FROM %s%s", columns, from, all ? IN_WINDOW : CHOSEN);
	return rc ? rc : ask(r, strbuf_str(&sql), e);
}

/* The same of a table that has sums, of them if the window has all of the file. 0: it has none. */
static int begin_summed(struct waitread *r, struct store_segment *s, const struct store_query *q,
			const char *columns, const char *rows, const char *sums, struct err *e)
{
	if (!store_segment_sums(s, "wait_row", ceil_s(q->from_ns), ceil_s(q->to_ns) - 1))
		return begin_rows(r, s, q, columns, rows, e);
	return has_table(s, "wait_sum") ? begin_sums(r, s, q, columns, sums, e) : 0;
}

bool store_waits_summed(struct store_segment *s)
{
	return store_segment_is_day(s) && has_table(s, WAIT_STACK_SUM);
}

static struct store_thread thread_of(const struct waitread *r, int column)
{
	int64_t task = sqlite3_column_int64(r->st, column);

	if (task <= 0 || (size_t)task >= r->s->n_tasks)
		return (struct store_thread){.name = ""};
	return (struct store_thread){r->s->tasks[task].process, r->s->tasks[task].tid,
				     r->s->tasks[task].thread ? r->s->tasks[task].thread : ""};
}

/* Is the one who waited asked for? */
static bool wanted(const struct waitread *r, const struct store_thread *t)
{
	return t->process && t->process < r->s->dict.n_processes &&
	       r->s->processes[t->process].present &&
	       (!r->q->want ||
		r->q->want(r->q->ctx, &r->s->processes[t->process], t->name, t->tid));
}

static unsigned class_of(const struct waitread *r, int column)
{
	int64_t class = sqlite3_column_int64(r->st, column);

	return class >= 0 && class < CLASSES ? (unsigned)class : 0;
}

static uint32_t stack_of(const struct waitread *r, int column)
{
	int64_t stack = sqlite3_column_int64(r->st, column);

	return stack > 0 && (uint64_t)stack < r->s->tree.n_stacks ? r->s->tree.node[stack] : 0;
}

int store_wait_totals(struct store_segment *s, const struct store_query *q,
		      int (*each)(void *ctx, const struct store_wait_total *t), void *ctx,
		      struct err *e)
{
	struct waitread r;
	int step, told = 0,
		  rc = begin_summed(&r, s, q,
				    "x.task, x.class, x.flags, x.n, x.total_ns, x.max_ns, x.hist",
				    "wait_row x", "wait_sum x", e);

	if (rc <= 0)
		return rc;
	while (!told && (step = sqlite3_step(r.st)) == SQLITE_ROW) {
		unsigned class = class_of(&r, 1);
		struct store_wait_total t = {.who = thread_of(&r, 0),
					     .class = class,
					     .reason = r.names[class],
					     .state = (enum store_wait_state)r.states[class],
					     .flags = (uint32_t)sqlite3_column_int64(r.st, 2),
					     .n = (uint64_t)sqlite3_column_int64(r.st, 3),
					     .total_ns = (uint64_t)sqlite3_column_int64(r.st, 4),
					     .max_ns = (uint64_t)sqlite3_column_int64(r.st, 5),
					     .hist = (const char *)sqlite3_column_text(r.st, 6)};

		if (wanted(&r, &t.who))
			told = each(ctx, &t);
	}
	rc = reading_finish(s, r.st, told ? SQLITE_DONE : step, e);
	return rc ? rc : told;
}

/* The same with what stack_of needs, of the rows, or of a day's sums of them. */
static int begin_stacks(struct waitread *r, struct store_segment *s, const struct store_query *q,
			const char *columns, const char *rows, const char *sums, struct err *e)
{
	const struct store_dict *dict;
	int rc = store_segment_stacks(s, &dict, e);

	if (rc)
		return rc;
	return s->day ? begin_sums(r, s, q, columns, sums, e) :
			begin_rows(r, s, q, columns, rows, e);
}

/* Has it rows of table NAME_row, or of a day NAME_sum? */
static bool has_rows(struct store_segment *s, const char *rows, const char *sums)
{
	return store_segment_has(s, s->day ? sums : rows);
}

/* Columns: who, by, kind, class (NULL: none), n, total, stack. */
static int pairs(struct store_segment *s, const struct store_query *q, const char *columns,
		 const char *rows, const char *sums,
		 int (*each)(void *ctx, const struct store_wait_by *b), void *ctx, struct err *e)
{
	struct waitread r;
	int step, told = 0, rc = begin_stacks(&r, s, q, columns, rows, sums, e);

	if (rc <= 0)
		return rc;
	while (!told && (step = sqlite3_step(r.st)) == SQLITE_ROW) {
		bool has_class = sqlite3_column_type(r.st, 3) != SQLITE_NULL;
		struct store_wait_by b = {.who = thread_of(&r, 0),
					  .by = thread_of(&r, 1),
					  .kind = (uint32_t)sqlite3_column_int64(r.st, 2),
					  .reason = has_class ? r.names[class_of(&r, 3)] : "",
					  .stack = stack_of(&r, 6),
					  .n = (uint64_t)sqlite3_column_int64(r.st, 4),
					  .total_ns = (uint64_t)sqlite3_column_int64(r.st, 5)};

		if (wanted(&r, &b.who))
			told = each(ctx, &b);
	}
	rc = reading_finish(s, r.st, told ? SQLITE_DONE : step, e);
	return rc ? rc : told;
}

int store_wakers(struct store_segment *s, const struct store_query *q,
		 int (*each)(void *ctx, const struct store_wait_by *b), void *ctx, struct err *e)
{
	if (!has_rows(s, "wake_row", "wake_sum"))
		return 0;
	return pairs(s, q, "x.task, x.waker, x.context, x.class, x.n, x.total_ns, x.stack",
		     "wake_row x", "wake_sum x", each, ctx, e);
}

int store_culprits(struct store_segment *s, const struct store_query *q,
		   int (*each)(void *ctx, const struct store_wait_by *b), void *ctx, struct err *e)
{
	if (!has_rows(s, "culprit_row", "culprit_sum"))
		return 0;
	return pairs(s, q, "x.task, x.culprit, x.kind, NULL, x.n, x.total_ns, 0", "culprit_row x",
		     "culprit_sum x", each, ctx, e);
}

int store_wait_objects(struct store_segment *s, const struct store_query *q,
		       int (*each)(void *ctx, const struct store_wait_object *o), void *ctx,
		       struct err *e)
{
	struct waitread r;
	int step, told = 0, rc;

	if (!has_rows(s, "wait_on_row", "wait_on_sum"))
		return 0;
	rc = begin_stacks(&r, s, q, "x.task, x.waker, x.class, o.value, x.stack, x.n, x.total_ns",
			  "wait_on_row x JOIN text o ON o.id = x.object",
			  "wait_on_sum x JOIN text o ON o.id = x.object", e);
	if (rc <= 0)
		return rc;
	while (!told && (step = sqlite3_step(r.st)) == SQLITE_ROW) {
		struct store_wait_object o = {.who = thread_of(&r, 0),
					      .by = thread_of(&r, 1),
					      .reason = r.names[class_of(&r, 2)],
					      .object = (const char *)sqlite3_column_text(r.st, 3),
					      .stack = stack_of(&r, 4),
					      .n = (uint64_t)sqlite3_column_int64(r.st, 5),
					      .total_ns = (uint64_t)sqlite3_column_int64(r.st, 6)};

		if (o.object && wanted(&r, &o.who))
			told = each(ctx, &o);
	}
	rc = reading_finish(s, r.st, told ? SQLITE_DONE : step, e);
	return rc ? rc : told;
}

/* The run that was asked for; of any, and of captures that ran at once the longer one. */
#define COUNTED_ONCE                                                                                                         \
	"(?3 = x.run OR (?3 = 0 AND x.run NOT IN (SELECT a.id FROM run a JOIN run b ON b.family = a.family AND b.id <> a.id" \
	"  AND b.from_ns < a.to_ns AND b.to_ns > a.from_ns WHERE b.to_ns - b.from_ns > a.to_ns - a.from_ns"                  \
	"  OR (b.to_ns - b.from_ns = a.to_ns - a.from_ns AND b.id < a.id))))"

#define HELD(throttle, steal, counted)                                                               \
	"SELECT g.value, sum(x.periods), sum(x.throttled), sum(x.throttled_ns), 0, 0 FROM " throttle \
	" x LEFT JOIN text g ON g.id = x.cgroup WHERE " counted " GROUP BY x.cgroup"                 \
	" HAVING sum(x.throttled) > 0"                                                               \
	" UNION ALL SELECT '', 0, 0, 0, sum(steal_ns), sum(cpu_ns) FROM " steal " x"                 \
	" WHERE " counted " HAVING sum(cpu_ns) > 0"

int store_held_back(struct store_segment *s, const struct store_query *q,
		    int (*each)(void *ctx, const struct store_held *h), void *ctx, struct err *e)
{
	struct waitread r;
	int step, told = 0, rc;

	r = (struct waitread){.s = s, .q = q};
	rc = ask(&r,
		 s->day ? HELD("throttle_sum", "steal_sum", "(?3 = 0 OR x.run = ?3)") :
			  HELD("throttle_row", "steal_row",
			       "x.ts BETWEEN ?1 AND ?2 AND " COUNTED_ONCE),
		 e);

	if (rc <= 0)
		return rc;
	while (!told && (step = sqlite3_step(r.st)) == SQLITE_ROW) {
		const char *cgroup = (const char *)sqlite3_column_text(r.st, 0);
		struct store_held h = {.cgroup = cgroup ? cgroup : "",
				       .periods = (uint64_t)sqlite3_column_int64(r.st, 1),
				       .throttled = (uint64_t)sqlite3_column_int64(r.st, 2),
				       .throttled_ns = (uint64_t)sqlite3_column_int64(r.st, 3),
				       .steal_ns = (uint64_t)sqlite3_column_int64(r.st, 4),
				       .cpu_ns = (uint64_t)sqlite3_column_int64(r.st, 5)};

		told = each(ctx, &h);
	}
	rc = reading_finish(s, r.st, told ? SQLITE_DONE : step, e);
	return rc ? rc : told;
}

const char *store_wait_reason(uint32_t class)
{
	static const char *const names[] = {
		[STORE_WAIT_OTHER] = "other",   [STORE_WAIT_LOCK] = "lock",
		[STORE_WAIT_DISK] = "disk",     [STORE_WAIT_NETWORK] = "network",
		[STORE_WAIT_PIPE] = "pipe",     [STORE_WAIT_POLL] = "poll",
		[STORE_WAIT_SLEEP] = "sleep",   [STORE_WAIT_FAULT] = "page fault",
		[STORE_WAIT_STOP] = "stop",     [STORE_WAIT_CHILD] = "child",
		[STORE_WAIT_MEMORY] = "memory",
	};

	return class < ARRAY_SIZE(names) ? names[class] : names[STORE_WAIT_OTHER];
}
