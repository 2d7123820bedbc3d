/* SPDX-License-Identifier: Apache-2.0 */
/*
 * transaction: what the files of a commit share, and stacktree with them. Each function writes into the transaction of
 * `c`; a failure stands in c->rc and makes all that follow do nothing. `index` is an entry of c->dict (0: none), and
 * what comes back is its id in the segment: given at first use, 0 for none or on failure.
 */
#ifndef SONDE_STORE_WRITE_TRANSACTION_H
#define SONDE_STORE_WRITE_TRANSACTION_H

#include <sqlite3.h>

#include "schema/store/write/commit.h"

/* A statement ready for binding, or NULL (rc is set). */
sqlite3_stmt *commit_stmt(struct commit *c, enum commit_stmt which);
/* Run it; true if it gave a row, whose first column becomes *value (may be NULL). Its bindings stay. */
bool commit_step(struct commit *c, sqlite3_stmt *st, uint32_t *value);
uint32_t commit_insert(struct commit *c, sqlite3_stmt *st); /* run it: the new row's id, or 0 */
void commit_exec(struct commit *c, enum commit_stmt which); /* one without parameters */

static inline void bind_str(sqlite3_stmt *st, int i, const char *s)
{
	sqlite3_bind_text(st, i, s, -1, SQLITE_STATIC);
}

static inline void bind_hash(sqlite3_stmt *st, uint64_t hash)
{
	sqlite3_bind_int64(st, 1, (sqlite3_int64)(hash & 0x7fffffff));
}

/* Its id is `row`, until the segment ends or the transaction fails. */
void commit_mark(struct commit *c, enum dict_kind kind, uint32_t index, uint32_t row);
void commit_mark_stack(struct commit *c, uint32_t node, uint32_t row);
/* Find the entry by content, or insert it; `bind` gives both statements the same parameters. */
uint32_t commit_shared(struct commit *c, enum dict_kind kind, uint32_t index, enum commit_stmt find,
		       enum commit_stmt insert, void (*bind)(struct commit *, sqlite3_stmt *, const void *),
		       const void *entry, bool *found);
uint32_t commit_text(struct commit *c, uint32_t index);
uint32_t commit_container(struct commit *c, uint32_t index);
uint32_t commit_image(struct commit *c, uint32_t index);
uint32_t commit_frame(struct commit *c, uint32_t index);
uint32_t commit_task(struct commit *c, uint32_t index, const struct commit_run *runs);
uint32_t commit_series(struct commit *c, uint32_t index, const struct commit_run *runs);
void commit_learnt_image(struct commit *c, uint32_t index); /* the build-id it has got since it was written */
void commit_learnt_frame(struct commit *c, uint32_t index); /* what it has gained since it was written */

uint32_t commit_process(struct commit *c, uint32_t index);
void commit_learnt_process(struct commit *c, uint32_t index);
void commit_end(struct commit *c, const struct batch_end *x, int64_t run);
void commit_args_forget(struct commit *c); /* the command lines to share: of another segment, or undone */

/* Amounts in the file's order, and the rates that they were sampled at. */
void commit_amounts(struct commit *c, const struct batch *b, const struct commit_run *runs);
void commit_waits(struct commit *c, const struct batch *b, const struct commit_run *runs); /* of store/write/waits.h */
void commit_requests(struct commit *c, const struct batch *b, const struct commit_run *runs); /* of store/write/requests.h */
void commit_facts(struct commit *c, const struct batch *b, const struct commit_run *runs); /* of store/write/facts.h */
void commit_loss(struct commit *c, int64_t ts, int64_t run, const char *reason, uint64_t n);
/* To be added to the count of the run of this series (DICT_SERIES), and all of them, written. */
void commit_sum(struct commit *c, uint32_t series, uint64_t n);
#define COMMIT_SUM_FACTS 0 /* in the place of a kind: rows of facts */
void commit_sum_of(struct commit *c, uint32_t run, uint32_t kind, uint64_t n);
void commit_sums(struct commit *c, const struct commit_run *runs);
void commit_run_one(struct commit *c, struct commit_run *r); /* as it is now; r->row is set */
int64_t commit_clock(struct commit *c); /* the boot clock's offset, on record; 0 on failure */

#endif
