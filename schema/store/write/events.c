/* SPDX-License-Identifier: Apache-2.0 */
/* events: the producer's side of store/write/writer.h where things are counted, and the queue to
 * the writer thread (writer_state.h). */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "schema/base/array.h"
#include "schema/base/clock.h"
#include "schema/base/hash.h"
#include "schema/base/mem.h"
#include "schema/store/write/writer_state.h"

#define BATCH_ROWS   8192 /* hand over by itself past this */
#define BATCH_AGE_NS (10 * NSEC_PER_SEC)
/* Of eight parts of the memory, what the current dictionary may take. The rest holds what waits for
 * the disk, which at a change of epoch is one such dictionary and the batches that speak of it. */
#define DICT_SHARE 2

/* --- memory, lock held --- */

size_t writer_waiting(const struct store_writer *w)
{
	const struct dict *last = NULL;
	size_t n = w->inflight_bytes;

	for (const struct batch *b = w->head; b; b = b->next) {
		n += batch_bytes(b);
		if (b->dict != last && b->dict != w->dict)
			n += b->dict->bytes;
		last = b->dict;
	}
	return n;
}

/* Lock held: drop the oldest batch that waits; its samples are lost, and counted. */
static void writer_drop_oldest(struct store_writer *w)
{
	struct batch *b = w->head;

	w->head = b->next;
	if (!w->head)
		w->tail = &w->head;
	for (uint32_t i = 0; i < w->n_runs; i++) {
		struct writer_run *r = &w->run[i];
		uint64_t n = batch_samples(b, i + 1);

		if (!n)
			continue;
		if (!r->dropped)
			r->dropped_ts = batch_first_ts(b, i + 1);
		r->dropped += n;
		w->stat.dropped += n;
	}
	w->gauge_epoch++;
	if (!w->cur) {
		w->dict->refs++;
		w->cur = batch_new(w->dict);
	}
	batch_carry(w->cur, b);
	writer_dict_put(b->dict);
	batch_free(b);
}

/* --- what is taken in --- */

static struct batch *writer_current(struct store_writer *w)
{
	if (!w->cur) {
		pthread_mutex_lock(&w->lock);
		w->dict->refs++;
		pthread_mutex_unlock(&w->lock);
		w->cur = batch_new(w->dict);
	}
	return w->cur;
}

/* The ring's part of it. */
static struct batch *writer_fine(struct store_writer *w)
{
	struct batch *b = writer_current(w);

	if (!b->fine)
		b->fine = batch_new(b->dict);
	return b->fine;
}

static int64_t fine_bucket_of(const struct writer_run *r, int64_t utc_ns)
{
	int64_t s = utc_ns / NSEC_PER_SEC;

	return s - s % r->fine_s;
}

static int64_t bucket_of(const struct writer_run *r, int64_t utc_ns)
{
	int64_t s = utc_ns / NSEC_PER_SEC;

	return s - s % r->bucket_s;
}

void events_new_epoch(struct store_writer *w)
{
	struct dict *old = w->dict;

	events_hand_over(w, true);
	pthread_mutex_lock(&w->lock);
	if (w->cur) { /* what a dropped batch left behind speaks of no dictionary entry */
		writer_dict_put(w->cur->dict);
		w->cur->dict = NULL;
	}
	w->dict = dict_new();
	w->dict->fine = w->fine;
	if (w->cur) {
		w->dict->refs++;
		w->cur->dict = w->dict;
	}
	writer_dict_put(old);
	w->gauge_epoch++; /* the values of the old dictionary's series are void by the next one */
	pthread_mutex_unlock(&w->lock);
	w->epoch++;
}

int events_room(struct store_writer *w)
{
	if (w->dict->bytes <= w->max_bytes / 8 * DICT_SHARE)
		return 0;
	events_new_epoch(w);
	return -ESTALE;
}

/* A series that may be counted, with its task: 0, -ESTALE, -EINVAL: of a kind that is counted
 * otherwise. */
