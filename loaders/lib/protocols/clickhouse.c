/* SPDX-License-Identifier: Apache-2.0 */
/*
 * clickhouse: ClickHouse's native protocol (docs/native-protocol of ClickHouse, its ProtocolDefines.h and TCPHandler). Numbers are little endian;
 * V is a LEB128 number, S a V and so many bytes. What a packet holds goes by the revision: the smaller one of both Hellos.
 *
 *   client     0 Hello: S name V major V minor V REVISION S database S user S password; after the server's: an addendum
 *              1 Query: S id, client info, settings, V stage V compression S TEXT, parameters | 2 Data, 7 Scalar: S table, block | 3 Cancel | 4 Ping
 *   server     0 Hello: S name V major V minor V REVISION ... | 1 Data, 7 Totals, 8 Extremes, 10 Log, 14 ProfileEvents: S table, block
 *              2 Exception: CODE:32 S name S message S stack NESTED:8 | 3 Progress | 4 Pong | 5 EndOfStream | 6 ProfileInfo
 *              11 TableColumns: S S | 12 PartUUIDs: V n, 16 bytes each | 13 ReadTaskRequest | 17 TimezoneUpdate: S
 *   block      1 OVERFLOWS:8 2 BUCKET:32 0, V columns, V rows, each column: S name S type [CUSTOM:8], what serialises the type for all rows
 *   frames     a compressed block is frames: CHECKSUM:128 METHOD:8 (02, 82 LZ4, 90 ZSTD) LEN:32 (from METHOD on) PLAIN_LEN:32. The writer's
 *              buffer is 1 MiB: a shorter frame is a block's last
 *
 * One question is open at a time: a query ends with EndOfStream or an exception. Where a block ends is known only by what its types are made of,
 * so they are compiled into a few steps (how many bytes, strings, or offsets); a query of a type that is not known here is blind. From 54470 on both
 * may agree on chunks, which say themselves where a packet ends.
 */
#include <stdio.h>
#include <stdlib.h>

#include "loaders/lib/protocols/protocol.h"
#include "loaders/lib/protocols/sql.h"
#include "loaders/lib/protocols/table.h"
#include "schema/base/mem.h"

#define REVISION_MIN 50000
#define REVISION_MAX 60000
#define STRING_MAX   (1ull << 30)
#define ROWS_MAX     (1ull << 32)
#define FRAME_HEAD   25           /* with its checksum */
#define FRAME_FULL   (1u << 20)
#define OPS          64
#define SLOTS        24           /* counts: of rows, of the items of arrays and dictionaries */
#define DEPTH        12

enum { C_HELLO = 0, C_QUERY = 1, C_DATA = 2, C_CANCEL = 3, C_PING = 4, C_SCALAR = 7 };
enum { S_HELLO = 0, S_DATA = 1, S_EXCEPTION = 2, S_PROGRESS = 3, S_PONG = 4, S_END = 5, S_PROFILE = 6, S_TOTALS = 7, S_EXTREMES = 8, S_LOG = 10,
       S_COLUMNS = 11, S_PARTS = 12, S_READ_TASK = 13, S_EVENTS = 14, S_TIMEZONE = 17 };
enum { IS_PING = 1, IS_INSERT = 2 };

/* How a type's values lie there, for as many as a slot counts. */
enum op_kind { FIXED, STRINGS, OFFSETS, SPARSE, DICTIONARY, INDEXES };

struct op {
	uint8_t kind, slot, out;  /* out: the slot that OFFSETS, SPARSE and DICTIONARY fill */
	uint8_t jump;             /* DICTIONARY: ops to pass over where there are no rows */
	uint32_t width;
};

struct block {
	enum { FORM, INFO, COLUMN, VALUES, FRAMES } phase;
	uint64_t columns, rows;
	uint64_t slots[SLOTS];    /* 0: always 1; 1: the rows */
	uint64_t left;            /* of the op at hand */
	uint8_t n_ops, at, n_slots;
	bool begun;               /* the op at hand */
	bool sparse;
	uint8_t key_size;
	struct op ops[OPS];
};

