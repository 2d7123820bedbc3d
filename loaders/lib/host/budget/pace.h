/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pace: how often a loop polls. A tick of an idle loop costs 50 to 100 us, nearly all of it cold
 * caches: ten a second in two programs waste 0.1 to 0.2 % of a core.
 *
 * 1. Quick ticks (`quick_ns` apart) while something happens, and for PACE_BUSY_NS afterwards;
 *    otherwise slow ones (`slow_ns` apart).
 * 2. Slow ticks are at multiples of slow_ns of the boot clock, plus `phase_ns`: programs that pass
 *    data on tick right after one another, and wake the CPU once.
 * 3. A loop that was delayed does not catch up on missed ticks.
 *
 * All times are of the boot clock, in ns. Pure: it reads no clock.
 */
#ifndef SONDE_HOST_PACE_H
#define SONDE_HOST_PACE_H

#include <stdbool.h>
#include <stdint.h>

#define PACE_BUSY_NS 1000000000ll

struct pace {
	int64_t quick_ns, slow_ns, phase_ns; /* set by the caller */
	int64_t next_ns;                     /* the next tick */
	int64_t busy_until_ns;
};

/* Something happens: tick quickly from `now` on; the next tick is at most quick_ns away. */
void pace_busy(struct pace *p, int64_t now);
/* A tick is complete: sets next_ns. */
void pace_ticked(struct pace *p, int64_t now);
/* Is the next tick a slow one? */
bool pace_is_slow(const struct pace *p, int64_t now);

#endif
