/* SPDX-License-Identifier: Apache-2.0 */
/* gotable: see the header. */
#include "loaders/index/gotable.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "schema/base/cleanup.h"

#define MODULE_TEXT_WORD 22 /* moduledata.text, Go 1.16 to 1.27 */

/* A piece of the file's memory, relocated. */
struct region {
	uint8_t *bytes; /* own */
	uint64_t vaddr;
	uint64_t len;
};

static void region_release(struct region *r)
{
	free(r->bytes);
}
#define cleanup_region __attribute__((cleanup(region_release)))

/* What cannot be read because the file lies is not there; other errors count. */
static int soften(int rc)
{
	return rc == -ERANGE || rc == -EFBIG ? -ENOENT : rc;
}

static int region_read(struct elf_file *f, uint64_t vaddr, uint64_t len, struct region *out)
{
	struct region r = {.vaddr = vaddr, .len = len};
	void *p = NULL;
	int rc = soften(elf_read_at(f, vaddr, len, &p));

	if (rc)
		return rc;
	rc = elf_relocate(f, p, vaddr, len);
	if (rc) {
		free(p);
		return rc;
	}
	r.bytes = p;
	*out = r;
	return 0;
}

static uint64_t word_at(const struct region *r, uint64_t offset, unsigned size)
{
	uint64_t v = 0;

	if (offset <= r->len && size <= r->len - offset)
		memcpy(&v, r->bytes + offset, size);
	return v;
}

static bool is_code(const struct elf_file *f, uint64_t vaddr)
{
	for (size_t i = 0; i < f->segment_count; i++) {
		const Elf64_Phdr *p = &f->segments[i];

		if (p->p_type == PT_LOAD && (p->p_flags & PF_X) && vaddr >= p->p_vaddr &&
		    vaddr - p->p_vaddr < p->p_memsz)
			return true;
	}
	return false;
}

/* ---- the table ---- */

/* Parse at `offset` of the region; on success its bytes move into `out`. */
static int table_take(struct region *r, uint64_t offset, struct go_table *out, uint64_t *vaddr)
{
	struct pclntab t;
	int rc = pclntab_parse(r->bytes + offset, r->len - offset, &t);

	if (rc)
		return -ENOENT;
	*vaddr = r->vaddr + offset;
	out->tab = t;
	out->bytes = take_ptr(r->bytes);
	return 0;
}

static int table_by_section(struct elf_file *f, struct go_table *out, uint64_t *vaddr)
{
	static const char *const names[] = {".gopclntab", ".data.rel.ro.gopclntab"};

	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++) {
		const Elf64_Shdr *s = elf_section_by_name(f, names[i]);
		cleanup_region struct region r = {0};
		int rc;

		if (!s || s->sh_type == SHT_NOBITS)
			continue;
		rc = region_read(f, s->sh_addr, s->sh_size, &r);
		if (!rc)
			rc = table_take(&r, 0, out, vaddr);
		if (rc != -ENOENT)
			return rc;
	}
	return -ENOENT;
}

static int table_by_symbol(struct elf_file *f, uint64_t at, struct go_table *out, uint64_t *vaddr)
{
	cleanup_region struct region r = {0};
	uint64_t len = at ? elf_bytes_at(f, at) : 0;
	int rc;

	if (!len)
		return -ENOENT;
	rc = region_read(f, at, len, &r);
	return rc ? rc : table_take(&r, 0, out, vaddr);
}

static int table_in_segment(struct elf_file *f, const Elf64_Phdr *p, struct go_table *out, uint64_t *vaddr)
{
	cleanup_region struct region r = {0};
	int rc = region_read(f, p->p_vaddr, p->p_filesz, &r);

	if (rc)
		return rc;
	for (size_t at = 0; (at = pclntab_scan(r.bytes, r.len, at)) < r.len; at += 4)
		if (!table_take(&r, at, out, vaddr))
			return 0;
	return -ENOENT;
}

/* Data first; a linker without separate code puts read-only data beside the code. */
static int table_by_magic(struct elf_file *f, struct go_table *out, uint64_t *vaddr)
{
	for (unsigned exec = 0; exec < 2; exec++)
		for (size_t i = 0; i < f->segment_count; i++) {
			const Elf64_Phdr *p = &f->segments[i];
			int rc;

			if (p->p_type != PT_LOAD || !p->p_filesz || !(p->p_flags & PF_X) != !exec)
				continue;
			rc = table_in_segment(f, p, out, vaddr);
			if (rc != -ENOENT)
				return rc;
		}
	return -ENOENT;
}

/* ---- runtime.text ---- */

static uint64_t text_of_module(const struct elf_file *f, const struct region *r, uint64_t offset, uint64_t table,
			       unsigned word)
{
	uint64_t text;

	if (word_at(r, offset, word) != table)
		return 0;
	text = word_at(r, offset + MODULE_TEXT_WORD * word, word);
	return is_code(f, text) ? text : 0;
}

static uint64_t text_in_segment(struct elf_file *f, const Elf64_Phdr *p, uint64_t table, unsigned word)
{
	cleanup_region struct region r = {0};
	uint64_t text = 0;

	if (region_read(f, p->p_vaddr, p->p_filesz, &r))
		return 0;
	for (uint64_t at = 0; !text && at + word <= r.len; at += word)
		text = text_of_module(f, &r, at, table, word);
	return text;
}

static uint64_t text_by_module(struct elf_file *f, uint64_t table, unsigned word)
{
	const Elf64_Shdr *s = elf_section_by_name(f, ".go.module");
	cleanup_region struct region r = {0};
	uint64_t text = 0;

	if (s && s->sh_type != SHT_NOBITS && !region_read(f, s->sh_addr, s->sh_size, &r))
		text = text_of_module(f, &r, 0, table, word);
	for (size_t i = 0; !text && i < f->segment_count; i++)
		if (f->segments[i].p_type == PT_LOAD && (f->segments[i].p_flags & PF_W))
			text = text_in_segment(f, &f->segments[i], table, word);
	return text;
}

static uint64_t text_find(struct elf_file *f, const struct go_symbols *syms, const struct pclntab *t, uint64_t table)
{
	uint64_t text = t->text_start;

	if (!is_code(f, text))
		text = text_by_module(f, table, t->ptr_size);
	if (!text && is_code(f, syms->text))
		text = syms->text;
	return text;
}

int go_table_find(struct elf_file *f, const struct go_symbols *syms, struct go_table *out)
{
	struct go_table t = {0};
	uint64_t vaddr = 0;
	int rc = table_by_section(f, &t, &vaddr);

	if (rc == -ENOENT)
		rc = table_by_symbol(f, syms->pclntab, &t, &vaddr);
	if (rc == -ENOENT && (f->notes.go || elf_section_by_name(f, ".go.buildinfo")))
		rc = table_by_magic(f, &t, &vaddr);
	if (rc)
		return rc;
	if (t.tab.relative) {
		t.text = text_find(f, syms, &t.tab, vaddr);
		if (!t.text) {
			go_table_release(&t);
			return -ENOENT;
		}
	}
	*out = t;
	return 0;
}

void go_table_release(struct go_table *t)
{
	free(take_ptr(t->bytes));
}
