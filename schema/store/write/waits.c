/* SPDX-License-Identifier: Apache-2.0 */
/* waits: the producer's side of store/write/waits.h, and the rows that a batch has of it. */
#include "schema/store/write/waits.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "schema/base/hash.h"
#include "schema/base/mem.h"
#include "schema/store/write/wait_rows.h"
#include "schema/store/write/writer_state.h"

/* --- rows of a batch --- */

void wait_rows_release(struct wait_rows *w)
{
	for (uint32_t i = 0; i < w->n; i++)
		hist_release(&w->rows[i].sum);
	free(w->rows);
	idmap_release(&w->at);
	*w = (struct wait_rows){0};
}

size_t wait_rows_bytes(const struct wait_rows *w)
{
	return w->cap * sizeof(*w->rows) + w->at.cap * sizeof(*w->at.slots) + w->hist_bytes;
}

static uint64_t row_hash(const struct wait_row *r)
{
	uint64_t h = hash_u64(HASH_SEED, (uint64_t)r->ts);

	h = hash_u64(h, (uint64_t)r->table << 32 | r->run);
	h = hash_u64(h, (uint64_t)r->task << 32 | r->class);
	h = hash_u64(h, (uint64_t)r->flags << 32 | r->by);
	return hash_u64(h, r->stack);
}

static bool row_same(const struct wait_row *a, const struct wait_row *b)
{
	return a->ts == b->ts && a->table == b->table && a->run == b->run && a->task == b->task &&
	       a->class == b->class && a->flags == b->flags && a->by == b->by &&
	       a->stack == b->stack;
}

/* As the segment adds them up: the third number of a wait is the longest. */
bool wait_row_of_task(const struct wait_row *r)
{
	return r->table == WAIT_ROW_WAIT || r->table == WAIT_ROW_WAKE ||
	       r->table == WAIT_ROW_CULPRIT || r->table == WAIT_ROW_ON;
}

/* The row to add it to; NULL: it becomes a new row. A sum past WAIT_ROW_MOST is left to the
 * segment. */
static struct wait_row *row_find(const struct wait_rows *w, uint64_t hash,
				 const struct wait_row *row)
{
	struct wait_row *r;
	uint64_t at;

	if (!wait_row_of_task(row) || !idmap_get(&w->at, hash, &at))
		return NULL;
	r = &w->rows[at];
	if (!row_same(r, row) || r->value[0] + row->value[0] > WAIT_ROW_MOST ||
	    r->value[1] + row->value[1] > WAIT_ROW_MOST)
		return NULL;
	return r;
}

void wait_rows_add(struct wait_rows *w, const struct wait_row *row)
{
	uint64_t hash = row_hash(row);
	struct wait_row *r = row_find(w, hash, row);

	if (r) {
		r->value[0] += row->value[0];
		r->value[1] += row->value[1];
		r->value[2] = row->value[2] > r->value[2] ? row->value[2] : r->value[2];
	} else {
		mem_grow(w->rows, w->n, w->cap);
		r = &w->rows[w->n];
		*r = *row;
		r->hist = NULL;
		r->sum = (struct hist){0};
		idmap_set(&w->at, hash, w->n++);
	}
	if (!row->hist)
		return;
	w->hist_bytes -= hist_bytes(&r->sum);
	hist_add(&r->sum, row->first_slot, row->hist, row->n_hist);
	w->hist_bytes += hist_bytes(&r->sum);
}

bool wait_row_believable(const struct wait_row *row)
{
	for (int i = 0; i < 3; i++)
		if (row->value[i] > WAIT_ROW_MOST)
			return false;
	return true;
}

uint64_t wait_rows_events(const struct wait_rows *w, uint32_t run)
{
	uint64_t n = 0;

	for (uint32_t i = 0; i < w->n; i++)
		if (w->rows[i].table == WAIT_ROW_WAIT && (!run || w->rows[i].run == run))
			n += w->rows[i].value[0];
	return n;
}

/* --- the producer --- */

