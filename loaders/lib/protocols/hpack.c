/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hpack: see the header. RFC 7541:
 *
 *   first byte       1xxxxxxx indexed | 01xxxxxx literal, inserted |
 *                    0000xxxx, 0001xxxx literal, not inserted | 001xxxxx the table's size
 *   integers (5.1)   the rest of the first byte; if all ones, 7 bits a byte follow, the least first
 *   strings (5.2)    H:1 LEN, H: Huffman (appendix B; a canonical code: within a length codes rise
 *                    with the symbols)
 *   size (4.1)       of an entry: the lengths of its name and value, and 32
 */
#include "loaders/lib/protocols/hpack.h"

#include <stdlib.h>
#include <string.h>

#include "schema/base/mem.h"

#define DEFAULT_MAX 4096
#define ENTRY_COST  32
#define STATIC      61
#define EOS         256
#define CODE_MAX    30

/* How many codes there are of each length, and their symbols in order (RFC 7541, appendix B). */
static const uint8_t CODES[CODE_MAX + 1] = {
	0, 0, 0, 0, 0, 10, 26, 32, 6,  0, 5,  3,  2,  6, 2, 3,
	0, 0, 0, 3, 8, 13, 26, 29, 12, 4, 15, 19, 29, 0, 4,
};
/* clang-format off */
static const uint16_t SYMBOLS[EOS + 1] = {
	48, 49, 50, 97, 99, 101, 105, 111, 115, 116, 32, 37, 45, 46, 47, 51, 52, 53, 54, 55, 56, 57, 61, 65, 95, 98, 100, 102, 103, 104,
	108, 109, 110, 112, 114, 117, 58, 66, 67, 68, 69, 70, 71, 72, 73, 74, 75, 76, 77, 78, 79, 80, 81, 82, 83, 84, 85, 86, 87, 89,
	106, 107, 113, 118, 119, 120, 121, 122, 38, 42, 44, 59, 88, 90, 33, 34, 40, 41, 63, 39, 43, 124, 35, 62, 0, 36, 64, 91, 93, 126,
	94, 125, 60, 96, 123, 92, 195, 208, 128, 130, 131, 162, 184, 194, 224, 226, 153, 161, 167, 172, 176, 177, 179, 209, 216, 217, 227, 229, 230, 129,
	132, 133, 134, 136, 146, 154, 156, 160, 163, 164, 169, 170, 173, 178, 181, 185, 186, 187, 189, 190, 196, 198, 228, 232, 233, 1, 135, 137, 138, 139,
	140, 141, 143, 147, 149, 150, 151, 152, 155, 157, 158, 165, 166, 168, 174, 175, 180, 182, 183, 188, 191, 197, 231, 239, 9, 142, 144, 145, 148, 159,
	171, 206, 215, 225, 236, 237, 199, 207, 234, 235, 192, 193, 200, 201, 202, 205, 210, 213, 218, 219, 238, 240, 242, 243, 255, 203, 204, 211, 212, 214,
	221, 222, 223, 241, 244, 245, 246, 247, 248, 250, 251, 252, 253, 254, 2, 3, 4, 5, 6, 7, 8, 11, 12, 14, 15, 16, 17, 18, 19, 20,
	21, 23, 24, 25, 26, 27, 28, 29, 30, 31, 127, 220, 249, 10, 13, 22, 256,
};
/* clang-format on */

