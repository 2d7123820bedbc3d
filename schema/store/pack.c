/* SPDX-License-Identifier: Apache-2.0 */
/* pack: see the header. Pure functions over bytes; the numbers of the rules are those of the header. */
#include "schema/store/pack.h"

#include <errno.h>
#include <stdbool.h>

#define FORM 1
#define VARINT_MAX 10

static size_t put_varint(uint8_t *p, uint64_t v)
{
	size_t n = 0;

	for (; v >= 0x80; v >>= 7)
		p[n++] = (uint8_t)(v | 0x80);
	p[n++] = (uint8_t)v;
	return n;
}

static bool rows_in_order(const struct sample_row *rows, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		const struct sample_row *r = &rows[i];

		if (!r->series || !r->n || r->n > INT64_MAX || r->ts <= -PACK_TS_MAX || r->ts >= PACK_TS_MAX)
			return false;
		if (i && (r->ts < r[-1].ts || (r->ts == r[-1].ts && r->series <= r[-1].series)))
			return false;
	}
	return n > 0;
}

static size_t bucket_rows(const struct sample_row *rows, size_t n)
{
	size_t i = 1;

	while (i < n && rows[i].ts == rows[0].ts)
		i++;
	return i;
}

static void put_bucket(const struct sample_row *rows, size_t n, int64_t before, struct strbuf *out)
{
	uint8_t bytes[2 * VARINT_MAX];
	uint32_t previous = 0;
	size_t len = put_varint(bytes, (uint64_t)(rows[0].ts - before));

	len += put_varint(bytes + len, n);
	strbuf_add(out, (const char *)bytes, len);
	for (size_t i = 0; i < n; i++) {
		bool many = rows[i].n > 1;

		len = put_varint(bytes, (uint64_t)(rows[i].series - previous - 1) << 1 | many);
		if (many)
			len += put_varint(bytes + len, rows[i].n - 2);
		strbuf_add(out, (const char *)bytes, len);
		previous = rows[i].series;
	}
}

int pack_encode(const struct sample_row *rows, size_t n, struct strbuf *out)
{
	int64_t before;

	if (!rows_in_order(rows, n))
		return -EINVAL;
	before = rows[0].ts;
	strbuf_addch(out, FORM);
	while (n) {
		size_t k = bucket_rows(rows, n);

		put_bucket(rows, k, before, out);
		before = rows[0].ts;
		rows += k;
		n -= k;
	}
	return 0;
}

/* Rule 4; false past the end, or where it is none. */
static inline bool get_varint(struct pack_reader *r, uint64_t *out)
{
	uint64_t v = 0;

	for (unsigned int shift = 0; r->pos < r->len && shift < 7 * VARINT_MAX; shift += 7) {
		uint8_t b = r->data[r->pos++];

		if (shift == 63 && b)
			return false; /* 2^63 or more */
		v |= (uint64_t)(b & 0x7f) << shift;
		if (!(b & 0x80)) {
			*out = v;
			return true;
		}
	}
	return false;
}

void pack_open(struct pack_reader *r, const void *data, size_t len, int64_t ts)
{
	*r = (struct pack_reader){.data = data, .len = len, .ts = ts};
	if (!len || r->data[0] != FORM || ts <= -PACK_TS_MAX || ts >= PACK_TS_MAX)
		r->bad = -EBADMSG;
	else
		r->pos = 1;
}

static bool next_bucket(struct pack_reader *r)
{
	bool first = r->pos == 1;
	uint64_t behind;

	if (!get_varint(r, &behind) || behind >= 2 * PACK_TS_MAX || !behind != first || r->ts + (int64_t)behind >= PACK_TS_MAX ||
	    !get_varint(r, &r->left) || !r->left)
		return false;
	r->ts += (int64_t)behind;
	r->series = 0;
	return true;
}

static inline bool next_row(struct pack_reader *r, struct sample_row *out)
{
	uint64_t v, n = 0;

	if (!get_varint(r, &v) || (v >> 1) >= UINT32_MAX - r->series)
		return false;
	if ((v & 1) && (!get_varint(r, &n) || n > INT64_MAX - 2))
		return false;
	r->series += (uint32_t)(v >> 1) + 1;
	r->left--;
	*out = (struct sample_row){.ts = r->ts, .n = v & 1 ? n + 2 : 1, .series = r->series};
	return true;
}

/* Rows of one byte a number, as most are, up to one that is longer, or is none: that is left to next_row. */
static size_t short_rows(struct pack_reader *r, struct sample_row *rows, size_t max)
{
	const uint8_t *p = r->data + r->pos, *end = r->data + r->len;
	size_t n = 0, most = r->left < max ? (size_t)r->left : max;
	uint32_t series = r->series;

	for (; n < most && end - p >= 2; n++) {
		uint32_t many = p[0] & 1;

		if ((p[0] | (many ? p[1] : 0)) & 0x80 || p[0] >> 1 >= UINT32_MAX - series)
			break;
		series += (uint32_t)(p[0] >> 1) + 1;
		rows[n] = (struct sample_row){.ts = r->ts, .n = many ? p[1] + 2u : 1, .series = series};
		p += 1 + many;
	}
	r->pos = (size_t)(p - r->data);
	r->series = series;
	r->left -= n;
	return n;
}

size_t pack_next(struct pack_reader *r, struct sample_row *rows, size_t max)
{
	size_t n = 0;

	while (n < max && !r->bad && (r->left || r->pos < r->len)) {
		size_t some = short_rows(r, &rows[n], max - n);

		n += some;
		if (some)
			continue;
		if ((r->left || next_bucket(r)) && next_row(r, &rows[n]))
			n++;
		else
			r->bad = -EBADMSG;
	}
	return n;
}
