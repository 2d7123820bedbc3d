/* SPDX-License-Identifier: Apache-2.0 */
/* compose: see the header. */
#include "loaders/index/compose.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "loaders/index/demangle.h"
#include "loaders/index/indexer.h"
#include "schema/base/cleanup.h"
#include "schema/base/clock.h"
#include "schema/base/hash.h"
#include "schema/base/strbuf.h"

/* ---- strings, each once ---- */

struct strings {
	char *buf;
	size_t len, cap;
	uint32_t *slots; /* open addressing: offset of a string, 0: empty */
	size_t mask;
	size_t count;
};

static void strings_release(struct strings *s)
{
	free(s->buf);
	free(s->slots);
}
#define cleanup_strings __attribute__((cleanup(strings_release)))

/* Place for `count` strings; the first byte is the empty string. */
static int strings_init(struct strings *s, size_t count)
{
	size_t n = 64;

	while (n < 2 * count)
		n *= 2;
	s->cap = 4096;
	s->buf = malloc(s->cap);
	s->slots = calloc(n, sizeof(*s->slots));
	s->mask = n - 1;
	if (!s->buf || !s->slots)
		return -ENOMEM;
	s->buf[0] = 0;
	s->len = 1;
	return 0;
}

static int strings_append(struct strings *s, const char *str, size_t len)
{
	if (s->len + len + 1 > INDEX_SIZE_MAX)
		return -EFBIG;
	while (s->len + len + 1 > s->cap) {
		char *p = realloc(s->buf, s->cap * 2);

		if (!p)
			return -ENOMEM;
		s->buf = p;
		s->cap *= 2;
	}
	memcpy(s->buf + s->len, str, len);
	s->buf[s->len + len] = 0;
	s->len += len + 1;
	return 0;
}

static int strings_intern(struct strings *s, const char *str, size_t len, uint32_t *offset)
{
	size_t i = hash_bytes(HASH_SEED, str, len) & s->mask;
	int rc;

	for (; s->slots[i]; i = (i + 1) & s->mask) {
		const char *have = s->buf + s->slots[i];

		if (!strncmp(have, str, len) && !have[len]) {
			*offset = s->slots[i];
			return 0;
		}
	}
	s->slots[i] = (uint32_t)s->len;
	*offset = (uint32_t)s->len;
	rc = strings_append(s, str, len);
	return rc;
}

/* ---- names ---- */

struct namer {
	struct strings strings;
	struct strbuf readable;
	struct strbuf plain;
	int64_t until_cpu_ns;
	unsigned calls;
	bool tired;
};

/* Old linkers write versions into names ("memcpy@@GLIBC_2.14"); stubs are "memcpy@plt". */
static size_t plain_length(const char *name, const struct symset_symbol *sym)
{
	size_t n = strnlen(name, IMAGE_NAME_MAX + 1);
	const char *at;

	if (sym->kind == SYMSET_GO || sym->kind == SYMSET_STUB)
		return n;
	at = memchr(name, '@', n);
	return at && at > name ? (size_t)(at - name) : n;
}

static bool name_demangle(struct namer *n, const struct symset_symbol *sym, const char *name)
{
	if (sym->kind == SYMSET_GO || n->tired)
		return false;
	if (++n->calls % 256 == 0 && clock_cpu_ns() > n->until_cpu_ns)
		n->tired = true;
	return demangle(name, &n->readable);
}

static int name_intern(struct namer *n, const struct symset_symbol *sym, uint32_t *offset)
{
	size_t len = plain_length(sym->name, sym);
	const bool stub = sym->kind == SYMSET_STUB && len > 4;

	strbuf_reset(&n->plain);
	strbuf_add(&n->plain, sym->name, stub ? len - 4 : len);
	if (name_demangle(n, sym, strbuf_str(&n->plain))) {
		if (stub)
			strbuf_addstr(&n->readable, "@plt");
		return strings_intern(&n->strings, strbuf_str(&n->readable), n->readable.len, offset);
	}
	if (len > IMAGE_NAME_MAX) {
		strbuf_reset(&n->plain);
		strbuf_add(&n->plain, sym->name, IMAGE_NAME_MAX - 3);
		strbuf_addstr(&n->plain, "...");
		return strings_intern(&n->strings, strbuf_str(&n->plain), n->plain.len, offset);
	}
	return strings_intern(&n->strings, sym->name, len, offset);
}

static void namer_release(struct namer *n)
{
	strings_release(&n->strings);
	strbuf_release(&n->readable);
	strbuf_release(&n->plain);
}
#define cleanup_namer __attribute__((cleanup(namer_release)))

/* ---- sections ---- */

