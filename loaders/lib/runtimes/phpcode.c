/* SPDX-License-Identifier: Apache-2.0 */
#include "loaders/lib/runtimes/phpcode.h"

#include <stdlib.h>
#include <string.h>

#include "schema/base/cleanup.h"
#include "schema/base/mem.h"
#include "schema/base/strbuf.h"

#define STRING_MAX (1u << 20)

static bool word(const struct phpcode *c, uint64_t addr, uint64_t *value)
{
	return runtime_word(c->m, addr, value);
}

static bool half(const struct phpcode *c, uint64_t addr, uint32_t *value)
{
	return c->m->read(c->m->ctx, addr, value, sizeof(*value));
}

/* A string's text, up to its first 0. NULL: not a string. */
static char *text_read(const struct phpcode *c, uint64_t string)
{
	char bytes[SCRIPT_TEXT_MAX + 4];
	uint64_t length = 0;
	uint32_t gc = 0;
	char end = 0;

	if (!string || (string & 7) || !half(c, string + PHP_STRING_GC, &gc) ||
	    (gc & 0xf) != PHP_STRING_TYPE || !word(c, string + PHP_STRING_LENGTH, &length) ||
	    !length || length > STRING_MAX)
		return NULL;
	if (c->m->read(c->m->ctx, string + PHP_STRING_BYTES + length, &end, 1) ?
		    end :
		    length < SCRIPT_TEXT_FIRST)
		return NULL;
	return script_text(c->m, string + PHP_STRING_BYTES, length, bytes) ? mem_strdup(bytes) :
									     NULL;
}

static char *text_at(const struct phpcode *c, uint64_t addr)
{
	uint64_t string = 0;

	return word(c, addr, &string) ? text_read(c, string) : NULL;
}

static char *function_name(const struct phpcode *c, uint64_t func, uint32_t type, bool outermost)
{
	struct strbuf name = STRBUF_INIT;
	cleanup_free char *own = NULL;
	cleanup_free char *of = NULL;
	uint64_t text = 0, class = 0;

	if (!word(c, func + PHP_FUNC_NAME, &text) || !word(c, func + PHP_FUNC_CLASS, &class))
		return NULL;
	if (!text)
		return type == PHP_INTERNAL ? NULL :
					      mem_strdup(type == PHP_EVAL ? "{eval}" :
							 outermost        ? "{main}" :
									    "{include}");
	own = text_read(c, text);
	if (!own)
		return NULL;
	if (class) {
		of = class & 7 ? NULL : text_at(c, class + PHP_CLASS_NAME);
		if (!of)
			return NULL;
		strbuf_addf(&name, "%s::", of);
	}
	strbuf_addstr(&name, own);
	return strbuf_take(&name);
}

bool phpcode_read(const struct phpcode *c, uint64_t func, uint32_t type, bool outermost,
		  struct script_place *out)
{
	struct script_place got = {.line = out->line};

	if (type != PHP_INTERNAL) {
		got.file = text_at(c, func + c->l->file);
		if (!got.file)
			return false;
	}
	got.function = function_name(c, func, type, outermost);
	if (!got.function && type == PHP_INTERNAL)
		return false;
	*out = got;
	return true;
}

uint32_t phpcode_first_line(const struct phpcode *c, uint64_t func, uint32_t type)
{
	uint32_t line = 0;

	return type != PHP_INTERNAL && half(c, func + c->l->file + PHP_FUNC_LINE, &line) &&
			       line <= INT32_MAX ?
		       line :
		       0;
}