/* Appendix A: what is needed of it. */
static const struct {
	enum hpack_name name;
	uint8_t name_len;
	const char *value;
} STATIC_TABLE[STATIC] = {
	{HPACK_AUTHORITY, 10, NULL},    {HPACK_METHOD, 7, "GET"},       {HPACK_METHOD, 7, "POST"},
	{HPACK_PATH, 5, "/"},           {HPACK_PATH, 5, "/index.html"}, {HPACK_OTHER, 7, NULL},
	{HPACK_OTHER, 7, NULL},         {HPACK_STATUS, 7, "200"},       {HPACK_STATUS, 7, "204"},
	{HPACK_STATUS, 7, "206"},       {HPACK_STATUS, 7, "304"},       {HPACK_STATUS, 7, "400"},
	{HPACK_STATUS, 7, "404"},       {HPACK_STATUS, 7, "500"},       {HPACK_OTHER, 14, NULL},
	{HPACK_OTHER, 15, NULL},        {HPACK_OTHER, 15, NULL},        {HPACK_OTHER, 13, NULL},
	{HPACK_OTHER, 6, NULL},         {HPACK_OTHER, 27, NULL},        {HPACK_OTHER, 3, NULL},
	{HPACK_OTHER, 5, NULL},         {HPACK_OTHER, 13, NULL},        {HPACK_OTHER, 13, NULL},
	{HPACK_OTHER, 19, NULL},        {HPACK_OTHER, 16, NULL},        {HPACK_OTHER, 16, NULL},
	{HPACK_OTHER, 14, NULL},        {HPACK_OTHER, 16, NULL},        {HPACK_OTHER, 13, NULL},
	{HPACK_CONTENT_TYPE, 12, NULL}, {HPACK_OTHER, 6, NULL},         {HPACK_OTHER, 4, NULL},
	{HPACK_OTHER, 4, NULL},         {HPACK_OTHER, 6, NULL},         {HPACK_OTHER, 7, NULL},
	{HPACK_OTHER, 4, NULL},         {HPACK_HOST, 4, NULL},          {HPACK_OTHER, 8, NULL},
	{HPACK_OTHER, 17, NULL},        {HPACK_OTHER, 13, NULL},        {HPACK_OTHER, 8, NULL},
	{HPACK_OTHER, 19, NULL},        {HPACK_OTHER, 13, NULL},        {HPACK_OTHER, 4, NULL},
	{HPACK_OTHER, 8, NULL},         {HPACK_OTHER, 12, NULL},        {HPACK_OTHER, 18, NULL},
	{HPACK_OTHER, 19, NULL},        {HPACK_OTHER, 5, NULL},         {HPACK_OTHER, 7, NULL},
	{HPACK_OTHER, 7, NULL},         {HPACK_OTHER, 11, NULL},        {HPACK_OTHER, 6, NULL},
	{HPACK_OTHER, 10, NULL},        {HPACK_OTHER, 25, NULL},        {HPACK_OTHER, 17, NULL},
	{HPACK_OTHER, 10, NULL},        {HPACK_OTHER, 4, NULL},         {HPACK_OTHER, 3, NULL},
	{HPACK_OTHER, 16, NULL},
};

/* clang-format off */
static const char *const NAMES[HPACK_NAMES] = {
	[HPACK_METHOD] = ":method", [HPACK_PATH] = ":path", [HPACK_AUTHORITY] = ":authority", [HPACK_STATUS] = ":status",
	[HPACK_PROTOCOL] = ":protocol", [HPACK_CONTENT_TYPE] = "content-type", [HPACK_GRPC_STATUS] = "grpc-status", [HPACK_HOST] = "host",
	[HPACK_TRACEPARENT] = "traceparent", [HPACK_B3] = "b3", [HPACK_B3_TRACE] = "x-b3-traceid", [HPACK_SW8] = "sw8",
	[HPACK_B3_SPAN] = "x-b3-spanid", [HPACK_UBER] = "uber-trace-id", [HPACK_REQUEST_ID] = "x-request-id",
};
/* clang-format on */

struct reader {
	const uint8_t *p;
	size_t n;
};

struct text {
	char buf[HPACK_VALUE_MAX];
	size_t len, kept; /* as it is; in buf */
};

void hpack_init(struct hpack *h)
{
	memset(h, 0, sizeof(*h));
	h->max = DEFAULT_MAX;
}

static struct hpack_entry *entry(struct hpack *h, uint32_t i)
{
	return &h->entries[(h->head + i) & (h->cap - 1)];
}

static void evict(struct hpack *h, size_t max)
{
	while (h->count && h->size > max) {
		struct hpack_entry *e = entry(h, --h->count);

		h->size -= e->size;
		free(e->value);
		e->value = NULL;
	}
}

void hpack_forget(struct hpack *h)
{
	evict(h, 0);
	while (h->count) /* no entry has size 0, but nothing must depend on that */
		free(entry(h, --h->count)->value);
}

void hpack_release(struct hpack *h)
{
	hpack_forget(h);
	free(h->entries);
	h->entries = NULL;
	h->cap = 0;
}

static void grow(struct hpack *h)
{
	uint32_t cap = h->cap ? h->cap * 2 : 8;
	struct hpack_entry *wider = mem_array(cap, sizeof(*wider));

	for (uint32_t i = 0; i < h->count; i++)
		wider[i] = *entry(h, i);
	free(h->entries);
	h->entries = wider;
	h->cap = cap;
	h->head = 0;
}

static void insert(struct hpack *h, enum hpack_name name, size_t name_len, const struct text *value)
{
	size_t size = name_len + value->len + ENTRY_COST;
	struct hpack_entry *e;

	evict(h, size > h->max ? 0 : h->max - size);
	if (size > h->max)
		return;
	if (h->count == h->cap)
		grow(h);
	h->head = (h->head - 1) & (h->cap - 1);
	h->count++;
	e = entry(h, 0);
	*e = (struct hpack_entry){
		.size = (uint32_t)size, .name_len = (uint32_t)name_len, .name = (uint8_t)name};
	if (name != HPACK_OTHER && name != HPACK_UNKNOWN)
		e->value = mem_strndup(value->buf, value->kept);
	h->size += size;
}

