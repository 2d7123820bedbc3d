/* SPDX-License-Identifier: Apache-2.0 */
/* rarehour: the rare stacks of one hour of a day (sealrare.h, rules 2 to 5). */
#include <sqlite3.h>
#include <stdlib.h>

#include "schema/base/mem.h"
#include "schema/store/rareparts.h"
#include "schema/store/sealparts.h"
#include "schema/store/sealrare.h"
#include "schema/store/sealsamples.h"

#define HOUR_S 3600
#define INLINED_MAX 64 /* as readers have it */
#define COUNTED (1ull << 63) /* marks a weight: this node is in the reckoning */

/* About what a row takes: a stack and its series, a frame of it that no other one has, a row of rare_row. */
#define STACK_BYTES 20
#define NODE_BYTES  5
#define SUM_BYTES   22

struct hour {
	struct rare *r;
	int64_t ts;
	struct sealsamples x;          /* its rows */
	uint64_t *n;                   /* samples by series */
	struct seen {
		uint32_t group, series, top; /* top: the last node that is kept */
	} *seen;                       /* series with samples, by group */
	size_t n_seen, cap_seen;
	uint32_t *moved;               /* by series: the one that it is now, 0: itself */
	uint64_t *within;              /* by node: samples in it and below it, of the group at hand */
	uint64_t cut;                  /* samples */
	sqlite3_stmt *put_stack, *put_series, *put_sum;

	/* of the group at hand: what functions lose */
	struct idmap sum_of;           /* function, or frame << 32 -> index */
	struct sum {
		uint32_t function, frame;
		uint64_t self, total;
		uint64_t stamp;        /* of the stack at hand, if it is in it already */
	} *sums;
	size_t n_sums, cap_sums;
	uint64_t stamp;
};

static int by_group(const void *a, const void *b)
{
	const struct seen *x = a, *y = b;

	if (x->group != y->group)
		return x->group < y->group ? -1 : 1;
	return x->series < y->series ? -1 : x->series > y->series;
}

static uint32_t node_of(const struct rare *r, uint32_t series)
{
	uint32_t stack = r->series[series].stack;

	return stack < r->n_stacks ? r->node[stack] : 0;
}

static void look_at_rows(struct hour *h)
{
	struct rare *r = h->r;

	for (size_t i = 0; i < h->x.n; i++) {
		uint32_t series = h->x.rows[i].series;

		if (series >= r->n_series || !r->series[series].counted)
			continue;
		if (!h->n[series]) {
			mem_grow(h->seen, h->n_seen, h->cap_seen);
			h->seen[h->n_seen++] = (struct seen){.group = r->series[series].group, .series = series};
		}
		h->n[series] += h->x.rows[i].n;
	}
	if (h->n_seen)
		qsort(h->seen, h->n_seen, sizeof(*h->seen), by_group);
}

/* --- rule 4 --- */

static struct sum *sum_of(struct hour *h, uint32_t frame)
{
	uint32_t function = frame < h->r->n_frames ? h->r->frames[frame].function : 0;
	bool fresh;
	uint64_t *at = idmap_ref(&h->sum_of, function ? function : (uint64_t)frame << 32, &fresh);

	if (fresh) {
		mem_grow(h->sums, h->n_sums, h->cap_sums);
		*at = h->n_sums;
		h->sums[h->n_sums++] = (struct sum){.function = function, .frame = function ? 0 : frame};
	}
	return &h->sums[*at];
}

/* The functions at this node's place, the innermost first: their totals, if they are not in the stack already. */
static void add_place(struct hour *h, uint32_t node, uint64_t n)
{
	const struct rare *r = h->r;
	uint32_t frame = r->d->tree.t.frame[node];

	for (int k = 0; frame && k < INLINED_MAX; k++) {
		struct sum *s = sum_of(h, frame);

		if (s->stamp != h->stamp)
			s->total += n;
		s->stamp = h->stamp;
		frame = frame < r->n_frames ? r->frames[frame].outer : 0;
	}
}

static void add_sums(struct hour *h, uint32_t leaf, uint32_t top, uint64_t n)
{
	const struct stacktree *t = &h->r->d->tree.t;

	h->stamp++;
	for (uint32_t at = top; at; at = t->parent[at])
		add_place(h, at, 0);
	for (uint32_t at = leaf; at != top; at = t->parent[at])
		add_place(h, at, n);
	sum_of(h, t->frame[leaf])->self += n;
}

static int put_sums(struct hour *h, const struct rare_group *g)
{
	for (size_t i = 0; i < h->n_sums; i++) {
		const struct sum *s = &h->sums[i];
		const sqlite3_int64 v[] = {h->ts, g->run, g->exe, g->container, s->function, s->frame, (sqlite3_int64)s->self,
					   (sqlite3_int64)s->total};

		for (int k = 0; k < 8; k++)
			sqlite3_bind_int64(h->put_sum, k + 1, v[k]);
		if ((s->self || s->total) && sqlite3_step(h->put_sum) != SQLITE_DONE)
			return sqlite3_reset(h->put_sum);
		sqlite3_reset(h->put_sum);
	}
	return SQLITE_OK;
}

