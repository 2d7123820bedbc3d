/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pace: how often a loop looks at what nobody tells it of. A tick of an idle loop costs some 50 to
 * 100 us, nearly all of it cold caches: ten a second of two programs are 0.1 to 0.2 % of a core for
 * nothing.
 *
 * 1. Quick ticks (`quick_ns` apart) as long as something happens, and PACE_BUSY_NS after the last
 *    of it; slow ones (`slow_ns` apart) when nothing does.
 * 2. Slow ticks fall on multiples of slow_ns of the boot clock, plus `phase_ns`: programs that pass
 *    something on tick one right after the other, and wake the CPU once.
 * 3. A loop that was held up does not run after the time.
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

/* Something happens: ticks are quick from `now` on, and the next one is at most quick_ns away. */
void pace_busy(struct pace *p, int64_t now);
/* A tick has been done: sets next_ns. */
void pace_ticked(struct pace *p, int64_t now);
/* Is the next tick one of the slow ones? */
bool pace_is_slow(const struct pace *p, int64_t now);

#endif
