/* SPDX-License-Identifier: Apache-2.0 */
/* Numbers in comments are the header's rules. */
#include "schema/store/packed/sums.h"

#include <sqlite3.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "schema/base/array.h"
#include "schema/base/cleanup.h"
#include "schema/base/mem.h"
#include "schema/base/strbuf.h"
#include "schema/facts/fact.h"
#include "schema/facts/host.h"
#include "schema/facts/l7.h"
#include "schema/facts/net.h"
#include "schema/store/model/hist.h"
#include "schema/store/model/sql.h"
#include "schema/store/packed/pack_table.h"
#include "schema/store/packed/packing.h"
#include "schema/store/packed/sample_sums.h"

/* what does not move has a row once in ten minutes, once a minute (loaders/host, loaders/net) */
#define PROCESS_S 610
#define OTHERS_S  70
#define ENDED_S   60 /* no bucket is wider */

static const struct sums_fact OF_FACTS[] = {
	{&PROCESS_FACT, "rss", false, true, PROCESS_S},
	{&PROCESS_MEM_FACT, NULL, false, false, PROCESS_S},
	{&ENDED_FACT, NULL, true, true, ENDED_S},
	{&CGROUP_FACT, "working", false, true, OTHERS_S},
	{&FLOW_FACT, NULL, false, false, OTHERS_S},
	{&REQUEST_BYTES_FACT, NULL, false, false, 0},
	{&HOST_FACT, NULL, false, true, ENDED_S},
};

/* All others: columns of the key, then those that add up. */
#define REQUEST_KEY "process, run, side, protocol, service, operation, status, result"
static const struct of_rows {
	const char *table, *key, *sums;
} OF_ROWS[] = {
	{"wait_row", "task, class, flags", "n, total_ns, max_ns, hist"},
	{"request_row", REQUEST_KEY, "n, total_ns, max_ns, request_bytes, response_bytes, hist"},
	{"request_phase_row", REQUEST_KEY ", phase", "n, total_ns, max_ns, hist"},
};

#define N_SUMS (ARRAY_SIZE(OF_FACTS) + ARRAY_SIZE(OF_ROWS))

/* Puts a row whose gauge is not known before all others. */
#define BEFORE_ALL "1099511627776"

static const char *table_of(size_t i)
{
	return i < ARRAY_SIZE(OF_FACTS) ? OF_FACTS[i].fact->table :
					  OF_ROWS[i - ARRAY_SIZE(OF_FACTS)].table;
}

void sums_name(const char *table, char out[SUMS_NAME_MAX])
{
	snprintf(out, SUMS_NAME_MAX, "%.*s_sum", (int)(strlen(table) - strlen("_row")), table);
}

static void name_of(size_t i, char out[SUMS_NAME_MAX])
{
	sums_name(table_of(i), out);
}

const struct sums_fact *sums_fact_of(const char *table)
{
	for (size_t i = 0; i < ARRAY_SIZE(OF_FACTS); i++)
		if (!strcmp(OF_FACTS[i].fact->table, table))
			return &OF_FACTS[i];
	return NULL;
}

bool sums_has(const char *table)
{
	char name[SUMS_NAME_MAX];

	for (size_t i = 0; i < N_SUMS; i++) {
		name_of(i, name);
		if (!strcmp(name, table))
			return true;
	}
	return sample_sums_has(table);
}

/* ---- how numbers and histograms add up, in SQL ---- */

struct total {
	int64_t sum;
	bool any;
};

static void total_step(sqlite3_context *ctx, int argc, sqlite3_value **argv)
{
	struct total *t = sqlite3_aggregate_context(ctx, sizeof(*t));

	(void)argc;
	if (!t || sqlite3_value_type(argv[0]) != SQLITE_INTEGER)
		return;
	t->any = true;
	if (__builtin_add_overflow(t->sum, sqlite3_value_int64(argv[0]), &t->sum))
		t->sum = INT64_MAX;
}

static void total_end(sqlite3_context *ctx)
{
	const struct total *t = sqlite3_aggregate_context(ctx, 0);

	if (t && t->any)
		sqlite3_result_int64(ctx, t->sum);
}

