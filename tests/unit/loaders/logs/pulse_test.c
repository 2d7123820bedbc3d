/* SPDX-License-Identifier: Apache-2.0 */
/* What is worth an event. */
#include "loaders/logs/pulse.h"
#include "schema/base/clock.h"
#include "tests/unit/test.h"

#define S NSEC_PER_SEC

TEST(errors_beyond_the_usual_are_told_once)
{
	struct pulse p = {0};
	int64_t now = 100 * S;

	for (int i = 0; i < 20; i++, now += 10 * S) { /* one in ten seconds is usual */
		pulse_lines(&p, 50, 1, false);
		assert_int_equal(pulse_beat(&p, now), 0);
		pulse_clear(&p);
	}
	pulse_lines(&p, 50, 40, false);
	pulse_hit(&p, 3, 39);
	pulse_hit(&p, 4, 1);
	assert_int_equal(p.pattern, 3);
	assert_int_equal(pulse_beat(&p, now), PULSE_OF_ERRORS);
	pulse_clear(&p);
	pulse_lines(&p, 50, 400, true);
	assert_int_equal(pulse_beat(&p, now + 10 * S), PULSE_BURST);
}

TEST(a_source_that_just_began_has_no_usual_rate)
{
	struct pulse p = {0};

	pulse_lines(&p, 50, 40, false);
	assert_int_equal(pulse_beat(&p, 100 * S), 0);
}
