/* SPDX-License-Identifier: Apache-2.0 */
/* pclntab: see the header for the format. */
#include "loaders/index/pclntab.h"

#include <errno.h>
#include <string.h>

#include "schema/base/cursor.h"

#define MAGIC_2  0xfffffffbu
#define MAGIC_16 0xfffffffau
#define MAGIC_18 0xfffffff0u
#define MAGIC_20 0xfffffff1u

static unsigned generation_of(uint32_t magic)
{
	switch (magic) {
	case MAGIC_2:
		return 2;
	case MAGIC_16:
		return 16;
	case MAGIC_18:
		return 18;
	case MAGIC_20:
		return 20;
	default:
		return 0;
	}
}

static uint64_t read_word(struct cursor *c, unsigned size)
{
	return size == 8 ? cursor_u64(c) : cursor_u32(c);
}

static unsigned entry_size(const struct pclntab *t)
{
	return t->relative ? 4 : t->ptr_size;
}

/* Entry or offset number `k` of functab (two a function); its place was checked by pclntab_parse. */
static uint64_t functab_value(const struct pclntab *t, size_t k)
{
	const uint8_t *p = t->data + t->functab + k * entry_size(t);
	uint64_t v64;
	uint32_t v32;

	if (entry_size(t) == 8) {
		memcpy(&v64, p, 8);
		return v64;
	}
	memcpy(&v32, p, 4);
	return v32;
}

static bool header_read(struct pclntab *t, struct cursor *c, uint64_t *count)
{
	uint64_t names, pcln;

	*count = read_word(c, t->ptr_size);
	if (t->generation == 2) {
		t->functab = c->pos;
		return !c->bad;
	}
	read_word(c, t->ptr_size); /* files */
	if (t->relative)
		t->text_start = read_word(c, t->ptr_size);
	names = read_word(c, t->ptr_size);
	read_word(c, t->ptr_size); /* compilation units */
	read_word(c, t->ptr_size); /* file names */
	read_word(c, t->ptr_size); /* pc tables */
	pcln = read_word(c, t->ptr_size);
	if (c->bad || names >= t->len || pcln >= t->len || names < c->pos || pcln < names)
		return false;
	t->names = (size_t)names;
	t->functab = t->funcs = (size_t)pcln;
	return true;
}

int pclntab_parse(const void *data, size_t len, struct pclntab *out)
{
	struct cursor c = cursor_init(data, len);
	struct pclntab t = {.data = data, .len = len};
	uint64_t count = 0;
	uint16_t zero;
	uint8_t quantum;

	t.generation = generation_of(cursor_u32(&c));
	zero = cursor_u16(&c);
	quantum = cursor_u8(&c);
	t.ptr_size = cursor_u8(&c);
	if (c.bad || !t.generation || zero || (quantum != 1 && quantum != 2 && quantum != 4) ||
	    (t.ptr_size != 4 && t.ptr_size != 8))
		return -EBADMSG;
	t.relative = t.generation >= 18;
	if (!header_read(&t, &c, &count))
		return -EBADMSG;
	if (!count || count > UINT32_MAX / 2 ||
	    (2 * count + 1) * entry_size(&t) > len - t.functab)
		return -EBADMSG;
	t.func_count = (uint32_t)count;
	/* a table by accident (bytes that look like a magic) has no ascending entries */
	for (uint32_t i = 0; i < t.func_count && i < 64; i++)
		if (functab_value(&t, 2 * i) > functab_value(&t, 2 * i + 2))
			return -EBADMSG;
	*out = t;
	return 0;
}

bool pclntab_func(const struct pclntab *t, uint64_t text, uint32_t i, struct pclntab_func *out)
{
	struct cursor c = cursor_init(t->data, t->len);
	struct pclntab_func f;
	uint64_t base = t->relative ? text : 0;
	uint64_t at, name;
	size_t n;

	if (i >= t->func_count)
		return false;
	f.start = base + functab_value(t, 2 * (size_t)i);
	at = functab_value(t, 2 * (size_t)i + 1);
	f.end = base + functab_value(t, 2 * (size_t)i + 2);
	if (f.start >= f.end || f.start < base || at > t->len - t->funcs)
		return false;
	cursor_seek(&c, t->funcs + (size_t)at);
	cursor_bytes(&c, entry_size(t));
	name = cursor_u32(&c);
	if (c.bad || name > t->len - t->names)
		return false;
	cursor_seek(&c, t->names + (size_t)name);
	f.name = cursor_str(&c, &n);
	if (!f.name || !n)
		return false;
	*out = f;
	return true;
}

size_t pclntab_scan(const void *data, size_t len, size_t from)
{
	const uint8_t *p = data;

	/* the linker aligns it to at least a word */
	for (size_t i = (from + 3) & ~(size_t)3; len >= 8 && i <= len - 8; i += 4) {
		uint32_t magic;

		if (p[i + 1] != 0xff || p[i + 2] != 0xff || p[i + 3] != 0xff)
			continue;
		memcpy(&magic, p + i, 4);
		if (generation_of(magic) && !p[i + 4] && !p[i + 5] && (p[i + 7] == 4 || p[i + 7] == 8))
			return i;
	}
	return len;
}
