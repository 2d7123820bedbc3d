/* SPDX-License-Identifier: Apache-2.0 */
/* Numbers in comments are the header's rules. */
#include "schema/store/packed/column.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <zstd.h>

#define VARINT_MAX COLUMN_NUMBER_MAX
/* texts that become smaller than that are a bomb; numbers of one kind may */
#define RATIO_MAX 1024
#define LEVEL     3           /* 15 takes twice as long, for a tenth of the bytes */
#define FEW       (64u << 10) /* most blocks of columns have fewer bytes: a higher level is worth it */
#define LEVEL_FEW 9 /* 15 takes half as long again for all of an archive, for a hundredth of it */
#define LEVEL_TRY 1 /* to tell which form is the smallest */
#define ITEM_MAX  (COLUMN_DIGITS_MAX + 1) /* a number of a list, and its comma */

struct bytes {
	uint8_t *p;
	size_t len, cap;
	bool failed; /* no memory, or too large */
};

/* --- writing --- */

static void bytes_add(struct bytes *b, const void *data, size_t len)
{
	if (b->failed || len > COLUMN_MAX - b->len) {
		b->failed = true;
		return;
	}
	if (b->cap - b->len < len) {
		size_t cap = 2 * (b->len + len) + 64;
		uint8_t *p = realloc(b->p, cap);

		b->failed = !p;
		if (!p)
			return;
		b->p = p;
		b->cap = cap;
	}
	memcpy(b->p + b->len, data, len);
	b->len += len;
}

static void add_varint(struct bytes *b, uint64_t v)
{
	uint8_t bytes[VARINT_MAX];
	size_t n = 0;

	for (; v >= 0x80; v >>= 7)
		bytes[n++] = (uint8_t)(v | 0x80);
	bytes[n++] = (uint8_t)v;
	bytes_add(b, bytes, n);
}

static void add_signed(struct bytes *b, uint64_t v)
{
	add_varint(b, v << 1 ^ (v >> 63 ? UINT64_MAX : 0));
}

/* From what the next one's distance is taken; `before` is what it was for this one. */
static uint64_t beyond(enum column_form form, uint64_t before, uint64_t v)
{
	switch (form) {
	case COLUMN_STEPS:
		return v;
	case COLUMN_FRESH:
		return (int64_t)v < (int64_t)before ? before : v + 1;
	default:
		return 0;
	}
}

/* Rule 6: where the bytes of each weight begin, among those of n numbers: as many as the numbers of
 * which the byte before says that another one follows. `bytes` are in that order. False: they are
 * not n numbers. */
static bool weights_find(const uint8_t *bytes, size_t len, size_t n, size_t from[VARINT_MAX + 1])
{
	from[0] = 0;
	for (size_t k = 0; k < VARINT_MAX; k++) {
		size_t more = 0;

		if (n > len - from[k])
			return false;
		for (size_t i = 0; i < n; i++)
			more += bytes[from[k] + i] >> 7;
		from[k + 1] = from[k] + n;
		n = more;
	}
	return !n && from[VARINT_MAX] == len;
}

static void weights_split(const struct bytes *raw, uint8_t *out)
{
	size_t at[VARINT_MAX + 1] = {0}, weight = 0;

	for (size_t i = 0; i < raw->len; i++, weight = raw->p[i - 1] & 0x80 ? weight + 1 : 0)
		at[weight + 1]++;
	for (size_t k = 1; k <= VARINT_MAX; k++)
		at[k] += at[k - 1];
	for (size_t i = 0; i < raw->len; i++, weight = raw->p[i - 1] & 0x80 ? weight + 1 : 0)
		out[at[weight]++] = raw->p[i];
}

static bool add_numbers(const struct column *c, enum column_form form, struct bytes *raw)
{
	uint64_t before = form == COLUMN_FRESH, v;

	if (!c->numbers)
		return false;
	for (size_t i = 0; i < c->n; i++, before = beyond(form, before, v)) {
		v = (uint64_t)c->numbers[i];
		add_signed(raw, form == COLUMN_FRESH ? before - v : v - before);
	}
	return true;
}

bool column_list_next(const char **p, uint32_t *out)
{
	const char *s = *p;
	uint64_t v = 0;

	if (*s < '0' || *s > '9' || (*s == '0' && s[1] >= '0' && s[1] <= '9'))
		return false;
	for (; *s >= '0' && *s <= '9' && v <= UINT32_MAX; s++)
		v = v * 10 + (uint64_t)(*s - '0');
	if (v > UINT32_MAX || (*s && (*s != ',' || !s[1])))
		return false;
	*out = (uint32_t)v;
	*p = s + (*s == ',');
	return true;
}

