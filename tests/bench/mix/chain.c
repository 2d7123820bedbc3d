/* SPDX-License-Identifier: Apache-2.0 */
/*
 * chain: a stack of known depth, without frame pointers unless built with them. `chain SECONDS
 * DEPTH` spins in the leaf of one stack; `chain SECONDS DEPTH varied` goes another way through 16
 * functions every few microseconds.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#ifdef __clang__
#define NOINLINE __attribute__((noinline))
#else
#define NOINLINE __attribute__((noinline, noclone))
#endif

static volatile uint64_t sink;
static uint64_t seed = 88172645463325252ull;
static int varied;
static time_t end;

static uint64_t next(void)
{
	seed ^= seed << 13;
	seed ^= seed >> 7;
	return seed ^= seed << 17;
}

NOINLINE static void leaf(void)
{
	do {
		for (int i = 0; i < 3000; i++)
			sink += (uint64_t)i * seed;
	} while (!varied && time(NULL) < end);
}

static void go(int depth);

#define STEP(N)                                      \
	NOINLINE static void step##N(int depth)      \
	{                                            \
		volatile uint64_t room[(N) % 5 + 1]; \
		room[0] = (uint64_t)depth;           \
		go(depth - 1);                       \
		sink += room[0] + (N);               \
	}
/* clang-format off */
STEP(0) STEP(1) STEP(2) STEP(3) STEP(4) STEP(5) STEP(6) STEP(7)
STEP(8) STEP(9) STEP(10) STEP(11) STEP(12) STEP(13) STEP(14) STEP(15)

static void (*const steps[16])(int) = {step0, step1, step2, step3, step4, step5, step6, step7,
				       step8, step9, step10, step11, step12, step13, step14, step15};

NOINLINE static void go(int depth)
{
	if (depth <= 0)
		leaf();
	else
		steps[(varied ? next() : (uint64_t)depth) & 15](depth);
	sink++;
}

int main(int argc, char **argv)
{
	int depth = argc > 2 ? atoi(argv[2]) : 40;

	end = time(NULL) + (argc > 1 ? atoi(argv[1]) : 10);
	varied = argc > 3 && !strcmp(argv[3], "varied");
	/* leaf, main, __libc_start_call_main, __libc_start_main, _start; go and step take two a level */
	do
		go((depth - 6) / 2);
	while (time(NULL) < end);
	return 0;
}
