/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fetch: a packed table (packed/table.h) from the file that has it. Functions in a header, because
 * the extension calls SQLite by other names than the store does: it includes sqlite3ext.h first.
 */
#ifndef SONDE_STORE_PACKED_FETCH_H
#define SONDE_STORE_PACKED_FETCH_H

#include <errno.h>
#include <sqlite3.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "schema/store/packed/table.h"

#define PACKED_BLOCK_BITS 20 /* packed_block.id is packed_column.id << 20 | the block's number */

struct packed_source {
	sqlite3 *db;
	const char *schema; /* that the table is in: "main" */
	int sql;            /* what a statement failed with, where packed_fetch says -EIO */
};

static inline int packed_prepare(sqlite3 *db, char *sql, sqlite3_stmt **out)
{
	int rc = sql ? sqlite3_prepare_v2(db, sql, -1, out, NULL) : SQLITE_NOMEM;

	sqlite3_free(sql);
	return rc;
}

/* Statement `st` gives one blob; it is finalized. 0, -ENOENT or -ENOMEM. */
static inline int packed_take(sqlite3_stmt *st, uint8_t **data, size_t *len)
{
	int got = -ENOENT;

	if (sqlite3_step(st) == SQLITE_ROW) {
		*len = (size_t)sqlite3_column_bytes(st, 0);
		*data = malloc(*len + 1);
		got = *data ? 0 : -ENOMEM;
		if (!got && *len)
			memcpy(*data, sqlite3_column_blob(st, 0), *len);
	}
	sqlite3_finalize(st);
	return got;
}

static inline int packed_fetch(struct packed_source *s, const struct packedtable *t, int i,
			       size_t block, uint8_t **data, size_t *len)
{
	sqlite3_stmt *st = NULL;

	s->sql = packed_prepare(
		s->db,
		sqlite3_mprintf("SELECT data FROM \"%w\".packed_block WHERE id = ?1", s->schema),
		&st);
	if (s->sql != SQLITE_OK)
		return -EIO;
	sqlite3_bind_int64(st, 1, (sqlite3_int64)((uint64_t)t->id[i] << PACKED_BLOCK_BITS | block));
	return packed_take(st, data, len);
}

/* `t` has its columns, and `each` is called with their names. SQLITE_CORRUPT: these are no columns;
 * no row: n is 0. */
static inline int packed_columns(const struct packed_source *s, const char *name,
				 struct packedtable *t,
				 void (*each)(void *ctx, int i, const char *column), void *ctx)
{
	sqlite3_stmt *st = NULL;
	int rc = packed_prepare(
		s->db,
		sqlite3_mprintf(
			"SELECT c.name, c.type, t.rows, t.block_rows, c.id, c.number FROM \"%w\".packed_table t"
			" JOIN \"%w\".packed_column c ON c.\"table\" = t.name WHERE t.name = %Q ORDER BY c.number",
			s->schema, s->schema, name),
		&st);

	while (rc == SQLITE_OK && (rc = sqlite3_step(st)) == SQLITE_ROW) {
		const char *column = (const char *)sqlite3_column_text(st, 0),
			   *type = (const char *)sqlite3_column_text(st, 1);
		sqlite3_int64 rows = sqlite3_column_int64(st, 2),
			      block_rows = sqlite3_column_int64(st, 3),
			      id = sqlite3_column_int64(st, 4);

		rc = SQLITE_CORRUPT;
		if (!column || !type || t->n == PACKEDCOLUMNS_MAX ||
		    sqlite3_column_int(st, 5) != t->n || rows < 0 || rows > COLUMN_MAX ||
		    block_rows < 0 || id <= 0 || id >= 1ll << 40)
			break;
		t->n_rows = (size_t)rows;
		t->block_rows = (size_t)block_rows;
		t->is_number[t->n] = !strcmp(type, "INTEGER");
		t->id[t->n] = id;
		each(ctx, t->n++, column);
		rc = SQLITE_OK;
	}
	sqlite3_finalize(st);
	return rc == SQLITE_DONE ? SQLITE_OK : rc;
}

/* After packedtable_open: what its blocks say of column 0. */
static inline int packed_ranges(const struct packed_source *s, struct packedtable *t)
{
	sqlite3_stmt *st = NULL;
	size_t k = 0;
	int rc;

	if (!t->range)
		return SQLITE_OK;
	rc = packed_prepare(
		s->db,
		sqlite3_mprintf(
			"SELECT first, last FROM \"%w\".packed_block WHERE id BETWEEN ?1 AND ?2 ORDER BY id",
			s->schema),
		&st);
	if (rc != SQLITE_OK)
		return rc;
	sqlite3_bind_int64(st, 1, t->id[0] << PACKED_BLOCK_BITS);
	sqlite3_bind_int64(st, 2, (t->id[0] + 1) << PACKED_BLOCK_BITS);
	while (k < t->n_blocks && sqlite3_step(st) == SQLITE_ROW &&
	       !packedtable_set_range(t, k, sqlite3_column_int64(st, 0),
				      sqlite3_column_int64(st, 1)))
		k++;
	sqlite3_finalize(st);
	return k == t->n_blocks ? SQLITE_OK : SQLITE_CORRUPT;
}

/* All of it. The table's fetch and ctx are the caller's to set. To be closed (packedtable_close),
 * also where it failed. */
static inline int packed_open(const struct packed_source *s, const char *name,
			      struct packedtable *t,
			      void (*each)(void *ctx, int i, const char *column), void *ctx)
{
	int rc = packed_columns(s, name, t, each, ctx), opened;

	if (rc != SQLITE_OK)
		return rc;
	opened = packedtable_open(t);
	return opened ? (opened == -ENOMEM ? SQLITE_NOMEM : SQLITE_CORRUPT) : packed_ranges(s, t);
}

#endif
