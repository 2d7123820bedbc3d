/* SPDX-License-Identifier: Apache-2.0 */
/* commit_sum: what a batch adds to its runs' counts (table run_count), one row for each run and kind. */
#include <sqlite3.h>

#include "schema/base/mem.h"
#include "schema/store/write/transaction.h"

void commit_sum(struct commit *c, uint32_t series, uint64_t n)
{
	uint32_t index = dict_at(c->dict, DICT_SERIES, dict_series, series)->task;
	const struct dict_task *t = index ? dict_at(c->dict, DICT_TASK, dict_task, index) : NULL;

	if (t)
		commit_sum_of(c, t->run, t->kind, n);
}

void commit_sum_of(struct commit *c, uint32_t run, uint32_t kind, uint64_t n)
{
	uint32_t i = 0;

	while (i < c->n_sums && (c->sums[i].run != run || c->sums[i].kind != kind))
		i++;
	if (i == c->n_sums) {
		mem_grow(c->sums, c->n_sums, c->cap_sums);
		c->sums[c->n_sums++] = (struct commit_sum){.run = run, .kind = kind};
	}
	c->sums[i].n += n;
}

void commit_sums(struct commit *c, const struct commit_run *runs)
{
	for (uint32_t i = 0; i < c->n_sums; i++) {
		sqlite3_stmt *st = commit_stmt(c, ST_RUN_COUNT);

		if (!st)
			return;
		sqlite3_bind_int64(st, 1, runs[c->sums[i].run - 1].row);
		sqlite3_bind_int64(st, 2, c->sums[i].kind);
		sqlite3_bind_int64(st, 3, (sqlite3_int64)c->sums[i].n);
		commit_step(c, st, NULL);
	}
}
