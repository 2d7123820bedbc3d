/* SPDX-License-Identifier: Apache-2.0 */
/* clickhouse_block: see the header. */
#include "loaders/lib/protocols/clickhouse_block.h"

#include "schema/base/array.h"
#include "schema/base/mem.h"

#define FRAME_FULL (1u << 20)
#define OPS        64
#define SLOTS      24 /* counts: of rows, of the items of arrays and dictionaries */
#define DEPTH      12

/* How a type's values lie there, for as many as a slot counts. */
enum op_kind { FIXED, STRINGS, OFFSETS, SPARSE, DICTIONARY, INDEXES };

struct op {
	uint8_t kind, slot, out; /* out: the slot that OFFSETS, SPARSE and DICTIONARY fill */
	uint8_t jump;            /* DICTIONARY: ops to pass over where there are no rows */
	uint32_t width;
};

struct block {
	enum { FORM, INFO, COLUMN, VALUES, FRAMES } phase;
	uint64_t columns, rows;
	uint64_t slots[SLOTS]; /* 0: always 1; 1: the rows */
	uint64_t left;         /* of the op at hand */
	uint8_t n_ops, at, n_slots;
	bool begun;  /* the op at hand */
	bool custom; /* each column says how it is serialised */
	bool sparse;
	uint8_t key_size;
	struct op ops[OPS];
};

/* ---- types ---- */

struct type {
	const uint8_t *p;
	size_t n, i;
	struct block *b;
	unsigned dictionaries;
};

static bool compile(struct type *t, uint8_t slot, unsigned depth);

static bool emit(struct type *t, enum op_kind kind, uint8_t slot, uint8_t out, uint32_t width)
{
	if (t->b->n_ops >= OPS)
		return false;
	t->b->ops[t->b->n_ops++] =
		(struct op){.kind = (uint8_t)kind, .slot = slot, .out = out, .width = width};
	return true;
}

static uint8_t new_slot(struct type *t)
{
	return t->b->n_slots < SLOTS ? t->b->n_slots++ : 0;
}

static bool eat(struct type *t, char c)
{
	while (t->i < t->n && t->p[t->i] == ' ')
		t->i++;
	if (t->i >= t->n || t->p[t->i] != c)
		return false;
	t->i++;
	return true;
}

static size_t word(struct type *t, const uint8_t **at)
{
	size_t from;

	while (t->i < t->n && t->p[t->i] == ' ')
		t->i++;
	from = t->i;
	*at = t->p + from;
	while (t->i < t->n && (byte_is_letter(t->p[t->i]) || byte_is_digit(t->p[t->i]) ||
			       t->p[t->i] == '_' || t->p[t->i] == '.'))
		t->i++;
	return t->i - from;
}

/* Skips the text in parentheses, to their end or (`comma`) to the first comma in them. */
static void pass_arguments(struct type *t, bool comma)
{
	int depth = 1;

	for (; t->i < t->n && depth; t->i++) {
		uint8_t c = t->p[t->i], q = c == '\'' || c == '`' || c == '"' ? c : 0;

		if (q) {
			for (t->i++; t->i < t->n && t->p[t->i] != q; t->i++)
				t->i += t->p[t->i] == '\\';
		} else if (comma && c == ',' && depth == 1) {
			return;
		} else {
			depth += c == '(' ? 1 : c == ')' ? -1 : 0;
		}
	}
}

/* An element's type may have the element's name in front of it. */
static void element_name(struct type *t)
{
	size_t before = t->i;
	const uint8_t *at;

	while (t->i < t->n && t->p[t->i] == ' ')
		t->i++;
	if (t->i < t->n && t->p[t->i] == '`') {
		for (t->i++; t->i < t->n && t->p[t->i] != '`'; t->i++)
			t->i += t->p[t->i] == '\\';
		t->i++;
		return;
	}
	if (!word(t, &at) || t->i + 1 >= t->n || t->p[t->i] != ' ' ||
	    !byte_is_letter(t->p[t->i + 1]))
		t->i = before;
}

static bool elements(struct type *t, uint8_t slot, unsigned depth)
{
	do {
		element_name(t);
		if (!compile(t, slot, depth))
			return false;
	} while (eat(t, ','));
	return eat(t, ')');
}

static bool array(struct type *t, uint8_t *slot)
{
	uint8_t of = *slot;

	*slot = new_slot(t);
	return *slot && emit(t, OFFSETS, of, *slot, 8);
}

