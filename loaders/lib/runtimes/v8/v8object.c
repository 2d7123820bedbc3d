/* SPDX-License-Identifier: Apache-2.0 */
#include "loaders/lib/runtimes/v8/v8object.h"

#include <stdlib.h>
#include <string.h>

#include "loaders/lib/runtimes/utf8.h"
#include "loaders/lib/runtimes/v8/v8tables.h"
#include "schema/base/cleanup.h"
#include "schema/base/hash.h"
#include "schema/base/mem.h"
#include "schema/base/strbuf.h"

#define TABLE_MAX  (4u << 20)
#define CHUNK      4096u /* characters */
#define LOCALS_MAX 4096
/* names of context locals that a ScopeInfo has in itself; more are in a table */
#define LOCALS_IN 75
#define WORD      8

/* ScopeInfo's flags */
#define SCOPE_TYPE(f)     ((f)&15)
#define SCOPE_CLASS_SAVED (1 << 10)
#define SCOPE_FUNCTION(f) ((f) >> 12 & 3) /* it has a name */
#define SCOPE_INFERRED    (1 << 14)
#define SCOPE_RECEIVER(f) ((f) >> 7 & 3) /* 1, 2: it is a variable */
/* and functions, modules, scripts have a position; up to 12 */
#define SCOPE_EVAL      1
#define SCOPE_MODULE    3
#define SCOPE_SCRIPT    4
#define SCOPE_MODULE_13 5

/*
 * V8's strings: characters of one byte (Latin-1) or two (UTF-16), stored in the object or
 * elsewhere (external); part of another string (sliced), an alias of another (thin), or two joined
 * (cons).
 */

/* Characters that lie in a row. */
struct v8_text {
	uint64_t at;
	uint32_t length;
	bool wide; /* of two bytes */
};

/* The i-th of characters that were read. */
static inline uint32_t v8_char_at(const uint8_t *raw, size_t i, bool wide)
{
	return wide ? (uint32_t)raw[2 * i] | (uint32_t)raw[2 * i + 1] << 8 : raw[i];
}

#define DEPTH_MAX 16u
#define PARTS_MAX 64u /* of one name */

/* A string's type, its lowest bits */
#define STRING_REPRESENTATION 7
#define STRING_ONE_BYTE       8
#define STRING_UNCACHED       16 /* of an external one: where its characters are is not kept */
enum representation { SEQUENTIAL, CONS, EXTERNAL, SLICED, THIN = 5 };

/* Those that a string leads to; false: none, or it is of two parts. */
static bool v8_text_find(struct v8heap *h, uint64_t string, struct v8_text *t)
{
	uint64_t skip = 0, tagged = 0;
	uint32_t length = 0;
	int64_t n = 0;

	for (unsigned depth = 0; depth < DEPTH_MAX; depth++) {
		int32_t type = v8_type(h, string);

		if (type < 0 || type >= v8_n(h, V8_TYPE_FIRST_NONSTRING) ||
		    !v8_half(h, string, v8_n(h, V8_STRING_LENGTH), &length))
			return false;
		if (!depth)
			t->length = length;
		t->wide = !(type & STRING_ONE_BYTE);
		switch (type & STRING_REPRESENTATION) {
		case SEQUENTIAL:
			t->at = string - 1 + (uint64_t)v8_n(h, V8_STRING_CHARS) +
				skip * (t->wide + 1u);
			return skip + t->length <= length;
		case EXTERNAL:
			if (type & STRING_UNCACHED ||
			    !v8_word(h, string, v8_n(h, V8_EXTERNAL_DATA), &t->at))
				return false;
			t->at += skip * (t->wide + 1u);
			return skip + t->length <= length;
		case CONS: /* one that was made flat: its second part is empty */
			if (!v8_word(h, string, v8_n(h, V8_CONS_SECOND), &tagged) ||
			    !v8_is_object(tagged) ||
			    !v8_half(h, tagged, v8_n(h, V8_STRING_LENGTH), &length) || length ||
			    !v8_word(h, string, v8_n(h, V8_CONS_FIRST), &string))
				return false;
			break;
		case THIN:
			if (!v8_word(h, string, v8_n(h, V8_THIN_ACTUAL), &string))
				return false;
			break;
		case SLICED:
			if (!v8_word(h, string, v8_n(h, V8_SLICED_OFFSET), &tagged) ||
			    !v8_small(tagged, &n) || n < 0 ||
			    !v8_word(h, string, v8_n(h, V8_SLICED_PARENT), &string))
				return false;
			skip += (uint64_t)n;
			break;
		default:
			return false;
		}
	}
	return false;
}

