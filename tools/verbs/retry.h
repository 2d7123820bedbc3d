/* SPDX-License-Identifier: Apache-2.0 */
/*
 * retry: runs a query again after it met a damaged file of the store, without that file: only its
 * data is lost. A query that met a file which retention or archiving had just removed runs again on
 * the files that are there. One that read days (schema/store/read/days.h) runs again on their
 * archives, whatever it failed with.
 */
#ifndef SONDE_TOOLS_RETRY_H
#define SONDE_TOOLS_RETRY_H

#include <stdbool.h>

#include "schema/base/err.h"

/* Call this after a verb failed with `e` at try number `tries` (from 0) without having printed
 * anything. Skipped files are reported on stderr; `e` is cleared. */
bool retry_worth(const char *store, int tries, struct err *e);

#endif
