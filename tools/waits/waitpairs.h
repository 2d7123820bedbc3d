/* SPDX-License-Identifier: Apache-2.0 */
/*
 * waitpairs: who waited and who was to do with it, by processes, over all segments of a window: the
 * neighbours that had the CPU while one was ready to run, or the wakers that ended its waits.
 */
#ifndef SONDE_TOOLS_WAITPAIRS_H
#define SONDE_TOOLS_WAITPAIRS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "schema/base/err.h"
#include "tools/waits/waitheld.h"

struct selection;

struct waitpairs_end {
	char *container, *comm;
	uint32_t pid; /* 0: no process, or several */
	size_t n_processes;
};

struct waitpairs_stack { /* of wakers: where they woke */
	char *path;      /* waitstack_path */
	char *function;  /* waitstack_own, "" of no frames */
	uint64_t n, total_ns;
};

struct waitpairs_row {
	struct waitpairs_end who, by;
	uint32_t kind; /* as struct store_wait_by */
	char *reason;  /* "" of neighbours */
	uint64_t n, total_ns;
	uint64_t whole_ns; /* of all rows of `who` (and reason): what the share is of */
	struct waitpairs_stack *stacks; /* of a sample of the n; most time first */
	size_t n_stacks, cap_stacks;
	bool late; /* folded wakers: a sleep, a wait for a child, or one that timers and devices
		      ended: behind the others */
	bool idle; /* of wakers: most of the waits of that name and reason are idle (waitsum.h);
		      waitpairs_know_idle */
};

struct waitpairs {
	struct waitpairs_row *rows; /* by who, those that waited longest first; then by time */
	size_t n, cap;
	struct waitheld held; /* of neighbours: sorted; of the whole host, whatever the filters */
	bool estimated;       /* of neighbours: some are of moments, as always-on runs have them */
};

enum waitpairs_what { WAITPAIRS_NEIGHBOURS, WAITPAIRS_WAKERS };

/* EXIT_NOTHING, with what to do, where there are no rows. */
int waitpairs_make(const struct selection *sel, enum waitpairs_what what, struct waitpairs **out,
		   struct err *e);
/* The same by name and container: processes of one name are one, and a process that merely happened
 * to be on the CPU when a timer or a device interrupted it is not a waker (for waits for the
 * network and polls it may have sent the data, and stays). The caller's (waitpairs_free); without
 * `held`. */
struct waitpairs *waitpairs_fold(const struct waitpairs *w);
/* Fills in `idle` of each row. */
int waitpairs_know_idle(struct waitpairs *w, const struct selection *sel, struct err *e);
void waitpairs_row_release(struct waitpairs_row *r);
void waitpairs_free(struct waitpairs *p);

#endif