/* Of at most `left` characters; false: it cannot be read. */
static bool text_add(const struct v8heap *h, const struct v8_text *t, size_t left,
		     struct strbuf *to)
{
	uint8_t raw[2 * (SCRIPT_TEXT_MAX + 1)];
	size_t n = t->length < left ? t->length : left;

	if (n && !h->m->read(h->m->ctx, t->at, raw, n * (t->wide + 1u)))
		return false;
	for (size_t i = 0; i < n; i++) {
		uint32_t c = v8_char_at(raw, i, t->wide),
			 low = i + 1 < n ? v8_char_at(raw, i + 1, t->wide) : 0;

		if (c >= 0xd800 && c < 0xdc00 && low >= 0xdc00 && low < 0xe000) {
			c = 0x10000 + ((c - 0xd800) << 10 | (low - 0xdc00));
			i++;
		}
		utf8_add(to, c);
	}
	return true;
}

/* A string, or the parts of a joined one, as UTF-8; own. At most SCRIPT_TEXT_MAX characters, then
 * "...". NULL: not a string. */
static char *v8_string_read(struct v8heap *h, uint64_t string)
{
	uint64_t waiting[DEPTH_MAX] = {string};
	struct strbuf text = STRBUF_INIT;
	size_t n = 1, left = SCRIPT_TEXT_MAX;
	uint32_t length = 0;
	bool good = true;

	if (v8_type(h, string) < 0 || v8_type(h, string) >= v8_n(h, V8_TYPE_FIRST_NONSTRING) ||
	    !v8_half(h, string, v8_n(h, V8_STRING_LENGTH), &length))
		return NULL;
	for (unsigned parts = 0; n && left && good && parts < PARTS_MAX; parts++) {
		uint64_t s = waiting[--n], first = 0, second = 0;
		struct v8_text t = {0};

		if (v8_text_find(h, s, &t)) {
			good = text_add(h, &t, left, &text);
			left -= t.length < left ? t.length : left;
		} else {
			int32_t type = v8_type(h, s);

			good = type >= 0 && type < v8_n(h, V8_TYPE_FIRST_NONSTRING) &&
			       (type & STRING_REPRESENTATION) == CONS && n + 2 <= DEPTH_MAX &&
			       v8_word(h, s, v8_n(h, V8_CONS_FIRST), &first) &&
			       v8_word(h, s, v8_n(h, V8_CONS_SECOND), &second);
			if (good) {
				waiting[n++] = second;
				waiting[n++] = first;
			}
		}
	}
	if (!good || (n && left)) {
		strbuf_release(&text);
		return NULL;
	}
	if (length > SCRIPT_TEXT_MAX)
		strbuf_addstr(&text, "...");
	return strbuf_take(&text);
}

void v8heap_fresh(struct v8heap *h)
{
	h->meta = 0;
}

void v8heap_release(struct v8heap *h)
{
	for (unsigned i = 0; i < V8_SCRIPTS; i++)
		free(h->scripts[i].ends);
}

bool v8_word(const struct v8heap *h, uint64_t object, int32_t offset, uint64_t *out)
{
	return runtime_word(h->m, object - 1 + (uint64_t)(int64_t)offset, out);
}

bool v8_half(const struct v8heap *h, uint64_t object, int32_t offset, uint32_t *out)
{
	return h->m->read(h->m->ctx, object - 1 + (uint64_t)(int64_t)offset, out, sizeof(*out));
}

