/* SPDX-License-Identifier: Apache-2.0 */
/*
 * load_shed: what sonde gives up while it exceeds its limits: one step at a time, each about one
 * family. Pure.
 *
 * CPU:
 *   1. The most expensive running family is reduced, by at most as many steps as it has
 *      (schema/families/families.h); by two at once where sonde takes twice the limit. What one
 *      takes is its mean over all looks since the limit was exceeded, or the last step taken: one
 *      that was busy at a single look is not the most expensive.
 *   2. If that family is at its last step: the most expensive of those that still do all, by one
 *      step, if one step of each would be enough. Never by more: one that takes little would be
 *      slowed to next to nothing, and sonde still take as much.
 *   3. If it would not: the most expensive family is stopped; the most valued of those that run
 *      only at the very end. A family at its last step runs on up to SHED_STOP limits: sums without
 *      stacks are better than nothing.
 *
 * Memory: the last running family of the list is stopped, but never the first: sampling less takes
 * no less memory. These steps are undone in reverse order.
 *
 * Back again, under the CPU limit: the first family in order of value (that of FAMILIES) that fits,
 * by as many steps at once as fit: all of sonde would take at most 9/10 of the limit for a while.
 * The estimate is what the family took at that step last time, scaled by the context switches of
 * then and now where its cost grows with them; of a family with a sampling rate it is twice the
 * present cost for each step. A family that exceeds the limit soon after it came back waits twice
 * as long the next time.
 */
#ifndef SONDE_SUPERVISOR_LOAD_SHED_H
#define SONDE_SUPERVISOR_LOAD_SHED_H

#include <stdbool.h>
#include <stdint.h>

#include "schema/families/families.h"

#define SHED_STEPS    4 /* at most that a family has */
#define SHED_PATIENCE 5 /* doublings of the while, at most */
#define SHED_STOP     2.5
#define SHED_SOON     10 /* whiles: over the limit again this soon after it came back */

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
	unsigned int dearest; /* where load is shed under SHED_CPU: which takes most, and how much
				 that is */
	double dearest_cores;
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
		double sum;               /* of cores at the looks of rule 1; how many they were */
		unsigned int looks;
	} of[FAMILIES_MAX];
};

/* At each look, before anything else: notes what each family uses, at its present step and since
 * the limit was exceeded. */
void shed_note(struct shed *r, const struct shed_look *l);
/* Sheds load: reduces or stops a family. false: there is no step left. */
bool shed_more(struct shed *r, const struct shed_look *l, struct shed_step *out);
/* At each look: does a family come back now? */
bool shed_less(struct shed *r, const struct shed_look *l, struct shed_step *out);
bool shed_more_memory(struct shed *r, const struct shed_family *f, unsigned int n,
		      struct shed_step *out);
bool shed_less_memory(struct shed *r, const struct shed_family *f, unsigned int n,
		      struct shed_step *out);

/* How many steps are in force because of a limit. */
unsigned int shed_count(const struct shed *r, const struct shed_family *f, unsigned int n,
			enum shed_limit limit);
bool shed_stopped(const struct shed *r, unsigned int family, const struct probe_family *f);
/* How many steps it is reduced by; 0: none. */
unsigned int shed_step(const struct shed *r, unsigned int family, const struct probe_family *f);
/* Its rate now; at least 1 Hz. */
uint32_t shed_freq(const struct shed *r, unsigned int family, const struct probe_family *f,
		   uint32_t asked);

#endif
