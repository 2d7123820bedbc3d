/* SPDX-License-Identifier: Apache-2.0 */
#include "loaders/lib/runtimes/v8/v8code.h"

#include <stdlib.h>
#include <string.h>

#include "schema/base/cleanup.h"
#include "schema/base/mem.h"

#define ALIGN        32u
#define BLOCK        4096u
#define HEAD_MAX     256
#define TABLE_MAX    (1u << 20)
#define ARRAY_MAX    (1 << 20)
#define KIND(f)      ((f)&15)
#define WORD         8
#define WEAK         2u /* marks a weak reference, in addition to an object's bit */
#define ENTRY        3  /* numbers of one deoptimisation */
#define SCALES       3u /* of bytecode's operands */
#define PREFIXES     4u /* the first bytecodes: Wide, ExtraWide, twice */
#define BYTECODE_MAX (1u << 20)

#define TURNS 64u /* an address outside of any code is not looked up again for this many stacks */

void v8codes_fresh(struct v8codes *c)
{
	*c = (struct v8codes){0};
}

void v8codes_turn(struct v8codes *c)
{
	if (!(++c->turn % TURNS))
		memset(c->missed, 0, sizeof(c->missed));
}

static enum v8_tier tier_of(const struct v8heap *h, uint32_t flags)
{
	int32_t kind = (int32_t)KIND(flags);

	if (kind == v8_n(h, V8_KIND_BASELINE))
		return V8_TIER_BASELINE;
	if (kind == v8_n(h, V8_KIND_MAGLEV))
		return V8_TIER_MAGLEV;
	if (kind == v8_n(h, V8_KIND_TURBOFAN))
		return V8_TIER_TURBOFAN;
	return kind == v8_n(h, V8_KIND_INTERPRETED) ? V8_TIER_INTERPRETED : V8_TIER_OTHER;
}

/* Is the object at `head` code whose instructions `pc` lies in? */
static bool code_read(struct v8heap *h, uint64_t head, uint64_t pc, struct v8_code *out)
{
	bool own = v8_n(h, V8_STREAM_CODE) == V8_ABSENT;
	uint64_t object = head + 1, start = head + (uint64_t)v8_n(h, V8_STREAM_HEAD), said = start;
	uint32_t size = 0, flags = 0;

	out->head = head;
	out->code = object;
	if (!v8_is(h, object, own ? V8_TYPE_CODE : V8_TYPE_STREAM))
		return false;
	if (!own && (!v8_word(h, object, v8_n(h, V8_STREAM_CODE), &out->code) ||
		     !v8_is(h, out->code, V8_TYPE_CODE)))
		return false;
	if (v8_n(h, V8_CODE_START) != V8_ABSENT &&
	    !v8_word(h, out->code, v8_n(h, V8_CODE_START), &said))
		return false;
	if (said != start || !v8_half(h, out->code, v8_n(h, V8_CODE_SIZE), &size) ||
	    size > V8_CODE_MAX || !v8_half(h, out->code, v8_n(h, V8_CODE_FLAGS), &flags))
		return false;
	out->start = start;
	out->end = start + size;
	out->tier = tier_of(h, flags);
	return pc >= start && pc < out->end;
}

/* Heads that begin within [from, from + BLOCK), from the last on. `block` has their first words,
 * and nothing else. */
static bool block_search(struct v8heap *h, struct v8codes *c, uint64_t from, const uint8_t *block,
			 uint64_t pc, struct v8_code *out)
{
	uint64_t first = (uint64_t)v8_n(h, V8_STREAM_HEAD) % ALIGN ?
				 ALIGN - (uint64_t)v8_n(h, V8_STREAM_HEAD) % ALIGN :
				 0;

	for (int64_t at = (int64_t)(BLOCK - ALIGN + first); at >= 0; at -= ALIGN) {
		uint64_t map, head = from + (uint64_t)at;

		if (head + (uint64_t)v8_n(h, V8_STREAM_HEAD) > pc || at + WORD > (int64_t)BLOCK)
			continue;
		memcpy(&map, block + at, sizeof(map));
		if (!v8_is_object(map) || map >> 47 || (c->map && map != c->map) ||
		    !code_read(h, head, pc, out))
			continue;
		c->map = map;
		return true;
	}
	return false;
}

static bool search(struct v8heap *h, struct v8codes *c, uint64_t pc, struct v8_code *out)
{
	uint8_t block[BLOCK];
	uint64_t from = pc & ~(uint64_t)(BLOCK - 1);

	for (unsigned i = 0; i <= V8_CODE_MAX / BLOCK && from >= BLOCK; i++, from -= BLOCK)
		if (!h->m->read(h->m->ctx, from, block, BLOCK))
			return false;
		else if (block_search(h, c, from, block, pc, out))
			return true;
	return false;
}

