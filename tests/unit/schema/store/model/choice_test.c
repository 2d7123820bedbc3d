/* SPDX-License-Identifier: Apache-2.0 */
/* choice: two captures at once count nothing twice and lose nothing; and the views say the same as
 * the C. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "schema/store/model/choice.h"
#include "tests/unit/schema/store/fixture.h"
#include "tests/unit/test.h"

#define HZ(n) ((uint64_t)(NS / (n)))

static struct choice_run run(enum store_scope scope, uint32_t bucket_s,
			     struct choice_period *period, double from_s, double to_s)
{
	return (struct choice_run){.present = true,
				   .scope = scope,
				   .bucket_s = bucket_s,
				   .periods = period,
				   .n_periods = 1,
				   .from_ns = T0_S * NS + (int64_t)(from_s * 1e9),
				   .to_ns = T0_S * NS + (int64_t)(to_s * 1e9)};
}

TEST(a_coarse_bucket_covered_in_part_comes_from_the_coarse_run)
{
	struct choice_period hz99 = {0, HZ(99)}, hz499 = {0, HZ(499)};
	struct choice_run runs[3] = {{0},
				     run(STORE_SCOPE_HOST, 10, &hz99, 0, 600),
				     run(STORE_SCOPE_HOST, 1, &hz499, 103, 125)};
	struct choice c;

	choice_init(&c, runs, 3, 2);
	assert_true(choice_takes(&c, 1, 1, T0_S + 100));
	assert_false(choice_takes(&c, 1, 1, T0_S + 110));
	assert_true(choice_takes(&c, 1, 1, T0_S + 120));
	assert_false(choice_takes(&c, 2, 1, T0_S + 109));
	assert_true(choice_takes(&c, 2, 1, T0_S + 110));
	assert_true(choice_takes(&c, 2, 1, T0_S + 119));
	assert_false(choice_takes(&c, 2, 1, T0_S + 120));
	choice_release(&c);
}

TEST(a_window_inside_one_finer_run_takes_that_run)
{
	struct choice_period hz99 = {0, HZ(99)}, hz499 = {0, HZ(499)};
	struct choice_run runs[3] = {{0},
				     run(STORE_SCOPE_HOST, 10, &hz99, 0, 600),
				     run(STORE_SCOPE_HOST, 1, &hz499, 103, 125)};
	struct choice c;

	choice_init(&c, runs, 3, 2);
	choice_window(&c, (T0_S + 104) * NS, (T0_S + 109) * NS);
	assert_true(choice_takes(&c, 2, 1, T0_S + 104));
	assert_false(choice_takes(&c, 1, 1, T0_S + 100));
	choice_window(&c, (T0_S + 90) * NS, (T0_S + 109) * NS);
	assert_false(choice_takes(&c, 2, 1, T0_S + 104));
	assert_true(choice_takes(&c, 1, 1, T0_S + 100));
	choice_release(&c);
}

TEST(a_narrow_run_hides_no_other_process)
{
	struct choice_period hz99 = {0, HZ(99)}, hz499 = {0, HZ(499)};
	struct choice_run runs[3] = {{0},
				     run(STORE_SCOPE_HOST, 10, &hz99, 0, 600),
				     run(STORE_SCOPE_NARROW, 1, &hz499, 100, 130)};
	struct choice c;

	choice_init(&c, runs, 3, 3);
	choice_has(&c, 2, 1);
	assert_false(choice_takes(&c, 1, 1, T0_S + 110));
	assert_true(choice_takes(&c, 2, 1, T0_S + 111));
	assert_true(choice_takes(&c, 1, 2, T0_S + 110));
	choice_release(&c);
}

TEST(a_partial_run_yields_to_one_that_covers_the_process)
{
	struct choice_period hz99 = {0, HZ(99)}, hz499 = {0, HZ(499)};
	struct choice_run runs[3] = {{0},
				     run(STORE_SCOPE_HOST, 10, &hz99, 0, 120),
				     run(STORE_SCOPE_PARTIAL, 1, &hz499, 100, 130)};
	struct choice c;

	choice_init(&c, runs, 3, 2);
	choice_has(&c, 2, 1);
	assert_true(choice_takes(&c, 1, 1, T0_S + 110));
	assert_false(choice_takes(&c, 2, 1, T0_S + 110));
	assert_true(choice_takes(&c, 2, 1, T0_S + 120));
	choice_release(&c);
}

TEST(a_change_of_period_holds_from_its_bucket_on)
{
	struct choice_period periods[2] = {{0, 100}, {(T0_S + 10) * NS, 50}};
	struct choice_run r = {.periods = periods, .n_periods = 2};

	assert_int_equal(choice_period(&r, T0_S), 100);
	assert_int_equal(choice_period(&r, T0_S + 9), 100);
	assert_int_equal(choice_period(&r, T0_S + 10), 50);
}

/* --- against the views: random runs, each busy process sampled in each bucket --- */

#define N_RUNS      5
#define N_PROCESSES 3
#define SPAN        60

static uint32_t rnd(uint64_t *s, uint32_t n)
{
	*s = *s * 6364136223846793005ull + 1442695040888963407ull;
	return (uint32_t)(*s >> 33) % n;
}

static void fill_random(const struct fixture *f, uint64_t seed)
{
	static const uint32_t widths[] = {1, 1, 2, 5, 10};
	struct store_writer *w = fixture_writer(f, 0);
	/* another family that ran for longer: so that no run covers the whole window, which the
	 * views know nothing of */
	struct store_run anchor = {
		.family = "other", .options = "", .bucket_s = 1, .from_ns = (T0_S - 10) * NS};

	store_run_until(w, store_run_begin(w, &anchor), (T0_S + 1000) * NS);
	for (int i = 0; i < N_RUNS; i++) {
		enum store_scope scope = (enum store_scope)(rnd(&seed, 4) % 3);
		uint32_t width = widths[rnd(&seed, 5)];
		int64_t from_ns = T0_S * NS + (int64_t)rnd(&seed, SPAN * 2) * NS / 2;
		int64_t to_ns = from_ns + NS / 2 + (int64_t)rnd(&seed, SPAN * 2) * NS / 2;
		uint32_t r = fixture_run(w, scope, width, HZ(99 * (1 + rnd(&seed, 3))), from_ns);
		uint32_t mask = scope == STORE_SCOPE_HOST ? 7 : 1 + rnd(&seed, 7);

		for (int64_t t = from_ns; t < to_ns; t += NS / 2)
			for (uint32_t p = 0; p < N_PROCESSES; p++)
				if (mask & 1u << p)
					fixture_add(w, r, 100 + p, p, t, 1);
		store_run_until(w, r, to_ns);
	}
	fixture_close(w);
}

TEST(the_views_choose_as_the_c_does)
{
	const uint64_t seeds = getenv("SONDE_SOAK") ? 60 : 20;

	for (uint64_t seed = 1; seed <= seeds; seed++) {
		struct fixture f;

		fixture_make(&f);
		fill_random(&f, seed);
		for (uint32_t pid = 100; pid < 100 + N_PROCESSES; pid++) {
			struct fixture_sums sums = {.pid = pid};
			char sql[128];

			assert_int_equal(fixture_totals(f.dir, 0, INT64_MAX, &sums, NULL), 0);
			snprintf(sql, sizeof(sql),
				 "SELECT sum(cpu_ns) FROM cpu_samples WHERE pid = %u", pid);
			assert_int_equal(sums.cpu_ns, fixture_sql(fixture_segment(&f, 0), sql));
		}
		fixture_remove(&f);
	}
}
