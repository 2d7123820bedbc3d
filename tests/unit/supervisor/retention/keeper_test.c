/* SPDX-License-Identifier: Apache-2.0 */
/* keeper: what it reads of /proc/vmstat, the rates that go with a ring, and how windows join. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "supervisor/retention/keeper.h"
#include "tests/unit/test.h"

TEST(kills_for_memory_are_read_by_the_name_of_their_line)
{
	uint64_t n = 0;

	assert_true(keeper_oom_kills("nr_free_pages 5\noom_kill 17\nfoo 1\n", &n));
	assert_int_equal(n, 17);
	assert_true(keeper_oom_kills("oom_kill 3\n", &n));
	assert_int_equal(n, 3);
	assert_false(keeper_oom_kills("nr_oom_kill 4\nfoo 1\n", &n));
	assert_false(keeper_oom_kills("", &n));
}

TEST(what_waits_outlives_sonded)
{
	char dir[] = "/tmp/keeper-XXXXXX", ring[64], path[80];
	struct keeper k, next;
	struct err e = {0};

	assert_non_null(mkdtemp(dir));
	snprintf(ring, sizeof(ring), "%s/flight", dir);
	assert_int_equal(mkdir(ring, 0700), 0);
	keeper_init(&k, dir);
	keeper_follow(&k, true, 1 << 20);
	assert_int_equal(keeper_ask(&k, 60 * NSEC_PER_SEC, "the shop was slow", &e), 0);
	keeper_init(&next, dir);
	keeper_follow(&next, true, 1 << 20);
	assert_int_equal(next.next.from_ns, k.next.from_ns);
	assert_int_equal(next.next.to_ns, k.next.to_ns);
	assert_string_equal(next.next.why, "the shop was slow");
	keeper_release(&k);
	keeper_release(&next);
	snprintf(path, sizeof(path), "%s/pending", ring);
	assert_int_equal(unlink(path), 0);
	assert_int_equal(rmdir(ring), 0);
	assert_int_equal(rmdir(dir), 0);
}

TEST(the_store_has_the_rate_that_was_asked_for)
{
	struct keeper k;
	uint32_t share = 0;

	keeper_init(&k, "/nowhere");
	assert_int_equal(keeper_freq(&k, 19, &share), 0);
	keeper_follow(&k, true, 1 << 20);
	for (uint32_t coarse = 1; coarse < 400; coarse++) {
		uint32_t fine = keeper_freq(&k, coarse, &share);

		assert_int_equal(fine, coarse * share);
		assert_true(fine >= KEEPER_FREQ * 2 / 3);
		assert_true(coarse > KEEPER_FREQ ? share == 1 : fine <= KEEPER_FREQ * 3 / 2);
	}
	assert_int_equal(keeper_freq(&k, 19, &share), 95);
	keeper_release(&k);
}

TEST(what_is_asked_for_while_a_window_waits_extends_it)
{
	struct keeper k;
	struct err e = {0};
	int64_t end;

	keeper_init(&k, "/nowhere");
	assert_int_equal(keeper_ask(&k, 0, "x", &e), -2);
	assert_int_equal(e.exit, EXIT_NOTHING);
	keeper_follow(&k, true, 1 << 20);
	assert_int_equal(keeper_ask(&k, 60 * NSEC_PER_SEC, "first", &e), 0);
	end = k.next.to_ns;
	assert_true(end - k.next.from_ns == 60 * NSEC_PER_SEC);
	assert_int_equal(keeper_ask(&k, 0, "second", &e), 0);
	assert_true(k.next.to_ns >= end + KEEPER_AFTER_NS);
	assert_true(k.next.to_ns - k.next.from_ns >= KEEPER_BEFORE_NS);
	assert_int_equal(keeper_ask(&k, 0, "first", &e), 0);
	assert_string_equal(k.next.why, "first; second");
	assert_true(k.next.due_ns > clock_mono_ns());
	for (int i = 0; i < 10; i++)
		assert_int_equal(keeper_ask(&k, 0,
					    i % 2 ? "a reason that is not a short one" :
						    "another, not short",
					    &e),
				 0);
	assert_true(strlen(k.next.why) < sizeof(k.next.why));
	assert_true(k.next.due_ns <= k.next.latest_ns);
	k.next.latest_ns = 1; /* who asks again and again does not put it off */
	assert_int_equal(keeper_ask(&k, 0, "first", &e), 0);
	assert_int_equal(k.next.due_ns, 1);
	keeper_release(&k);
}

