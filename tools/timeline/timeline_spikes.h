/* SPDX-License-Identifier: Apache-2.0 */
/*
 * timeline_spikes: whose CPU use was unusual, and when: the spikes (tools/timeline/spikes.h) of
 * each group of a timeline, sorted by the CPU time above what is usual for that group. A spike of
 * the total that no group explains by half is listed too. Less than TIMELINE_LEAST cores is not a
 * spike.
 */
#ifndef SONDE_TOOLS_TIMELINE_SPIKES_H
#define SONDE_TOOLS_TIMELINE_SPIKES_H

#include "tools/timeline/spikes.h"
#include "tools/timeline/timeline.h"

#define TIMELINE_LEAST 0.1

struct timeline_spike {
	uint32_t group;          /* TIMELINE_ALL: no one alone */
	struct spike at;         /* steps; cores */
	int64_t from_ns, to_ns;  /* whole seconds, within the range */
	double excess_s;         /* core seconds above usual */
	uint64_t cpu_ns, all_ns; /* of the group, of all, from from_ns to to_ns */
	uint32_t busiest;        /* process */
	uint64_t busiest_ns;
};

/* The caller's (free). */
struct timeline_spike *timeline_spikes(const struct timeline *t, size_t *n);
/* The command that shows its stacks, ready for a shell. `store`: to be named in it, NULL: need not.
 */
void timeline_command(const struct timeline *t, const struct timeline_spike *s, const char *store,
		      struct strbuf *out);

#endif
