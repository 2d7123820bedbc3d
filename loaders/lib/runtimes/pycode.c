/* SPDX-License-Identifier: Apache-2.0 */
#include "loaders/lib/runtimes/pycode.h"

#include <stdlib.h>
#include <string.h>

#include "loaders/lib/runtimes/pylines.h"
#include "loaders/lib/runtimes/utf8.h"
#include "schema/base/cleanup.h"
#include "schema/base/mem.h"
#include "schema/base/strbuf.h"

/* The word `state` of a text, from its lowest bit: interned:2, kind:3, compact:1, ascii:1 */
#define STATE_KIND(s)    ((s) >> 2 & 7)
#define STATE_COMPACT(s) ((s) >> 5 & 1)
#define STATE_ASCII(s)   ((s) >> 6 & 1)

struct reader {
	const struct runtime_memory *m;
	const struct python_layout *l;
	uint64_t bias;
};

static bool word_read(const struct reader *r, uint64_t addr, uint64_t *value)
{
	return r->m->read(r->m->ctx, addr, value, sizeof(*value));
}

static bool is_of_type(const struct reader *r, uint64_t object, uint64_t type)
{
	uint64_t is = 0;

	return object && !(object & 7) && type && word_read(r, object + r->l->object_type, &is) &&
	       is == type + r->bias;
}

/* ---- texts ---- */

static void char_add(struct strbuf *to, uint32_t c)
{
	if (c >= 0xdc80 && c <= 0xdcff) {
		strbuf_addch(to, (char)(c & 0xff));
		return;
	}
	utf8_add(to, c);
}

static uint32_t char_at(const uint8_t *data, size_t i, unsigned width)
{
	uint32_t c = 0;

	memcpy(&c, data + i * width, width);
	return c;
}

/* `bytes`: of 2.7, which are UTF-8 mostly, as they are. */
static char *text_take(const struct reader *r, uint64_t data, uint64_t length, unsigned width,
		       bool bytes)
{
	size_t n = length < PYCODE_TEXT_MAX ? (size_t)length : PYCODE_TEXT_MAX;
	struct strbuf text = STRBUF_INIT;
	uint8_t raw[PYCODE_TEXT_MAX * 4];

	if (!n)
		return NULL;
	if (!r->m->read(r->m->ctx, data, raw, n * width)) {
		n = PYCODE_TEXT_FIRST / width;
		if (n >= length || !r->m->read(r->m->ctx, data, raw, n * width))
			return NULL;
	}
	for (size_t i = 0; i < n; i++) {
		uint32_t c = char_at(raw, i, width);

		if (bytes && c)
			strbuf_addch(&text, (char)c);
		else
			char_add(&text, c);
	}
	if (n < length)
		strbuf_addstr(&text, "...");
	return strbuf_take(&text);
}

static char *bytes_text(const struct reader *r, uint64_t object)
{
	uint64_t length = 0;

	if (!is_of_type(r, object, r->l->bytes_type) ||
	    !word_read(r, object + r->l->bytes_length, &length))
		return NULL;
	return length <= INT64_MAX ? text_take(r, object + r->l->bytes_data, length, 1, true) :
				     NULL;
}

static char *text_read(const struct reader *r, uint64_t object)
{
	const struct python_layout *l = r->l;
	uint64_t length = 0;
	uint32_t state = 0;
	unsigned width;

	if (l->lines == PYTHON_LINES_27)
		return bytes_text(r, object);
	if (!is_of_type(r, object, l->text_type) ||
	    !word_read(r, object + l->text_length, &length) ||
	    !r->m->read(r->m->ctx, object + l->text_state, &state, sizeof(state)))
		return NULL;
	width = STATE_KIND(state);
	if (!STATE_COMPACT(state) || (width != 1 && width != 2 && width != 4) ||
	    (STATE_ASCII(state) && width != 1) || length > INT64_MAX)
		return NULL;
	return text_take(r, object + (STATE_ASCII(state) ? l->text_ascii : l->text_compact), length,
			 width, false);
}

/* ---- places ---- */

/* Bytes of code before the instruction; negative: none has been executed. false: outside of the
 * code. */
