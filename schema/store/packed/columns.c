/* SPDX-License-Identifier: Apache-2.0 */
/* Numbers in comments are the header's forms. */
#include "schema/store/packed/columns.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "schema/base/hash.h"
#include "schema/base/idmap.h"

#define HASH_BITS 0x7fffffff

enum form { HASHES = COLUMN_FORMS, DISTANCES, STACKS, OF_STACKS, NULLS, KEYED };
#define NULLS_HEAD 5 /* bytes: the form and a length */

/* --- reading --- */

struct bytes {
	uint8_t *p;
	size_t len;
};

static int fetch(const struct packedcolumns *p, int i, struct bytes *out)
{
	*out = (struct bytes){0};
	return i < 0 || i >= p->n ? -EBADMSG : p->fetch(p->ctx, i, &out->p, &out->len);
}

/* A column that others point to. */
static int need_plain(struct packedcolumns *p, int i)
{
	struct bytes b;
	int rc;

	if (i < p->n && p->c[i].n)
		return p->c[i].null ? -EBADMSG : 0;
	rc = fetch(p, i, &b);
	if (rc)
		return rc;
	rc = column_decode(b.p, b.len, p->n_rows, &p->c[i]);
	free(b.p);
	return rc;
}

static struct column numbers(size_t n)
{
	return (struct column){.n = n, .numbers = malloc((n + 1) * sizeof(int64_t))};
}

static int read_hashes(struct packedcolumns *p, int i, const struct bytes *b)
{
	const struct column *of;
	struct column out;
	int rc = b->len == 2 ? need_plain(p, b->p[1]) : -EBADMSG;

	if (rc)
		return rc;
	of = &p->c[b->p[1]];
	out = numbers(p->n_rows);
	if (!out.numbers || !of->text) {
		free(out.numbers);
		return of->text ? -ENOMEM : -EBADMSG;
	}
	for (size_t k = 0; k < p->n_rows; k++)
		out.numbers[k] = (int64_t)(hash_str(HASH_SEED, of->text + of->at[k]) & HASH_BITS);
	p->c[i] = out;
	return 0;
}

static int read_distances(struct packedcolumns *p, int i, const struct bytes *b)
{
	struct column out = {0};
	int rc = b->len > 2 && b->p[1] != i ? need_plain(p, b->p[1]) : -EBADMSG;

	if (!rc)
		rc = column_decode(b->p + 2, b->len - 2, p->n_rows, &out);
	if (!rc && (!out.numbers || !p->c[b->p[1]].numbers))
		rc = -EBADMSG;
	for (size_t k = 0; !rc && k < p->n_rows; k++)
		out.numbers[k] =
			(int64_t)((uint64_t)out.numbers[k] + (uint64_t)p->c[b->p[1]].numbers[k]);
	if (rc)
		column_release(&out);
	else
		p->c[i] = out;
	return rc;
}

/* Distances to the row before of the same key, into numbers or back. */
static void from_keyed(int64_t *x, const int64_t *key, size_t n)
{
	struct idmap last = {0};
	bool fresh;

	for (size_t k = 0; k < n; k++) {
		uint64_t *was = idmap_ref(&last, (uint64_t)key[k], &fresh);

		x[k] = (int64_t)((uint64_t)x[k] + *was);
		*was = (uint64_t)x[k];
	}
	idmap_release(&last);
}

static void to_keyed(const int64_t *x, const int64_t *key, size_t n, int64_t *out)
{
	struct idmap last = {0};
	bool fresh;

	for (size_t k = 0; k < n; k++) {
		uint64_t *was = idmap_ref(&last, (uint64_t)key[k], &fresh);

		out[k] = (int64_t)((uint64_t)x[k] - *was);
		*was = (uint64_t)x[k];
	}
	idmap_release(&last);
}

static int read_keyed(struct packedcolumns *p, int i, const struct bytes *b)
{
	struct column out = {0};
	int rc = b->len > 2 && b->p[1] != i ? need_plain(p, b->p[1]) : -EBADMSG;

	if (!rc)
		rc = column_decode(b->p + 2, b->len - 2, p->n_rows, &out);
	if (!rc && (!out.numbers || !p->c[b->p[1]].numbers))
		rc = -EBADMSG;
	if (rc) {
		column_release(&out);
		return rc;
	}
	from_keyed(out.numbers, p->c[b->p[1]].numbers, p->n_rows);
	p->c[i] = out;
	return 0;
}

/* One that is there already may be in use. */
static void take(struct packedcolumns *p, int i, struct column *from)
{
	if (p->c[i].n)
		return;
	p->c[i] = *from;
	*from = (struct column){0};
}

static int read_stacks(struct packedcolumns *p, int i, const struct bytes *b)
{
	struct stackcolumns s;
	int rc = i > 3 ? stack_columns_decode(b->p + 1, b->len - 1, p->n_rows, &s) : -EBADMSG;

	if (rc)
		return rc;
	take(p, i - 3, &s.base);
	take(p, i - 2, &s.keep);
	take(p, i - 1, &s.leaf);
	take(p, i, &s.tail);
	stack_columns_release(&s);
	return 0;
}

