/* SPDX-License-Identifier: Apache-2.0 */
/* retention: what is removed, what stays, and that rows + removed rows + losses equal the events
 * made, whatever is killed at any moment. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "schema/base/clock.h"
#include "schema/store/retention/retention.h"
#include "tests/unit/schema/store/fixture.h"
#include "tests/unit/test.h"

#define PERIOD   10101010
#define SEGMENTS 6
/* blocks of a file just written change when the file system places them */
#define SLACK (256 << 10)

/* `n` segments of 1000 samples each, by one writer each: none joins what is of another boot. */
static void make_segments(const struct fixture *f, int n)
{
	for (int i = 0; i < n; i++) {
		struct store_writer *w;
		uint32_t run;

		fixture_segment_bytes(1 << 30);
		w = fixture_writer(f, 0);
		run = fixture_run(w, STORE_SCOPE_HOST, 1, PERIOD, T0_S * NS);
		for (uint32_t k = 0; k < 10; k++)
			fixture_add(w, run, 100 + k, k, (T0_S + 10 * i) * NS, 100);
		store_run_until(w, run, (T0_S + 10 * i + 1) * NS);
		fixture_close(w);
		for (size_t k = 0; *fixture_segment(f, k); k++)
			fixture_exec(fixture_segment(f, k),
				     "UPDATE meta SET value = 'another' WHERE key = 'boot_id'");
	}
}

static uint64_t removed_events(const struct fixture *f)
{
	struct removed_page p;
	uint64_t n = 0;

	assert_int_equal(removed_read(f->dir, &p), 0);
	for (uint32_t i = 0; i < p.n_families; i++)
		n += p.family[i].events + p.family[i].lost;
	return n;
}

static const struct retention_limits ROOM = {
	.bytes = 1ull << 40, .reserve_bytes = 1, .age_ns = INT64_MAX / 4};

static void run(const struct fixture *f, const struct retention_limits *l, bool dry,
		struct retention_report *r)
{
	struct err e = {0};

	if (retention_run(f->dir, l, dry, NULL, NULL, r, &e))
		fail_msg("%s", e.what);
}

static bool is_due(const struct fixture *f, const struct retention_limits *l)
{
	struct usage u, again;

	assert_int_equal(usage_measure(f->dir, &u), 0);
	again = u;
	assert_int_equal(usage_measure_again(f->dir, &again), 0);
	assert_in_range(again.bytes, u.bytes - SLACK, u.bytes + SLACK);
	assert_int_equal(again.segments, u.segments);
	return retention_is_due(f->dir, l, &u);
}

STORE_TEST(within_all_limits_nothing_goes)
{
	struct fixture *f = *state;
	struct retention_report r;

	make_segments(f, 3);
	assert_false(is_due(f, &ROOM));
	run(f, &ROOM, false, &r);
	assert_int_equal(r.removed, 0);
	assert_int_equal(fixture_files(f->dir, ".db"), 3);
}

STORE_TEST(over_the_budget_the_oldest_go_until_it_holds_and_each_sample_is_on_record)
{
	struct fixture *f = *state;
	struct retention_limits l = ROOM;
	struct retention_report r;
	struct removed_page p;
	char second[512];

	make_segments(f, SEGMENTS);
	run(f, &ROOM, true, &r);
	snprintf(second, sizeof(second), "%s", fixture_segment(f, 2));
	l.bytes = r.before.bytes - 1;
	assert_true(is_due(f, &l));
	run(f, &l, false, &r);
	assert_int_equal(r.removed, 1);
	assert_true(r.after.bytes <= l.bytes + SLACK);
	l.bytes = r.after.bytes - 1;
	run(f, &l, false, &r);
	assert_string_equal(fixture_segment(f, 0), second);
	assert_int_equal(removed_read(f->dir, &p), 0);
	assert_int_equal(p.segments, 2);
	assert_int_equal(p.uncounted, 0);
	assert_string_equal(p.family[0].name, "cpu");
	assert_int_equal(p.family[0].events, 2000);
	assert_int_equal(p.family[0].rows, 20);
	assert_int_equal(p.history_ns, (T0_S + 11) * NS);
	assert_int_equal(p.last[1].why, REMOVED_BUDGET);
	assert_int_equal(fixture_sql_all(f, "SELECT sum(n) FROM sample") +
				 (int64_t)removed_events(f),
			 SEGMENTS * 1000);
}

STORE_TEST(a_dry_run_says_the_same_and_removes_nothing)
{
	struct fixture *f = *state;
	struct retention_limits l = ROOM;
	struct retention_report dry, wet;

	make_segments(f, SEGMENTS);
	run(f, &l, true, &dry);
	l.bytes = dry.before.bytes - 1;
	run(f, &l, false, &wet); /* from here on the record itself is there */
	l.bytes = wet.after.bytes / 2;
	run(f, &l, true, &dry);
	assert_true(dry.removed > 0);
	assert_int_equal(fixture_files(f->dir, ".db"), SEGMENTS - 1);
	assert_true(dry.after.bytes <= l.bytes && !dry.unmet);
	run(f, &l, false, &wet);
	assert_int_equal(wet.removed, dry.removed);
}

