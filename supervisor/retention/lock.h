/* SPDX-License-Identifier: Apache-2.0 */
/* lock: the one sonded of a store: STORE/sonded.lock, flock, with its pid. */
#ifndef SONDE_SUPERVISOR_LOCK_H
#define SONDE_SUPERVISOR_LOCK_H

#include <stdbool.h>

#include "schema/base/err.h"

/* *fd is the caller's. EXIT_STORE: another one has it; with `replace` that one is told to end, and
 * waited for: it flushes first, and all that can be made ready before is. EXIT_PERMISSION: the file
 * cannot be written. */
int lock_take(const char *store, bool replace, int *fd, struct err *e);

#endif
