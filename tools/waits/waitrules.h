/* SPDX-License-Identifier: Apache-2.0 */
/*
 * waitrules: what a function name says about a wait beyond its class: PostgreSQL's ProcSleep waits
 * in epoll, but is a lock; a pool's worker waits in a futex, but is idle. One table; a new program
 * is a new line.
 *
 *   1. From the leaf on, the first frame whose function a rule of this class names decides.
 *   2. Else the first that a weak rule names: a condition variable of the C library is taken as a
 *      worker's, unless an outer function says what it is for.
 *   3. No such frame, or no stack: a poll is idle (an event loop with no event), all else is work.
 * Idle is a wait for a request; work is a wait that delays something requested.
 */
#ifndef SONDE_TOOLS_WAITRULES_H
#define SONDE_TOOLS_WAITRULES_H

#include <stdbool.h>
#include <stddef.h>

struct waitrule {
	const char *class; /* of the wait; NULL: any */
	const char *function;
	const char *reason; /* instead of the class; NULL: keep the class */
	bool idle;
};

/* The rule of one function for a wait of this class; NULL: none. */
const struct waitrule *waitrule_of(const char *class, const char *function);
const struct waitrule *waitrule_weak_of(const char *class, const char *function);
/* Does any rule or purpose name it? false: all of the above have nothing of it. */
bool waitrule_names(const char *function);
/* May a wait of this class be for that reason? */
bool waitrule_may(const char *class, const char *reason);
bool waitrule_idle_by_class(const char *class);
/* What a program does in this function, where that says more than the class of a wait below it:
 * "WAL"; NULL. */
const char *waitrule_purpose(const char *function);

#endif
