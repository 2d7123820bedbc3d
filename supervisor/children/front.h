/* SPDX-License-Identifier: Apache-2.0 */
/*
 * front: sonded in its own session, whatever starts it in the foreground. With autogroup a
 * session is one group of the scheduler (weight.h), and a shell's session is not sonded's to give
 * weight. So the process that was started stays there and passes signals on, as a terminal and a
 * shell send them; its child, which begins a session, is sonded. Each ends with the other.
 */
#ifndef SONDE_SUPERVISOR_FRONT_H
#define SONDE_SUPERVISOR_FRONT_H

#include <stdbool.h>

/* Is this session of others' processes too, on a kernel where that matters? */
bool front_needed(void);
/* -1: this is the process that goes on as sonded; errno is 0 if it leads a session now. Otherwise
 * the exit code of sonded, which has ended; if a signal ended it, it ends this process too. */
int front_leave(void);

#endif