static bool integer(struct reader *r, int bits, uint64_t *value)
{
	uint64_t most = (1u << bits) - 1, v;
	int shift = 0;

	if (!r->n)
		return false;
	v = *r->p++ & most;
	r->n--;
	if (v == most) {
		uint8_t b;

		do {
			if (!r->n || shift > 28)
				return false;
			b = *r->p++;
			r->n--;
			v += (uint64_t)(b & 127) << shift;
			shift += 7;
		} while (b & 128);
	}
	*value = v;
	return true;
}

static void add(struct text *t, char c)
{
	if (t->kept < sizeof(t->buf))
		t->buf[t->kept++] = c;
	t->len++;
}

static bool huffman(const uint8_t *p, size_t n, struct text *t)
{
	uint32_t code = 0, first = 0, index = 0;
	int len = 0;

	for (size_t i = 0; i < n * 8; i++) {
		code = code << 1 | (p[i / 8] >> (7 - i % 8) & 1);
		first <<= 1;
		len++;
		if (len > CODE_MAX)
			return false;
		if (code - first < CODES[len]) {
			unsigned symbol = SYMBOLS[index + code - first];

			if (symbol == EOS)
				return false;
			add(t, (char)symbol);
			code = first = index = 0;
			len = 0;
			continue;
		}
		index += CODES[len];
		first += CODES[len];
	}
	return len < 8 && code == (1u << len) - 1; /* filled up with ones */
}

static bool string(struct reader *r, struct text *t)
{
	bool packed = r->n && *r->p & 128;
	uint64_t len;

	t->len = t->kept = 0;
	if (!integer(r, 7, &len) || len > r->n)
		return false;
	if (packed) {
		if (!huffman(r->p, (size_t)len, t))
			return false;
	} else {
		t->kept = len < sizeof(t->buf) ? (size_t)len : sizeof(t->buf);
		memcpy(t->buf, r->p, t->kept);
		t->len = (size_t)len;
	}
	r->p += len;
	r->n -= (size_t)len;
	return true;
}

static enum hpack_name name_of(const struct text *t)
{
	for (int i = 1; i < HPACK_NAMES; i++)
		if (NAMES[i] && strlen(NAMES[i]) == t->len && !memcmp(NAMES[i], t->buf, t->len))
			return (enum hpack_name)i;
	return HPACK_OTHER;
}

static bool indexed(struct hpack *h, uint64_t index, hpack_header *each, void *ctx)
{
	const struct hpack_entry *e;

	if (!index)
		return false;
	if (index <= STATIC) {
		const char *value = STATIC_TABLE[index - 1].value;

		each(ctx, STATIC_TABLE[index - 1].name, value ? value : "",
		     value ? strlen(value) : 0);
	} else if (index - STATIC <= h->count) {
		e = entry(h, (uint32_t)(index - STATIC - 1));
		each(ctx, (enum hpack_name)e->name, e->value, e->value ? strlen(e->value) : 0);
	} else {
		each(ctx, HPACK_UNKNOWN, NULL, 0);
	}
	return true;
}

static bool literal(struct hpack *h, struct reader *r, int bits, bool inserted, hpack_header *each,
		    void *ctx)
{
	enum hpack_name name = HPACK_UNKNOWN;
	size_t name_len = 0;
	struct text text;
	uint64_t index;

	if (!integer(r, bits, &index))
		return false;
	if (!index) {
		if (!string(r, &text))
			return false;
		name = name_of(&text);
		name_len = text.len;
	} else if (index <= STATIC) {
		name = STATIC_TABLE[index - 1].name;
		name_len = STATIC_TABLE[index - 1].name_len;
	} else if (index - STATIC <= h->count) {
		name = (enum hpack_name)entry(h, (uint32_t)(index - STATIC - 1))->name;
		name_len = entry(h, (uint32_t)(index - STATIC - 1))->name_len;
	}
	if (!string(r, &text))
		return false;
	if (inserted)
		insert(h, name, name_len, &text);
	each(ctx, name, text.buf, text.kept);
	return true;
}

bool hpack_decode(struct hpack *h, const uint8_t *p, size_t n, hpack_header *each, void *ctx)
{
	struct reader r = {p, n};
	uint64_t v;
	bool fine = true;

	while (r.n && fine) {
		if (*r.p & 0x80) {
			fine = integer(&r, 7, &v) && indexed(h, v, each, ctx);
		} else if (*r.p & 0x40) {
			fine = literal(h, &r, 6, true, each, ctx);
		} else if (*r.p & 0x20) {
			fine = integer(&r, 5, &v);
			h->max = v < HPACK_TABLE_MAX ? (size_t)v : HPACK_TABLE_MAX;
			evict(h, h->max);
		} else {
			fine = literal(h, &r, 4, false, each, ctx);
		}
	}
	return fine;
}
