/* SPDX-License-Identifier: Apache-2.0 */
/* commit: one batch, one transaction: its rows, its losses and costs. Parts of their own: commitsql, commit_dict,
 * commitprocess, commitrun, commitamounts, commitsum, commitwaits, commitfacts. */
#include "schema/store/write/transaction.h"

#include <errno.h>
#include <sqlite3.h>
#include <stdlib.h>
#include <string.h>

#include "schema/base/mem.h"

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

/* --- rows --- */

static int order_by_key(const void *a, const void *b)
{
	const struct commit_order *x = a, *y = b;

	if (x->ts != y->ts)
		return x->ts < y->ts ? -1 : 1;
	return x->row < y->row ? -1 : x->row > y->row;
}

static void commit_rows(struct commit *c, const struct batch *b, const struct commit_run *runs)
{
	sqlite3_stmt *st;

	if (b->n_rows > c->cap_order) {
		c->cap_order = b->cap_rows;
		c->order = mem_realloc(c->order, c->cap_order * sizeof(*c->order));
	}
	for (uint32_t i = 0; i < b->n_rows && c->rc == SQLITE_OK; i++) {
		c->order[i] = (struct commit_order){.ts = b->rows[i].ts - c->seg->t0, .n = b->rows[i].n,
						    .row = commit_series(c, b->rows[i].series, runs)};
		commit_sum(c, b->rows[i].series, b->rows[i].n);
	}
	st = b->n_rows ? commit_stmt(c, ST_SAMPLE) : NULL;
	if (!st)
		return;
	qsort(c->order, b->n_rows, sizeof(*c->order), order_by_key);
	for (uint32_t i = 0; i < b->n_rows && c->rc == SQLITE_OK; i++) {
		sqlite3_bind_int64(st, 1, c->order[i].ts);
		sqlite3_bind_int64(st, 2, c->order[i].row);
		sqlite3_bind_int64(st, 3, (sqlite3_int64)c->order[i].n);
		commit_step(c, st, NULL);
	}
}

void commit_loss(struct commit *c, int64_t ts, int64_t run, const char *reason, uint64_t n)
{
	sqlite3_stmt *st = commit_stmt(c, ST_LOSS);

	if (!st)
		return;
	sqlite3_bind_int64(st, 1, ts - c->seg->t0);
	sqlite3_bind_int64(st, 2, run);
	bind_str(st, 3, reason);
	sqlite3_bind_int64(st, 4, (sqlite3_int64)n);
	commit_step(c, st, NULL);
}

static void commit_cost(struct commit *c, const struct batch_cost *x, int64_t run)
{
	sqlite3_stmt *st = commit_stmt(c, ST_COST);

	if (!st)
		return;
	sqlite3_bind_int64(st, 1, x->ts - c->seg->t0);
	sqlite3_bind_int64(st, 2, run);
	bind_str(st, 3, x->program);
	sqlite3_bind_int64(st, 4, (sqlite3_int64)x->cost.cpu_ns);
	sqlite3_bind_int64(st, 5, (sqlite3_int64)x->cost.runs);
	sqlite3_bind_int64(st, 6, (sqlite3_int64)x->cost.rss_bytes);
	sqlite3_bind_int64(st, 7, (sqlite3_int64)x->cost.private_bytes);
	sqlite3_bind_int64(st, 8, (sqlite3_int64)x->cost.map_bytes);
	commit_step(c, st, NULL);
}

static void commit_unwound(struct commit *c, const struct batch_unwound *x, int64_t run)
{
	uint32_t exe = commit_text(c, x->exe), image = commit_image(c, x->image);
	sqlite3_stmt *st = commit_stmt(c, ST_UNWOUND);

	if (!st)
		return;
	sqlite3_bind_int64(st, 1, x->ts - c->seg->t0);
	sqlite3_bind_int64(st, 2, run);
	sqlite3_bind_int64(st, 3, exe);
	sqlite3_bind_int64(st, 4, image);
	sqlite3_bind_int64(st, 5, x->reason);
	sqlite3_bind_int64(st, 6, (sqlite3_int64)x->n);
	commit_step(c, st, NULL);
}

