/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/disk/disktimes.h"

#include <math.h>

void disktimes_columns(struct strbuf *sql)
{
	for (int i = 0; i < DISK_STEPS; i++)
		strbuf_addf(sql, ", sum(coalesce(%s, 0))", BLOCK_FACT.columns[BLOCK_T0 + i].name);
}

void disktimes_take(struct disktimes *t, sqlite3_stmt *st, int first)
{
	for (int i = 0; i < DISK_STEPS; i++)
		t->n[i] += (uint64_t)sqlite3_column_int64(st, first + i);
}

void disktimes_merge(struct disktimes *t, const struct disktimes *more)
{
	for (int i = 0; i < DISK_STEPS; i++)
		t->n[i] += more->n[i];
}

uint64_t disktimes_total(const struct disktimes *t)
{
	uint64_t sum = 0;

	for (int i = 0; i < DISK_STEPS; i++)
		sum += t->n[i];
	return sum;
}

static uint64_t step_begin(int i)
{
	return i ? 1ull << (i + DISK_STEP_0_BITS - 1) : 0;
}

double disktimes_quantile(const struct disktimes *t, double q)
{
	double want = q * (double)disktimes_total(t), below = 0;

	for (int i = 0; i < DISK_STEPS; i++) {
		double n = (double)t->n[i];

		if (!t->n[i] || below + n < want) {
			below += n;
			continue;
		}
		if (!i)
			return (double)step_begin(1) * (want - below) / n;
		if (i == DISK_STEPS - 1) /* how much more is not known */
			return (double)step_begin(i);
		return (double)step_begin(i) * exp2((want - below) / n);
	}
	return 0;
}

json_t *disktimes_json(const struct disktimes *t)
{
	json_t *list = json_array();

	for (int i = 0; i < DISK_STEPS; i++)
		if (t->n[i])
			json_array_append_new(list, json_pack("{s:I, s:I}", "us",
							      (json_int_t)step_begin(i), "n",
							      (json_int_t)t->n[i]));
	return list;
}