static bool add_list(const char *text, uint32_t *before, struct bytes *raw)
{
	size_t n = *text ? 1 : 0;
	uint32_t v;

	for (const char *p = text; *p; p++)
		n += *p == ',';
	add_varint(raw, n);
	for (; *text; *before = v) {
		if (!column_list_next(&text, &v))
			return false;
		add_signed(raw, (uint64_t)v - *before);
	}
	return true;
}

static bool add_lists(const struct column *c, enum column_form form, struct bytes *raw)
{
	uint32_t before = 0;

	(void)form;
	for (size_t i = 0; i < c->n; i++)
		if (!c->text || !add_list(c->text + c->at[i], &before, raw))
			return false;
	return true;
}

static bool add_texts(const struct column *c, enum column_form form, struct bytes *raw)
{
	(void)form;
	for (size_t i = 0; i < c->n; i++) {
		if (!c->text || memchr(c->text + c->at[i], 0, c->at[i + 1] - c->at[i] - 1))
			return false;
		bytes_add(raw, c->text + c->at[i], c->at[i + 1] - c->at[i]);
	}
	return true;
}

/* With a checksum: a bit that turned is no other value. Its length, 0: no memory. */
static size_t deflated(const struct bytes *raw, uint8_t *out, size_t room)
{
	ZSTD_CCtx *c = ZSTD_createCCtx();
	size_t len = 0;

	if (c &&
	    !ZSTD_isError(ZSTD_CCtx_setParameter(c, ZSTD_c_compressionLevel,
						 raw->len < FEW ? LEVEL_FEW : LEVEL)) &&
	    !ZSTD_isError(ZSTD_CCtx_setParameter(c, ZSTD_c_checksumFlag, 1)))
		len = ZSTD_compress2(c, out, room, raw->p ? raw->p : out, raw->len);
	ZSTD_freeCCtx(c);
	return ZSTD_isError(len) ? 0 : len;
}

/* Rule 1 */
static int wrap(uint8_t form, const struct bytes *raw, struct bytes *out)
{
	size_t room = ZSTD_compressBound(raw->len), len = 0;
	uint8_t *space = malloc(room);
	int rc = space && (len = deflated(raw, space, room)) ? 0 : -ENOMEM;

	if (!rc) {
		bytes_add(out, &form, 1);
		add_varint(out, raw->len);
		bytes_add(out, space, len);
		rc = out->failed ? -ENOMEM : 0;
	}
	free(space);
	return rc;
}

/* What a form's bytes come to, roughly: to compare them. SIZE_MAX: no memory. */
static size_t tried(ZSTD_CCtx *c, const struct bytes *raw, struct bytes *space)
{
	size_t room = ZSTD_compressBound(raw->len), len;

	if (room > space->cap) {
		free(space->p);
		*space = (struct bytes){.p = malloc(room), .cap = room};
		space->cap = space->p ? room : 0;
	}
	len = space->p ? ZSTD_compressCCtx(c, space->p, space->cap, raw->p ? raw->p : space->p,
					   raw->len, LEVEL_TRY) :
			 SIZE_MAX;
	return ZSTD_isError(len) ? SIZE_MAX : len;
}

typedef bool add_values(const struct column *c, enum column_form form, struct bytes *raw);

static add_values *const ADD[] = {[COLUMN_STEPS] = add_numbers,
				  [COLUMN_NUMBERS] = add_numbers,
				  [COLUMN_LISTS] = add_lists,
				  [COLUMN_TEXTS] = add_texts,
				  [COLUMN_FRESH] = add_numbers};

/* The same numbers by weight; without bytes: no memory. */
static struct bytes by_weight(const struct bytes *raw)
{
	struct bytes split = {.p = malloc(raw->len + 1), .len = raw->len};

	if (split.p)
		weights_split(raw, split.p);
	return split;
}

struct trial {
	ZSTD_CCtx *c;
	struct bytes space; /* for what is tried */
	struct bytes raw;   /* of the smallest so far */
	uint8_t form;       /* 0: none so far */
	size_t len;
};

static void try_form(struct trial *t, uint8_t form, struct bytes *raw)
{
	size_t len = tried(t->c, raw, &t->space);

	if (len == SIZE_MAX || (t->form && len >= t->len)) {
		free(raw->p);
		return;
	}
	free(t->raw.p);
	t->raw = *raw;
	t->form = form;
	t->len = len;
}

