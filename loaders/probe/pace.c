/* SPDX-License-Identifier: Apache-2.0 */
#include "loaders/probe/pace.h"

uint32_t pace_every(uint64_t hits, int64_t ns, uint32_t rate)
{
	double a_second = ns > 0 ? (double)hits * 1e9 / (double)ns : 0;
	double every = rate ? a_second / rate : 1;

	return every <= 1 ? 1 : every > 100000 ? 100000 : (uint32_t)(every + 0.999);
}

int64_t pace_look(struct pace *p, int64_t now_ns, uint64_t spent_ns)
{
	int64_t took = now_ns - p->at_ns;
	double spent = (double)(spent_ns - p->spent_ns), off;

	p->at_ns = now_ns;
	p->spent_ns = spent_ns;
	if (took <= 0 || spent <= PACE_SHARE * (double)took)
		return 0;
	off = spent / PACE_SHARE - (double)took;
	return now_ns + (off > (double)PACE_OFF_MOST ? PACE_OFF_MOST : (int64_t)off);
}