int packedcolumns_stacks(struct packedcolumns *p, int i, const struct stackcolumns_walk *w)
{
	struct bytes b;
	int rc = fetch(p, i, &b);

	if (rc)
		return rc;
	rc = i > 3 && b.len && b.p[0] == STACKS ?
		     stack_columns_walk(b.p + 1, b.len - 1, p->n_rows, w) :
		     -ENOTSUP;
	free(b.p);
	return rc;
}

int packedcolumns_lists(struct packedcolumns *p, int i, struct column_cursor *out)
{
	struct bytes b;
	int rc = fetch(p, i, &b);

	if (rc)
		return rc;
	rc = b.len && b.p[0] == COLUMN_LISTS ? column_cursor_open(b.p, b.len, p->n_rows, out) :
					       -ENOTSUP;
	free(b.p);
	return rc;
}

static int read_of_stacks(struct packedcolumns *p, int i, const struct bytes *b)
{
	int from = b->len == 2 ? b->p[1] : -1, rc;
	struct bytes stacks;

	if (i >= from || i < from - 3)
		return -EBADMSG;
	rc = fetch(p, from, &stacks);
	if (!rc)
		rc = stacks.len && stacks.p[0] == STACKS ? read_stacks(p, from, &stacks) : -EBADMSG;
	free(stacks.p);
	return rc;
}

static int read_nulls(struct packedcolumns *p, int i, const struct bytes *b)
{
	struct column flags = {0}, c = {0};
	size_t len;
	int rc;

	if (b->len < NULLS_HEAD)
		return -EBADMSG;
	len = (size_t)b->p[1] | (size_t)b->p[2] << 8 | (size_t)b->p[3] << 16 |
	      (size_t)b->p[4] << 24;
	rc = len > b->len - NULLS_HEAD ? -EBADMSG :
					 column_decode(b->p + NULLS_HEAD, len, p->n_rows, &flags);
	if (!rc)
		rc = flags.numbers ? column_decode(b->p + NULLS_HEAD + len,
						   b->len - NULLS_HEAD - len, p->n_rows, &c) :
				     -EBADMSG;
	if (!rc) {
		c.null = malloc(p->n_rows + 1);
		rc = c.null ? 0 : -ENOMEM;
	}
	for (size_t k = 0; !rc && k < p->n_rows; k++)
		c.null[k] = flags.numbers[k] != 0;
	column_release(&flags);
	if (rc)
		column_release(&c);
	else
		p->c[i] = c;
	return rc;
}

int packedcolumns_need(struct packedcolumns *p, int i)
{
	struct bytes b;
	int rc;

	if (i < p->n && p->c[i].n)
		return 0;
	rc = fetch(p, i, &b);
	if (rc)
		return rc;
	switch (b.len ? b.p[0] : 0) {
	case HASHES:
		rc = read_hashes(p, i, &b);
		break;
	case DISTANCES:
		rc = read_distances(p, i, &b);
		break;
	case STACKS:
		rc = read_stacks(p, i, &b);
		break;
	case OF_STACKS:
		rc = read_of_stacks(p, i, &b);
		break;
	case NULLS:
		rc = read_nulls(p, i, &b);
		break;
	case KEYED:
		rc = read_keyed(p, i, &b);
		break;
	default:
		rc = column_decode(b.p, b.len, p->n_rows, &p->c[i]);
	}
	free(b.p);
	return rc ? rc : p->c[i].n ? 0 : -EBADMSG;
}

int packedcolumns_need_as(struct packedcolumns *p, int i, bool numbers)
{
	const struct column *c = &p->c[i];
	int rc = packedcolumns_need(p, i);

	if (rc)
		return rc;
	if (numbers != (c->numbers != NULL))
		return -EBADMSG;
	for (size_t k = 1; !i && k < p->n_rows; k++)
		if (!c->numbers || c->null || c->numbers[k] < c->numbers[k - 1])
			return -EBADMSG;
	return 0;
}

void packedcolumns_release(struct packedcolumns *p)
{
	for (int i = 0; i < PACKEDCOLUMNS_MAX; i++)
		column_release(&p->c[i]);
}

/* --- writing --- */

static bool is_hash_of(const struct column *c, const struct column *of)
{
	for (size_t k = 0; k < c->n; k++)
		if (c->numbers[k] !=
		    (int64_t)(hash_str(HASH_SEED, of->text + of->at[k]) & HASH_BITS))
			return false;
	return true;
}

static int put(uint8_t form, int of, const struct bytes *behind, uint8_t **out, size_t *len)
{
	uint8_t *p = malloc(2 + behind->len);

	if (!p)
		return -ENOMEM;
	p[0] = form;
	p[1] = (uint8_t)of;
	if (behind->len)
		memcpy(p + 2, behind->p, behind->len);
	*out = p;
	*len = 2 + behind->len;
	return 0;
}

