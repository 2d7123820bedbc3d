/* SPDX-License-Identifier: Apache-2.0 */
/*
 * leftover: children of a sonded that was killed. They end by themselves (child.h); one that hangs
 * does not. STORE/children lists those of the living sonded, a line each: pid, start time in clock
 * ticks. Whoever has the store's supervisor lock next ends what is left of them, by that identity.
 */
#ifndef SONDE_SUPERVISOR_LEFTOVER_H
#define SONDE_SUPERVISOR_LEFTOVER_H

#include <stddef.h>
#include <sys/types.h>

/* Write the list anew. 0 in `pids`: none. */
void leftover_note(const char *store, const pid_t *pids, size_t n);
/* Wait for those of the list, up to `patience_ms`, then kill. How many had to be killed. */
int leftover_end(const char *store, int patience_ms);

#endif
