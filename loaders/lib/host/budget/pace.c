/* SPDX-License-Identifier: Apache-2.0 */
#include "loaders/lib/host/budget/pace.h"

void pace_busy(struct pace *p, int64_t now)
{
	p->busy_until_ns = now + PACE_BUSY_NS;
	if (p->next_ns > now + p->quick_ns)
		p->next_ns = now + p->quick_ns;
}

bool pace_is_slow(const struct pace *p, int64_t now)
{
	return now >= p->busy_until_ns;
}

void pace_ticked(struct pace *p, int64_t now)
{
	if (pace_is_slow(p, now)) {
		p->next_ns =
			(now - p->phase_ns) / p->slow_ns * p->slow_ns + p->slow_ns + p->phase_ns;
		return;
	}
	p->next_ns += p->quick_ns;
	if (p->next_ns <= now || p->next_ns > now + p->quick_ns)
		p->next_ns = now + p->quick_ns;
}
