/* SPDX-License-Identifier: Apache-2.0 */
/*
 * request_totals: what was counted of threads while they served some requests (request_sample_row),
 * summed by series. A file without such a table was written before there was one.
 */
#include <errno.h>
#include <sqlite3.h>
#include <stdlib.h>

#include "schema/base/hash.h"
#include "schema/base/idmap.h"
#include "schema/base/mem.h"
#include "schema/store/model/sql.h"
#include "schema/store/read/timeline.h"

struct tagged_sum {
	uint32_t part, series;
	uint64_t n, value;
};

struct tagged {
	struct row_scan scan;
	struct tagged_sum *sums;
	size_t n, cap;
	struct idmap at; /* part, series -> place in sums */
};

uint64_t store_tag_key(uint64_t tag, uint32_t pid)
{
	return hash_u64(hash_u64(HASH_SEED, tag), pid);
}

static uint32_t part_of(const struct tagged *x, int64_t ts)
{
	const struct store_query *q = x->scan.q;
	uint32_t part = 0;

	while (part + 1 < q->n_parts) {
		const struct store_query to = {.to_ns = q->part_to_ns[part]};
		int64_t first, last;

		row_scan_range(x->scan.s, &to, &first, &last);
		if (ts <= last)
			break;
		part++;
	}
	return part;
}

static void take(struct tagged *x)
{
	struct row_scan *p = &x->scan;
	int64_t series = sqlite3_column_int64(p->st, 0), ts = sqlite3_column_int64(p->st, 2);
	uint32_t part, pid;
	bool fresh;
	uint64_t *at;

	if (series <= 0 || (uint64_t)series >= p->s->n_series ||
	    !row_scan_takes(p, (uint32_t)series, ts))
		return;
	pid = p->s->processes[row_scan_task(p, (uint32_t)series)->process].pid;
	if (!idmap_get(p->q->tags, store_tag_key((uint64_t)sqlite3_column_int64(p->st, 4), pid),
		       &(uint64_t){0}))
		return;
	part = part_of(x, ts);
	at = idmap_ref(&x->at, (uint64_t)part << 32 | (uint32_t)series, &fresh);
	if (fresh) {
		*at = x->n;
		mem_grow(x->sums, x->n, x->cap);
		x->sums[x->n++] = (struct tagged_sum){.part = part, .series = (uint32_t)series};
	}
	x->sums[*at].n += (uint64_t)sqlite3_column_int64(p->st, 1);
	x->sums[*at].value += (uint64_t)sqlite3_column_int64(p->st, 3);
}

static int by_part(const void *a, const void *b)
{
	const struct tagged_sum *x = a, *y = b;

	if (x->part != y->part)
		return x->part < y->part ? -1 : 1;
	return (x->series > y->series) - (x->series < y->series);
}

static int tell(const struct tagged *x, int (*each)(void *ctx, const struct store_total *t),
		void *ctx)
{
	const struct store_segment *s = x->scan.s;
	int told = 0;

	for (size_t i = 0; i < x->n && !told; i++) {
		const struct tagged_sum *sum = &x->sums[i];
		const struct reading_task *t = row_scan_task(&x->scan, sum->series);
		const struct store_total total = {.part = sum->part,
						  .series = sum->series,
						  .run = t->run,
						  .task = s->series_task[sum->series],
						  .process = t->process,
						  .stack = s->series_stack[sum->series],
						  .tid = t->tid,
						  .thread = t->thread,
						  .labels = t->labels ? t->labels : "",
						  .label = s->series_label[sum->series],
						  .n = sum->n,
						  .value = sum->value,
						  .whole_n = sum->n,
						  .whole_value = sum->value};

		told = each(ctx, &total);
	}
	return told;
}

int request_totals(struct store_segment *s, const struct store_query *q,
		   int (*each)(void *ctx, const struct store_total *t), void *ctx, struct err *e)
{
	struct tagged x = {0};
	int rc, told = 0;

	rc = reading_views(s, NULL, e);
	if (rc ||
	    !sql_number(s->db,
			"SELECT EXISTS (SELECT 1 FROM pragma_table_info('request_sample_row'))", 0))
		return rc;
	rc = row_scan_open(
		&x.scan, s, q,
		"SELECT series, n, ts, value, tag FROM request_sample_row WHERE ts BETWEEN ?1 AND ?2",
		e);
	if (rc)
		return rc;
	while ((rc = sqlite3_step(x.scan.st)) == SQLITE_ROW)
		take(&x);
	if (rc == SQLITE_DONE && x.n) {
		qsort(x.sums, x.n, sizeof(*x.sums), by_part);
		told = tell(&x, each, ctx);
	}
	free(x.sums);
	idmap_release(&x.at);
	rc = row_scan_close(&x.scan, rc, e);
	return rc ? rc : told;
}
