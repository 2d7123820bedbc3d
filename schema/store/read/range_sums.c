/* SPDX-License-Identifier: Apache-2.0 */
/*
 * range_sums: wide rows of a range, summed by key: from what an archive keeps of all its rows, or
 * in one walk over the rows, into a temporary table of the same name and columns.
 */
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "schema/base/clock.h"
#include "schema/base/hash.h"
#include "schema/base/idmap.h"
#include "schema/base/mem.h"
#include "schema/base/strbuf.h"
#include "schema/facts/fact.h"
#include "schema/store/files/span.h"
#include "schema/store/model/sql.h"
#include "schema/store/packed/read.h"
#include "schema/store/packed/sums.h"
#include "schema/store/read/reading.h"

/* where it cannot be read */
#define BUCKET_MAX_S 3600

static void ask(struct store_segment *s)
{
	struct reading_sums *x = &s->sums;
	int64_t first, last;

	x->asked = true;
	x->alone = s->day || !sql_number(s->db, SUMS_AT_ONCE, 1);
	x->kept = x->alone && s->archived &&
		  sql_number(s->db, "SELECT value FROM meta WHERE key = 'sums'", 0) > 0 &&
		  span_noted(s->db, &first, &last);
	if (!x->kept)
		return;
	if (s->day) {
		x->first = sql_number(s->db, "SELECT value FROM meta WHERE key = 'day_first'", 0);
		x->last = sql_number(s->db, "SELECT value FROM meta WHERE key = 'day_last'",
				     INT64_MAX);
		return;
	}
	x->first = s->t0 + first;
	x->last =
		s->t0 + last - 1 + sql_number(s->db, "SELECT max(bucket_s) FROM run", BUCKET_MAX_S);
}

bool reading_alone(struct store_segment *s)
{
	if (!s->sums.asked)
		ask(s);
	return s->sums.alone;
}

/* ---- the rows ---- */

struct row {
	int64_t ts, run;
	int64_t v[FACT_COLUMNS_MAX];
	uint64_t known; /* bit by column: it is not NULL */
};

struct sum {           /* of a key */
	int64_t ts;    /* of the row that its gauges are of */
	bool has_main; /* and that row has the main gauge */
	uint64_t known;
};

struct summing {
	const struct sums_fact *of;
	struct store_segment *s;
	int64_t first, last; /* the range, seconds since 1970 */
	int main;            /* the main gauge's column; -1: none */
	uint32_t n_keys;
	struct idmap place;
	struct sum *sums;
	size_t n, cap;
	int64_t *v;   /* of each sum: run, then a value by column */
	double *part; /* the same: what rows that are partly in the range add */
	size_t cap_v;
	struct width {
		int64_t bucket_s, to_s;
	} * runs; /* by id */
	size_t n_runs;
};

static bool adds_up(const struct fact_column *c)
{
	return c->role == FACT_COUNTER || c->role == FACT_TALLY;
}

/* How many seconds a row is wide: as the views say it. */
static int64_t seconds_of(const struct summing *x, const struct row *r)
{
	const struct width *w;
	int64_t left, of_run;

	if (r->run < 0 || (uint64_t)r->run >= x->n_runs)
		return 1;
	w = &x->runs[r->run];
	if (w->bucket_s < 60)
		return w->bucket_s > 0 ? w->bucket_s : 1;
	left = w->bucket_s - r->ts % w->bucket_s;
	of_run = w->to_s - r->ts > 1 ? w->to_s - r->ts : 1;
	return left < of_run ? left : of_run;
}

/* Which share of it is in the range. */
static double share_of(const struct summing *x, const struct row *r)
{
	int64_t seconds, from, to;

	if (!x->of->in_part)
		return r->ts >= x->first ? 1 : 0;
	seconds = seconds_of(x, r);
	from = r->ts > x->first ? r->ts : x->first;
	to = r->ts + seconds < x->last + 1 ? r->ts + seconds : x->last + 1;
	return to > from ? (double)(to - from) / (double)seconds : 0;
}

