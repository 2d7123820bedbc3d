/* SPDX-License-Identifier: Apache-2.0 */
/* timeline_print: a timeline for people and as JSON. */
#ifndef SONDE_TOOLS_TIMELINE_PRINT_H
#define SONDE_TOOLS_TIMELINE_PRINT_H

#include <stdbool.h>
#include <stdio.h>

#include "tools/timeline/timeline.h"
#include "tools/timeline/timeline_spikes.h"
#include "tools/timeline/timeline_used.h"

struct timeline_view {
	const struct timeline *t;
	const struct timeline_spike *spikes;
	size_t n_spikes, shown_spikes;
	size_t groups;     /* how many rows of groups at most */
	const char *store; /* to be named in commands, NULL: need not */
	unsigned width;    /* columns of a line */
	bool all_events;   /* else the first lines */
	bool unicode;      /* blocks of eighths, else ASCII */
};

void timeline_text(const struct timeline_view *v, FILE *out);
int timeline_json(const struct timeline_view *v, FILE *out);

/* The same for resources other than CPU time: the first n lines. */
void timeline_used_text(const struct timeline_used *u, size_t n, bool unicode, FILE *out);
int timeline_used_json(const struct timeline_used *u, size_t n, FILE *out);
/* How many columns fit into a line of that width. */
size_t timeline_columns(unsigned width);

/* Groups by CPU time, most first; the caller's (free). */
uint32_t *timeline_ranked(const struct timeline *t);
/* Which steps are in column `i` of `columns`: half-open. */
void timeline_column(const struct timeline *t, size_t columns, size_t i, size_t *first,
		     size_t *end);

#endif
