/* SPDX-License-Identifier: Apache-2.0 */
/* rubycode: see the header. */
#include "loaders/lib/runtimes/rubycode.h"

#include <stdlib.h>
#include <string.h>

#include "schema/base/cleanup.h"
#include "schema/base/mem.h"
#include "schema/base/strbuf.h"

/* an object's flags, its first word */
#define TYPE_MASK    0x1fu
#define TYPE_CLASS   0x02u
#define TYPE_MODULE  0x03u
#define TYPE_STRING  0x05u
#define TYPE_ARRAY   0x07u
#define TYPE_SYMBOL  0x14u
#define TYPE_MEMO    0x1au
#define USER(n)      (1u << (12 + (n)))
#define SINGLETON    USER(0)
#define TEXT_LONG    USER(1)
#define ARRAY_SHORT  USER(1)
#define MEMO_KIND(f) ((f) >> 12 & 0xf)
#define MEMO_CREF    1
#define MEMO_SVAR    2
#define MEMO_METHOD  6
#define MEMO_ISEQ    7

#define ISEQ_BODY    16
#define BODY_SIZE    4
#define BODY_CODE    8
#define BODY_PATH    64
#define BODY_LABEL   80
#define METHOD_DEF   16
#define METHOD_OWNER 32
#define DEF_NAME     32
#define SVAR_METHOD  8
#define ATTACHED     128 /* of a singleton class, where class_path is known: 3.3 */

#define ENV_LOCAL    2u
#define ENV_PARENT   (-8)
#define ENVS_MAX     64 /* blocks in blocks */
#define ID_SHIFT     4
#define IDS_UNIT     512
#define TEXT_MAX     (1u << 20)

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
	return object && !(object & 7) && word(c, object, flags) && (*flags & TYPE_MASK) == type;
}

/* ---- texts, arrays ---- */

static char *text_read(const struct rubycode *c, uint64_t object)
{
	char bytes[SCRIPT_TEXT_MAX + 4];
	uint64_t flags = 0, length = 0, at = object + c->l->text_short;
	char end = 1;
	size_t n;

	if (!is_of_type(c, object, TYPE_STRING, &flags))
		return NULL;
	if (!(flags & TEXT_LONG) && !c->l->text_length)
		length = flags >> 14 & 0x1f;
	else if (!word(c, object + 16, &length))
		return NULL;
	if ((flags & TEXT_LONG && !word(c, object + 24, &at)) || !length || length > TEXT_MAX)
		return NULL;
	n = length < SCRIPT_TEXT_MAX ? (size_t)length : SCRIPT_TEXT_MAX;
	if (!c->m->read(c->m->ctx, at, bytes, n) || (!(flags & TEXT_LONG) && (!c->m->read(c->m->ctx, at + length, &end, 1) || end)))
		return NULL;
	memcpy(bytes + n, n < length ? "..." : "", n < length ? 4 : 1);
	return strlen(bytes) < n ? NULL : mem_strdup(bytes);
}

static bool array_get(const struct rubycode *c, uint64_t object, uint64_t i, uint64_t *value)
{
	uint64_t flags = 0, length = 0, at = object + 16;

	if (!is_of_type(c, object, TYPE_ARRAY, &flags))
		return false;
	if (flags & ARRAY_SHORT)
		length = flags >> 15 & (c->l->text_length ? 0x7f : 3);
	else if (!word(c, object + 16, &length) || !word(c, object + 32, &at))
		return false;
	return i < length && word(c, at + 8 * i, value);
}

/* ---- methods ---- */

/* The method that an environment's word leads to; false: none. */
static bool method_of(const struct rubycode *c, uint64_t env, uint64_t *method)
{
	uint64_t object = 0, flags = 0;

	if (!word(c, env + (uint64_t)(int64_t)RUBY_ENV_METHOD, &object) || !is_of_type(c, object, TYPE_MEMO, &flags))
		return false;
	if (MEMO_KIND(flags) == MEMO_SVAR &&
	    (!word(c, object + SVAR_METHOD, &object) || !is_of_type(c, object, TYPE_MEMO, &flags)))
		return false;
	*method = object;
	return MEMO_KIND(flags) == MEMO_METHOD;
}

/* An id's text, if the table says that it is this id's. */
static char *id_read(const struct rubycode *c, uint64_t id)
{
	uint64_t serial = id > c->l->last_op ? id >> ID_SHIFT : id, ids = 0, unit = 0, text = 0, symbol = 0, flags = 0, same = 0;

	if (!c->l->symbols || !word(c, c->l->symbols + c->bias + 16, &ids) || !array_get(c, ids, serial / IDS_UNIT, &unit) ||
	    !array_get(c, unit, serial % IDS_UNIT * 2, &text) || !array_get(c, unit, serial % IDS_UNIT * 2 + 1, &symbol))
		return NULL;
	if ((symbol & 0xff) == 0x0c)
		same = symbol >> 8;
	else if (!is_of_type(c, symbol, TYPE_SYMBOL, &flags) || !word(c, symbol + 32, &same))
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

	if (!c->l->class_path || !word(c, method + METHOD_OWNER, &class) || !class || class & 7 || !word(c, class, &flags))
		return NULL;
	if ((flags & TYPE_MASK) == TYPE_CLASS && flags & SINGLETON) {
		own = true;
		if (!word(c, class + ATTACHED, &class) || !class || class & 7 || !word(c, class, &flags))
			return NULL;
	}
	if ((flags & TYPE_MASK) != TYPE_CLASS && (flags & TYPE_MASK) != TYPE_MODULE)
		return NULL;
	text = word(c, class + c->l->class_path, &path) ? text_read(c, path) : NULL;
	if (!text)
		return NULL;
	strbuf_addf(&name, "%s%c", text, own ? '.' : '#');
	return strbuf_take(&name);
}

