/* SPDX-License-Identifier: Apache-2.0 */
/*
 * leftover: children of a sonded that was killed. They end by themselves (child.h), unless they
 * hang. STORE/children lists the children of the running sonded, one a line: pid and start time in
 * clock ticks, which together identify a process. The next sonded that takes the store's supervisor
 * lock ends those that are left.
 */
#ifndef SONDE_SUPERVISOR_LEFTOVER_H
#define SONDE_SUPERVISOR_LEFTOVER_H

#include <stddef.h>
#include <sys/types.h>

/* Rewrites the list. 0 in `pids`: none. */
void leftover_note(const char *store, const pid_t *pids, size_t n);
/* Waits up to `patience_ms` for the processes of the list, then kills them. Returns how many it
 * killed. */
int leftover_end(const char *store, int patience_ms);

#endif
