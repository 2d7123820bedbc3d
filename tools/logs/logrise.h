/* SPDX-License-Identifier: Apache-2.0 */
/*
 * logrise: which patterns came more often in one range than in another. Pure.
 *
 * Of warnings and worse, LOGRISE_LEAST messages or more, and LOGRISE_TIMES as many in as much time
 * as before. Those that were not there before come first, then the worst, then the most.
 */
#ifndef SONDE_TOOLS_LOGRISE_H
#define SONDE_TOOLS_LOGRISE_H

#include "schema/base/strbuf.h"
#include "tools/logs/logread.h"

#define LOGRISE_LEAST 5
#define LOGRISE_TIMES 3.0
#define LOGRISE_MOST  5

struct logrise {
	const struct logread_pattern *pattern; /* borrowed from `after` */
	uint64_t before, after;
	double before_s, after_s; /* how long both ranges are */
};

/* How many; `out` has room for LOGRISE_MOST. */
size_t logrise_find(const struct logread *before, const struct logread *after,
		    struct logrise out[LOGRISE_MOST]);
/* "home_db_1 logs an error it did not before, 400 times in 20 s: deadlock detected" */
void logrise_say(const struct logrise *r, struct strbuf *out);

#endif
