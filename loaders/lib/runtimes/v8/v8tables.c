/* SPDX-License-Identifier: Apache-2.0 */
#include "loaders/lib/runtimes/v8/v8tables.h"

#include <string.h>

#define STEPS_MAX   (1u << 20)
#define ENTRIES_MAX (1u << 20)

struct bytes {
	const uint8_t *data;
	size_t len, at;
};

/* V; false: cut off. */
static bool number(struct bytes *b, uint64_t *out)
{
	unsigned shift = 0;

	for (*out = 0; b->at < b->len && shift < 64; shift += 7) {
		uint8_t byte = b->data[b->at++];

		*out |= (uint64_t)(byte & 0x7f) << shift;
		if (byte < 0x80)
			return true;
	}
	return false;
}

static int64_t zigzag(uint64_t v)
{
	return (int64_t)(v >> 1) ^ -(int64_t)(v & 1);
}

static int32_t sign_low(uint64_t v)
{
	int32_t n = (int32_t)(v >> 1 & INT32_MAX);

	return v & 1 ? -n : n;
}

/* ---- 1 ---- */

/* How far the code has gone since the entry before. */
static int64_t code_step(enum v8_shape shape, uint64_t v)
{
	int64_t step;

	v &= UINT32_MAX;
	if (shape >= V8_SHAPE_14)
		return (int64_t)(v >> 2);
	step = zigzag(v);
	return step < 0 ? -(step + 1) : step;
}

int64_t v8_position_find(enum v8_shape shape, const uint8_t *table, size_t len, uint32_t at)
{
	struct bytes b = {table, len, 0};
	uint64_t position = 0, v = 0;
	int64_t code = -1, found = V8_NOWHERE;

	while (b.at < b.len) {
		if (!number(&b, &v))
			return V8_NOWHERE;
		code += code_step(shape, v);
		if (!number(&b, &v))
			return V8_NOWHERE;
		position += (uint64_t)zigzag(v);
		if (code > at || code > UINT32_MAX)
			break;
		found = position & 1 ? V8_NOWHERE : (int64_t)(position >> 1 & INT32_MAX) - 1;
	}
	return found;
}

/* ---- 2 ---- */

int64_t v8_baseline_find(const uint8_t *table, size_t len, uint64_t pc)
{
	struct bytes b = {table, len, 0};
	uint64_t end = 0, v = 0;

	for (int64_t n = -1; n < STEPS_MAX && number(&b, &v); n++) {
		end += v & UINT32_MAX;
		if (pc <= end)
			return n < 0 ? V8_NOWHERE : n;
	}
	return V8_NOWHERE;
}

/* ---- 3 ---- */

struct safepoints {
	uint32_t n, entry, slots;
	unsigned head, pc_bytes, index_bytes;
	bool deopt;
};

static uint32_t u32_at(const uint8_t *p)
{
	uint32_t v;

	memcpy(&v, p, sizeof(v));
	return v;
}

static bool safepoints_head(enum v8_shape shape, bool maglev, const uint8_t *head,
			    struct safepoints *s)
{
	unsigned first = shape >= V8_SHAPE_13 ? 4 : 0;
	uint32_t how = u32_at(head + first + 4);

	*s = (struct safepoints){.n = u32_at(head + first), .head = maglev ? 16 : first + 8};
	if (!s->n || s->n > ENTRIES_MAX)
		return false;
	if (shape == V8_SHAPE_9) {
		s->entry = 12;
		return how < 4096;
	}
	s->deopt = how & 1;
	s->pc_bytes = how >> 4 & 7;
	s->index_bytes = how >> 7 & 7;
	s->slots = maglev ? 0 : how >> 10;
	s->entry = s->pc_bytes + (s->deopt ? s->pc_bytes + s->index_bytes : 0) + (how >> 1 & 7) +
		   maglev;
	return s->pc_bytes && s->pc_bytes <= 4 && s->index_bytes <= 4;
}