uint32_t store_task(struct store_writer *w, uint32_t run, uint32_t process, const char *thread,
		    uint32_t tid)
{
	struct dict_task t = {.run = writer_stretch(w, run),
			      .process = process,
			      .tid = tid,
			      .kind = STORE_KIND_OFFCPU,
			      .thread = dict_clean(w->dict, 0, thread),
			      .labels = ""};

	if (!t.run || !process || !dict_has(w->dict, DICT_PROCESS, process))
		return 0;
	return dict_intern(w->dict, DICT_TASK, &t);
}

/* The run of a task that may be spoken of; 0 with *rc set. */
static uint32_t task_run(struct store_writer *w, uint32_t task, int *rc)
{
	*rc = events_room(w);
	if (!*rc && (!task || !dict_has(w->dict, DICT_TASK, task)))
		*rc = -ESTALE;
	return *rc ? 0 : dict_at(w->dict, DICT_TASK, dict_task, task)->run;
}

static int row_put(struct store_writer *w, struct wait_row *row, int64_t utc_ns)
{
	int rc;

	row->run = task_run(w, row->task, &rc);
	if (rc)
		return rc;
	if ((row->by && !dict_has(w->dict, DICT_TASK, row->by)) ||
	    (row->stack && !dict_has(w->dict, DICT_NODE, row->stack)))
		return -ESTALE;
	events_take(w, row, utc_ns);
	return 0;
}

int store_wait(struct store_writer *w, uint32_t task, int64_t utc_ns, const struct store_wait *x)
{
	struct wait_row row = {.table = WAIT_ROW_WAIT,
			       .task = task,
			       .class = x->class,
			       .flags = x->flags,
			       .value = {x->n, x->total_ns, x->max_ns},
			       .hist = x->hist,
			       .n_hist = x->n_hist,
			       .first_slot = x->first_slot};

	return row_put(w, &row, utc_ns);
}

int store_wake(struct store_writer *w, uint32_t task, int64_t utc_ns, const struct store_wake *x)
{
	struct wait_row row = {.table = WAIT_ROW_WAKE,
			       .task = task,
			       .class = x->class,
			       .flags = x->context,
			       .by = x->waker,
			       .stack = x->stack,
			       .value = {x->n, x->total_ns}};

	return row_put(w, &row, utc_ns);
}

int store_wait_on(struct store_writer *w, uint32_t task, int64_t utc_ns,
		  const struct store_wait_on *x)
{
	struct wait_row row = {.table = WAIT_ROW_ON,
			       .task = task,
			       .class = x->class,
			       .flags = writer_text(w, x->object),
			       .by = x->waker,
			       .stack = x->stack,
			       .value = {x->n, x->total_ns}};

	return row_put(w, &row, utc_ns);
}

int store_culprit(struct store_writer *w, uint32_t task, int64_t utc_ns,
		  const struct store_culprit *x)
{
	struct wait_row row = {.table = WAIT_ROW_CULPRIT,
			       .task = task,
			       .class = x->kind,
			       .by = x->culprit,
			       .value = {x->n, x->total_ns}};

	return row_put(w, &row, utc_ns);
}

void store_throttle(struct store_writer *w, uint32_t run, int64_t utc_ns, const char *cgroup,
		    const struct store_throttle *x)
{
	struct wait_row row = {.table = WAIT_ROW_THROTTLE,
			       .run = writer_stretch(w, run),
			       .task = writer_text(w, cgroup),
			       .value = {x->periods, x->throttled, x->throttled_ns}};

	if (row.run)
		events_take(w, &row, utc_ns);
}

void store_steal(struct store_writer *w, uint32_t run, int64_t utc_ns, const struct store_steal *x)
{
	struct wait_row row = {.table = WAIT_ROW_STEAL,
			       .run = writer_stretch(w, run),
			       .value = {x->steal_ns, x->idle_ns, x->cpu_ns}};

	if (row.run)
		events_take(w, &row, utc_ns);
}

void store_slowed(struct store_writer *w, uint32_t run, int64_t utc_ns, uint32_t step,
		  uint32_t stack_rate)
{
	struct wait_row row = {.table = WAIT_ROW_SLOWED,
			       .run = writer_stretch(w, run),
			       .value = {step, stack_rate}};

	if (row.run)
		events_take(w, &row, utc_ns);
}
