/* SPDX-License-Identifier: Apache-2.0 */
#include "export/totals.h"

#include <stdlib.h>
#include <string.h>

#include "schema/base/mem.h"
#define uthash_fatal(msg) abort()
#include <uthash.h>

struct totals_series {
	unsigned metric, part;
	int64_t ts;
	uint64_t settled, open, shown;
	UT_hash_handle hh;
	char labels[]; /* the key is metric, part and these */
};

void totals_init(struct totals *t, size_t max_series)
{
	memset(t, 0, sizeof(*t));
	t->max_series = max_series;
}

void totals_release(struct totals *t)
{
	struct totals_series *s, *next;

	HASH_ITER (hh, t->series, s, next) {
		HASH_DEL(t->series, s);
		free(s);
	}
	t->n = 0;
}

static unsigned long hash_of(unsigned metric, unsigned part, const char *labels, size_t len)
{
	unsigned a, b;

	HASH_JEN(labels, (unsigned)len, a);
	b = metric * 131 + part;
	return a ^ (b * 2654435761u);
}

static struct totals_series *find(const struct totals *t, unsigned metric, unsigned part,
				  const char *labels)
{
	unsigned hash = (unsigned)hash_of(metric, part, labels, strlen(labels));
	struct totals_series *s = NULL;
	unsigned bucket;

	if (!t->series)
		return NULL;
	HASH_TO_BKT(hash, t->series->hh.tbl->num_buckets, bucket);
	for (struct UT_hash_handle *h = t->series->hh.tbl->buckets[bucket].hh_head; h;
	     h = h->hh_next) {
		s = ELMT_FROM_HH(t->series->hh.tbl, h);
		if (h->hashv == hash && s->metric == metric && s->part == part &&
		    !strcmp(s->labels, labels))
			return s;
	}
	return NULL;
}

static struct totals_series *make(struct totals *t, unsigned metric, unsigned part,
				  const char *labels)
{
	size_t len = strlen(labels);
	struct totals_series *s = mem_alloc(sizeof(*s) + len + 1);
	unsigned hash = (unsigned)hash_of(metric, part, labels, len);

	s->metric = metric;
	s->part = part;
	memcpy(s->labels, labels, len + 1);
	HASH_ADD_KEYPTR_BYHASHVALUE(hh, t->series, s->labels, (unsigned)len, hash, s);
	t->n++;
	return s;
}

void totals_reopen(struct totals *t)
{
	for (struct totals_series *s = t->series; s; s = s->hh.next)
		s->open = 0;
}

/* Rule 1. NULL: it is left out. */
static struct totals_series *series_of(struct totals *t, const struct totals_value *v, bool settled)
{
	struct totals_series *s = find(t, v->metric, v->part, v->labels);
	const char *other = v->other && strcmp(v->other, v->labels) ? v->other : NULL;

	if (s)
		return s;
	if (t->n < t->max_series || !other)
		return make(t, v->metric, v->part, v->labels);
	t->folded += settled;
	if (METRICS[v->metric].type == METRIC_GAUGE)
		return NULL;
	s = find(t, v->metric, v->part, other);
	return s ? s : make(t, v->metric, v->part, other);
}

void totals_add(struct totals *t, const struct totals_value *v, bool settled)
{
	struct totals_series *s = series_of(t, v, settled);

	if (!s)
		return;
	if (METRICS[v->metric].type == METRIC_GAUGE) {
		if (v->ts >= s->ts)
			s->settled = v->value;
	} else if (settled) {
		s->settled += v->value;
		s->open -= v->value < s->open ? v->value : s->open;
	} else {
		s->open += v->value;
	}
	if (v->ts > s->ts)
		s->ts = v->ts;
}

static void forget(struct totals *t, struct totals_series *s)
{
	HASH_DEL(t->series, s);
	free(s);
	t->n--;
}

void totals_close(struct totals *t, int64_t now_ts)
{
	struct totals_series *s, *next;

	HASH_ITER (hh, t->series, s, next) {
		bool gauge = METRICS[s->metric].type == METRIC_GAUGE;
		uint64_t sum = s->settled + s->open;

		if (s->ts < now_ts - (gauge ? TOTALS_GAUGE_S : TOTALS_FORGOTTEN_S)) {
			forget(t, s);
			continue;
		}
		t->clamped |= !gauge && sum < s->shown;
		s->shown = gauge || sum > s->shown ? sum : s->shown;
	}
}

void totals_put(struct totals *t, const struct totals_row *r)
{
	struct totals_series *s = find(t, r->metric, r->part, r->labels);

	if (!s)
		s = make(t, r->metric, r->part, r->labels);
	s->ts = r->ts;
	s->settled = r->settled;
	s->shown = r->shown;
}

static int by_place(const void *a, const void *b)
{
	const struct totals_row *x = a, *y = b;
	int order;

	if (x->metric != y->metric)
		return x->metric < y->metric ? -1 : 1;
	order = strcmp(x->labels, y->labels);
	return order ? order : x->part < y->part ? -1 : x->part > y->part;
}

struct totals_row *totals_rows(struct totals *t, size_t *n)
{
	struct totals_row *rows = mem_array(t->n + 1, sizeof(*rows));
	size_t i = 0;

	for (struct totals_series *s = t->series; s; s = s->hh.next)
		rows[i++] = (struct totals_row){s->metric, s->part,    s->labels,
						s->ts,     s->settled, s->shown};
	qsort(rows, i, sizeof(*rows), by_place);
	*n = i;
	return rows;
}
