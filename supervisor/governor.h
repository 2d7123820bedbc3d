/* SPDX-License-Identifier: Apache-2.0 */
/*
 * governor: keeps what all of sonde takes below its limit, by steps. Over the limit for a whole minute: one step down;
 * below half of it for five: one step up. Pure but for process_cpu_ns.
 *
 *   step 1, 2, 3   sampling at a half, a quarter, an eighth of what was asked, at least 1 Hz
 *   step 4 and on  one family less, the last of the list first; the first of the list stays
 *
 * Memory is held by a governor of its own, whose every step is one family less: sampling less takes no less memory.
 */
#ifndef SONDE_SUPERVISOR_GOVERNOR_H
#define SONDE_SUPERVISOR_GOVERNOR_H

#include <stdint.h>
#include <sys/types.h>

#define GOVERNOR_SLOWER 3
#define GOVERNOR_OVER_NS  60000000000ll
#define GOVERNOR_UNDER_NS 300000000000ll

struct governor {
	unsigned int step;
	int64_t over_ns, under_ns; /* since when; 0: it is not */
};

/* One look: what is used (cores, bytes), its limit (0: none), steps there are. +1, -1: the step was changed; 0. */
int governor_look(struct governor *g, double used, double limit, unsigned int steps, int64_t now_ns);
uint32_t governor_freq(const struct governor *g, uint32_t asked);
/* May the i-th of n families run? */
int governor_allows(const struct governor *cpu, const struct governor *memory, unsigned int i, unsigned int n);

/* CPU time of a process and of its children that have ended, user and system; 0: it is gone. */
int64_t process_cpu_ns(pid_t pid);
/* Memory that it shares with nobody, about; 0: it is gone. */
uint64_t process_private_bytes(pid_t pid);

#endif
