/* SPDX-License-Identifier: Apache-2.0 */
/*
 * requests: outcomes of requests, summed; the tables and views of schema/sql/0026-requests.sql
 * and 0037-request-phases.sql (docs/SCHEMA.md).
 *
 * Events of the run: `n` each. Rows of the same bucket and names add up in the segment. A row with
 * a number past 2^56 is not stored: it counts as one lost, reason "range".
 */
#ifndef SONDE_STORE_WRITE_REQUESTS_H
#define SONDE_STORE_WRITE_REQUESTS_H

#include <stddef.h>
#include <stdint.h>

#include "schema/store/model/stored.h"

struct store_writer;

/* A row of requests, or one phase of their latency: then only n, total_ns, max_ns and steps are
 * set, and the row is not an event. */
enum store_part {
	STORE_PART_WHOLE,
	STORE_PART_FIRST /* to the answer's first byte */,
	STORE_PART_QUEUE /* in the socket's buffer */
};

struct store_request {
	enum store_part part;
	uint32_t process; /* 0: not known */
	enum store_side side;
	enum store_result result;
	const char *protocol, *service, *operation, *status; /* status "": it has none */
	uint64_t n;
	uint64_t total_ns, max_ns, request_bytes, response_bytes;
	const uint32_t *steps; /* how many latencies lay in the steps from first_step on
				  (model/hist.h); NULL: none */
	size_t n_steps;
	unsigned first_step;
};
/* 0, -EINVAL: no such run; -ESTALE as store_add. */
int store_request(struct store_writer *w, uint32_t run, int64_t utc_ns,
		  const struct store_request *r);

#endif
