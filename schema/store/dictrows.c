/* SPDX-License-Identifier: Apache-2.0 */
/* dictrows: see the header. */
#include "schema/store/dictrows.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "schema/base/mem.h"

#define CHUNK (64 * 1024)

struct strings {
	struct strings *next;
	size_t used, size;
	char data[];
};

const char *dictrows_keep(struct strings **list, const char *s, size_t len)
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

const char *dictrows_text(struct store_segment *s, sqlite3_stmt *st, int col)
{
	const char *v = (const char *)sqlite3_column_text(st, col);

	return v ? dictrows_keep(&s->strings, v, strlen(v)) : "";
}

uint32_t dictrows_u32(sqlite3_stmt *st, int col)
{
	sqlite3_int64 v = sqlite3_column_int64(st, col);

	return v < 0 || v > UINT32_MAX ? 0 : (uint32_t)v;
}

/* An id of a table with `n` slots; 0 if it is not. */
uint32_t dictrows_id(sqlite3_stmt *st, int col, size_t n)
{
	uint32_t v = dictrows_u32(st, col);

	return v < n ? v : 0;
}

#define PACKED_MOST 16 /* rows to a byte of a packed table */

/* Room for all ids of a table. A row takes more than a byte: an id beyond the file's size is a lie, but for what is packed. */
int dictrows_slots(struct store_segment *s, const char *sql, size_t *n, struct err *e)
{
	int64_t max = reading_number(s->db, sql, 0);
	int64_t limit = reading_number(s->db, "PRAGMA page_count", 0) * reading_number(s->db, "PRAGMA page_size", 0);

	if (max > limit && max <= reading_number(s->db, "SELECT max(rows) FROM packed_table", 0))
		limit *= PACKED_MOST;
	if (max < 0 || max > limit || max >= UINT32_MAX)
		return err_set(e, -EBADMSG, EXIT_STORE, "the store's segment %s is damaged: ids out of range", s->path);
	*n = (size_t)max + 1;
	return 0;
}

/* One table: `sql` gives id first; row(s, st, id, ctx) for each id in range. */
int dictrows_each(struct store_segment *s, const char *sql, size_t n,
		    void (*row)(struct store_segment *, sqlite3_stmt *, uint32_t id, void *ctx), void *ctx,
		    struct err *e)
{
	sqlite3_stmt *st = reading_prepare(s, sql, e);
	int rc;

	if (!st)
		return e && e->code ? e->code : -EIO;
	while ((rc = sqlite3_step(st)) == SQLITE_ROW) {
		uint32_t id = dictrows_id(st, 0, n);

		if (id)
			row(s, st, id, ctx);
	}
	return reading_finish(s, st, rc, e);
}

void dictrows_strings_move(struct strings **to, struct strings **from)
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

void dictrows_strings_free(struct strings **list)
{
	while (*list) {
		struct strings *next = (*list)->next;

		free(*list);
		*list = next;
	}
}
