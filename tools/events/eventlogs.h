/* SPDX-License-Identifier: Apache-2.0 */
/* eventlogs: the last lines that containers wrote before they failed in a range (view event_logs),
 * for the events of these failures. */
#ifndef SONDE_TOOLS_EVENTLOGS_H
#define SONDE_TOOLS_EVENTLOGS_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "schema/base/err.h"
#include "tools/select/select.h"

struct eventlog {
	char *which, *name; /* the container's id, and what it is called */
	int64_t at_ns;      /* when it ended, UTC */
	char **lines;
	bool *cut;
	size_t n, cap, cap_cut; /* the oldest first; cut: it was longer */
};

struct eventlogs {
	struct eventlog *rows;
	size_t n, cap;
};

/* None is no error: it was not asked for. Release in any case. */
int eventlogs_read(const struct selection *sel, struct eventlogs *out, struct err *e);
void eventlogs_release(struct eventlogs *x);
/* The newest of this container (by its id or name) between these times, both included, or NULL. */
const struct eventlog *eventlogs_find(const struct eventlogs *x, const char *who, int64_t from_ns,
				      int64_t to_ns);

/* [{"line", "cut"}], or null for NULL. */
json_t *eventlog_json(const struct eventlog *x);
/* Its lines, each behind "    | ". */
void eventlog_print(const struct eventlog *x, FILE *out);

#endif
