/* SPDX-License-Identifier: Apache-2.0 */
#include "loaders/lib/runtimes/perl/perlcode.h"

#include <stdlib.h>
#include <string.h>

#include "loaders/lib/runtimes/utf8.h"
#include "schema/base/array.h"
#include "schema/base/cleanup.h"
#include "schema/base/mem.h"
#include "schema/base/strbuf.h"

#define TEXT_MAX (1u << 16)
#define PIECE    64u

static bool word(const struct perlcode *c, uint64_t addr, uint64_t *value)
{
	return addr && !(addr & 7) && runtime_word(c->m, addr, value) && *value;
}

static bool half(const struct perlcode *c, uint64_t addr, uint32_t *value)
{
	return c->m->read(c->m->ctx, addr, value, sizeof(*value));
}

/* The body of an SV of this type. */
static bool body_of(const struct perlcode *c, uint64_t sv, uint32_t type, uint64_t *body)
{
	uint32_t flags = 0;

	return word(c, sv + PERL_SV_BODY, body) && !(*body & 7) &&
	       half(c, sv + PERL_SV_FLAGS, &flags) && (flags & PERL_SV_TYPE) == type;
}

/* ---- texts ---- */

static bool is_ascii(const char *bytes)
{
	while (*bytes && !(*bytes & 0x80))
		bytes++;
	return !*bytes;
}

/* What is not UTF-8 by its flag is Latin-1. */
static char *from_latin1(const char *bytes)
{
	struct strbuf s = STRBUF_INIT;

	for (const char *b = bytes; *b; b++)
		utf8_add(&s, (unsigned char)*b);
	return strbuf_take(&s);
}

/* A name as Perl shares it among its tables. */
static char *hek_read(const struct perlcode *c, uint64_t hek)
{
	char bytes[SCRIPT_TEXT_MAX + 4];
	uint8_t end[2] = {0};
	uint32_t length = 0;
	size_t n;

	if (!hek || (hek & 3) || !half(c, hek + PERL_HEK_LENGTH, &length) || !length ||
	    length > TEXT_MAX)
		return NULL;
	if (c->m->read(c->m->ctx, hek + PERL_HEK_TEXT + length, end, sizeof(end)) ?
		    end[0] :
		    length < SCRIPT_TEXT_FIRST)
		return NULL;
	n = script_text(c->m, hek + PERL_HEK_TEXT, length, bytes);
	if (!n || strlen(bytes) < n)
		return NULL;
	return end[1] & PERL_HEK_UTF8 || is_ascii(bytes) ? mem_strdup(bytes) : from_latin1(bytes);
}

/* A text that ends with 0. */
static char *text_read(const struct perlcode *c, uint64_t addr)
{
	char bytes[SCRIPT_TEXT_MAX + 1];
	size_t n = 0, size = PIECE;

	while (addr && n < SCRIPT_TEXT_MAX) {
		size = n + size > SCRIPT_TEXT_MAX ? 1 : size;
		if (!c->m->read(c->m->ctx, addr + n, bytes + n, size)) {
			if (size == 1)
				return NULL;
			size = 1;
			continue;
		}
		if (memchr(bytes + n, 0, size))
			return *bytes ? mem_strdup(bytes) : NULL;
		n += size;
	}
	if (!addr)
		return NULL;
	memcpy(bytes + SCRIPT_TEXT_MAX - 3, "...", 4);
	return mem_strdup(bytes);
}

/* ---- subs ---- */

/* A package's name. */
static char *stash_read(const struct perlcode *c, uint64_t stash)
{
	uint64_t body = 0, table = 0, most = 0, aux, name = 0;
	uint32_t flags = 0, names = 0;

	if (!body_of(c, stash, PERL_TYPE_HV, &body) || !half(c, stash + PERL_SV_FLAGS, &flags) ||
	    !(flags & PERL_HV_AUX))
		return NULL;
	aux = body + c->l->aux;
	if (!c->l->aux) {
		if (!word(c, stash + PERL_SV_U, &table) || !word(c, body + PERL_HV_MAX, &most) ||
		    most > UINT32_MAX)
			return NULL;
		aux = table + (most + 1) * 8;
	}
	if (!word(c, aux + PERL_AUX_NAME, &name) || !half(c, aux + PERL_AUX_NAMES, &names))
		return NULL;
	if (names && !word(c, name, &name))
		return NULL;
	return hek_read(c, name);
}

/* Where the name and the package of a sub are, by its glob. */
static bool glob_read(const struct perlcode *c, uint64_t gv, uint64_t *name, uint64_t *stash)
{
	uint64_t body = 0, gp = 0, egv = 0;

	if (!body_of(c, gv, PERL_TYPE_GV, &body))
		return false;
	/* the glob that it was defined for, which another may be an alias of */
	if (word(c, gv + PERL_SV_U, &gp) && word(c, gp + PERL_GP_EGV, &egv) && egv != gv &&
	    !body_of(c, egv, PERL_TYPE_GV, &body))
		return false;
	return word(c, body + PERL_GV_NAME, name) && word(c, body + PERL_GV_STASH, stash);
}

static bool sub_read(const struct perlcode *c, uint64_t cv, struct script_place *out)
{
	uint64_t body = 0, name = 0, stash = 0, file = 0;
	struct strbuf s = STRBUF_INIT;
	cleanup_free char *own = NULL;
	cleanup_free char *of = NULL;
	uint32_t flags = 0;

	if (!body_of(c, cv, PERL_TYPE_CV, &body) || !half(c, body + PERL_CV_FLAGS, &flags))
		return false;
	if (flags & PERL_CV_NAMED ?
		    !word(c, body + PERL_CV_GV, &name) || !word(c, body + PERL_CV_STASH, &stash) :
		    !word(c, body + PERL_CV_GV, &name) || !glob_read(c, name, &name, &stash))
		return false;
	own = hek_read(c, name);
	of = stash_read(c, stash);
	if (!own || !of)
		return false;
	strbuf_addf(&s, "%s::%s", of, own);
	out->function = strbuf_take(&s);
	out->file = runtime_word(c->m, body + PERL_CV_FILE, &file) ? text_read(c, file) : NULL;
	return true;
}

bool perlcode_read(const struct perlcode *c, uint32_t kind, uint64_t cv, uint64_t file,
		   struct script_place *out)
{
	static const char *const called[] = {
		[PERL_EVAL] = "(eval)", [PERL_FORM] = "(format)", [PERL_TOP] = "(main)"};
	struct script_place got = {.line = out->line};

	if (kind == PERL_SUB) {
		if (!sub_read(c, cv, &got))
			return false;
	} else {
		got.file = kind < ARRAY_SIZE(called) && called[kind] ? text_read(c, file) : NULL;
		if (!got.file)
			return false;
		got.function = mem_strdup(called[kind]);
	}
	*out = got;
	return true;
}
