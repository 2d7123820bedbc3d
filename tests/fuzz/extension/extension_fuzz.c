/* SPDX-License-Identifier: Apache-2.0 */
/*
 * covers: schema/extension/blocks.c schema/extension/samples_table.c
 * schema/extension/totals_table.c schema/extension/steps_table.c schema/extension/tables.c
 * schema/extension/frames_table.c schema/extension/series.c
 *
 * An archive whose samples, series and stacks are any numbers: each query ends, with rows or an
 * error, and what sonde_totals and sonde_steps add up is what sonde_samples tells.
 */
#include <sqlite3.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "schema/extension/extension.h"
#include "schema/store/files/migrate.h"
#include "schema/store/packed/column.h"

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
	exec("INSERT INTO meta VALUES('t0', 1800000000);"
	     "INSERT INTO packed_column VALUES(1, 'sample', 0, 'ts', 'INTEGER'), (2, 'sample', 1, 'series', 'INTEGER'), (3, 'sample', 2, 'n', 'INTEGER');"
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
		snprintf(
			sql, sizeof(sql),
			"INSERT OR IGNORE INTO series(id, task, stack) VALUES(%d, %d, %d); INSERT OR IGNORE INTO stack VALUES(%d, %d, %d, %d, '%d,%s%d')",
			(int8_t)p[i], (int8_t)p[i + 1], p[i + 2], (int8_t)p[i], (int8_t)p[i + 2],
			(int8_t)p[i + 3], p[i + 1], p[i + 1], p[i + 3] & 1 ? ",x" : "", p[i + 2]);
		exec(sql);
	}
}

static void put_column(int number, size_t block, const int64_t *numbers, size_t n, int64_t lie)
{
	struct column c = {.n = n, .numbers = (int64_t *)numbers};
	sqlite3_stmt *st = NULL;
	uint8_t *data;
	size_t len;

	if (column_encode(&c, &data, &len) ||
	    sqlite3_prepare_v2(db, "INSERT INTO packed_block VALUES(?1, ?2, ?3, ?4)", -1, &st,
			       NULL) != SQLITE_OK)
		abort();
	sqlite3_bind_int64(st, 1, (sqlite3_int64)(((uint64_t)number + 1) << 20 | block));
	sqlite3_bind_int64(st, 2, numbers[0] + lie);
	sqlite3_bind_int64(st, 3, numbers[n - 1]);
	sqlite3_bind_blob(st, 4, data, (int)len, free);
	sqlite3_step(st);
	sqlite3_finalize(st);
}

/* Samples of three bytes each, in blocks of as many rows as the first byte says; some of them out
 * of order, or lies. */
static void put_samples(const uint8_t *p, size_t n)
{
	int64_t numbers[3][256];
	size_t block_rows = n ? 1 + p[0] % 16 : 1, rows = n / 3 < 256 ? n / 3 : 256;
	char sql[128];
	int64_t ts = 0;

	exec("DELETE FROM packed_block; DELETE FROM packed_table");
	for (size_t i = 0; i < rows; i++) {
		numbers[0][i] = ts += (int8_t)p[3 * i] < -100 ? -1 : (p[3 * i] & 3);
		numbers[1][i] = (int8_t)p[3 * i + 1];
		numbers[2][i] = (int8_t)p[3 * i + 2] < -120 ? INT64_MAX : (int8_t)p[3 * i + 2];
	}
	snprintf(sql, sizeof(sql), "INSERT INTO packed_table VALUES('sample', %zu, '', %zu)",
		 rows + (n % 3 == 2), block_rows);
	exec(sql);
	for (size_t i = 0; i < rows; i += block_rows)
		for (int k = 0; k < 3; k++)
			put_column(k, i / block_rows, numbers[k] + i,
				   rows - i < block_rows ? rows - i : block_rows, n % 3 == 1 && i);
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
	put_samples(data + 1 + words, size - 1 - words);
	rows = ask(
		"SELECT total(samples) < 1e18 AND sum(samples) FROM sonde_samples WHERE counts = 1");
	if (rows >= 0 &&
	    ask("SELECT sum(samples) FROM sonde_samples WHERE counts = 1") !=
		    ask("SELECT sum(samples) FROM sonde_totals") &&
	    ask("SELECT total(samples) < 1e18 FROM sonde_totals") == 1)
		abort();
	if (rows >= 0 && ask("SELECT total(samples) < 1e18 FROM sonde_steps(7)") == 1 &&
	    ask("SELECT sum(samples) FROM sonde_steps(7)") !=
		    ask("SELECT sum(samples) FROM sonde_totals"))
		abort();
	ask("SELECT count(*) FROM cpu_samples WHERE ts BETWEEN 1800000001 AND 1800000020");
	ask("SELECT sum(cpu_ns) FROM sonde_totals(1800000001, 1800000020)");
	ask("SELECT count(*) FROM stack k, sonde_frames(k.id) f");
	return 0;
}