/* --- the transaction --- */

static void commit_contents(struct commit *c, const struct batch *b, const struct commit_run *runs,
			    const struct dict_dirty *frames, const struct dict_dirty *processes, const struct dict_dirty *images)
{
	for (uint32_t i = 0; i < images->n; i++)
		commit_learnt_image(c, images->items[i]);
	for (uint32_t i = 0; i < processes->n; i++)
		commit_learnt_process(c, processes->items[i]);
	for (uint32_t i = 0; i < frames->n; i++)
		commit_learnt_frame(c, frames->items[i]);
	commit_rows(c, b, runs);
	commit_amounts(c, b, runs);
	commit_facts(c, b, runs);
	commit_waits(c, b, runs);
	commit_requests(c, b, runs);
	commit_sums(c, runs);
	for (uint32_t i = 0; i < b->n_losses; i++)
		commit_loss(c, b->losses[i].ts, runs[b->losses[i].run - 1].row, b->losses[i].reason, b->losses[i].n);
	for (uint32_t i = 0; i < b->n_costs; i++)
		commit_cost(c, &b->costs[i], runs[b->costs[i].run - 1].row);
	for (uint32_t i = 0; i < b->n_unwound; i++)
		commit_unwound(c, &b->unwound[i], runs[b->unwound[i].run - 1].row);
	for (uint32_t i = 0; i < b->n_ended; i++)
		commit_process(c, b->ended[i]);
	for (uint32_t i = 0; i < b->n_ends; i++)
		commit_end(c, &b->ends[i], runs[b->ends[i].run - 1].row);
}

static void commit_undo_all(struct commit *c)
{
	for (uint32_t i = 0; i < c->n_undo; i++) {
		if (c->undo[i].kind == DICT_KINDS)
			dict_at(c->dict, DICT_NODE, dict_node, c->undo[i].index)->own = 0;
		else
			*(uint32_t *)pool_at(&c->dict->pool[c->undo[i].kind], c->undo[i].index) = 0;
	}
	commit_args_forget(c); /* their texts may be gone */
	if (!sqlite3_get_autocommit(c->seg->db))
		sqlite3_exec(c->seg->db, "ROLLBACK", NULL, NULL, NULL);
}

/* The batch's dictionary with what it has learnt: taken before, given back if the transaction fails. */
static void commit_in_dict(struct commit *c, const struct batch *b, struct commit_run *runs)
{
	struct dict_dirty frames = dirty_take(c->dict, &c->dict->dirty_frames, DICT_FRAME);
	struct dict_dirty processes = dirty_take(c->dict, &c->dict->dirty_processes, DICT_PROCESS);
	struct dict_dirty images = dirty_take(c->dict, &c->dict->dirty_images, DICT_IMAGE);

	commit_contents(c, b, runs, &frames, &processes, &images);
	commit_exec(c, ST_COMMIT);
	if (c->rc != SQLITE_OK) {
		dirty_put_back(c->dict, &c->dict->dirty_frames, &frames);
		dirty_put_back(c->dict, &c->dict->dirty_processes, &processes);
		dirty_put_back(c->dict, &c->dict->dirty_images, &images);
	}
	free(frames.items);
	free(processes.items);
	free(images.items);
}

int commit_batch(struct commit *c, struct segment *seg, const struct batch *b, struct commit_run *runs, uint32_t n_runs)
{
	struct commit_run *work = mem_array(n_runs + 1, sizeof(*work));
	int64_t offset;
	int code;

	c->seg = seg;
	c->dict = b ? b->dict : NULL;
	c->rc = SQLITE_OK;
	c->n_undo = 0;
	c->n_sums = 0;
	if (c->dict && c->dict->segment != seg->serial)
		dict_forget_rows(c->dict, seg->serial);
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