static int series_task(struct store_writer *w, uint32_t series, bool sampled,
		       const struct dict_task **out)
{
	if (events_room(w) || !series || !dict_has(w->dict, DICT_SERIES, series))
		return -ESTALE;
	*out = dict_at(w->dict, DICT_TASK, dict_task,
		       dict_at(w->dict, DICT_SERIES, dict_series, series)->task);
	return ((*out)->kind == STORE_KIND_CPU) == sampled ? 0 : -EINVAL;
}

/* `n` events of a run at that time are in the batch. */
static void writer_took(struct store_writer *w, struct writer_run *r, int64_t utc_ns)
{
	writer_until(w, r, utc_ns + 1);
	if (batch_count(w->cur) >= BATCH_ROWS || clock_boot_ns() - w->cur->begun_ns > BATCH_AGE_NS)
		store_flush(w);
}

void events_take(struct store_writer *w, struct wait_row *row, int64_t utc_ns)
{
	struct writer_run *r = &w->run[row->run - 1];

	if (!wait_row_believable(row)) {
		store_loss(w, row->run, utc_ns, "range", 1);
		return;
	}
	row->ts = bucket_of(r, utc_ns);
	writer_current(w);
	if (row->table == WAIT_ROW_WAIT)
		__atomic_fetch_add(&r->tally->seen, row->value[0], __ATOMIC_RELEASE);
	wait_rows_add(&w->cur->waits, row);
	if (r->fine_s && wait_row_of_task(row)) {
		row->ts = fine_bucket_of(r, utc_ns);
		wait_rows_add(&writer_fine(w)->waits, row);
	}
	writer_took(w, r, utc_ns);
}

void events_request(struct store_writer *w, struct request_row *row, int64_t utc_ns)
{
	struct writer_run *r = &w->run[row->run - 1];

	row->ts = bucket_of(r, utc_ns);
	writer_current(w);
	__atomic_fetch_add(&r->tally->seen, row->value[0], __ATOMIC_RELEASE);
	request_rows_add(&w->cur->requests, row);
}

struct factrows *events_facts(struct store_writer *w, bool fine)
{
	return fine ? &writer_fine(w)->facts : &writer_current(w)->facts;
}

void events_take_fact(struct store_writer *w, struct factrow *row, int64_t utc_ns, bool fine)
{
	struct writer_run *r = &w->run[row->run - 1];
	struct factrows *f = events_facts(w, fine);

	row->ts = fine ? fine_bucket_of(r, utc_ns) : bucket_of(r, utc_ns);
	if (!row->fact->beside && !fine)
		__atomic_fetch_add(&r->tally->seen, 1, __ATOMIC_RELEASE);
	mem_grow(f->rows, f->n, f->cap);
	f->rows[f->n++] = *row;
	writer_took(w, r, utc_ns);
}

/* How many of the next `n` samples the store gets: of each r->share one after the other it is one
 * at random, since samples of the CPUs come in turn. */
static uint64_t drawn(struct writer_run *r, uint64_t n)
{
	uint64_t hits = 0, whole = r->share == 1 ? n : n / r->share * r->share;

	r->sampled += whole;
	for (uint64_t i = whole; i < n; i++, r->sampled++)
		hits += r->sampled % r->share ==
			hash_u64(r->token, r->sampled / r->share) % r->share;
	return hits + whole / r->share;
}

/* All of them into the ring, their share into the store. */
static void take_samples(struct store_writer *w, uint32_t run, uint32_t series, int64_t utc_ns,
			 uint64_t n)
{
	struct writer_run *r = &w->run[run - 1];
	uint64_t coarse = drawn(r, n);

	if (r->fine_s)
		batch_add(writer_fine(w), run, fine_bucket_of(r, utc_ns), series, n);
	if (coarse)
		batch_add(w->cur, run, bucket_of(r, utc_ns), series, coarse);
	if (n > coarse)
		batch_spare(w->cur, run, n - coarse);
}

