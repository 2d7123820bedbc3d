/* SPDX-License-Identifier: Apache-2.0 */
/* blocks: see the header. */
#include "schema/extension/blocks.h"

#include <sqlite3ext.h>

SQLITE_EXTENSION_INIT3

int64_t blocks_number(sqlite3 *db, const char *sql, int64_t fallback)
{
	sqlite3_stmt *st = NULL;
	int64_t v = fallback;

	if (sqlite3_prepare_v2(db, sql, -1, &st, NULL) == SQLITE_OK && sqlite3_step(st) == SQLITE_ROW &&
	    sqlite3_column_type(st, 0) == SQLITE_INTEGER)
		v = sqlite3_column_int64(st, 0);
	sqlite3_finalize(st);
	return v;
}

bool blocks_packed(sqlite3 *db)
{
	return blocks_number(db, "SELECT value FROM main.meta WHERE key = 'sealed_ns'", 0) != 0;
}

int blocks_open(struct blocks *b, sqlite3 *db, int64_t first, int64_t last)
{
	int rc;

	blocks_close(b);
	b->packed = blocks_packed(db);
	b->first = first;
	b->last = last;
	b->n = b->at = 0;
	b->ended = SQLITE_OK;
	b->block = (struct pack_reader){0};
	rc = sqlite3_prepare_v2(db, b->packed ? "SELECT ts, data FROM main.sample_pack WHERE ts <= ?2 AND last >= ?1 ORDER BY ts" :
						"SELECT ts, series, n FROM main.sample WHERE ts BETWEEN ?1 AND ?2 ORDER BY ts, series",
				-1, &b->st, NULL);
	if (rc != SQLITE_OK)
		return rc;
	sqlite3_bind_int64(b->st, 1, first);
	sqlite3_bind_int64(b->st, 2, last);
	return SQLITE_OK;
}

/* SQLITE_ROW with n > 0, SQLITE_DONE, or what is wrong. A statement that has ended would begin anew. */
static int more_rows(struct blocks *b)
{
	if (b->ended == SQLITE_DONE)
		return SQLITE_DONE;
	while (b->n < BLOCKS_CHUNK && (b->ended = sqlite3_step(b->st)) == SQLITE_ROW) {
		sqlite3_int64 series = sqlite3_column_int64(b->st, 1), n = sqlite3_column_int64(b->st, 2);

		if (series > 0 && series <= UINT32_MAX && n > 0)
			b->rows[b->n++] = (struct sample_row){sqlite3_column_int64(b->st, 0), (uint64_t)n, (uint32_t)series};
	}
	return b->n && b->ended == SQLITE_DONE ? SQLITE_ROW : b->ended;
}

/* The bytes of a block are the statement's: the next one is asked for when this one is read. */
static int more_packed(struct blocks *b)
{
	for (;;) {
		b->n = pack_next(&b->block, b->rows, BLOCKS_CHUNK);
		if (b->block.bad)
			return SQLITE_CORRUPT_VTAB;
		if (b->n)
			return SQLITE_ROW;
		int rc = sqlite3_step(b->st);

		if (rc != SQLITE_ROW)
			return rc;
		pack_open(&b->block, sqlite3_column_blob(b->st, 1), (size_t)sqlite3_column_bytes(b->st, 1),
			  sqlite3_column_int64(b->st, 0));
	}
}

const struct sample_row *blocks_next(struct blocks *b, int *rc)
{
	*rc = SQLITE_OK;
	while (b->st) {
		while (b->at < b->n) {
			const struct sample_row *r = &b->rows[b->at++];

			if (r->ts >= b->first && r->ts <= b->last)
				return r;
		}
		b->n = b->at = 0;
		*rc = b->packed ? more_packed(b) : more_rows(b);
		if (*rc != SQLITE_ROW)
			blocks_close(b);
	}
	if (*rc == SQLITE_DONE)
		*rc = SQLITE_OK;
	return NULL;
}

void blocks_close(struct blocks *b)
{
	sqlite3_finalize(b->st);
	b->st = NULL;
}
