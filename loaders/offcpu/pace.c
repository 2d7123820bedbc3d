/* SPDX-License-Identifier: Apache-2.0 */
#include "loaders/offcpu/pace.h"

#include "schema/base/clock.h"

#define START_NS (2 * NSEC_PER_SEC)
#define DOWN     0.5
#define UP       1.5

void pace_init(struct pace *p, uint32_t asked)
{
	*p = (struct pace){.asked = asked, .rate = asked};
}

static double factor(double cores)
{
	double to = cores > 0 ? PACE_MOST / cores : UP;

	if (cores > PACE_MOST)
		return to < DOWN ? DOWN : to;
	return cores < PACE_FEW * PACE_MOST ? UP : 1;
}

static uint32_t bounded(const struct pace *p, double rate)
{
	uint32_t least = p->asked < PACE_LEAST ? p->asked : PACE_LEAST;

	return rate < least ? least : rate > p->asked ? p->asked : (uint32_t)rate;
}

uint32_t pace_next(struct pace *p, uint64_t cost_ns, int64_t now_ns)
{
	double seconds = (double)(now_ns - p->at_ns) / NSEC_PER_SEC;

	if (!p->begun_ns)
		p->begun_ns = now_ns;
	if (p->at_ns && seconds > 0 && cost_ns >= p->cost_ns && p->at_ns - p->begun_ns >= START_NS)
		p->rate = bounded(p, p->rate * factor((double)(cost_ns - p->cost_ns) /
						      NSEC_PER_SEC / seconds));
	p->cost_ns = cost_ns;
	p->at_ns = now_ns;
	return p->rate;
}
