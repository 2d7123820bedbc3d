/* SPDX-License-Identifier: Apache-2.0 */
/* docs/decisions/0080 says why this is not libelf. */
#include "loaders/index/elf/elffile.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "schema/base/cleanup.h"

#define NOTES_MAX   (1u << 20) /* bytes of one note segment or section */
#define DYNAMIC_MAX (1u << 20) /* bytes */

static bool add_overflows(uint64_t a, uint64_t b)
{
	return a + b < a;
}

static bool in_file(const struct elf_file *f, uint64_t offset, uint64_t size)
{
	return offset <= f->src.size && size <= f->src.size - offset;
}

static void phdr_widen(Elf64_Phdr *out, const Elf32_Phdr *in)
{
	*out = (Elf64_Phdr){.p_type = in->p_type,
			    .p_flags = in->p_flags,
			    .p_offset = in->p_offset,
			    .p_vaddr = in->p_vaddr,
			    .p_paddr = in->p_paddr,
			    .p_filesz = in->p_filesz,
			    .p_memsz = in->p_memsz,
			    .p_align = in->p_align};
}

static void shdr_widen(Elf64_Shdr *out, const Elf32_Shdr *in)
{
	*out = (Elf64_Shdr){.sh_name = in->sh_name,
			    .sh_type = in->sh_type,
			    .sh_flags = in->sh_flags,
			    .sh_addr = in->sh_addr,
			    .sh_offset = in->sh_offset,
			    .sh_size = in->sh_size,
			    .sh_link = in->sh_link,
			    .sh_info = in->sh_info,
			    .sh_addralign = in->sh_addralign,
			    .sh_entsize = in->sh_entsize};
}

static void ehdr_widen(Elf64_Ehdr *out, const Elf32_Ehdr *in)
{
	*out = (Elf64_Ehdr){.e_type = in->e_type,
			    .e_machine = in->e_machine,
			    .e_version = in->e_version,
			    .e_entry = in->e_entry,
			    .e_phoff = in->e_phoff,
			    .e_shoff = in->e_shoff,
			    .e_flags = in->e_flags,
			    .e_ehsize = in->e_ehsize,
			    .e_phentsize = in->e_phentsize,
			    .e_phnum = in->e_phnum,
			    .e_shentsize = in->e_shentsize,
			    .e_shnum = in->e_shnum,
			    .e_shstrndx = in->e_shstrndx};
	memcpy(out->e_ident, in->e_ident, EI_NIDENT);
}

/* The ELF header in its wide shape. */
static int header_read(struct elf_file *f, Elf64_Ehdr *out, bool relocatable, struct err *e)
{
	cleanup_free void *raw = NULL;
	uint64_t len = f->src.size < sizeof(Elf64_Ehdr) ? f->src.size : sizeof(Elf64_Ehdr);
	const uint8_t *id;
	int rc = source_read(&f->src, 0, len, &raw);

	if (rc)
		return err_set(e, rc, EXIT_RUNTIME, "cannot read the ELF header: %s",
			       strerror(-rc));
	id = raw;
	if (len < sizeof(Elf32_Ehdr) || memcmp(id, ELFMAG, SELFMAG))
		return err_set(e, -ENOEXEC, EXIT_RUNTIME, "not an ELF file");
	if (id[EI_DATA] != ELFDATA2LSB)
		return err_set(e, -ENOEXEC, EXIT_RUNTIME, "not a little-endian ELF file");
	f->is64 = id[EI_CLASS] == ELFCLASS64;
	if (f->is64 && len == sizeof(*out))
		memcpy(out, raw, sizeof(*out));
	else if (id[EI_CLASS] == ELFCLASS32)
		ehdr_widen(out, raw);
	else
		return err_set(e, -ENOEXEC, EXIT_RUNTIME,
			       "ELF header of an unknown class, or cut off");
	if (out->e_type != ET_EXEC && out->e_type != ET_DYN &&
	    !(relocatable && out->e_type == ET_REL))
		return err_set(e, -ENOEXEC, EXIT_RUNTIME,
			       "ELF file of type %u: neither program nor library", out->e_type);
	f->type = out->e_type;
	f->machine = out->e_machine;
	f->entry = out->e_entry;
	return 0;
}

/* Section 0 holds the counts that do not fit in the header (gABI: e_shnum 0, SHN_XINDEX, PN_XNUM).
 */