static bool instruction(const struct reader *r, uint64_t code, uint64_t at, int64_t *bytes)
{
	const struct python_layout *l = r->l;
	uint64_t length = 0;

	if (l->shape == PYTHON_OBJECTS) {
		*bytes = (int64_t)at < 0 ? -1 : (int64_t)(at & INT32_MAX) * l->at_scale;
		return true;
	}
	if (!word_read(r, code + l->code_length, &length) || length > INT32_MAX)
		return false;
	*bytes = (int64_t)(at - code - l->code_start);
	return *bytes >= -2 && *bytes < 2 * (int64_t)length && !(*bytes & 1);
}

/* The line table; NULL: none, or it cannot be read. */
static uint8_t *table_read(const struct reader *r, uint64_t code, size_t *len)
{
	cleanup_free uint8_t *table = NULL;
	uint64_t object = 0, length = 0;

	if (!word_read(r, code + r->l->code_lines, &object) ||
	    !is_of_type(r, object, r->l->bytes_type) ||
	    !word_read(r, object + r->l->bytes_length, &length) || length > PYCODE_TABLE_MAX)
		return NULL;
	table = mem_alloc((size_t)length + 1);
	if (length && !r->m->read(r->m->ctx, object + r->l->bytes_data, table, (size_t)length)) {
		if (length <= PYCODE_TABLE_FIRST ||
		    !r->m->read(r->m->ctx, object + r->l->bytes_data, table, PYCODE_TABLE_FIRST))
			return NULL;
		length = PYCODE_TABLE_FIRST;
	}
	*len = (size_t)length;
	return take_ptr(table);
}

static bool first_line_read(const struct reader *r, uint64_t code, int32_t *first)
{
	return r->m->read(r->m->ctx, code + r->l->code_first_line, first, sizeof(*first));
}

static uint32_t line_read(const struct reader *r, uint64_t code, uint64_t at)
{
	struct pycode_object o = {.lines = r->l->lines};
	int64_t bytes = 0;
	uint32_t line;

	if (!instruction(r, code, at, &bytes) || !first_line_read(r, code, &o.first_line))
		return 0;
	if (bytes >= 0)
		o.table = table_read(r, code, &o.table_len);
	line = pycode_object_line(&o, bytes);
	free(o.table);
	return line;
}

static char *member_text(const struct reader *r, uint64_t code, uint16_t member)
{
	uint64_t object = 0;

	return member && word_read(r, code + member, &object) ? text_read(r, object) : NULL;
}

/* Texts of the caller; NULL: not to be read. */
static void names_read(const struct reader *r, uint64_t code, char **function, char **file)
{
	*function = member_text(r, code, r->l->code_qualname);
	if (!*function)
		*function = member_text(r, code, r->l->code_name);
	*file = member_text(r, code, r->l->code_file);
}

bool pycode_read(const struct runtime_memory *m, const struct python_layout *l, uint64_t bias,
		 uint64_t code, uint64_t at, struct script_place *out)
{
	const struct reader r = {.m = m, .l = l, .bias = bias};

	if (!is_of_type(&r, code, l->code_type))
		return false;
	names_read(&r, code, &out->function, &out->file);
	out->line = line_read(&r, code, at);
	return true;
}

bool pycode_object_read(const struct runtime_memory *m, const struct python_layout *l,
			uint64_t bias, uint64_t code, struct pycode_object *out)
{
	const struct reader r = {.m = m, .l = l, .bias = bias};

	if (!is_of_type(&r, code, l->code_type))
		return false;
	*out = (struct pycode_object){.lines = l->lines};
	names_read(&r, code, &out->function, &out->file);
	if (first_line_read(&r, code, &out->first_line))
		out->table = table_read(&r, code, &out->table_len);
	return true;
}

uint32_t pycode_object_line(const struct pycode_object *o, int64_t bytes)
{
	if (bytes >= 0 && !o->table)
		return 0;
	return pylines_find(o->lines, o->table, o->table_len, o->first_line, bytes);
}

void pycode_object_release(struct pycode_object *o)
{
	free(o->function);
	free(o->file);
	free(o->table);
	*o = (struct pycode_object){0};
}
