/* SPDX-License-Identifier: Apache-2.0 */
/* Amounts: what is stored is read back, by SQL and by the reader; every loss is counted. */
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/wait.h>
#include <unistd.h>

#include "schema/store/model/hist.h"
#include "tests/unit/schema/store/fixture.h"
#include "tests/unit/test.h"

/* A series of process 100 in a stack of one function "at_<leaf>". */
static uint32_t series_of(struct store_writer *w, uint32_t run, uint32_t leaf, enum store_kind kind,
			  uint32_t label)
{
	struct store_process p = {.pid = 100,
				  .exec_id = 1,
				  .start_ns = T0_S * NS,
				  .start_ticks = 5,
				  .comm = "app",
				  .exe = "/bin/app",
				  .args = "app",
				  .cgroup = "/",
				  .unit = ""};
	struct store_image image = {.name = "app", .path = "/bin/app", .build_id = "", .key = ""};
	char name[16];
	struct store_function fn = {.name = name, .file = "app.c", .line = 1};
	struct store_frame frame = {.offset = 16 * leaf, .line = leaf};

	snprintf(name, sizeof(name), "at_%u", leaf);
	fn.image = frame.image = store_image(w, &image);
	frame.function = store_function(w, &fn);
	frame.image = fn.image;
	leaf = store_frame(w, &frame);
	return store_series_labelled(w, run, store_process(w, &p), "app", 100,
				     store_stack(w, &leaf, 1), kind, label);
}

static void amount(struct store_writer *w, uint32_t series, int64_t s, uint64_t n, uint64_t value)
{
	struct store_amount a = {.n = n, .value = value};

	assert_int_equal(store_amount(w, series, s * NS, &a), 0);
}

STORE_TEST(the_table_of_kinds_is_the_same_in_sql)
{
	struct fixture *f = *state;
	static const char *const classes[] = {[STORE_COUNTER] = "counter",
					      [STORE_GAUGE] = "gauge",
					      [STORE_DURATION] = "duration"};
	char sql[256];

	fixture_close(fixture_writer(f, 0));
	for (int i = 1; i < STORE_KINDS; i++) {
		const struct store_kind_info *k = store_kind_info((enum store_kind)i);

		assert_int_equal(k->kind, i);
		assert_ptr_equal(store_kind_named(k->name), k);
		assert_non_null(k->pprof_n);
		assert_non_null(k->pprof_value);
		assert_non_null(k->what);
		assert_non_null(k->words.verb);
		assert_non_null(k->words.began);
		assert_non_null(k->words.gone);
		snprintf(
			sql, sizeof(sql),
			"SELECT count(*) FROM kinds WHERE id = %d AND name = '%s' AND class = '%s' AND"
			" unit_n = '%s' AND unit_value = '%s'",
			i, k->name, classes[k->class], store_unit_name(k->unit_n),
			store_unit_name(k->unit_value));
		assert_int_equal(fixture_sql(fixture_segment(f, 0), sql), 1);
	}
	assert_int_equal(fixture_sql(fixture_segment(f, 0), "SELECT count(*) FROM kinds"),
			 STORE_KINDS - 1);
	assert_null(store_kind_info((enum store_kind)0));
	assert_null(store_kind_info((enum store_kind)STORE_KINDS));
	assert_null(store_kind_named("none"));
}

STORE_TEST(amounts_of_a_bucket_are_summed_over_batches_too)
{
	struct fixture *f = *state;
	struct store_writer *w = fixture_writer(f, 0);
	uint32_t run = fixture_run(w, STORE_SCOPE_HOST, 10, 0, T0_S * NS),
		 hist[12] = {[9] = 2, [11] = 1};
	struct store_amount a = {.n = 3,
				 .value = 3500,
				 .max = 2100,
				 .hist = hist,
				 .n_hist = 12,
				 .first_slot = HIST_FINE + 80};
	const char *seg;

	for (int i = 0; i < 4; i++) {
		assert_int_equal(store_amount(w, series_of(w, run, 1, STORE_KIND_OFFCPU, 0),
					      (T0_S + i) * NS, &a),
				 0);
		a.max = i == 1 ? 9999 : 1;
		a.hist = i == 2 ? NULL : hist; /* one that does not know */
		if (i % 2)
			store_flush(w);
	}
	amount(w, series_of(w, run, 1, STORE_KIND_OFFCPU, 0), T0_S + 10, 1, 7);
	amount(w, series_of(w, run, 1, STORE_KIND_OFFCPU, 77), T0_S, 1, 5);
	fixture_close(w);
	seg = fixture_segment(f, 0);
	assert_int_equal(fixture_sql(seg, "SELECT count(*) FROM amounts"), 3);
	assert_int_equal(
		fixture_sql(
			seg,
			"SELECT count(*) FROM amounts WHERE type = 'offcpu' AND function = 'at_1' AND"
			" file = 'app.c' AND line = 1 AND thread = 'app' AND pid = 100 AND n = 12 AND value = 14000 AND"
			" max = 9999 AND label = 0 AND rate = 0 AND hist = '[153,6,0,3]' AND ts % 10 = 0"),
		1);
	assert_int_equal(
		fixture_sql(seg, "SELECT n FROM amounts WHERE label = 77 AND hist IS NULL"), 1);
	assert_int_equal(
		fixture_sql(seg,
			    "SELECT n FROM amount_spread WHERE low = 11 << 10 AND high = 12 << 10"),
		3);
	assert_int_equal(fixture_sql(seg, "SELECT accounted FROM run"), 14);
}

