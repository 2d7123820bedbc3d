/* SPDX-License-Identifier: Apache-2.0 */
/*
 * waits: reading what threads waited for (store/write/waits.h), after the same choice of runs as
 * store_totals. Each function reports bucket by bucket, or sums of some, in no order; the caller
 * sums up. Ids are of this segment, strings borrowed from it. A segment of a schema that has none
 * of this tells nothing.
 */
#ifndef SONDE_STORE_READ_WAITS_H
#define SONDE_STORE_READ_WAITS_H

#include <stdbool.h>
#include <stdint.h>

#include "schema/store/read/reader.h"

enum store_wait_state { STORE_STATE_RUNNING = 1, STORE_STATE_BLOCKED = 2, STORE_STATE_READY = 3 };

struct store_thread {
	uint32_t process, tid; /* process 0: none */
	const char *name;
};

struct store_wait_total {
	struct store_thread who;
	uint32_t class; /* enum store_wait_class */
	enum store_wait_state state;
	const char *reason; /* the class's name, "class 40" for one that this store does not name */
	uint32_t flags;     /* enum store_wait_flags */
	uint64_t n, total_ns, max_ns;
	const char *hist; /* as stored (model/hist.h), borrowed for the call; NULL: not known */
};
int store_wait_totals(struct store_segment *s, const struct store_query *q,
		      int (*each)(void *ctx, const struct store_wait_total *t), void *ctx,
		      struct err *e);

struct store_wait_by { /* who ended a wait, or had the CPU meanwhile */
	struct store_thread who, by;
	uint32_t kind; /* of wakers enum store_wake_context, of culprits enum store_culprit_kind */
	const char *reason; /* of wakers the wait's; "" */
	uint32_t stack;     /* of wakers: of `by`, in the dictionary; 0: not taken */
	uint64_t n, total_ns;
};
int store_wakers(struct store_segment *s, const struct store_query *q,
		 int (*each)(void *ctx, const struct store_wait_by *b), void *ctx, struct err *e);
int store_culprits(struct store_segment *s, const struct store_query *q,
		   int (*each)(void *ctx, const struct store_wait_by *b), void *ctx, struct err *e);

struct store_wait_object { /* what was waited on, weighted as amounts by stack */
	struct store_thread who,
		by;         /* by: who ended the wait, process 0: an interrupt, or not known */
	const char *reason; /* the wait's */
	const char *object; /* borrowed for the call */
	uint32_t stack;     /* of `who`, in the dictionary */
	uint64_t n, total_ns;
};
int store_wait_objects(struct store_segment *s, const struct store_query *q,
		       int (*each)(void *ctx, const struct store_wait_object *o), void *ctx,
		       struct err *e);

/* Has this file of a day sums of all that is read here, and of waits by stack (STORE_BY_LABEL)? If
 * not, its archives are asked. */
bool store_waits_summed(struct store_segment *s);

struct store_held {         /* summed over the range */
	const char *cgroup; /* of throttled ones; "" for the host's steal time */
	uint64_t periods, throttled, throttled_ns;
	uint64_t steal_ns, cpu_ns;
};
/* Cgroups that their quota held back, and once the time that the hypervisor took; captures that ran
 * at once count once. */
int store_held_back(struct store_segment *s, const struct store_query *q,
		    int (*each)(void *ctx, const struct store_held *h), void *ctx, struct err *e);

/* The name of a class of blocked threads (a label of series of kind OFFCPU); "other" for an unknown
 * class. */
const char *store_wait_reason(uint32_t class);

#endif
