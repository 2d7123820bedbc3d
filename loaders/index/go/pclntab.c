/* SPDX-License-Identifier: Apache-2.0 */
#include "loaders/index/go/pclntab.h"

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

/* Entry or offset number `k` of functab (two a function); its place was checked by pclntab_parse.
 */
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
	uint64_t names, cu, files, pctab, pcln;

	*count = read_word(c, t->ptr_size);
	if (t->generation == 2) {
		t->functab = c->pos;
		return !c->bad;
	}
	read_word(c, t->ptr_size); /* number of files */
	if (t->relative)
		t->text_start = read_word(c, t->ptr_size);
	names = read_word(c, t->ptr_size);
	cu = read_word(c, t->ptr_size);
	files = read_word(c, t->ptr_size);
	pctab = read_word(c, t->ptr_size);
	pcln = read_word(c, t->ptr_size);
	if (c->bad || names >= t->len || pcln >= t->len || names < c->pos || pcln < names)
		return false;
	t->names = (size_t)names;
	t->cutab = cu < t->len ? (size_t)cu : t->len;
	t->files = files < t->len ? (size_t)files : t->len;
	t->pctab = pctab < t->len ? (size_t)pctab : t->len;
	t->functab = t->funcs = (size_t)pcln;
	return true;
}

/* Generation 2: the word after functab says where the array of files is. */
static size_t files_find(const struct pclntab *t)
{
	struct cursor c = cursor_init(t->data, t->len);
	uint32_t at;

	cursor_seek(&c, t->functab + (2 * (size_t)t->func_count + 1) * entry_size(t));
	at = cursor_u32(&c);
	return c.bad || at >= t->len ? t->len : at;
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
	t.quantum = quantum;
	t.relative = t.generation >= 18;
	if (!header_read(&t, &c, &count))
		return -EBADMSG;
	if (!count || count > UINT32_MAX / 2 || (2 * count + 1) * entry_size(&t) > len - t.functab)
		return -EBADMSG;
	t.func_count = (uint32_t)count;
	/* a table by accident (bytes that look like a magic) has no ascending entries */
	for (uint32_t i = 0; i < t.func_count && i < 64; i++)
		if (functab_value(&t, 2 * i) > functab_value(&t, 2 * i + 2))
			return -EBADMSG;
	if (t.generation == 2)
		t.files = files_find(&t);
	*out = t;
	return 0;
}

/* A cursor at function i's record, behind its entry. */
static bool record_seek(const struct pclntab *t, uint32_t i, struct cursor *c)
{
	uint64_t at;

	*c = cursor_init(t->data, t->len);
	if (i >= t->func_count)
		return false;
	at = functab_value(t, 2 * (size_t)i + 1);
	if (at > t->len - t->funcs)
		return false;
	cursor_seek(c, t->funcs + (size_t)at);
	cursor_bytes(c, entry_size(t));
	return !c->bad;
}

const char *pclntab_name(const struct pclntab *t, uint32_t offset)
{
	struct cursor c = cursor_init(t->data, t->len);
	const char *name;
	size_t n;

	if (offset > t->len - t->names)
		return NULL;
	cursor_seek(&c, t->names + offset);
	name = cursor_str(&c, &n);
	return name && n ? name : NULL;
}

bool pclntab_func(const struct pclntab *t, uint64_t text, uint32_t i, struct pclntab_func *out)
{
	struct cursor c;
	struct pclntab_func f;
	uint64_t base = t->relative ? text : 0;
	uint32_t name;

	if (!record_seek(t, i, &c))
		return false;
	f.start = base + functab_value(t, 2 * (size_t)i);
	f.end = base + functab_value(t, 2 * (size_t)i + 2);
	if (f.start >= f.end || f.start < base)
		return false;
	name = cursor_u32(&c);
	f.name = c.bad ? NULL : pclntab_name(t, name);
	if (!f.name)
		return false;
	*out = f;
	return true;
}

bool pclntab_record(const struct pclntab *t, uint32_t i, struct pclntab_record *out)
{
	struct pclntab_record r = {0};
	size_t word = t->relative ? 4 : t->ptr_size;
	struct cursor c;
	uint8_t zero;

	if (!record_seek(t, i, &c))
		return false;
	cursor_bytes(&c, 12); /* name, args, deferreturn */
	r.pcsp = cursor_u32(&c);
	r.pcfile = cursor_u32(&c);
	r.pcln = cursor_u32(&c);
	r.pcdata_count = cursor_u32(&c);
	if (t->generation >= 16)
		r.cu = cursor_u32(&c);
	if (t->generation >= 20)
		r.start_line = (int32_t)cursor_u32(&c);
	cursor_u8(&c); /* funcID: its numbers differ from version to version, names do not */
	r.flags = cursor_u8(&c);
	zero = cursor_u8(&c);
	r.funcdata_count = cursor_u8(&c);
	if (c.bad || zero || (t->generation == 2 && r.flags) ||
	    r.pcdata_count > cursor_left(&c) / 4)
		return false;
	r.pcdata = c.pos;
	r.funcdata = r.pcdata + r.pcdata_count * 4;
	r.funcdata += (word - r.funcdata % word) %
		      word; /* the table itself is aligned to at least a word */
	if (r.funcdata > t->len || r.funcdata_count > (t->len - r.funcdata) / word)
		return false;
	*out = r;
	return true;
}

uint32_t pclntab_pcdata(const struct pclntab *t, const struct pclntab_record *r, uint32_t k)
{
	uint32_t v;

	if (k >= r->pcdata_count)
		return 0;
	memcpy(&v, t->data + r->pcdata + k * 4, 4);
	return v;
}

bool pclntab_funcdata(const struct pclntab *t, const struct pclntab_record *r, uint32_t k,
		      uint64_t *out)
{
	size_t word = t->relative ? 4 : t->ptr_size;
	uint64_t v = 0;

	if (k >= r->funcdata_count)
		return false;
	memcpy(&v, t->data + r->funcdata + k * word, word);
	if (v == (t->relative ? UINT32_MAX : 0))
		return false;
	*out = v;
	return true;
}

const char *pclntab_file(const struct pclntab *t, const struct pclntab_record *r, int32_t number,
			 size_t *key)
{
	struct cursor c = cursor_init(t->data, t->len);
	uint64_t index = (uint64_t)(uint32_t)number + (t->generation == 2 ? 0 : r->cu);
	size_t array = t->generation == 2 ? t->files : t->cutab;
	const char *name;
	uint32_t at;
	size_t n;

	if (number < 0 || (t->generation == 2 && !number) || index >= (t->len - array) / 4)
		return NULL;
	cursor_seek(&c, array + (size_t)index * 4);
	at = cursor_u32(&c);
	if (at == UINT32_MAX || (t->generation != 2 && at >= t->len - t->files) || at >= t->len)
		return NULL;
	*key = (t->generation == 2 ? 0 : t->files) + at;
	cursor_seek(&c, *key);
	name = cursor_str(&c, &n);
	return name && n ? name : NULL;
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
		if (generation_of(magic) && !p[i + 4] && !p[i + 5] &&
		    (p[i + 7] == 4 || p[i + 7] == 8))
			return i;
	}
	return len;
}