static int sections_read(struct elf_file *f, Elf64_Ehdr *h, uint32_t *names_index,
			 uint32_t *segments)
{
	const size_t size = f->is64 ? sizeof(Elf64_Shdr) : sizeof(Elf32_Shdr);
	cleanup_free uint8_t *raw = NULL;
	Elf64_Shdr first;
	uint64_t n = h->e_shnum;
	void *p = NULL;
	int rc;

	if (!h->e_shoff || h->e_shentsize != size || !in_file(f, h->e_shoff, size))
		return 0;
	rc = source_read(&f->src, h->e_shoff, size, &p);
	if (rc)
		return rc;
	if (f->is64)
		memcpy(&first, p, sizeof(first));
	else
		shdr_widen(&first, p);
	free(p);
	p = NULL;
	if (!n)
		n = first.sh_size;
	if (h->e_shstrndx == SHN_XINDEX)
		*names_index = first.sh_link;
	if (h->e_phnum == PN_XNUM)
		*segments = first.sh_info;
	if (n > ELF_SECTIONS_MAX || !in_file(f, h->e_shoff, n * size))
		return 0; /* a lying table is no table */
	rc = source_read(&f->src, h->e_shoff, n * size, &p);
	if (rc)
		return rc;
	raw = p;
	f->sections = calloc(n ? n : 1, sizeof(*f->sections));
	if (!f->sections)
		return -ENOMEM;
	f->section_count = n;
	for (size_t i = 0; i < n; i++) {
		if (f->is64)
			memcpy(&f->sections[i], raw + i * size, size);
		else
			shdr_widen(&f->sections[i], (const void *)(raw + i * size));
	}
	return 0;
}

static int names_read(struct elf_file *f, uint32_t index)
{
	void *p = NULL;
	int rc;

	if (index >= f->section_count || f->sections[index].sh_type != SHT_STRTAB)
		return 0;
	rc = elf_section_read(f, &f->sections[index], &p);
	if (rc)
		return rc == -ERANGE || rc == -EFBIG ? 0 : rc;
	f->names = p;
	f->names_size = f->sections[index].sh_size;
	return 0;
}

static int segments_read(struct elf_file *f, const Elf64_Ehdr *h, uint32_t n)
{
	const size_t size = f->is64 ? sizeof(Elf64_Phdr) : sizeof(Elf32_Phdr);
	cleanup_free void *raw = NULL;
	int rc;

	if (!n || n > ELF_SEGMENTS_MAX || h->e_phentsize != size ||
	    !in_file(f, h->e_phoff, (uint64_t)n * size))
		return -ENOEXEC;
	rc = source_read(&f->src, h->e_phoff, (uint64_t)n * size, &raw);
	if (rc)
		return rc;
	f->segments = calloc(n, sizeof(*f->segments));
	if (!f->segments)
		return -ENOMEM;
	f->segment_count = n;
	for (size_t i = 0; i < n; i++) {
		if (f->is64)
			memcpy(&f->segments[i], (const uint8_t *)raw + i * size, size);
		else
			phdr_widen(&f->segments[i],
				   (const void *)((const uint8_t *)raw + i * size));
		/* ignore a segment whose address range wraps around */
		if (add_overflows(f->segments[i].p_vaddr, f->segments[i].p_memsz) ||
		    f->segments[i].p_filesz > f->segments[i].p_memsz)
			f->segments[i].p_type = PT_NULL;
	}
	return 0;
}

static int notes_read_range(struct elf_file *f, uint64_t offset, uint64_t size, uint64_t align)
{
	cleanup_free void *p = NULL;
	int rc;

	if (!size || size > NOTES_MAX || !in_file(f, offset, size))
		return 0;
	rc = source_read(&f->src, offset, size, &p);
	if (rc)
		return rc == -EFBIG ? 0 : rc;
	note_scan(p, size, align == 8 ? 8 : 4, &f->notes);
	return 0;
}

/* Segments first: what the kernel and the loader see. A separate debug file may have notes in
 * sections only. */
static int notes_read(struct elf_file *f)
{
	int rc = 0;

	for (size_t i = 0; !rc && i < f->segment_count; i++)
		if (f->segments[i].p_type == PT_NOTE)
			rc = notes_read_range(f, f->segments[i].p_offset, f->segments[i].p_filesz,
					      f->segments[i].p_align);
	for (size_t i = 0; !rc && !f->notes.build_id_len && i < f->section_count; i++)
		if (f->sections[i].sh_type == SHT_NOTE)
			rc = notes_read_range(f, f->sections[i].sh_offset, f->sections[i].sh_size,
					      f->sections[i].sh_addralign);
	return rc;
}

