/* SPDX-License-Identifier: Apache-2.0 */
/* faults: touches so many fresh pages a second, in runs of 10 ms, and gives them back; holds so
 * many MiB all the time. faults A_SECOND MIB [HUGE]: and a huge page every ten ms for so many turns
 * a second. */
#define _GNU_SOURCE
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

#define STEP_NS 10000000
#define TURNS   100
#define HUGE    (2u << 20)

static char *fresh(size_t bytes)
{
	char *p = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	madvise(p, bytes, MADV_NOHUGEPAGE);
	return p;
}

int main(int argc, char **argv)
{
	size_t pages = argc > 1 ? (size_t)atol(argv[1]) / 100 : 0,
	       held = argc > 2 ? (size_t)atol(argv[2]) << 20 : 0;
	const unsigned huge = argc > 3 ? (unsigned)atoi(argv[3]) : 0;
	char *p = fresh((pages + 1) << 12), *large = aligned_alloc(HUGE, HUGE);
	struct timespec at;
	unsigned turn = 0;

	madvise(large, HUGE, MADV_HUGEPAGE);
	if (held)
		memset(fresh(held), 1, held);
	clock_gettime(CLOCK_MONOTONIC, &at);
	for (;;) {
		for (size_t i = 0; i < pages; i++)
			p[i << 12] = 1;
		madvise(p, (pages + 1) << 12, MADV_DONTNEED);
		if (turn++ % TURNS < huge) {
			large[0] = 1;
			madvise(large, HUGE, MADV_DONTNEED);
		}
		at.tv_nsec += STEP_NS;
		if (at.tv_nsec >= 1000000000) {
			at.tv_nsec -= 1000000000;
			at.tv_sec++;
		}
		clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &at, NULL);
	}
}