STORE_TEST(a_disk_that_is_too_full_is_freed_whoever_filled_it)
{
	struct fixture *f = *state;
	struct retention_limits l = ROOM;
	struct retention_report r;

	make_segments(f, SEGMENTS);
	l.reserve_bytes = UINT64_MAX / 2;
	run(f, &l, false, &r);
	assert_int_equal(r.removed, SEGMENTS - 1);
	assert_int_equal(fixture_files(f->dir, ".db"), 1);
	assert_true(r.unmet & 1u << REMOVED_RESERVE);
}

STORE_TEST(what_is_older_than_the_age_goes_by_its_newest_row)
{
	struct fixture *f = *state;
	struct retention_limits l = ROOM;
	struct retention_report r;
	char old[512];

	make_segments(f, 3); /* its rows are of the year 2027; its names of now */
	l.age_ns = 1;
	run(f, &l, false, &r);
	assert_int_equal(r.removed, 0);
	snprintf(old, sizeof(old), "%s", fixture_segment(f, 0));
	fixture_exec(old, "UPDATE meta SET value = 1000000000 WHERE key = 't0'");
	run(f, &l, false, &r);
	assert_int_equal(r.removed, 1);
	assert_int_equal(access(old, F_OK), -1);
}

/* After its first removal another process does something. */
struct worker {
	const struct fixture *f;
	bool done;
};

static void come_between(void *ctx, const struct removed_one *o)
{
	const struct retention_limits all = {
		.bytes = 1, .reserve_bytes = 1, .age_ns = INT64_MAX / 4};
	struct worker *b = ctx;
	struct retention_report r;

	(void)o;
	if (b->done)
		return;
	b->done = true;
	run(b->f, &all, false, &r);
}

STORE_TEST(two_passes_at_once_count_each_segment_once)
{
	struct fixture *f = *state;
	const struct retention_limits all = {
		.bytes = 1, .reserve_bytes = 1, .age_ns = INT64_MAX / 4};
	struct worker b = {.f = f};
	struct retention_report r;
	struct removed_page p;
	struct err e = {0};

	make_segments(f, 5);
	assert_int_equal(retention_run(f->dir, &all, false, come_between, &b, &r, &e), 0);
	assert_int_equal(r.removed, 1);
	assert_int_equal(removed_read(f->dir, &p), 0);
	assert_int_equal(p.segments, 4);
	assert_int_equal(p.uncounted, 0);
	assert_int_equal(p.family[0].events, 4000);
}

STORE_TEST(the_newest_two_days_stay_however_old_they_are_unless_the_budget_needs_their_room)
{
	static const char *const names[] = {"20200101T100000Z-0001.db", "20200305T100000Z-0001.db",
					    "20200305T230000Z-0001.db", "20200417T000000Z-0001.db"};
	struct fixture *f = *state;
	struct retention_limits l = ROOM;
	struct retention_report r;
	char to[512];

	make_segments(f, 4);
	for (size_t i = 0; i < 4; i++) { /* by name, which keeps the order */
		snprintf(to, sizeof(to), "%s/%s", f->dir, names[i]);
		assert_int_equal(rename(fixture_segment(f, i), to), 0);
		fixture_exec(to, "UPDATE meta SET value = 1000000000 WHERE key = 't0'");
	}
	l.age_ns = 1;
	l.keep_days = 2;
	assert_true(is_due(f, &l));
	run(f, &l, false, &r);
	assert_int_equal(r.removed, 1);
	assert_string_equal(strrchr(fixture_segment(f, 0), '/') + 1, names[1]);
	assert_false(is_due(f, &l));
	run(f, &l, false, &r);
	assert_int_equal(r.removed, 0);
	l.keep_days = 1;
	run(f, &l, true, &r);
	assert_int_equal(r.removed, 2);
	l.bytes = 1;
	l.keep_days = 2;
	run(f, &l, false, &r);
	assert_int_equal(r.removed, 2); /* all but the newest segment */
}

STORE_TEST(a_segment_that_a_writer_needs_for_its_account_stays)
{
	struct fixture *f = *state;
	struct retention_limits l = {.bytes = 1, .reserve_bytes = 1, .age_ns = INT64_MAX / 4};
	struct retention_report r;
	struct store_writer *w;
	uint32_t run_id;
	char held[512];

	fixture_segment_bytes(1 << 30);
	w = fixture_writer(f, 0);
	run_id = fixture_run(w, STORE_SCOPE_HOST, 1, PERIOD, T0_S * NS);
	fixture_add(w, run_id, 100, 1, T0_S * NS, 7);
	store_flush(w);
	assert_true(fixture_wait_stored(w, 7));
	snprintf(held, sizeof(held), "%s", fixture_segment(f, 0));
	fixture_exec(held, "UPDATE meta SET value = 'another' WHERE key = 'boot_id'");
	make_segments(f, 3);
	run(f, &l, false, &r);
	assert_int_equal(
		r.removed,
		2); /* of four: not the newest, and not the one of the writer that sleeps */
	assert_int_equal(access(held, F_OK), 0);
	assert_true(r.unmet & 1u << REMOVED_BUDGET);
	fixture_close(w);
	run(f, &l, false, &r);
	assert_int_equal(access(held, F_OK), -1);
}

