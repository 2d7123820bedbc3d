/* SPDX-License-Identifier: Apache-2.0 */
/* committer: the writer thread. Takes one batch after another and commits it, tries again while the
 * disk does not let it, and leaves the store in order. */
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "schema/base/cleanup.h"
#include "schema/base/clock.h"
#include "schema/base/log.h"
#include "schema/base/mem.h"
#include "schema/store/files/ballast.h"
#include "schema/store/files/folder.h"
#include "schema/store/write/writer_state.h"

#define RETRY_FIRST_MS 50
#define RETRY_LAST_MS  2000

/* Lock held: the row of run i that batch `b` writes into segment `seg`. */
static struct commit_run run_now(struct store_writer *w, uint32_t i, const struct batch *b,
				 int state)
{
	struct writer_run *r = &w->run[i];
	struct commit_run c = {
		.token = r->token,
		.family = r->family,
		.options = r->options,
		.scope = r->scope,
		.bucket_s = r->bucket_s,
		.cpus = r->cpus,
		.from_ns = r->from_ns,
		.to_ns = r->to_ns,
		.dropped = r->dropped,
		.dropped_ts = r->dropped_ts,
		.row = r->row,
		.state = state,
		.recording = r->recording,
	};

	if (r->segment != w->seg->serial) {
		c.row = 0;
		r->stored_periods = 0;
	}
	c.accounted = r->accounted + r->dropped + (b ? batch_events(b, i + 1) : 0);
	c.n_periods = r->n_periods - r->stored_periods;
	c.periods = mem_array(c.n_periods, sizeof(*c.periods));
	memcpy((void *)c.periods, r->periods + r->stored_periods, c.n_periods * sizeof(*c.periods));
	for (uint32_t k = 0; k < c.n_periods; k++)
		((struct commit_period *)c.periods)[k].period_ns *= r->share;
	return c;
}

/* Lock held: it has been written. */
static void run_written(struct store_writer *w, uint32_t i, const struct commit_run *c)
{
	struct writer_run *r = &w->run[i];

	r->row = c->row;
	r->segment = w->seg->serial;
	r->stored_periods += c->n_periods;
	r->accounted = c->accounted;
	r->dropped -= c->dropped;
}

static void committer_count(struct store_writer *w, const struct batch *b)
{
	w->stat.batches++;
	w->stat.rows += batch_count(b);
	w->stat.stored += batch_samples(b, 0);
	w->stat.unsynced += batch_samples(b, 0);
}

/* Lock held. Those that came meanwhile stay; of very many the oldest may have gone by then. */
static void clock_written(struct store_writer *w)
{
	uint32_t n = w->commit.n_clock < w->n_clock ? w->commit.n_clock : w->n_clock;

	w->n_clock -= n;
	memmove(w->clock, w->clock + n, w->n_clock * sizeof(*w->clock));
}

static int committer_commit_in(struct store_writer *w, const struct batch *b, int state)
{
	struct commit_run runs[TALLY_RUNS];
	struct commit_clock clock[WRITER_CLOCKS];
	uint32_t n;
	int rc;

	pthread_mutex_lock(&w->lock);
	n = w->n_runs;
	w->commit.n_clock = w->n_clock;
	memcpy(clock, w->clock, sizeof(clock));
	for (uint32_t i = 0; i < n; i++)
		runs[i] = run_now(w, i, b, state);
	pthread_mutex_unlock(&w->lock);
	tally_segment(&w->tally, w->seg->path);
	w->commit.clock = clock;
	rc = commit_batch(&w->commit, w->seg, b, runs, n);
	if (!rc)
		tally_settled(&w->tally);
	pthread_mutex_lock(&w->lock);
	for (uint32_t i = 0; i < n; i++) {
		if (!rc)
			run_written(w, i, &runs[i]);
		free((void *)runs[i].periods);
	}
	if (!rc)
		clock_written(w);
	w->commit.clock = NULL;
	w->commit.n_clock = 0;
	if (!rc && b)
		committer_count(w, b);
	w->stat.segment_bytes = segment_bytes(w->seg->path);
	pthread_mutex_unlock(&w->lock);
	return rc;
}

static void committer_leave(struct store_writer *w)
{
	segment_leave(w->seg);
	w->seg = NULL;
}