/* The dynamic section in its wide shape. Its last entry is DT_NULL, or the segment's end. */
static int dynamic_read(struct elf_file *f)
{
	const Elf64_Phdr *p = NULL;
	cleanup_free uint8_t *raw = NULL;
	size_t size = f->is64 ? sizeof(Elf64_Dyn) : sizeof(Elf32_Dyn);
	void *data = NULL;
	int rc;

	for (size_t i = 0; i < f->segment_count && !p; i++)
		if (f->segments[i].p_type == PT_DYNAMIC)
			p = &f->segments[i];
	if (!p || p->p_filesz > DYNAMIC_MAX || !in_file(f, p->p_offset, p->p_filesz))
		return 0;
	rc = source_read(&f->src, p->p_offset, p->p_filesz, &data);
	if (rc)
		return rc;
	raw = data;
	f->dynamic = calloc(p->p_filesz / size + 1, sizeof(*f->dynamic));
	if (!f->dynamic)
		return -ENOMEM;
	for (size_t i = 0; i < p->p_filesz / size; i++) {
		Elf32_Dyn d;

		if (f->is64) {
			memcpy(&f->dynamic[i], raw + i * size, size);
		} else {
			memcpy(&d, raw + i * size, size);
			f->dynamic[i].d_tag = d.d_tag;
			f->dynamic[i].d_un.d_val = d.d_un.d_val;
		}
		if (f->dynamic[i].d_tag == DT_NULL)
			break;
		f->dynamic_count++;
	}
	return 0;
}

bool elf_dynamic_value(const struct elf_file *f, int64_t tag, uint64_t *value)
{
	for (size_t i = 0; i < f->dynamic_count; i++)
		if (f->dynamic[i].d_tag == tag) {
			*value = f->dynamic[i].d_un.d_val;
			return true;
		}
	return false;
}

static int tables_open(struct elf_file *f, const struct source *src, bool relocatable,
		       struct err *e)
{
	Elf64_Ehdr h;
	uint32_t names_index, segments;
	int rc;

	*f = (struct elf_file){.src = *src};
	rc = header_read(f, &h, relocatable, e);
	if (rc)
		return rc;
	names_index = h.e_shstrndx;
	segments = h.e_phnum;
	rc = sections_read(f, &h, &names_index, &segments);
	if (!rc && h.e_type != ET_REL)
		rc = segments_read(f, &h, segments);
	if (!rc)
		rc = names_read(f, names_index);
	if (!rc)
		rc = notes_read(f);
	if (!rc)
		rc = dynamic_read(f);
	if (rc) {
		elf_release(f);
		return err_set(e, rc, EXIT_RUNTIME, "cannot read the ELF tables: %s",
			       rc == -ENOEXEC ? "no sound segment table" : strerror(-rc));
	}
	return 0;
}

int elf_open(struct elf_file *f, const struct source *src, struct err *e)
{
	return tables_open(f, src, false, e);
}

int elf_open_debug(struct elf_file *f, const struct source *src, struct err *e)
{
	return tables_open(f, src, true, e);
}

void elf_release(struct elf_file *f)
{
	free(take_ptr(f->segments));
	free(take_ptr(f->sections));
	free(take_ptr(f->names));
	free(take_ptr(f->dynamic));
	f->segment_count = f->section_count = f->names_size = f->dynamic_count = 0;
}

const char *elf_section_name(const struct elf_file *f, const Elf64_Shdr *s)
{
	return f->names && s->sh_name < f->names_size ? f->names + s->sh_name : "";
}

const Elf64_Shdr *elf_section_by_name(const struct elf_file *f, const char *name)
{
	for (size_t i = 1; i < f->section_count; i++)
		if (!strcmp(elf_section_name(f, &f->sections[i]), name))
			return &f->sections[i];
	return NULL;
}

const Elf64_Shdr *elf_section_by_type(const struct elf_file *f, uint32_t type)
{
	for (size_t i = 1; i < f->section_count; i++)
		if (f->sections[i].sh_type == type)
			return &f->sections[i];
	return NULL;
}

int elf_section_read(struct elf_file *f, const Elf64_Shdr *s, void **out)
{
	if (s->sh_type == SHT_NOBITS || s->sh_type == SHT_NULL || (s->sh_flags & SHF_COMPRESSED))
		return -ERANGE;
	return source_read(&f->src, s->sh_offset, s->sh_size, out);
}

static const Elf64_Phdr *segment_at(const struct elf_file *f, uint64_t vaddr)
{
	for (size_t i = 0; i < f->segment_count; i++) {
		const Elf64_Phdr *p = &f->segments[i];

		if (p->p_type == PT_LOAD && vaddr >= p->p_vaddr && vaddr - p->p_vaddr < p->p_filesz)
			return p;
	}
	return NULL;
}

uint64_t elf_bytes_at(const struct elf_file *f, uint64_t vaddr)
{
	const Elf64_Phdr *p = segment_at(f, vaddr);

	if (!p || !in_file(f, p->p_offset, p->p_filesz))
		return 0;
	return p->p_filesz - (vaddr - p->p_vaddr);
}

