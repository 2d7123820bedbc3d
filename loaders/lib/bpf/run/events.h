/* SPDX-License-Identifier: Apache-2.0 */
/* events: a row of event_row (schema/facts/host.h) for what happened; and rows of any fact that are
 * named after a process. */
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
	struct hostmaps_process *process;  /* NULL: none, or it is not known any more */
	int64_t utc_ns;
	uint64_t n; /* 0 is 1 */
};
void event_put(struct family_host *h, const struct event *e);

/* A row of any fact; `process`: to be named in this column, -1: in none. Tried again where the
 * store asks for its ids anew. */
void event_row_put(struct family_host *h, int64_t utc_ns, const struct fact *f,
		   struct fact_row *row, int column, struct hostmaps_process *process);

#endif
