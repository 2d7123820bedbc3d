/* SPDX-License-Identifier: Apache-2.0 */
#include "loaders/index/compose.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "loaders/index/elf/demangle.h"
#include "loaders/index/indexer.h"
#include "loaders/index/lines/linecode.h"
#include "loaders/index/elf/strtab.h"
#include "schema/base/cleanup.h"
#include "schema/base/clock.h"
#include "schema/base/strbuf.h"
#include "schema/image/checksum.h"

/* ---- names ---- */

struct namer {
	struct strtab strings;
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
		return strtab_add(&n->strings, strbuf_str(&n->readable), n->readable.len, offset);
	}
	if (len > IMAGE_NAME_MAX) {
		strbuf_reset(&n->plain);
		strbuf_add(&n->plain, sym->name, IMAGE_NAME_MAX - 3);
		strbuf_addstr(&n->plain, "...");
		return strtab_add(&n->strings, strbuf_str(&n->plain), n->plain.len, offset);
	}
	return strtab_add(&n->strings, sym->name, len, offset);
}

static void namer_release(struct namer *n)
{
	strtab_release(&n->strings);
	strbuf_release(&n->readable);
	strbuf_release(&n->plain);
}
#define cleanup_namer __attribute__((cleanup(namer_release)))

/* ---- sections ---- */

/* Pieces as records; `records` has room for all. What is further than 4 GiB from the first code is
 * left out. */
static int records_fill(const struct symset *set, const struct symset_piece *pieces, size_t count,
			uint64_t base, struct namer *n, struct image_symbol_record *records,
			size_t *filled)
{
	/* the pieces of one function are close together: name each once */
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
		records[k++] =
			(struct image_symbol_record){.start = (uint32_t)(p->start - base),
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
			out[n++] = (struct image_segment){
				.vaddr = p->p_vaddr,
				.offset = p->p_offset,
				.file_size = p->p_filesz,
				.mem_size = p->p_memsz,
				.flags = p->p_flags & PF_X ? IMAGE_SEGMENT_EXEC : 0};
	}
	return n;
}

static uint64_t align8(uint64_t n)
{
	return (n + 7) & ~7ull;
}

/* Header, table and parts into one fresh buffer. */
static int lay_out(const struct compose_section *parts, uint32_t count, void **out, size_t *out_len)
{
	struct image_header h = {
		.magic = IMAGE_MAGIC, .version = IMAGE_VERSION, .section_count = count};
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
		struct image_section s = {.kind = parts[i].kind,
					  .stride = parts[i].stride,
					  .offset = align8(at),
					  .size = parts[i].size};

		memcpy(buf + sizeof(h) + i * sizeof(s), &s, sizeof(s));
		if (s.size)
			memcpy(buf + s.offset, parts[i].data, s.size);
		at = s.offset + s.size;
	}
	h.total_size = size;
	memcpy(buf, &h, sizeof(h));
	image_checksums_make(buf, size);
	*out = buf;
	*out_len = size;
	return 0;
}

/* A name of a lineset. */
static int line_string_add(void *ctx, const char *str, bool mangled, uint32_t *offset)
{
	const struct symset_symbol sym = {.name = str, .kind = mangled ? SYMSET_FUNC : SYMSET_GO};

	return name_intern(ctx, &sym, offset);
}

static int note_intern(struct namer *n, const char *note, uint32_t *offset)
{
	*offset = 0;
	return note ? strtab_add(&n->strings, note, strlen(note), offset) : 0;
}

/* The parts of an index before they are laid out; at most these, and the ready ones. */
struct parts {
	struct compose_section at[COMPOSE_EXTRA_MAX + 7];
	uint32_t count;
};

static void part_add(struct parts *p, uint32_t kind, size_t stride, const void *data, size_t count)
{
	p->at[p->count++] = (struct compose_section){
		.kind = kind, .stride = (uint32_t)stride, .data = data, .size = stride * count};
}

static void parts_add_lines(struct parts *p, const struct linecode *c)
{
	part_add(p, IMAGE_SECTION_LINE_FILES, sizeof(*c->files), c->files, c->file_count);
	part_add(p, IMAGE_SECTION_LINES, 1, c->lines, c->lines_size);
	part_add(p, IMAGE_SECTION_INLINES, 1, c->inlines, c->inlines_size);
}

/* All names are in `n` by now. */
static int parts_lay_out(const struct compose_input *in, struct namer *n,
			 const struct linecode *lines, const struct image_symbol_record *records,
			 size_t record_count, void **out, size_t *out_len)
{
	cleanup_free struct image_segment *segments =
		calloc(in->elf->segment_count + 1, sizeof(*segments));
	struct parts p = {0};

	if (!segments)
		return -ENOMEM;
	part_add(&p, IMAGE_SECTION_IDENT, sizeof(*in->ident), in->ident, 1);
	part_add(&p, IMAGE_SECTION_SEGMENTS, sizeof(*segments), segments,
		 segments_fill(in->elf, segments));
	part_add(&p, IMAGE_SECTION_SYMBOLS, sizeof(*records), records, record_count);
	part_add(&p, IMAGE_SECTION_STRINGS, 1, n->strings.buf, n->strings.len);
	if (lines->lines)
		parts_add_lines(&p, lines);
	for (size_t i = 0; i < in->extra_count && i < COMPOSE_EXTRA_MAX; i++)
		p.at[p.count++] = in->extra[i];
	return lay_out(p.at, p.count, out, out_len);
}

int compose_index(const struct compose_input *in, void **out, size_t *out_len, size_t *symbol_count)
{
	cleanup_free struct symset_piece *pieces = NULL;
	cleanup_free struct image_symbol_record *records = NULL;
	cleanup_namer struct namer n = {.until_cpu_ns = clock_cpu_ns() + DEMANGLE_CPU_NS};
	struct linecode lines = {0};
	size_t count = 0, filled = 0;
	uint32_t empty;
	int rc = symset_resolve(in->set, in->edges, in->edge_count, &pieces, &count);

	if (rc)
		return rc;
	records = calloc(count + 1, sizeof(*records));
	if (!records)
		return -ENOMEM;
	in->ident->symbol_base = in->set->code_count ? in->set->code[0].start : 0;
	rc = strtab_add(&n.strings, "", 0, &empty);
	if (!rc)
		rc = records_fill(in->set, pieces, count, in->ident->symbol_base, &n, records,
				  &filled);
	if (!rc)
		rc = note_intern(&n, in->lines_note, &in->ident->lines_note);
	if (!rc && in->lines && !lineset_empty(in->lines))
		rc = linecode_make(in->lines,
				   &(struct linecode_strings){.ctx = &n, .add = line_string_add},
				   &lines);
	if (!rc)
		rc = parts_lay_out(in, &n, &lines, records, filled, out, out_len);
	linecode_release(&lines);
	if (!rc)
		*symbol_count = filled;
	return rc;
}
