/* SPDX-License-Identifier: Apache-2.0 */
/* commit_run: runs, and the clock by which kernel stamps became UTC, on their way into a segment. */
#include "schema/store/write/transaction.h"

#include <sqlite3.h>
#include <unistd.h>

#include "schema/base/clock.h"

#define CLOCK_STEP_NS 1000000 /* the wall clock was set, not slewed */

static void commit_run_insert(struct commit *c, struct commit_run *r)
{
	sqlite3_stmt *st = commit_stmt(c, ST_RUN);

	if (!st)
		return;
	sqlite3_bind_int64(st, 1, (sqlite3_int64)r->token);
	bind_str(st, 2, r->family);
	bind_str(st, 3, r->options);
	sqlite3_bind_int64(st, 4, r->scope);
	sqlite3_bind_int64(st, 5, r->bucket_s);
	sqlite3_bind_int64(st, 6, r->cpus);
	sqlite3_bind_int64(st, 7, r->from_ns);
	sqlite3_bind_int64(st, 8, r->to_ns);
	sqlite3_bind_int64(st, 9, r->state);
	sqlite3_bind_int64(st, 10, getpid());
	sqlite3_bind_int64(st, 11, (sqlite3_int64)r->accounted);
	sqlite3_bind_int64(st, 12, (sqlite3_int64)r->recording);
	r->row = commit_insert(c, st);
}

static void commit_run_update(struct commit *c, const struct commit_run *r)
{
	sqlite3_stmt *st = commit_stmt(c, ST_RUN_UPDATE);

	if (!st)
		return;
	sqlite3_bind_int64(st, 1, r->row);
	sqlite3_bind_int64(st, 2, r->to_ns);
	sqlite3_bind_int64(st, 3, (sqlite3_int64)r->accounted);
	sqlite3_bind_int64(st, 4, r->state);
	commit_step(c, st, NULL);
}

/* A segment that was left may be joined again: after it was thought removed, say. */
static uint32_t commit_run_find(struct commit *c, const struct commit_run *r)
{
	sqlite3_stmt *st = commit_stmt(c, ST_RUN_FIND);
	uint32_t row = 0;

	if (st) {
		sqlite3_bind_int64(st, 1, (sqlite3_int64)r->token);
		commit_step(c, st, &row);
	}
	return row;
}

void commit_run_one(struct commit *c, struct commit_run *r)
{
	if (!r->row)
		r->row = commit_run_find(c, r);
	if (r->row)
		commit_run_update(c, r);
	else
		commit_run_insert(c, r);
	for (uint32_t i = 0; i < r->n_periods; i++) {
		sqlite3_stmt *st = commit_stmt(c, ST_RUN_PERIOD);

		if (!st)
			return;
		sqlite3_bind_int64(st, 1, r->row);
		sqlite3_bind_int64(st, 2, r->periods[i].from_ns);
		sqlite3_bind_int64(st, 3, (sqlite3_int64)r->periods[i].period_ns);
		commit_step(c, st, NULL);
	}
	if (r->dropped)
		commit_loss(c, r->dropped_ts, r->row, "store", r->dropped);
}

/* Where it differs from *last, or there is none yet. */
static void clock_put(struct commit *c, int64_t utc_ns, int64_t offset, bool *any, int64_t *last)
{
	sqlite3_stmt *st;

	if (*any && offset - *last < CLOCK_STEP_NS && *last - offset < CLOCK_STEP_NS)
		return;
	*any = true;
	*last = offset;
	st = commit_stmt(c, ST_CLOCK);
	if (!st)
		return;
	sqlite3_bind_int64(st, 1, utc_ns);
	sqlite3_bind_int64(st, 2, offset);
	commit_step(c, st, NULL);
}

/* Kernel stamps became UTC with these offsets: on record at the start of a segment and whenever the clock was set. */
int64_t commit_clock(struct commit *c)
{
	bool any = c->boot_offset_segment == c->seg->serial;
	int64_t last = c->boot_offset_ns;

	for (uint32_t i = 0; i < c->n_clock; i++)
		clock_put(c, c->clock[i].utc_ns, c->clock[i].boot_offset_ns, &any, &last);
	clock_put(c, clock_utc_ns(), clock_boot_offset_ns(), &any, &last);
	return last;
}