static int32_t map_type(const struct v8heap *h, uint64_t map)
{
	uint16_t type = 0;

	return h->m->read(h->m->ctx, map - 1 + (uint64_t)v8_n(h, V8_MAP_TYPE), &type,
			  sizeof(type)) ?
		       type :
		       -1;
}

/* The map of maps is its own. */
static bool is_meta(struct v8heap *h, uint64_t meta)
{
	uint64_t own = 0;

	if (h->meta)
		return meta == h->meta;
	if (!v8_is_object(meta) || !v8_word(h, meta, 0, &own) || own != meta ||
	    map_type(h, meta) != v8_n(h, V8_TYPE_MAP))
		return false;
	h->meta = meta;
	return true;
}

int32_t v8_map_type(struct v8heap *h, uint64_t map)
{
	uint64_t meta = 0;

	if (!v8_is_object(map) || !v8_word(h, map, 0, &meta))
		return -1;
	if (!is_meta(h, meta)) {
		/* another isolate of the process may have a different one */
		h->meta = 0;
		if (!is_meta(h, meta))
			return -1;
	}
	return map_type(h, map);
}

int32_t v8_type(struct v8heap *h, uint64_t object)
{
	uint64_t map = 0;

	return v8_is_object(object) && v8_word(h, object, 0, &map) ? v8_map_type(h, map) : -1;
}

bool v8_is(struct v8heap *h, uint64_t object, enum v8_number type)
{
	int32_t is = v8_type(h, object);

	return is >= 0 && is == v8_n(h, type);
}

uint64_t v8_member(struct v8heap *h, uint64_t object, int32_t offset, enum v8_number type)
{
	uint64_t member = 0;

	return v8_word(h, object, offset, &member) && v8_is(h, member, type) ? member : 0;
}

uint8_t *v8_bytes(struct v8heap *h, uint64_t array, size_t max, size_t *len)
{
	int32_t type = v8_type(h, array);
	uint64_t tagged = 0;
	int64_t n = 0;
	uint8_t *bytes;

	if (type < 0 ||
	    (type != v8_n(h, V8_TYPE_BYTES) && type != v8_n(h, V8_TYPE_TRUSTED_BYTES)) ||
	    !v8_word(h, array, v8_n(h, V8_ARRAY_LENGTH), &tagged) || !v8_small(tagged, &n) ||
	    n <= 0 || (size_t)n > max)
		return NULL;
	bytes = mem_alloc((size_t)n);
	*len = (size_t)n;
	if (h->m->read(h->m->ctx, array - 1 + (uint64_t)v8_n(h, V8_ARRAY_DATA), bytes, (size_t)n))
		return bytes;
	free(bytes);
	return NULL;
}

/* ---- lines ---- */

/* Where a line ends: \n, \r that is no part of \r\n, U+2028, U+2029. */
static bool ends_line(uint32_t c, uint32_t next)
{
	return c == '\n' || (c == '\r' && next != '\n') || c == 0x2028 || c == 0x2029;
}

static bool ends_read(struct v8heap *h, const struct v8_text *t, struct v8_script *s)
{
	uint8_t raw[2 * (CHUNK + 1)];

	for (uint32_t at = 0; at < t->length; at += CHUNK) {
		size_t n = t->length - at < CHUNK ? t->length - at : CHUNK,
		       more = at + n < t->length;

		if (!h->m->read(h->m->ctx, t->at + (uint64_t)at * (t->wide + 1u), raw,
				(n + more) * (t->wide + 1u)))
			return false;
		for (size_t i = 0; i < n; i++) {
			if (!ends_line(v8_char_at(raw, i, t->wide),
				       i + 1 < n + more ? v8_char_at(raw, i + 1, t->wide) : 0))
				continue;
			mem_grow(s->ends, s->n, s->cap);
			s->ends[s->n++] = at + (uint32_t)i;
		}
	}
	return true;
}

