/* SPDX-License-Identifier: Apache-2.0 */
/* store_rows: stores the parser's messages as rows, with the row of their process. Single requests
 * of excluded processes are dropped; their sums go to one row without names. */
#ifndef SONDE_L7_STORE_ROWS_H
#define SONDE_L7_STORE_ROWS_H

#include "loaders/l7/reports/health.h"
#include "loaders/l7/parser_message.h"
#include "loaders/l7/reports/unresolved.h"
#include "loaders/lib/bpf/family.h"

struct store_rows_who;

struct store_rows {
	struct store_rows_who *all; /* processes of this bucket's rows */
	struct family_host *h;      /* of the current call */
	struct unresolved unresolved;
	struct health health;
	int whos_fd;      /* hooks_whos */
	uint64_t unknown; /* requests of processes of which nothing is known but their pid */
	uint32_t singles; /* number of the last single request, modulo NTH_MOST */
	uint32_t ringed;  /* of the last one in the ring, modulo RING_MOST */
};

void store_rows_release(struct store_rows *b);
/* Forgets the rows of processes: they are looked up again. */
void store_rows_fresh(struct store_rows *b);
/* Stores the failed DNS lookups that are due at now_ns (boot clock; INT64_MAX: all). */
void store_rows_unresolved(struct store_rows *b, struct family_host *h, int64_t now_ns);
/* Tells sonded which services are far slower, or fail far more often, than in their last hour. */
void store_rows_health(struct store_rows *b, struct family_host *h, int64_t now_ns);
void store_rows_put(struct store_rows *b, struct family_host *h, const struct message *x);
/* Another parser begins now: it knows nothing of the requests that run. */
void store_rows_restart(struct store_rows *b, struct family_host *h, int64_t now_ns);
/* Blind bytes of no known process: connections that found no room in the map, or whose bytes were
 * moved by calls that the probes do not see. */
void store_rows_unseen(struct store_rows *b, struct family_host *h, uint64_t bytes, int64_t now_ns);

#endif
