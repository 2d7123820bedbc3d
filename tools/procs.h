/* SPDX-License-Identifier: Apache-2.0 */
/*
 * procs: who ran in a window, as rows: one a process (an exec begins a new one), or one a container with all that ran
 * outside of containers as one row. The same answer for a window that is long past: from a fold, nothing of the live
 * host is read.
 */
#ifndef SONDE_TOOLS_PROCS_H
#define SONDE_TOOLS_PROCS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "schema/base/err.h"
#include "tools/fold.h"

struct procs_row {
	uint32_t process;         /* into fold.processes: the row's process, of a container the one that used most */
	size_t n_processes;       /* of a container; else 1 */
	const char *container;    /* its name or id, "[host]"; only where rows are containers */
	uint64_t ns, samples;
	uint32_t frame;           /* the function (of fold.frames) that it was in most */
	uint64_t frame_ns;        /* 0: no stack is known */
};

enum procs_by { PROCS_BY_PROCESS, PROCS_BY_CONTAINER };

struct procs {
	struct procs_row *rows;   /* most CPU time first, until procs_sort says otherwise */
	size_t n;
};

/* `f` was made with leaves and outlives `p`. */
void procs_init(struct procs *p, const struct fold *f, enum procs_by by);
void procs_release(struct procs *p);
/* "cpu", "pid", "name", "start"; EXIT_USAGE with the list. */
int procs_sort(struct procs *p, const struct fold *f, const char *key, struct err *e);
/* The process that had its parent's pid when it started, where that ran in the window; NULL. */
const struct fold_process *procs_parent(const struct fold *f, const struct fold_process *p);

#endif