/* NULL: its lines are not known. */
static const struct v8_script *script_read(struct v8heap *h, uint64_t script)
{
	uint64_t source = 0, tagged = 0, is;
	uint8_t bytes[V8_SCRIPT_BYTES];
	struct v8_script *s;
	struct v8_text t = {0};

	if (!v8_word(h, script, v8_n(h, V8_SCRIPT_SOURCE), &source) ||
	    !h->m->read(h->m->ctx, script - 1, bytes, sizeof(bytes)))
		return NULL;
	is = hash_bytes(HASH_SEED, bytes, sizeof(bytes));
	for (unsigned i = 0; i < V8_SCRIPTS; i++)
		if (h->scripts[i].at == script && h->scripts[i].source == source &&
		    h->scripts[i].is == is)
			return &h->scripts[i];
	if (!v8_text_find(h, source, &t) || t.length > V8_SOURCE_MAX)
		return NULL;
	s = &h->scripts[h->next_script++ % V8_SCRIPTS];
	s->n = 0;
	s->at = 0;
	if (!v8_word(h, script, v8_n(h, V8_SCRIPT_LINE_OFFSET), &tagged) ||
	    !v8_small(tagged, &s->first) || s->first < 0 || !ends_read(h, &t, s))
		return NULL;
	s->at = script;
	s->source = source;
	s->is = is;
	return s;
}

/* 0: not known. */
static uint32_t line_of(struct v8heap *h, uint64_t script, int64_t position)
{
	const struct v8_script *s = position >= 0 ? script_read(h, script) : NULL;
	size_t low = 0, high = s ? s->n : 0;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (s->ends[middle] < position)
			low = middle + 1;
		else
			high = middle;
	}
	return s && s->first + (int64_t)low < INT32_MAX ? (uint32_t)(s->first + (int64_t)low + 1) :
							  0;
}

/* ---- functions ---- */

uint64_t v8_bytecodes(struct v8heap *h, uint64_t shared)
{
	uint64_t data = 0;

	if (!v8_word(h, shared, v8_n(h, V8_SHARED_DATA), &data))
		return 0;
	if (v8_is(h, data, V8_TYPE_BASELINE) &&
	    !v8_word(h, data, v8_n(h, V8_BASELINE_BYTECODES), &data))
		return 0;
	/* baseline: its bytecode is there */
	if (v8_is(h, data, V8_TYPE_CODE) && !v8_word(h, data, v8_n(h, V8_CODE_DEOPT), &data))
		return 0;
	if (v8_is(h, data, V8_TYPE_INTERPRETER) &&
	    !v8_word(h, data, v8_n(h, V8_INTERPRETER_BYTECODES), &data))
		return 0;
	return v8_is(h, data, V8_TYPE_BYTECODES) ? data : 0;
}

/* What a ScopeInfo says of its function. */
struct scope {
	uint64_t name, inferred;
	int64_t start; /* < 0: not known */
};

/* From 13 on they are no small number. */
static bool flags_read(struct v8heap *h, uint64_t info, int64_t *flags)
{
	uint64_t word = 0;

	if (!v8_word(h, info, WORD, &word))
		return false;
	*flags = (int64_t)(word & UINT32_MAX);
	return v8_n(h, V8_SHAPE) >= V8_SHAPE_13 || v8_small(word, flags);
}

/* Next to the names of variables, before that of the function. */
static int64_t slots_before(const struct v8heap *h, int64_t flags)
{
	int32_t shape = v8_n(h, V8_SHAPE);
	bool counted = shape >= V8_SHAPE_12 &&
		       SCOPE_TYPE(flags) == (shape == V8_SHAPE_12 ? SCOPE_MODULE : SCOPE_MODULE_13);
	bool receiver =
		shape == V8_SHAPE_9 && (SCOPE_RECEIVER(flags) == 1 || SCOPE_RECEIVER(flags) == 2);

	return counted + receiver + !!(flags & SCOPE_CLASS_SAVED);
}

