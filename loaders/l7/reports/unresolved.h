/* SPDX-License-Identifier: Apache-2.0 */
/*
 * unresolved: DNS lookups that failed (NXDOMAIN, SERVFAIL, no answer...), as events. Many failures
 * make few events:
 *
 * 1. The first failure of a name in a program (by its command name) is reported at once, with the
 *    count of its bucket.
 * 2. Further ones are added up and reported once in UNRESOLVED_EVERY_NS.
 * 3. At most UNRESOLVED_MOST names in UNRESOLVED_FORGET_NS; the rest is reported as "other names".
 */
#ifndef SONDE_L7_UNRESOLVED_H
#define SONDE_L7_UNRESOLVED_H

#include "loaders/l7/parser_message.h"

#define UNRESOLVED_EVERY_NS  (10ll * 1000000000)
#define UNRESOLVED_FORGET_NS (60ll * 1000000000)
#define UNRESOLVED_MOST      64

struct unresolved_one {
	char name[128], why[32], comm[17];
	struct msg_process process; /* the last one that asked */
	uint64_t n;
	int64_t utc_ns; /* of its last lookup */
};

struct unresolved {
	struct {
		struct unresolved_one one; /* n: not reported yet */
		int64_t reported_ns;
	} all[UNRESOLVED_MOST + 1]; /* the last one is for other names */
	uint32_t n;
};

typedef void (*unresolved_report)(void *ctx, const struct unresolved_one *x);

/* Adds x->n failures. now_ns: any monotonic clock. */
void unresolved_add(struct unresolved *u, const struct unresolved_one *x, int64_t now_ns,
		    unresolved_report report, void *ctx);
/* Reports what is due; INT64_MAX: everything. */
void unresolved_due(struct unresolved *u, int64_t now_ns, unresolved_report report, void *ctx);

#endif