static void spread_step(sqlite3_context *ctx, int argc, sqlite3_value **argv)
{
	struct hist *h = sqlite3_aggregate_context(ctx, sizeof(*h));
	const char *text = (const char *)sqlite3_value_text(argv[0]);

	(void)argc;
	if (h && text)
		(void)hist_read(h, text, (size_t)sqlite3_value_bytes(argv[0]), 0);
}

static void spread_end(sqlite3_context *ctx)
{
	struct hist *h = sqlite3_aggregate_context(ctx, 0);
	struct strbuf s cleanup_strbuf = STRBUF_INIT;

	if (h && hist_encode(h, 0, &s))
		sqlite3_result_text(ctx, s.buf, (int)s.len, SQLITE_TRANSIENT);
	if (h)
		hist_release(h);
}

static int functions(sqlite3 *db)
{
	int rc = sqlite3_create_function(db, "sums_number", 1, SQLITE_UTF8, NULL, NULL, total_step,
					 total_end);

	return rc == SQLITE_OK ? sqlite3_create_function(db, "sums_hist", 1, SQLITE_UTF8, NULL,
							 NULL, spread_step, spread_end) :
				 rc;
}

/* ---- statements: what makes a table, and what fills it ---- */

struct statements {
	struct strbuf make, fill;
};

static void statements_release(struct statements *s)
{
	strbuf_release(&s->make);
	strbuf_release(&s->fill);
}

static bool adds_up(const struct fact_column *c)
{
	return c->role == FACT_COUNTER || c->role == FACT_TALLY;
}

/* Each word of a list "a, b", as `how` says with it. */
static void each_word(const char *list, void (*how)(struct strbuf *out, const char *word),
		      struct strbuf *out)
{
	for (const char *p = list; *p; p += strspn(p, ", ")) {
		const size_t n = strcspn(p, ",");
		cleanup_free char *word = mem_strndup(p, n);

		how(out, word);
		p += n;
	}
}

static void declare_key(struct strbuf *out, const char *word)
{
	strbuf_addf(out, "%s INTEGER NOT NULL,", word);
}

static bool is_hist(const char *word)
{
	return !strcmp(word, "hist");
}

/* The first key, run, the other keys. */
static void fact_key(const struct fact *f, struct strbuf *out)
{
	uint32_t i = 0;

	for (; i < f->n && f->columns[i].role == FACT_KEY; i++)
		strbuf_addf(out, "%s%s%s", i ? "," : "", f->columns[i].name, i ? "" : ",run");
	if (!i)
		strbuf_addstr(out, "run");
}

/* The key, ts, all else. */
static void fact_make(const struct fact *f, const char *name, const char *key, struct strbuf *out)
{
	strbuf_addf(out, "CREATE TABLE %s(", name);
	each_word(key, declare_key, out);
	strbuf_addstr(out, "ts INTEGER NOT NULL,");
	for (uint32_t i = 0; i < f->n; i++)
		if (f->columns[i].role != FACT_KEY)
			strbuf_addf(out, "%s INTEGER,", f->columns[i].name);
	strbuf_addf(out, "PRIMARY KEY(%s)) STRICT, WITHOUT ROWID", key);
}

/* A bare column next to max() is that of the row with the highest (SQLite's lang_select.html). */
static void fact_fill(const struct sums_fact *of, const char *name, const char *key,
		      const char *from, struct strbuf *out)
{
	const struct fact *f = of->fact;
	struct strbuf inner cleanup_strbuf = STRBUF_INIT;

	strbuf_addf(out,
		    "INSERT INTO %s SELECT %s,iif(at < -" BEFORE_ALL " / 2, at + " BEFORE_ALL
		    ", at)",
		    name, key);
	for (uint32_t i = 0; i < f->n; i++) {
		const struct fact_column *c = &f->columns[i];

		if (c->role == FACT_KEY)
			continue;
		strbuf_addf(out, ",%s", c->name);
		strbuf_addf(&inner, adds_up(c) ? ",sums_number(%s) AS %s" : ",%s AS %s", c->name,
			    c->name);
	}
	if (of->gauge)
		strbuf_addf(&inner, ",max(iif(%s IS NULL, ts - " BEFORE_ALL ", ts)) AS at",
			    of->gauge);
	else
		strbuf_addstr(&inner, ",max(ts) AS at");
	strbuf_addf(out, " FROM (SELECT %s%s FROM %s GROUP BY %s)", key, strbuf_str(&inner), from,
		    key);
}

