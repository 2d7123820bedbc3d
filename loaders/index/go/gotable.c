/* SPDX-License-Identifier: Apache-2.0 */
#include "loaders/index/go/gotable.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "loaders/index/elf/region.h"
#include "schema/base/array.h"
#include "schema/base/cleanup.h"

/* ---- symbols ---- */

static const char *const variable_names[IMAGE_GO_VARIABLES] = {
	[IMAGE_GO_MBUCKETS] = "mbuckets",
	[IMAGE_GO_XBUCKETS] = "xbuckets",
	[IMAGE_GO_BBUCKETS] = "bbuckets",
	[IMAGE_GO_MEM_PROFILE_RATE] = "MemProfileRate",
	[IMAGE_GO_BLOCK_PROFILE_RATE] = "blockprofilerate",
	[IMAGE_GO_MUTEX_PROFILE_RATE] = "mutexprofilerate",
	[IMAGE_GO_MPROF_CYCLE] = "mProfCycle",
	[IMAGE_GO_MPROF] = "mProf",
	[IMAGE_GO_ALLGS] = "allgs",
	[IMAGE_GO_ALLGLEN] = "allglen",
	[IMAGE_GO_ALLGPTR] = "allgptr",
	[IMAGE_GO_BUILD_VERSION] = "buildVersion",
	[IMAGE_GO_TICKS] = "ticks",
};

void go_symbols_note(struct go_symbols *go, const char *name, uint64_t addr)
{
	if (strncmp(name, "runtime.", 8))
		return;
	name += 8;
	if (!strcmp(name, "pclntab"))
		go->pclntab = addr;
	else if (!strcmp(name, "text"))
		go->text = addr;
	for (unsigned i = 0; i < IMAGE_GO_VARIABLES; i++)
		if (variable_names[i] && !strcmp(name, variable_names[i]))
			go->variables[i] = addr;
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

	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
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

static int table_in_segment(struct elf_file *f, const Elf64_Phdr *p, struct go_table *out,
			    uint64_t *vaddr)
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

/* Searches data first; a linker without separate code puts read-only data next to the code. */
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

static uint64_t text_find(const struct elf_file *f, const struct go_symbols *syms,
			  const struct go_table *t)
{
	if (go_is_code(f, t->tab.text_start))
		return t->tab.text_start;
	if (t->module.addr)
		return t->module.text;
	return go_is_code(f, syms->text) ? syms->text : 0;
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
	t.vaddr = vaddr;
	rc = go_module_find(f, &t.tab, vaddr, &t.module);
	if (!rc && t.tab.relative) {
		t.text = text_find(f, syms, &t);
		rc = t.text ? 0 : -ENOENT;
	}
	if (rc) {
		go_table_release(&t);
		return rc;
	}
	*out = t;
	return 0;
}

void go_table_release(struct go_table *t)
{
	free(take_ptr(t->bytes));
}
