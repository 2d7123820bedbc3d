/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tally: requests summed by protocol, service (the server's address and port) and operation.
 * Latency is from a request's first byte to its answer's last; kept in 32 steps to each power of
 * two (3 % wide), exact for a single one.
 */
#ifndef SONDE_REPLAY_TALLY_H
#define SONDE_REPLAY_TALLY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "loaders/lib/protocols/conn.h"

#define TALLY_SERVICE_MAX 64

struct tally;

struct tally_row {
	const char *protocol;
	char service[TALLY_SERVICE_MAX];
	const char *operation;
	uint64_t count; /* all of them */
	uint64_t by_result[PROTO_RESULTS];
	uint64_t n_latencies, sum_ns, max_ns;
	int64_t from_ns, to_ns; /* the first one's begin, the last one's end */
	uint64_t request_bytes, response_bytes;
	uint32_t *steps; /* NULL: no latency yet */
	struct tally_status {
		char text[PROTO_STATUS_MAX];
		uint64_t n;
	} statuses[8]; /* those met first */
	size_t n_statuses;
};

struct tally *tally_new(void);
void tally_free(struct tally *t);
/* `service` and the request's protocol; names are the protocols' and live as long as them. */
void tally_add(struct tally *t, const struct proto_request *r, const char *service);
/* Fold together what has the same name by now, and sort: the most time first. Borrowed; the array
 * ends with the tally. */
struct tally_row **tally_rows(struct tally *t, struct protocols *s, size_t *n);
/* ns; q of 0..1. */
uint64_t tally_quantile(const struct tally_row *row, double q);

#endif