/* In each form that its values have. */
static void try_forms(struct trial *t, const struct column *c)
{
	for (enum column_form form = COLUMN_STEPS; form < COLUMN_FORMS; form++) {
		struct bytes raw = {0};

		if (ADD[form](c, form, &raw) && !raw.failed)
			try_form(t, (uint8_t)form, &raw);
		else
			free(raw.p);
	}
	if (t->form && c->numbers) {
		struct bytes split = by_weight(&t->raw);

		if (split.p)
			try_form(t, t->form | COLUMN_WEIGHTS, &split);
	}
}

/* The form and the bytes of the smallest one: 0: no form fits, or no memory. */
static uint8_t smallest(const struct column *c, struct bytes *raw)
{
	struct trial t = {.c = ZSTD_createCCtx()};

	if (t.c)
		try_forms(&t, c);
	ZSTD_freeCCtx(t.c);
	free(t.space.p);
	*raw = t.raw;
	return t.form;
}

/* --- many numbers: the form that is the smallest of some of them --- */

#define WINDOWS 4
#define WINDOW  4096
#define MANY    (2 * WINDOWS * WINDOW)

/* 0: no memory for that. */
static uint8_t form_of_some(const struct column *c)
{
	struct column some = {.n = WINDOWS * WINDOW,
			      .numbers = malloc(WINDOWS * WINDOW * sizeof(*some.numbers))};
	struct bytes raw = {0};
	uint8_t form;

	if (!some.numbers)
		return 0;
	for (size_t i = 0; i < WINDOWS; i++)
		memcpy(some.numbers + i * WINDOW, c->numbers + c->n / WINDOWS * i,
		       WINDOW * sizeof(*some.numbers));
	form = smallest(&some, &raw);
	free(raw.p);
	free(some.numbers);
	return form;
}

static uint8_t form_of_many(const struct column *c, struct bytes *raw)
{
	const uint8_t form = form_of_some(c);

	if (!form || !add_numbers(c, form & ~COLUMN_WEIGHTS, raw) || raw->failed)
		return 0;
	if (form & COLUMN_WEIGHTS) {
		struct bytes split = by_weight(raw);

		free(raw->p);
		*raw = split;
	}
	return raw->p ? form : 0;
}

int column_encode(const struct column *c, uint8_t **out, size_t *len)
{
	struct bytes raw = {0}, wrapped = {0};
	const uint8_t form = c->numbers && c->n > MANY ? form_of_many(c, &raw) : smallest(c, &raw);
	int rc = form ? wrap(form, &raw, &wrapped) : c->numbers ? -ENOMEM : -EINVAL;

	free(raw.p);
	*out = wrapped.p;
	*len = wrapped.len;
	return rc;
}

/* --- reading --- */

struct input {
	const uint8_t *p, *end;
};

static bool get_varint(struct input *in, uint64_t *out)
{
	uint64_t v = 0;

	for (unsigned int shift = 0; in->p < in->end && shift < 7 * VARINT_MAX; shift += 7) {
		uint8_t b = *in->p++;

		v |= (uint64_t)(b & 0x7f) << shift;
		if (!(b & 0x80)) {
			*out = v;
			return true;
		}
	}
	return false;
}

static bool get_signed(struct input *in, uint64_t *out)
{
	uint64_t v;

	if (!get_varint(in, &v))
		return false;
	*out = v >> 1 ^ (v & 1 ? UINT64_MAX : 0);
	return true;
}

static uint64_t unsign(uint64_t v)
{
	return v >> 1 ^ (v & 1 ? UINT64_MAX : 0);
}

/* In place: from what was written of each to what it is. */
static void add_up(enum column_form form, int64_t *numbers, size_t n)
{
	uint64_t before = form == COLUMN_FRESH;

	switch (form) {
	case COLUMN_STEPS:
		for (size_t i = 0; i < n; i++)
			numbers[i] = (int64_t)(before += unsign((uint64_t)numbers[i]));
		break;
	case COLUMN_FRESH:
		for (size_t i = 0; i < n; i++) {
			uint64_t v = before - unsign((uint64_t)numbers[i]);

			numbers[i] = (int64_t)v;
			before = beyond(form, before, v);
		}
		break;
	default:
		for (size_t i = 0; i < n; i++)
			numbers[i] = (int64_t)unsign((uint64_t)numbers[i]);
	}
}

