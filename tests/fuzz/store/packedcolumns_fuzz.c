/* SPDX-License-Identifier: Apache-2.0 */
/*
 * covers: schema/store/packedcolumns.c schema/store/stackcolumns.c
 *
 * Any bytes are the columns of a table, asked for in any order, or are refused; stacks that were read are read again from what is
 * written of them. Without zlib's own sums in the way: the bytes are what columns inflate to.
 */
#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include "schema/store/packedcolumns.h"
#include "schema/store/stackcolumns.h"

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
	size_t size = next(in), n = 1;
	uLongf len;

	size = size < (size_t)(in->end - in->p) ? size : (size_t)(in->end - in->p);
	out[0] = form;
	n += put_length(out + 1, size);
	len = (uLongf)(room - n);
	if (compress2(out + n, &len, in->p, (uLong)size, 1) != Z_OK)
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
	else if (form != 6 && form != 9)
		*len = wrap(in, out, 1024);
}

static void again(const struct packedcolumns *p)
{
	const struct stackcolumns in = {p->c[1], p->c[2], p->c[3], p->c[4]};
	struct stackcolumns out;
	uint8_t *data;
	size_t len;

	if (!in.base.numbers || !in.keep.numbers || !in.leaf.numbers || !in.tail.text || stackcolumns_encode(&in, &data, &len))
		return;
	if (stackcolumns_decode(data, len, p->n_rows, &out) || memcmp(out.base.numbers, in.base.numbers, p->n_rows * 8) ||
	    memcmp(out.leaf.numbers, in.leaf.numbers, p->n_rows * 8) || memcmp(out.tail.text, in.tail.text, in.tail.at[p->n_rows]))
		abort();
	stackcolumns_release(&out);
	free(data);
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
	again(&p);
	packedcolumns_release(&p);
	return 0;
}
