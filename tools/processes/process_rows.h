/* SPDX-License-Identifier: Apache-2.0 */
/*
 * procs: who ran in a window, as rows: one a process (an exec begins a new one), or one a container
 * with all that ran outside of containers as one row. The same answer for a window that is long
 * past: from a fold, nothing of the live host is read.
 */
#ifndef SONDE_TOOLS_PROCESS_ROWS_H
#define SONDE_TOOLS_PROCESS_ROWS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "schema/base/err.h"
#include "tools/fold/fold.h"
#include "tools/processes/procs_more.h"
#include "tools/processes/process_usage.h"
#include "tools/timeline/incidents.h"

struct process_rows_row {
	const struct fold_process
		*who; /* borrowed from the fold: the row's process, of a container the one that used
		       * most; NULL: a container that used none */
	size_t n_processes;    /* of a container; else 1 */
	const char *container; /* its name or id, "[host]"; only where rows are containers */
	uint64_t ns, samples;
	uint32_t frame; /* the function (of fold.frames) that it was in most, by hotfunctions.h; of
			 * a container: that processes of who's command were in most */
	uint64_t frame_ns;                          /* 0: no stack is known */
	uint64_t more[STORE_KINDS];                 /* by fold of procs_more */
	const struct incident_container *incidents; /* of a container, borrowed; NULL: none */
	const struct process_usage_row
		*used; /* use other than CPU time, borrowed; NULL: not known */
};

enum process_rows_by { PROCESS_ROWS_BY_PROCESS, PROCESS_ROWS_BY_CONTAINER };

struct process_rows {
	struct process_rows_row
		*rows; /* most CPU time first, until process_rows_sort says otherwise */
	size_t n;
	const struct procs_more *more;    /* borrowed; NULL: only CPU time */
	const struct process_usage *used; /* the same; NULL: not asked */
	const struct fold *f;             /* that it was made of */
	uint32_t *by_pid; /* its processes, by pid and start: process_rows_parent; NULL where rows
			     are containers */
};

/* `f` was made with leaves and outlives `p`. */
void process_rows_init(struct process_rows *p, const struct fold *f, enum process_rows_by by);
void process_rows_release(struct process_rows *p);
/* Rows of processes, not of containers: fills in what each has in addition to CPU time. `more` and
 * its folds outlive `p`. */
void process_rows_add(struct process_rows *p, const struct procs_more *more);
/* Rows of containers: fill in what happened to each; those that used no CPU while something
 * happened to them get rows. */
void process_rows_add_incidents(struct process_rows *p, const struct incidents *x);
/* Fill in what each row used, of processes or of containers. Containers that used no CPU while it
 * was sampled get rows, processes only where they are sorted by it. `used` outlives `p`. */
void process_rows_add_used(struct process_rows *p, const struct process_usage *used);
/*
 * "cpu", "pid", "name", "start", "mem", "io", "net", "gpu", "disk", or the name of a kind in
 * `more`: the most of it first, and then those who have some of it and used no CPU are rows, too.
 * EXIT_USAGE with the list; EXIT_NOTHING where that kind was not recorded.
 */
int process_rows_sort(struct process_rows *p, const char *key, struct err *e);
/* How long its CPU quota held a container back. */
uint64_t process_rows_throttled_ns(const struct process_rows_row *r);
/* Of rows of processes: the one that had the parent's pid when the child started, where it ran in
 * the window; NULL. */
const struct fold_process *process_rows_parent(const struct process_rows *p,
					       const struct fold_process *child);

#endif