struct clickhouse {
	uint64_t revision[2], in_use; /* 0: not known */
	bool greeting;            /* the server's Hello and what follows it, until the client goes on */
	bool addendum, chunked[2];
	bool in_packet[2];        /* of chunks */
	bool parameters;          /* of a query come next */
	struct block *block[2];
	uint8_t strings[2];       /* to pass over */
	bool nested;              /* then comes an exception's last byte */
	bool exception;           /* another exception's body comes */
	int32_t error;            /* of the exception that is being read; 0: none */
};

static bool since(const struct clickhouse *s, unsigned revision)
{
	return !s->in_use || s->in_use >= revision;
}

/* ---- numbers and strings ---- */

struct reader {
	const uint8_t *p;
	size_t n, at;
	bool more, bad;
};

static uint64_t number(struct reader *r)
{
	uint64_t v = 0;

	for (int shift = 0; shift < 64 && !r->more && !r->bad; shift += 7) {
		if (r->at >= r->n) {
			r->more = true;
			return 0;
		}
		v |= (uint64_t)(r->p[r->at] & 0x7f) << shift;
		if (!(r->p[r->at++] & 0x80))
			return v;
	}
	r->bad |= !r->more;
	return 0;
}

static void pass(struct reader *r, uint64_t n)
{
	if (r->bad || r->more)
		return;
	r->more = n > r->n - r->at;
	r->at += r->more ? 0 : (size_t)n;
}

static uint8_t byte(struct reader *r)
{
	size_t at = r->at;

	pass(r, 1);
	return r->bad || r->more ? 0 : r->p[at];
}

/* At *text, its length; passed over. */
static size_t string(struct reader *r, const uint8_t **text, uint64_t most)
{
	uint64_t n = number(r);

	*text = r->p + r->at;
	r->bad |= n > most;
	pass(r, n);
	return r->bad || r->more ? 0 : (size_t)n;
}

static void pass_strings(struct reader *r, int n, uint64_t most)
{
	const uint8_t *text;

	while (n-- > 0)
		string(r, &text, most);
}

static void pass_numbers(struct reader *r, int n)
{
	while (n-- > 0)
		number(r);
}

/* What step says. */
static int64_t read_so_far(const struct reader *r)
{
	return r->bad ? PROTO_LOST : r->more ? PROTO_MORE : (int64_t)r->at;
}

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
	t->b->ops[t->b->n_ops++] = (struct op){.kind = kind, .slot = slot, .out = out, .width = width};
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
	while (t->i < t->n && (byte_is_letter(t->p[t->i]) || byte_is_digit(t->p[t->i]) || t->p[t->i] == '_' || t->p[t->i] == '.'))
		t->i++;
	return t->i - from;
}

/* What stands in parentheses, to their end or (`comma`) to the first comma among them. */
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

/* In front of an element's type may stand its name. */
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
	if (!word(t, &at) || t->i + 1 >= t->n || t->p[t->i] != ' ' || !byte_is_letter(t->p[t->i + 1]))
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

	if (!nullable) /* else its first key stands for NULL */
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

/* A type of so many bytes each; 0: it is none. */
static uint32_t fixed_width(const uint8_t *p, size_t n)
{
	static const struct {
		const char *name;
		uint32_t width;
	} known[] = {{"UInt8", 1}, {"Int8", 1}, {"Bool", 1}, {"Enum8", 1}, {"Nothing", 1}, {"UInt16", 2}, {"Int16", 2}, {"Date", 2}, {"Enum16", 2},
		     {"BFloat16", 2}, {"UInt32", 4}, {"Int32", 4}, {"Float32", 4}, {"DateTime", 4}, {"Date32", 4}, {"IPv4", 4}, {"Time", 4},
		     {"Decimal32", 4}, {"UInt64", 8}, {"Int64", 8}, {"Float64", 8}, {"DateTime64", 8}, {"Decimal64", 8}, {"Time64", 8}, {"UUID", 16},
		     {"IPv6", 16}, {"Int128", 16}, {"UInt128", 16}, {"Decimal128", 16}, {"Int256", 32}, {"UInt256", 32}, {"Decimal256", 32}};

	for (size_t i = 0; i < sizeof(known) / sizeof(*known); i++)
		if (strlen(known[i].name) == n && !memcmp(known[i].name, p, n))
			return known[i].width;
	return n > 8 && !memcmp(p, "Interval", 8) ? 8 : 0;
}

