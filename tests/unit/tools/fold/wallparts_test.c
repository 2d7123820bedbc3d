/* SPDX-License-Identifier: Apache-2.0 */
/* wallparts: the shares add up to the whole, whatever the weights. */
#include "tests/unit/test.h"
#include "tools/fold/wallparts.h"

struct got {
	uint64_t n, ns;
	uint64_t of_stack[8], without;
};

static void take(void *ctx, const struct wallkey *key, uint32_t stack, const struct wallslice *x)
{
	struct got *g = ctx;

	(void)key;
	g->n += x->n;
	g->ns += x->ns;
	if (stack == UINT32_MAX)
		g->without += x->ns;
	else
		g->of_stack[stack & 7] += x->ns;
}

static struct got shared(const struct wallparts *p, size_t i)
{
	struct got g = {0};

	wallparts_share(&p->v[i], take, &g);
	return g;
}

TEST(shares_follow_the_weights_and_add_up_to_the_whole)
{
	struct wallkey key = {.process = 1, .tid = 2, .thread = "t", .class = 3};
	struct wallparts p = {0};
	struct got g;

	wallparts_add(&p, &key, 0, 7, 1000000007);
	wallparts_shape(&p, &key, &(struct wallstack){0, 1, 1});
	wallparts_shape(&p, &key, &(struct wallstack){0, 2, 1});
	wallparts_shape(&p, &key, &(struct wallstack){0, 3, 1});
	g = shared(&p, 0);
	assert_int_equal(g.n, 7);
	assert_int_equal(g.ns, 1000000007);
	for (int i = 1; i <= 3; i++)
		assert_in_range(g.of_stack[i], 333333335, 333333337);
	wallparts_release(&p);
}

TEST(the_largest_numbers_do_not_overflow)
{
	struct wallkey key = {.thread = "t"};
	struct wallparts p = {0};
	struct got g;

	wallparts_add(&p, &key, 0, 1, UINT64_MAX);
	wallparts_shape(&p, &key, &(struct wallstack){0, 1, UINT64_MAX / 2});
	wallparts_shape(&p, &key, &(struct wallstack){0, 2, UINT64_MAX / 2});
	g = shared(&p, 0);
	assert_true(g.ns == UINT64_MAX && g.of_stack[1] == UINT64_MAX / 2);
	wallparts_release(&p);
}

TEST(a_slice_takes_its_own_stacks_or_else_those_of_all)
{
	struct wallkey key = {.thread = "t"};
	struct wallparts p = {0};
	struct got g;

	wallparts_add(&p, &key, 0, 1, 100);
	wallparts_add(&p, &key, 1, 1, 10);
	wallparts_add(&p, &key, 2, 1, 8);
	wallparts_shape(&p, &key, &(struct wallstack){0, 1, 3});
	wallparts_shape(&p, &key, &(struct wallstack){1, 2, 1});
	g = shared(&p, 0);
	assert_int_equal(g.of_stack[1], 100 + 6);
	assert_int_equal(g.of_stack[2], 10 + 2);
	wallparts_release(&p);
}

TEST(a_part_without_stacks_stays_whole_and_a_stack_without_a_part_is_dropped)
{
	static const char name[] = "t";
	struct wallkey key = {.thread = name}, other = {.thread = name, .class = 1},
		       partial = {.thread = name, .partial = true};
	struct wallparts p = {0};

	wallparts_add(&p, &key, 0, 1, 5);
	wallparts_add(&p, &partial, 0, 1, 6);
	wallparts_shape(&p, &other, &(struct wallstack){0, 1, 3});
	wallparts_shape(&p, &key, &(struct wallstack){0, 1, 3});
	wallparts_shape(&p, &key, &(struct wallstack){0, 2, 0});
	assert_int_equal(p.n, 2);
	assert_int_equal(shared(&p, 0).of_stack[1], 5);
	assert_int_equal(shared(&p, 1).without, 6);
	wallparts_release(&p);
}