static int read_numbers(struct input *in, enum column_form form, struct column *c)
{
	uint64_t v;

	c->numbers = malloc((c->n + 1) * sizeof(*c->numbers));
	if (!c->numbers)
		return -ENOMEM;
	for (size_t i = 0; i < c->n; i++) {
		if (!get_varint(in, &v))
			return -EBADMSG;
		c->numbers[i] = (int64_t)v;
	}
	add_up(form, c->numbers, c->n);
	return 0;
}

static int text_room(struct column *c, size_t size)
{
	c->at = malloc((c->n + 1) * sizeof(*c->at));
	c->text = malloc(size + 1);
	return c->at && c->text ? 0 : -ENOMEM;
}

char *column_put_number(char *p, uint32_t v)
{
	char digits[COLUMN_DIGITS_MAX];
	size_t n = 0;

	do {
		digits[n++] = (char)('0' + v % 10);
		v /= 10;
	} while (v);
	while (n)
		*p++ = digits[--n];
	return p;
}

/* Each number takes at least a byte, so this much room is enough. */
static int read_lists(struct input *in, struct column *c)
{
	size_t size = (size_t)(in->end - in->p) * ITEM_MAX + 1;
	uint64_t n, v, before = 0;
	char *p;
	int rc = size > 4ul * COLUMN_MAX ? -EBADMSG : text_room(c, size);

	if (rc)
		return rc;
	p = c->text;
	for (size_t i = 0; i < c->n; i++) {
		c->at[i] = (uint32_t)(p - c->text);
		if (!get_varint(in, &n) || n > (uint64_t)(in->end - in->p))
			return -EBADMSG;
		for (uint64_t k = 0; k < n; k++, before = v) {
			if (!get_signed(in, &v) || (v += before) > UINT32_MAX)
				return -EBADMSG;
			if (k)
				*p++ = ',';
			p = column_put_number(p, (uint32_t)v);
		}
		*p++ = '\0';
	}
	c->at[c->n] = (uint32_t)(p - c->text);
	return 0;
}

static int read_texts(struct input *in, struct column *c)
{
	size_t size = (size_t)(in->end - in->p);
	int rc = text_room(c, size);
	uint32_t at = 0;

	if (rc)
		return rc;
	memcpy(c->text, in->p, size);
	in->p = in->end;
	for (size_t i = 0; i < c->n; i++) {
		const char *nul = memchr(c->text + at, 0, size - at);

		c->at[i] = at;
		if (!nul)
			return -EBADMSG;
		at = (uint32_t)(nul - c->text) + 1;
	}
	c->at[c->n] = at;
	return at == size ? 0 : -EBADMSG;
}

static bool is_numbers(uint8_t form)
{
	return form == COLUMN_STEPS || form == COLUMN_NUMBERS || form == COLUMN_FRESH;
}

/* Each number from its bytes of all weights. That there are as many as they say weights_find has
 * seen. Two bytes are read without a branch, for which one comes is chance; there is one more byte
 * behind the last one. */
static void weights_join(const uint8_t *bytes, size_t from[VARINT_MAX + 1], int64_t *numbers,
			 size_t n)
{
	const uint8_t *second = bytes + from[1];

	for (size_t i = 0; i < n; i++) {
		uint64_t more = bytes[i] >> 7, b = *second & -more;
		uint64_t v = (bytes[i] & 0x7f) | (b & 0x7f) << 7;

		second += more;
		for (unsigned int k = 2; b & 0x80; k++) {
			b = bytes[from[k]++];
			v |= (b & 0x7f) << 7 * k;
		}
		numbers[i] = (int64_t)v;
	}
}

static int read_weights(uint8_t form, const uint8_t *bytes, size_t len, struct column *c)
{
	size_t from[VARINT_MAX + 1];

	if (!weights_find(bytes, len, c->n, from))
		return -EBADMSG;
	c->numbers = malloc((c->n + 1) * sizeof(*c->numbers));
	if (!c->numbers)
		return -ENOMEM;
	weights_join(bytes, from, c->numbers, c->n);
	add_up(form, c->numbers, c->n);
	return 0;
}

static int read_values(uint8_t form, struct input *in, struct column *c)
{
	int rc;

	if (form & COLUMN_WEIGHTS && is_numbers(form & ~COLUMN_WEIGHTS))
		return read_weights(form & ~COLUMN_WEIGHTS, in->p, (size_t)(in->end - in->p), c);
	rc = is_numbers(form)     ? read_numbers(in, form, c) :
	     form == COLUMN_LISTS ? read_lists(in, c) :
	     form == COLUMN_TEXTS ? read_texts(in, c) :
				    -ENOTSUP;
	return rc ? rc : in->p == in->end ? 0 : -EBADMSG;
}

