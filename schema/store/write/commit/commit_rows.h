/* SPDX-License-Identifier: Apache-2.0 */
/* commit_rows: writes everything of a batch but its dictionary into the segment's tables. */
#ifndef SONDE_STORE_WRITE_COMMIT_ROWS_H
#define SONDE_STORE_WRITE_COMMIT_ROWS_H

#include "schema/store/write/commit/transaction.h"

void commit_samples(struct commit *c, const struct batch *b,
		    const struct commit_run *runs); /* in the file's order */
/* In the file's order; with the rates that they were sampled at, and notes on processes. */
void commit_amounts(struct commit *c, const struct batch *b, const struct commit_run *runs);
void commit_waits(struct commit *c, const struct batch *b, const struct commit_run *runs);
void commit_requests(struct commit *c, const struct batch *b, const struct commit_run *runs);
void commit_facts(struct commit *c, const struct batch *b, const struct commit_run *runs);
/* `run` is its id in the segment. */
void commit_loss(struct commit *c, int64_t ts, int64_t run, const char *reason, uint64_t n);
void commit_cost(struct commit *c, const struct batch_cost *x, int64_t run);
void commit_unwound(struct commit *c, const struct batch_unwound *x, int64_t run);
void commit_end(struct commit *c, const struct batch_end *x, int64_t run);

#endif
