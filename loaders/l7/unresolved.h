/* SPDX-License-Identifier: Apache-2.0 */
/*
 * unresolved: names that were asked for in vain (NXDOMAIN, SERVFAIL, no answer...), as events. A
 * storm is few of them:
 *
 * 1. The first time that a program (by its command) asks for a name in vain is told at once, with
 * how often in its bucket.
 * 2. What follows is told together, once in UNRESOLVED_EVERY_NS.
 * 3. Of UNRESOLVED_MOST names in UNRESOLVED_FORGET_NS; what is more has "other names" as its name.
 */
#ifndef SONDE_L7_UNRESOLVED_H
#define SONDE_L7_UNRESOLVED_H

#include "loaders/l7/parser_message.h"

#define UNRESOLVED_EVERY_NS  (10ll * 1000000000)
#define UNRESOLVED_FORGET_NS (60ll * 1000000000)
#define UNRESOLVED_MOST      64

struct unresolved_one {
	char name[128], why[32], comm[17];
	struct said_who who; /* who asked last */
	uint64_t n;
	int64_t utc_ns; /* when it asked last */
};

struct unresolved {
	struct {
		struct unresolved_one told; /* n: not told yet */
		int64_t told_ns;            /* when it was told last */
	} all[UNRESOLVED_MOST + 1];
	uint32_t n; /* the last place is that of other names */
};

typedef void (*unresolved_tell)(void *ctx, const struct unresolved_one *x);

/* `x->n` more. now_ns: any clock that goes on. */
void unresolved_add(struct unresolved *u, const struct unresolved_one *x, int64_t now_ns,
		    unresolved_tell tell, void *ctx);
/* Tells what is due; INT64_MAX: all that is there. */
void unresolved_due(struct unresolved *u, int64_t now_ns, unresolved_tell tell, void *ctx);

#endif
