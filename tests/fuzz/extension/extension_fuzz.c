/* SPDX-License-Identifier: Apache-2.0 */
/*
 * covers: schema/extension/blocks.c schema/extension/samples_table.c schema/extension/totals_table.c
 * schema/extension/steps_table.c schema/extension/tables.c schema/extension/frames_table.c schema/extension/series.c
 *
 * A sealed day whose block, series and stacks are any bytes: each query ends, with rows or an error, and what sonde_totals
 * and sonde_steps add up is what sonde_samples tells.
 */
#include <sqlite3.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "schema/extension/extension.h"
#include "schema/store/migrate.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static sqlite3 *db;

static void exec(const char *sql)
{
	if (sqlite3_exec(db, sql, NULL, NULL, NULL) != SQLITE_OK) {
		fprintf(stderr, "%s: %s\n", sql, sqlite3_errmsg(db));
		abort();
	}
}

static void begin(void)
{
	if (sqlite3_open(":memory:", &db) != SQLITE_OK || migrate_apply(db, 0) != SQLITE_OK)
		abort();
	exec("INSERT INTO meta VALUES('t0', 1800000000), ('sealed_ns', 1);"
	     "INSERT INTO run(id, token, family, options, scope, bucket_s, cpus, from_ns, to_ns, state, pid, accounted) VALUES(1, 1, 'cpu', '', 0, 1, 1, 0, 1 << 60, 1, 1, 0), (2, 2, 'cpu', '', 1, 10, 1, 0, 1 << 60, 1, 1, 0);"
	     "INSERT INTO run_period VALUES(1, 0, 1000), (1, 1800000010000000000, 2000), (2, 0, 7);"
	     "INSERT INTO task(id, run, process, tid, kind, thread) VALUES(1, 1, 1, 1, 1, ''), (2, 2, 1, 1, 1, ''), (3, 2, 2, 1, 2, '')");
	if (extension_tables(db) != SQLITE_OK || extension_views(db) != SQLITE_OK)
		abort();
}

/* One number; -1: an error, or NULL. */
static int64_t ask(const char *sql)
{
	sqlite3_stmt *st = NULL;
	int64_t v = -1;

	if (sqlite3_prepare_v2(db, sql, -1, &st, NULL) != SQLITE_OK)
		abort();
	if (sqlite3_step(st) == SQLITE_ROW && sqlite3_column_type(st, 0) == SQLITE_INTEGER)
		v = sqlite3_column_int64(st, 0);
	sqlite3_finalize(st);
	return v;
}

/* Series and stacks of a few bytes each. */
static void put_dictionary(const uint8_t *p, size_t n)
{
	char sql[256];

	exec("DELETE FROM series; DELETE FROM stack");
	for (size_t i = 0; i + 4 <= n && i < 64; i += 4) {
		snprintf(sql, sizeof(sql), "INSERT OR IGNORE INTO series(id, task, stack) VALUES(%d, %d, %d); INSERT OR IGNORE INTO stack VALUES(%d, %d, %d, %d, '%d,%s%d')",
			 (int8_t)p[i], (int8_t)p[i + 1], p[i + 2], (int8_t)p[i], (int8_t)p[i + 2], (int8_t)p[i + 3], p[i + 1], p[i + 1],
			 p[i + 3] & 1 ? ",x" : "", p[i + 2]);
		exec(sql);
	}
}

static void put_block(const uint8_t *p, size_t n)
{
	sqlite3_stmt *st = NULL;

	exec("DELETE FROM sample_pack");
	if (sqlite3_prepare_v2(db, "INSERT INTO sample_pack VALUES(0, 1 << 40, 1, 1, ?1)", -1, &st, NULL) != SQLITE_OK)
		abort();
	sqlite3_bind_blob(st, 1, p, (int)n, SQLITE_STATIC);
	sqlite3_step(st);
	sqlite3_finalize(st);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	size_t words = size ? data[0] : 0;
	int64_t rows;

	if (!db)
		begin();
	if (size < words + 1 || size > 4096)
		return 0;
	put_dictionary(data + 1, words);
	put_block(data + 1 + words, size - 1 - words);
	rows = ask("SELECT total(samples) < 1e18 AND sum(samples) FROM sonde_samples WHERE counts = 1");
	if (rows >= 0 && ask("SELECT sum(samples) FROM sonde_samples WHERE counts = 1") != ask("SELECT sum(samples) FROM sonde_totals") &&
	    ask("SELECT total(samples) < 1e18 FROM sonde_totals") == 1)
		abort();
	if (rows >= 0 && ask("SELECT total(samples) < 1e18 FROM sonde_steps(7)") == 1 &&
	    ask("SELECT sum(samples) FROM sonde_steps(7)") != ask("SELECT sum(samples) FROM sonde_totals"))
		abort();
	ask("SELECT count(*) FROM cpu_samples WHERE ts BETWEEN 1800000001 AND 1800000020");
	ask("SELECT sum(cpu_ns) FROM sonde_totals(1800000001, 1800000020)");
	ask("SELECT count(*) FROM stack k, sonde_frames(k.id) f");
	return 0;
}