/* Is it still there? */
static bool kept_is(struct v8heap *h, struct v8codes *c, unsigned i, uint64_t pc)
{
	if (c->sure[i] != c->turn) {
		struct v8_code now;

		if (!code_read(h, c->kept[i].head, pc, &now)) {
			c->kept[i] = (struct v8_code){0};
			return false;
		}
		c->kept[i] = now;
		c->sure[i] = c->turn;
	}
	return pc < c->kept[i].end;
}

bool v8code_find(struct v8heap *h, struct v8codes *c, uint64_t pc, struct v8_code *out)
{
	uint64_t *missed = &c->missed[pc * 0x9e3779b97f4a7c15ull >> 56];
	bool found;

	_Static_assert(V8_MISSED_KEPT == 256, "eight bits");
	if (*missed == pc)
		return false;
	for (unsigned i = 0; i < V8_CODES_KEPT; i++)
		if (pc >= c->kept[i].start && pc < c->kept[i].end && kept_is(h, c, i, pc)) {
			*out = c->kept[i];
			return true;
		}
	found = search(h, c, pc, out);
	if (!found && c->map) { /* another isolate's may have another map */
		c->map = 0;
		found = search(h, c, pc, out);
	}
	if (found) {
		c->sure[c->next % V8_CODES_KEPT] = c->turn;
		c->kept[c->next++ % V8_CODES_KEPT] = *out;
	} else {
		*missed = pc;
	}
	return found;
}

/* ---- baseline ---- */

static uint8_t *table_read(struct v8heap *h, const struct v8_code *code, size_t *len)
{
	uint64_t table = 0;

	return v8_word(h, code->code, v8_n(h, V8_CODE_POSITIONS), &table) ?
		       v8_bytes(h, table, TABLE_MAX, len) :
		       NULL;
}

/* The offset of the n-th instruction of bytecode. */
static int64_t instruction_offset(struct v8heap *h, uint64_t bytecodes, int64_t n)
{
	uint8_t sizes[SCALES * 256];
	cleanup_free uint8_t *code = NULL;
	uint32_t count = h->l.bytecodes, at = 0;
	uint64_t tagged = 0;
	int64_t len = 0;

	if (!count || count > 256 ||
	    !h->m->read(h->m->ctx, h->l.bytecode_sizes, sizes, (size_t)SCALES * count) ||
	    !v8_word(h, bytecodes, v8_n(h, V8_BYTECODES_LENGTH), &tagged) ||
	    !v8_small(tagged, &len) || len <= 0 || len > (int64_t)BYTECODE_MAX)
		return V8_NOWHERE;
	code = mem_alloc((size_t)len);
	if (!h->m->read(h->m->ctx, bytecodes - 1 + (uint64_t)v8_n(h, V8_BYTECODES_DATA), code,
			(size_t)len))
		return V8_NOWHERE;
	for (; n && at < (uint64_t)len; n--) {
		uint32_t prefix = code[at] < PREFIXES, scale = prefix ? 1 + (code[at] & 1u) : 0,
			 op = at + prefix < (uint64_t)len ? code[at + prefix] : 256;

		if (op >= count || !sizes[scale * count + op])
			return V8_NOWHERE;
		at += prefix + sizes[scale * count + op];
	}
	return at < (uint64_t)len ? (int64_t)at : V8_NOWHERE;
}

int64_t v8code_baseline(struct v8heap *h, const struct v8_code *code, uint64_t bytecodes,
			uint64_t pc)
{
	size_t len = 0;
	cleanup_free uint8_t *table = table_read(h, code, &len);
	int64_t n = table ? v8_baseline_find(table, len, pc - code->start) : V8_NOWHERE;

	return n < 0 ? V8_NOWHERE : instruction_offset(h, bytecodes, n);
}

/* ---- optimised ---- */

/* An element of an array; of whatever kind, they are laid out alike. */
static bool element(struct v8heap *h, uint64_t array, int64_t i, uint64_t *out)
{
	uint64_t tagged = 0;
	int64_t length = 0;

	return v8_is_object(array) && v8_word(h, array, v8_n(h, V8_ARRAY_LENGTH), &tagged) &&
	       v8_small(tagged, &length) && i >= 0 && i < length && length < ARRAY_MAX &&
	       v8_word(h, array, v8_n(h, V8_ARRAY_DATA) + (int32_t)i * WORD, out);
}