/* The method in which a block lies, by way of the environments around it. */
static bool method_around(const struct rubycode *c, uint64_t env, uint64_t *method)
{
	for (int i = 0; i < ENVS_MAX; i++) {
		uint64_t flags = 0;

		if (method_of(c, env, method))
			return true;
		if (!word(c, env, &flags) || flags & ENV_LOCAL || !word(c, env + (uint64_t)(int64_t)ENV_PARENT, &env))
			return false;
		env &= ~3ull;
		if (!env || env & 7)
			return false;
	}
	return false;
}

bool rubycode_method(const struct rubycode *c, uint64_t env, struct script_place *out)
{
	uint64_t method = 0, def = 0, id = 0;
	struct strbuf text = STRBUF_INIT;
	cleanup_free char *class = NULL;
	cleanup_free char *name = NULL;

	if (!method_of(c, env, &method) || !word(c, method + METHOD_DEF, &def) || !word(c, def + DEF_NAME, &id))
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
		return runtime_word(m, index + instruction / 9 * 8, &at) ? (uint32_t)(at >> instruction % 9 * 7) & 0x7f : 0;
	bit = (instruction - IMMEDIATE) % 512;
	word_i = bit / 64;
	block = index + IMMEDIATE / 9 * 8 + (uint64_t)((instruction - IMMEDIATE) / 512) * BLOCK_BYTES;
	if (!m->read(m->ctx, block, &rank, sizeof(rank)) || !runtime_word(m, block + 8, &ranks) || !runtime_word(m, block + 16 + 8ull * word_i, &bits))
		return 0;
	if (word_i)
		rank += (uint32_t)(ranks >> (word_i - 1) * 9) & 0x1ff;
	return rank + (uint32_t)__builtin_popcountll(bits << (63 - bit % 64));
}

static uint32_t line_read(const struct rubycode *c, uint64_t body, uint64_t at)
{
	uint64_t code = 0, rows = 0, index = 0;
	uint32_t size = 0, count = 0, row = 1, line = 0, instruction;

	if (!word(c, body + BODY_CODE, &code) || !half(c, body + BODY_SIZE, &size) || !word(c, body + c->l->lines, &rows) ||
	    !half(c, body + c->l->lines_count, &count) || at < code || (at - code) % 8 || (at - code) / 8 > size || !count)
		return 0;
	instruction = (uint32_t)((at - code) / 8);
	instruction -= instruction > 0; /* it says the next one */
	if (count > 1)
		row = word(c, body + c->l->lines_index, &index) && index ? rubycode_row(c->m, index, instruction) : 0;
	return row && row <= count && half(c, rows + (uint64_t)(row - 1) * c->l->line_size, &line) && line <= INT32_MAX ? line : 0;
}

/* A path, or an array of it and of what it stands for. */
static char *path_read(const struct rubycode *c, uint64_t object)
{
	uint64_t flags = 0;

	if (is_of_type(c, object, TYPE_ARRAY, &flags) && !array_get(c, object, 0, &object))
		return NULL;
	return text_read(c, object);
}

/* "block in f" of class A: "block in A#f". */
static char *label_read(const struct rubycode *c, uint64_t label, uint64_t env)
{
	cleanup_free char *text = text_read(c, label);
	cleanup_free char *class = NULL;
	struct strbuf s = STRBUF_INIT;
	uint64_t method = 0;
	const char *name;

	if (!text || !c->l->class_path || !method_around(c, env, &method))
		return take_ptr(text);
	name = strrchr(text, ' ');
	name = name ? name + 1 : text;
	class = *name == '<' ? NULL : class_read(c, method); /* "block in <class:A>", of define_method */
	if (!class)
		return take_ptr(text);
	strbuf_addf(&s, "%.*s%s%s", (int)(name - text), text, class, name);
	return strbuf_take(&s);
}

bool rubycode_iseq(const struct rubycode *c, uint64_t iseq, uint64_t at, uint64_t env, struct script_place *out)
{
	uint64_t flags = 0, body = 0, label = 0, path = 0;
	struct script_place got = {0};

	if (!is_of_type(c, iseq, TYPE_MEMO, &flags) || MEMO_KIND(flags) != MEMO_ISEQ || !word(c, iseq + ISEQ_BODY, &body) ||
	    !word(c, body + BODY_LABEL, &label) || !word(c, body + BODY_PATH, &path))
		return false;
	got.function = label_read(c, label, env);
	got.file = path_read(c, path);
	if (!got.function || !got.file) {
		script_place_release(&got);
		return false;
	}
	got.line = line_read(c, body, at);
	*out = got;
	return true;
}