STORE_TEST(a_series_is_counted_as_its_kind_says_only)
{
	struct store_writer *w = fixture_writer(*state, 0);
	uint32_t run = fixture_run(w, STORE_SCOPE_HOST, 1, 1000, T0_S * NS);
	struct store_amount a = {.n = 1};

	assert_int_equal(store_add(w, series_of(w, run, 1, STORE_KIND_ALLOC, 0), T0_S * NS, 1),
			 -EINVAL);
	assert_int_equal(store_amount(w, series_of(w, run, 1, STORE_KIND_CPU, 0), T0_S * NS, &a),
			 -EINVAL);
	assert_int_equal(store_amount(w, 0, T0_S * NS, &a), -ESTALE);
	assert_int_equal(store_amount(w, 999, T0_S * NS, &a), -ESTALE);
	fixture_close(w);
}

STORE_TEST(numbers_too_large_stop_at_the_largest)
{
	struct fixture *f = *state;
	struct store_writer *w = fixture_writer(f, 0);
	uint32_t run = fixture_run(w, STORE_SCOPE_HOST, 1, 0, T0_S * NS);

	amount(w, series_of(w, run, 1, STORE_KIND_ALLOC, 0), T0_S, 1, UINT64_MAX);
	amount(w, series_of(w, run, 1, STORE_KIND_ALLOC, 0), T0_S, 1, 5);
	fixture_close(w);
	assert_int_equal(fixture_sql_all(f, "SELECT value FROM amount"), INT64_MAX);
}

struct told {
	uint32_t rows;
	uint64_t value; /* of all rows */
	struct store_total last;
	uint64_t third; /* of the histogram */
};

static int tell(void *ctx, const struct store_total *t)
{
	struct told *x = ctx;

	x->rows++;
	x->value += t->value;
	x->last = *t;
	if (t->hist && t->hist->n > 2)
		x->third = t->hist->count[2];
	return 0;
}

static struct told totals(const struct fixture *f, enum store_kind kind, int64_t from_s,
			  int64_t to_s)
{
	struct store_query q = {.from_ns = from_s * NS, .to_ns = to_s * NS, .kind = kind};
	struct store_segment *s;
	struct told x = {0};

	assert_int_equal(store_segment_open(fixture_segment(f, 0), &s, NULL), 0);
	assert_int_equal(store_totals(s, &q, tell, &x, NULL), 0);
	store_segment_close(s);
	return x;
}

STORE_TEST(the_reader_sums_a_kind_over_its_range)
{
	struct fixture *f = *state;
	struct store_writer *w = fixture_writer(f, 0);
	uint32_t run = fixture_run(w, STORE_SCOPE_HOST, 1, 0, T0_S * NS), hist[3] = {1, 2, 3};
	struct store_amount a = {.n = 6, .value = 24, .max = 7, .hist = hist, .n_hist = 3};
	struct store_segment *s;
	uint32_t kinds = 0;
	struct told x;

	for (int i = 0; i < 10; i++) {
		a.max = 7 + (uint64_t)(i == 5);
		assert_int_equal(store_amount(w, series_of(w, run, 1, STORE_KIND_RUNQUEUE, 3),
					      (T0_S + i) * NS, &a),
				 0);
		amount(w, series_of(w, run, 1, STORE_KIND_OFFCPU, 0), T0_S + i, 1, 1);
	}
	fixture_close(w);
	x = totals(f, STORE_KIND_RUNQUEUE, T0_S + 2, T0_S + 8);
	assert_int_equal(x.rows, 1);
	assert_int_equal(x.last.n, 36);
	assert_int_equal(x.last.value, 144);
	assert_int_equal(x.last.whole_n, 36);
	assert_int_equal(x.last.max, 8);
	assert_int_equal(x.last.label, 3);
	assert_int_equal(x.third, 18);
	assert_int_equal(totals(f, STORE_KIND_ALLOC, 0, INT64_MAX / NS).rows, 0);
	assert_int_equal(totals(f, STORE_KIND_CPU, 0, INT64_MAX / NS).rows, 0);
	assert_int_equal(store_segment_open(fixture_segment(f, 0), &s, NULL), 0);
	assert_int_equal(store_kinds_in(s, 0, INT64_MAX, 0, &kinds, NULL), 0);
	assert_int_equal(kinds, 1u << STORE_KIND_OFFCPU | 1u << STORE_KIND_RUNQUEUE);
	assert_int_equal(store_kinds_in(s, (T0_S + 20) * NS, INT64_MAX, 0, &kinds, NULL), 0);
	assert_int_equal(kinds, 0);
	store_segment_close(s);
}