static bool dictionary(struct type *t, uint8_t slot, unsigned depth)
{
	uint8_t keys = new_slot(t), at = t->b->n_ops;
	size_t from = t->i;
	const uint8_t *inner;
	bool nullable = word(t, &inner) == 8 && !memcmp(inner, "Nullable", 8) && eat(t, '(');

	if (!nullable) /* else its first key means NULL */
		t->i = from;
	if (!keys || !emit(t, DICTIONARY, slot, keys, 0))
		return false;
	if (!compile(t, keys, depth) || (nullable && !eat(t, ')')) || !emit(t, INDEXES, slot, 0, 0))
		return false;
	t->b->ops[at].jump = (uint8_t)(t->b->n_ops - at);
	t->dictionaries++;
	return eat(t, ')');
}

static uint32_t argument(struct type *t)
{
	uint32_t v = 0;

	while (t->i < t->n && byte_is_digit(t->p[t->i]) && v < 1u << 24)
		v = v * 10 + (uint32_t)(t->p[t->i++] - '0');
	return v;
}

static uint32_t decimal_width(uint32_t digits)
{
	return digits <= 9 ? 4 : digits <= 18 ? 8 : digits <= 38 ? 16 : 32;
}

/* Bytes of each value of a fixed-width type; 0: the type has no fixed width. */
static uint32_t fixed_width(const uint8_t *p, size_t n)
{
	static const struct {
		const char *name;
		uint32_t width;
	} known[] = {{"UInt8", 1},       {"Int8", 1},       {"Bool", 1},      {"Enum8", 1},
		     {"Nothing", 1},     {"UInt16", 2},     {"Int16", 2},     {"Date", 2},
		     {"Enum16", 2},      {"BFloat16", 2},   {"UInt32", 4},    {"Int32", 4},
		     {"Float32", 4},     {"DateTime", 4},   {"Date32", 4},    {"IPv4", 4},
		     {"Time", 4},        {"Decimal32", 4},  {"UInt64", 8},    {"Int64", 8},
		     {"Float64", 8},     {"DateTime64", 8}, {"Decimal64", 8}, {"Time64", 8},
		     {"UUID", 16},       {"IPv6", 16},      {"Int128", 16},   {"UInt128", 16},
		     {"Decimal128", 16}, {"Int256", 32},    {"UInt256", 32},  {"Decimal256", 32}};

	for (size_t i = 0; i < ARRAY_SIZE(known); i++)
		if (strlen(known[i].name) == n && !memcmp(known[i].name, p, n))
			return known[i].width;
	return n > 8 && !memcmp(p, "Interval", 8) ? 8 : 0;
}

/* Point is two numbers; the others are arrays of each other. */
static unsigned geometry(const uint8_t *p, size_t n)
{
	static const char *const names[] = {
		"Point", "Ring", "LineString", "Polygon", "MultiLineString", "MultiPolygon"};
	static const uint8_t arrays[] = {0, 1, 1, 2, 2, 3};

	for (unsigned i = 0; i < sizeof(arrays); i++)
		if (strlen(names[i]) == n && !memcmp(names[i], p, n))
			return arrays[i] + 1u;
	return 0;
}

static bool is(const uint8_t *p, size_t n, const char *name)
{
	return n == strlen(name) && !memcmp(p, name, n);
}

static bool with_arguments(struct type *t, const uint8_t *p, size_t n, uint8_t slot, unsigned depth)
{
	uint32_t v;

	if (is(p, n, "Nullable"))
		return emit(t, FIXED, slot, 0, 1) && compile(t, slot, depth) && eat(t, ')');
	if (is(p, n, "Array"))
		return array(t, &slot) && compile(t, slot, depth) && eat(t, ')');
	if (is(p, n, "Map") || is(p, n, "Nested"))
		return array(t, &slot) && elements(t, slot, depth);
	if (is(p, n, "Tuple"))
		return elements(t, slot, depth);
	if (is(p, n, "LowCardinality"))
		return dictionary(t, slot, depth);
	if (is(p, n, "SimpleAggregateFunction")) {
		pass_arguments(t, true);
		return eat(t, ',') && compile(t, slot, depth) && eat(t, ')');
	}
	v = is(p, n, "FixedString") ? argument(t) :
	    is(p, n, "Decimal")     ? decimal_width(argument(t)) :
				      fixed_width(p, n);
	pass_arguments(t, false);
	return v && emit(t, FIXED, slot, 0, v);
}

static bool compile(struct type *t, uint8_t slot, unsigned depth)
{
	const uint8_t *p;
	size_t n = word(t, &p);
	uint32_t width;
	unsigned arrays;

	if (!n || depth >= DEPTH)
		return false;
	if (t->i < t->n && t->p[t->i] == '(') {
		t->i++;
		return with_arguments(t, p, n, slot, depth + 1);
	}
	if (is(p, n, "String"))
		return emit(t, STRINGS, slot, 0, 0);
	width = fixed_width(p, n);
	if (width)
		return emit(t, FIXED, slot, 0, width);
	arrays = geometry(p, n);
	for (unsigned i = 1; i < arrays; i++)
		if (!array(t, &slot))
			return false;
	return arrays && emit(t, FIXED, slot, 0, 16);
}

