/* SPDX-License-Identifier: Apache-2.0 */
/* period: samples come at the rate that is wanted, whatever the number of page faults. */
#include "loaders/mem/period.h"

#include "schema/base/array.h"
#include "schema/base/clock.h"
#include "tests/unit/test.h"

TEST(a_steady_load_comes_to_the_rate_that_is_wanted)
{
	static const uint64_t loads[] = {2000, 20000, 500000};

	for (size_t k = 0; k < ARRAY_SIZE(loads); k++) {
		struct period p;
		uint64_t faults = 0;
		double samples = 0;
		uint32_t now = 0;

		period_init(&p, 0, 40, PERIOD_MIN);
		for (int i = 0; i < 200; i++) {
			now = period_next(&p, faults, (i + 1) * NSEC_PER_SEC);
			faults += loads[k];
			if (i >= 100)
				samples += (double)loads[k] / now;
		}
		assert_true(samples / 100 > 36 && samples / 100 < 44);
	}
}

TEST(few_faults_have_the_smallest_period_and_many_the_largest)
{
	struct period p;
	uint32_t now = 0;

	period_init(&p, 0, 40, PERIOD_MIN);
	for (int i = 0; i < 20; i++)
		now = period_next(&p, 0, (i + 1) * NSEC_PER_SEC);
	assert_true(now >= PERIOD_MIN * 3 / 4 && now <= PERIOD_MIN * 5 / 4);
	for (uint64_t i = 0; i < 20; i++)
		now = period_next(&p, i << 40, (int64_t)(i + 21) * NSEC_PER_SEC);
	assert_true(now >= PERIOD_MAX * 3 / 4 && now <= PERIOD_MAX * 5ull / 4);
}

TEST(a_burst_is_met_at_once_and_forgotten_slowly)
{
	struct period p;
	uint32_t before, after;

	period_init(&p, 0, 100, PERIOD_MIN);
	period_next(&p, 0, NSEC_PER_SEC);
	before = period_next(&p, 1000000, 2 * NSEC_PER_SEC);
	assert_true(before >= 7500 && before <= 12500);
	after = period_next(&p, 1000000, 3 * NSEC_PER_SEC);
	assert_true(after >= 3750 && after <= 6250);
}

TEST(a_period_that_was_asked_for_varies_around_it_and_one_is_exact)
{
	struct period p;
	double sum = 0;

	period_init(&p, 100, 40, PERIOD_MIN);
	for (int i = 0; i < 1000; i++) {
		uint32_t now = period_next(&p, (uint64_t)i * 100000, (i + 1) * NSEC_PER_SEC);

		assert_true(now >= 75 && now <= 125);
		sum += now;
	}
	assert_true(sum / 1000 > 97 && sum / 1000 < 103);
	period_init(&p, 1, 40, PERIOD_MIN);
	assert_int_equal(period_next(&p, 0, NSEC_PER_SEC), 1);
	assert_int_equal(period_next(&p, 1000000, 2 * NSEC_PER_SEC), 1);
}

TEST(where_nothing_happens_it_stays)
{
	struct period p;
	uint32_t first, now = 0;
	int changes = 0;

	period_init(&p, 0, 40, PERIOD_MIN);
	for (int i = 0; i < 20; i++)
		first = period_next(&p, 0, (i + 1) * NSEC_PER_SEC);
	for (int i = 20; i < 120; i++)
		assert_int_equal(period_next(&p, 0, (i + 1) * NSEC_PER_SEC), first);
	for (uint64_t i = 0; i < 1000; i++) {
		uint32_t before = now;

		now = period_next(&p, 10 * i, (int64_t)(i + 121) * NSEC_PER_SEC);
		changes += now != before;
	}
	assert_in_range(changes, 1000 * 10 / (PERIOD_DRAWS * PERIOD_MIN * 5 / 4) / 2,
			1000 * 10 / (PERIOD_DRAWS * PERIOD_MIN * 3 / 4) + 1);
}

TEST(of_rare_faults_each_is_a_sample_until_there_are_too_many)
{
	struct period p;
	uint32_t now = 0;
	uint64_t faults = 0;

	period_init(&p, 0, 100, 1);
	for (int i = 0; i < 20; i++, faults += 90) {
		now = period_next(&p, faults, (i + 1) * NSEC_PER_SEC);
		assert_int_equal(now, 1);
	}
	for (int i = 20; i < 40; i++, faults += 10000)
		now = period_next(&p, faults, (i + 1) * NSEC_PER_SEC);
	assert_true(now >= 75 && now <= 125);
}
