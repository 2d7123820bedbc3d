/* SPDX-License-Identifier: Apache-2.0 */
/* writer: opening, closing, interning, runs: store/write/writer.h but for what is counted
 * (events.c). */
#include "schema/store/write/writer.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>
#include <unistd.h>

#include "schema/base/cleanup.h"
#include "schema/base/clock.h"
#include "schema/base/hash.h"
#include "schema/base/log.h"
#include "schema/base/mem.h"
#include "schema/store/files/ballast.h"
#include "schema/store/files/folder.h"
#include "schema/store/write/writer_state.h"

#define MAX_BYTES       (16u << 20)
#define SEGMENT_BYTES_  (64ull << 20)
#define SEGMENT_AGE_S   3600
#define FINE_SEGMENT_S  120
#define FINE_KEEP_S     780
#define CLOSE_GRACE_MS  1000
#define STACK_DEPTH_MAX 4096
#define STALE_ID        UINT32_MAX /* a stack made of ids that are no longer valid */

/* --- references and memory, lock held --- */

void writer_dict_put(struct dict *d)
{
	if (d && --d->refs == 0)
		dict_free(d);
}

/* --- the producer: interning --- */

uint32_t store_epoch(const struct store_writer *w)
{
	return w->epoch;
}

uint32_t writer_known(const struct store_writer *w, enum dict_kind kind, uint32_t id)
{
	return dict_has(w->dict, kind, id) ? id : 0;
}

uint32_t writer_text(struct store_writer *w, const char *s)
{
	struct dict_text t = {.s = dict_clean(w->dict, 5, s)};

	return *t.s ? dict_intern(w->dict, DICT_TEXT, &t) : 0;
}

uint32_t store_container(struct store_writer *w, const struct store_container *c)
{
	struct dict_container x = {
		.runtime = dict_clean(w->dict, 0, c->runtime),
		.runtime_id = dict_clean(w->dict, 1, c->runtime_id),
		.name = dict_clean(w->dict, 2, c->name),
		.image = dict_clean(w->dict, 3, c->image),
		.cgroup = dict_clean(w->dict, 4, c->cgroup),
		.project = dict_clean(w->dict, 5, c->project),
		.service = dict_clean(w->dict, 6, c->service),
		.labels = dict_clean(w->dict, 7, c->labels),
		.started = dict_clean(w->dict, 8, c->started),
		.restarts = c->restarts,
	};

	return dict_intern(w->dict, DICT_CONTAINER, &x);
}

uint32_t store_process(struct store_writer *w, const struct store_process *p)
{
	struct dict_process x = {
		.pid = p->pid,
		.ppid = p->ppid,
		.uid = p->uid,
		.exec_id = p->exec_id,
		.start_ns = p->start_ns,
		.start_ticks = p->start_ticks,
		.self = p->self,
		.container = writer_known(w, DICT_CONTAINER, p->container),
		.exe = writer_text(w, p->exe),
		.cgroup = writer_text(w, p->cgroup),
		.unit = writer_text(w, p->unit),
		.comm = dict_clean(w->dict, 0, p->comm),
		.args = dict_clean(w->dict, 1, p->args),
		.lang = writer_text(w, p->lang),
		.runtime = writer_text(w, p->runtime),
		.linking = p->linking,
		.libc = p->libc,
		.end_ns = p->end_ns,
		.how = p->how,
		.status = p->status,
	};
	uint32_t before = w->dict->pool[DICT_PROCESS].n;
	uint32_t id = dict_intern(w->dict, DICT_PROCESS, &x);

	if (id <= before)
		dict_process_learn(w->dict, id, &x);
	return id;
}

uint32_t store_image(struct store_writer *w, const struct store_image *i)
{
	struct dict_image x = {
		.kind = i->kind,
		.name = dict_clean(w->dict, 0, i->name),
		.path = dict_clean(w->dict, 1, i->path),
		.build_id = dict_clean(w->dict, 2, i->build_id),
		.key = dict_clean(w->dict, 3, i->key),
	};

	return dict_intern(w->dict, DICT_IMAGE, &x);
}

