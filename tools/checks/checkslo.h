/* SPDX-License-Identifier: Apache-2.0 */
/*
 * checkslo: service level objectives (SLO), as checks of how fast the error budget is used up.
 *
 * A file NAME.slo has lines "key = value"; # starts a comment:
 *
 *   availability = 99.9      percent of requests that must not fail
 *   latency = 300ms          the limit ...
 *   latency-target = 99      ... for this percentage of answered requests (default 99)
 *   service, container, operation   which requests (default: all answered here)
 *
 * Availability, latency or both. Each gives two checks of the burn rate: the share that failed (or
 * was slow) divided by the share that may. `fast` (critical) is 14.4 over an hour and over 5
 * minutes: the budget of a month in two days; `slow` (warning) is 6 over 6 hours and 30 minutes.
 * Both windows must exceed it: the short one ends the alert soon after the trouble ends. Windows
 * and factors: Google, The Site Reliability Workbook, chapter 5. Latencies come in steps of an
 * eighth of a power of two: a request counts as slow if its whole step is above the limit.
 */
#ifndef SONDE_TOOLS_CHECKSLO_H
#define SONDE_TOOLS_CHECKSLO_H

#include <stddef.h>

#include "schema/base/err.h"
#include "tools/checks/checkfile.h"

#define CHECKSLO_MOST 4
#define CHECKSLO_LEAST \
	20 /* minimum number of requests in the long window; with fewer there is no result */

/* Pure. `name`: the file name without .slo. `out` has room for CHECKSLO_MOST; *n are made, which
 * belong to the caller (checkfile_release). EXIT_USAGE with the line. */
int checkslo_parse(const char *name, const char *origin, const char *text, size_t len,
		   struct checkfile *out, size_t *n, struct err *e);

#endif
