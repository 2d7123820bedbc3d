/* SPDX-License-Identifier: Apache-2.0 */
/*
 * retry: a question that met a damaged file of the store is asked again without that file: it costs
 * itself only. And one that met a file which retention or sealing had just removed is asked again
 * of those that are there.
 */
#ifndef SONDE_TOOLS_RETRY_H
#define SONDE_TOOLS_RETRY_H

#include <stdbool.h>

#include "schema/base/err.h"

/* After a verb failed with `e` at try `tries` (from 0), and had printed nothing. What is left out
 * is said on stderr; `e` is cleared. */
bool retry_worth(const char *store, int tries, struct err *e);

#endif