uint32_t store_function(struct store_writer *w, const struct store_function *f)
{
	struct dict_source s = {.path = dict_clean(w->dict, 1, f->file)};
	struct dict_function x = {
		.image = writer_known(w, DICT_IMAGE, f->image),
		.line = f->line,
		.source = *s.path ? dict_intern(w->dict, DICT_SOURCE, &s) : 0,
		.name = dict_clean(w->dict, 0, f->name),
	};

	return *x.name ? dict_intern(w->dict, DICT_FUNCTION, &x) : 0;
}

uint32_t store_frame(struct store_writer *w, const struct store_frame *f)
{
	struct dict_frame x = {
		.image = writer_known(w, DICT_IMAGE, f->image),
		.function = writer_known(w, DICT_FUNCTION, f->function),
		.line = f->line,
		.offset = f->offset,
		.outer = writer_known(w, DICT_FRAME, f->outer),
		.flags = (f->leaf ? 2u : 0) | (f->exact ? 4u : 0),
	};

	x.flags |= x.outer ? 1 : 0;

	return dict_intern(w->dict, DICT_FRAME, &x);
}

void store_image_build_id(struct store_writer *w, uint32_t image, const char *build_id)
{
	if (image && dict_has(w->dict, DICT_IMAGE, image))
		dict_image_learn(w->dict, image, build_id);
}

void store_frame_name(struct store_writer *w, uint32_t frame, uint32_t function, uint32_t line,
		      uint32_t outer)
{
	if (frame && dict_has(w->dict, DICT_FRAME, frame) &&
	    dict_has(w->dict, DICT_FUNCTION, function) && outer != frame)
		dict_frame_name(w->dict, frame, function, line, writer_known(w, DICT_FRAME, outer));
}

static struct writer_stack *stack_like(struct store_writer *w, const uint32_t *frames, size_t n)
{
	uint64_t hash = HASH_SEED;
	struct writer_stack *s;

	for (size_t i = 0; i < n && i < 4; i++)
		hash = hash_u64(hash, frames[i]);
	s = &w->stacks[hash % WRITER_STACKS];
	if (s->epoch != w->epoch)
		*s = (struct writer_stack){.epoch = w->epoch};
	return s;
}

uint32_t store_stack(struct store_writer *w, const uint32_t *frames, size_t n)
{
	struct writer_stack *s = stack_like(w, frames, n);
	uint32_t node = 0;
	size_t i = 0;

	while (i < n && i < s->n && s->frame[i] == frames[i])
		node = s->node[i++];
	s->n = (uint32_t)i;
	for (; i < n && i < STACK_DEPTH_MAX; i++) {
		struct dict_node x = {.parent = node, .frame = frames[i]};

		if (frames[i] && !dict_has(w->dict, DICT_FRAME, frames[i]))
			return STALE_ID;
		if (frames[i])
			node = dict_intern(w->dict, DICT_NODE, &x);
		if (i < WRITER_STACK_DEPTH) {
			s->frame[i] = frames[i];
			s->node[i] = node;
			s->n = (uint32_t)i + 1;
		}
	}
	return node;
}

uint32_t store_series(struct store_writer *w, uint32_t run, uint32_t process, const char *thread,
		      uint32_t tid, uint32_t stack, enum store_kind kind)
{
	return store_series_told(w, run, process, thread, tid, stack, kind, 0, "");
}

uint32_t store_series_labelled(struct store_writer *w, uint32_t run, uint32_t process,
			       const char *thread, uint32_t tid, uint32_t stack,
			       enum store_kind kind, uint32_t label)
{
	return store_series_told(w, run, process, thread, tid, stack, kind, label, "");
}