TEST(a_window_that_could_not_be_kept_joins_the_one_that_waits)
{
	struct keeper k;
	struct err e = {0};
	const int exit_1 = 1 << 8;

	keeper_init(&k, "/nowhere");
	keeper_follow(&k, true, 1 << 20);
	assert_int_equal(keeper_ask(&k, 300 * NSEC_PER_SEC, "first", &e), 0);
	k.now = k.next;
	k.next = (struct keeper_window){0};
	assert_int_equal(keeper_ask(&k, 60 * NSEC_PER_SEC, "second", &e), 0);
	keeper_ended(&k, exit_1);
	assert_int_equal(k.next.from_ns, k.now.from_ns);
	assert_string_equal(k.next.why, "second; first");
	for (int i = 1; i < 5; i++) {
		assert_true(k.next.to_ns != 0);
		k.now = k.next;
		k.next = (struct keeper_window){0};
		keeper_ended(&k, exit_1);
	}
	assert_int_equal(k.next.to_ns, 0); /* five times */
	keeper_release(&k);
}

TEST(a_reason_is_one_line_of_whole_characters)
{
	struct keeper k;
	struct err e = {0};
	char why[512] = "a\n";

	for (int i = 0; i < 200; i++)
		strcat(why, "\xc3\xa9");
	keeper_init(&k, "/nowhere");
	keeper_follow(&k, true, 1 << 20);
	assert_int_equal(keeper_ask(&k, INT64_MAX, why, &e), 0);
	assert_true(k.next.from_ns > 0);
	assert_int_equal(k.next.why[1], ' ');
	for (int i = 0; i < 2; i++) { /* the cut is before, or within, a character */
		json_t *o;

		k.next.to_ns = 0;
		assert_int_equal(keeper_ask(&k, 0, why + i, &e), 0);
		o = json_string(k.next.why);
		assert_non_null(o);
		json_decref(o);
	}
	keeper_release(&k);
}

TEST(of_each_cause_a_window_is_kept_once_an_hour_and_two_services_are_two_causes)
{
	struct keeper k;
	const int64_t hour = 3600 * NSEC_PER_SEC;

	keeper_init(&k, "/nowhere");
	keeper_follow(&k, true, 1 << 20);
	keeper_happened(&k, 1 << 30, "slow service a:1", "a:1 is slow");
	keeper_happened(&k, 1 << 30, "slow service b:2", "b:2 is slow");
	assert_string_equal(k.next.why, "a:1 is slow; b:2 is slow");
	k.next = (struct keeper_window){0};
	keeper_happened(&k, 1 << 30, "slow service a:1", "a:1 is slow again");
	assert_int_equal(k.next.to_ns, 0);
	for (int i = 0; i < 2; i++)
		k.causes[i].last_ns -= hour + 1;
	keeper_happened(&k, 1 << 30, "slow service b:2", "b:2 is slow again");
	assert_string_equal(k.next.why, "b:2 is slow again");
	keeper_release(&k);
}

static void file_of(const char *dir, int64_t utc_s, int number, off_t bytes, char path[128])
{
	struct tm tm;
	time_t t = (time_t)utc_s;
	char stamp[20];
	FILE *f;

	gmtime_r(&t, &tm);
	strftime(stamp, sizeof(stamp), "%Y%m%dT%H%M%SZ", &tm);
	snprintf(path, 128, "%s/%s-%04d.db", dir, stamp, number);
	f = fopen(path, "w");
	assert_non_null(f);
	assert_int_equal(ftruncate(fileno(f), bytes), 0);
	fclose(f);
}

TEST(what_windows_of_a_day_may_take_is_told_by_the_store_not_by_this_process)
{
	char dir[] = "/tmp/keeper-XXXXXX", ring[64], path[3][128], pending[80];
	const uint64_t budget = 8 << 20;
	int64_t now = clock_utc_ns() / NSEC_PER_SEC;
	struct keeper k;

	assert_non_null(mkdtemp(dir));
	snprintf(ring, sizeof(ring), "%s/flight", dir);
	assert_int_equal(mkdir(ring, 0700), 0);
	keeper_init(&k, dir);
	keeper_follow(&k, true, 1 << 20);
	file_of(dir, now - 100000, 5000, 2 << 20, path[0]); /* of yesterday */
	file_of(dir, now - 1000, 17, 2 << 20, path[1]);     /* no window */
	keeper_happened(&k, budget, "oom", "one");
	assert_string_equal(k.next.why, "one");
	k.next = (struct keeper_window){0};
	file_of(dir, now - 900, 5003, (1 << 20) + 1, path[2]);
	keeper_happened(&k, budget, "io pressure", "two");
	assert_int_equal(k.next.to_ns, 0);
	keeper_happened(&k, 2 * budget, "io pressure", "two");
	assert_string_equal(k.next.why, "two");
	keeper_release(&k);
	for (int i = 0; i < 3; i++)
		assert_int_equal(unlink(path[i]), 0);
	snprintf(pending, sizeof(pending), "%s/pending", ring);
	(void)unlink(pending);
	assert_int_equal(rmdir(ring), 0);
	assert_int_equal(rmdir(dir), 0);
}
