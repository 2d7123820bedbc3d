/* SPDX-License-Identifier: Apache-2.0 */
#include "schema/store/write/commit/fine.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "schema/base/cleanup.h"
#include "schema/base/clock.h"
#include "schema/base/log.h"
#include "schema/base/mem.h"
#include "schema/store/files/folder.h"
#include "schema/store/write/writer_state.h"

#define STAYS      2                     /* newest segments that are never removed */
#define TOKEN_FINE 0x2aaaaaaaaaaaaaaaull /* of the run in the ring, against that in the store */

/* --- the ring's size --- */

static void remove_segment(const char *dir, const char *name)
{
	static const char *const suffix[] = {"", "-wal", "-shm"};
	char path[PATH_MAX];

	for (int i = 0; i < 3; i++) {
		snprintf(path, sizeof(path), "%s/%s%s", dir, name, suffix[i]);
		(void)unlink(path);
	}
}

/* Lock held. A segment ended when the next one was begun. */
static void fine_trim(const struct fine *f)
{
	int64_t now = clock_utc_ns(), keep_ns = (int64_t)f->keep_s * NSEC_PER_SEC;
	cleanup_free char(*names)[SEGMENT_NAME_MAX] = NULL;
	cleanup_free uint64_t *bytes = NULL;
	char path[PATH_MAX];
	uint64_t sum = 0;
	size_t n = 0;

	if (folder_segments(f->dir, &names, &n))
		return;
	bytes = mem_array(n + 1, sizeof(*bytes));
	for (size_t i = 0; i < n; i++) {
		snprintf(path, sizeof(path), "%s/%s", f->dir, names[i]);
		bytes[i] = segment_bytes(path);
		sum += bytes[i];
	}
	for (size_t i = 0; i + STAYS < n; i++) {
		bool old = folder_begun_ns(names[i + 1]) < now - keep_ns;

		if (!old && (!f->bytes || sum <= f->bytes))
			return;
		remove_segment(f->dir, names[i]);
		sum -= bytes[i];
	}
}

/* --- runs --- */

/* Lock of the writer held. */
static struct commit_run run_in_ring(struct store_writer *w, uint32_t i, const struct batch *b,
				     int state)
{
	const struct writer_run *r = &w->run[i];
	struct fine_run *x = &w->fine->run[i];
	struct commit_run c = {
		.token = r->token ^ TOKEN_FINE,
		.family = r->family,
		.options = r->options,
		.scope = r->scope,
		.bucket_s = r->fine_s,
		.cpus = r->cpus,
		.to_ns = b && i < b->n_until ? b->until[i] : x->to_ns,
		.state = state,
		.recording = r->recording,
		.absent = !r->fine_s,
	};

	if (x->segment != w->fine->seg->serial) {
		*x = (struct fine_run){.from_ns = x->to_ns > r->from_ns ? x->to_ns : r->from_ns,
				       .to_ns = x->to_ns,
				       .segment = w->fine->seg->serial};
		if (!b || !batch_has(b, i + 1))
			c.absent = !x->row;
	}
	c.row = x->row;
	c.from_ns = x->from_ns;
	c.accounted = x->accounted + (b ? batch_events(b, i + 1) : 0);
	c.n_periods = c.absent ? 0 : r->n_periods - x->stored_periods;
	c.periods = mem_array(c.n_periods, sizeof(*c.periods));
	memcpy((void *)c.periods, r->periods + x->stored_periods, c.n_periods * sizeof(*c.periods));
	return c;
}

static void run_written(struct fine_run *x, const struct commit_run *c)
{
	x->row = c->row;
	x->to_ns = c->to_ns;
	x->accounted = c->accounted;
	x->stored_periods += c->n_periods;
}

static int commit_in(struct store_writer *w, const struct batch *b, int state)
{
	struct fine *f = w->fine;
	struct commit_run runs[TALLY_RUNS];
	uint32_t n;
	int rc;

	pthread_mutex_lock(&w->lock);
	n = w->n_runs;
	for (uint32_t i = 0; i < n; i++)
		runs[i] = run_in_ring(w, i, b, state);
	pthread_mutex_unlock(&w->lock);
	f->commit.fine = true;
	rc = commit_batch(&f->commit, f->seg, b, runs, n);
	for (uint32_t i = 0; i < n; i++) {
		if (!rc && !runs[i].absent)
			run_written(&f->run[i], &runs[i]);
		free((void *)runs[i].periods);
	}
	return rc;
}

/* --- segments --- */

static void leave_segment(struct fine *f)
{
	if (!f->seg)
		return;
	memcpy(f->left, f->seg->path, sizeof(f->left));
	segment_leave(f->seg);
	f->seg = NULL;
}

/* What was not written is in no segment. The next one gets all names again. */
static void make_hole(struct fine *f, const struct batch *b)
{
	dict_forget_fine(b->dict, 0);
	for (uint32_t i = 0; i < b->n_until; i++)
		f->run[i] = (struct fine_run){.to_ns = b->until[i]};
}

/* Lock held. */
static int fine_segment(struct store_writer *w, struct err *e)
{
	struct fine *f = w->fine;
	int rc;

	if (f->seg && !segment_is_there(f->seg))
		leave_segment(f);
	if (f->seg && segment_is_due(f->seg, &f->limits)) {
		(void)commit_in(w, NULL, 3);
		leave_segment(f);
	}
	if (f->seg)
		return 0;
	rc = segment_acquire(f->dir, &f->limits, f->left, &f->seg, e);
	if (!rc)
		fine_trim(f);
	return rc;
}

static int try_commit(struct store_writer *w, const struct batch *b, struct err *e)
{
	struct fine *f = w->fine;
	int rc = folder_prepare(f->dir, e);
	cleanup_fd int lock = rc ? -1 : folder_lock(f->dir);

	if (rc)
		return rc;
	if (lock < 0)
		return folder_lock_refuse(f->dir, lock, e);
	rc = fine_segment(w, e);
	if (!rc)
		rc = commit_in(w, b, 0);
	if (rc && e && !e->code)
		err_set(e, rc, EXIT_STORE, "cannot write to the ring %s: %s", f->dir,
			strerror(-rc));
	if (rc == -EBADMSG && f->seg) {
		segment_leave_damaged(f->seg);
		f->seg = NULL;
	} else if (rc) {
		leave_segment(f);
	}
	return rc;
}

void fine_commit(struct store_writer *w, const struct batch *b)
{
	struct fine *f = w->fine;
	struct err e = {0};
	int rc;

	if (!f || !b || !b->fine)
		return;
	rc = try_commit(w, b->fine, &e);
	if (rc && !f->failing)
		log_warn("%s; the ring has a hole, the recording goes on", e.what);
	f->failing = rc;
	if (rc)
		make_hole(f, b->fine);
	if (f->seg)
		segment_fold(f->seg);
}

void fine_leave(struct store_writer *w)
{
	struct fine *f = w->fine;
	cleanup_fd int lock = f && f->seg ? folder_lock(f->dir) : -1;

	if (!f)
		return;
	if (lock >= 0)
		(void)commit_in(w, NULL, 1);
	leave_segment(f);
	commit_release(&f->commit);
}