uint32_t store_series_told(struct store_writer *w, uint32_t run, uint32_t process,
			   const char *thread, uint32_t tid, uint32_t stack, enum store_kind kind,
			   uint32_t label, const char *labels)
{
	struct dict_task t = {.run = writer_stretch(w, run),
			      .process = process,
			      .tid = tid,
			      .kind = kind,
			      .thread = dict_clean(w->dict, 0, thread),
			      .labels = dict_clean(w->dict, 1, labels)};
	struct dict_series s = {.stack = stack, .label = label};

	if (!t.run || !process || !dict_has(w->dict, DICT_PROCESS, process) ||
	    !dict_has(w->dict, DICT_NODE, stack))
		return 0;
	s.task = dict_intern(w->dict, DICT_TASK, &t);
	return dict_intern(w->dict, DICT_SERIES, &s);
}

/* --- the producer: runs --- */

uint32_t writer_run_add(struct store_writer *w, const struct store_run *o, uint32_t of)
{
	struct writer_run r = {
		.family = mem_strdup(o->family),
		.scope = o->scope,
		.bucket_s = o->bucket_s ? o->bucket_s : 1,
		.cpus = o->cpus,
		.fine_s = w->fine ? o->fine_s : 0,
		.share = w->fine && o->fine_s && o->share ? o->share : 1,
		.from_ns = o->from_ns,
		.until_ns = o->from_ns,
		.to_ns = o->from_ns,
		.recording = o->recording & INT64_MAX,
	};
	uint32_t id;

	if (w->n_runs == TALLY_RUNS) {
		free(r.family);
		return 0;
	}
	r.options = mem_strdup(dict_clean(w->dict, 0, o->options));
	if (getrandom(&r.token, sizeof(r.token), 0) != sizeof(r.token))
		r.token = (uint64_t)clock_boot_ns() * 0x9e3779b97f4a7c15ull + (uint64_t)getpid();
	r.token = (r.token >> 2) | 1; /* a positive number for SQL, never 0 */
	mem_grow(r.periods, r.n_periods, r.cap_periods);
	r.periods[r.n_periods++] = (struct commit_period){.from_ns = 0, .period_ns = o->period_ns};
	r.tally = &w->tally.data->run[w->n_runs];
	*r.tally = (struct tally_run){
		.from_ns = o->from_ns,
		.to_ns = o->from_ns,
		.period_ns = o->period_ns * r.share,
		.scope = o->scope,
		.bucket_s = r.bucket_s,
		.cpus = o->cpus,
	};
	snprintf(r.tally->family, sizeof(r.tally->family), "%s", o->family);
	__atomic_store_n(&r.tally->token, r.token, __ATOMIC_RELEASE);
	pthread_mutex_lock(&w->lock);
	id = w->n_runs + 1;
	r.now = id;
	r.of = of ? of : id;
	w->run[w->n_runs++] = r;
	pthread_mutex_unlock(&w->lock);
	w->until_moved = true;
	return id;
}

uint32_t store_run_begin(struct store_writer *w, const struct store_run *o)
{
	uint32_t id = writer_run_add(w, o, 0);

	if (id && o->boot_offset_ns)
		store_clock_changed(w, clock_utc_ns(), o->boot_offset_ns);
	return id;
}

void store_clock_changed(struct store_writer *w, int64_t utc_ns, int64_t boot_offset_ns)
{
	pthread_mutex_lock(&w->lock);
	if (w->n_clock == WRITER_CLOCKS) /* the latest is what counts from here on */
		memmove(w->clock, w->clock + 1, --w->n_clock * sizeof(*w->clock));
	w->clock[w->n_clock++] = (struct commit_clock){utc_ns, boot_offset_ns};
	pthread_mutex_unlock(&w->lock);
}

uint32_t writer_stretch(const struct store_writer *w, uint32_t run)
{
	if (!run || run > w->n_runs)
		return 0;
	return __atomic_load_n(&w->run[run - 1].now, __ATOMIC_ACQUIRE);
}

