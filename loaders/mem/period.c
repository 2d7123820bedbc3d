/* SPDX-License-Identifier: Apache-2.0 */
#include "loaders/mem/period.h"

#include "schema/base/clock.h"
#include "schema/base/hash.h"

/* A second without faults halves the period at most: the next burst is like the last one more often
 * than not. */
#define DOWN 0.5

void period_init(struct period *p, uint32_t fixed, uint32_t rate)
{
	*p = (struct period){.fixed = fixed, .rate = rate ? rate : 1, .random = HASH_SEED};
	p->wanted = fixed ? fixed : 4 * PERIOD_MIN;
}

static double bounded(double x)
{
	return x < PERIOD_MIN ? PERIOD_MIN : x > PERIOD_MAX ? PERIOD_MAX : x;
}

/* [0.75, 1.25) of it */
static uint32_t varied(struct period *p)
{
	p->random = hash_u64(HASH_SEED, p->random);
	return (uint32_t)(p->wanted * (0.75 + (double)(p->random % 1024) / 2048));
}

uint32_t period_next(struct period *p, uint64_t faults, int64_t now_ns)
{
	double seconds = (double)(now_ns - p->at_ns) / NSEC_PER_SEC;

	if (!p->fixed && p->at_ns && seconds > 0 && faults >= p->faults) {
		double to = bounded((double)(faults - p->faults) / seconds / p->rate);

		p->wanted = to > p->wanted * DOWN ? to : bounded(p->wanted * DOWN);
	}
	p->faults = faults;
	p->at_ns = now_ns;
	return p->fixed == 1 ? 1 : varied(p);
}
