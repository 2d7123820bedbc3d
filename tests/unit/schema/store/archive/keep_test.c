/* SPDX-License-Identifier: Apache-2.0 */
/* keep: a window of the ring is put into the store, and every sum over any time is as before, by
 * the readers in C and by the views, while the store is rows and after it was archived. */
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "schema/facts/l7.h"
#include "schema/store/archive/keep.h"
#include "schema/store/archive/seal.h"
#include "schema/store/files/folder.h"
#include "schema/store/files/usage.h"
#include "schema/store/retention/retention.h"
#include "schema/store/write/facts.h"
#include "schema/store/write/requests.h"
#include "schema/store/write/waits.h"
#include "tests/unit/schema/store/fixture.h"
#include "tests/unit/test.h"

#define PERIOD 10101010
#define LONG_S 200 /* what the ring has, in seconds */
#define TRIES  6

static struct fixture ring_of(const struct fixture *f)
{
	struct fixture ring;

	snprintf(ring.dir, sizeof(ring.dir), "%.56s/flight", f->dir);
	return ring;
}

static int64_t begun_s(const struct fixture *f)
{
	const char *path = fixture_segment(f, 0);

	return folder_begun_ns(strrchr(path, '/') + 1) / NS;
}

/* Samples of three processes from T on, in four segments of the ring, and in another one of the
 * store from second `turn` on (0: in one). */
static void record(struct fixture *f, int64_t t, uint32_t share, int64_t turn)
{
	struct fixture ring = ring_of(f);
	struct store_writer_opts o = {.dir = f->dir, .fine_dir = ring.dir, .fine_keep_s = 100000};
	struct store_run r = {.family = "cpu",
			      .options = "sonde-cpu --test",
			      .scope = STORE_SCOPE_HOST,
			      .bucket_s = 10,
			      .period_ns = PERIOD,
			      .cpus = 2,
			      .from_ns = t * NS + NS / 3,
			      .fine_s = 1,
			      .share = share};
	struct store_writer *w = NULL;
	uint64_t total = 0;
	uint32_t run;
	char name[SEGMENT_NAME_MAX];
	struct err e = {0};

	if (store_writer_open(&o, &w, &e)) {
		fprintf(stderr, "%s\n", e.what);
		abort();
	}
	run = store_run_begin(w, &r);
	for (int64_t s = 0; s < LONG_S; s++) {
		for (uint32_t p = 0; p < 3; p++) {
			fixture_add(w, run, 100 + p, 1 + (uint32_t)(s % 40) * p,
				    (t + s) * NS + NS / 2, (uint64_t)(s % 7 + p));
			total += (uint64_t)(s % 7 + p);
		}
		store_run_until(w, run, (t + s + 1) * NS - NS / 5);
		if (s % 10 == 9) {
			store_flush(w);
			assert_true(fixture_wait_stored(w, total));
			if (s % 50 == 49)
				assert_int_equal(folder_turn(ring.dir, name, &e), 0);
			if (s + 1 == turn)
				assert_int_equal(folder_turn(f->dir, name, &e), 0);
		}
	}
	fixture_close(w);
}

static struct keep_opts opts_of(const struct fixture *f, const struct fixture *ring, int64_t from_s,
				int64_t to_s, const char *why)
{
	return (struct keep_opts){.dir = f->dir,
				  .ring = ring->dir,
				  .from_ns = from_s * NS,
				  .to_ns = to_s * NS,
				  .at_ns = (to_s - 30) * NS,
				  .why = why};
}

static struct keep_report keep(struct fixture *f, int64_t from_s, int64_t to_s, const char *why)
{
	const struct fixture ring = ring_of(f);
	const struct keep_opts o = opts_of(f, &ring, from_s, to_s, why);
	struct keep_report r;
	struct err e = {0};

	if (keep_run(&o, &r, &e))
		fprintf(stderr, "%s\n", e.what);
	assert_int_equal(e.code, 0);
	return r;
}

/* Sums of ranges of whole steps, and of all. */
struct answers {
	struct fixture_sums of[TRIES + 1], one[TRIES + 1];
	int64_t views;
};