struct writer_run *writer_run(struct store_writer *w, uint32_t run)
{
	run = writer_stretch(w, run);
	return run ? &w->run[run - 1] : NULL;
}

void store_run_period(struct store_writer *w, uint32_t run, int64_t from_ns, uint64_t period_ns)
{
	struct writer_run *r = writer_run(w, run);

	if (!r)
		return;
	pthread_mutex_lock(&w->lock);
	mem_grow(r->periods, r->n_periods, r->cap_periods);
	r->periods[r->n_periods++] =
		(struct commit_period){.from_ns = from_ns, .period_ns = period_ns};
	pthread_mutex_unlock(&w->lock);
	w->until_moved = true;
}

void writer_until(struct store_writer *w, struct writer_run *r, int64_t to_ns)
{
	if (to_ns <= r->until_ns || to_ns > stretch_end(w, r))
		return;
	r->until_ns = to_ns;
	w->until_moved = true;
}

void store_run_until(struct store_writer *w, uint32_t run, int64_t to_ns)
{
	struct writer_run *r = writer_run(w, run);

	if (r)
		writer_until(w, r, to_ns);
}

void store_run_offered(struct store_writer *w, uint32_t run, uint64_t events)
{
	struct writer_run *r = writer_run(w, run);

	if (r && events >= r->offered_before)
		__atomic_store_n(&w->tally.data->offered[r - w->run], events - r->offered_before,
				 __ATOMIC_RELAXED);
}

int64_t store_run_rowid(struct store_writer *w, uint32_t run)
{
	struct writer_run *r = writer_run(w, run);
	int64_t row;

	if (!r)
		return 0;
	pthread_mutex_lock(&w->lock);
	row = r->row;
	pthread_mutex_unlock(&w->lock);
	return row;
}

/* --- opening and closing --- */

void writer_free(struct store_writer *w)
{
	struct batch *b;

	while ((b = w->head)) {
		w->head = b->next;
		writer_dict_put(b->dict);
		batch_free(b);
	}
	if (w->cur)
		writer_dict_put(w->cur->dict);
	batch_free(w->cur);
	writer_dict_put(w->dict);
	for (uint32_t i = 0; i < w->n_runs; i++) {
		free(w->run[i].family);
		free(w->run[i].options);
		free(w->run[i].periods);
	}
	pthread_mutex_destroy(&w->lock);
	pthread_cond_destroy(&w->wake);
	pthread_cond_destroy(&w->done);
	place_close(&w->place);
	if (w->fine)
		free(w->fine->dir);
	free(w->fine);
	free(w->dir);
	free(w);
}

static struct fine *fine_new(const struct store_writer_opts *o)
{
	struct fine *f = mem_alloc(sizeof(*f));

	f->dir = mem_strdup(o->fine_dir);
	f->limits.bytes = o->fine_bytes ? o->fine_bytes / 4 : SEGMENT_BYTES_;
	f->limits.age_s = o->fine_segment_s ? o->fine_segment_s : FINE_SEGMENT_S;
	f->keep_s = o->fine_keep_s ? o->fine_keep_s : FINE_KEEP_S;
	f->bytes = o->fine_bytes;
	return f;
}

static struct store_writer *writer_new(const struct store_writer_opts *o)
{
	struct store_writer *w = mem_alloc(sizeof(*w));
	pthread_condattr_t attr;

	w->dir = mem_strdup(o->dir && *o->dir ? o->dir : store_default_dir());
	w->max_bytes = o->max_bytes ? o->max_bytes : MAX_BYTES;
	w->limits.bytes = o->segment_bytes ? o->segment_bytes : SEGMENT_BYTES_;
	w->limits.age_s = o->segment_s ? o->segment_s : SEGMENT_AGE_S;
	w->budget.bytes = o->budget_bytes;
	w->place.fd = -1;
	w->fine = o->fine_dir && *o->fine_dir ? fine_new(o) : NULL;
	w->dict = dict_new();
	w->dict->fine = w->fine;
	w->epoch = 1;
	w->tail = &w->head;
	pthread_mutex_init(&w->lock, NULL);
	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(&w->wake, &attr);
	pthread_cond_init(&w->done, &attr);
	pthread_condattr_destroy(&attr);
	return w;
}