/* --- rule 3 --- */

/* The series of this one's task whose stack is `stack`. */
static int series_at(struct hour *h, uint32_t series, uint32_t stack, uint32_t *out)
{
	struct rare *r = h->r;
	struct rare_series new = r->series[series];
	bool fresh;
	uint64_t *id = idmap_ref(&r->by_place, (uint64_t)new.task << 32 | stack, &fresh);

	if (fresh) {
		*id = r->n_series;
		new.stack = stack;
		mem_grow(r->series, r->n_series, r->cap_series);
		r->series[r->n_series++] = new;
		sqlite3_bind_int64(h->put_series, 1, (sqlite3_int64)*id);
		sqlite3_bind_int64(h->put_series, 2, new.task);
		sqlite3_bind_int64(h->put_series, 3, stack);
		if (sqlite3_step(h->put_series) != SQLITE_DONE)
			return sqlite3_reset(h->put_series);
		sqlite3_reset(h->put_series);
	}
	*out = (uint32_t)*id;
	return SQLITE_OK;
}

static int cut_series(struct hour *h, const struct seen *s)
{
	struct rare *r = h->r;
	uint32_t stack;
	int rc = sealstack_below(r->d, h->put_stack, s->top, r->mark, &stack);

	if (rc == SQLITE_OK)
		rc = series_at(h, s->series, stack, &h->moved[s->series]);
	h->cut += rc == SQLITE_OK ? h->n[s->series] : 0;
	return rc;
}

/* --- rules 2 and 5 --- */

/* The last node of a stack that is kept. What ends as rare already does so. */
static uint32_t top_of(const struct hour *h, uint32_t leaf, uint64_t all)
{
	const struct stacktree *t = &h->r->d->tree.t;
	uint32_t top = leaf;

	while (top && t->frame[leaf] != h->r->mark && (h->within[top] & ~COUNTED) * RARE_SHARE < all)
		top = t->parent[top];
	return top;
}

/* What is to be cut, and what its functions lose; is that smaller? */
static bool plan_group(struct hour *h, struct seen *seen, size_t n, uint64_t all)
{
	const struct rare *r = h->r;
	uint64_t bytes = 0;

	for (size_t i = 0; i < n; i++) {
		uint32_t leaf = node_of(r, seen[i].series), top = seen[i].top = top_of(h, leaf, all);

		if (top == leaf)
			continue;
		add_sums(h, leaf, top, h->n[seen[i].series]);
		bytes += STACK_BYTES;
		for (uint32_t at = leaf; at != top && !(h->within[at] & COUNTED); at = r->d->tree.t.parent[at]) {
			h->within[at] |= COUNTED;
			bytes += NODE_BYTES;
		}
	}
	return bytes > h->n_sums * SUM_BYTES;
}

static int cut_group(struct hour *h, struct seen *seen, size_t n)
{
	const struct rare *r = h->r;
	uint64_t all = 0;
	int rc = SQLITE_OK;

	for (size_t i = 0; i < n; i++)
		all += h->n[seen[i].series];
	if (all <= RARE_SHARE)
		return rc; /* a sample is not rare */
	for (size_t i = 0; i < n; i++)
		for (uint32_t at = node_of(r, seen[i].series); at; at = r->d->tree.t.parent[at])
			h->within[at] += h->n[seen[i].series];
	if (!plan_group(h, seen, n, all))
		h->n_sums = 0;
	for (size_t i = 0; rc == SQLITE_OK && h->n_sums && i < n; i++)
		if (seen[i].top != node_of(r, seen[i].series))
			rc = cut_series(h, &seen[i]);
	for (size_t i = 0; i < n; i++)
		for (uint32_t at = node_of(r, seen[i].series); at && h->within[at]; at = r->d->tree.t.parent[at])
			h->within[at] = 0;
	if (rc == SQLITE_OK)
		rc = put_sums(h, &r->groups[seen->group]);
	h->n_sums = 0;
	idmap_clear(&h->sum_of);
	return rc;
}

static int cut_groups(struct hour *h)
{
	int rc = SQLITE_OK;

	for (size_t i = 0, k; rc == SQLITE_OK && i < h->n_seen; i = k) {
		for (k = i; k < h->n_seen && h->seen[k].group == h->seen[i].group;)
			k++;
		rc = cut_group(h, h->seen + i, k - i);
	}
	return rc;
}

/* --- what stands in the day --- */

struct sums {
	struct seal_hour *v;
	size_t n, cap;
};

static int load_sums(struct hour *h, size_t n_series, struct sums *out)
{
	sqlite3_stmt *st = NULL;
	int rc = sqlite3_prepare_v2(h->r->d->day, "SELECT ts, series, n FROM sample WHERE ts >= ?1 AND ts < ?1 + 3600", -1, &st, NULL);

	if (rc == SQLITE_OK)
		sqlite3_bind_int64(st, 1, h->ts);
	while (rc == SQLITE_OK && (rc = sqlite3_step(st)) == SQLITE_ROW) {
		struct seal_hour sum = {sqlite3_column_int64(st, 0), (uint64_t)sqlite3_column_int64(st, 2),
					(uint32_t)sqlite3_column_int64(st, 1)};

		rc = SQLITE_OK;
		if (sum.series >= n_series || !h->moved[sum.series])
			continue;
		mem_grow(out->v, out->n, out->cap);
		out->v[out->n++] = sum;
	}
	sqlite3_finalize(st);
	return rc == SQLITE_DONE ? SQLITE_OK : rc;
}