STORE_TEST(two_captures_at_once_are_not_counted_twice)
{
	struct fixture *f = *state;
	struct store_writer *w = fixture_writer(f, 0);
	uint32_t coarse = fixture_run(w, STORE_SCOPE_HOST, 10, 0, T0_S * NS);
	uint32_t fine = fixture_run(w, STORE_SCOPE_HOST, 1, 0, (T0_S + 23) * NS);
	struct told x;

	for (int64_t s = 0; s < 60; s++) {
		amount(w, series_of(w, coarse, 1, STORE_KIND_OFFCPU, 0), T0_S + s, 1, 10);
		if (s >= 23 && s < 47)
			amount(w, series_of(w, fine, 1, STORE_KIND_OFFCPU, 0), T0_S + s, 1, 11);
	}
	store_run_until(w, fine, (T0_S + 47) * NS);
	store_run_until(w, coarse, (T0_S + 60) * NS);
	fixture_close(w);
	x = totals(f, STORE_KIND_OFFCPU, T0_S - 10,
		   T0_S + 70); /* the coarse run covers the whole window: it is taken */
	assert_int_equal(x.rows, 1);
	assert_int_equal(x.value, 600);
	x = totals(f, STORE_KIND_OFFCPU, T0_S + 24, T0_S + 46); /* the fine one does */
	assert_int_equal(x.rows, 1);
	assert_int_equal(x.value, 22 * 11);
	/* by buckets: the fine run has the one bucket of the coarse run that it covers wholly, 30
	 * to 40 */
	assert_int_equal(fixture_sql_all(f, "SELECT sum(n) FROM amounts"), 60);
	assert_int_equal(fixture_sql_all(f, "SELECT sum(value) FROM amounts"), 610);
	assert_int_equal(fixture_sql_all(f, "SELECT sum(n) FROM amounts WHERE run_id = 2"), 10);
}

/* Go: runtime/pprof scales each record by 1 / (1 - exp(-size / rate)). */
STORE_TEST(a_sample_by_size_is_scaled_by_the_rate_in_force)
{
	struct fixture *f = *state;
	struct store_writer *w = fixture_writer(f, 0);
	uint32_t run = fixture_run(w, STORE_SCOPE_HOST, 1, 0, T0_S * NS), series, process;
	double scale = 1 / (1 - exp(-1024.0 / 524288)), later = 1 / (1 - exp(-1024.0 / 4096));
	const struct store_dict *d;
	struct store_segment *s;
	struct told x;

	series = series_of(w, run, 1, STORE_KIND_ALLOC, 1024);
	process = 1;                  /* the only one */
	for (int i = 0; i < 3; i++) { /* told with each reading, stored when it changes */
		store_rate(w, run, process, (T0_S + i) * NS, 524288);
		amount(w, series, T0_S + i, 10, 10240);
		store_flush(w);
	}
	store_rate(w, run, process, (T0_S + 5) * NS, 4096);
	amount(w, series, T0_S + 5, 10, 10240);
	fixture_close(w);
	assert_int_equal(fixture_sql_all(f, "SELECT count(*) FROM rate_row"), 2);
	assert_int_equal(
		fixture_sql_all(f,
				"SELECT sum(rate = 524288) * 10 + sum(rate = 4096) FROM amounts"),
		31);
	x = totals(f, STORE_KIND_ALLOC, T0_S, T0_S + 60);
	assert_int_equal(x.last.n, 40);
	assert_int_equal(x.last.value, 40960);
	assert_int_equal(x.last.whole_n, llround(30 * scale + 10 * later));
	assert_int_equal(x.last.whole_value, llround(30720 * scale + 10240 * later));
	assert_int_equal(store_segment_open(fixture_segment(f, 0), &s, NULL), 0);
	assert_int_equal(store_segment_dict(s, &d, NULL), 0);
	assert_int_equal(store_rate_at(s, 1, 1, (T0_S + 4) * NS), 524288);
	assert_int_equal(store_rate_at(s, 1, 1, INT64_MAX), 4096);
	assert_int_equal(store_rate_at(s, 1, 1, (T0_S - 1) * NS), 0);
	assert_int_equal(store_rate_at(s, 1, 2, INT64_MAX), 0);
	x = totals(f, STORE_KIND_ALLOC, T0_S, T0_S + 3);
	assert_int_equal(x.last.whole_n, llround(30 * scale));
	store_segment_close(s);
}

