/* SPDX-License-Identifier: Apache-2.0 */
/* minutes: see the header; the numbers are its steps. */
#include "schema/store/archive/minutes.h"

#include <fcntl.h>
#include <sqlite3.h>
#include <stdint.h>
#include <string.h>
#include <unistd.h>

#include "schema/base/cleanup.h"
#include "schema/base/strbuf.h"
#include "schema/facts/fact.h"
#include "schema/store/archive/remake.h"
#include "schema/store/model/fact_sql.h"
#include "schema/store/model/sql.h"
#include "schema/store/packed/packing.h"

#define TEXT_OF(n) TEXT_(n)
#define TEXT_(n) #n
#define AT_USER_VERSION 60 /* of the file's header: sqlite.org/fileformat2.html, 1.3 */

/* What goes on by itself, in buckets of less than a minute. */
#define FINE_RUNS "SELECT id FROM run WHERE recording = 0 AND bucket_s < " TEXT_OF(MINUTES_S) " AND " TEXT_OF(MINUTES_S) " % bucket_s = 0"

bool minutes_are(const char *path)
{
	cleanup_fd int fd = open(path, O_RDONLY | O_CLOEXEC);
	uint8_t v[4];

	return fd < 0 || pread(fd, v, sizeof(v), AT_USER_VERSION) != sizeof(v) || v[3] == MINUTES_S;
}

static bool has_rows(sqlite3 *db, const struct fact *f)
{
	sqlite3_stmt *st = NULL;
	char *sql = sqlite3_mprintf("SELECT 1 FROM \"%w\" WHERE run IN (%s) LIMIT 1", f->table, FINE_RUNS);
	bool some = sql && sqlite3_prepare_v2(db, sql, -1, &st, NULL) == SQLITE_OK && sqlite3_step(st) == SQLITE_ROW;

	sqlite3_finalize(st);
	sqlite3_free(sql);
	return some;
}

/* Step 2: which minute a row is of, and where the file's first one begins. */
static void add_ts(struct strbuf *sql)
{
	strbuf_addstr(sql, "max((ts + (SELECT value FROM meta WHERE key = 't0')) / " TEXT_OF(MINUTES_S) " * " TEXT_OF(MINUTES_S)
			   " - (SELECT value FROM meta WHERE key = 't0'), (SELECT first FROM temp.fine_run r WHERE r.run = x.run))");
}

static int sum_table(sqlite3 *db, const struct fact *f)
{
	struct strbuf sql cleanup_strbuf = STRBUF_INIT, columns cleanup_strbuf = STRBUF_INIT;

	for (uint32_t i = 0; i < f->n; i++)
		strbuf_addf(&columns, ",%s", f->columns[i].name);
	strbuf_addf(&sql, "DROP TABLE IF EXISTS temp.fine; CREATE TEMP TABLE fine AS SELECT * FROM main.%s WHERE run IN (SELECT run FROM temp.fine_run);"
		    "DELETE FROM main.%s WHERE run IN (SELECT run FROM temp.fine_run); INSERT INTO main.%s(", f->table, f->table, f->table);
	fact_columns_sql(f, &sql);
	strbuf_addstr(&sql, ") SELECT ");
	add_ts(&sql);
	strbuf_addf(&sql, ",run%s FROM temp.fine x WHERE true ORDER BY ts", strbuf_str(&columns));
	fact_merge_sql(f, &sql);
	strbuf_addstr(&sql, "; DROP TABLE temp.fine");
	return sql_exec(db, strbuf_str(&sql));
}