/* The first segment, our tally, and the affairs of those who died. */
static int writer_settle(struct store_writer *w, struct err *e)
{
	cleanup_fd int lock = -1;
	int rc = folder_prepare(w->dir, e);

	if (rc)
		return rc;
	lock = folder_lock(w->dir);
	if (lock < 0)
		return folder_lock_refuse(w->dir, lock, e);
	rc = tally_open(w->dir, &w->tally, e);
	if (rc)
		return rc;
	rc = committer_segment(w, false);
	if (rc) {
		if (e)
			*e = w->error;
		tally_remove(&w->tally);
		return rc;
	}
	tally_recover(w->dir, w->seg);
	segment_tidy(w->dir, w->seg->path);
	(void)place_open(&w->place, w->dir); /* without it a rename is not followed */
	return 0;
}

/* Signals are the main thread's. */
static int writer_start(struct store_writer *w)
{
	sigset_t all, old;
	int rc;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	rc = -pthread_create(&w->thread, NULL, committer_main, w);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	return rc;
}

int store_writer_open(const struct store_writer_opts *o, struct store_writer **out, struct err *e)
{
	struct store_writer *w = writer_new(o);
	int rc = writer_settle(w, e);

	if (rc == -ENOSPC && ballast_drop(w->dir))
		rc = writer_settle(w, e);
	if (!rc) {
		rc = writer_start(w);
		if (rc) {
			err_set(e, rc, EXIT_RUNTIME, "cannot start the store's thread: %s",
				strerror(-rc));
			tally_remove(&w->tally);
			segment_leave(w->seg);
		}
	}
	if (rc) {
		writer_free(w);
		return rc;
	}
	*out = w;
	return 0;
}

/* false: it has not finished, and may never (the disk hangs). */
static bool writer_await(struct store_writer *w, int deadline_ms)
{
	struct timespec until;
	bool finished;

	pthread_mutex_lock(&w->lock);
	w->closing = true;
	w->deadline_ns = committer_now_ns() + (int64_t)deadline_ms * 1000000;
	pthread_cond_signal(&w->wake);
	committer_deadline(&until, (int64_t)(deadline_ms + CLOSE_GRACE_MS) * 1000000);
	while (!w->finished && pthread_cond_timedwait(&w->done, &w->lock, &until) != ETIMEDOUT)
		;
	finished = w->finished;
	w->abandoned = !finished;
	pthread_mutex_unlock(&w->lock);
	return finished;
}

int store_writer_close(struct store_writer *w, int deadline_ms, struct err *e)
{
	struct store_writer_stat last;

	return store_writer_end(w, deadline_ms, &last, e);
}

int store_writer_end(struct store_writer *w, int deadline_ms, struct store_writer_stat *last,
		     struct err *e)
{
	cleanup_free char *dir = NULL;
	pthread_t thread;
	int rc;

	if (!w)
		return 0;
	events_hand_over(w, true);
	thread = w->thread;
	pthread_mutex_lock(&w->lock);
	dir = mem_strdup(w->dir);
	pthread_mutex_unlock(&w->lock);
	if (!writer_await(w, deadline_ms)) {
		pthread_detach(thread); /* `w` is its own now; the process is about to end */
		return err_set(
			e, -ETIMEDOUT, EXIT_STORE,
			"the store %s did not take the last batch within %d ms; what it held is counted next time",
			dir, deadline_ms);
	}
	pthread_join(thread, NULL);
	store_writer_stat(w, last);
	rc = w->result;
	if (rc && e)
		*e = w->error;
	writer_free(w);
	return rc;
}
