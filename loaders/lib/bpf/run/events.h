/* SPDX-License-Identifier: Apache-2.0 */
/* events: rows of event_row (schema/facts/host.h) for things that happened, and rows of any fact
 * that refer to a process. */
#ifndef SONDE_BPF_EVENTS_H
#define SONDE_BPF_EVENTS_H

#include <stdbool.h>
#include <stdint.h>

#include "schema/facts/fact.h"

struct family_host;
struct hostmaps_process;

struct event {
	const char *kind, *subject, *name; /* never NULL */
	const char *detail, *which, *by;   /* NULL: nothing */
	struct hostmaps_process *process;  /* NULL: none, or it has been forgotten */
	int64_t utc_ns;
	uint64_t n;        /* 0 counts as 1 */
	const char *cause; /* what sonded may keep its flight ring for, in two words, to which
			      `name` is added; NULL: nothing */
};
void event_put(struct family_host *h, const struct event *e);
/* Tells sonded that something happened: it may keep its flight ring, once an hour and cause. A
 * cause says what happened, and to whom. */
void event_tell(struct family_host *h, const char *cause, const char *why);

/* A row of any fact. `process` goes into this column, -1: into none. Tries again if the store asks
 * for new ids. */
void event_row_put(struct family_host *h, int64_t utc_ns, const struct fact *f,
		   struct fact_row *row, int column, struct hostmaps_process *process);

#endif