/* Each run's first row of any of these tables. */
static int find_runs(sqlite3 *db)
{
	struct strbuf sql cleanup_strbuf = STRBUF_INIT;
	const char *before = "";

	strbuf_addstr(&sql, "CREATE TEMP TABLE fine_run AS SELECT run, min(ts) AS first FROM (");
	for (int i = 0; FACTS[i]; i++) {
		if (!FACTS[i]->minutes || !has_rows(db, FACTS[i]))
			continue;
		strbuf_addf(&sql, "%sSELECT run, min(ts) AS ts FROM main.%s WHERE run IN (%s) GROUP BY run", before, FACTS[i]->table, FINE_RUNS);
		before = " UNION ALL ";
	}
	if (!*before)
		strbuf_addstr(&sql, "SELECT 0 AS run, 0 AS ts WHERE false");
	strbuf_addstr(&sql, ") GROUP BY run");
	return sql_exec(db, strbuf_str(&sql));
}

static int sum_all(sqlite3 *db)
{
	int rc = find_runs(db);

	for (int i = 0; rc == SQLITE_OK && FACTS[i]; i++) {
		if (!FACTS[i]->minutes || !has_rows(db, FACTS[i]))
			continue;
		rc = packing_unpack_one(db, FACTS[i]->table);
		if (rc == SQLITE_OK)
			rc = sum_table(db, FACTS[i]);
		if (rc == SQLITE_OK)
			rc = packing_pack_one(db, FACTS[i]->table);
	}
	if (rc == SQLITE_OK)
		rc = packing_unpack_one(db, "run");
	if (rc == SQLITE_OK)
		rc = sql_exec(db, "UPDATE run SET bucket_s = " TEXT_OF(MINUTES_S) " WHERE id IN (SELECT run FROM temp.fine_run)");
	if (rc == SQLITE_OK)
		rc = packing_pack_one(db, "run");
	if (rc == SQLITE_OK)
		rc = packing_unpack_one(db, "container");
	if (rc == SQLITE_OK)
		rc = packing_pack_one(db, "container"); /* some dozen rows, and a page for each four of them */
	return rc;
}

/* --- step 3 --- */

static int sums_of(sqlite3 *db, const struct fact *f, int64_t sums[FACT_COLUMNS_MAX])
{
	struct strbuf sql cleanup_strbuf = STRBUF_INIT;
	sqlite3_stmt *st = NULL;
	int rc;

	strbuf_addstr(&sql, "SELECT 0");
	for (uint32_t i = 0; i < f->n; i++)
		strbuf_addf(&sql, f->columns[i].role == FACT_COUNTER || f->columns[i].role == FACT_TALLY ? ",sum(%s)" : ",count(DISTINCT %s)", f->columns[i].role == FACT_GAUGE ? "0" : f->columns[i].name);
	strbuf_addf(&sql, " FROM %s", f->table);
	rc = sqlite3_prepare_v2(db, strbuf_str(&sql), -1, &st, NULL);
	if (rc == SQLITE_OK)
		rc = sqlite3_step(st);
	for (uint32_t i = 0; rc == SQLITE_ROW && i < f->n; i++)
		sums[i] = sqlite3_column_int64(st, (int)i + 1);
	sqlite3_finalize(st);
	return rc == SQLITE_ROW ? SQLITE_OK : rc;
}

static int compare(sqlite3 *a, sqlite3 *b)
{
	int rc = SQLITE_OK;

	for (int i = 0; rc == SQLITE_OK && FACTS[i]; i++) {
		int64_t before[FACT_COLUMNS_MAX] = {0}, after[FACT_COLUMNS_MAX] = {0};

		if (!FACTS[i]->minutes || !has_rows(a, FACTS[i]))
			continue;
		rc = sums_of(a, FACTS[i], before);
		if (rc == SQLITE_OK)
			rc = sums_of(b, FACTS[i], after);
		if (rc == SQLITE_OK && memcmp(before, after, sizeof(before)) != 0)
			rc = SQLITE_MISMATCH;
	}
	return rc;
}

int minutes_make(const char *path, const char *to, struct err *e)
{
	static const struct remake how = {"the minutes", sum_all, "PRAGMA user_version = " TEXT_OF(MINUTES_S) "; COMMIT; VACUUM; PRAGMA journal_mode=DELETE", compare};

	return remake_file(path, to, &how, e);
}
