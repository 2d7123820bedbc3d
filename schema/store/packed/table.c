/* SPDX-License-Identifier: Apache-2.0 */
/* Numbers in comments are the header's rules. */
#include "schema/store/packed/table.h"

#include <errno.h>
#include <stdlib.h>

struct packedtable_block {
	struct packedtable *t;
	size_t number;
	struct packedcolumns columns;
	bool known[PACKEDCOLUMNS_MAX]; /* decoded, and what the table declares: one that another
					  column points to may be neither */
};

int packedtable_open(struct packedtable *t)
{
	if (t->n < 1 || t->n > PACKEDCOLUMNS_MAX || !t->is_number[0] || t->n_rows > COLUMN_MAX)
		return -EBADMSG;
	if (!t->n_rows)
		return 0;
	if (!t->block_rows)
		t->block_rows = t->n_rows;
	t->n_blocks = (t->n_rows - 1) / t->block_rows + 1;
	if (t->n_blocks > PACKEDTABLE_BLOCKS_MAX)
		return -EBADMSG;
	t->block = calloc(t->n_blocks, sizeof(*t->block));
	t->range = t->n_blocks > 1 ? calloc(t->n_blocks, sizeof(*t->range)) : NULL;
	return !t->block || (t->n_blocks > 1 && !t->range) ? -ENOMEM : 0;
}

int packedtable_set_range(struct packedtable *t, size_t k, int64_t first, int64_t last)
{
	if (k >= t->n_blocks || !t->range || last < first || (k && first < t->range[k - 1].last))
		return -EBADMSG;
	t->range[k] = (struct packedtable_range){first, last};
	return 0;
}

void packedtable_release(struct packedtable *t, size_t block)
{
	if (!t->block || !t->block[block])
		return;
	packedcolumns_release(&t->block[block]->columns);
	free(t->block[block]);
	t->block[block] = NULL;
}

void packedtable_close(struct packedtable *t)
{
	for (size_t k = 0; t->block && k < t->n_blocks; k++)
		packedtable_release(t, k);
	free(t->block);
	free(t->range);
	t->block = NULL;
	t->range = NULL;
}

/* packed/columns.h's */
static int fetch(void *ctx, int i, uint8_t **data, size_t *len)
{
	struct packedtable_block *b = ctx;

	return b->t->fetch(b->t->ctx, i, b->number, data, len);
}

static struct packedtable_block *block_of(struct packedtable *t, size_t number)
{
	struct packedtable_block *b = t->block[number];

	if (b)
		return b;
	b = calloc(1, sizeof(*b));
	if (!b)
		return NULL;
	b->t = t;
	b->number = number;
	b->columns = (struct packedcolumns){
		.n_rows = packedtable_rows_of(t, number), .n = t->n, .fetch = fetch, .ctx = b};
	t->block[number] = b;
	return b;
}

int packedtable_column(struct packedtable *t, int i, size_t block, const struct column **out)
{
	struct packedtable_block *b = block_of(t, block);
	const struct column *c = b ? &b->columns.c[i] : NULL;
	int rc;

	if (!b)
		return -ENOMEM;
	if (!b->known[i]) {
		rc = packedcolumns_need_as(&b->columns, i, t->is_number[i]);
		if (rc)
			return rc;
		if (!i && t->range &&
		    (c->numbers[0] != t->range[block].first ||
		     c->numbers[c->n - 1] != t->range[block].last))
			return -EBADMSG;
		b->known[i] = true;
	}
	*out = c;
	return 0;
}

int packedtable_stacks(struct packedtable *t, int i, const struct stackcolumns_walk *w)
{
	struct packedtable_block *b;

	if (t->n_blocks != 1)
		return -ENOTSUP;
	b = block_of(t, 0);
	return b ? packedcolumns_stacks(&b->columns, i, w) : -ENOMEM;
}

int packedtable_lists(struct packedtable *t, int i, struct column_cursor *out)
{
	struct packedtable_block *b;

	if (t->n_blocks != 1)
		return -ENOTSUP;
	b = block_of(t, 0);
	return b ? packedcolumns_lists(&b->columns, i, out) : -ENOMEM;
}

size_t packedtable_block_of(const struct packedtable *t, int64_t v)
{
	size_t low = 0, high = t->n_blocks;

	if (!t->range)
		return 0;
	while (low < high) {
		size_t mid = low + (high - low) / 2;

		if (t->range[mid].last < v)
			low = mid + 1;
		else
			high = mid;
	}
	return low;
}
