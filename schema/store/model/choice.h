/* SPDX-License-Identifier: Apache-2.0 */
/*
 * choice: where several runs covered the same process at the same time, which one a bucket is
 * taken from. Pure: no SQL. The view run_hidden (schema/sql) says the same; a test compares the
 * two.
 *
 * Runs of one family are ordered, finest first: bucket width, smallest period, id. E is what a
 * bucket really holds: the bucket cut to its run's [from, to). A run covers a process if it covers
 * the whole host, or has it (narrow).
 *   0. If a finer run covered the process for the whole window asked for (cut to what its family
 *      has), that run is taken; but not where a run whose rows are in another file touches it.
 *   1. A bucket is hidden where a finer run covered its process for the whole of E.
 *   2. A finer run's bucket is hidden where it touches the E of a coarser run's bucket that rule 1
 *      leaves visible.
 *   3. A run that covers no process wholly (partial) is hidden wherever it touches a run that
 *      covers the process; among other partial runs it follows 1 and 2, as if it covered the
 *      processes that it has.
 * A period is that of the last change at or before the start of the bucket.
 */
#ifndef SONDE_STORE_MODEL_CHOICE_H
#define SONDE_STORE_MODEL_CHOICE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "schema/store/model/stored.h"

struct choice_period {
	int64_t from_ns;
	uint64_t period_ns;
};

struct choice_run {
	bool present;
	enum store_scope scope;
	uint32_t family;   /* any number; equal: the same family */
	uint32_t bucket_s; /* > 0 */
	int64_t from_ns, to_ns;
	struct choice_period *periods; /* in order of time; borrowed */
	uint32_t n_periods;
	bool elsewhere; /* its rows are in another file (archive/keep.h) */
	/* filled in by choice_init */
	uint64_t period_min;
	bool alone;   /* no other run of its family overlaps it */
	uint8_t *has; /* bit a process: narrow and partial runs */
};

struct choice {
	struct choice_run *runs; /* by id; borrowed */
	size_t n_runs, n_processes;
	bool window;
	int64_t from_ns, to_ns;
	uint32_t *taken; /* rule 0, by process: run + 1, 0: not looked yet, 1: none */
	uint32_t taken_family;
	int64_t taken_from_ns, taken_to_ns; /* the window cut to what there is of that family */
};

/* Then choice_has for each process that a narrow or partial run has samples of. */
void choice_init(struct choice *c, struct choice_run *runs, size_t n_runs, size_t n_processes);
void choice_has(struct choice *c, uint32_t run, uint32_t process);
/* Rule 0 for [from, to), half-open. Without it only rules 1 to 3 hold. */
void choice_window(struct choice *c, int64_t from_ns, int64_t to_ns);
void choice_release(struct choice *c);

/* Is the bucket that begins at `ts` (seconds since 1970) of that run and process to be taken? */
bool choice_takes(struct choice *c, uint32_t run, uint32_t process, int64_t ts);
uint64_t choice_period(const struct choice_run *r, int64_t ts);

#endif