static int encode_distances(const struct column *c, const struct column *from, int of,
			    uint8_t **out, size_t *len)
{
	struct column distances = numbers(c->n);
	struct bytes b = {0};
	int rc = distances.numbers ? 0 : -ENOMEM;

	for (size_t k = 0; !rc && k < c->n; k++)
		distances.numbers[k] =
			(int64_t)((uint64_t)c->numbers[k] - (uint64_t)from->numbers[k]);
	if (!rc)
		rc = column_encode(&distances, &b.p, &b.len);
	if (!rc)
		rc = put(DISTANCES, of, &b, out, len);
	column_release(&distances);
	free(b.p);
	return rc;
}

static int encode_nulls(const struct column *c, uint8_t **out, size_t *len)
{
	struct column flags = numbers(c->n), plain = *c;
	struct bytes of_flags = {0}, of_plain = {0};
	int rc = flags.numbers ? 0 : -ENOMEM;

	plain.null = NULL;
	for (size_t k = 0; !rc && k < c->n; k++)
		flags.numbers[k] = c->null[k];
	if (!rc)
		rc = column_encode(&flags, &of_flags.p, &of_flags.len);
	if (!rc)
		rc = column_encode(&plain, &of_plain.p, &of_plain.len);
	if (!rc) {
		*len = NULLS_HEAD + of_flags.len + of_plain.len;
		*out = malloc(*len);
		rc = *out ? 0 : -ENOMEM;
	}
	if (!rc) {
		(*out)[0] = NULLS;
		for (int k = 0; k < 4; k++)
			(*out)[1 + k] = (uint8_t)(of_flags.len >> 8 * k);
		memcpy(*out + NULLS_HEAD, of_flags.p, of_flags.len);
		memcpy(*out + NULLS_HEAD + of_flags.len, of_plain.p, of_plain.len);
	}
	column_release(&flags);
	free(of_flags.p);
	free(of_plain.p);
	return rc;
}

int packedcolumns_encode(const struct column *c, int i, int of, uint8_t **out, size_t *len)
{
	const struct column *it = &c[i];
	uint8_t *other = NULL;
	size_t other_len = 0;
	int rc;

	if (it->null)
		return encode_nulls(it, out, len);
	if (of >= 0 && c[of].null)
		of = -1;
	if (of >= 0 && it->numbers && c[of].text && is_hash_of(it, &c[of]))
		return put(HASHES, of, &(struct bytes){0}, out, len);
	rc = column_encode(it, out, len);
	if (rc || of < 0 || !it->numbers || !c[of].numbers ||
	    encode_distances(it, &c[of], of, &other, &other_len))
		return rc;
	if (other_len < *len) {
		free(*out);
		*out = other;
		*len = other_len;
		return 0;
	}
	free(other);
	return 0;
}

static int encode_keyed(const struct column *c, const struct column *key, int of, uint8_t **out,
			size_t *len)
{
	struct column distances = numbers(c->n);
	struct bytes b = {0};
	int rc = distances.numbers ? 0 : -ENOMEM;

	if (!rc) {
		to_keyed(c->numbers, key->numbers, c->n, distances.numbers);
		rc = column_encode(&distances, &b.p, &b.len);
	}
	if (!rc)
		rc = put(KEYED, of, &b, out, len);
	column_release(&distances);
	free(b.p);
	return rc;
}

int packedcolumns_encode_keyed(const struct column *c, int i, int key, uint8_t **out, size_t *len)
{
	uint8_t *other = NULL;
	size_t other_len = 0;
	int rc = packedcolumns_encode(c, i, -1, out, len);

	if (rc || !c[i].numbers || c[i].null || !c[key].numbers || c[key].null ||
	    encode_keyed(&c[i], &c[key], key, &other, &other_len))
		return rc;
	if (other_len < *len) {
		free(*out);
		*out = other;
		*len = other_len;
		return 0;
	}
	free(other);
	return 0;
}

int packedcolumns_encode_stacks(const struct column *c, int first, uint8_t *out[4], size_t len[4])
{
	const struct stackcolumns s = {
		.base = c[first], .keep = c[first + 1], .leaf = c[first + 2], .tail = c[first + 3]};
	struct bytes b = {0};
	int rc = stack_columns_encode(&s, &b.p, &b.len);

	for (int k = 0; !rc && k < 3; k++)
		rc = put(OF_STACKS, first + 3, &(struct bytes){0}, &out[k], &len[k]);
	if (!rc) {
		out[3] = malloc(1 + b.len);
		rc = out[3] ? 0 : -ENOMEM;
	}
	if (!rc) {
		out[3][0] = STACKS;
		memcpy(out[3] + 1, b.p, b.len);
		len[3] = 1 + b.len;
	}
	free(b.p);
	return rc;
}