int store_add(struct store_writer *w, uint32_t series, int64_t utc_ns, uint64_t n)
{
	const struct dict_task *t = NULL;
	struct writer_run *r;
	int rc = series_task(w, series, true, &t);

	if (rc)
		return rc;
	r = &w->run[t->run - 1];
	writer_current(w);
	__atomic_fetch_add(&r->tally->seen, n, __ATOMIC_RELEASE);
	take_samples(w, t->run, series, utc_ns, n);
	writer_took(w, r, utc_ns);
	return 0;
}

int store_amount(struct store_writer *w, uint32_t series, int64_t utc_ns,
		 const struct store_amount *a)
{
	const struct dict_task *t = NULL;
	struct amount_row key;
	struct writer_run *r;
	int rc = series_task(w, series, false, &t);

	if (rc)
		return rc;
	r = &w->run[t->run - 1];
	key = (struct amount_row){.ts = bucket_of(r, utc_ns),
				  .series = series,
				  .run = t->run,
				  .gauge = store_kind_info((enum store_kind)t->kind)->class ==
					   STORE_GAUGE};
	writer_current(w);
	__atomic_fetch_add(&r->tally->seen, key.gauge ? 1 : a->n, __ATOMIC_RELEASE);
	amounts_add(&w->cur->amounts, &key, a);
	if (r->fine_s && !key.gauge) {
		key.ts = fine_bucket_of(r, utc_ns);
		amounts_add(&writer_fine(w)->amounts, &key, a);
	}
	writer_took(w, r, utc_ns);
	return 0;
}

uint64_t store_gauge_epoch(struct store_writer *w)
{
	uint64_t n;

	pthread_mutex_lock(&w->lock);
	n = w->gauge_epoch;
	pthread_mutex_unlock(&w->lock);
	return n;
}

void store_rate(struct store_writer *w, uint32_t run, uint32_t process, int64_t utc_ns,
		uint64_t bytes)
{
	struct writer_run *r = writer_run(w, run);
	struct batch_rate x = {.run = writer_stretch(w, run),
			       .process = writer_known(w, DICT_PROCESS, process),
			       .bytes = bytes > INT64_MAX ? INT64_MAX : bytes};

	if (!r || !x.process)
		return;
	x.ts = bucket_of(r, utc_ns);
	batch_rate(writer_current(w), &x);
}

void store_process_note(struct store_writer *w, uint32_t run, uint32_t process, const char *key,
			const char *value)
{
	struct batch_note x = {.run = writer_stretch(w, run),
			       .process = writer_known(w, DICT_PROCESS, process)};

	if (!x.run || !x.process)
		return;
	x.value = writer_text(w, value);
	snprintf(x.key, sizeof(x.key), "%s", key);
	batch_note(writer_current(w), &x);
}

static bool was_offered(const char *reason)
{
	static const char *const offered[] = {"ring",    "room",      "pairs", "hold",
					      "unknown", "malformed", "store"};

	for (size_t i = 0; i < ARRAY_SIZE(offered); i++)
		if (!strcmp(reason, offered[i]))
			return true;
	return false;
}

void store_loss(struct store_writer *w, uint32_t run, int64_t utc_ns, const char *reason,
		uint64_t n)
{
	uint32_t id = writer_stretch(w, run);
	struct writer_run *r = writer_run(w, run);

	if (!r || !n)
		return;
	writer_current(w);
	if (!was_offered(reason))
		w->tally.data->besides[id - 1] += n;
	__atomic_fetch_add(&r->tally->seen, n, __ATOMIC_RELEASE);
	batch_loss(w->cur, id, bucket_of(r, utc_ns), reason, n);
}

