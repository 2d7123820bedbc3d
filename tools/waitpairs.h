/* SPDX-License-Identifier: Apache-2.0 */
/*
 * waitpairs: who waited and who was to do with it, by processes, over all segments of a window: the neighbours that had the
 * CPU while one was ready to run, or the wakers that ended its waits.
 */
#ifndef SONDE_TOOLS_WAITPAIRS_H
#define SONDE_TOOLS_WAITPAIRS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "schema/base/err.h"

struct selection;

struct waitpairs_end {
	char *container, *comm;
	uint32_t pid;            /* 0: no process */
};

struct waitpairs_stack {         /* of wakers: where they woke */
	char *path;              /* waitstack_path */
	char *function;          /* waitstack_own, "" of no frames */
	uint64_t n, total_ns;
};

struct waitpairs_row {
	struct waitpairs_end who, by;
	uint32_t kind;           /* as struct store_wait_by */
	char *reason;            /* "" of neighbours */
	uint64_t n, total_ns;
	uint64_t whole_ns;       /* of all rows of `who` (and reason): what the share is of */
	struct waitpairs_stack *stacks; /* of a sample of the n; most time first */
	size_t n_stacks, cap_stacks;
};

struct waitpairs_held {
	char *cgroup;
	uint64_t periods, throttled, throttled_ns;
};

struct waitpairs {
	struct waitpairs_row *rows; /* by who, those that waited longest first; then by time */
	size_t n, cap;
	struct waitpairs_held *held; /* most time first; of the whole host, whatever the filters */
	size_t n_held, cap_held;
	uint64_t steal_ns, cpu_ns;
};

enum waitpairs_what { WAITPAIRS_NEIGHBOURS, WAITPAIRS_WAKERS };

/* EXIT_NOTHING, with what to do, where there are no rows. */
int waitpairs_make(const struct selection *sel, enum waitpairs_what what, struct waitpairs **out, struct err *e);
void waitpairs_free(struct waitpairs *p);

#endif