/* Past ops that there is nothing of. */
static void settle(struct block *b)
{
	while (!b->begun && b->at < b->n_ops) {
		const struct op *o = &b->ops[b->at];

		if (b->slots[o->slot] && (o->kind != FIXED || o->width))
			return;
		if (o->kind == OFFSETS)
			b->slots[o->out] = 0;
		b->at = (uint8_t)(b->at + (o->kind == DICTIONARY ? o->jump : 1));
	}
}

/* The ops of a column of this type. False: not known here. */
static bool column_type(struct block *b, const uint8_t *p, size_t n)
{
	struct type t = {.p = p, .n = n, .b = b};
	uint8_t slot = 1;

	b->n_ops = b->at = 0;
	b->n_slots = 2;
	b->begun = false;
	b->slots[0] = 1;
	b->slots[1] = b->rows;
	emit(&t, FIXED, 0, 0, 0); /* the versions of dictionaries */
	if (b->sparse) {
		slot = new_slot(&t);
		emit(&t, SPARSE, 1, slot, 0);
	}
	if (!compile(&t, slot, 0) || t.i != n)
		return false;
	b->ops[0].width = t.dictionaries * 8;
	settle(b);
	return true;
}

/* ---- blocks ---- */

bool block_is_frame(const uint8_t *p, size_t n)
{
	return n >= FRAME_HEAD && (p[16] == 0x02 || p[16] == 0x82 || p[16] == 0x90) &&
	       le32(p + 17) >= 9 && le32(p + 17) < STRING_MAX && le32(p + 21) < STRING_MAX;
}

bool block_is_plain(const uint8_t *p, size_t n)
{
	return n >= 8 && p[0] == 1 && p[1] <= 1 && p[2] == 2 && (p[7] == 0 || p[7] == 3);
}

static int64_t form(struct block *b, const uint8_t *p, size_t n, bool last)
{
	if (block_is_plain(p, n)) {
		b->phase = INFO;
		return 7;
	}
	if (block_is_frame(p, n)) {
		b->phase = FRAMES;
		b->rows = 1; /* a frame comes */
		return 0;
	}
	return n < FRAME_HEAD && !last ? PROTO_MORE : PROTO_LOST;
}

static int64_t info(struct block *b, const uint8_t *p, size_t n)
{
	struct reader r = {.p = p, .n = n};
	uint64_t field = read_number(&r);

	if (field == 3)
		read_past(&r, read_number(&r) * 4);
	else if (field)
		return PROTO_LOST;
	if (field == 3)
		return read_so_far(&r);
	b->columns = read_number(&r);
	b->rows = read_number(&r);
	r.bad |= !r.more && (b->columns > ROWS_MAX || b->rows > ROWS_MAX);
	if (!r.more && !r.bad)
		b->phase = COLUMN;
	return read_so_far(&r);
}

static int64_t column(struct block *b, const uint8_t *p, size_t n)
{
	struct reader r = {.p = p, .n = n};
	const uint8_t *text;
	uint8_t custom;
	size_t len;

	read_string(&r, &text, 1 << 16);
	len = read_string(&r, &text, 1 << 16);
	custom = b->custom ? read_byte(&r) : 0;
	b->sparse = custom && read_byte(&r) == 1;
	if (r.more || r.bad)
		return read_so_far(&r);
	if (custom > 1 || (custom && (p[r.at - 1] > 1 || bytes_begin(text, len, "Tuple"))))
		return PROTO_LOST;
	b->columns--;
	if (!b->rows)
		return (int64_t)r.at;
	if (!column_type(b, text, len))
		return PROTO_LOST;
	b->phase = b->at < b->n_ops ? VALUES : COLUMN;
	return (int64_t)r.at;
}

/* Each op: bytes of it (> n: all that is missing is passed over); b->begun is false again when it
 * is done. */
static int64_t strings(struct block *b, const uint8_t *p, size_t n)
{
	size_t at = 0;

	while (b->left) {
		struct reader r = {.p = p + at, .n = n - at};
		uint64_t len = read_number(&r);

		if (r.bad || len > STRING_MAX)
			return PROTO_LOST;
		if (r.more)
			return (int64_t)at; /* PROTO_MORE where it is 0 */
		b->left--;
		if (len > n - at - r.at) {
			b->begun = b->left > 0;
			return (int64_t)(at + r.at + len);
		}
		at += r.at + len;
	}
	b->begun = false;
	return (int64_t)at;
}