/* Pieces as records; `records` has room for all. What is further than 4 GiB from the first code is left out. */
static int records_fill(const struct symset *set, const struct symset_piece *pieces, size_t count, uint64_t base,
			struct namer *n, struct image_symbol_record *records, size_t *filled)
{
	/* the pieces of one function stand close together: name each once */
	cleanup_free uint32_t *names = calloc(set->count + 1, sizeof(*names));
	size_t k = 0;

	if (!names)
		return -ENOMEM;
	for (size_t i = 0; i < count; i++) {
		const struct symset_piece *p = &pieces[i];
		const struct symset_symbol *sym = &set->symbols[p->symbol];
		int rc = 0;

		if (p->end - base > UINT32_MAX)
			break;
		if (!names[p->symbol])
			rc = name_intern(n, sym, &names[p->symbol]);
		if (rc)
			return rc;
		records[k++] = (struct image_symbol_record){.start = (uint32_t)(p->start - base),
							    .size = (uint32_t)(p->end - p->start),
							    .name = names[p->symbol],
							    .back = (uint32_t)(p->start - sym->addr)};
	}
	*filled = k;
	return 0;
}

static size_t segments_fill(const struct elf_file *f, struct image_segment *out)
{
	size_t n = 0;

	for (size_t i = 0; i < f->segment_count; i++) {
		const Elf64_Phdr *p = &f->segments[i];

		if (p->p_type == PT_LOAD)
			out[n++] = (struct image_segment){.vaddr = p->p_vaddr, .offset = p->p_offset,
							  .file_size = p->p_filesz, .mem_size = p->p_memsz,
							  .flags = p->p_flags & PF_X ? IMAGE_SEGMENT_EXEC : 0};
	}
	return n;
}

struct part {
	uint32_t kind;
	uint32_t stride;
	const void *data;
	uint64_t size;
};

static uint64_t align8(uint64_t n)
{
	return (n + 7) & ~7ull;
}

/* Header, table and parts into one fresh buffer. */
static int lay_out(const struct part *parts, uint32_t count, void **out, size_t *out_len)
{
	struct image_header h = {.magic = IMAGE_MAGIC, .version = IMAGE_VERSION, .section_count = count};
	uint64_t at = sizeof(h) + count * sizeof(struct image_section);
	uint64_t size = align8(at);
	uint8_t *buf;

	for (uint32_t i = 0; i < count; i++)
		size += align8(parts[i].size);
	if (size > INDEX_SIZE_MAX)
		return -EFBIG;
	buf = calloc(1, size);
	if (!buf)
		return -ENOMEM;
	for (uint32_t i = 0; i < count; i++) {
		struct image_section s = {.kind = parts[i].kind, .stride = parts[i].stride, .offset = align8(at),
					  .size = parts[i].size};

		memcpy(buf + sizeof(h) + i * sizeof(s), &s, sizeof(s));
		if (s.size)
			memcpy(buf + s.offset, parts[i].data, s.size);
		at = s.offset + s.size;
	}
	h.total_size = size;
	memcpy(buf, &h, sizeof(h));
	h.checksum = hash_bytes(HASH_SEED, buf + offsetof(struct image_header, total_size),
				size - offsetof(struct image_header, total_size));
	memcpy(buf, &h, sizeof(h));
	*out = buf;
	*out_len = size;
	return 0;
}

int compose_index(const struct elf_file *f, struct image_ident_record *ident, struct symset *set, void **out,
		  size_t *out_len, size_t *symbol_count)
{
	cleanup_free struct symset_piece *pieces = NULL;
	cleanup_free struct image_symbol_record *records = NULL;
	cleanup_free struct image_segment *segments = NULL;
	cleanup_namer struct namer n = {.until_cpu_ns = clock_cpu_ns() + DEMANGLE_CPU_NS};
	size_t count = 0, filled = 0, segment_count;
	int rc = symset_resolve(set, &pieces, &count);

	if (rc)
		return rc;
	records = calloc(count + 1, sizeof(*records));
	segments = calloc(f->segment_count + 1, sizeof(*segments));
	if (!records || !segments)
		return -ENOMEM;
	rc = strings_init(&n.strings, set->count);
	if (rc)
		return rc;
	ident->symbol_base = set->code_count ? set->code[0].start : 0;
	rc = records_fill(set, pieces, count, ident->symbol_base, &n, records, &filled);
	if (rc)
		return rc;
	segment_count = segments_fill(f, segments);
	*symbol_count = filled;
	return lay_out((const struct part[]){{IMAGE_SECTION_IDENT, sizeof(*ident), ident, sizeof(*ident)},
					     {IMAGE_SECTION_SEGMENTS, sizeof(*segments), segments,
					      segment_count * sizeof(*segments)},
					     {IMAGE_SECTION_SYMBOLS, sizeof(*records), records,
					      filled * sizeof(*records)},
					     {IMAGE_SECTION_STRINGS, 1, n.strings.buf, n.strings.len}},
		       4, out, out_len);
}