/* The same of one whose gauges are the highest: no row is the last. */
static void peak_fill(const struct fact *f, const char *name, const char *key, const char *from,
		      struct strbuf *out)
{
	strbuf_addf(out, "INSERT INTO %s SELECT %s,max(ts)", name, key);
	for (uint32_t i = 0; i < f->n; i++)
		if (f->columns[i].role != FACT_KEY)
			strbuf_addf(out, adds_up(&f->columns[i]) ? ",sums_number(%s)" : ",max(%s)",
				    f->columns[i].name);
	strbuf_addf(out, " FROM %s GROUP BY %s", from, key);
}

static void declare_sum(struct strbuf *out, const char *word)
{
	strbuf_addf(out, "%s %s,", word, is_hist(word) ? "TEXT" : "INTEGER NOT NULL");
}

static void sum_up(struct strbuf *out, const char *word)
{
	const char *how = is_hist(word)             ? "sums_hist" :
			  !strncmp(word, "max_", 4) ? "max" :
						      "sums_number";

	strbuf_addf(out, ",%s(%s)", how, word);
}

static void rows_statements(const struct of_rows *of, const char *name, const char *from,
			    struct statements *s)
{
	strbuf_addf(&s->make, "CREATE TABLE %s(", name);
	each_word(of->key, declare_key, &s->make);
	each_word(of->sums, declare_sum, &s->make);
	strbuf_addf(&s->make, "PRIMARY KEY(%s)) STRICT, WITHOUT ROWID", of->key);
	strbuf_addf(&s->fill, "INSERT INTO %s SELECT %s", name, of->key);
	each_word(of->sums, sum_up, &s->fill);
	strbuf_addf(&s->fill, " FROM %s GROUP BY %s", from, of->key);
}

/* `from`: the table whose rows are summed. */
static void statements_of(size_t i, const char *name, const char *from, struct statements *s)
{
	struct strbuf key cleanup_strbuf = STRBUF_INIT;

	*s = (struct statements){STRBUF_INIT, STRBUF_INIT};
	if (i >= ARRAY_SIZE(OF_FACTS)) {
		rows_statements(&OF_ROWS[i - ARRAY_SIZE(OF_FACTS)], name, from, s);
		return;
	}
	fact_key(OF_FACTS[i].fact, &key);
	fact_make(OF_FACTS[i].fact, name, strbuf_str(&key), &s->make);
	if (OF_FACTS[i].peak)
		peak_fill(OF_FACTS[i].fact, name, strbuf_str(&key), from, &s->fill);
	else
		fact_fill(&OF_FACTS[i], name, strbuf_str(&key), from, &s->fill);
}

/* ---- tables ---- */

/* The number that `sql` gives, which is freed. */
static int64_t number_of(sqlite3 *db, char *sql)
{
	const int64_t n = sql ? sql_number(db, sql, 0) : 0;

	sqlite3_free(sql);
	return n;
}

static bool is_there(sqlite3 *db, const char *table)
{
	return number_of(db, sqlite3_mprintf("SELECT count(*) FROM main.sqlite_schema WHERE name = "
					     "%Q AND type = 'table'",
					     table)) > 0;
}

static bool has_rows(sqlite3 *db, const char *table)
{
	return number_of(db, sqlite3_mprintf("SELECT EXISTS (SELECT 1 FROM \"%w\")", table)) > 0;
}

static int make_one(sqlite3 *db, size_t i)
{
	char name[SUMS_NAME_MAX];
	struct statements s;
	int rc = SQLITE_OK;

	name_of(i, name);
	statements_of(i, name, table_of(i), &s);
	if (has_rows(db, table_of(i))) {
		rc = sql_exec(db, strbuf_str(&s.make));
		if (rc == SQLITE_OK)
			rc = sql_exec(db, strbuf_str(&s.fill));
	}
	statements_release(&s);
	return rc;
}

