/* SPDX-License-Identifier: Apache-2.0 */
/* recurse: the C part of the mix: 40 frames deep through four functions that call each other in a
 * varying order, all the time on the CPU. Ends after argv[1] seconds. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

typedef uint64_t step_fn(int depth, uint64_t x);
static step_fn left, right, middle, turn;
static step_fn *const steps[] = {left, right, middle, turn};

static uint64_t deeper(int depth, uint64_t x)
{
	return depth ? steps[(x >> 33) & 3](depth - 1,
					    x * 6364136223846793005ull + 1442695040888963407ull) :
		       x;
}

#define STEP(name, k)                                                                    \
	static __attribute__((noinline)) uint64_t name(int depth, uint64_t x)            \
	{                                                                                \
		uint64_t below = deeper(depth, x + k);                                   \
		for (int i = 0; i < 40 * k; i++)                                         \
			below ^= below << 13, below ^= below >> 7, below ^= below << 17; \
		return below + 1;                                                        \
	}
STEP(left, 1)
STEP(right, 2)
STEP(middle, 3)
STEP(turn, 4)

int main(int argc, char **argv)
{
	time_t end = time(NULL) + (argc > 1 ? atoi(argv[1]) : 10);
	uint64_t x = 1;

	while (time(NULL) < end)
		for (int i = 0; i < 1000; i++)
			x = deeper(36, x | 1);
	printf("%llu\n", (unsigned long long)x);
	return 0;
}