int elf_read_at(struct elf_file *f, uint64_t vaddr, uint64_t len, void **out)
{
	const Elf64_Phdr *p = segment_at(f, vaddr);

	if (!p || len > elf_bytes_at(f, vaddr))
		return -ERANGE;
	return source_read(&f->src, p->p_offset + (vaddr - p->p_vaddr), len, out);
}

/* ---- relative relocations ---- */

static bool is_relative(const struct elf_file *f, uint64_t type)
{
	return (f->machine == EM_X86_64 && type == R_X86_64_RELATIVE) ||
	       (f->machine == EM_AARCH64 && type == R_AARCH64_RELATIVE);
}

int elf_relocate(struct elf_file *f, void *buf, uint64_t vaddr, uint64_t len)
{
	cleanup_free void *raw = NULL;
	uint64_t at = 0, size = 0;
	uint8_t *bytes = buf;
	const Elf64_Rela *r;
	int rc;

	/* 32-bit machines keep the addend in place (REL), and so do packed relocations (RELR) */
	if (!f->is64 || f->type != ET_DYN || len < 8 || !elf_dynamic_value(f, DT_RELA, &at) ||
	    !elf_dynamic_value(f, DT_RELASZ, &size))
		return 0;
	rc = elf_read_at(f, at, size, &raw);
	if (rc)
		return rc == -ERANGE || rc == -EFBIG ? 0 : rc;
	r = raw;
	for (size_t i = 0; i < size / sizeof(*r); i++)
		if (r[i].r_offset >= vaddr && r[i].r_offset - vaddr <= len - 8 &&
		    is_relative(f, ELF64_R_TYPE(r[i].r_info)))
			memcpy(bytes + (r[i].r_offset - vaddr), &r[i].r_addend, 8);
	return 0;
}

/* ---- where code is ---- */

/* A section cut to the executable segment that holds its start; empty if none does. */
static struct elf_range code_clip(const struct elf_file *f, uint64_t start, uint64_t size)
{
	for (size_t i = 0; i < f->segment_count; i++) {
		const Elf64_Phdr *p = &f->segments[i];
		uint64_t room;

		if (p->p_type != PT_LOAD || !(p->p_flags & PF_X) || start < p->p_vaddr ||
		    start - p->p_vaddr >= p->p_memsz)
			continue;
		room = p->p_memsz - (start - p->p_vaddr);
		return (struct elf_range){start, start + (size < room ? size : room)};
	}
	return (struct elf_range){start, start};
}

/* Not qsort: glibc's asks the system for its memory size, and the sandbox kills for that. */
static void ranges_sort(struct elf_range *r, size_t n)
{
	for (size_t i = 1; i < n; i++) {
		struct elf_range x = r[i];
		size_t k = i;

		for (; k && r[k - 1].start > x.start; k--)
			r[k] = r[k - 1];
		r[k] = x;
	}
}

#define CODE_RANGES_MAX 8192 /* insertion sort stays short whatever the table says */

static size_t code_of_sections(const struct elf_file *f, struct elf_range *r)
{
	size_t n = 0;

	for (size_t i = 1; i < f->section_count && n < CODE_RANGES_MAX; i++) {
		const Elf64_Shdr *s = &f->sections[i];

		if ((s->sh_flags & (SHF_ALLOC | SHF_EXECINSTR)) == (SHF_ALLOC | SHF_EXECINSTR))
			r[n++] = code_clip(f, s->sh_addr, s->sh_size);
	}
	return n;
}

static size_t code_of_segments(const struct elf_file *f, struct elf_range *r)
{
	size_t n = 0;

	for (size_t i = 0; i < f->segment_count && n < CODE_RANGES_MAX; i++)
		if (f->segments[i].p_type == PT_LOAD && (f->segments[i].p_flags & PF_X))
			r[n++] = code_clip(f, f->segments[i].p_vaddr, f->segments[i].p_memsz);
	return n;
}

int elf_code_ranges(const struct elf_file *f, struct elf_range **out, size_t *count)
{
	struct elf_range *r = calloc(CODE_RANGES_MAX, sizeof(*r));
	size_t n, kept = 0;

	if (!r)
		return -ENOMEM;
	n = code_of_sections(f, r);
	if (!n)
		n = code_of_segments(f, r);
	ranges_sort(r, n);
	for (size_t i = 0; i < n; i++) {
		if (kept && r[i].start < r[kept - 1].end)
			r[i].start = r[kept - 1].end;
		if (r[i].start < r[i].end)
			r[kept++] = r[i];
	}
	*out = r;
	*count = kept;
	return 0;
}
