/* SPDX-License-Identifier: Apache-2.0 */
/*
 * quiet: long work that nobody waits for, in a thread of the idle class (CPU and disk). No lock that a writer waits for may be
 * held meanwhile. A thread, because whoever has no rights may enter that class and not leave it.
 */
#ifndef SONDE_STORE_QUIET_H
#define SONDE_STORE_QUIET_H

/* What work(arg) returns; it is done here, as everything else, where no thread can be had. */
int quiet_run(int (*work)(void *arg), void *arg);

#endif