static int run_bound(sqlite3_stmt *st, int64_t ts, uint32_t series, uint64_t n)
{
	sqlite3_bind_int64(st, 1, ts);
	sqlite3_bind_int64(st, 2, series);
	if (n)
		sqlite3_bind_int64(st, 3, (sqlite3_int64)n);
	sqlite3_step(st);
	return sqlite3_reset(st);
}

/* The sums by the hour (table sample). */
static int move_sums(struct hour *h, size_t n_series)
{
	sqlite3_stmt *drop = NULL, *put = NULL;
	struct sums sums = {0};
	int rc = load_sums(h, n_series, &sums);

	if (rc == SQLITE_OK)
		rc = sqlite3_prepare_v2(h->r->d->day, "DELETE FROM sample WHERE ts = ?1 AND series = ?2", -1, &drop, NULL);
	if (rc == SQLITE_OK)
		rc = sqlite3_prepare_v2(h->r->d->day, "INSERT INTO sample(ts, series, n) VALUES(?1, ?2, ?3)"
						      " ON CONFLICT DO UPDATE SET n = n + excluded.n", -1, &put, NULL);
	for (size_t i = 0; rc == SQLITE_OK && i < sums.n; i++) {
		rc = run_bound(drop, sums.v[i].ts, sums.v[i].series, 0);
		if (rc == SQLITE_OK)
			rc = run_bound(put, sums.v[i].ts, h->moved[sums.v[i].series], sums.v[i].n);
	}
	sqlite3_finalize(drop);
	sqlite3_finalize(put);
	free(sums.v);
	return rc;
}

static int move_rows(struct hour *h, size_t n_series)
{
	for (size_t i = 0; i < h->x.n; i++) {
		struct sample_row *row = &h->x.rows[i];

		if (row->series < n_series && h->moved[row->series])
			row->series = h->moved[row->series];
	}
	return sealsamples_replace(&h->x, h->r->d->day, h->ts, h->ts + HOUR_S - 1, h->r->t0);
}

static int note_hour(const struct hour *h)
{
	sqlite3_stmt *st = NULL;
	int rc = sqlite3_prepare_v2(h->r->d->day, "INSERT OR REPLACE INTO rare_hour(ts) VALUES(?1)", -1, &st, NULL);

	if (rc == SQLITE_OK) {
		sqlite3_bind_int64(st, 1, h->ts);
		sqlite3_step(st);
		rc = sqlite3_reset(st);
	}
	sqlite3_finalize(st);
	return rc;
}

static int prepare(struct hour *h)
{
	sqlite3 *day = h->r->d->day;
	int rc = sealstack_prepare(day, &h->put_stack);

	if (rc == SQLITE_OK)
		rc = sqlite3_prepare_v2(day, "INSERT INTO series(id, task, stack, label) VALUES(?1, ?2, ?3, 0)", -1, &h->put_series, NULL);
	if (rc == SQLITE_OK)
		rc = sqlite3_prepare_v2(day, "INSERT INTO rare_row(ts, run, exe, container, function, frame, self, total)"
					     " VALUES(?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8) ON CONFLICT DO UPDATE"
					     " SET self = self + excluded.self, total = total + excluded.total", -1, &h->put_sum, NULL);
	return rc;
}

static void hour_release(struct hour *h)
{
	sqlite3_finalize(h->put_stack);
	sqlite3_finalize(h->put_series);
	sqlite3_finalize(h->put_sum);
	sealsamples_release(&h->x);
	idmap_release(&h->sum_of);
	free(h->n);
	free(h->seen);
	free(h->moved);
	free(h->within);
	free(h->sums);
}

int rare_hour(struct rare *r, int64_t ts, uint64_t *samples)
{
	struct hour h = {.r = r, .ts = ts};
	size_t n_series = r->n_series; /* new ones come behind */
	int rc = sealsamples_load(&h.x, r->d->day, ts, ts + HOUR_S - 1);

	h.n = mem_array(n_series + 1, sizeof(*h.n));
	h.moved = mem_array(n_series + 1, sizeof(*h.moved));
	h.within = mem_array(r->d->tree.t.n + 1, sizeof(*h.within));
	if (rc == SQLITE_OK)
		rc = prepare(&h);
	if (rc == SQLITE_OK) {
		look_at_rows(&h);
		rc = cut_groups(&h);
	}
	if (rc == SQLITE_OK && h.cut)
		rc = move_sums(&h, n_series);
	if (rc == SQLITE_OK && h.cut)
		rc = move_rows(&h, n_series);
	if (rc == SQLITE_OK)
		rc = note_hour(&h);
	*samples += h.cut;
	hour_release(&h);
	return rc;
}
