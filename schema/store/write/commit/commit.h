/* SPDX-License-Identifier: Apache-2.0 */
/*
 * commit: putting one batch into one segment, in one transaction that begins IMMEDIATE (no write
 * transaction starts as a read). Only what rows refer to is written: a dictionary entry gets its id
 * here at first use, as max(id) + 1 within the transaction. Containers, images, processes and
 * functions are looked up by hash and content first, so that writers share them. If the transaction
 * fails, ids given in it are taken back.
 */
#ifndef SONDE_STORE_WRITE_COMMIT_H
#define SONDE_STORE_WRITE_COMMIT_H

#include "schema/store/write/commit/transaction.h"

void commit_release(struct commit *c);
/* Write `b` (NULL: only the runs) and the `n_runs` runs, run i being runs[i - 1]. 0 or -errno;
 * nothing is written, and runs[] is untouched, on failure. */
int commit_batch(struct commit *c, struct segment *seg, const struct batch *b,
		 struct commit_run *runs, uint32_t n_runs);

#endif
