/* SPDX-License-Identifier: Apache-2.0 */
/*
 * explain_unread: heaps are read one process after another, on a busy host not in every window. A
 * process that lived through a window in which its heap was not read held something then, but
 * how much is not known: nothing is said of it.
 */
#ifndef SONDE_TOOLS_EXPLAIN_UNREAD_H
#define SONDE_TOOLS_EXPLAIN_UNREAD_H

#include <stddef.h>

#include "tools/explain/explain.h"

/* Of statements `first` and later, which are of `d`: removes those that such a process makes
 * untrue, and names them in x->uncompared. Kinds that are not read from heaps stay as they are. */
void explain_unread_drop(struct explain *x, size_t first, const struct diff *d);

#endif