static size_t place_of(struct summing *x, const struct row *r, bool *fresh)
{
	const uint32_t n = x->of->fact->n;
	uint64_t key = hash_u64(HASH_SEED, (uint64_t)r->run), *at;

	for (uint32_t i = 0; i < x->n_keys; i++)
		key = hash_u64(key, (uint64_t)r->v[i]);
	at = idmap_ref(&x->place, key, fresh);
	if (!*fresh)
		return *at;
	*at = x->n;
	mem_grow(x->sums, x->n, x->cap);
	x->sums[x->n] = (struct sum){.ts = INT64_MIN};
	if ((x->n + 1) * (n + 1) > x->cap_v) {
		x->cap_v = 2 * (x->n + 64) * (n + 1);
		x->v = mem_realloc(x->v, x->cap_v * sizeof(*x->v));
		x->part = mem_realloc(x->part, x->cap_v * sizeof(*x->part));
	}
	memset(&x->v[x->n * (n + 1)], 0, (n + 1) * sizeof(*x->v));
	memset(&x->part[x->n * (n + 1)], 0, (n + 1) * sizeof(*x->part));
	return x->n++;
}

static bool has_main(const struct summing *x, const struct row *r)
{
	return x->main < 0 || (r->known >> x->main & 1) != 0;
}

/* The row's gauges are the key's, where it is the last one that has the main one. */
static bool is_last(const struct summing *x, const struct sum *sum, const struct row *r)
{
	const bool has = has_main(x, r);

	return has != sum->has_main ? has : r->ts >= sum->ts;
}

static void add_counter(int64_t *sum, double *part, int64_t v, double share)
{
	if (share < 1)
		*part += share * (double)v;
	else if (__builtin_add_overflow(*sum, v, sum))
		*sum = INT64_MAX;
}

/* What column i of a row says; `last`: its gauges are the key's. */
static void take_column(struct summing *x, const struct row *r, size_t place, uint32_t i,
			double share, bool last)
{
	const struct fact_column *c = &x->of->fact->columns[i];
	const size_t at = place * (x->of->fact->n + 1) + 1 + i;
	const uint64_t bit = 1ull << i;
	const bool known = r->known & bit;
	struct sum *sum = &x->sums[place];

	if (adds_up(c)) {
		if (!known || (share <= 0 && !x->of->in_part))
			return;
		add_counter(&x->v[at], &x->part[at], r->v[i], share);
	} else if (x->of->peak) {
		if (!known || (sum->known & bit && r->v[i] <= x->v[at]))
			return;
		x->v[at] = r->v[i];
	} else if (c->role == FACT_KEY || last) {
		x->v[at] = r->v[i];
	} else {
		return;
	}
	sum->known = known ? sum->known | bit : sum->known & ~bit;
}

static void take(struct summing *x, const struct row *r)
{
	const uint32_t n = x->of->fact->n;
	const double share = share_of(x, r);
	struct sum *sum;
	size_t place;
	bool fresh, last;

	if (x->of->peak && share <= 0)
		return;
	place = place_of(x, r, &fresh);
	sum = &x->sums[place];
	last = fresh || is_last(x, sum, r);
	x->v[place * (n + 1)] = r->run;
	for (uint32_t i = 0; i < n; i++)
		take_column(x, r, place, i, share, last);
	if (!last)
		return;
	sum->ts = r->ts;
	sum->has_main = has_main(x, r);
}

/* ---- where the rows are ---- */

static void columns_of(const struct fact *f, struct strbuf *out)
{
	strbuf_addstr(out, "ts, run");
	for (uint32_t i = 0; i < f->n; i++)
		strbuf_addf(out, ", %s", f->columns[i].name);
}

/* Of one block of an archive's columns. */
static void take_block(struct summing *x, const struct packedread *p, int64_t from, int64_t to)
{
	const struct fact *f = x->of->fact;

	for (size_t k = 0; k < p->c[0]->n; k++) {
		struct row r = {.ts = p->c[0]->numbers[k] + x->s->t0};

		if (r.ts < from || r.ts > to)
			continue;
		r.run = packedread_number(p, 1, k);
		for (uint32_t i = 0; i < f->n; i++) {
			const struct column *c = p->c[i + 2];

			if (!c->numbers || (c->null && c->null[k]))
				continue;
			r.v[i] = c->numbers[k];
			r.known |= 1ull << i;
		}
		take(x, &r);
	}
}

static int take_columns(struct summing *x, struct packedread *p, int64_t from, int64_t to)
{
	struct packedtable *t = &p->t;
	int rc = 0;

	for (size_t k = packedtable_block_of(t, from - x->s->t0);
	     !rc && k < t->n_blocks && (!t->range || t->range[k].first + x->s->t0 <= to); k++) {
		rc = packedread_block(p, k);
		if (!rc)
			take_block(x, p, from, to);
		packedtable_release(t, k);
	}
	return rc ? SQLITE_CORRUPT : SQLITE_OK;
}