size_t v8_safepoint_size(enum v8_shape shape, bool maglev, const uint8_t head[16])
{
	struct safepoints s;

	return safepoints_head(shape, maglev, head, &s) ? s.head + (size_t)s.n * s.entry : 0;
}

static uint32_t read_bytes(const uint8_t *p, unsigned n)
{
	uint32_t v = 0;

	for (unsigned i = 0; i < n; i++)
		v |= (uint32_t)p[i] << 8 * i;
	return v;
}

/* 9.4: the information's bits from the lowest: an index for deoptimising and 1, 24 bits... */
static int64_t entry_9(const uint8_t *e, uint32_t pc)
{
	uint32_t trampoline = u32_at(e + 8), index = u32_at(e + 4);

	return u32_at(e) == pc || (trampoline != UINT32_MAX && trampoline == pc) ?
		       (int64_t)(int32_t)index :
		       -2;
}

/* -2: another one's. */
static int64_t entry_of(const struct safepoints *s, const uint8_t *e, uint32_t pc)
{
	uint32_t own = read_bytes(e, s->pc_bytes), index, trampoline;

	if (!s->deopt)
		return own == pc ? V8_NOWHERE : -2;
	index = read_bytes(e + s->pc_bytes, s->index_bytes);
	trampoline = read_bytes(e + s->pc_bytes + s->index_bytes, s->pc_bytes);
	return own == pc || (trampoline && trampoline - 1 == pc) ? (int64_t)index - 1 : -2;
}

int64_t v8_safepoint_find(enum v8_shape shape, bool maglev, const uint8_t *bytes, size_t len,
			  uint32_t pc)
{
	struct safepoints s;

	if (len < 16 || !safepoints_head(shape, maglev, bytes, &s) ||
	    s.head + (size_t)s.n * s.entry > len)
		return V8_NOWHERE;
	for (uint32_t i = 0; i < s.n; i++) {
		const uint8_t *e = bytes + s.head + (size_t)i * s.entry;
		int64_t index = shape == V8_SHAPE_9 ? entry_9(e, pc) : entry_of(&s, e, pc);

		if (index != -2)
			return index;
	}
	return V8_NOWHERE;
}

/* ---- 4 ---- */

/* Of each opcode how many operands it has, and what it is: v a value, F a frame, J one of
 * JavaScript, C a builtin's of JavaScript, B begin, M as before. Source: V8's
 * src/deoptimizer/translation-opcode.h of that version. */
static const struct opcodes {
	const char *operands, *kinds;
} OPCODES[] = {
	[V8_SHAPE_9] = {"2103113131111111115334111112", "FvvBvvFvFvvvvvvvvvJCCFvvvvvv"},
	[V8_SHAPE_10] = {"2103113131111111115334111112", "FvvBvvFvFvvvvvvvvvJCCFvvvvvv"},
	[V8_SHAPE_11] = {"103311313111112111111115333401111121",
			 "vvBBvvFvFvvvvvFvvvvvvvvJJCCFvvvvvvvM"},
	[V8_SHAPE_12] = {"53332134321033111111111111111111011111"
			 "21",
			 "JJCCFFFFFFvvBBvvvvvvvvvvvvvvvvvvvvvvvv"
			 "vM"},
	[V8_SHAPE_13] = {"643321343331003311101111111111111111101111121",
			 "JJCCFFFFFFFvvvBBvvvvvvvvvvvvvvvvvvvvvvvvvvvvM"},
	[V8_SHAPE_14] = {"643321343331003311101111111111111111101111121",
			 "JJCCFFFFFFFvvvBBvvvvvvvvvvvvvvvvvvvvvvvvvvvvM"},
};

struct translation {
	struct bytes b;
	const struct opcodes *of;
	unsigned n;    /* opcodes */
	bool plain;    /* 9, 10: opcodes are numbered differently, and none means "as before" */
	size_t before; /* in the one before */
	bool has_before;
	uint32_t left; /* opcodes to take from there, and 1 */
	uint32_t since;
};

