/* SPDX-License-Identifier: Apache-2.0 */
/*
 * waits: what family offcpu writes in addition to amounts by stack; the tables and views of
 * schema/sql/0023-waits.sql (docs/SCHEMA.md).
 *
 * Amounts by stack are series of kinds OFFCPU and RUNQUEUE whose label is the class of the wait
 * (store_series_labelled, store_amount): below a rate limit every wait has its stack taken; above
 * it only some, which count for the others. While no stacks are taken, the exact sums are there
 * too, without a stack. The values here are exact, and need no stack. Everything is summed in the
 * bucket that holds `utc_ns`.
 *
 * Events: each store_wait accounts for n. Wake-ups and culprits describe the same waits and account
 * for nothing: a dropped batch drops them with its waits. A row with a number past 2^56 (2.3 years
 * of nanoseconds) is not stored: it counts as one lost, reason "range", whatever its n.
 */
#ifndef SONDE_STORE_WRITE_WAITS_H
#define SONDE_STORE_WRITE_WAITS_H

#include <stddef.h>
#include <stdint.h>

#include "schema/store/model/stored.h"

struct store_writer;

struct store_wait {
	enum store_wait_class class;
	uint32_t flags;               /* enum store_wait_flags */
	uint64_t n, total_ns, max_ns; /* max_ns 0: not known */
	const uint32_t *hist;         /* as in struct store_amount; NULL: not known */
	size_t n_hist;
	unsigned first_slot;
};

struct store_wake {
	enum store_wait_class class;
	uint32_t waker; /* task, 0: none */
	enum store_wake_context context;
	uint32_t stack; /* 0: not sampled */
	uint64_t n, total_ns;
};

struct store_wait_on { /* waits whose stack was taken: n and total_ns weighted as its amounts */
	enum store_wait_class class;
	const char *object; /* for people */
	uint32_t waker;     /* task, 0: an interrupt, or not known */
	uint32_t stack;     /* of who waited */
	uint64_t n, total_ns;
};

struct store_culprit {
	uint32_t culprit; /* task, 0 unless a thread */
	enum store_culprit_kind kind;
	uint64_t n, total_ns;
};

struct store_throttle {
	uint64_t periods, throttled, throttled_ns;
};
struct store_steal {
	uint64_t steal_ns, idle_ns, cpu_ns;
};

/* A thread of a process in a run, of kind OFFCPU; 0: the ids belong to another epoch, or there is
 * no such run. */
uint32_t store_task(struct store_writer *w, uint32_t run, uint32_t process, const char *thread,
		    uint32_t tid);

/* 0, or -ESTALE as store_add: forget all ids and intern again. */
int store_wait(struct store_writer *w, uint32_t task, int64_t utc_ns, const struct store_wait *x);
/* -ESTALE too where waker or stack are not of this epoch. */
int store_wake(struct store_writer *w, uint32_t task, int64_t utc_ns, const struct store_wake *x);
int store_wait_on(struct store_writer *w, uint32_t task, int64_t utc_ns,
		  const struct store_wait_on *x);
int store_culprit(struct store_writer *w, uint32_t task, int64_t utc_ns,
		  const struct store_culprit *x);
void store_throttle(struct store_writer *w, uint32_t run, int64_t utc_ns, const char *cgroup,
		    const struct store_throttle *x);
void store_steal(struct store_writer *w, uint32_t run, int64_t utc_ns, const struct store_steal *x);
/* In this bucket stacks were taken at a lower rate: by `steps`, at most `stack_rate` a second on
 * each CPU. If that is 0, the sums by stack are there too, without a stack. */
void store_slowed(struct store_writer *w, uint32_t run, int64_t utc_ns, uint32_t step,
		  uint32_t stack_rate);

#endif