static bool scope_read(struct v8heap *h, uint64_t info, struct scope *s)
{
	int32_t at = v8_n(h, V8_SCOPE_FIRST);
	uint64_t word = 0;
	int64_t flags = 0, locals = 0;

	*s = (struct scope){.start = -1};
	if (!flags_read(h, info, &flags) || !v8_word(h, info, v8_n(h, V8_SCOPE_LOCALS), &word) ||
	    !v8_small(word, &locals) || locals < 0 || locals > LOCALS_MAX)
		return false;
	at += WORD * (int32_t)((locals < LOCALS_IN ? locals : 1) + locals + slots_before(h, flags));
	if (SCOPE_FUNCTION(flags)) {
		if (!v8_word(h, info, at, &s->name))
			return false;
		at += 2 * WORD;
	}
	if (flags & SCOPE_INFERRED) {
		if (!v8_word(h, info, at, &s->inferred))
			return false;
		at += WORD;
	}
	if (v8_n(h, V8_SCOPE_START) != V8_ABSENT)
		at = v8_n(h, V8_SCOPE_START);
	else if (SCOPE_TYPE(flags) < SCOPE_EVAL || SCOPE_TYPE(flags) > SCOPE_SCRIPT)
		return true;
	if (!v8_word(h, info, at, &word) || !v8_small(word, &s->start))
		s->start = -1;
	return true;
}

/* own */
static char *name_read(struct v8heap *h, uint64_t shared, struct scope *s)
{
	uint64_t word = 0;
	char *name = NULL;

	*s = (struct scope){.start = -1};
	if (!v8_word(h, shared, v8_n(h, V8_SHARED_NAME), &word))
		return NULL;
	if (v8_is(h, word, V8_TYPE_SCOPE)) {
		if (!scope_read(h, word, s))
			return NULL;
		name = s->name ? v8_string_read(h, s->name) : NULL;
		if ((!name || !*name) && s->inferred) {
			free(name);
			name = v8_string_read(h, s->inferred);
		}
	} else if (v8_is_object(word)) {
		name = v8_string_read(h, word);
	}
	if (name && *name)
		return name;
	free(name);
	return NULL;
}

static int64_t position_of(struct v8heap *h, uint64_t shared, int64_t bytecode)
{
	uint64_t code = bytecode >= 0 && bytecode <= UINT32_MAX ? v8_bytecodes(h, shared) : 0,
		 table = 0;
	cleanup_free uint8_t *bytes = NULL;
	size_t len = 0;

	if (!code || !v8_word(h, code, v8_n(h, V8_BYTECODES_POSITIONS), &table))
		return V8_NOWHERE;
	bytes = v8_bytes(h, table, TABLE_MAX, &len);
	return bytes ? v8_position_find((enum v8_shape)v8_n(h, V8_SHAPE), bytes, len,
					(uint32_t)bytecode) :
		       V8_NOWHERE;
}

void v8_place_read(struct v8heap *h, uint64_t shared, int64_t bytecode, struct script_place *out)
{
	uint64_t script, name = 0;
	struct scope scope;

	*out = (struct script_place){.function = name_read(h, shared, &scope)};
	script = v8_member(h, shared, v8_n(h, V8_SHARED_SCRIPT), V8_TYPE_SCRIPT);
	if (!script)
		return;
	if (!out->function)
		out->function = mem_strdup("(anonymous)");
	if (v8_word(h, script, v8_n(h, V8_SCRIPT_NAME), &name) && v8_is_object(name))
		out->file = v8_string_read(h, name);
	out->line = line_of(h, script, position_of(h, shared, bytecode));
	if (!out->line)
		out->line = line_of(h, script, scope.start);
}

void v8_frame_add(struct v8heap *h, uint64_t shared, int64_t bytecode, size_t at,
		  struct script_stack *out)
{
	struct script_place place;

	v8_place_read(h, shared, bytecode, &place);
	if (place.function)
		script_stack_add(out, at)->place = place;
	else
		script_place_release(&place);
}