/* Rule 1: *out is the caller's, and has one more byte behind it. */
static int unwrap(const void *data, size_t len, size_t n, uint8_t *form, uint8_t **out,
		  size_t *out_len)
{
	struct input in = {data, (const uint8_t *)data + len};
	uint64_t size;
	uint8_t *raw;

	if (!len)
		return -EBADMSG;
	*form = *in.p++;
	if (!get_varint(&in, &size) || size > COLUMN_MAX || n > size ||
	    (size > (uint64_t)n * VARINT_MAX && size > (uint64_t)(in.end - in.p) * RATIO_MAX))
		return -EBADMSG; /* a value takes a byte at least */
	raw = malloc(size + 1);
	if (!raw)
		return -ENOMEM;
	if (ZSTD_decompress(raw, size, in.p, (size_t)(in.end - in.p)) != size) {
		free(raw);
		return -EBADMSG;
	}
	*out = raw;
	*out_len = (size_t)size;
	return 0;
}

int column_decode(const void *data, size_t len, size_t n, struct column *out)
{
	struct column c = {.n = n};
	uint8_t form, *raw;
	size_t size;
	int rc = unwrap(data, len, n, &form, &raw, &size);

	if (rc)
		return rc;
	rc = read_values(form, &(struct input){raw, raw + size}, &c);
	free(raw);
	if (rc)
		column_release(&c);
	else
		*out = c;
	return rc;
}

/* --- reading, number by number --- */

int column_cursor_open(const void *data, size_t len, size_t n, struct column_cursor *out)
{
	struct column_cursor c = {.n = n};
	uint8_t form;
	int rc = unwrap(data, len, n, &form, &c.bytes, &c.len);

	if (rc)
		return rc;
	c.by_weight = form & COLUMN_WEIGHTS;
	c.form = (enum column_form)(form & ~COLUMN_WEIGHTS);
	c.before = c.form == COLUMN_FRESH;
	if (form == COLUMN_LISTS) {
		c.lists = n;
		c.n = 0;
	} else if (!is_numbers((uint8_t)c.form)) {
		rc = -EBADMSG;
	}
	if (!rc && c.by_weight && !weights_find(c.bytes, c.len, n, c.at))
		rc = -EBADMSG;
	if (rc)
		free(c.bytes);
	else
		*out = c;
	return rc;
}

/* That the bytes of all weights are there weights_find has seen. */
static uint64_t next_by_weight(struct column_cursor *c)
{
	uint64_t b = c->bytes[c->at[0]++], v = b & 0x7f;

	for (unsigned int k = 1; b & 0x80; k++) {
		b = c->bytes[c->at[k]++];
		v |= (b & 0x7f) << 7 * k;
	}
	return v;
}

bool column_cursor_list(struct column_cursor *c, size_t *n)
{
	struct input in = {c->bytes + c->at[0], c->bytes + c->len};
	uint64_t v;

	if (!c->lists || c->n || !get_varint(&in, &v) || v > (uint64_t)(in.end - in.p))
		return false;
	c->at[0] = (size_t)(in.p - c->bytes);
	c->lists--;
	c->n = *n = (size_t)v;
	return true;
}

bool column_cursor_next(struct column_cursor *c, int64_t *out)
{
	struct input in = {c->bytes + c->at[0], c->bytes + c->len};
	uint64_t v;

	if (!c->n)
		return false;
	if (c->by_weight)
		v = next_by_weight(c);
	else if (!get_varint(&in, &v))
		return false;
	else
		c->at[0] = (size_t)(in.p - c->bytes);
	c->n--;
	v = c->form == COLUMN_FRESH ? c->before - unsign(v) : c->before + unsign(v);
	if (c->form == COLUMN_LISTS && v > UINT32_MAX) {
		c->n = 1; /* it does not end well */
		return false;
	}
	c->before = c->form == COLUMN_LISTS ? v : beyond(c->form, c->before, v);
	*out = (int64_t)v;
	return true;
}

int column_cursor_close(struct column_cursor *c)
{
	const bool all = !c->n && !c->lists && (c->by_weight || c->at[0] == c->len);

	free(c->bytes);
	*c = (struct column_cursor){0};
	return all ? 0 : -EBADMSG;
}

void column_release(struct column *c)
{
	free(c->numbers);
	free(c->text);
	free(c->at);
	free(c->null);
	*c = (struct column){0};
}