static bool skip(struct bytes *b, unsigned operands)
{
	uint64_t v;

	while (operands--)
		if (!number(b, &v))
			return false;
	return true;
}

/* An opcode of the one before. */
static bool before_opcode(struct translation *t, unsigned *op)
{
	if (!t->has_before || t->before >= t->b.at)
		return false;
	*op = t->b.data[t->before++];
	return *op < t->n && t->of->kinds[*op] != 'M';
}

static bool before_skip(struct translation *t, uint32_t opcodes)
{
	for (; opcodes; opcodes--) {
		struct bytes b = t->b;
		unsigned op;

		if (!before_opcode(t, &op))
			return false;
		b.at = t->before;
		if (!skip(&b, (unsigned)(t->of->operands[op] - '0')))
			return false;
		t->before = b.at;
	}
	return true;
}

static bool next_opcode(struct translation *t, unsigned *op)
{
	uint64_t v = 0;

	if (t->plain) {
		if (!number(&t->b, &v) || v & 1)
			return false;
		*op = (unsigned)(v >> 1 & 0xff);
		return *op < t->n;
	}
	if (t->left && --t->left)
		return before_opcode(t, op);
	if (t->b.at >= t->b.len)
		return false;
	*op = t->b.data[t->b.at++];
	if (*op >= t->n) {
		t->left = *op - t->n;
	} else if (t->of->kinds[*op] == 'M') {
		if (!number(&t->b, &v) || v > UINT32_MAX)
			return false;
		t->left = (uint32_t)v;
	} else {
		t->since++;
		return true;
	}
	if (!t->left || !before_skip(t, t->since))
		return false;
	t->since = 0;
	return before_opcode(t, op);
}

static bool next_operand(struct translation *t, uint64_t *v)
{
	struct bytes b = t->b;

	if (!t->left)
		return number(&t->b, v);
	b.at = t->before;
	if (!number(&b, v))
		return false;
	t->before = b.at;
	return true;
}

/* How many frames follow; 0: it is no begin. */
static uint32_t begin(struct translation *t)
{
	size_t at = t->b.at;
	uint64_t v[3] = {0};
	unsigned op = 0;

	if (!next_opcode(t, &op) || t->of->kinds[op] != 'B')
		return 0;
	for (int i = 0; i < 3; i++)
		if (!next_operand(t, &v[i]))
			return 0;
	if (t->plain)
		return (uint32_t)sign_low(v[0]);
	t->has_before = v[0] && v[0] <= at;
	t->before = at - (size_t)v[0];
	t->since = 1;
	return (v[0] && !t->has_before) ? 0 : (uint32_t)sign_low(v[1]);
}

size_t v8_translation_read(enum v8_shape shape, const uint8_t *bytes, size_t len, size_t at,
			   struct v8_inlined out[V8_INLINED_MAX])
{
	struct translation t = {
		.b = {bytes, len, at}, .of = &OPCODES[shape], .plain = shape < V8_SHAPE_11};
	uint32_t frames, met = 0;
	size_t n = 0;

	t.n = (unsigned)strlen(t.of->operands);
	frames = at < len ? begin(&t) : 0;
	if (!frames || frames > V8_INLINED_MAX)
		return 0;
	while (met < frames) {
		uint64_t v[9] = {0};
		unsigned op = 0, operands;
		char kind;

		if (!next_opcode(&t, &op))
			return 0;
		kind = t.of->kinds[op];
		operands = (unsigned)(t.of->operands[op] - '0');
		for (unsigned i = 0; i < operands; i++)
			if (!next_operand(&t, &v[i]))
				return 0;
		if (kind == 'B')
			return 0;
		met += kind != 'v';
		if (kind == 'J' || kind == 'C')
			out[n++] = (struct v8_inlined){sign_low(v[0]), (uint32_t)sign_low(v[1]),
						       kind == 'C'};
	}
	return n;
}