/* Store lock held: the segment that this batch goes to. */
int committer_segment(struct store_writer *w, bool may_rotate)
{
	char left[PATH_MAX] = "";
	int rc;

	if (w->seg && !segment_is_there(w->seg)) {
		log_warn("store: %s was removed; going on in another segment", w->seg->path);
		committer_leave(w);
	}
	if (w->seg && may_rotate && segment_is_due(w->seg, &w->limits)) {
		(void)committer_commit_in(
			w, NULL, 3); /* the runs go on elsewhere; no harm if it cannot be noted */
		memcpy(left, w->seg->path,
		       sizeof(left)); /* smaller after a checkpoint, but the time is up */
		committer_leave(w);
	}
	if (w->seg)
		return 0;
	rc = segment_acquire(w->dir, &w->limits, left, &w->seg, &w->error);
	if (rc)
		return rc;
	pthread_mutex_lock(&w->lock);
	w->stat.segment[0] = '\0'; /* a path too long for it is left out rather than cut */
	if (strlen(w->seg->path) < sizeof(w->stat.segment))
		memcpy(w->stat.segment, w->seg->path, strlen(w->seg->path) + 1);
	w->gauge_epoch++;
	pthread_mutex_unlock(&w->lock);
	return 0;
}

/* The folder was renamed: its files go with it, and the open segment is opened again. */
static void committer_follow(struct store_writer *w, const char *now)
{
	log_warn("store: the folder %s is now %s: recording goes on there", w->dir, now);
	committer_leave(w);
	pthread_mutex_lock(&w->lock);
	free(w->dir);
	w->dir = mem_strdup(now);
	pthread_mutex_unlock(&w->lock);
	tally_moved(&w->tally, now);
}

/* The folder was removed: what is recorded from now on, and what waits, goes into a new one.
 */
static int committer_begin_anew(struct store_writer *w)
{
	int rc = folder_prepare(w->dir, &w->error);

	if (!rc)
		rc = tally_again(w->dir, &w->tally, &w->error);
	if (rc)
		return rc;
	log_warn(
		"store: the folder %s was removed with what it held: recording goes on in a new one",
		w->dir);
	committer_leave(w);
	return place_open(&w->place, w->dir);
}

static int committer_place(struct store_writer *w)
{
	char now[PATH_MAX];

	switch (place_look(&w->place, w->dir, now)) {
	case PLACE_SAME:
		return 0;
	case PLACE_MOVED:
		committer_follow(w, now);
		return 0;
	case PLACE_GONE:
		break;
	}
	return committer_begin_anew(w);
}

/* -EDQUOT: the batch does not fit into the store's budget. */
static int committer_try(struct store_writer *w, const struct batch *b, int state)
{
	int rc = committer_place(w);
	cleanup_fd int lock = rc ? -1 : folder_lock(w->dir);

	if (rc)
		return rc;
	if (lock < 0)
		return folder_lock_refuse(w->dir, lock, &w->error);
	if (b && !budget_has_room(&w->budget, w->dir))
		return budget_refuse(&w->budget, w->dir, &w->error);
	rc = committer_segment(w, b != NULL);
	if (!rc)
		rc = committer_commit_in(w, b, state);
	if (rc == -EBADMSG && w->seg) {
		segment_leave_damaged(w->seg);
		w->seg = NULL;
		rc = committer_segment(w, false);
		if (!rc)
			rc = committer_commit_in(w, b, state);
	}
	if (!rc && b)
		budget_taken(&w->budget, w->dir);
	if (rc == -ENOSPC)
		folder_full(w->dir, &w->error);
	else if (rc && w->seg)
		err_set(&w->error, rc, EXIT_STORE,
			"cannot write to the store's segment %s: %s%s%s%s", w->seg->path,
			strerror(-rc), w->commit.rc ? " (" : "", w->commit.rc ? w->commit.why : "",
			w->commit.rc ? ")" : "");
	return rc;
}

/* A store at its budget, or a full disk, makes room by itself where it can. */
static int committer_commit(struct store_writer *w, const struct batch *b, int state)
{
	int rc = committer_try(w, b, state);

	if ((rc == -EDQUOT && budget_make_room(&w->budget, w->dir)) ||
	    (rc == -ENOSPC && ballast_drop(w->dir)))
		rc = committer_try(w, b, state);
	return rc;
}