void store_unwound(struct store_writer *w, uint32_t run, int64_t utc_ns, const char *exe,
		   uint32_t image, uint32_t reason, uint64_t n)
{
	int64_t s = utc_ns / NSEC_PER_SEC;
	struct batch_unwound u = {.run = writer_stretch(w, run),
				  .reason = reason,
				  .n = n,
				  .ts = s - s % 60,
				  .image = writer_known(w, DICT_IMAGE, image)};

	if (!u.run || !n)
		return;
	u.exe = writer_text(w, exe);
	batch_unwound(writer_current(w), &u);
}

int store_end(struct store_writer *w, uint32_t run, int64_t utc_ns, const struct store_end *e)
{
	int64_t s = utc_ns / NSEC_PER_SEC;
	struct batch_end x = {.run = writer_stretch(w, run),
			      .n = e->n ? e->n : 1,
			      .ts = s - s % 10,
			      .how = e->how,
			      .status = e->status,
			      .container = writer_known(w, DICT_CONTAINER, e->container)};
	uint32_t process = writer_known(w, DICT_PROCESS, e->process);

	if (!x.run)
		return -EINVAL;
	if (events_room(w))
		return -ESTALE;
	x.comm = writer_text(w, e->comm);
	batch_end(writer_current(w), &x);
	if (process)
		batch_ended(w->cur, process);
	return 0;
}

void store_cost(struct store_writer *w, uint32_t run, int64_t utc_ns, const struct store_cost *c)
{
	struct writer_run *r = writer_run(w, run);

	if (r)
		batch_cost(writer_current(w), writer_stretch(w, run), bucket_of(r, utc_ns), c);
}

static bool writer_is_behind(struct store_writer *w)
{
	bool behind;

	pthread_mutex_lock(&w->lock);
	behind = w->head || w->stat.last_error;
	pthread_mutex_unlock(&w->lock);
	return behind;
}

/* Hands over the producer's batch; unless `whole`, without the minute that is not over, which saves
 * a page or two. While the disk stalls, batches are dropped: then stack endings stay with their
 * samples. */
static struct batch *writer_take_current(struct store_writer *w, bool whole)
{
	struct batch *b = writer_current(w);

	w->cur = NULL;
	w->until_moved = false;
	if (b->n_unwound && !whole && !writer_is_behind(w))
		batch_hold_minute(writer_current(w), b);
	return b;
}

/* Lock held. */
static void note_until(const struct store_writer *w, struct batch *b)
{
	b->until = mem_array(w->n_runs, sizeof(*b->until));
	b->n_until = w->n_runs;
	for (uint32_t i = 0; i < w->n_runs; i++)
		b->until[i] = w->run[i].until_ns;
}

void events_hand_over(struct store_writer *w, bool whole)
{
	struct batch *b;

	if (!w->cur && !w->until_moved)
		return;
	b = writer_take_current(w, whole);
	pthread_mutex_lock(&w->lock);
	for (uint32_t i = 0; i < w->n_runs; i++)
		w->run[i].to_ns = w->run[i].tally->to_ns = w->run[i].until_ns;
	if (b->fine)
		note_until(w, b->fine);
	*w->tail = b;
	w->tail = &b->next;
	/* the newest stays: at a change of epoch the old dictionary hangs on it, though no disk
	 * stalls */
	while (w->head && w->head->next && writer_waiting(w) > w->max_bytes / 8 * (8 - DICT_SHARE))
		writer_drop_oldest(w);
	pthread_cond_signal(&w->wake);
	pthread_mutex_unlock(&w->lock);
}

void store_flush(struct store_writer *w)
{
	events_hand_over(w, false);
}

void store_writer_stat(struct store_writer *w, struct store_writer_stat *s)
{
	pthread_mutex_lock(&w->lock);
	*s = w->stat;
	s->queued_bytes = writer_waiting(w);
	s->waiting_bytes = s->queued_bytes + w->dict->bytes + (w->cur ? batch_bytes(w->cur) : 0);
	pthread_mutex_unlock(&w->lock);
}