static int64_t deopt_index(struct v8heap *h, const struct v8_code *code, uint64_t pc)
{
	uint8_t head[16];
	cleanup_free uint8_t *bytes = NULL;
	bool maglev = code->tier == V8_TIER_MAGLEV;
	enum v8_shape shape = (enum v8_shape)v8_n(h, V8_SHAPE);
	size_t len;

	if (!h->m->read(h->m->ctx, code->end, head, sizeof(head)))
		return V8_NOWHERE;
	len = v8_safepoint_size(shape, maglev, head);
	if (!len || len > TABLE_MAX)
		return V8_NOWHERE;
	len = len < sizeof(head) ? sizeof(head) : len;
	bytes = mem_alloc(len);
	return h->m->read(h->m->ctx, code->end, bytes, len) ?
		       v8_safepoint_find(shape, maglev, bytes, len, (uint32_t)(pc - code->start)) :
		       V8_NOWHERE;
}

/* The function that DeoptimizationData is of. */
static uint64_t own_function(struct v8heap *h, uint64_t data)
{
	uint64_t own = 0;

	if (!element(h, data, v8_n(h, V8_DEOPT_SHARED), &own))
		return 0;
	if (!v8_is(h, own, V8_TYPE_SHARED) && v8_n(h, V8_WRAPPED_SHARED) != V8_ABSENT &&
	    v8_is_object(own))
		v8_word(h, own, v8_n(h, V8_WRAPPED_SHARED), &own);
	return own;
}

uint64_t v8code_own(struct v8heap *h, const struct v8_code *code)
{
	uint64_t data = 0, own = v8_word(h, code->code, v8_n(h, V8_CODE_DEOPT), &data) ?
					 own_function(h, data) :
					 0;

	return v8_is(h, own, V8_TYPE_SHARED) ? own : 0;
}

bool v8code_is_baseline_of(struct v8heap *h, const struct v8_code *code, uint64_t shared)
{
	uint64_t data = 0;

	if (!v8_word(h, shared, v8_n(h, V8_SHARED_DATA), &data))
		return false;
	if (v8_is(h, data, V8_TYPE_BASELINE) && !v8_word(h, data, WORD, &data))
		return false;
	return data == code->code;
}

static size_t frames_read(struct v8heap *h, uint64_t data, int64_t index,
			  struct v8_inlined frames[V8_INLINED_MAX])
{
	uint64_t tagged = 0, translations = 0;
	int64_t at = 0;
	cleanup_free uint8_t *bytes = NULL;
	size_t len = 0;

	if (!element(h, data, v8_n(h, V8_DEOPT_FIRST) + index * ENTRY + 1, &tagged) ||
	    !v8_small(tagged, &at) || at < 0 ||
	    !element(h, data, v8_n(h, V8_DEOPT_TRANSLATIONS), &translations))
		return 0;
	bytes = v8_bytes(h, translations, TABLE_MAX, &len);
	return bytes ? v8_translation_read((enum v8_shape)v8_n(h, V8_SHAPE), bytes, len, (size_t)at,
					   frames) :
		       0;
}

size_t v8code_functions(struct v8heap *h, uint64_t data, const struct v8_inlined *frames, size_t n,
			struct v8_function *out)
{
	uint64_t literals = 0;
	size_t said = 0;

	if (!element(h, data, v8_n(h, V8_DEOPT_LITERALS), &literals))
		return 0;
	for (size_t i = 0; i < n; i++) {
		struct v8_function f = {.bytecode = frames[i].builtin ? V8_NOWHERE :
									frames[i].bytecode};

		if (!element(h, literals, frames[i].literal, &f.shared))
			return 0;
		f.shared &= ~(uint64_t)WEAK;
		if (!v8_is(h, f.shared, V8_TYPE_SHARED))
			return 0;
		/* Maglev says of a builtin that goes on later the function that has called it */
		if (!frames[i].builtin ||
		    !v8_member(h, f.shared, v8_n(h, V8_SHARED_SCRIPT), V8_TYPE_SCRIPT))
			out[said++] = f;
	}
	return said;
}

size_t v8code_inlined(struct v8heap *h, const struct v8_code *code, uint64_t shared, uint64_t pc,
		      struct v8_function out[V8_INLINED_MAX])
{
	struct v8_inlined frames[V8_INLINED_MAX];
	uint64_t data = 0;
	int64_t index = deopt_index(h, code, pc);
	size_t n;

	if (index < 0 || index > ARRAY_MAX ||
	    !v8_word(h, code->code, v8_n(h, V8_CODE_DEOPT), &data) ||
	    own_function(h, data) != shared)
		return 0;
	n = v8code_functions(h, data, frames, frames_read(h, data, index, frames), out);
	return n && out[0].shared == shared ? n : 0;
}

size_t v8code_optimised(struct v8heap *h, const struct v8_code *code, uint64_t shared, uint64_t pc,
			size_t at, struct script_stack *out)
{
	struct v8_function functions[V8_INLINED_MAX];
	size_t n = v8code_inlined(h, code, shared, pc, functions);

	for (size_t i = n; i-- > 0;)
		v8_frame_add(h, functions[i].shared, functions[i].bytecode, at, out);
	return n;
}
