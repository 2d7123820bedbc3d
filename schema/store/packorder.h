/* SPDX-License-Identifier: Apache-2.0 */
/*
 * packorder: the numbers that a day's dictionary gets as it is packed, so that neighbours are alike:
 *
 *   1. Frames by image and offset, at one place the outer one first.
 *   2. Functions in the order of the first frame that has them, the others behind, by image and name.
 *   3. Stacks as a tree, depth first, what is below a frame in the order of frames; bases and keeps are as stackcolumns.h has them.
 *   4. Series by task, then stack.
 * Numbers are dense from 1 on; 0 stays 0, as does what nothing has the number of. Not for other rooms.
 */
#ifndef SONDE_STORE_PACKORDER_H
#define SONDE_STORE_PACKORDER_H

#include "schema/store/stackcolumns.h"

struct sqlite3;

enum packorder_kind { PACKORDER_FRAME, PACKORDER_FUNCTION, PACKORDER_STACK, PACKORDER_SERIES, PACKORDER_KINDS };

struct packorder {
	uint32_t *to[PACKORDER_KINDS]; /* by old number */
	size_t n[PACKORDER_KINDS];     /* the greatest old number, plus 1 */
	struct packorder_tree *tree;   /* all stacks, as they were loaded */
};

/* Of the rows that this file has. What it finds is released by packorder_release. A SQLite code. */
int packorder_load(struct sqlite3 *db, struct packorder *out);
void packorder_release(struct packorder *o);
uint32_t packorder_number(const struct packorder *o, enum packorder_kind kind, int64_t old);
/* The stacks in that order, to be released (stackcolumns_release). A SQLite code. */
int packorder_stacks(const struct packorder *o, struct stackcolumns *out);

#endif
