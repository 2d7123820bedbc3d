/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cpushare: how much CPU time something may use that others would rather have: what sonde-maps lets
 * its sonde-index children use for what nobody waits for.
 *
 * 1. CPUSHARE_PERCENT of a core, and half of the time that CPUs were idle: on an idle host that is
 *    no bound.
 * 2. What was not used is kept, up to CPUSHARE_SAVED_NS: the first seconds of a capture need not
 *    wait. So in any minute in which no CPU is idle it is at most CPUSHARE_SAVED_NS + 60 s *
 *    CPUSHARE_PERCENT = 3 s, 5 % of a core.
 * 3. What was used beyond that is paid back before anything more is allowed.
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
	int64_t left_ns;         /* below 0: to be paid back */
	int64_t now_ns, idle_ns; /* as told last */
};

/* All of it is saved. */
void cpushare_init(struct cpushare *s, int64_t now_ns, int64_t idle_ns);
/* idle_ns: of all CPUs since the boot. */
void cpushare_tick(struct cpushare *s, int64_t now_ns, int64_t idle_ns);
void cpushare_spend(struct cpushare *s, int64_t cpu_ns);
/* May more be used? */
bool cpushare_open(const struct cpushare *s);
/* Is as much saved as can be? Then there is time for what nobody asked for. */
bool cpushare_is_full(const struct cpushare *s);
/* What the CPUs of this host have been idle since the boot, /proc/uptime; 0: not known. */
int64_t cpushare_idle_ns(void);

#endif