/* Rule 2. */
#define AT_ONCE "SELECT EXISTS (SELECT 1 FROM fact_hidden) OR EXISTS (SELECT 1 FROM run_hidden)"

int sums_make(sqlite3 *db)
{
	int rc = functions(db);

	if (rc != SQLITE_OK || sql_number(db, AT_ONCE, 1))
		return rc;
	for (size_t i = 0; rc == SQLITE_OK && i < N_SUMS; i++)
		rc = make_one(db, i);
	if (rc == SQLITE_OK)
		rc = sample_sums_make(db);
	return rc == SQLITE_OK ?
		       sql_exec(db, "INSERT OR REPLACE INTO meta(key, value) VALUES('sums', 1)") :
		       rc;
}

static int remake_one(sqlite3 *db, size_t i)
{
	char name[SUMS_NAME_MAX];
	struct statements s;
	int rc;

	name_of(i, name);
	if (!is_there(db, name))
		return SQLITE_OK;
	statements_of(i, name, table_of(i), &s);
	rc = packing_unpack_one(db, name);
	if (rc == SQLITE_OK)
		rc = pack_table_exec(db, sqlite3_mprintf("DELETE FROM \"%w\"", name));
	if (rc == SQLITE_OK)
		rc = sql_exec(db, strbuf_str(&s.fill));
	if (rc == SQLITE_OK && has_rows(db, name))
		rc = packing_pack_one(db, name);
	statements_release(&s);
	return rc;
}

int sums_remake(sqlite3 *db)
{
	int rc = functions(db);

	for (size_t i = 0; rc == SQLITE_OK && i < N_SUMS; i++)
		rc = remake_one(db, i);
	return rc;
}

/* ---- of several files ---- */

static void parts_of(size_t i, char out[SUMS_NAME_MAX])
{
	const char *table = table_of(i);

	snprintf(out, SUMS_NAME_MAX, "%.*s_parts", (int)(strlen(table) - strlen("_row")), table);
}

int sums_parts(sqlite3 *db, size_t i, const char **table)
{
	char name[SUMS_NAME_MAX], parts[SUMS_NAME_MAX];
	struct statements s;
	int rc;

	if (i >= N_SUMS)
		return SQLITE_DONE;
	*table = table_of(i);
	name_of(i, name);
	parts_of(i, parts);
	statements_of(i, name, parts, &s);
	rc = functions(db);
	if (rc == SQLITE_OK)
		rc = sql_exec(db, strbuf_str(&s.make));
	statements_release(&s);
	return rc == SQLITE_OK ?
		       pack_table_exec(db,
				       sqlite3_mprintf("CREATE TEMP TABLE \"%w\" AS SELECT * FROM "
						       "main.\"%w\" WHERE 0",
						       parts, name)) :
		       rc;
}

int sums_of_parts(sqlite3 *db, size_t i)
{
	char name[SUMS_NAME_MAX], parts[SUMS_NAME_MAX];
	struct statements s;
	int rc;

	name_of(i, name);
	parts_of(i, parts);
	statements_of(i, name, parts, &s);
	rc = sql_exec(db, strbuf_str(&s.fill));
	statements_release(&s);
	return rc == SQLITE_OK ?
		       pack_table_exec(db, sqlite3_mprintf("DROP TABLE temp.\"%w\"", parts)) :
		       rc;
}

int sums_drop(sqlite3 *db)
{
	char name[SUMS_NAME_MAX];
	int rc = sql_exec(db, "DELETE FROM meta WHERE key = 'sums'");

	if (rc == SQLITE_OK)
		rc = sample_sums_drop(db);
	for (size_t i = 0; rc == SQLITE_OK && i < N_SUMS; i++) {
		name_of(i, name);
		rc = pack_table_exec(db, sqlite3_mprintf("DROP TABLE IF EXISTS \"%w\"", name));
	}
	return rc;
}