static void ask(const struct fixture *f, int64_t t, struct answers *a)
{
	struct err e = {0};

	srand(7);
	memset(a, 0, sizeof(*a));
	t -= t % 10;
	for (int i = 0; i <= TRIES; i++) {
		int64_t from = t + 10 * (rand() % 20), to = from + 10 * (1 + rand() % 10);

		a->one[i].pid = 101;
		assert_int_equal(fixture_totals(f->dir, i < TRIES ? from * NS : 0,
						i < TRIES ? to * NS : INT64_MAX, &a->of[i], &e),
				 0);
		assert_int_equal(fixture_totals(f->dir, i < TRIES ? from * NS : 0,
						i < TRIES ? to * NS : INT64_MAX, &a->one[i], &e),
				 0);
	}
	a->views = fixture_sql_all(f, "SELECT ifnull(sum(cpu_ns), 0) FROM cpu_samples");
}

static void assert_same(const struct answers *a, const struct answers *b)
{
	for (int i = 0; i <= TRIES; i++) {
		assert_int_equal(a->of[i].cpu_ns, b->of[i].cpu_ns);
		assert_int_equal(a->of[i].samples, b->of[i].samples);
		assert_int_equal(a->one[i].cpu_ns, b->one[i].cpu_ns);
	}
	assert_int_equal(a->views, b->views);
}

/* The file's name says when it was begun: now; so the samples are of then. */
static int64_t recorded(struct fixture *f, uint32_t share)
{
	int64_t t = time(NULL) + 20;

	record(f, t, share, 0);
	assert_true(begun_s(f) <= t);
	return t;
}

STORE_TEST(a_kept_window_changes_no_sum_and_has_seconds_also_when_the_hour_is_archived)
{
	struct fixture *f = *state;
	int64_t t = recorded(f, 1);
	struct answers before, after;
	struct seal_opts o = {.dir = f->dir};
	struct seal_report sealed;
	struct keep_report r;
	struct err e = {0};
	char seconds[200], name[SEGMENT_NAME_MAX];

	ask(f, t, &before);
	r = keep(f, t + 35, t + 155, "a test");
	assert_true(r.segments > 1);
	assert_int_equal(r.to_ns - r.from_ns, 110 * NS + 10 * NS * ((t + 35) % 10 == 0));
	ask(f, t, &after);
	assert_same(&before, &after);
	snprintf(seconds, sizeof(seconds),
		 "SELECT count(DISTINCT ts) FROM cpu_samples WHERE ts >= %lld AND ts < %lld",
		 (long long)(r.from_ns / NS), (long long)(r.to_ns / NS));
	assert_true(fixture_sql_all(f, seconds) >= 110);
	assert_int_equal(fixture_sql_all(f, "SELECT count(*) FROM events WHERE kind = 'kept' AND "
					    "detail = 'a test' AND name = 'flight ring'"),
			 1);
	/* the segment in use is still the newest */
	assert_false(folder_is_archived(fixture_segment(f, r.segments)));
	assert_string_equal(fixture_segment(f, r.segments + 1), "");
	sleep(1); /* the next one's name is of a later second */
	assert_int_equal(folder_turn(f->dir, name, &e), 0);
	fixture_close(fixture_writer(f, 0));
	assert_int_equal(seal_run(&o, &sealed, &e), 0);
	assert_int_equal(sealed.segments, 1);
	ask(f, t, &after);
	assert_same(&before, &after);
}

STORE_TEST(windows_that_overlap_are_kept_once_and_one_that_is_kept_is_left_alone)
{
	struct fixture *f = *state;
	int64_t t = recorded(f, 1);
	struct answers before, after;
	struct keep_report first, second;

	ask(f, t, &before);
	first = keep(f, t + 20, t + 100, "one");
	second = keep(f, t + 50, t + 160, "two");
	assert_true(second.segments > 0);
	assert_int_equal(second.from_ns, first.to_ns);
	assert_int_equal(keep(f, t + 20, t + 160, "three").segments, 0);
	ask(f, t, &after);
	assert_same(&before, &after);
}

STORE_TEST(of_samples_the_sums_are_as_the_ring_has_them_within_the_window)
{
	struct fixture *f = *state, ring = ring_of(f);
	int64_t t = recorded(f, 5);
	struct fixture_sums store = {0}, fine = {0};
	struct keep_report r = keep(f, t + 35, t + 155, "a test");
	struct err e = {0};

	assert_int_equal(fixture_totals(ring.dir, r.from_ns, r.to_ns, &fine, &e), 0);
	assert_int_equal(fixture_totals(f->dir, r.from_ns, r.to_ns, &store, &e), 0);
	assert_int_equal(store.samples, fine.samples);
	assert_int_equal(store.cpu_ns, fine.cpu_ns);
}

