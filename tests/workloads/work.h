/* SPDX-License-Identifier: Apache-2.0 */
/*
 * work: what the workloads share. Each causes one known thing, for a stated time, and prints at its
 * end one JSON object that says what it did, by its own measure (thread CPU time). They are built
 * with frame pointers and without sibling calls, so that each chain is a chain.
 */
#ifndef SONDE_WORKLOADS_WORK_H
#define SONDE_WORKLOADS_WORK_H

#include <stdint.h>
#include <time.h>

#define NOINLINE __attribute__((noinline, noclone))

static inline uint64_t work_ns(clockid_t clock)
{
	struct timespec t;

	clock_gettime(clock, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static inline uint64_t work_cpu_ns(void)
{
	return work_ns(CLOCK_THREAD_CPUTIME_ID);
}

static inline uint64_t work_now_ns(void)
{
	return work_ns(CLOCK_MONOTONIC);
}

/* Pure arithmetic: no call, no memory. About a nanosecond a turn. A macro, so that no inlined
 * function is below the one that does the work. (gcc gives a leaf function a frame only if it
 * is asked for.) */
#define work_turns(count, start)                                               \
	({                                                                     \
		uint64_t turns_ = (count), x_ = (start);                       \
		__asm__ volatile("" : : "r"(__builtin_frame_address(0)));      \
		while (turns_--) {                                             \
			x_ = x_ * 6364136223846793005u + 1442695040888963407u; \
			__asm__ volatile("" : "+r"(x_));                       \
		}                                                              \
		x_;                                                            \
	})

/* A slice of work of 1 to 3 ms, different each time, so that no schedule of ours locks with a
 * sampler's. */
static inline uint64_t work_slice(uint64_t *seed)
{
	*seed ^= *seed << 13;
	*seed ^= *seed >> 7;
	*seed ^= *seed << 17;
	return 1000000 + *seed % 2000000;
}

/* The weights of the four chains of every "shares" program. */
#define WORK_CHAINS 4
static const double work_weights[WORK_CHAINS] = {0.50, 0.30, 0.15, 0.05};

/* Which chain is furthest behind its weight. */
static inline int work_next(const uint64_t *done)
{
	double best = 0;
	int next = 0;

	for (int i = 0; i < WORK_CHAINS; i++) {
		double behind = (double)done[i] / work_weights[i];

		if (i == 0 || behind < best) {
			best = behind;
			next = i;
		}
	}
	return next;
}

#endif
