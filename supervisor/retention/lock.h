/* SPDX-License-Identifier: Apache-2.0 */
/* lock: the one sonded of a store: STORE/sonded.lock, flock, with its pid. */
#ifndef SONDE_SUPERVISOR_LOCK_H
#define SONDE_SUPERVISOR_LOCK_H

#include <stdbool.h>

#include "schema/base/err.h"

/* *fd is the caller's. EXIT_STORE: another sonded has the lock; with `replace` it first asks that
 * one to end and waits for it, since that one flushes. EXIT_PERMISSION: the file cannot be written.
 */
int lock_take(const char *store, bool replace, int *fd, struct err *e);

#endif
