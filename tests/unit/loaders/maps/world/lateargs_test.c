/* SPDX-License-Identifier: Apache-2.0 */
/* lateargs: command lines of programs that have ended. */
#include "loaders/maps/world/lateargs.h"

#include <stdlib.h>
#include <string.h>

#include "schema/base/mem.h"
#include "tests/unit/test.h"

static struct lateargs_key key_of(uint32_t tgid)
{
	return (struct lateargs_key){.start_ns = 1000 + tgid, .tgid = tgid, .exec_id = 2};
}

static void keep(struct lateargs *l, uint32_t tgid, const char *data, size_t len, uint64_t now_ns)
{
	struct lateargs_key key = key_of(tgid);
	char *copy = mem_alloc(len + 1);

	memcpy(copy, data, len);
	lateargs_keep(l, &key, copy, len, now_ns);
}

static const char *found(const struct lateargs *l, uint32_t tgid, size_t *len)
{
	struct lateargs_key key = key_of(tgid);

	return lateargs_find(l, &key, len);
}

TEST(a_command_line_is_kept_until_its_time_is_over)
{
	struct lateargs l = {0};
	size_t len = 0;

	keep(&l, 7, "cc\0-c", 5, 100);
	keep(&l, 8, "ld", 2, 100 + LATEARGS_KEEP_NS / 2);
	assert_memory_equal(found(&l, 7, &len), "cc\0-c", 5);
	assert_int_equal(len, 5);
	lateargs_tick(&l, 100 + LATEARGS_KEEP_NS);
	assert_non_null(found(&l, 7, &len));
	lateargs_tick(&l, 101 + LATEARGS_KEEP_NS);
	assert_null(found(&l, 7, &len));
	assert_memory_equal(found(&l, 8, &len), "ld", 2);
	lateargs_release(&l);
	assert_int_equal(l.bytes, 0);
}

TEST(another_program_with_the_same_pid_has_its_own)
{
	struct lateargs_key other = key_of(7);
	struct lateargs l = {0};
	size_t len;

	keep(&l, 7, "cc", 2, 100);
	other.exec_id++;
	assert_null(lateargs_find(&l, &other, &len));
	keep(&l, 7, "again", 5, 100);
	assert_memory_equal(found(&l, 7, &len), "cc", 2);
	lateargs_release(&l);
}

TEST(the_oldest_make_room)
{
	static char large[4096];
	struct lateargs l = {0};
	size_t len;

	for (uint32_t i = 0; i < 3000; i++)
		keep(&l, i, large, sizeof(large), i);
	assert_true(l.bytes <= LATEARGS_MAX_BYTES);
	assert_null(found(&l, 0, &len));
	assert_non_null(found(&l, 2999, &len));
	lateargs_release(&l);
}
