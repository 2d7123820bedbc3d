/* SPDX-License-Identifier: Apache-2.0 */
/*
 * background: long work without a deadline, in a thread of the lowest priority (nice 19: a
 * hundredth of a CPU on a busy host, where the idle class could get nothing for months) and of the
 * disk's idle class. It must not hold a lock that a writer waits for. It is a thread because an
 * unprivileged process can lower its priority but not raise it again.
 */
#ifndef SONDE_STORE_ARCHIVE_BACKGROUND_H
#define SONDE_STORE_ARCHIVE_BACKGROUND_H

/* Returns what work(arg) returns; runs it in this thread if none can be created. */
int background_run(int (*work)(void *arg), void *arg);

#endif
