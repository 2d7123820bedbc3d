/* SPDX-License-Identifier: Apache-2.0 */
/*
 * background: long work that nobody waits for, in a thread of the lowest priority (nice 19: on a
 * busy host a hundredth of a CPU, where the idle class would have none for months) and of the
 * disk's idle class. No lock that a writer waits for may be held meanwhile. A thread, because
 * whoever has no rights may go down there and not come back.
 */
#ifndef SONDE_STORE_ARCHIVE_BACKGROUND_H
#define SONDE_STORE_ARCHIVE_BACKGROUND_H

/* What work(arg) returns; it is done here, as everything else, where no thread can be had. */
int background_run(int (*work)(void *arg), void *arg);

#endif