STORE_TEST(a_disk_that_stalls_costs_amounts_that_are_counted)
{
	struct fixture *f = *state;
	struct store_writer *w = fixture_writer(f, 1024 * 1024);
	uint32_t run = fixture_run(w, STORE_SCOPE_HOST, 1, 0, T0_S * NS);
	uint64_t epoch = store_gauge_epoch(w);
	struct store_writer_stat st;
	char path[128];
	int fd;

	snprintf(path, sizeof(path), "%s/lock", f->dir);
	fd = open(path, O_RDWR | O_CLOEXEC);
	assert_int_equal(flock(fd, LOCK_EX), 0); /* no process can write now */
	for (uint32_t i = 0; i < 60000; i++) {
		struct store_amount a = {.n = 2, .value = 100};

		while (store_amount(w, series_of(w, run, i % 500, STORE_KIND_MUTEX, 0),
				    (T0_S + i / 100) * NS, &a) == -ESTALE)
			;
		if (i % 1000 == 999)
			store_flush(w);
	}
	store_writer_stat(w, &st);
	assert_true(st.waiting_bytes < 2 * 1024 * 1024);
	assert_true(st.dropped > 0);
	assert_true(store_gauge_epoch(w) > epoch);
	close(fd);
	fixture_close(w);
	assert_int_equal(
		fixture_sql_all(f, "SELECT sum(n) FROM amount") +
			fixture_sql_all(f, "SELECT sum(lost) FROM loss WHERE reason = 'store'"),
		120000);
	assert_int_equal(fixture_sql_all(f, "SELECT accounted FROM run"), 120000);
}

STORE_TEST(a_writer_that_is_killed_leaves_whole_batches_and_the_rest_is_counted)
{
	struct fixture *f = *state;
	uint64_t seen = 0, got;
	int fds[2], status;

	assert_int_equal(pipe(fds), 0);
	for (int round = 0; round < 8; round++) {
		pid_t child = fork();

		if (!child) {
			struct store_writer *w = fixture_writer(f, 0);
			uint32_t run = fixture_run(w, STORE_SCOPE_HOST, 1, 0, T0_S * NS);

			for (uint32_t i = 0; i < 2000; i++) {
				amount(w, series_of(w, run, i % 50, STORE_KIND_OFFCPU, 0),
				       T0_S + i / 50, 3, 300);
				amount(w, series_of(w, run, i % 50, STORE_KIND_INUSE, 0),
				       T0_S + i / 50, 1000, 1);
				if (i % 100 == 99)
					store_flush(w);
			}
			got = 2000 * 4;
			if (write(fds[1], &got, sizeof(got)) != sizeof(got))
				_exit(1);
			kill(getpid(), SIGKILL);
		}
		assert_int_equal(waitpid(child, &status, 0), child);
		assert_int_equal(read(fds[0], &got, sizeof(got)), sizeof(got));
		seen += got;
	}
	close(fds[0]);
	close(fds[1]);
	fixture_close(fixture_writer(f, 0)); /* books what the last one held */
	assert_int_equal(fixture_sql_all(f, "SELECT sum(accounted) FROM run"), seen);
	/* a gauge's amount is one event whatever it says, and here each bucket has one of each
	 * series */
	assert_int_equal(
		fixture_sql_all(
			f,
			"SELECT sum(iif(t.kind = 5, 1, x.n)) FROM amount x JOIN series e ON e.id = x.series"
			" JOIN task t ON t.id = e.task") +
			fixture_sql_all(
				f,
				"SELECT coalesce(sum(lost), 0) FROM loss WHERE reason = 'killed'"),
		seen);
	assert_int_equal(
		fixture_sql_all(
			f,
			"SELECT count(*) FROM (SELECT run, count(*) AS rows FROM amount x JOIN series e"
			" ON e.id = x.series JOIN task t ON t.id = e.task GROUP BY run HAVING rows % 200)"),
		0);
	assert_int_equal(
		fixture_sql_all(
			f,
			"SELECT count(*) FROM pragma_integrity_check WHERE integrity_check <> 'ok'"),
		0);
}
