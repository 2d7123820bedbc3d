/* SPDX-License-Identifier: Apache-2.0 */
#include "loaders/mem/period.h"

#include <stdbool.h>

#include "schema/base/clock.h"
#include "schema/base/hash.h"

/* A second without faults halves the period at most: the next burst is like the last one more often
 * than not. */
#define DOWN 0.5

void period_init(struct period *p, uint32_t fixed, uint32_t rate, uint32_t least)
{
	*p = (struct period){
		.fixed = fixed, .rate = rate ? rate : 1, .least = least, .random = HASH_SEED};
	p->wanted = fixed ? fixed : least < PERIOD_MIN ? least : 4 * least;
}

void period_reduce(struct period *p, uint32_t step)
{
	p->shift = 2 * step;
}

static double bounded(const struct period *p, double x)
{
	return x < p->least ? p->least : x > PERIOD_MAX ? PERIOD_MAX : x;
}

static double reduced(const struct period *p)
{
	double x = p->wanted * (double)(1u << p->shift);

	return x > PERIOD_MAX ? PERIOD_MAX : x;
}

static bool holds(const struct period *p)
{
	double wanted = reduced(p);

	return p->now && wanted <= 1.25 * p->from && p->from <= 1.25 * wanted &&
	       p->faults < p->drawn + (uint64_t)PERIOD_DRAWS * p->now;
}

/* [0.75, 1.25) of it */
static uint32_t varied(struct period *p)
{
	double wanted = reduced(p);

	if (holds(p))
		return p->now;
	p->random = hash_u64(HASH_SEED, p->random);
	p->now = wanted < 2 ? 1 : (uint32_t)(wanted * (0.75 + (double)(p->random % 1024) / 2048));
	p->from = wanted;
	p->drawn = p->faults;
	return p->now;
}

uint32_t period_next(struct period *p, uint64_t faults, int64_t now_ns)
{
	double seconds = (double)(now_ns - p->at_ns) / NSEC_PER_SEC;

	if (!p->fixed && p->at_ns && seconds > 0 && faults >= p->faults) {
		double to = bounded(p, (double)(faults - p->faults) / seconds / p->rate);

		p->wanted = to > p->wanted * DOWN ? to : bounded(p, p->wanted * DOWN);
	}
	p->faults = faults;
	p->at_ns = now_ns;
	return varied(p);
}