static int64_t offsets(struct block *b, const struct op *o, const uint8_t *p, size_t n)
{
	uint64_t before = (b->left - 1) * 8;

	if (b->left > 1) {
		b->left = 1;
		return (int64_t)before;
	}
	if (n < 8)
		return PROTO_MORE;
	b->slots[o->out] = le64(p);
	b->begun = false;
	return le64(p) > ROWS_MAX ? PROTO_LOST : 8;
}

/* How many defaults before each value; the last has bit 62. */
static int64_t sparse(struct block *b, const struct op *o, const uint8_t *p, size_t n)
{
	size_t at = 0;

	while (at < n) {
		struct reader r = {.p = p + at, .n = n - at};
		uint64_t v = read_number(&r);

		if (r.bad)
			return PROTO_LOST;
		if (r.more)
			break;
		at += r.at;
		if (v >> 62) {
			b->begun = false;
			return (int64_t)at;
		}
		if (++b->slots[o->out] > b->rows)
			return PROTO_LOST;
	}
	return (int64_t)at;
}

static int64_t dictionary_head(struct block *b, const struct op *o, const uint8_t *p, size_t n)
{
	bool keys;

	if (n < 8)
		return PROTO_MORE;
	keys = p[1] & 2;
	if (p[0] > 3 || (p[1] & 1) || (keys && n < 16))
		return p[0] > 3 || (p[1] & 1) ? PROTO_LOST : PROTO_MORE;
	b->key_size = p[0];
	b->slots[o->out] = keys ? le64(p + 8) : 0;
	b->begun = false;
	return b->slots[o->out] > ROWS_MAX ? PROTO_LOST : keys ? 16 : 8;
}

static int64_t indexes(struct block *b, const uint8_t *p, size_t n)
{
	if (n < 8)
		return PROTO_MORE;
	b->begun = false;
	return le64(p) > ROWS_MAX ? PROTO_LOST : (int64_t)(8 + (le64(p) << b->key_size));
}

static int64_t one_op(struct block *b, const uint8_t *p, size_t n)
{
	const struct op *o = &b->ops[b->at];

	if (!b->begun) {
		b->left = b->slots[o->slot];
		b->begun = true;
		if (o->kind == SPARSE || o->kind == OFFSETS)
			b->slots[o->out] = 0;
	}
	switch (o->kind) {
	case STRINGS:
		return strings(b, p, n);
	case OFFSETS:
		return offsets(b, o, p, n);
	case SPARSE:
		return sparse(b, o, p, n);
	case DICTIONARY:
		return dictionary_head(b, o, p, n);
	case INDEXES:
		return indexes(b, p, n);
	default:
		b->begun = false;
		return (int64_t)(b->left * o->width);
	}
}

/* As many as are there of a column's ops. */
static int64_t values(struct block *b, const uint8_t *p, size_t n)
{
	size_t at = 0;

	while (b->at < b->n_ops) {
		int64_t k = one_op(b, p + at, n - at);

		if (k < 0)
			return k;
		b->at += !b->begun;
		settle(b);
		if (!k || (uint64_t)k >= n - at)
			return (int64_t)at + k;
		at += (size_t)k;
	}
	return (int64_t)at;
}

static int64_t frames(struct block *b, const uint8_t *p, size_t n, bool last, bool *over)
{
	*over = !b->rows && !block_is_frame(p, n) &&
		(n >= FRAME_HEAD || last || p[0] <= PACKET_MAX);
	if (*over)
		return 0;
	if (!block_is_frame(p, n))
		return n < FRAME_HEAD && !last ? PROTO_MORE : PROTO_LOST;
	b->rows = 0;
	*over = le32(p + 21) !=
		FRAME_FULL; /* the rest of the frame has nothing that is looked at */
	return 16 + (int64_t)le32(p + 17);
}

struct block *block_new(bool custom)
{
	struct block *b = mem_alloc(sizeof(*b));

	b->custom = custom;
	return b;
}

int64_t block_step(struct block *b, const uint8_t *p, size_t n, bool last, bool *over)
{
	int64_t k = 0;

	*over = false;
	if (b->phase == FORM)
		k = form(b, p, n, last);
	if (!k && b->phase == FRAMES)
		k = frames(b, p, n, last, over);
	else if (!k && b->phase == INFO)
		k = info(b, p, n);
	else if (!k && b->phase == COLUMN)
		k = column(b, p, n);
	else if (!k && b->phase == VALUES)
		k = values(b, p, n);
	if (b->phase == VALUES && b->at >= b->n_ops)
		b->phase = COLUMN;
	*over |= b->phase == COLUMN && !b->columns && k > 0;
	return k;
}
