/* SPDX-License-Identifier: Apache-2.0 */
#include "loaders/index/go/gomodule.h"

#include <errno.h>

#include "loaders/index/elf/region.h"

#define TEXT_WORD_2  12 /* moduledata.text, by generation of the pclntab */
#define TEXT_WORD_16 22

bool go_is_code(const struct elf_file *f, uint64_t vaddr)
{
	for (size_t i = 0; i < f->segment_count; i++) {
		const Elf64_Phdr *p = &f->segments[i];

		if (p->p_type == PT_LOAD && (p->p_flags & PF_X) && vaddr >= p->p_vaddr &&
		    vaddr - p->p_vaddr < p->p_memsz)
			return true;
	}
	return false;
}

/* Is it at `offset` of the region? */
static bool module_at(const struct elf_file *f, const struct region *r, uint64_t offset,
		      const struct pclntab *t, uint64_t table, struct go_module *out)
{
	const unsigned word = t->ptr_size;
	uint64_t text;

	if (region_word(r, offset, word) != table)
		return false;
	text = region_word(r, offset + (t->generation == 2 ? TEXT_WORD_2 : TEXT_WORD_16) * word,
			   word);
	if (!go_is_code(f, text))
		return false;
	out->addr = r->vaddr + offset;
	out->text = text;
	for (unsigned i = 0; i < GO_MODULE_WORDS; i++)
		out->words[i] = region_word(r, offset + i * word, word);
	return true;
}

static int module_in(struct elf_file *f, uint64_t vaddr, uint64_t len, const struct pclntab *t,
		     uint64_t table, struct go_module *out)
{
	cleanup_region struct region r = {0};
	int rc = region_read(f, vaddr, len, &r);

	if (rc)
		return rc == -ENOENT ? 0 : rc;
	for (uint64_t at = 0; at + t->ptr_size <= r.len; at += t->ptr_size)
		if (module_at(f, &r, at, t, table, out))
			break;
	return 0;
}

int go_module_find(struct elf_file *f, const struct pclntab *t, uint64_t table,
		   struct go_module *out)
{
	const Elf64_Shdr *s = elf_section_by_name(f, ".go.module");
	int rc = 0;

	*out = (struct go_module){0};
	if (s && s->sh_type != SHT_NOBITS)
		rc = module_in(f, s->sh_addr, s->sh_size, t, table, out);
	for (size_t i = 0; !rc && !out->addr && i < f->segment_count; i++) {
		const Elf64_Phdr *p = &f->segments[i];

		if (p->p_type == PT_LOAD && (p->p_flags & PF_W))
			rc = module_in(f, p->p_vaddr, p->p_filesz, t, table, out);
	}
	return rc;
}
