/* SPDX-License-Identifier: Apache-2.0 */
/*
 * columns: the columns of one packed table (schema/sql/0025-archives.sql), each from its bytes.
 * Most are self-contained (column.h); some are stored relative to another column. Byte 0 is the
 * form:
 *
 *   6. Hashes of texts: then the number of the column that has the texts, all but 31 bits of
 *      hash_str cut off.
 *   7. Numbers as distances to another column's of the same row: then that one's number, then a
 *      column of numbers.
 *   8. Column `tail` of stacks, which comes after base, keep and leaf: then what stack_columns.h
 *      specifies.
 *   9. What a column of form 8 has of this one: then that one's number.
 *  10. A column of which some values are NULL: then four bytes, the lowest first, how long what
 *      follows them is: a column of numbers, 1 where it is NULL, else 0; then the column, with 0
 *      or '' there.
 *  11. Numbers as distances to what the row before had that has the same number in another column
 *      (the first of each: to 0): then that one's number, then a column of numbers. For tables in
 *      order of time, whose rows are of many things.
 * The number of a column is one byte. In forms 6, 7 and 11 the column that it points to is
 * self-contained. Column 0 is of form 6 or 7, or self-contained.
 */
#ifndef SONDE_STORE_PACKED_COLUMNS_H
#define SONDE_STORE_PACKED_COLUMNS_H

#include "schema/store/packed/column.h"
#include "schema/store/packed/stack_columns.h"

#define PACKEDCOLUMNS_MAX 64

struct packedcolumns {
	size_t n_rows;
	int n;
	struct column c[PACKEDCOLUMNS_MAX]; /* n 0: not read yet */
	/* The bytes of column i, to be freed. 0 or -errno, -ENOENT: no such column. */
	int (*fetch)(void *ctx, int i, uint8_t **data, size_t *len);
	void *ctx;
};

/* Column i is there after it. -EBADMSG: it is damaged; -ENOTSUP: a newer program wrote it; -ENOMEM;
 * what `fetch` says. */
int packedcolumns_need(struct packedcolumns *p, int i);
/* The same of what the table declares as numbers, or as texts; of column 0 that it goes upwards,
 * for rows are found by it. */
int packedcolumns_need_as(struct packedcolumns *p, int i, bool numbers);
/* The stacks of column `tail`, which is number i, in form 8 (stack_columns_walk). -ENOTSUP: it has
 * another form; `w` was not called. */
int packedcolumns_stacks(struct packedcolumns *p, int i, const struct stackcolumns_walk *w);
/* A cursor over the lists of column i (column_cursor_list), to be closed if 0. -ENOTSUP: it has
 * another form. */
int packedcolumns_lists(struct packedcolumns *p, int i, struct column_cursor *out);
void packedcolumns_release(struct packedcolumns *p);

/* The bytes of column `i`: by itself, or by column `of` where that is less; -1: none. *out is the
 * caller's. As column_encode. */
int packedcolumns_encode(const struct column *c, int i, int of, uint8_t **out, size_t *len);
/* The bytes of column `i`: by itself, or in form 11 by column `key` where that is less. */
int packedcolumns_encode_keyed(const struct column *c, int i, int key, uint8_t **out, size_t *len);
/* Those of four columns from `first` on, base to tail: 0, and for each its bytes; -EINVAL: they
 * have no such form. */
int packedcolumns_encode_stacks(const struct column *c, int first, uint8_t *out[4], size_t len[4]);

#endif
