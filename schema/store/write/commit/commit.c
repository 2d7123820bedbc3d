/* SPDX-License-Identifier: Apache-2.0 */
#include "schema/store/write/commit/commit.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "schema/base/clock.h"
#include "schema/base/mem.h"
#include "schema/store/write/commit/commit_dict.h"
#include "schema/store/write/commit/commit_rows.h"

/* --- what was learnt later --- */

/* Take the list; its entries may become dirty again from now on. */
static struct dict_dirty dirty_take(struct dict *d, struct dict_dirty *list, enum dict_kind kind)
{
	struct dict_dirty took;

	pthread_mutex_lock(&d->lock);
	took = *list;
	*list = (struct dict_dirty){0};
	for (uint32_t i = 0; i < took.n; i++) {
		if (kind == DICT_FRAME)
			dict_at(d, DICT_FRAME, dict_frame, took.items[i])->dirty = false;
		else if (kind == DICT_IMAGE)
			dict_at(d, DICT_IMAGE, dict_image, took.items[i])->dirty = false;
		else
			dict_at(d, DICT_PROCESS, dict_process, took.items[i])->dirty = false;
	}
	pthread_mutex_unlock(&d->lock);
	return took;
}

static void dirty_put_back(struct dict *d, struct dict_dirty *list, const struct dict_dirty *took)
{
	pthread_mutex_lock(&d->lock);
	for (uint32_t i = 0; i < took->n; i++) {
		mem_grow(list->items, list->n, list->cap);
		list->items[list->n++] = took->items[i];
	}
	pthread_mutex_unlock(&d->lock);
}

/* --- runs, and the clock by which kernel stamps became UTC --- */

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

static void commit_run_one(struct commit *c, struct commit_run *r)
{
	if (r->absent)
		return;
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

/* If it differs from *last, or is the first. */
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

/* Kernel stamps became UTC with these offsets: on record at the start of a segment and whenever the
 * clock was set. */
static int64_t commit_clock(struct commit *c)
{
	bool any = c->boot_offset_segment == c->seg->serial;
	int64_t last = c->boot_offset_ns;

	for (uint32_t i = 0; i < c->n_clock; i++)
		clock_put(c, c->clock[i].utc_ns, c->clock[i].boot_offset_ns, &any, &last);
	clock_put(c, clock_utc_ns(), clock_boot_offset_ns(), &any, &last);
	return last;
}

/* --- what was learnt later, of all kinds --- */

struct learnt {
	struct dict_dirty frames, processes, images;
};

static struct learnt learnt_take(struct commit *c)
{
	struct dict *d = c->dict;
	struct learnt l;

	if (!c->fine)
		return (struct learnt){dirty_take(d, &d->dirty_frames, DICT_FRAME),
				       dirty_take(d, &d->dirty_processes, DICT_PROCESS),
				       dirty_take(d, &d->dirty_images, DICT_IMAGE)};
	l = (struct learnt){d->fine_frames, d->fine_processes, d->fine_images};
	d->fine_frames = d->fine_processes = d->fine_images = (struct dict_dirty){0};
	return l;
}

/* What was written is news to the ring's segment; what could not be written is so still. */
static void learnt_done(struct commit *c, struct learnt *l)
{
	struct dict *d = c->dict;
	bool done = c->rc == SQLITE_OK;

	if (!c->fine && !done) {
		dirty_put_back(d, &d->dirty_frames, &l->frames);
		dirty_put_back(d, &d->dirty_processes, &l->processes);
		dirty_put_back(d, &d->dirty_images, &l->images);
	} else if (d->fine && c->fine != done) {
		dirty_put_back(d, &d->fine_frames, &l->frames);
		dirty_put_back(d, &d->fine_processes, &l->processes);
		dirty_put_back(d, &d->fine_images, &l->images);
	}
	free(l->frames.items);
	free(l->processes.items);
	free(l->images.items);
}

/* --- the transaction --- */

static void commit_contents(struct commit *c, const struct batch *b, const struct commit_run *runs,
			    const struct learnt *l)
{
	for (uint32_t i = 0; i < l->images.n; i++)
		commit_learnt_image(c, l->images.items[i]);
	for (uint32_t i = 0; i < l->processes.n; i++)
		commit_learnt_process(c, l->processes.items[i]);
	for (uint32_t i = 0; i < l->frames.n; i++)
		commit_learnt_frame(c, l->frames.items[i]);
	commit_samples(c, b, runs);
	commit_amounts(c, b, runs);
	commit_facts(c, b, runs);
	commit_waits(c, b, runs);
	commit_requests(c, b, runs);
	commit_sums(c, runs);
	for (uint32_t i = 0; i < b->n_losses; i++)
		commit_loss(c, b->losses[i].ts, runs[b->losses[i].run - 1].row, b->losses[i].reason,
			    b->losses[i].n);
	for (uint32_t i = 0; i < b->n_costs; i++)
		commit_cost(c, &b->costs[i], runs[b->costs[i].run - 1].row);
	for (uint32_t i = 0; i < b->n_unwound; i++)
		commit_unwound(c, &b->unwound[i], runs[b->unwound[i].run - 1].row);
	for (uint32_t i = 0; i < b->n_ended; i++)
		commit_process(c, b->ended[i]);
	for (uint32_t i = 0; i < b->n_ends; i++)
		commit_end(c, &b->ends[i], runs[b->ends[i].run - 1].row);
}

/* The batch's dictionary with what it has learnt: taken before, given back if the transaction
 * fails. */
static void commit_in_dict(struct commit *c, const struct batch *b, struct commit_run *runs)
{
	struct learnt l = learnt_take(c);

	commit_contents(c, b, runs, &l);
	commit_exec(c, ST_COMMIT);
	learnt_done(c, &l);
}

int commit_batch(struct commit *c, struct segment *seg, const struct batch *b,
		 struct commit_run *runs, uint32_t n_runs)
{
	struct commit_run *work = mem_array(n_runs + 1, sizeof(*work));
	int64_t offset;
	int code;

	c->seg = seg;
	c->dict = b ? b->dict : NULL;
	c->rc = SQLITE_OK;
	c->n_undo = 0;
	c->n_sums = 0;
	if (c->dict && !c->fine && c->dict->segment != seg->serial)
		dict_forget_rows(c->dict, seg->serial);
	if (c->dict && c->fine && c->dict->fine_segment != seg->serial)
		dict_forget_fine(c->dict, seg->serial);
	memcpy(work, runs, n_runs * sizeof(*work));
	commit_exec(c, ST_BEGIN);
	offset = commit_clock(c);
	for (uint32_t i = 0; i < n_runs; i++)
		commit_run_one(c, &work[i]);
	if (c->dict)
		commit_in_dict(c, b, work);
	else
		commit_exec(c, ST_COMMIT);
	code = segment_errno(seg->db, c->rc);
	if (code) {
		commit_undo_all(c);
	} else {
		memcpy(runs, work, n_runs * sizeof(*work));
		c->boot_offset_ns = offset;
		c->boot_offset_segment = seg->serial;
	}
	free(work);
	return code;
}

void commit_release(struct commit *c)
{
	c->seg = NULL; /* gone by now */
	commit_args_forget(c);
	free(c->undo);
	free(c->chain);
	strbuf_release(&c->tail);
	strbuf_release(&c->form);
	strbuf_release(&c->own);
	free(c->order);
	free(c->amount);
	free(c->sums);
	*c = (struct commit){0};
}
