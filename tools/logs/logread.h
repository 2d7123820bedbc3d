/* SPDX-License-Identifier: Apache-2.0 */
/*
 * logread: what was logged in a selection's range, from the rows of family logs: how much each
 * source wrote, and its patterns. Patterns that are alike (schema/base/tables/alike.h) are one.
 *
 * Filters are of processes: a source is in if its container, or a unit of its name, is selected.
 */
#ifndef SONDE_TOOLS_LOGREAD_H
#define SONDE_TOOLS_LOGREAD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "schema/base/err.h"
#include "tools/select/select.h"

enum log_badness {
	LOGREAD_UNKNOWN,
	LOGREAD_DEBUG,
	LOGREAD_INFO,
	LOGREAD_WARNING,
	LOGREAD_ERROR,
	LOGREAD_FATAL,
	LOGREAD_LEVELS
};
extern const char *const LOGREAD_NAMES[LOGREAD_LEVELS]; /* "unknown", ..., "fatal" */

struct logread_source {
	char *source, *container, *kind;
	uint64_t lines, bytes, cuts, messages[LOGREAD_LEVELS];
	uint64_t burst; /* lines in buckets with a burst */
};

struct logread_pattern {
	char *source, *container, *pattern, *sample, *comm;
	enum log_badness level;
	uint64_t messages, before; /* before: in the other range */
	int64_t first_us, last_us, pid;
};

struct logread {
	bool known;                     /* family logs recorded in the range */
	bool known_before;              /* and in the other one (logread_before) */
	int64_t from_ns;                /* when that recording began; it may be before the range */
	struct logread_source *sources; /* the most errors first, then the most lines */
	size_t n_sources, cap_sources;
	size_t n_bursts; /* with ask.burst: the first n_bursts sources wrote in a burst */
	struct logread_pattern *patterns; /* the worst first, then the most */
	size_t n_patterns, cap_patterns;
	double seconds;
};

struct logread_ask {
	const char *source;     /* a part of its name; NULL: all */
	enum log_badness least; /* of patterns */
	bool burst;             /* only what was written in a burst */
};

int logread(const struct selection *sel, const struct logread_ask *ask, struct logread *out,
	    struct err *e);
void logread_release(struct logread *l);
/* Fills `before` of patterns with how often they (or alike ones) came in `sel`. */
int logread_before(const struct selection *sel, struct logread *l, struct err *e);
uint64_t logread_errors(const struct logread_source *s); /* messages, error and worse */

#endif