void committer_deadline(struct timespec *ts, int64_t ns)
{
	clock_gettime(CLOCK_MONOTONIC, ts);
	ns += ts->tv_nsec;
	ts->tv_sec += ns / NSEC_PER_SEC;
	ts->tv_nsec = ns % NSEC_PER_SEC;
}

int64_t committer_now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (int64_t)ts.tv_sec * NSEC_PER_SEC + ts.tv_nsec;
}

/* Waits before the next try. false: the writer is closing and its time is up. */
static bool committer_pause(struct store_writer *w, int ms)
{
	struct timespec until;
	bool go_on;

	committer_deadline(&until, (int64_t)ms * 1000000);
	pthread_mutex_lock(&w->lock);
	if (w->closing && (int64_t)until.tv_sec * NSEC_PER_SEC + until.tv_nsec > w->deadline_ns)
		until = (struct timespec){.tv_sec = w->deadline_ns / NSEC_PER_SEC,
					  .tv_nsec = w->deadline_ns % NSEC_PER_SEC};
	pthread_cond_timedwait(&w->wake, &w->lock, &until);
	go_on = !w->closing || committer_now_ns() < w->deadline_ns;
	pthread_mutex_unlock(&w->lock);
	return go_on;
}

static void committer_note(struct store_writer *w, int rc)
{
	pthread_mutex_lock(&w->lock);
	if (rc && !w->stat.last_error)
		log_warn("%s; trying again", w->error.what);
	w->stat.last_error = rc;
	pthread_mutex_unlock(&w->lock);
}

static void committer_fold(struct store_writer *w)
{
	segment_fold(w->seg);
	if (!segment_folded(w->seg))
		return;
	pthread_mutex_lock(&w->lock);
	w->stat.unsynced = 0;
	pthread_mutex_unlock(&w->lock);
}

/* Commits, trying again until it works or the writer's time is up. */
static int committer_commit_retry(struct store_writer *w, const struct batch *b, int state)
{
	int ms = RETRY_FIRST_MS;
	int rc;

	for (;;) {
		rc = committer_commit(w, b, state);
		committer_note(w, rc);
		if (w->seg)
			committer_fold(w);
		if (!rc || !committer_pause(w, ms))
			return rc;
		ms = ms * 2 < RETRY_LAST_MS ? ms * 2 : RETRY_LAST_MS;
	}
}

/* The next batch; NULL: the writer is closing and the queue is empty. */
static struct batch *committer_next(struct store_writer *w)
{
	struct batch *b;

	pthread_mutex_lock(&w->lock);
	while (!w->head && !w->closing)
		pthread_cond_wait(&w->wake, &w->lock);
	b = w->head;
	if (b) {
		w->head = b->next;
		if (!w->head)
			w->tail = &w->head;
		w->inflight_bytes = batch_bytes(b);
	}
	pthread_mutex_unlock(&w->lock);
	return b;
}

static void committer_done_with(struct store_writer *w, struct batch *b)
{
	pthread_mutex_lock(&w->lock);
	w->inflight_bytes = 0;
	writer_dict_put(b->dict);
	pthread_mutex_unlock(&w->lock);
	batch_free(b);
}

/* Leaves the store; the next writer will count what could not be written. true: no caller waits for
 * this thread. */
static bool committer_finish(struct store_writer *w)
{
	cleanup_fd int lock = -1;
	bool abandoned;

	if (w->result)
		tally_abandon(&w->tally, "store");
	else
		tally_remove(&w->tally);
	lock = folder_lock(w->dir);
	if (w->seg)
		committer_leave(w);
	commit_release(&w->commit);
	pthread_mutex_lock(&w->lock);
	w->finished = true;
	abandoned = w->abandoned;
	pthread_cond_signal(&w->done);
	pthread_mutex_unlock(&w->lock);
	return abandoned;
}

void *committer_main(void *arg)
{
	struct store_writer *w = arg;
	struct batch *b;

	while (!w->result && (b = committer_next(w))) {
		w->result = committer_commit_retry(w, b, 0);
		fine_commit(w, b);
		committer_done_with(w, b);
	}
	if (!w->result)
		w->result = committer_commit_retry(w, NULL, 1);
	fine_leave(w);
	if (committer_finish(w))
		writer_free(w);
	return NULL;
}
