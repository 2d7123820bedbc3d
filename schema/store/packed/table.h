/* SPDX-License-Identifier: Apache-2.0 */
/*
 * table: one packed table (schema/sql/0025-archives.sql): its rows in blocks, each block's columns
 * by themselves (packed/columns.h), so that a query for a time range decodes only the blocks of
 * that range.
 *
 *   1. All blocks have block_rows rows but the last one, which has what is left, at least one.
 *      Where block_rows is 0 there is one.
 *   2. Rows are in the order of column 0, which is numbers. Where there are several blocks, each
 *      says its first and last one.
 * Pure: bytes come from `fetch`.
 */
#ifndef SONDE_STORE_PACKED_TABLE_H
#define SONDE_STORE_PACKED_TABLE_H

#include "schema/store/packed/columns.h"

#define PACKEDTABLE_BLOCKS_MAX (1u << 20)

struct packedtable_range {
	int64_t first, last;
};
struct packedtable_block;

struct packedtable {
	size_t n_rows, block_rows; /* block_rows > 0 once it is open */
	size_t n_blocks;
	int n; /* columns */
	bool is_number[PACKEDCOLUMNS_MAX];
	int64_t id[PACKEDCOLUMNS_MAX];    /* packed_column.id */
	struct packedtable_range *range;  /* by block; NULL: there is one */
	struct packedtable_block **block; /* by number; NULL: nothing of it is decoded */
	/* The bytes of column i in that block, to be freed. 0 or -errno, -ENOENT where there is
	 * none. */
	int (*fetch)(void *ctx, int i, size_t block, uint8_t **data, size_t *len);
	void *ctx;
};

/* Once n_rows, block_rows, n, is_number, fetch and ctx are there. -EBADMSG: these are no numbers of
 * a table; -ENOMEM. */
int packedtable_open(struct packedtable *t);
/* What block k of several says of column 0: in order, from 0 on. -EBADMSG where it cannot be. */
int packedtable_set_range(struct packedtable *t, size_t k, int64_t first, int64_t last);
void packedtable_close(struct packedtable *t);

static inline size_t packedtable_first_row(const struct packedtable *t, size_t block)
{
	return block * t->block_rows;
}
static inline size_t packedtable_rows_of(const struct packedtable *t, size_t block)
{
	return block + 1 < t->n_blocks ? t->block_rows : t->n_rows - block * t->block_rows;
}

/* Column i of a block, borrowed until the block is released. -EBADMSG: it is damaged, or not what
 * the table declares; -ENOTSUP: a newer program wrote it; -ENOMEM; what `fetch` says. */
int packedtable_column(struct packedtable *t, int i, size_t block, const struct column **out);
/* packedcolumns_stacks, of a table in one block; -ENOTSUP also of others. */
int packedtable_stacks(struct packedtable *t, int i, const struct stackcolumns_walk *w);
/* packedcolumns_lists, in the same way. */
int packedtable_lists(struct packedtable *t, int i, struct column_cursor *out);
/* Forgets what was decoded of it. */
void packedtable_release(struct packedtable *t, size_t block);
/* The first block that may have a row whose column 0 is at least v; n_blocks: none has. */
size_t packedtable_block_of(const struct packedtable *t, int64_t v);

#endif