STORE_TEST(a_damaged_segment_goes_without_being_counted_and_quarantined_ones_go_first)
{
	struct fixture *f = *state;
	struct retention_limits l = ROOM;
	struct retention_report r;
	struct removed_page p;
	char path[512], bad[600];
	int fd;

	make_segments(f, 4);
	snprintf(path, sizeof(path), "%s", fixture_segment(f, 1));
	snprintf(bad, sizeof(bad), "%s.bad", path);
	assert_int_equal(rename(path, bad), 0);
	run(f, &l, true, &r);
	l.bytes = r.before.bytes - 1;
	run(f, &l, false, &r);
	assert_int_equal(r.removed, 1);
	assert_int_equal(access(bad, F_OK), -1);
	fd = open(fixture_segment(f, 0), O_WRONLY);
	assert_int_equal(pwrite(fd, "this is no database at all, not any more", 40, 0), 40);
	close(fd);
	l.bytes = 1;
	run(f, &l, false, &r);
	removed_read(f->dir, &p);
	assert_int_equal(p.segments, 3);
	assert_int_equal(p.uncounted, 2);
	assert_true(
		p.history_ns >=
		(clock_utc_ns() -
		 3600 * NSEC_PER_SEC)); /* they were of this hour, by the name of what follows */
	assert_int_equal(p.family[0].events, 1000);
}

/* Rule 2 of removed.h: killed at any moment, nothing is counted twice or not at all. */
STORE_TEST(a_kill_between_record_and_removal_counts_each_segment_once)
{
	struct fixture *f = *state;
	struct retention_limits l = {.bytes = 1, .reserve_bytes = 1, .age_ns = INT64_MAX / 4};
	struct retention_report r;

	for (int round = 0; round < 6; round++) {
		pid_t child;

		make_segments(f, 5);
		child = fork();
		if (!child) {
			retention_run(f->dir, &l, false, NULL, NULL, &r, NULL);
			_exit(0);
		}
		usleep((useconds_t)(300 * (1 << round)));
		kill(child, SIGKILL);
		waitpid(child, NULL, 0);
		run(f, &l, false, &r);
		assert_int_equal(fixture_sql_all(f, "SELECT sum(n) FROM sample") +
					 (int64_t)removed_events(f),
				 (round + 1) * 5000);
	}
}

/* A writer that is killed again and again, while retention leaves nothing but what is needed. */
STORE_TEST(rows_and_removed_rows_and_losses_are_the_events_made)
{
	struct fixture *f = *state;
	struct retention_limits l = {.bytes = 1, .reserve_bytes = 1, .age_ns = INT64_MAX / 4};
	struct retention_report r;
	const int rounds = getenv("SONDE_SOAK") ? 12 : 6;
	int64_t made = 0;

	for (int round = 0; round < rounds; round++) {
		int out[2];
		uint64_t n = 0;
		pid_t child;

		assert_int_equal(pipe(out), 0);
		child = fork();
		if (!child) {
			struct store_writer *w;
			uint32_t run_id;

			fixture_segment_bytes(200000);
			w = fixture_writer(f, 0);
			run_id = fixture_run(w, STORE_SCOPE_HOST, 1, PERIOD, T0_S * NS);
			for (uint64_t i = 1;; i++) {
				fixture_add(w, run_id, (uint32_t)(100 + i % 50),
					    (uint32_t)(i % 977), (T0_S + (int64_t)(i / 500)) * NS,
					    1);
				if (i % 50 == 0)
					store_flush(w);
				if (write(out[1], &i, sizeof(i)) != sizeof(i))
					_exit(1);
			}
		}
		close(out[1]);
		while (n < 900 + 400u * (uint64_t)round && read(out[0], &n, sizeof(n)) == sizeof(n))
			;
		run(f, &l, false, &r);
		kill(child, SIGKILL);
		waitpid(child, NULL, 0);
		while (read(out[0], &n, sizeof(n)) == sizeof(n))
			;
		close(out[0]);
		made += (int64_t)n;
		run(f, &l, false, &r); /* settles the killed one's account, too */
	}
	{
		int64_t kept = fixture_sql_all(f, "SELECT sum(n) FROM sample") +
			       fixture_sql_all(f, "SELECT coalesce(sum(n), 0) FROM loss_row");
		int64_t sum = kept + (int64_t)removed_events(f);

		/* the event being added when the kill came may be stored without having been
		 * counted */
		assert_in_range(sum, made, made + rounds);
		assert_true(removed_events(f) > 0);
	}
}
