/* SPDX-License-Identifier: Apache-2.0 */
/* Which single requests are stored. */
#include "loaders/disk/slow.h"
#include "tests/unit/test.h"

#define MS 1000000ull

static struct disk_slow request(unsigned minor, unsigned long long queue_ms,
				unsigned long long device_ms)
{
	return (struct disk_slow){
		.major = 8, .minor = minor, .queue_ns = queue_ms * MS, .device_ns = device_ms * MS};
}

static void add(struct slow *s, unsigned minor, unsigned long long queue_ms,
		unsigned long long device_ms)
{
	struct disk_slow r = request(minor, queue_ms, device_ms);

	slow_add(s, &r);
}

TEST(queue_and_device_time_together_make_a_request_slow)
{
	struct disk_slow out[SLOW_MOST];
	struct slow s = {0};

	add(&s, 0, 20, 29);
	add(&s, 0, 20, 30);
	assert_int_equal(slow_take(&s, out), 1);
	assert_int_equal(out[0].device_ns, 30 * MS);
	assert_int_equal(slow_take(&s, out), 0);
}

TEST(of_more_than_there_is_room_for_the_longest_stay)
{
	struct disk_slow out[SLOW_MOST];
	unsigned long long least = ~0ull;
	struct slow s = {0};

	for (unsigned i = 0; i < 3 * SLOW_MOST; i++)
		add(&s, 0, 0, 100 + i * 7 % (3 * SLOW_MOST));
	assert_int_equal(slow_take(&s, out), SLOW_MOST);
	for (size_t i = 0; i < SLOW_MOST; i++)
		least = out[i].device_ns < least ? out[i].device_ns : least;
	assert_int_equal(least, (100 + 2 * SLOW_MOST) * MS);
	assert_int_equal(s.dropped, 2 * SLOW_MOST);
}

TEST(a_minute_has_the_longest_of_each_device_that_had_no_slow_one)
{
	struct disk_slow out[SLOW_DEVICES];
	struct slow s = {0};

	add(&s, 0, 1, 2);
	add(&s, 0, 1, 5);
	add(&s, 0, 1, 3);
	add(&s, 16, 60, 1);
	add(&s, 16, 0, 1);
	add(&s, 32, 0, 1);
	assert_int_equal(slow_minute(&s, out), 2);
	assert_int_equal(out[0].minor, 0);
	assert_int_equal(out[0].device_ns, 5 * MS);
	assert_int_equal(out[1].minor, 32);
	assert_int_equal(slow_minute(&s, out), 0);
}
