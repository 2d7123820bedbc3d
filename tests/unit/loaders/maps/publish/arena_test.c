/* SPDX-License-Identifier: Apache-2.0 */
/* arena: allocations never overlap, and freed elements stay unused for the grace period. */
#include <stdlib.h>
#include <string.h>

#include "loaders/maps/publish/arena.h"
#include "tests/unit/test.h"

#define GRACE 100
#define SIZE  5000

TEST(what_is_given_back_is_free_after_the_grace_and_not_before)
{
	struct arena a;
	uint32_t at = 77;

	arena_init(&a, 0, 10, GRACE);
	assert_true(arena_take(&a, 10, &at));
	assert_int_equal(at, 0);
	assert_false(arena_take(&a, 1, &at));
	arena_give(&a, 0, 10, 1000);
	arena_tick(&a, 1000 + GRACE - 1);
	at = 77;
	assert_false(arena_take(&a, 1, &at));
	assert_int_equal(at, 77);
	assert_int_equal(a.held_elements, 10);
	arena_tick(&a, 1000 + GRACE);
	assert_true(arena_take(&a, 10, &at));
	assert_int_equal(a.held_elements, 0);
	arena_release(&a);
}

TEST(neighbours_grow_together_in_any_order)
{
	static const uint32_t orders[6][3] = {{0, 1, 2}, {0, 2, 1}, {1, 0, 2},
					      {1, 2, 0}, {2, 0, 1}, {2, 1, 0}};
	uint32_t at;

	for (int k = 0; k < 6; k++) {
		struct arena a;

		arena_init(&a, 5, 35, 0);
		for (uint32_t i = 0; i < 3; i++) {
			assert_true(arena_take(&a, 10, &at));
			assert_int_equal(at, 5 + i * 10);
		}
		for (int i = 0; i < 3; i++)
			arena_give(&a, 5 + orders[k][i] * 10, 10, 0);
		arena_tick(&a, 0);
		assert_int_equal(a.n_free, 1);
		assert_true(arena_take(&a, 30, &at));
		arena_release(&a);
	}
}

TEST(a_place_is_taken_only_if_all_of_it_is_free)
{
	struct arena a;
	uint32_t at;

	arena_init(&a, 10, 30, 0);
	assert_true(arena_take_at(&a, 15, 5));
	assert_false(arena_take_at(&a, 15, 1));
	assert_false(arena_take_at(&a, 10, 6));
	assert_false(arena_take_at(&a, 19, 2));
	assert_false(arena_take_at(&a, 9, 2));
	assert_false(arena_take_at(&a, 29, 2));
	assert_false(arena_take_at(&a, 20, UINT32_MAX));
	assert_false(arena_take_at(&a, 20, 0));
	assert_true(arena_take_at(&a, 10, 5));
	assert_true(arena_take_at(&a, 29, 1));
	assert_true(arena_take(&a, 9, &at));
	assert_int_equal(at, 20);
	assert_int_equal(a.used, 20);
	assert_int_equal(a.n_free, 0);
	arena_release(&a);
	arena_init(&a, 3, 3, 0);
	assert_false(arena_take(&a, 1, &at));
	arena_release(&a);
}

/* Compared with a plain array that records who holds each element, and until when a freed one stays
 * unused. */
struct model {
	uint32_t owner[SIZE];
	uint64_t free_at[SIZE];
};

struct piece {
	uint32_t first, n, id;
};

static void model_take(struct model *m, const struct piece *p, uint64_t now)
{
	for (uint32_t i = p->first; i < p->first + p->n; i++) {
		assert_int_equal(m->owner[i], 0);
		assert_true(m->free_at[i] <= now);
		m->owner[i] = p->id;
	}
}

static void model_give(struct model *m, const struct piece *p, uint64_t now)
{
	for (uint32_t i = p->first; i < p->first + p->n; i++) {
		assert_int_equal(m->owner[i], p->id);
		m->owner[i] = 0;
		m->free_at[i] = now + GRACE;
	}
}

TEST(a_long_random_life_agrees_with_a_plain_array)
{
	static struct model m;
	static struct piece live[200];
	size_t n = 0;
	struct arena a;
	uint32_t at, id = 0;

	srand(1);
	arena_init(&a, 1, SIZE, GRACE);
	for (uint64_t now = 1; now < 200000; now++) {
		if (n < 200 && rand() % 2) {
			struct piece p = {.n = 1 + (uint32_t)rand() % 60, .id = ++id};

			if (arena_take(&a, p.n, &p.first)) {
				model_take(&m, &p, now);
				live[n++] = p;
			}
		} else if (n) {
			size_t k = (size_t)rand() % n;

			model_give(&m, &live[k], now);
			arena_give(&a, live[k].first, live[k].n, now);
			live[k] = live[--n];
		}
		arena_tick(&a, now);
		for (size_t i = 1; i < a.n_free; i++)
			assert_true(a.free[i - 1].first + a.free[i - 1].n < a.free[i].first);
	}
	while (n--)
		arena_give(&a, live[n].first, live[n].n, 200000);
	arena_tick(&a, 200000 + GRACE);
	assert_true(arena_take(&a, SIZE - 1, &at));
	assert_int_equal(a.used, SIZE - 1);
	arena_release(&a);
}
