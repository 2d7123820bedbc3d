/* SPDX-License-Identifier: Apache-2.0 */
/*
 * load_shed: what is done less while sonde takes more than its limits: one step at a time, each
 * about one family. Pure.
 *
 *   CPU     1. the dearest family that runs does less: as often as it can be told to (its steps:
 * schema/families/families.h); two steps at once where twice the limit is taken
 *           2. it does as little as it can: the dearest of those that can do less, where that would
 * be enough
 *           3. it would not: the dearest is stopped, the most valued of those that run at the very
 * end. One that does as little as it can goes on up to SHED_STOP limits: sums without stacks are
 * worth more than nothing memory  the last family that still runs is stopped, but for the first:
 * sampling less takes no less memory
 *
 * Back again, under the limit of CPU: the first in the order of value (that of FAMILIES) that fits,
 * as many steps at once as fit: where all of sonde would take 9/10 of the limit at most for a
 * while. What it would take is what it took there last, by the switches of then and now where it
 * grows with them; or twice as much as now for each step, of one that samples at a rate. Each time
 * that one goes over the limit soon after it came back, it waits twice as long the next time.
 *
 * Steps against memory are taken back in reverse order.
 */
#ifndef SONDE_SUPERVISOR_LOAD_SHED_H
#define SONDE_SUPERVISOR_LOAD_SHED_H

#include <stdbool.h>
#include <stdint.h>

#include "schema/families/families.h"

#define SHED_STEPS    4 /* at most that a family has */
#define SHED_PATIENCE 5 /* doublings of the while, at most */
#define SHED_STOP     2.5
#define SHED_SOON     10 /* whiles: over the limit within so many after it came back */

enum shed_limit { SHED_CPU, SHED_MEMORY };

struct shed_family { /* one of the list, as it is now */
	const struct probe_family *family;
	bool wanted;
	bool settled; /* all the time since the last look it was as it is */
	double cores; /* that it took since the last look */
};

/* A look at all of sonde. */
struct shed_look {
	const struct shed_family *f;
	unsigned int n;
	double used, limit; /* cores; limit 0: none */
	double switches;    /* of threads on this host, a second; 0: not known */
	int64_t now_ns, while_ns;
};

struct shed_step {
	unsigned int family; /* its place in the list */
	bool stop;           /* it is stopped, or no longer */
	enum shed_limit limit;
};

struct shed {
	struct shed_state {
		unsigned int step; /* 0: all it does; one more than it has: stopped */
		bool stopped_for_memory;
		double cores[SHED_STEPS + 1]; /* that it took at each step when it was there last;
						   0: it was not */
		double switches[SHED_STEPS + 1]; /* on this host then */
		int64_t room_ns, back_ns; /* since when it would fit; when it came back; 0: it would
					     not, did not */
		unsigned int patience;    /* doublings */
	} of[FAMILIES_MAX];
};

/* At each look, before anything else: what each takes where it is. */
void shed_note(struct shed *r, const struct shed_look *l);
/* Less is to be done. false: there is no step. */
bool shed_more(struct shed *r, const struct shed_look *l, struct shed_step *out);
/* At each look: does one come back now? */
bool shed_less(struct shed *r, const struct shed_look *l, struct shed_step *out);
bool shed_more_memory(struct shed *r, const struct shed_family *f, unsigned int n,
		      struct shed_step *out);
bool shed_less_memory(struct shed *r, const struct shed_family *f, unsigned int n,
		      struct shed_step *out);

/* How many steps of a limit hold. */
unsigned int shed_count(const struct shed *r, const struct shed_family *f, unsigned int n,
			enum shed_limit limit);
bool shed_stopped(const struct shed *r, unsigned int family, const struct probe_family *f);
/* How much less it does: 0 all. */
unsigned int shed_step(const struct shed *r, unsigned int family, const struct probe_family *f);
/* Its rate now; at least 1 Hz. */
uint32_t shed_freq(const struct shed *r, unsigned int family, const struct probe_family *f,
		   uint32_t asked);

#endif
