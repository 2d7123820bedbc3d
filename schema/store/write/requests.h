/* SPDX-License-Identifier: Apache-2.0 */
/*
 * requests: what became of requests, summed; the table and views of schema/sql/0026-requests.sql (docs/SCHEMA.md).
 *
 * Events of the run: `n` each. What has the same bucket and the same names adds up in the segment. A number past 2^56 is not kept: it
 * counts as one lost, reason "range".
 */
#ifndef SONDE_STORE_WRITE_REQUESTS_H
#define SONDE_STORE_WRITE_REQUESTS_H

#include <stddef.h>
#include <stdint.h>

#include "schema/store/model/stored.h"

struct store_writer;

/* Steps of latency: below 8 ns each number its own, then 8 to each power of two; to take a step's middle is wrong by 6 % at most. */
#define STORE_LATENCY_STEPS 512
unsigned store_latency_step(uint64_t ns);

struct store_request {
	uint32_t process;         /* 0: not known */
	enum store_side side;
	enum store_result result;
	const char *protocol, *service, *operation, *status; /* status "": it has none */
	uint64_t n;
	uint64_t total_ns, max_ns, request_bytes, response_bytes;
	const uint32_t *steps;    /* n_steps of them: how many latencies by step; NULL: none */
	size_t n_steps;
};
/* 0, -EINVAL: no such run; -ESTALE as store_add. */
int store_request(struct store_writer *w, uint32_t run, int64_t utc_ns, const struct store_request *r);

#endif
