/* SPDX-License-Identifier: Apache-2.0 */
/* clock: the clocks sonde reads. */
#include "schema/base/clock.h"

#include <errno.h>
#include <time.h>

static int64_t clock_ns(clockid_t id)
{
	struct timespec t;

	clock_gettime(id, &t);
	return (int64_t)t.tv_sec * NSEC_PER_SEC + t.tv_nsec;
}

int64_t clock_boot_ns(void)
{
	return clock_ns(CLOCK_BOOTTIME);
}

int64_t clock_utc_ns(void)
{
	return clock_ns(CLOCK_REALTIME);
}

int64_t clock_mono_ns(void)
{
	return clock_ns(CLOCK_MONOTONIC);
}

void clock_sleep_until(int64_t mono_ns)
{
	struct timespec t = {.tv_sec = mono_ns / NSEC_PER_SEC, .tv_nsec = mono_ns % NSEC_PER_SEC};

	while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &t, NULL) == EINTR)
		;
}

int64_t clock_cpu_ns(void)
{
	return clock_ns(CLOCK_PROCESS_CPUTIME_ID);
}

int64_t clock_boot_offset_ns(void)
{
	int64_t best = 0, width = INT64_MAX;

	for (int i = 0; i < 5; i++) {
		int64_t a = clock_boot_ns();
		int64_t utc = clock_utc_ns();
		int64_t b = clock_boot_ns();

		if (b - a < width) {
			width = b - a;
			best = utc - (a + (b - a) / 2);
		}
	}
	return best;
}
