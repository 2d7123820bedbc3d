/* SPDX-License-Identifier: Apache-2.0 */
/* site: the rules of its header, by number. pressure: a folder takes the place of the cgroup's
 * files. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "loaders/goheap/pressure.h"
#include "loaders/goheap/site.h"
#include "tests/unit/test.h"

/* Cycle 4: published are active and future[1]; future[0] and future[2] are pending. */
static struct bucket memory(uint64_t size, uint64_t allocs, uint64_t frees, uint64_t later,
			    uint64_t later_frees)
{
	struct bucket b = {.kind = BUCKETS_MEMORY,
			   .size = size,
			   .record = 0xc000,
			   .cycle = 4,
			   .cycle_known = true};

	b.active = (struct bucket_amounts){allocs, frees, allocs * size, frees * size};
	b.future[0] = (struct bucket_amounts){later, later_frees, later * size, later_frees * size};
	return b;
}

static void read_memory(struct site *s, uint64_t allocs, uint64_t frees, uint64_t later,
			uint64_t later_frees)
{
	struct bucket b = memory(64, allocs, frees, later, later_frees);

	site_read(s, &b, 0);
}

static void assert_amounts(struct site_amounts a, uint64_t n, uint64_t value)
{
	assert_int_equal(a.n, n);
	assert_int_equal(a.value, value);
}

TEST(what_came_since_is_counted_once_with_what_is_pending)
{
	struct site s = {0};

	read_memory(&s, 10, 4, 3, 0);
	assert_amounts(site_since(&s), 13, 13 * 64);
	site_counted(&s);
	assert_amounts(site_since(&s), 0, 0);
	read_memory(&s, 13, 4, 2, 1); /* the three were published, two came */
	assert_amounts(site_since(&s), 2, 128);
}

TEST(what_was_there_before_is_the_base)
{
	struct site s = {0};

	read_memory(&s, 10, 4, 3, 0);
	site_base(&s);
	assert_amounts(site_since(&s), 0, 0);
	assert_amounts(site_standing(&s, false), 6, 6 * 64); /* it stays nevertheless */
	read_memory(&s, 15, 4, 0, 0);
	assert_amounts(site_since(&s), 2, 128);
}

TEST(in_use_is_what_is_published)
{
	struct site s = {0};

	read_memory(&s, 10, 4, 3, 1);
	assert_amounts(site_standing(&s, false), 6, 384);
	assert_amounts(site_standing(&s, true), 8, 512); /* nothing is published: all */
	read_memory(&s, 3, 5, 0, 0); /* more frees than allocations: zero, never negative */
	assert_amounts(site_standing(&s, false), 0, 0);
}

TEST(a_count_that_falls_tells_nothing_and_is_not_told_twice)
{
	struct site s = {0};

	read_memory(&s, 10, 0, 0, 0);
	site_counted(&s);
	read_memory(&s, 4, 0, 0, 0);
	assert_amounts(site_since(&s), 0, 0);
	site_counted(&s);
	read_memory(&s, 11, 0, 0, 0);
	assert_amounts(site_since(&s), 1, 64);
}

TEST(what_is_left_out_is_neither_counted_nor_in_use)
{
	struct site s = {0};

	read_memory(&s, 2, 0, 0, 0);
	site_leave_out(&s, UINT64_MAX);
	assert_amounts(site_since(&s), 0, 0);
	assert_amounts(site_standing(&s, false), 0, 0);
	read_memory(&s, 5, 0, 0, 0);
	assert_amounts(site_since(&s), 3, 192);
	assert_amounts(site_standing(&s, false), 3, 192);
	site_leave_out(&s, 1); /* of these three one */
	assert_amounts(site_since(&s), 2, 128);
	assert_amounts(site_standing(&s, false), 2, 128);
	read_memory(&s, 5, 4, 0, 0);
	site_leave_out(&s, 7); /* not more than there is */
	assert_amounts(site_since(&s), 0, 0);
	assert_amounts(site_standing(&s, false), 0, 0);
	read_memory(&s, 6, 4, 0, 0);
	assert_amounts(site_standing(&s, false), 1, 64);
}

TEST(waits_are_counts_and_nanoseconds)
{
	struct bucket b = {.kind = BUCKETS_MUTEX, .count = 7.9, .ticks = 3000};
	struct site s = {0};

	site_read(&s, &b, 0.5);
	assert_amounts(site_since(&s), 7, 1500);
	assert_amounts(site_standing(&s, false), 0, 0);
	site_counted(&s);
	b.count = -1; /* nonsense is nothing */
	b.ticks = INT64_MIN;
	site_read(&s, &b, 0.5);
	assert_amounts(site_since(&s), 0, 0);
}

TEST(a_size_that_overflows_is_no_small_number)
{
	struct bucket b = memory(UINT64_MAX / 2, 8, 0, 0, 0);
	struct site s = {0};

	site_read(&s, &b, 0);
	assert_int_equal(site_since(&s).value, UINT64_MAX);
	assert_int_equal(site_standing(&s, false).value, UINT64_MAX);
}

TEST(only_what_the_segment_lacks_is_news)
{
	struct site s = {0};

	assert_false(site_has_news(&s, false, 1));
	read_memory(&s, 0, 0, 2, 0);
	assert_true(site_has_news(&s, false, 1));
	site_counted(&s);
	s.told_in = 1;
	assert_false(site_has_news(&s, false, 1));
	read_memory(&s, 2, 0, 0, 0); /* published now: it stays */
	assert_true(site_has_news(&s, false, 1));
	s.standing = 2;
	assert_false(site_has_news(&s, false, 1));
	assert_true(site_has_news(&s, false, 2)); /* each segment is complete in itself */
	read_memory(&s, 2, 2, 0, 0);
	/* gone, which the loader must report where it was */
	assert_true(site_has_news(&s, false, 1));
	assert_false(site_has_news(&s, false, 2));
}

static void file_write(const char *dir, const char *name, const char *text)
{
	char path[512];
	FILE *f;

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	f = fopen(path, "w");
	assert_non_null(f);
	fputs(text, f);
	fclose(f);
}

TEST(the_nearest_limit_above_decides_what_is_near)
{
	char root[] = "/tmp/sonde-pressure-XXXXXX", outer[256], inner[256], line[600];

	assert_non_null(mkdtemp(root));
	snprintf(outer, sizeof(outer), "%s/outer", root);
	snprintf(inner, sizeof(inner), "%s/outer/inner", root);
	assert_int_equal(mkdir(outer, 0700), 0);
	assert_int_equal(mkdir(inner, 0700), 0);
	assert_false(pressure_near_at(root, "/outer/inner", true)); /* no files */
	file_write(inner, "memory.max", "max\n");
	file_write(inner, "memory.current", "900\n");
	file_write(outer, "memory.max", "1000\n");
	file_write(outer, "memory.current", "600\n");
	assert_false(pressure_near_at(root, "/outer/inner", true));
	file_write(outer, "memory.current", "701\n");
	assert_true(pressure_near_at(root, "/outer/inner", true));
	file_write(inner, "memory.limit_in_bytes", "9223372036854771712\n");
	file_write(inner, "memory.usage_in_bytes", "9223372036854771712\n");
	assert_false(pressure_near_at(root, "/outer/inner", false));
	assert_false(pressure_near_at(root, "/", true));
	assert_false(pressure_near_at(root, "", true));
	snprintf(line, sizeof(line), "rm -r %s", root);
	assert_int_equal(system(line), 0);
}
