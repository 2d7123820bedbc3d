/* SPDX-License-Identifier: Apache-2.0 */
/*
 * relief: what is done less while sonde takes more than its limits: one step at a time, each about one family. Pure.
 *
 *   CPU     1. the dearest family that can be slowed and still samples above an eighth: half its rate
 *           2. none can: the last family of the list that still runs is stopped, the first of the list at the very end
 *   memory  the last family that still runs is stopped, but for the first: sampling less takes no less memory
 *
 * Steps are taken back in reverse order, those of each limit by itself.
 */
#ifndef SONDE_SUPERVISOR_RELIEF_H
#define SONDE_SUPERVISOR_RELIEF_H

#include <stdbool.h>
#include <stdint.h>

#include "schema/base/families.h"

#define RELIEF_SLOWEST 3 /* halvings: an eighth */
#define RELIEF_STEPS   (FAMILIES_MAX * (RELIEF_SLOWEST + 1))

enum relief_limit { RELIEF_CPU, RELIEF_MEMORY };

struct relief_family {        /* one of the list, as it is now */
	bool wanted, slows;   /* `slows`: it samples at a rate */
	double cores;         /* that it takes */
};

struct relief_step {
	unsigned int family;  /* its place in the list */
	bool stop;            /* else: half its rate */
	enum relief_limit limit;
};

struct relief {
	struct relief_step step[RELIEF_STEPS];
	unsigned int n;
};

/* One step more, told in *out; false: there is none. */
bool relief_more(struct relief *r, enum relief_limit limit, const struct relief_family *f, unsigned int n,
		 struct relief_step *out);
/* The last one of this limit about a family that is still wanted is taken back, told in *out; false: there is none. */
bool relief_less(struct relief *r, enum relief_limit limit, const struct relief_family *f, unsigned int n,
		 struct relief_step *out);
/* How many steps of a limit hold. */
unsigned int relief_count(const struct relief *r, enum relief_limit limit);
bool relief_stopped(const struct relief *r, unsigned int family);
/* Its rate now; at least 1 Hz. */
uint32_t relief_freq(const struct relief *r, unsigned int family, uint32_t asked);

#endif
