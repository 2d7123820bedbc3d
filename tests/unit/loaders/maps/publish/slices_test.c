/* SPDX-License-Identifier: Apache-2.0 */
/* slices: equal sets of mappings are stored once, each process holds a reference, and the last one
 * frees the room. */
#include <stdlib.h>
#include <string.h>

#include <linux/types.h>

#include "loaders/maps/publish/slices.h"
#include "loaders/maps/publish/slots.h"
#include "probes/lib/tables.h"
#include "tests/unit/test.h"

#define GRACE    100
#define ELEMENTS 100

static uint64_t memory[ELEMENTS];
static struct slices s;

static int set_up(void **state)
{
	(void)state;
	memset(memory, 0, sizeof(memory));
	slices_init(&s, memory, ELEMENTS, GRACE);
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	slices_release(&s);
	return 0;
}

/* `n` mappings, told apart by `tag`. */
static const uint64_t *words(uint32_t n, uint64_t tag)
{
	static uint64_t w[ELEMENTS];

	for (size_t i = 0; i < slices_words(n); i++)
		w[i] = tag * 1000 + i;
	return w;
}

TEST_WITH(equal_sets_stand_once_until_the_last_reference_goes, set_up, tear_down)
{
	struct slice *a = slices_get(&s, words(3, 1), 3), *b = slices_get(&s, words(3, 1), 3);
	struct slice *c = slices_get(&s, words(3, 2), 3);

	assert_ptr_equal(a, b);
	assert_ptr_not_equal(a, c);
	assert_int_equal(a->refs, 2);
	assert_memory_equal(memory + a->first, words(3, 1), slices_words(3) * 8);
	assert_memory_equal(memory + c->first, words(3, 2), slices_words(3) * 8);
	assert_int_equal(s.arena.used, 2 * slices_words(3));
	slices_put(&s, a, 10);
	assert_int_equal(s.arena.used, 2 * slices_words(3));
	slices_put(&s, b, 10);
	assert_int_equal(s.arena.used, slices_words(3));
	slices_put(&s, c, 10);
	assert_int_equal(s.arena.used, 0);
	slices_put(&s, NULL, 10);
}

TEST_WITH(what_a_late_reader_may_look_at_is_not_written_over, set_up, tear_down)
{
	struct slice *a = slices_get(&s, words(10, 1), 10), *b = slices_get(&s, words(10, 2), 10);
	uint32_t first = a->first;

	assert_null(slices_get(&s, words(1, 3), 1));
	slices_put(&s, a, 1000);
	assert_null(slices_get(&s, words(1, 3), 1));
	arena_tick(&s.arena, 1000 + GRACE - 1);
	assert_null(slices_get(&s, words(1, 3), 1));
	assert_memory_equal(memory + first, words(10, 1), slices_words(10) * 8);
	arena_tick(&s.arena, 1000 + GRACE);
	a = slices_get(&s, words(1, 3), 1);
	assert_non_null(a);
	assert_int_equal(a->first, first);
	slices_put(&s, a, 2000);
	slices_put(&s, b, 2000);
}

TEST_WITH(two_sets_of_one_hash_are_both_there, set_up, tear_down)
{
	struct slice *a = slices_get(&s, words(2, 1), 2), *b;
	uint64_t taken;

	/* give the first set the hash that the second will have */
	b = slices_get(&s, words(2, 2), 2);
	taken = b->hash;
	slices_put(&s, b, 0);
	HASH_DEL(s.by_hash, a);
	a->hash = taken;
	HASH_ADD(hh, s.by_hash, hash, sizeof(a->hash), a);
	b = slices_get(&s, words(2, 2), 2);
	assert_ptr_not_equal(a, b);
	assert_int_equal(b->hash, taken + 1);
	assert_memory_equal(memory + b->first, words(2, 2), slices_words(2) * 8);
	assert_ptr_equal(slices_get(&s, words(2, 2), 2), b);
}

TEST_WITH(what_a_predecessor_wrote_is_taken_where_it_lies, set_up, tear_down)
{
	struct slice *a, *b;

	memcpy(memory + 20, words(4, 7), slices_words(4) * 8);
	a = slices_get_at(&s, 20, 4);
	assert_non_null(a);
	assert_ptr_equal(slices_get_at(&s, 20, 4), a);
	assert_int_equal(a->refs, 2);
	assert_null(slices_get_at(&s, 25, 4)); /* overlaps it */
	assert_null(slices_get_at(&s, 90, 3)); /* runs over the end */
	assert_null(slices_get_at(&s, 0, 0));
	assert_null(slices_get_at(&s, 0, UINT32_MAX));
	b = slices_get(&s, words(4, 7), 4); /* the same content */
	assert_ptr_equal(a, b);
	for (int i = 0; i < 3; i++)
		slices_put(&s, a, 0);
	assert_int_equal(s.arena.used, 0);
}

TEST(a_slot_given_back_is_pending_then_free_then_somebodys)
{
	static struct tables_image images[TABLES_IMAGES];
	struct tables_image as = {.state = TABLES_IMAGE_READY,
				  .id = 9,
				  .row_first = 4,
				  .row_count = 5,
				  .page_first = 1,
				  .page_count = 3,
				  .ext_first = 4};
	struct slots slots;
	uint32_t first;

	slots_init(&slots, images, GRACE);
	first = slots_get(&slots, &as);
	assert_int_equal(first, 1); /* 0 is never one */
	assert_memory_equal(&images[1], &as, sizeof(as));
	for (int i = 2; i < TABLES_IMAGES; i++)
		assert_int_equal(slots_get(&slots, &as), i);
	assert_int_equal(slots_get(&slots, &as), 0);
	slots_put(&slots, first, 1000);
	slots_put(&slots, 0, 1000);
	assert_int_equal(images[first].state, TABLES_IMAGE_PENDING);
	slots_tick(&slots, 1000 + GRACE - 1);
	assert_int_equal(images[first].state, TABLES_IMAGE_PENDING);
	assert_int_equal(slots_get(&slots, &as), 0);
	slots_tick(&slots, 1000 + GRACE);
	assert_int_equal(images[first].state, TABLES_IMAGE_FREE);
	assert_int_equal(slots_get(&slots, &as), first);
	slots_release(&slots);
}
