/* SPDX-License-Identifier: Apache-2.0 */
/* gate: a limited number at a time, the others wait, a closed gate lets none in. */
#include "serve/gate.h"
#include "tests/unit/test.h"

struct waiter {
	struct gate *gate;
	bool in;
};

static void *wait_for_room(void *ctx)
{
	struct waiter *w = ctx;

	w->in = gate_enter(w->gate, 20);
	return NULL;
}

TEST(room_is_for_so_many)
{
	struct gate g;

	gate_init(&g, 2);
	assert_true(gate_enter(&g, 0));
	assert_true(gate_enter(&g, 0));
	assert_false(gate_enter(&g, 0));
	gate_leave(&g);
	assert_true(gate_enter(&g, 0));
	gate_release(&g);
}

TEST(whoever_leaves_lets_one_in_that_waits)
{
	struct waiter w = {0};
	struct gate g;
	pthread_t t;

	gate_init(&g, 1);
	w.gate = &g;
	assert_true(gate_enter(&g, 0));
	pthread_create(&t, NULL, wait_for_room, &w);
	gate_leave(&g);
	pthread_join(t, NULL);
	assert_true(w.in);
	gate_release(&g);
}

TEST(a_closed_one_sends_all_away_at_once)
{
	struct waiter w = {0};
	struct gate g;
	pthread_t t;

	gate_init(&g, 1);
	w.gate = &g;
	assert_true(gate_enter(&g, 0));
	pthread_create(&t, NULL, wait_for_room, &w);
	gate_close(&g);
	pthread_join(t, NULL);
	assert_false(w.in);
	gate_leave(&g);
	assert_false(gate_enter(&g, 20));
	gate_release(&g);
}