/* Point is two numbers; the others are arrays of each other. */
static unsigned geometry(const uint8_t *p, size_t n)
{
	static const char *const names[] = {"Point", "Ring", "LineString", "Polygon", "MultiLineString", "MultiPolygon"};
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
	v = is(p, n, "FixedString") ? argument(t) : is(p, n, "Decimal") ? decimal_width(argument(t)) : fixed_width(p, n);
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

static bool is_frame(const uint8_t *p, size_t n)
{
	return n >= FRAME_HEAD && (p[16] == 0x02 || p[16] == 0x82 || p[16] == 0x90) && le32(p + 17) >= 9 && le32(p + 17) < STRING_MAX &&
	       le32(p + 21) < STRING_MAX;
}

static bool is_plain(const uint8_t *p, size_t n)
{
	return n >= 8 && p[0] == 1 && p[1] <= 1 && p[2] == 2 && (p[7] == 0 || p[7] == 3);
}

static int64_t form(struct block *b, const uint8_t *p, size_t n, bool last)
{
	if (is_plain(p, n)) {
		b->phase = INFO;
		return 7;
	}
	if (is_frame(p, n)) {
		b->phase = FRAMES;
		b->rows = 1; /* a frame comes */
		return 0;
	}
	return n < FRAME_HEAD && !last ? PROTO_MORE : PROTO_LOST;
}

static int64_t info(struct block *b, const uint8_t *p, size_t n)
{
	struct reader r = {.p = p, .n = n};
	uint64_t field = number(&r);

	if (field == 3)
		pass(&r, number(&r) * 4);
	else if (field)
		return PROTO_LOST;
	if (field == 3)
		return read_so_far(&r);
	b->columns = number(&r);
	b->rows = number(&r);
	r.bad |= !r.more && (b->columns > ROWS_MAX || b->rows > ROWS_MAX);
	if (!r.more && !r.bad)
		b->phase = COLUMN;
	return read_so_far(&r);
}

static int64_t column(const struct clickhouse *s, struct block *b, const uint8_t *p, size_t n)
{
	struct reader r = {.p = p, .n = n};
	const uint8_t *text;
	uint8_t custom;
	size_t len;

	string(&r, &text, 1 << 16);
	len = string(&r, &text, 1 << 16);
	custom = s->in_use >= 54454 ? byte(&r) : 0;
	b->sparse = custom && byte(&r) == 1;
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

/* Each op: bytes of it (> n: all that is missing is passed over); b->begun is false again when it is done. */
static int64_t strings(struct block *b, const uint8_t *p, size_t n)
{
	size_t at = 0;

	while (b->left) {
		struct reader r = {.p = p + at, .n = n - at};
		uint64_t len = number(&r);

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
		uint64_t v = number(&r);

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
	case STRINGS: return strings(b, p, n);
	case OFFSETS: return offsets(b, o, p, n);
	case SPARSE: return sparse(b, o, p, n);
	case DICTIONARY: return dictionary_head(b, o, p, n);
	case INDEXES: return indexes(b, p, n);
	default: b->begun = false; return (int64_t)(b->left * o->width);
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
	*over = !b->rows && !is_frame(p, n) && (n >= FRAME_HEAD || last || p[0] <= S_TIMEZONE);
	if (*over)
		return 0;
	if (!is_frame(p, n))
		return n < FRAME_HEAD && !last ? PROTO_MORE : PROTO_LOST;
	b->rows = 0;
	*over = le32(p + 21) != FRAME_FULL; /* the rest of the frame has nothing that is looked at */
	return 16 + (int64_t)le32(p + 17);
}

static void block_end(struct clickhouse *s, enum proto_side from)
{
	free(s->block[from]);
	s->block[from] = NULL;
}

/* Part of a block. 0 with the block gone: there was nothing more of it. */
static int64_t block_step(struct clickhouse *s, enum proto_side from, const uint8_t *p, size_t n, bool last)
{
	struct block *b = s->block[from];
	bool over = false;
	int64_t k = 0;

	if (b->phase == FORM)
		k = form(b, p, n, last);
	if (!k && b->phase == FRAMES)
		k = frames(b, p, n, last, &over);
	else if (!k && b->phase == INFO)
		k = info(b, p, n);
	else if (!k && b->phase == COLUMN)
		k = column(s, b, p, n);
	else if (!k && b->phase == VALUES)
		k = values(b, p, n);
	if (b->phase == VALUES && b->at >= b->n_ops)
		b->phase = COLUMN;
	if (over || (b->phase == COLUMN && !b->columns && k > 0))
		block_end(s, from);
	return k;
}

static int64_t block_begin(struct clickhouse *s, enum proto_side from, const uint8_t *p, size_t n)
{
	struct reader r = {.p = p, .n = n, .at = 1};

	pass_strings(&r, 1, 4096);
	if (!r.more && !r.bad)
		s->block[from] = mem_alloc(sizeof(*s->block[from]));
	return read_so_far(&r);
}

/* ---- the client ---- */

struct query {
	const uint8_t *text;
	size_t len;               /* of which are there */
	uint64_t whole;
	const uint8_t *trace;
	uint64_t revision;        /* the client's own */
	size_t end;               /* what comes before the text */
};

static void client_info(struct reader *r, const struct clickhouse *s, struct query *q, bool with_time)
{
	uint8_t kind = byte(r), via;

	if (!kind || r->more)
		return;
	r->bad |= kind > 2;
	pass_strings(r, 3, 4096);
	if (with_time)
		pass(r, 8);
	via = byte(r);
	r->bad |= !r->more && (via < 1 || via > 8);
	if (via == 2) {
		byte(r);
		pass_strings(r, 1 + since(s, 54443) + since(s, 54447), 1 << 16);
	} else {
		pass_strings(r, 3, 4096);
		pass_numbers(r, 2);
		q->revision = number(r);
	}
	if (since(s, 54060))
		pass_strings(r, 1, 4096);
	if (since(s, 54448))
		number(r);
	if (since(s, 54401) && via != 2)
		number(r);
	if (since(s, 54442) && byte(r) == 1) {
		q->trace = r->p + r->at;
		pass(r, 24);
		pass_strings(r, 1, 4096);
		byte(r);
	}
	if (since(s, 54453))
		pass_numbers(r, 3);
	if (s->in_use >= 54475)
		pass_numbers(r, 2);
	if (s->in_use >= 54476 && byte(r))
		pass_strings(r, 1, 1 << 14);
}

static void settings(struct reader *r, const struct clickhouse *s)
{
	while (!r->more && !r->bad) {
		const uint8_t *name;

		if (!string(r, &name, 4096))
			return;
		number(r); /* flags; before 54429: the value of most */
		if (since(s, 54429))
			pass_strings(r, 1, 1 << 16);
	}
}

/* A query up to the length of its text; what is there of the text. */
static int64_t query_read(const struct clickhouse *s, const uint8_t *p, size_t n, bool with_time, struct query *q)
{
	struct reader r = {.p = p, .n = n, .at = 1};

	*q = (struct query){0};
	pass_strings(&r, 1, 256);
	client_info(&r, s, q, with_time);
	settings(&r, s);
	pass_strings(&r, (s->in_use >= 54472) + since(s, 54441), 1 << 16);
	r.bad |= number(&r) > 16;
	r.bad |= number(&r) > 1;
	q->whole = number(&r);
	r.bad |= q->whole > STRING_MAX;
	if (r.more || r.bad)
		return read_so_far(&r);
	q->text = p + r.at;
	q->len = q->whole < n - r.at ? (size_t)q->whole : n - r.at;
	q->end = r.at;
	return (int64_t)(r.at + q->whole);
}

/* A format's data may follow in the text. */
static size_t without_data(const uint8_t *p, size_t n)
{
	const uint8_t *at = memmem(p, n, " FORMAT ", 8);
	size_t i;

	at = at ? at : memmem(p, n, " format ", 8);
	if (!at || n < 6 || (memcmp(p, "INSERT", 6) && memcmp(p, "insert", 6)))
		return n;
	for (i = (size_t)(at - p) + 8; i < n && (byte_is_letter(p[i]) || byte_is_digit(p[i])); i++)
		;
	return i;
}

static void keep_trace(struct proto_pending *q, const uint8_t *id)
{
	char hex[33];

	/* two halves of 64 bits, the upper one first, as the server and ch-go have them */
	snprintf(hex, sizeof(hex), "%016llx%016llx", (unsigned long long)le64(id), (unsigned long long)le64(id + 8));
	proto_trace(q, (const uint8_t *)hex, 32);
}

static int64_t query(struct proto_conn *c, struct clickhouse *s, const uint8_t *p, size_t n, bool last)
{
	struct proto_pending *asked;
	char sql[SQL_MAX];
	struct query q;
	size_t see;
	int64_t k = query_read(s, p, n, s->in_use ? s->in_use >= 54449 : true, &q);

	if (k < 0 && !s->in_use)
		k = query_read(s, p, n, false, &q);
	if (k <= 0)
		return k;
	if (q.len < q.whole && q.len < PROTO_LOOK && !last)
		return PROTO_MORE;
	if (!s->in_use)
		s->in_use = q.revision;
	see = without_data(q.text, q.len < PROTO_LOOK ? q.len : PROTO_LOOK);
	sql_operation(q.text, see, see == q.len && q.len < q.whole, SQL_CLICKHOUSE, proto_payload(c), sql);
	asked = proto_ask(c, proto_name(c, *sql ? sql : "(empty)", *sql ? strlen(sql) : 7), 0);
	asked->tag = q.len >= 6 && (!memcmp(q.text, "INSERT", 6) || !memcmp(q.text, "insert", 6)) ? IS_INSERT : 0;
	if (q.trace)
		keep_trace(asked, q.trace);
	s->parameters = s->in_use >= 54459;
	return k;
}

static int64_t client_hello(struct proto_conn *c, struct clickhouse *s, const uint8_t *p, size_t n)
{
	struct reader r = {.p = p, .n = n, .at = 1};
	uint64_t revision;

	pass_strings(&r, 1, 128);
	pass_numbers(&r, 2);
	revision = number(&r);
	pass_strings(&r, 3, 1 << 14);
	if (r.more || r.bad)
		return read_so_far(&r);
	s->revision[PROTO_CLIENT] = revision;
	proto_ask(c, proto_name(c, "CONNECT", 7), 0);
	return (int64_t)r.at;
}

/* What the client adds once it knows the server's revision. */
static int64_t addendum(struct clickhouse *s, const uint8_t *p, size_t n)
{
	struct reader r = {.p = p, .n = n};
	bool chunked[2] = {false, false};

	pass_strings(&r, 1, 4096);
	for (int i = 0; i < 2 && s->in_use >= 54470; i++) { /* what the client sends, what it receives */
		const uint8_t *text;
		size_t len = string(&r, &text, 64);

		chunked[i] = len >= 7 && !memcmp(text, "chunked", 7);
	}
	if (s->in_use >= 54471)
		number(&r);
	if (r.more || r.bad)
		return read_so_far(&r);
	memcpy(s->chunked, chunked, sizeof(chunked));
	s->addendum = false;
	return (int64_t)r.at;
}

/* A query's parameters: name, flags, value, until a name is empty. */
static int64_t parameter(struct clickhouse *s, const uint8_t *p, size_t n)
{
	struct reader r = {.p = p, .n = n};
	const uint8_t *name;

	if (!string(&r, &name, 4096) && !r.more && !r.bad) {
		s->parameters = false;
		return (int64_t)r.at;
	}
	number(&r);
	pass_strings(&r, 1, 1 << 16);
	return read_so_far(&r);
}

static int64_t client(struct proto_conn *c, struct clickhouse *s, const uint8_t *p, size_t n, bool last)
{
	if (s->greeting) {
		s->greeting = false;
		s->addendum = s->in_use >= 54458;
	}
	if (s->addendum)
		return addendum(s, p, n);
	if (s->parameters)
		return parameter(s, p, n);
	switch (p[0]) {
	case C_HELLO: return s->in_use ? PROTO_LOST : client_hello(c, s, p, n);
	case C_QUERY: return query(c, s, p, n, last);
	case C_DATA:
	case C_SCALAR: return block_begin(s, PROTO_CLIENT, p, n);
	case C_CANCEL: return 1;
	case C_PING:
		proto_ask(c, proto_name(c, "PING", 4), 0)->tag = IS_PING;
		return 1;
	default: return PROTO_LOST;
	}
}

/* ---- the server ---- */

static void answer(struct proto_conn *c, enum proto_result result, const char *status)
{
	struct proto_pending *q = proto_oldest(c);

	if (q)
		proto_answer(c, q, result, status);
}

static void answer_error(struct proto_conn *c, struct clickhouse *s)
{
	char code[16];

	snprintf(code, sizeof(code), "%d", s->error);
	s->error = 0;
	s->greeting = false;
	answer(c, PROTO_ERROR, code);
}

static int64_t server_hello(struct proto_conn *c, struct clickhouse *s, const uint8_t *p, size_t n)
{
	struct reader r = {.p = p, .n = n, .at = 1};
	uint64_t revision, client = s->revision[PROTO_CLIENT];

	pass_strings(&r, 1, 128);
	pass_numbers(&r, 2);
	revision = number(&r);
	r.bad |= !r.more && (revision < REVISION_MIN || revision > REVISION_MAX);
	if (r.more || r.bad)
		return read_so_far(&r);
	s->in_use = client && client < revision ? client : revision;
	s->greeting = true;
	answer(c, PROTO_OK, "");
	return (int64_t)r.at;
}

static int64_t exception_begin(struct clickhouse *s, const uint8_t *p, size_t n, size_t at)
{
	if (n < at + 4)
		return PROTO_MORE;
	if (!s->error)
		s->error = (int32_t)le32(p + at);
	s->error = s->error ? s->error : -1;
	s->strings[PROTO_SERVER] = 3;
	s->nested = true;
	s->exception = false;
	return (int64_t)at + 4;
}

static int64_t exception_end(struct proto_conn *c, struct clickhouse *s, uint8_t nested)
{
	s->nested = false;
	s->exception = nested == 1;
	if (!nested)
		answer_error(c, s);
	return nested > 1 ? PROTO_LOST : 1;
}

static int64_t numbers(const struct clickhouse *s, const uint8_t *p, size_t n)
{
	struct reader r = {.p = p, .n = n, .at = 1};

	if (p[0] == S_PROGRESS) {
		pass_numbers(&r, 2 + since(s, 51554) + since(s, 54463) + 2 * since(s, 54420) + since(s, 54460));
	} else {
		pass_numbers(&r, 3);
		byte(&r);
		number(&r);
		byte(&r);
		if (since(s, 54469)) {
			byte(&r);
			number(&r);
		}
	}
	return read_so_far(&r);
}

static int64_t parts(const uint8_t *p, size_t n)
{
	struct reader r = {.p = p, .n = n, .at = 1};
	uint64_t count = number(&r);

	r.bad |= count > ROWS_MAX;
	return r.bad || r.more ? read_so_far(&r) : (int64_t)(r.at + count * 16);
}

static int64_t server(struct proto_conn *c, struct clickhouse *s, const uint8_t *p, size_t n)
{
	struct proto_pending *q = proto_oldest(c);

	if (s->greeting)
		return (int64_t)n; /* what else a Hello holds goes by its revision */
	if (s->nested)
		return exception_end(c, s, p[0]);
	if (s->exception)
		return exception_begin(s, p, n, 0);
	if (q && p[0] != S_COLUMNS && !(p[0] == S_DATA && q->tag == IS_INSERT))
		proto_first_byte(c, q);
	switch (p[0]) {
	case S_HELLO: return s->in_use ? PROTO_LOST : server_hello(c, s, p, n);
	case S_DATA:
	case S_TOTALS:
	case S_EXTREMES:
	case S_LOG:
	case S_EVENTS: return block_begin(s, PROTO_SERVER, p, n);
	case S_EXCEPTION: return exception_begin(s, p, n, 1);
	case S_PROGRESS:
	case S_PROFILE: return numbers(s, p, n);
	case S_PONG:
	case S_END:
		answer(c, PROTO_OK, "");
		return 1;
	case S_COLUMNS:
		if (is_frame(p + 1, n - 1))
			return 17 + (int64_t)le32(p + 18);
		if (n < 1 + FRAME_HEAD && n < 4)
			return PROTO_MORE;
		s->strings[PROTO_SERVER] = 2;
		return 1;
	case S_TIMEZONE: s->strings[PROTO_SERVER] = 1; return 1;
	case S_PARTS: return parts(p, n);
	case S_READ_TASK: return 1;
	default: return PROTO_LOST;
	}
}

/* A packet's first bytes, whose end is known otherwise. */
static void packet(struct proto_conn *c, struct clickhouse *s, enum proto_side from, const uint8_t *p, size_t n)
{
	if (from == PROTO_CLIENT && (p[0] == C_QUERY || p[0] == C_PING)) {
		client(c, s, p, n, true);
		s->parameters = false;
	} else if (from == PROTO_SERVER && (p[0] == S_END || p[0] == S_PONG)) {
		server(c, s, p, n);
	} else if (from == PROTO_SERVER && p[0] == S_EXCEPTION && n >= 5) {
		s->error = (int32_t)le32(p + 1);
		answer_error(c, s);
	} else if (from == PROTO_SERVER && proto_oldest(c)) {
		proto_first_byte(c, proto_oldest(c));
	}
}

/* Chunks: LEN:32 and so many bytes, until one of 0 ends the packet. */
static int64_t chunk(struct proto_conn *c, struct clickhouse *s, enum proto_side from, const uint8_t *p, size_t n, bool last)
{
	size_t see;

	if (n < 4)
		return PROTO_MORE;
	if (le32(p) > STRING_MAX)
		return PROTO_LOST;
	see = le32(p) < 2 * PROTO_LOOK ? le32(p) : 2 * PROTO_LOOK;
	if (see && !s->in_packet[from]) {
		if (n - 4 < see && !last)
			return PROTO_MORE;
		if (n > 4)
			packet(c, s, from, p + 4, n - 4 < see ? n - 4 : see);
	}
	s->in_packet[from] = see;
	return 4 + (int64_t)le32(p);
}

static int64_t clickhouse_step(struct proto_conn *c, enum proto_side from, const uint8_t *p, size_t n, bool last)
{
	struct clickhouse *s = proto_state(c);
	int64_t k;

	if (s->chunked[from] && !s->greeting)
		return chunk(c, s, from, p, n, last);
	if (s->strings[from]) {
		struct reader r = {.p = p, .n = n};
		uint64_t len = number(&r);

		r.bad |= len > STRING_MAX;
		if (r.more || r.bad)
			return read_so_far(&r);
		s->strings[from]--;
		return (int64_t)(r.at + len);
	}
	if (s->block[from]) {
		k = block_step(s, from, p, n, last);
		if (k || s->block[from])
			return k;
	}
	return from == PROTO_CLIENT ? client(c, s, p, n, last) : server(c, s, p, n);
}

static bool is_text(const uint8_t *p, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (p[i] < ' ' && p[i] != '\n' && p[i] != '\t' && p[i] != '\r')
			return false;
	return true;
}

static bool server_begins(const uint8_t *p, size_t n)
{
	switch (p[0]) {
	case S_DATA:
	case S_LOG:
	case S_EVENTS: return n >= 2 + FRAME_HEAD ? !p[1] && (is_plain(p + 2, n - 2) || is_frame(p + 2, n - 2)) : n >= 10 && !p[1] && is_plain(p + 2, n - 2);
	case S_EXCEPTION: return n >= 10 && le32(p + 1) < 10000 && p[5] < 64 && bytes_begin(p + 6, n - 6, "DB::");
	case S_COLUMNS: return n >= 4 && !p[1];
	case S_PROGRESS: return n >= 3 && n < 200;
	case S_PONG:
	case S_END: return n == 1;
	default: return false;
	}
}

static bool client_begins(const struct clickhouse *s, const uint8_t *p, size_t n)
{
	struct query q;

	if (p[0] == C_PING)
		return n == 1;
	if (p[0] == C_QUERY && query_read(s, p, n, s->in_use ? s->in_use >= 54449 : true, &q) <= 0 &&
	    (s->in_use || query_read(s, p, n, false, &q) <= 0))
		return false;
	return p[0] == C_QUERY && (!q.revision || (q.revision >= REVISION_MIN && q.revision <= REVISION_MAX)) && q.len && is_text(q.text, q.len);
}

static bool is_hello(const uint8_t *p, size_t n, bool *more)
{
	struct reader r = {.p = p, .n = n, .at = 1};
	const uint8_t *name;
	uint64_t revision;
	size_t len = string(&r, &name, 64);

	r.bad |= p[0] != C_HELLO || (!r.more && (!len || !is_text(name, len)));
	r.bad |= !r.more && number(&r) > 1000;
	r.bad |= !r.more && number(&r) > 1000;
	revision = number(&r);
	r.bad |= !r.more && (revision < REVISION_MIN || revision > REVISION_MAX);
	pass_strings(&r, 3, 1 << 14);
	*more = r.more && !r.bad;
	return !r.more && !r.bad;
}

static enum proto_guess clickhouse_recognise(const struct proto_first *f)
{
	struct clickhouse s = {0};
	bool more = false;

	if (!f->n_client)
		return f->n_server ? PROTO_NO : PROTO_MAYBE;
	if (f->begun)
		return is_hello(f->client, f->n_client, &more) ? PROTO_YES : more ? PROTO_MAYBE : PROTO_NO;
	if (f->client[0] != C_QUERY)
		return PROTO_NO;
	if (!f->n_server)
		return f->n_client < 1024 ? PROTO_MAYBE : PROTO_NO;
	return client_begins(&s, f->client, f->n_client) && server_begins(f->server, f->n_server) ? PROTO_YES : PROTO_NO;
}

static bool clickhouse_starts(struct proto_conn *c, enum proto_side from, const uint8_t *p, size_t n)
{
	const struct clickhouse *s = proto_state(c);

	if (p != c->piece || s->chunked[from])
		return false;
	return from == PROTO_CLIENT ? client_begins(s, p, n) : c->turn && server_begins(p, n);
}

static void clickhouse_lost(struct proto_conn *c, enum proto_side from)
{
	struct clickhouse *s = proto_state(c);

	block_end(s, from);
	s->strings[from] = 0;
	if (from == PROTO_CLIENT) {
		s->addendum = s->parameters = false;
		return;
	}
	s->nested = s->exception = false;
	if (s->error) /* what it says of itself is missing, that it is one is not */
		answer_error(c, s);
}

static void clickhouse_release(struct proto_conn *c)
{
	struct clickhouse *s = proto_state(c);

	block_end(s, PROTO_CLIENT);
	block_end(s, PROTO_SERVER);
}

const struct protocol protocol_clickhouse = {
	.name = "clickhouse",
	.in_order = true,
	.state_size = sizeof(struct clickhouse),
	.recognise = clickhouse_recognise,
	.step = clickhouse_step,
	.starts = clickhouse_starts,
	.lost = clickhouse_lost,
	.release = clickhouse_release,
};
