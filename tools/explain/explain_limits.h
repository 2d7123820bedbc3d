/* SPDX-License-Identifier: Apache-2.0 */
/*
 * explain_limits: what of the host was at its limit in the window, whether or not it was so before:
 * a host that has been too small all along has changed in nothing, and is slow for that.
 *
 *  1. The CPUs: EXPLAIN_LIMIT_CPU of them were used, and threads waited for one EXPLAIN_LIMIT_WAIT
 *     of the time (PSI, "some"). Where family host did not record, or the kernel has no PSI:
 *     EXPLAIN_LIMIT_SAMPLED of them were used.
 *  2. Memory: threads waited for it EXPLAIN_LIMIT_MEMORY of the time.
 *  3. A disk: it was busy EXPLAIN_LIMIT_DISK of the time, and threads waited for disks for
 *     EXPLAIN_LIMIT_IO of it.
 */
#ifndef SONDE_TOOLS_EXPLAIN_LIMITS_H
#define SONDE_TOOLS_EXPLAIN_LIMITS_H

#include <stdbool.h>
#include <stdio.h>

#include <jansson.h>

#include "schema/base/err.h"
#include "schema/base/strbuf.h"
#include "tools/processes/hostload.h"
#include "tools/select/select.h"

#define EXPLAIN_LIMIT_CPU     0.8
#define EXPLAIN_LIMIT_WAIT    0.4
#define EXPLAIN_LIMIT_SAMPLED 0.95
#define EXPLAIN_LIMIT_MEMORY  0.1
#define EXPLAIN_LIMIT_DISK    0.8
#define EXPLAIN_LIMIT_IO      0.3
#define EXPLAIN_LIMIT_WHO     3 /* that used most */

enum explain_limit { EXPLAIN_LIMIT_IS_CPU, EXPLAIN_LIMIT_IS_MEMORY, EXPLAIN_LIMIT_IS_DISK };

struct explain_limits {
	const struct selection *sel; /* of the window, borrowed */
	struct hostload at[2];       /* DIFF_BEFORE, DIFF_AFTER */
	double sampled[2];           /* CPUs used, by samples; -1: not known */
	bool disk_known;             /* family disk recorded requests in the window */
	struct strbuf who;           /* "python3 (0.19 cores), ..." */
	enum explain_limit rows[3];
	size_t n;
};

/* `sel` outlives it. Release in any case. */
int explain_limits_read(struct selection *const sel[2], struct explain_limits *out, struct err *e);
void explain_limits_release(struct explain_limits *x);
/* hint_store: what commands must name, or NULL. */
void explain_limits_print(const struct explain_limits *x, const char *hint_store, FILE *out);
json_t *explain_limits_json(const struct explain_limits *x, const char *hint_store);

#endif
