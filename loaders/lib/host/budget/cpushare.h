/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cpushare: limits the CPU time of work that is not urgent: in sonde-maps, of sonde-index children
 * that no client waits for.
 *
 * 1. The share is CPUSHARE_PERCENT of a core plus half of the CPUs' idle time: on an idle host that
 *    is no limit.
 * 2. Unused share is saved, up to CPUSHARE_SAVED_NS: the first seconds of a capture need not wait.
 *    So in any minute without idle CPUs it is at most CPUSHARE_SAVED_NS + 60 s * CPUSHARE_PERCENT =
 *    3 s, 5 % of a core.
 * 3. Time used beyond the share is deducted before more is allowed.
 *
 * All times in ns, `now` of the boot clock. Pure but for cpushare_idle_ns.
 */
#ifndef SONDE_HOST_CPUSHARE_H
#define SONDE_HOST_CPUSHARE_H

#include <stdbool.h>
#include <stdint.h>

#define CPUSHARE_PERCENT  3
#define CPUSHARE_SAVED_NS 1200000000ll

struct cpushare {
	int64_t left_ns;         /* below 0: overdrawn */
	int64_t now_ns, idle_ns; /* at the last tick */
};

/* Starts with CPUSHARE_SAVED_NS saved. */
void cpushare_init(struct cpushare *s, int64_t now_ns, int64_t idle_ns);
/* idle_ns: of all CPUs since boot. */
void cpushare_tick(struct cpushare *s, int64_t now_ns, int64_t idle_ns);
void cpushare_spend(struct cpushare *s, int64_t cpu_ns);
/* May more be used? */
bool cpushare_open(const struct cpushare *s);
/* Is the maximum saved? Then there is time for work that was not requested. */
bool cpushare_is_full(const struct cpushare *s);
/* Idle time of this host's CPUs since boot, from /proc/uptime; 0: unknown. */
int64_t cpushare_idle_ns(void);

#endif
