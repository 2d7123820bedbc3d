/* SPDX-License-Identifier: Apache-2.0 */
/*
 * budget: holds a writer to the budget of its store. Retention looks now and then; a batch is
 * large and sudden. So before each one the writer looks whether it fits, all that may still come
 * of what is there included:
 *
 *   bytes of the folder + its logs again (a checkpoint writes them a second time) + the most that
 *   one batch of ours took up to now <= budget
 *
 * Where it does not, the oldest segments go at once (retention.h); if none may be deleted, the
 * batch waits in memory.
 */
#ifndef SONDE_STORE_RETENTION_BUDGET_H
#define SONDE_STORE_RETENTION_BUDGET_H

#include <stdbool.h>
#include <stdint.h>

#include "schema/base/err.h"
#include "schema/store/files/usage.h"

struct budget {
	uint64_t bytes;    /* 0: none, and nothing below does anything */
	struct usage use;  /* as of the last look */
	int64_t images_ns; /* when images/ is looked through again; boot clock */
	uint64_t grown;    /* by one batch, at most */
};

/* Lock held. Does the next batch fit? True too where the folder cannot be measured. */
bool budget_has_room(struct budget *r, const char *dir);
/* Lock held, after the batch: what it took. */
void budget_taken(struct budget *r, const char *dir);
/* Lock not held. Remove the oldest segments until there is room. true: something went. */
bool budget_make_room(struct budget *r, const char *dir);
/* "the store is at its budget: ...". Returns -EDQUOT. */
int budget_refuse(const struct budget *r, const char *dir, struct err *e);

#endif
