/* SPDX-License-Identifier: Apache-2.0 */
#include "loaders/lib/runtimes/rubycode.h"

#include <stdlib.h>
#include <string.h>

#include "schema/base/cleanup.h"
#include "schema/base/mem.h"
#include "schema/base/strbuf.h"

#define TEXT_MAX (1u << 20)

static bool word(const struct rubycode *c, uint64_t addr, uint64_t *value)
{
	return runtime_word(c->m, addr, value);
}

static bool half(const struct rubycode *c, uint64_t addr, uint32_t *value)
{
	return c->m->read(c->m->ctx, addr, value, sizeof(*value));
}

static bool is_of_type(const struct rubycode *c, uint64_t object, unsigned type, uint64_t *flags)
{
	return object && !(object & 7) && word(c, object, flags) &&
	       (*flags & RUBY_TYPE_MASK) == type;
}

/* ---- texts, arrays ---- */

static char *text_read(const struct rubycode *c, uint64_t object)
{
	char bytes[SCRIPT_TEXT_MAX + 4];
	uint64_t flags = 0, length = 0, at = object + c->l->text_short;
	char end = 0;
	size_t n;

	if (!is_of_type(c, object, RUBY_TYPE_STRING, &flags))
		return NULL;
	if (!(flags & RUBY_TEXT_LONG) && !c->l->text_length)
		length = flags >> 14 & 0x1f;
	else if (!word(c, object + RUBY_TEXT_LENGTH, &length))
		return NULL;
	if ((flags & RUBY_TEXT_LONG && !word(c, object + RUBY_TEXT_AT, &at)) || !length ||
	    length > TEXT_MAX)
		return NULL;
	if (!(flags & RUBY_TEXT_LONG) &&
	    (c->m->read(c->m->ctx, at + length, &end, 1) ? end : length < SCRIPT_TEXT_FIRST))
		return NULL;
	n = script_text(c->m, at, length, bytes);
	return !n || strlen(bytes) < n ? NULL : mem_strdup(bytes);
}

static bool array_get(const struct rubycode *c, uint64_t object, uint64_t i, uint64_t *value)
{
	uint64_t flags = 0, length = 0, at = object + RUBY_ARRAY_DATA;

	if (!is_of_type(c, object, RUBY_TYPE_ARRAY, &flags))
		return false;
	if (flags & RUBY_ARRAY_SHORT)
		length = flags >> 15 & (c->l->text_length ? 0x7f : 3);
	else if (!word(c, object + RUBY_TEXT_LENGTH, &length) ||
		 !word(c, object + RUBY_ARRAY_AT, &at))
		return false;
	return i < length && word(c, at + 8 * i, value);
}

/* ---- methods ---- */

/* An id's text, if the table says that it is this id's. */
static char *id_read(const struct rubycode *c, uint64_t id)
{
	uint64_t serial = id > c->l->last_op ? id >> RUBY_ID_SHIFT : id, ids = 0, unit = 0,
		 text = 0, symbol = 0, flags = 0, same = 0;

	if (!c->l->symbols || !word(c, c->l->symbols + c->bias + RUBY_SYMBOLS_IDS, &ids) ||
	    !array_get(c, ids, serial / RUBY_IDS_UNIT, &unit) ||
	    !array_get(c, unit, serial % RUBY_IDS_UNIT * 2, &text) ||
	    !array_get(c, unit, serial % RUBY_IDS_UNIT * 2 + 1, &symbol))
		return NULL;
	if ((symbol & 0xff) == 0x0c)
		same = symbol >> 8;
	else if (!is_of_type(c, symbol, RUBY_TYPE_SYMBOL, &flags) ||
		 !word(c, symbol + RUBY_SYMBOL_ID, &same))
		return NULL;
	return same == id ? text_read(c, text) : NULL;
}

/* "A#" or "A." of a method; NULL: its class has no name, or its version keeps it elsewhere. */
static char *class_read(const struct rubycode *c, uint64_t method)
{
	uint64_t class = 0, flags = 0, path = 0;
	struct strbuf name = STRBUF_INIT;
	cleanup_free char *text = NULL;
	bool own = false;

	if (!c->l->class_path || !word(c, method + RUBY_METHOD_OWNER, &class) || !class ||
	    class & 7 || !word(c, class, &flags))
		return NULL;
	if ((flags & RUBY_TYPE_MASK) == RUBY_TYPE_CLASS && flags & RUBY_USER(c->l->singleton)) {
		own = true;
		if (!word(c, class + RUBY_ATTACHED, &class) || !class || class & 7 ||
		    !word(c, class, &flags))
			return NULL;
	}
	if ((flags & RUBY_TYPE_MASK) != RUBY_TYPE_CLASS &&
	    (flags & RUBY_TYPE_MASK) != RUBY_TYPE_MODULE)
		return NULL;
	text = word(c, class + c->l->class_path, &path) ? text_read(c, path) : NULL;
	if (!text)
		return NULL;
	strbuf_addf(&name, "%s%c", text, own ? '.' : '#');
	return strbuf_take(&name);
}

bool rubycode_method(const struct rubycode *c, uint64_t method, struct script_place *out)
{
	uint64_t def = 0, id = 0;
	struct strbuf text = STRBUF_INIT;
	cleanup_free char *class = NULL;
	cleanup_free char *name = NULL;

	if (!method || !word(c, method + RUBY_METHOD_DEF, &def) ||
	    !word(c, def + RUBY_DEF_NAME, &id))
		return false;
	name = id_read(c, id);
	if (!name)
		return false;
	class = class_read(c, method);
	strbuf_addf(&text, "%s%s", class ? class : "", name);
	*out = (struct script_place){.function = strbuf_take(&text)};
	return true;
}

