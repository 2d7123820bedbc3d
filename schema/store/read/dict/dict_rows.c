/* SPDX-License-Identifier: Apache-2.0 */
#include "schema/store/read/dict/dict_rows.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "schema/base/mem.h"
#include "schema/base/strbuf.h"
#include "schema/store/model/sql.h"
#include "schema/store/packed/read.h"

#define CHUNK (64 * 1024)

struct strings {
	struct strings *next;
	size_t used, size;
	char data[];
};

const char *dict_rows_keep(struct strings **list, const char *s, size_t len)
{
	struct strings *c = *list;
	char *copy;

	if (!len)
		return "";
	if (!c || c->size - c->used < len + 1) {
		size_t size = len + 1 > CHUNK ? len + 1 : CHUNK;

		c = mem_alloc(sizeof(*c) + size);
		c->size = size;
		c->next = *list;
		*list = c;
	}
	copy = c->data + c->used;
	memcpy(copy, s, len);
	copy[len] = '\0';
	c->used += len + 1;
	return copy;
}

struct dict_row {
	sqlite3_stmt *st; /* NULL: it is packed */
	const struct packedread *packed;
	size_t at;
};

int64_t dict_rows_int(const struct dict_row *r, int col)
{
	return r->st ? sqlite3_column_int64(r->st, col) : packedread_number(r->packed, col, r->at);
}

const char *dict_rows_raw(const struct dict_row *r, int col)
{
	const char *v = r->st ? (const char *)sqlite3_column_text(r->st, col) :
				packedread_text(r->packed, col, r->at);

	return v ? v : "";
}

const char *dict_rows_text(struct store_segment *s, const struct dict_row *r, int col)
{
	const char *v = dict_rows_raw(r, col);

	return dict_rows_keep(&s->strings, v, strlen(v));
}

uint32_t dict_rows_u32(const struct dict_row *r, int col)
{
	int64_t v = dict_rows_int(r, col);

	return v < 0 || v > UINT32_MAX ? 0 : (uint32_t)v;
}

uint32_t dict_rows_id(const struct dict_row *r, int col, size_t n)
{
	uint32_t v = dict_rows_u32(r, col);

	return v < n ? v : 0;
}

#define PACKED_MOST 16 /* rows to a byte of a packed table */

/* Room for all ids of a table. A row takes more than a byte: an id beyond the file's size is a lie,
 * but for what is packed. */
int dict_rows_slots(struct store_segment *s, const char *sql, size_t *n, struct err *e)
{
	int64_t max = sql_number(s->db, sql, 0);
	int64_t limit = sql_number(s->db, "PRAGMA page_count", 0) *
			sql_number(s->db, "PRAGMA page_size", 0);

	if (max > limit && max <= sql_number(s->db, "SELECT max(rows) FROM packed_table", 0))
		limit *= PACKED_MOST;
	if (max < 0 || max > limit || max >= UINT32_MAX)
		return err_set(e, -EBADMSG, EXIT_STORE,
			       "the store's segment %s is damaged: ids out of range", s->path);
	*n = (size_t)max + 1;
	return 0;
}

/* As packedtable_column. */
static int each_packed(struct store_segment *s, struct packedread *packed, size_t n,
		       dict_rows_row *row, void *ctx)
{
	int rc = 0;

	for (size_t block = 0; !rc && block < packed->t.n_blocks; block++) {
		struct dict_row r = {.packed = packed};

		rc = packedread_block(packed, block);
		for (; !rc && r.at < packedtable_rows_of(&packed->t, block); r.at++) {
			uint32_t id = dict_rows_id(&r, 0, n);

			if (id)
				row(s, &r, id, ctx);
		}
		packedtable_release(&packed->t, block);
	}
	return rc;
}

int dict_rows_bound(struct store_segment *s, const char *sql, int64_t a, int64_t b, size_t n,
		    dict_rows_row *row, void *ctx, struct err *e)
{
	struct dict_row r = {.st = reading_prepare(s, sql, e)};
	int rc;

	if (!r.st)
		return e && e->code ? e->code : -EIO;
	sqlite3_bind_int64(r.st, 1, a); /* of no use to one that has none */
	sqlite3_bind_int64(r.st, 2, b);
	while ((rc = sqlite3_step(r.st)) == SQLITE_ROW) {
		uint32_t id = dict_rows_id(&r, 0, n);

		if (id)
			row(s, &r, id, ctx);
	}
	return reading_finish(s, r.st, rc, e);
}

int dict_rows_each(struct store_segment *s, const char *columns, const char *table, size_t n,
		   dict_rows_row *row, void *ctx, struct err *e)
{
	cleanup_strbuf struct strbuf sql = STRBUF_INIT;
	struct packedread packed;
	int rc;

	if (packedread_open(&packed, s->db, table, columns)) {
		rc = each_packed(s, &packed, n, row, ctx);
		packedread_release(&packed);
		if (!rc)
			return 0;
	} /* what is wrong with it SQLite says better */
	strbuf_addf(&sql, "SELECT %s FROM %s", columns, table);
	return dict_rows_bound(s, strbuf_str(&sql), 0, 0, n, row, ctx, e);
}

int dict_one_open(struct store_segment *s, struct dict_one *o, const char *sql, struct err *e)
{
	o->st = reading_prepare(s, sql, e);
	return o->st ? 0 : e && e->code ? e->code : -EIO;
}

int dict_one_row(struct store_segment *s, struct dict_one *o, uint32_t id, dict_rows_row *row,
		 void *ctx, struct err *e)
{
	struct dict_row r = {.st = o->st};
	int rc;

	sqlite3_bind_int64(o->st, 1, id);
	rc = sqlite3_step(o->st);
	if (rc == SQLITE_ROW)
		row(s, &r, id, ctx);
	sqlite3_reset(o->st);
	if (rc == SQLITE_ROW || rc == SQLITE_DONE)
		return 0;
	rc = reading_finish(s, o->st, rc, e);
	o->st = NULL;
	return rc;
}

void dict_one_close(struct dict_one *o)
{
	sqlite3_finalize(o->st);
	o->st = NULL;
}

void dict_rows_strings_move(struct strings **to, struct strings **from)
{
	struct strings *last = *from;

	if (!last)
		return;
	while (last->next)
		last = last->next;
	last->next = *to;
	*to = *from;
	*from = NULL;
}

void dict_rows_strings_free(struct strings **list)
{
	while (*list) {
		struct strings *next = (*list)->next;

		free(*list);
		*list = next;
	}
}
