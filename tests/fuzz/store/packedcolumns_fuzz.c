/* SPDX-License-Identifier: Apache-2.0 */
/*
 * covers: schema/store/packed/columns.c schema/store/packed/stack_columns.c
 *
 * Any bytes are the columns of a table, asked for in any order, or are refused; what was read is
 * read again from what is written of it, each column told by another one, and stacks together.
 * Without the frames' own sums in the way: the bytes are what columns inflate to.
 */
#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <zstd.h>

#include "schema/store/packed/columns.h"
#include "schema/store/packed/stack_columns.h"

#define COLUMNS 6
#define PARTS   3

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct input {
	const uint8_t *p, *end;
};

static uint8_t next(struct input *in)
{
	return in->p < in->end ? *in->p++ : 0;
}

static size_t put_length(uint8_t *out, size_t v)
{
	size_t n = 0;

	for (; v > 127; v >>= 7)
		out[n++] = (uint8_t)(v | 128);
	out[n++] = (uint8_t)v;
	return n;
}

/* A column as rule 1 of column.h has it, of the next bytes. */
static size_t wrap(struct input *in, uint8_t *out, size_t room)
{
	uint8_t form = (uint8_t)(next(in) % 6);
	size_t size = next(in), n = 1, len;

	size = size < (size_t)(in->end - in->p) ? size : (size_t)(in->end - in->p);
	out[0] = form;
	n += put_length(out + 1, size);
	len = ZSTD_compress(out + n, room - n, in->p, size, 1);
	if (ZSTD_isError(len))
		return 0;
	in->p += size;
	return n + len;
}

struct table {
	uint8_t data[COLUMNS][4096];
	size_t len[COLUMNS];
};

static int fetch(void *ctx, int i, uint8_t **data, size_t *len)
{
	const struct table *t = ctx;

	*len = t->len[i];
	*data = malloc(*len + 1);
	if (!*data)
		return -ENOMEM;
	memcpy(*data, t->data[i], *len);
	return 0;
}

static size_t make_stacks(struct input *in, uint8_t *out)
{
	size_t n = 0;

	for (int k = 0; k < PARTS; k++) {
		uint8_t part[1024];
		size_t len = wrap(in, part, sizeof(part));

		n += put_length(out + n, len);
		memcpy(out + n, part, len);
		n += len;
	}
	return n;
}

static size_t make_nulls(struct input *in, uint8_t *out)
{
	size_t flags = wrap(in, out + 5, 1024);

	for (int k = 0; k < 4; k++)
		out[1 + k] = (uint8_t)(flags >> 8 * k);
	return 5 + flags + wrap(in, out + 5 + flags, 1024);
}

static void make_column(struct input *in, uint8_t *out, size_t *len)
{
	uint8_t form = next(in);

	*len = 2;
	out[0] = form;
	out[1] = form < 6 || form == 8 ? 0 : next(in);
	if (form == 7)
		*len += wrap(in, out + 2, 1024);
	else if (form == 8)
		*len = 1 + make_stacks(in, out + 1);
	else if (form == 10)
		*len = make_nulls(in, out);
	else if (form != 6 && form != 9)
		*len = wrap(in, out, 1024);
}

/* ---- and again ---- */

struct written {
	uint8_t *data[COLUMNS];
	size_t len[COLUMNS];
};

static int fetch_written(void *ctx, int i, uint8_t **data, size_t *len)
{
	const struct written *w = ctx;

	*len = w->len[i];
	*data = malloc(*len + 1);
	if (!*data)
		return -ENOMEM;
	if (*len)
		memcpy(*data, w->data[i], *len);
	return 0;
}

static void must_be(const struct column *a, const struct column *b)
{
	if (a->n != b->n || !a->numbers != !b->numbers || !a->text != !b->text)
		abort();
	if (a->numbers && memcmp(a->numbers, b->numbers, a->n * sizeof(*a->numbers)))
		abort();
	if (!a->null != !b->null || (a->null && memcmp(a->null, b->null, a->n)))
		abort();
	for (size_t k = 0; a->text && k < a->n; k++)
		if (strcmp(a->text + a->at[k], b->text + b->at[k]) != 0)
			abort();
}

static void read_written(const struct packedcolumns *p, struct written *w, int first, int last)
{
	struct packedcolumns q = {
		.n = COLUMNS, .n_rows = p->n_rows, .fetch = fetch_written, .ctx = w};

	for (int i = first; i <= last; i++) {
		if (packedcolumns_need(&q, i))
			abort();
		must_be(&p->c[i], &q.c[i]);
	}
	packedcolumns_release(&q);
	for (int i = 0; i < COLUMNS; i++)
		free(w->data[i]);
}

/* One column told by another one, if it is there. */
static void column_again(const struct packedcolumns *p, int i, int of)
{
	struct written w = {0};

	if (!p->c[of].n || of == i)
		of = -1;
	if (packedcolumns_encode(p->c, i, of, &w.data[i], &w.len[i]))
		return;
	if (of >= 0 && packedcolumns_encode(p->c, of, -1, &w.data[of], &w.len[of]))
		abort();
	read_written(p, &w, i, i);
}

static void stacks_again(const struct packedcolumns *p)
{
	struct written w = {0};

	if (!p->c[1].numbers || !p->c[2].numbers || !p->c[3].numbers || !p->c[4].text ||
	    packedcolumns_encode_stacks(p->c, 1, w.data + 1, w.len + 1))
		return;
	read_written(p, &w, 1, 4);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct table t;
	struct packedcolumns p = {.n = COLUMNS, .fetch = fetch, .ctx = &t};
	struct input in = {data, data + size};
	unsigned int order = next(&in);

	p.n_rows = 1u + next(&in) % 16;
	for (int i = 0; i < COLUMNS; i++)
		make_column(&in, t.data[i], &t.len[i]);
	for (int i = 0; i < COLUMNS; i++)
		packedcolumns_need(&p, (int)((i * (1 + order % 5) + order) % COLUMNS));
	for (int i = 0; i < COLUMNS; i++)
		if (p.c[i].n)
			column_again(&p, i, (int)((i + 1 + order) % COLUMNS));
	stacks_again(&p);
	packedcolumns_release(&p);
	return 0;
}
