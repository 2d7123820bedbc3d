/* SPDX-License-Identifier: Apache-2.0 */
#include "schema/base/tables/pairsums.h"

#include <stdlib.h>

#include "schema/base/cleanup.h"
#include "schema/base/mem.h"

void pairsums_add(struct pairsums *p, uint32_t row, uint32_t column, uint64_t n)
{
	mem_grow(p->added, p->n_added, p->cap_added);
	p->added[p->n_added++] = (struct pairsums_added){row, column, n};
}

/* For all rows and columns that were added. */
static void room(struct pairsums *p)
{
	size_t rows = p->n_rows, columns = p->n_columns;

	for (size_t i = 0; i < p->n_added; i++) {
		rows = p->added[i].row >= rows ? (size_t)p->added[i].row + 1 : rows;
		columns = p->added[i].column >= columns ? (size_t)p->added[i].column + 1 : columns;
	}
	p->lists = mem_realloc(p->lists, rows * sizeof(*p->lists));
	for (; p->n_rows < rows; p->n_rows++)
		p->lists[p->n_rows] = (struct pairsums_list){0};
	p->places = mem_realloc(p->places, columns * sizeof(*p->places));
	for (; p->n_columns < columns; p->n_columns++)
		p->places[p->n_columns] = (struct pairsums_place){0};
}

/* The places of this list are those of `turn` from here on. */
static void take_up(struct pairsums *p, const struct pairsums_list *list)
{
	p->turn++;
	for (uint32_t i = 0; i < list->n; i++)
		p->places[list->sums[i].column] = (struct pairsums_place){p->turn, i};
}

static void add_to(struct pairsums *p, struct pairsums_list *list, const struct pairsums_added *a)
{
	struct pairsums_place *at = &p->places[a->column];

	if (at->turn != p->turn) {
		*at = (struct pairsums_place){p->turn, (uint32_t)list->n};
		mem_grow(list->sums, list->n, list->cap);
		list->sums[list->n++] = (struct pairsums_sum){a->column, 0};
	}
	list->sums[at->place].sum += a->n;
}

void pairsums_settle(struct pairsums *p)
{
	cleanup_free uint32_t *order = NULL;
	cleanup_free size_t *first = NULL; /* by row: its first in `order` */

	if (!p->n_added)
		return;
	room(p);
	order = mem_array(p->n_added, sizeof(*order));
	first = mem_array(p->n_rows + 2, sizeof(*first));
	for (size_t i = 0; i < p->n_added; i++)
		first[p->added[i].row + 2]++;
	for (size_t i = 2; i < p->n_rows + 2; i++)
		first[i] += first[i - 1];
	for (size_t i = 0; i < p->n_added; i++) /* which makes the row's end of [row + 1] */
		order[first[p->added[i].row + 1]++] = (uint32_t)i;
	for (size_t row = 0; row < p->n_rows; row++) {
		if (first[row] == first[row + 1])
			continue;
		take_up(p, &p->lists[row]);
		for (size_t i = first[row]; i < first[row + 1]; i++)
			add_to(p, &p->lists[row], &p->added[order[i]]);
	}
	p->n_added = 0;
}

const struct pairsums_sum *pairsums_row(const struct pairsums *p, uint32_t row, size_t *n)
{
	*n = row < p->n_rows ? p->lists[row].n : 0;
	return *n ? p->lists[row].sums : NULL;
}

void pairsums_release(struct pairsums *p)
{
	for (size_t i = 0; i < p->n_rows; i++)
		free(p->lists[i].sums);
	free(p->lists);
	free(p->places);
	free(p->added);
	*p = (struct pairsums){0};
}