STORE_TEST(a_recording_of_that_time_counts_instead)
{
	struct fixture *f = *state;
	int64_t t = recorded(f, 1);
	struct store_writer *w = fixture_writer(f, 0);
	uint32_t run = fixture_run(w, STORE_SCOPE_HOST, 1, PERIOD / 2, (t + 60) * NS);
	struct answers before, after;

	for (int64_t s = 60; s < 90; s++)
		fixture_add(w, run, 101, 1, (t + s) * NS + NS / 2, 20);
	store_run_until(w, run, (t + 90) * NS);
	fixture_close(w);
	ask(f, t, &before);
	assert_true(keep(f, t + 20, t + 160, "a test").segments > 0);
	ask(f, t, &after);
	assert_int_equal(before.views, after.views);
	/* readers in C took one run for the whole window (rule 0); now each step has its own */
	assert_int_equal(after.of[TRIES].cpu_ns, after.views);
}

/* ---- one that is killed ---- */

static void die_at(void *ctx, enum keep_step step)
{
	if (step == *(const enum keep_step *)ctx)
		kill(getpid(), SIGKILL);
}

static void keep_killed(struct fixture *f, int64_t from_s, int64_t to_s, enum keep_step step)
{
	const struct fixture ring = ring_of(f);
	struct keep_opts o = opts_of(f, &ring, from_s, to_s, "killed");
	struct keep_report r;
	struct err e = {0};
	int status = 0;
	pid_t pid = fork();

	if (!pid) {
		o.each = die_at;
		o.ctx = &step;
		keep_run(&o, &r, &e);
		_exit(0);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
	assert_true(fixture_files(f->dir, ".db") > 2);
}

static void seal(const struct fixture *f)
{
	const struct seal_opts o = {.dir = f->dir};
	struct seal_report r;
	struct err e = {0};

	assert_int_equal(seal_run(&o, &r, &e), 0);
}

#define COVERED "SELECT count(*) FROM run WHERE state = 4"

STORE_TEST(what_a_keep_that_is_killed_leaves_is_taken_back_or_finished)
{
	struct fixture *f = *state;
	int64_t t = recorded(f, 1);
	struct answers before, after;

	ask(f, t, &before);
	keep_killed(f, t + 20, t + 100, KEEP_STEP_MADE);
	seal(f);
	assert_int_equal(fixture_files(f->dir, ".db"), 1);
	ask(f, t, &after);
	assert_same(&before, &after);
	keep_killed(f, t + 20, t + 100, KEEP_STEP_COVERED);
	assert_int_equal(fixture_sql_all(f, COVERED), 1);
	seal(f);
	assert_int_equal(fixture_sql_all(f, COVERED), 0);
	assert_int_equal(fixture_files(f->dir, ".db"), 1);
	ask(f, t, &after);
	assert_same(&before, &after);
	keep_killed(f, t + 20, t + 100, KEEP_STEP_NAMED);
	seal(f);
	assert_int_equal(fixture_sql_all(f, COVERED), 1);
	assert_true(fixture_files(f->dir, ".db") > 2);
	ask(f, t, &after);
	assert_same(&before, &after);
	assert_int_equal(keep(f, t + 20, t + 100, "again").segments, 0);
	keep_killed(f, t + 100, t + 160, KEEP_STEP_COVERED);
	assert_true(keep(f, t + 100, t + 160, "again").segments > 0);
	ask(f, t, &after);
	assert_same(&before, &after);
}

/* ---- more than one segment ---- */

/* As if the segment had been begun at that time. */
static void rename_to(const struct fixture *f, size_t n, const char *name)
{
	char to[128];

	snprintf(to, sizeof(to), "%s/%s", f->dir, name);
	assert_int_equal(rename(fixture_segment(f, n), to), 0);
}

STORE_TEST(what_was_handed_over_late_is_in_a_segment_that_was_begun_after_the_window)
{
	struct fixture *f = *state;
	int64_t t = time(NULL) + 20;
	struct answers before, after;

	record(f, t, 1, 100);
	rename_to(f, 1, "20991231T000000Z-0001.db");
	ask(f, t, &before);
	assert_true(keep(f, t + 35, t + 155, "a test").segments > 1);
	ask(f, t, &after);
	assert_same(&before, &after);
}

STORE_TEST(what_an_archive_has_is_not_kept_though_an_older_segment_is_rows)
{
	struct fixture *f = *state;
	int64_t t = recorded(f, 1);
	struct answers before, after;
	char name[SEGMENT_NAME_MAX];
	struct err e = {0};

	assert_int_equal(folder_turn(f->dir, name, &e), 0);
	fixture_close(fixture_writer(f, 0));
	seal(f);
	assert_true(folder_is_archived(fixture_segment(f, 0)));
	assert_int_equal(folder_turn(f->dir, name, &e), 0);
	fixture_close(fixture_writer(f, 0));
	rename_to(f, 1, "20200101T000000Z-0001.db");
	ask(f, t, &before);
	assert_int_equal(keep(f, t + 35, t + 155, "a test").segments, 0);
	ask(f, t, &after);
	assert_same(&before, &after);
}

/* ---- waits ---- */

#define WAITED                                                                                \
	"SELECT ifnull(sum(total_ns), 0) + 7 * ifnull(sum(count), 0) FROM wait_totals WHERE " \
	"ts >= %lld AND ts < %lld"
#define BY_STACK                                                                           \
	"SELECT ifnull(sum(total_ns), 0) + 7 * ifnull(sum(count), 0) FROM waits WHERE ts " \
	">= %lld AND ts < %lld"

/* Waits of three threads, each with its stack, and what throttles the host: that has no seconds. */
static void record_waits(struct fixture *f, int64_t t)
{
	struct fixture ring = ring_of(f);
	struct store_writer_opts o = {.dir = f->dir, .fine_dir = ring.dir, .fine_keep_s = 100000};
	struct store_run r = {.family = "offcpu",
			      .options = "sonde-offcpu --test",
			      .scope = STORE_SCOPE_HOST,
			      .bucket_s = 10,
			      .cpus = 2,
			      .from_ns = t * NS + NS / 3,
			      .fine_s = 1};
	struct store_throttle held = {.periods = 10, .throttled = 3, .throttled_ns = 1000};
	struct store_writer *w = NULL;
	struct err e = {0};
	uint32_t run;

	assert_int_equal(store_writer_open(&o, &w, &e), 0);
	run = store_run_begin(w, &r);
	for (int64_t s = 0; s < LONG_S; s++) {
		const int64_t at = (t + s) * NS + NS / 2;

		for (uint32_t i = 0; i < 3; i++) {
			const struct store_process p = {
				.pid = 100 + i, .comm = "waits", .start_ticks = 9};
			const struct store_image image = {.name = "libx.so", .path = "/libx.so"};
			const struct store_frame frame = {.image = store_image(w, &image),
							  .offset = i};
			uint32_t process = store_process(w, &p), place = store_frame(w, &frame),
				 task = store_task(w, run, process, "waits", 100 + i),
				 series = store_series_labelled(w, run, process, "waits", 100 + i,
								store_stack(w, &place, 1),
								STORE_KIND_OFFCPU, STORE_WAIT_LOCK);
			const struct store_wait x = {.class = STORE_WAIT_LOCK,
						     .n = (uint64_t)s % 5 + i,
						     .total_ns = (uint64_t)(s % 7 + i) * 1000000};
			const struct store_amount a = {.n = x.n, .value = x.total_ns};
			const struct store_wake by = {.class = STORE_WAIT_LOCK,
						      .waker = task,
						      .n = x.n,
						      .total_ns = x.total_ns};

			assert_int_equal(store_wait(w, task, at, &x), 0);
			assert_int_equal(store_amount(w, series, at, &a), 0);
			assert_int_equal(store_wake(w, task, at, &by), 0);
		}
		store_throttle(w, run, at, "/a", &held);
		store_run_until(w, run, (t + s + 1) * NS - NS / 5);
		if (s % 10 == 9)
			store_flush(w);
	}
	fixture_close(w);
}

static void ask_waits(const struct fixture *f, int64_t t, int64_t out[2 * TRIES + 1])
{
	char sql[200];

	srand(7);
	t -= t % 10;
	for (int i = 0; i < TRIES; i++) {
		long long from = t + 10 * (rand() % 20), to = from + 10 * (1 + rand() % 10);

		snprintf(sql, sizeof(sql), WAITED, from, to);
		out[2 * i] = fixture_sql_all(f, sql);
		snprintf(sql, sizeof(sql), BY_STACK, from, to);
		out[2 * i + 1] = fixture_sql_all(f, sql);
	}
	out[2 * TRIES] = fixture_sql_all(f, "SELECT sum(throttled_ns) FROM throttle_row");
}

STORE_TEST(waits_of_a_kept_window_have_seconds_and_count_once_also_when_minutes_are_due)
{
	struct fixture *f = *state;
	int64_t t = time(NULL) + 20, before[2 * TRIES + 1], after[2 * TRIES + 1];
	struct seal_opts o = {.dir = f->dir};
	struct seal_report sealed;
	struct keep_report r;
	char seconds[200], name[SEGMENT_NAME_MAX];
	struct err e = {0};

	record_waits(f, t);
	ask_waits(f, t, before);
	assert_true(before[0] > 0 && before[1] > 0);
	r = keep(f, t + 35, t + 155, "a test");
	assert_true(r.segments > 0);
	ask_waits(f, t, after);
	assert_memory_equal(before, after, sizeof(before));
	snprintf(seconds, sizeof(seconds),
		 "SELECT count(DISTINCT ts) FROM wait_totals WHERE ts >= %lld AND ts < %lld",
		 (long long)(r.from_ns / NS), (long long)(r.to_ns / NS));
	assert_true(fixture_sql_all(f, seconds) >= 110);
	sleep(1); /* the next one's name is of a later second */
	assert_int_equal(folder_turn(f->dir, name, &e), 0);
	fixture_close(fixture_writer(f, 0));
	assert_int_equal(seal_run(&o, &sealed, &e), 0);
	ask_waits(f, t, after);
	assert_memory_equal(before, after, sizeof(before));
	rename_to(f, 0, "20200101T000000Z-0001.db");
	o.fine_s = 1;
	assert_int_equal(seal_run(&o, &sealed, &e), 0);
	ask_waits(f, t, after);
	assert_memory_equal(before, after, sizeof(before));
}

/* As the loader does it while the window is kept. */
static void trim_ring(void *ctx, enum keep_step step)
{
	const struct fixture *ring = ctx;

	if (step == KEEP_STEP_LOOKED && fixture_files(ring->dir, ".db") == 4)
		assert_int_equal(unlink(fixture_segment(ring, 0)), 0);
}

STORE_TEST(what_the_ring_removes_meanwhile_stays_as_the_store_has_it)
{
	struct fixture *f = *state, ring = ring_of(f);
	int64_t t = recorded(f, 1);
	struct keep_opts o = opts_of(f, &ring, t + 20, t + 120, "a test");
	struct answers before, after;
	struct keep_report r;
	struct err e = {0};

	ask(f, t, &before);
	o.each = trim_ring;
	o.ctx = &ring;
	o.at_ns = (t + 25) * NS; /* it happened in what is removed */
	assert_int_equal(keep_run(&o, &r, &e), 0);
	assert_true(r.segments > 0);
	assert_true(r.from_ns >= (t + 40) * NS);
	assert_int_equal(fixture_sql_all(f, "SELECT count(*) FROM events WHERE kind = 'kept'"), 1);
	ask(f, t, &after);
	assert_same(&before, &after);
}

/* ---- requests ---- */

static void request_put(struct store_writer *w, uint32_t run, uint32_t process, int64_t at_ns,
			uint32_t nth, bool ring)
{
	struct fact_row row = {0}, span = {0};
	char number[16];

	snprintf(number, sizeof(number), "%u", nth);
	fact_put(&row, REQUEST_LOG_PROCESS, process);
	fact_put_text(&row, REQUEST_LOG_SIDE, "server");
	fact_put_text(&row, REQUEST_LOG_PROTOCOL, "http");
	fact_put_text(&row, REQUEST_LOG_SERVICE, "x:80");
	fact_put_text(&row, REQUEST_LOG_OPERATION, "GET /");
	fact_put_text(&row, REQUEST_LOG_NTH, number);
	fact_put(&row, REQUEST_LOG_AT, (uint64_t)at_ns / 1000);
	fact_put_text(&row, REQUEST_LOG_WHY, ring ? "ring" : "slow");
	fact_put(&row, REQUEST_LOG_WEIGHT, !ring);
	fact_put(&span, REQUEST_SPAN_PROCESS, process);
	fact_put_text(&span, REQUEST_SPAN_SIDE, "server");
	fact_put(&span, REQUEST_SPAN_SPAN, (uint64_t)at_ns / 1000);
	fact_put_text(&span, REQUEST_SPAN_NTH, number);
	fact_put_text(&span, REQUEST_SPAN_HOW, "");
	if (ring) {
		assert_int_equal(store_fact_fine(w, run, at_ns, &REQUEST_LOG_FACT, &row), 0);
		assert_int_equal(store_fact_fine(w, run, at_ns, &REQUEST_SPAN_FACT, &span), 0);
	} else {
		assert_int_equal(store_fact(w, run, at_ns, &REQUEST_LOG_FACT, &row), 0);
		assert_int_equal(store_fact(w, run, at_ns, &REQUEST_SPAN_FACT, &span), 0);
	}
}

static void request_sum(struct store_writer *w, uint32_t run, uint32_t process, int64_t at_ns,
			uint64_t n)
{
	const struct store_request r = {.part = STORE_PART_WHOLE,
					.process = process,
					.side = STORE_SIDE_SERVER,
					.result = STORE_RESULT_OK,
					.protocol = "http",
					.service = "x:80",
					.operation = "GET /",
					.status = "200",
					.n = n,
					.total_ns = n * 1000};

	assert_int_equal(store_request(w, run, at_ns, &r), 0);
}

#define EACH_S 5 /* requests of a second */

/* Of each ten seconds the store has the first request, the ring all others: they come when the ten
 * seconds are over, and the ring may have begun another segment by then. */
static void record_requests(struct fixture *f, int64_t t)
{
	struct fixture ring = ring_of(f);
	struct store_writer_opts o = {.dir = f->dir, .fine_dir = ring.dir, .fine_keep_s = 100000};
	const struct store_process p = {.pid = 100, .comm = "shop", .start_ticks = 9};
	struct store_run r = {.family = "l7",
			      .options = "sonde-l7 --test",
			      .scope = STORE_SCOPE_HOST,
			      .bucket_s = 10,
			      .cpus = 2,
			      .from_ns = t * NS,
			      .fine_s = 1};
	struct store_writer *w = NULL;
	char name[SEGMENT_NAME_MAX];
	struct err e = {0};
	uint32_t run, nth = 0;

	assert_int_equal(store_writer_open(&o, &w, &e), 0);
	run = store_run_begin(w, &r);
	for (int64_t s = 0; s < LONG_S; s++) {
		store_run_until(w, run, (t + s + 1) * NS);
		if (s % 10 == 4) { /* in the middle of ten seconds */
			store_flush(w);
			for (int i = 0; i < 500 && s % 50 == 44; i++) {
				struct store_writer_stat stat;

				store_writer_stat(w, &stat);
				if (!stat.queued_bytes)
					break;
				usleep(10000);
			}
			if (s % 50 == 44)
				assert_int_equal(folder_turn(ring.dir, name, &e), 0);
		}
		if (s % 10 != 9)
			continue;
		request_sum(w, run, store_process(w, &p), (t + s - 9) * NS, 10 * EACH_S);
		for (int64_t i = 0; i < 10 * EACH_S; i++)
			request_put(w, run, store_process(w, &p),
				    (t + s - 9) * NS + i * (NS / EACH_S) + 1000, ++nth, i > 0);
	}
	store_flush(w);
	fixture_close(w);
}

STORE_TEST(each_request_of_a_kept_window_has_a_row_and_what_the_store_has_is_not_hidden)
{
	struct fixture *f = *state;
	int64_t t = (time(NULL) + 20) / 10 * 10, weights, rows;
	struct keep_report r;
	char sql[200];

	record_requests(f, t);
	weights = fixture_sql_all(f, "SELECT sum(weight) FROM request_log");
	rows = fixture_sql_all(f, "SELECT count(*) FROM request_log");
	assert_int_equal(rows, LONG_S / 10);
	r = keep(f, t + 35, t + 155, "a test");
	assert_true(r.segments > 1);
	assert_int_equal(r.to_ns - r.from_ns, 110 * NS);
	assert_int_equal(fixture_sql_all(f, "SELECT sum(weight) FROM request_log"), weights);
	assert_int_equal(fixture_sql_all(f, "SELECT sum(requests) FROM requests"), LONG_S * EACH_S);
	assert_int_equal(fixture_sql_all(f, "SELECT count(*) FROM request_log"),
			 rows + 110 * EACH_S - 11);
	snprintf(sql, sizeof(sql),
		 "SELECT count(DISTINCT at_ns) FROM request_log WHERE ts >= %lld AND ts < %lld",
		 (long long)(t + 40), (long long)(t + 150));
	assert_int_equal(fixture_sql_all(f, sql), 110 * EACH_S);
	snprintf(sql, sizeof(sql),
		 "SELECT count(*) FROM request_spans WHERE ts >= %lld AND ts < %lld",
		 (long long)(t + 40), (long long)(t + 150));
	assert_int_equal(fixture_sql_all(f, sql), 110 * EACH_S);
	/* a row lies within what its run says of itself: files are found by that */
	assert_int_equal(
		fixture_sql_all(
			f, "SELECT count(*) FROM request_log_row x JOIN run r ON r.id = x.run JOIN "
			   "meta m ON m.key = 't0' WHERE (x.ts + m.value) * 1000000000 < r.from_ns "
			   "AND r.bucket_s = 1"),
		0);
}

/* ---- what goes first ---- */

static struct removed_one gone[16];
static int n_gone;

static void note_gone(void *ctx, const struct removed_one *o)
{
	(void)ctx;
	if (n_gone < 16)
		gone[n_gone++] = *o;
}

static void prune(const struct fixture *f, uint64_t bytes, int64_t age_ns)
{
	const struct retention_limits l = {
		.bytes = bytes, .reserve_bytes = 1, .age_ns = age_ns, .keep_days = 0};
	struct retention_report r;
	struct err e = {0};

	n_gone = 0;
	assert_int_equal(retention_run(f->dir, &l, false, note_gone, NULL, &r, &e), 0);
}

static uint64_t bytes_of(const struct fixture *f)
{
	struct usage u = {0};

	assert_int_equal(usage_measure(f->dir, &u), 0);
	return u.bytes;
}

STORE_TEST(a_kept_window_goes_right_after_its_hour_and_never_leaves_a_hole)
{
	struct fixture *f = *state;
	int64_t t = recorded(f, 1), inside;
	struct keep_report r;
	char hour[SEGMENT_NAME_MAX], name[SEGMENT_NAME_MAX], sql[300];
	struct err e = {0};

	r = keep(f, t + 35, t + 155, "a test");
	assert_true(r.segments > 1);
	snprintf(hour, sizeof(hour), "%s", strrchr(fixture_segment(f, r.segments), '/') + 1);
	snprintf(sql, sizeof(sql),
		 "SELECT sum(cpu_ns) FROM cpu_samples WHERE ts >= %lld AND ts < %lld",
		 (long long)(r.from_ns / NS), (long long)(r.to_ns / NS));
	inside = fixture_sql_all(f, sql);
	sleep(1); /* the next one's name is of a later second */
	assert_int_equal(folder_turn(f->dir, name, &e), 0);
	fixture_close(fixture_writer(f, 0));
	assert_string_equal(name, hour);
	prune(f, bytes_of(f) - 1, INT64_MAX / 4);
	assert_int_equal(n_gone, 1);
	assert_string_equal(gone[0].segment, hour);
	assert_int_equal(fixture_sql_all(f, sql), inside);
	prune(f, bytes_of(f) - 1, INT64_MAX / 4);
	assert_int_equal(n_gone, 1);
	assert_true(folder_is_kept_name(gone[0].segment));
	prune(f, 1, INT64_MAX / 4); /* all but the newest */
	assert_int_equal(n_gone, (int)r.segments - 1);
}

STORE_TEST(a_kept_window_of_the_hour_in_use_goes_whole_and_what_it_hid_counts_again)
{
	struct fixture *f = *state;
	int64_t t = recorded(f, 1);
	struct answers before, after;
	struct keep_report r;

	ask(f, t, &before);
	r = keep(f, t + 35, t + 155, "a test");
	assert_true(r.segments > 1);
	prune(f, 1ull << 40, 1); /* by age alone nothing of this hour goes */
	assert_int_equal(n_gone, 0);
	prune(f, bytes_of(f) - 1, INT64_MAX / 4);
	assert_int_equal(n_gone, (int)r.segments);
	assert_int_equal(fixture_sql_all(f, COVERED), 0);
	ask(f, t, &after);
	assert_same(&before, &after);
}
