/* SPDX-License-Identifier: Apache-2.0 */
/* hourrare: what functions had in rare stacks (rare_row, sealrare.h), for the sums by the hour of a packed day. Not for other rooms. */
#ifndef SONDE_STORE_HOURRARE_H
#define SONDE_STORE_HOURRARE_H

#include <stddef.h>
#include <stdint.h>

#include "schema/base/idmap.h"

struct sqlite3;

struct hourrare_row {
	int64_t ts;              /* start of the hour, as rare_row.ts */
	uint32_t run, owner;
	uint32_t function, frame; /* one of them is 0 */
	uint64_t self, total;
};

struct hourrare {
	uint32_t mark;           /* frame that stacks end in which were cut off; 0: none is */
	struct idmap owner_of;   /* (executable, container) -> 1 + number of the pair */
	struct hourrare_row *rows; /* in order of ts, run, owner */
	size_t n_rows, cap_rows;
};

/* A SQLite code. Released in any case. */
int hourrare_load(struct hourrare *r, struct sqlite3 *db);
void hourrare_release(struct hourrare *r);
/* The pair's number; known ones have rows. 0: nothing of it was cut off. */
uint32_t hourrare_owner(const struct hourrare *r, uint32_t exe, uint32_t container);
/* Rows of this hour, run and owner: the first, and how many. */
const struct hourrare_row *hourrare_find(const struct hourrare *r, int64_t ts, uint32_t run, uint32_t owner, size_t *n);

#endif
