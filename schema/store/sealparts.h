/* SPDX-License-Identifier: Apache-2.0 */
/* sealparts: what the files behind seal.h share. */
#ifndef SONDE_STORE_SEALPARTS_H
#define SONDE_STORE_SEALPARTS_H

#include "schema/store/sealdict.h"

/* --- sealstack.c: d->map[SEAL_FRAME] first --- */
int sealstack_load(struct sealdict *d);
int sealstack_take(struct sealdict *d, struct sqlite3 *segment);
void sealstack_release(struct seal_tree *x);
void sealstack_plant(struct seal_tree *x);
/* What puts a row of stack. */
int sealstack_prepare(struct sqlite3 *day, struct sqlite3_stmt **put);
/* The stack that is the one of node `top`, then `frame`: its id. */
int sealstack_below(struct sealdict *d, struct sqlite3_stmt *put, uint32_t top, uint32_t frame, uint32_t *id);
/* The stack that ends at `leaf` of another tree. */
int sealstack_copy(struct sealdict *d, struct sqlite3_stmt *put, const struct stacktree *from, uint32_t leaf, uint32_t *id);

/* --- sealruns.c --- */
int sealruns_take(struct sealdict *d, struct sqlite3 *segment);

/* --- sealfacts.c: rows that are counted, not looked up --- */
/* A column that nobody here knows how to take over: "table.column" into `out` and SQLITE_ROW; SQLITE_DONE: there is none. */
int sealfacts_unknown(struct sqlite3 *segment, char *out, size_t size);
/* All but samples; `shift` is added to their ts. */
int sealfacts_take(struct sealdict *d, struct sqlite3 *segment, int64_t shift);

#endif
