/* SPDX-License-Identifier: Apache-2.0 */
/*
 * waitsum: what threads waited for in a window, over all its segments, by group and reason.
 *
 * Count, total and longest are exact, by class. Stacks say more (tools/waits/waitrules.h): where
 * they divide the waits of one class in one group, the class's exact numbers are divided in the
 * same proportion, and the rows say so (`exact` false). Waits that began before the capture or had
 * not ended at its end have separate rows (`partial`): only their part inside the window is known.
 */
#ifndef SONDE_TOOLS_WAITSUM_H
#define SONDE_TOOLS_WAITSUM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "schema/base/err.h"
#include "schema/store/model/hist.h"
#include "tools/waits/waitheld.h"

struct idmap;
struct selection;

enum waitsum_by { WAITSUM_BY_PROCESS, WAITSUM_BY_THREAD, WAITSUM_BY_COMMAND, WAITSUM_BY_CONTAINER };

struct waitsum_row {
	char *container, *comm,
		*thread;    /* thread NULL unless grouped by it; comm "" of a container */
	uint32_t pid;       /* 0: grouped by command or container */
	size_t n_processes; /* of which it is the sum */
	uint32_t one_pid;   /* where that is one; else 0 */
	char *class;        /* the kernel's class */
	char *reason;       /* "lock", ...; "run queue": ready, and not running */
	char *function; /* innermost function of the program's code where it waited most; NULL: no
			 * stack is known
			 */
	char *object;   /* what it waited on most, of those waits whose stack is known; NULL: not
			   known */
	char *peer; /* of an object that is an address: who has the other end (netpeers.h); NULL:
		       not known */
	char *by;   /* thread that ended most of the waits on it, by_tid; NULL: not known */
	uint32_t by_tid;
	const char *purpose; /* waitrule_purpose of most of what had one, purpose_ns of total_ns;
				NULL: none had; static */
	uint64_t purpose_ns;
	uint64_t timer_ns; /* of locks: of total_ns, what a timer ended and no thread: it was to
			      last so long, as a sleep is */
	uint64_t ruled_ns; /* of total_ns: a named function says that this is the reason
			      (waitrules.h); else the kernel's class does */
	bool idle, partial, exact;
	bool background; /* idle, or not over and of no kind that shows that something is in the
			    way: a daemon's, as a rule */
	uint64_t n, total_ns, max_ns; /* max_ns 0: not known */
	/* Of n and total_ns, where a class's exact numbers are divided by stacks, and these were
	 * taken of some waits only; the root is the standard error. 0: no error is known. */
	double n_variance, total_variance;
	struct hist *hist; /* NULL: not known */
};

struct waitsum {
	struct waitsum_row *rows; /* most time first */
	size_t n, cap;
	struct waitheld held; /* sorted */
};

/* EXIT_NOTHING, with what to do, where the window holds no waits. */
int waitsum_make(const struct selection *sel, enum waitsum_by by, struct waitsum **out,
		 struct err *e);
/*
 * Only waits of threads while they served these requests (store_query.tags): those whose stack was
 * taken, one by one, so that each row's numbers are exact, but its longest and its distribution are
 * unknown. An object is given if all waits of the thread in that place are on the same one.
 */
int waitsum_make_tagged(const struct selection *sel, enum waitsum_by by, const struct idmap *tags,
			struct waitsum **out, struct err *e);
void waitsum_free(struct waitsum *w);

#endif
