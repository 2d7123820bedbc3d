/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pairsums: sums by row and column, where rows have few of the columns and there are millions of
 * pairs: a table of pairs would not fit a cache. What is added waits until it is settled; then it
 * is put in order of rows, and goes row by row to that row's list, which a table by column leads
 * into. A zeroed struct is empty.
 */
#ifndef SONDE_BASE_PAIRSUMS_H
#define SONDE_BASE_PAIRSUMS_H

#include <stddef.h>
#include <stdint.h>

struct pairsums_sum {
	uint32_t column;
	uint64_t sum;
};

struct pairsums {
	struct pairsums_added {
		uint32_t row, column;
		uint64_t n;
	} * added;
	size_t n_added, cap_added;
	struct pairsums_list {
		struct pairsums_sum *sums;
		size_t n, cap;
	} * lists; /* by row */
	size_t n_rows;
	struct pairsums_place {
		uint32_t turn, place; /* in the list that was taken up at this turn */
	} * places;                   /* by column */
	size_t n_columns;
	uint32_t turn;
};

/* Memory is in proportion to the largest row and column. */
void pairsums_add(struct pairsums *p, uint32_t row, uint32_t column, uint64_t n);
void pairsums_settle(struct pairsums *p);
/* What is settled of a row, each column once, in the order in which they came; *n: how many.
 * Borrowed until the next is settled. */
const struct pairsums_sum *pairsums_row(const struct pairsums *p, uint32_t row, size_t *n);
void pairsums_release(struct pairsums *p);

#endif
