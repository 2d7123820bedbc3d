/* SPDX-License-Identifier: Apache-2.0 */
/* sealer: what is due, and when it waits. tests/e2e/sonded/test_sonded_seal.py tests what it does,
 * with a running sonded. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "schema/base/array.h"
#include "schema/base/clock.h"
#include "supervisor/retention/sealer.h"
#include "tests/unit/test.h"

#define MIB (1ull << 20)

static char dir[64];

static int set_up(void **state)
{
	(void)state;
	snprintf(dir, sizeof(dir), "/tmp/sealer-XXXXXX");
	return mkdtemp(dir) ? 0 : -1;
}

static int tear_down(void **state)
{
	char command[96];

	(void)state;
	snprintf(command, sizeof(command), "rm -r %s", dir);
	return system(command);
}

static void make(const char *name, off_t size)
{
	char path[128];
	FILE *f;

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	f = fopen(path, "w");
	assert_non_null(f);
	assert_int_equal(ftruncate(fileno(f), size), 0);
	fclose(f);
}

static struct retain store_of(uint64_t budget, uint64_t bytes, uint64_t free_bytes)
{
	struct retain r = {.store = dir, .limits = {.bytes = budget, .reserve_bytes = 100 * MIB}};

	r.use.bytes = bytes;
	r.use.free_bytes = free_bytes;
	return r;
}

static const char *state_with(struct retain *r)
{
	struct sealer s;
	const char *state;

	sealer_init(&s, dir);
	sealer_follow(&s, true, 1, 0);
	s.look_ns = 0;
	sealer_tick(&s, r);
	state = s.state;
	assert_int_equal(s.pass.pid, 0);
	sealer_release(&s);
	return state;
}

TEST_WITH(a_short_disk_makes_it_wait_and_a_full_budget_asks_for_room, set_up, tear_down)
{
	struct retain short_disk = store_of(800 * MIB, 100 * MIB, 110 * MIB),
		      full = store_of(800 * MIB, 690 * MIB, 1000 * MIB);

	make("20260115T100000Z-0001.db", 300 * MIB);
	make("20260115T110000Z-0001.db",
	     300 * MIB); /* the newest stay rows, those of two hours even more */
	make("20260115T115000Z-0001.db", 60 * MIB);
	assert_non_null(strstr(state_with(&short_disk), "disk"));
	assert_int_equal(short_disk.kept_free, 0);
	assert_non_null(strstr(state_with(&full), "budget"));
	assert_int_equal(full.kept_free, 375 * MIB); /* the file, and a quarter of it */
	full.limits.bytes = 700 * MIB;               /* at most half of it */
	state_with(&full);
	assert_int_equal(full.kept_free, 350 * MIB);
}

TEST_WITH(the_newest_up_to_a_quarter_of_the_budget_are_no_work, set_up, tear_down)
{
	struct retain r = store_of(800 * MIB, 100 * MIB, 1000 * MIB);

	make("20260115T100000Z-0001.db", 100 * MIB);
	make("20260115T110000Z-0001.db", 100 * MIB);
	make("20260115T115000Z-0001.db", 60 * MIB);
	assert_string_equal(state_with(&r), "nothing to do");
}

TEST_WITH(one_that_is_off_does_nothing, set_up, tear_down)
{
	struct retain r = store_of(800 * MIB, 100 * MIB, 1000 * MIB);
	struct sealer s;

	make("20260115T100000Z-0001.db", 60 * MIB);
	make("20260115T115000Z-0001.db", 60 * MIB);
	sealer_init(&s, dir);
	sealer_follow(&s, false, 1, 0);
	s.look_ns = 0;
	sealer_tick(&s, &r);
	assert_string_equal(s.state, "off");
	assert_int_equal(s.pass.pid, 0);
	sealer_release(&s);
}

/* In how many minutes it looks again, after a pass that ended so. */
static int64_t minutes_after(struct sealer *s, int status, const char *said)
{
	strbuf_reset(&s->pass.out);
	strbuf_add(&s->pass.out, said, strlen(said));
	s->look_ns = 0;
	sealer_ended(s, status);
	return s->look_ns ? (s->look_ns - clock_mono_ns() + NSEC_PER_SEC) / (60 * NSEC_PER_SEC) : 0;
}

TEST_WITH(a_pass_that_fails_again_is_tried_later_each_time, set_up, tear_down)
{
	static const int64_t minutes[] = {1, 2, 4, 8, 16, 32, 60, 60, 60};
	struct sealer s;

	sealer_init(&s, dir);
	sealer_follow(&s, true, 1, 0);
	for (size_t i = 0; i < ARRAY_SIZE(minutes); i++) {
		assert_int_equal(minutes_after(&s, 1 << 8, ""), minutes[i]);
		assert_string_equal(s.state, "failed");
	}
	assert_int_equal(minutes_after(&s, 0, "{}"), 0);
	assert_string_equal(s.state, "nothing to do");
	assert_int_equal(minutes_after(&s, 9, ""), 1);
	sealer_release(&s);
}