static int take_rows(struct summing *x, const char *columns, int64_t from, int64_t to)
{
	const struct fact *f = x->of->fact;
	char *sql = sqlite3_mprintf("SELECT %s FROM \"%w\" WHERE ts BETWEEN ?1 AND ?2", columns,
				    f->table);
	sqlite3_stmt *st = NULL;
	int rc = sql ? sqlite3_prepare_v2(x->s->db, sql, -1, &st, NULL) : SQLITE_NOMEM;

	sqlite3_free(sql);
	sqlite3_bind_int64(st, 1, from - x->s->t0);
	sqlite3_bind_int64(st, 2, to - x->s->t0);
	while (rc == SQLITE_OK && (rc = sqlite3_step(st)) == SQLITE_ROW) {
		struct row r = {.ts = sqlite3_column_int64(st, 0) + x->s->t0,
				.run = sqlite3_column_int64(st, 1)};

		for (uint32_t i = 0; i < f->n; i++) {
			if (sqlite3_column_type(st, (int)i + 2) == SQLITE_NULL)
				continue;
			r.v[i] = sqlite3_column_int64(st, (int)i + 2);
			r.known |= 1ull << i;
		}
		take(x, &r);
		rc = SQLITE_OK;
	}
	sqlite3_finalize(st);
	return rc == SQLITE_DONE ? SQLITE_OK : rc;
}

static int read_runs(struct summing *x)
{
	sqlite3_stmt *st = NULL;
	int rc = sqlite3_prepare_v2(
		x->s->db,
		"SELECT id, bucket_s, (to_ns + 999999999) / 1000000000 FROM run WHERE id BETWEEN 1 AND 65535",
		-1, &st, NULL);
	const int64_t most =
		sql_number(x->s->db, "SELECT max(id) FROM run WHERE id BETWEEN 1 AND 65535", 0);

	x->n_runs = (size_t)most + 1;
	x->runs = mem_array(x->n_runs, sizeof(*x->runs));
	while (rc == SQLITE_OK && (rc = sqlite3_step(st)) == SQLITE_ROW) {
		const size_t id = (size_t)sqlite3_column_int64(st, 0);

		if (id < x->n_runs)
			x->runs[id] = (struct width){sqlite3_column_int64(st, 1),
						     sqlite3_column_int64(st, 2)};
		rc = SQLITE_OK;
	}
	sqlite3_finalize(st);
	return rc == SQLITE_DONE ? SQLITE_OK : rc;
}

static int sum_up(struct summing *x)
{
	struct strbuf columns cleanup_strbuf = STRBUF_INIT;
	const int64_t from = x->first - x->of->before_s;
	struct packedread p;
	int rc = read_runs(x);

	columns_of(x->of->fact, &columns);
	if (rc != SQLITE_OK)
		return rc;
	if (!x->s->archived ||
	    !packedread_open(&p, x->s->db, x->of->fact->table, strbuf_str(&columns)))
		return take_rows(x, strbuf_str(&columns), from, x->last);
	rc = take_columns(x, &p, from, x->last);
	packedread_release(&p);
	return rc;
}

/* ---- the temporary table ---- */

static int put(const struct summing *x, sqlite3_stmt *st, size_t place)
{
	const struct fact *f = x->of->fact;
	const size_t at = place * (f->n + 1) + 1;

	sqlite3_bind_int64(st, 1, x->v[at - 1]);
	sqlite3_bind_int64(st, 2, x->sums[place].ts - x->s->t0);
	for (uint32_t i = 0; i < f->n; i++) {
		if (!(x->sums[place].known >> i & 1))
			sqlite3_bind_null(st, (int)i + 3);
		else if (x->part[at + i] > 0)
			sqlite3_bind_double(st, (int)i + 3, (double)x->v[at + i] + x->part[at + i]);
		else
			sqlite3_bind_int64(st, (int)i + 3, x->v[at + i]);
	}
	sqlite3_step(st);
	return sqlite3_reset(st);
}

