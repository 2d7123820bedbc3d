/* SPDX-License-Identifier: Apache-2.0 */
/*
 * checkslo: what a service promises (an SLO), as checks of how fast its budget of failures is used
 * up.
 *
 * A file NAME.slo has lines "key = value"; what follows # is a remark:
 *
 *   availability = 99.9      percent of requests that do not fail
 *   latency = 300ms          so long at most ...
 *   latency-target = 99      ... for so many percent of those that are answered (default 99)
 *   service, container, operation   which requests; all that servers of this host answered where
 * none is given
 *
 * Availability, latency or both. Of each two checks: the burn rate is the part that failed (or was
 * slow) over the part that may. `fast` (critical) is 14.4 over an hour and over 5 minutes: in two
 * days all that a month may have; `slow` (warning) is 6 over 6 hours and 30 minutes. Both windows
 * must be over it: the short one, so that it ends soon after the trouble does. Windows and factors:
 * Google, The Site Reliability Workbook, chapter 5. Latencies come in steps of an eighth of a power
 * of two: a request counts as slow where its whole step is.
 */
#ifndef SONDE_TOOLS_CHECKSLO_H
#define SONDE_TOOLS_CHECKSLO_H

#include <stddef.h>

#include "schema/base/err.h"
#include "tools/checks/checkfile.h"

#define CHECKSLO_MOST  4
#define CHECKSLO_LEAST 20 /* requests in the long window: of fewer nothing is said */

/* Pure. `name`: the file's, without .slo. `out`: CHECKSLO_MOST of them, *n are made, the caller's
 * (checkfile_release). EXIT_USAGE with the line. */
int checkslo_parse(const char *name, const char *origin, const char *text, size_t len,
		   struct checkfile *out, size_t *n, struct err *e);

#endif
