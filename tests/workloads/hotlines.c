/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hotlines SECONDS: spends its time at known source lines, in turns of one loop that all cost the
 * same: `hot` spends 70 % at one line and 30 % at another; `outer` spends half in `step`, which is
 * inlined into it, and half at one line of its body; `step` in turn inlines `nano`, which does all
 * the work. Prints the turns by function and line. Also built as C++.
 */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "work.h"

#define INLINED static inline __attribute__((always_inline))
#define SPIN(x, turns)                                                       \
	do {                                                                 \
		for (uint64_t n = (turns); n; n--) {                         \
			x = x * 6364136223846793005u + 1442695040888963407u; \
			__asm__ volatile("" : "+r"(x));                      \
		}                                                            \
	} while (0)

enum { HOT_70, HOT_30, NANO, STEP_CALL, OUTER_CALL, OUTER_OWN, LINES };
static int line_of[LINES];
static volatile uint64_t sink;

static NOINLINE uint64_t hot(uint64_t turns, uint64_t x)
{
	line_of[HOT_70] = __LINE__ + 1;
	SPIN(x, turns / 10 * 7);
	line_of[HOT_30] = __LINE__ + 1;
	SPIN(x, turns / 10 * 3);
	return x;
}

INLINED uint64_t nano(uint64_t turns, uint64_t x)
{
	line_of[NANO] = __LINE__ + 1;
	SPIN(x, turns);
	return x;
}

INLINED uint64_t step(uint64_t turns, uint64_t x)
{
	line_of[STEP_CALL] = __LINE__ + 1;
	x = nano(turns, x);
	return x + 1;
}

static NOINLINE uint64_t outer(uint64_t turns, uint64_t x)
{
	line_of[OUTER_CALL] = __LINE__ + 1;
	x = step(turns / 2, x);
	line_of[OUTER_OWN] = __LINE__ + 1;
	SPIN(x, turns / 2);
	return x;
}

int main(int argc, char **argv)
{
	uint64_t until = work_now_ns() + (uint64_t)(atof(argc > 1 ? argv[1] : "5") * 1e9),
		 seed = 88172645463325252u;
	uint64_t turns[2] = {0};

	for (int i = 0; work_now_ns() < until; i = !i) {
		uint64_t n = work_slice(&seed);

		sink = i ? outer(n, sink) : hot(n, sink);
		turns[i] += n;
	}
	printf("{\"pid\": %d, \"turns\": {\"hot\": %llu, \"outer\": %llu}, \"hot\": {\"%d\": 0.7, \"%d\": 0.3}, "
	       "\"nano\": {\"%d\": 1.0}, \"step\": {\"%d\": 1.0}, \"outer\": {\"%d\": 0.5, \"%d\": 0.5}}\n",
	       getpid(), (unsigned long long)turns[0], (unsigned long long)turns[1],
	       line_of[HOT_70], line_of[HOT_30], line_of[NANO], line_of[STEP_CALL],
	       line_of[OUTER_CALL], line_of[OUTER_OWN]);
	return 0;
}
