/* SPDX-License-Identifier: Apache-2.0 */
/* lasting: which calls that have not returned have a row. */
#include "loaders/disk/lasting.h"

#include <linux/types.h>

#include "tests/unit/test.h"

static struct disk_syncing call(uint32_t pid, uint64_t ino, uint64_t begin_ns)
{
	return (struct disk_syncing){.begin_ns = begin_ns,
				     .key = {.who = {.tgid = pid}, .ino = ino, .call = DISK_FSYNC}};
}

static void add(struct lasting_list *l, uint32_t pid, uint64_t ino, uint64_t begin_ns)
{
	const struct disk_syncing x = call(pid, ino, begin_ns);

	lasting_add(l, &x);
}

TEST(threads_of_one_process_that_wait_for_one_file_are_one_row_with_the_longest)
{
	struct lasting_list l = {0};

	add(&l, 1, 7, 50);
	add(&l, 1, 7, 20);
	add(&l, 1, 7, 30);
	add(&l, 1, 8, 40);
	add(&l, 2, 7, 10);
	assert_int_equal(l.n, 3);
	assert_int_equal(l.v[0].calls, 3);
	assert_int_equal(l.v[0].longest.begin_ns, 20);
}

TEST(of_more_than_there_is_room_for_the_longest_stay)
{
	struct lasting_list l = {0};
	uint64_t latest = 0;

	for (uint32_t i = 0; i < 3 * LASTING_MOST; i++)
		add(&l, 1 + (i * 7) % (3 * LASTING_MOST), 1, 1000 + (i * 7) % (3 * LASTING_MOST));
	assert_int_equal(l.n, LASTING_MOST);
	for (size_t i = 0; i < l.n; i++)
		latest = l.v[i].longest.begin_ns > latest ? l.v[i].longest.begin_ns : latest;
	assert_int_equal(latest, 1000 + LASTING_MOST - 1);
}
