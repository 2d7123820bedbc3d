/* SPDX-License-Identifier: Apache-2.0 */
/* rows: what the reader counted, as rows of the store (schema/facts/logs.h). */
#ifndef SONDE_LOGS_ROWS_H
#define SONDE_LOGS_ROWS_H

#include "loaders/lib/bpf/family.h"
#include "loaders/logs/tracked.h"

struct rows {
	struct family_host *h;
	struct tracked *tracked;
	int64_t begun_ns; /* UTC, of the capture */
	bool narrow;      /* only some processes are captured */
	uint64_t lines;   /* that are in the store */
};

/* Learns the name of a source's container; whether the source may be read. */
bool rows_wants(struct rows *r, struct tracked_source *s);
/* A process that runs: which container it is in. */
void rows_meet(struct rows *r, struct hostmaps_process *p);
void rows_take(struct rows *r, const struct wire_said *x, const char *const text[2]);
/* A flush is over: bursts become events. `now_ns`: boot clock. */
void rows_flushed(struct rows *r, int64_t now_ns);

#endif