/* ---- code ---- */

#define IMMEDIATE   54
#define BLOCK_BYTES 80

uint32_t rubycode_row(const struct runtime_memory *m, uint64_t index, uint32_t instruction)
{
	uint64_t block, ranks = 0, bits = 0, at = 0;
	uint32_t rank = 0, bit, word_i;

	if (instruction < IMMEDIATE)
		return runtime_word(m, index + instruction / 9 * 8, &at) ?
			       (uint32_t)(at >> instruction % 9 * 7) & 0x7f :
			       0;
	bit = (instruction - IMMEDIATE) % 512;
	word_i = bit / 64;
	block = index + IMMEDIATE / 9 * 8 +
		(uint64_t)((instruction - IMMEDIATE) / 512) * BLOCK_BYTES;
	if (!m->read(m->ctx, block, &rank, sizeof(rank)) || !runtime_word(m, block + 8, &ranks) ||
	    !runtime_word(m, block + 16 + 8ull * word_i, &bits))
		return 0;
	if (word_i)
		rank += (uint32_t)(ranks >> (word_i - 1) * 9) & 0x1ff;
	return rank + (uint32_t)__builtin_popcountll(bits << (63 - bit % 64));
}

/* What tells the lines of an iseq's instructions. */
struct linetable {
	uint64_t code, rows, index;
	uint32_t size, count;
	uint32_t first, last; /* lines that it can have */
};

static bool linetable_read(const struct rubycode *c, uint64_t body, struct linetable *out)
{
	struct linetable t = {.last = INT32_MAX};

	if (c->l->lines_checked && (!half(c, body + RUBY_BODY_FIRST, &t.first) ||
				    !half(c, body + RUBY_BODY_LAST, &t.last)))
		return false;
	if (!word(c, body + RUBY_BODY_CODE, &t.code) || !half(c, body + RUBY_BODY_SIZE, &t.size) ||
	    !word(c, body + c->l->lines, &t.rows) || !half(c, body + c->l->lines_count, &t.count) ||
	    !t.count || (t.count > 1 && !word(c, body + c->l->lines_index, &t.index)))
		return false;
	*out = t;
	return true;
}

static uint32_t line_of(const struct rubycode *c, const struct linetable *t, uint32_t instruction)
{
	uint32_t row = 1, line = 0;

	instruction -= instruction > 0; /* it says the next one */
	if (t->count > 1)
		row = t->index ? rubycode_row(c->m, t->index, instruction) : 0;
	return row && row <= t->count &&
			       half(c, t->rows + (uint64_t)(row - 1) * c->l->line_size, &line) &&
			       line >= t->first && line <= t->last ?
		       line :
		       0;
}

static uint32_t line_read(const struct rubycode *c, uint64_t body, uint64_t at)
{
	struct linetable t;

	if (!linetable_read(c, body, &t) || at < t.code || (at - t.code) % 8 ||
	    (at - t.code) / 8 > t.size)
		return 0;
	return line_of(c, &t, (uint32_t)((at - t.code) / 8));
}

/* A path, or an array of it and its real path. */
static char *path_read(const struct rubycode *c, uint64_t object)
{
	uint64_t flags = 0;

	if (is_of_type(c, object, RUBY_TYPE_ARRAY, &flags) && !array_get(c, object, 0, &object))
		return NULL;
	return text_read(c, object);
}

/* "block in f" of class A: "block in A#f". */
static char *label_read(const struct rubycode *c, uint64_t label, uint64_t method)
{
	cleanup_free char *text = text_read(c, label);
	cleanup_free char *class = NULL;
	struct strbuf s = STRBUF_INIT;
	const char *name;

	if (!text || !c->l->class_path || !method)
		return take_ptr(text);
	name = strrchr(text, ' ');
	name = name ? name + 1 : text;
	/* "block in <class:A>", of define_method; an operator is a method */
	class = *name == '<' && name[1] >= 'a' && name[1] <= 'z' ? NULL : class_read(c, method);
	if (!class)
		return take_ptr(text);
	strbuf_addf(&s, "%.*s%s%s", (int)(name - text), text, class, name);
	return strbuf_take(&s);
}

bool rubycode_iseq(const struct rubycode *c, uint64_t iseq, uint64_t at, uint64_t method,
		   struct script_place *out)
{
	uint64_t flags = 0, body = 0, label = 0, path = 0;
	struct script_place got = {0};

	if (!is_of_type(c, iseq, RUBY_TYPE_MEMO, &flags) ||
	    RUBY_MEMO_KIND(flags) != RUBY_MEMO_ISEQ || !word(c, iseq + RUBY_ISEQ_BODY, &body) ||
	    !word(c, body + RUBY_BODY_LABEL, &label) || !word(c, body + RUBY_BODY_PATH, &path))
		return false;
	got.function = label_read(c, label, method);
	got.file = path_read(c, path);
	if (!got.function || !got.file) {
		script_place_release(&got);
		return false;
	}
	got.line = line_read(c, body, at);
	*out = got;
	return true;
}

uint32_t *rubycode_lines(const struct rubycode *c, uint64_t iseq, uint32_t *n)
{
	struct linetable t;
	uint64_t body = 0;
	uint32_t *lines;

	*n = 0;
	if (!word(c, iseq + RUBY_ISEQ_BODY, &body) || !linetable_read(c, body, &t))
		return NULL;
	*n = (t.size < RUBYCODE_LINES ? t.size : RUBYCODE_LINES) + 1;
	lines = mem_array(*n, sizeof(*lines));
	for (uint32_t i = 0; i < *n; i++)
		lines[i] = line_of(c, &t, i);
	return lines;
}
