/* SPDX-License-Identifier: Apache-2.0 */
#include "schema/extension/blocks.h"

#include <sqlite3ext.h>

SQLITE_EXTENSION_INIT3

#include "schema/store/packed/fetch.h" /* behind the names that it calls by */

int64_t blocks_number(sqlite3 *db, const char *sql, int64_t fallback)
{
	sqlite3_stmt *st = NULL;
	int64_t v = fallback;

	if (sqlite3_prepare_v2(db, sql, -1, &st, NULL) == SQLITE_OK &&
	    sqlite3_step(st) == SQLITE_ROW && sqlite3_column_type(st, 0) == SQLITE_INTEGER)
		v = sqlite3_column_int64(st, 0);
	sqlite3_finalize(st);
	return v;
}

bool blocks_packed(sqlite3 *db)
{
	return blocks_number(
		       db, "SELECT EXISTS (SELECT 1 FROM main.packed_table WHERE name = 'sample')",
		       0) != 0;
}

/* packed/table.h's */
static int fetch(void *ctx, int i, size_t block, uint8_t **data, size_t *len)
{
	struct blocks *b = ctx;
	struct packed_source s = {.db = b->db, .schema = "main"};

	return packed_fetch(&s, &b->packed, i, block, data, len);
}

static void no_name(void *ctx, int i, const char *column)
{
	(void)ctx;
	(void)i;
	(void)column;
}

static int open_packed(struct blocks *b, int64_t first, int64_t last)
{
	struct packed_source s = {.db = b->db, .schema = "main"};
	int rc;

	b->packed = (struct packedtable){.fetch = fetch, .ctx = b};
	rc = packed_open(&s, "sample", &b->packed, no_name, NULL);
	if (rc == SQLITE_OK && sample_scan_begin(&b->scan, &b->packed, first, last))
		rc = SQLITE_CORRUPT;
	if (rc != SQLITE_OK)
		packedtable_close(&b->packed);
	return rc == SQLITE_CORRUPT ? SQLITE_CORRUPT_VTAB : rc;
}

static int open_rows(struct blocks *b, int64_t first, int64_t last)
{
	int rc = sqlite3_prepare_v2(
		b->db,
		"SELECT ts, series, n FROM main.sample WHERE ts BETWEEN ?1 AND ?2 ORDER BY ts, series",
		-1, &b->st, NULL);

	if (rc == SQLITE_OK) {
		sqlite3_bind_int64(b->st, 1, first);
		sqlite3_bind_int64(b->st, 2, last);
	}
	return rc;
}

int blocks_open(struct blocks *b, sqlite3 *db, int64_t first, int64_t last)
{
	int rc;

	blocks_close(b);
	b->db = db;
	b->st = NULL;
	b->n = b->at = 0;
	b->ended = SQLITE_OK;
	rc = blocks_packed(db) ? open_packed(b, first, last) : open_rows(b, first, last);
	if (rc != SQLITE_OK)
		b->db = NULL;
	return rc;
}

/* SQLITE_ROW with n > 0, SQLITE_DONE, or an error. Not to be called after SQLITE_DONE: the
 * statement would start again. */
static int more_rows(struct blocks *b)
{
	if (b->ended == SQLITE_DONE)
		return SQLITE_DONE;
	while (b->n < BLOCKS_CHUNK && (b->ended = sqlite3_step(b->st)) == SQLITE_ROW) {
		sqlite3_int64 series = sqlite3_column_int64(b->st, 1),
			      n = sqlite3_column_int64(b->st, 2);

		if (series > 0 && series <= UINT32_MAX && n > 0)
			b->rows[b->n++] = (struct sample_row){sqlite3_column_int64(b->st, 0),
							      (uint64_t)n, (uint32_t)series};
	}
	return b->n && b->ended == SQLITE_DONE ? SQLITE_ROW : b->ended;
}

static int more_packed(struct blocks *b)
{
	int got;

	b->n = sample_scan_next(&b->scan, b->rows, BLOCKS_CHUNK, &got);
	return b->n           ? SQLITE_ROW :
	       !got           ? SQLITE_DONE :
	       got == -ENOMEM ? SQLITE_NOMEM :
				SQLITE_CORRUPT_VTAB;
}

const struct sample_row *blocks_next(struct blocks *b, int *rc)
{
	*rc = SQLITE_OK;
	while (b->db) {
		if (b->at < b->n)
			return &b->rows[b->at++];
		b->n = b->at = 0;
		*rc = b->st ? more_rows(b) : more_packed(b);
		if (*rc != SQLITE_ROW)
			blocks_close(b);
	}
	if (*rc == SQLITE_DONE)
		*rc = SQLITE_OK;
	return NULL;
}

void blocks_close(struct blocks *b)
{
	if (b->db && !b->st)
		packedtable_close(&b->packed);
	sqlite3_finalize(b->st);
	b->st = NULL;
	b->db = NULL;
}