static int fill(const struct summing *x, const char *name)
{
	struct strbuf make cleanup_strbuf = STRBUF_INIT, insert cleanup_strbuf = STRBUF_INIT;
	const struct fact *f = x->of->fact;
	sqlite3_stmt *st = NULL;
	int rc;

	strbuf_addf(&make, "DROP TABLE IF EXISTS temp.%s; CREATE TEMP TABLE %s(run, ts", name,
		    name);
	strbuf_addf(&insert, "INSERT INTO temp.%s VALUES(?, ?", name);
	for (uint32_t i = 0; i < f->n; i++) {
		strbuf_addf(&make, ", %s", f->columns[i].name);
		strbuf_addstr(&insert, ", ?");
	}
	strbuf_addstr(&make, ")");
	strbuf_addstr(&insert, ")");
	rc = sql_exec(x->s->db, strbuf_str(&make));
	if (rc == SQLITE_OK)
		rc = sqlite3_prepare_v2(x->s->db, strbuf_str(&insert), -1, &st, NULL);
	for (size_t i = 0; rc == SQLITE_OK && i < x->n; i++)
		rc = put(x, st, i);
	sqlite3_finalize(st);
	return rc;
}

static int main_gauge(const struct sums_fact *of)
{
	for (uint32_t i = 0; of->gauge && i < of->fact->n; i++)
		if (!strcmp(of->fact->columns[i].name, of->gauge))
			return (int)i;
	return -1;
}

static uint32_t keys_of(const struct fact *f)
{
	uint32_t n = 0;

	while (n < f->n && f->columns[n].role == FACT_KEY)
		n++;
	return n;
}

static bool make(struct store_segment *s, const struct sums_fact *of, const char *name,
		 int64_t first, int64_t last)
{
	struct summing x = {.of = of,
			    .s = s,
			    .first = first,
			    .last = last,
			    .main = main_gauge(of),
			    .n_keys = keys_of(of->fact)};
	int rc = sum_up(&x);

	if (rc == SQLITE_OK) {
		sql_exec(s->db, "PRAGMA query_only=0; SAVEPOINT sums");
		rc = fill(&x, name);
		sql_exec(s->db, "RELEASE sums; PRAGMA query_only=1");
	}
	idmap_release(&x.place);
	free(x.sums);
	free(x.v);
	free(x.part);
	free(x.runs);
	return rc == SQLITE_OK;
}

/* ---- which of the two ---- */

static void drop(struct store_segment *s, const char *table)
{
	char name[SUMS_NAME_MAX], *sql;

	sums_name(table, name);
	sql = sqlite3_mprintf(
		"PRAGMA query_only=0; DROP TABLE IF EXISTS temp.\"%w\"; PRAGMA query_only=1", name);
	if (sql)
		sql_exec(s->db, sql);
	sqlite3_free(sql);
}

static bool is_made(const struct store_segment *s, const char *table)
{
	char word[SUMS_NAME_MAX];

	snprintf(word, sizeof(word), " %s ", table);
	return strstr(s->sums.made, word);
}

/* Another range: what was made is of no use any more. */
static void forget(struct store_segment *s)
{
	char *rest = s->sums.made, *word;

	while ((word = strtok_r(rest, " ", &rest)))
		drop(s, word);
	s->sums.made[0] = '\0';
}

static bool has_kept(const struct store_segment *s, int64_t first_s, int64_t last_s)
{
	return s->sums.kept && first_s <= s->sums.first && last_s >= s->sums.last;
}

bool reading_sums_any(struct store_segment *s)
{
	return reading_alone(s) && s->sums.kept;
}

bool reading_sums_whole(struct store_segment *s, const struct store_query *q)
{
	const int64_t from = q->from_ns <= 0 ? 0 : q->from_ns,
		      to = q->to_ns > INT64_MAX - NSEC_PER_SEC ? INT64_MAX - NSEC_PER_SEC :
								 q->to_ns;

	return reading_sums_any(s) && has_kept(s, (from + NSEC_PER_SEC - 1) / NSEC_PER_SEC,
					       (to + NSEC_PER_SEC - 1) / NSEC_PER_SEC - 1);
}

bool store_segment_sums(struct store_segment *s, const char *table, int64_t first_s, int64_t last_s)
{
	const struct sums_fact *of = sums_fact_of(table);
	struct reading_sums *x = &s->sums;
	char name[SUMS_NAME_MAX];
	size_t len;

	if (!reading_alone(s))
		return false;
	if (x->made[0] && (x->made_first != first_s || x->made_last != last_s))
		forget(s);
	if (has_kept(s, first_s, last_s))
		return true;
	if (!of)
		return false;
	if (is_made(s, table))
		return true;
	sums_name(table, name);
	if (!make(s, of, name, first_s, last_s))
		return false;
	x->made_first = first_s;
	x->made_last = last_s;
	len = strlen(x->made);
	snprintf(x->made + len, sizeof(x->made) - len, " %s ", table);
	return true;
}
