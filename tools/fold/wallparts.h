/* SPDX-License-Identifier: Apache-2.0 */
/*
 * wallparts: what there is to share out in a tree of wall time: one part for each thread, class of
 * its time and slice, and the stacks that shape it. Numbers only: no names, no tree.
 */
#ifndef SONDE_TOOLS_WALLPARTS_H
#define SONDE_TOOLS_WALLPARTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "schema/base/idmap.h"

struct wallkey { /* one thread's time of one class */
	uint32_t process, tid;
	const char *thread; /* one copy of each name: equal ones are the same pointer */
	uint32_t class;     /* enum store_wait_class */
	bool partial;       /* began before the capture, or outlasts it: no stack shapes it */
};

struct wallslice {
	uint32_t slice;
	uint64_t n, ns;
};
struct wallstack {
	uint32_t slice, stack;
	uint64_t weight;
}; /* stack: the caller's number of it */

struct wallpart {
	struct wallkey key;
	struct wallslice *slices;
	size_t n_slices, cap_slices;
	struct wallstack *stacks;
	size_t n_stacks, cap_stacks;
};

struct wallparts {
	struct wallpart *v;
	size_t n, cap;
	struct idmap of;
};

void wallparts_release(struct wallparts *p);
/* Exact time of a part in a slice, added to what it has there. */
void wallparts_add(struct wallparts *p, const struct wallkey *key, uint32_t slice, uint64_t n,
		   uint64_t ns);
/* A stack of a part; of a part that has no time it is dropped. */
void wallparts_shape(struct wallparts *p, const struct wallkey *key, const struct wallstack *s);

/* Each slice's time among the stacks of that slice by weight, among all of the part's where that
 * slice has none, to `stack` UINT32_MAX where the part has none at all. What is handed out adds up
 * to the part exactly. */
typedef void (*wallparts_fn)(void *ctx, const struct wallkey *key, uint32_t stack,
			     const struct wallslice *share);
void wallparts_share(const struct wallpart *part, wallparts_fn fn, void *ctx);

#endif
