/* SPDX-License-Identifier: Apache-2.0 */
/*
 * elfmaker: small ELF64 files for tests, byte by byte as the test wants them, right or wrong.
 * Layout: header, room for eight segments, the sections' bytes in the order they were added,
 * section names, section headers.
 */
#ifndef TESTS_INDEX_ELFMAKER_H
#define TESTS_INDEX_ELFMAKER_H

#include <elf.h>
#include <string.h>

#include "schema/base/strbuf.h"

#define MAKER_SEGMENTS 8
#define MAKER_SECTIONS 32
/* offset of the first section */
#define MAKER_DATA (sizeof(Elf64_Ehdr) + MAKER_SEGMENTS * sizeof(Elf64_Phdr))

struct elfmaker {
	struct strbuf bytes;
	struct strbuf names;
	Elf64_Phdr segments[MAKER_SEGMENTS];
	uint16_t segment_count;
	Elf64_Shdr sections[MAKER_SECTIONS];
	uint16_t section_count;
	uint16_t type;
};

static inline void maker_init(struct elfmaker *m, uint16_t type)
{
	static const char zeros[MAKER_DATA];

	memset(m, 0, sizeof(*m));
	m->type = type;
	m->section_count = 1;
	strbuf_add(&m->bytes, zeros, sizeof(zeros));
	strbuf_addch(&m->names, 0);
}

static inline void maker_release(struct elfmaker *m)
{
	strbuf_release(&m->bytes);
	strbuf_release(&m->names);
}

static inline Elf64_Phdr *maker_segment(struct elfmaker *m, uint32_t type, uint32_t flags,
					uint64_t offset, uint64_t vaddr, uint64_t size)
{
	Elf64_Phdr *p = &m->segments[m->segment_count++];

	*p = (Elf64_Phdr){.p_type = type,
			  .p_flags = flags,
			  .p_offset = offset,
			  .p_vaddr = vaddr,
			  .p_paddr = vaddr,
			  .p_filesz = size,
			  .p_memsz = size,
			  .p_align = 4};
	return p;
}

/* Adds the bytes (8-aligned) and a header; sh_addr is 0x10000 + offset. Returns the header, to be
 * changed at will. */
static inline Elf64_Shdr *maker_section(struct elfmaker *m, const char *name, uint32_t type,
					uint64_t flags, const void *data, size_t len)
{
	Elf64_Shdr *s = &m->sections[m->section_count++];

	while (m->bytes.len % 8)
		strbuf_addch(&m->bytes, 0);
	*s = (Elf64_Shdr){.sh_name = (uint32_t)m->names.len,
			  .sh_type = type,
			  .sh_flags = flags,
			  .sh_offset = m->bytes.len,
			  .sh_addr = 0x10000 + m->bytes.len,
			  .sh_size = len,
			  .sh_addralign = 8};
	strbuf_add(&m->names, name, strlen(name) + 1);
	strbuf_add(&m->bytes, data, len);
	return s;
}

/* Writes names, section headers and the ELF header (all may be changed afterwards in m->bytes). */
static inline void maker_finish(struct elfmaker *m)
{
	Elf64_Ehdr h = {.e_type = m->type,
			.e_machine = EM_X86_64,
			.e_version = EV_CURRENT,
			.e_ehsize = sizeof(h),
			.e_phentsize = sizeof(Elf64_Phdr),
			.e_shentsize = sizeof(Elf64_Shdr),
			.e_phoff = sizeof(h),
			.e_phnum = m->segment_count};
	struct strbuf names = {0};

	strbuf_add(&names, m->names.buf, m->names.len);
	strbuf_add(&names, ".shstrtab", 10);
	m->sections[m->section_count] = (Elf64_Shdr){.sh_name = (uint32_t)m->names.len,
						     .sh_type = SHT_STRTAB,
						     .sh_offset = m->bytes.len,
						     .sh_size = names.len};
	strbuf_add(&m->bytes, names.buf, names.len);
	strbuf_release(&names);
	while (m->bytes.len % 8)
		strbuf_addch(&m->bytes, 0);
	h.e_shoff = m->bytes.len;
	h.e_shstrndx = m->section_count;
	h.e_shnum = (uint16_t)(m->section_count + 1);
	strbuf_add(&m->bytes, (const char *)m->sections, h.e_shnum * sizeof(Elf64_Shdr));
	memcpy(h.e_ident, ELFMAG, SELFMAG);
	h.e_ident[EI_CLASS] = ELFCLASS64;
	h.e_ident[EI_DATA] = ELFDATA2LSB;
	h.e_ident[EI_VERSION] = EV_CURRENT;
	memcpy(m->bytes.buf, &h, sizeof(h));
	memcpy(m->bytes.buf + sizeof(h), m->segments, sizeof(m->segments));
}

/* One symbol for a table. */
static inline Elf64_Sym maker_symbol(uint32_t name, unsigned bind, unsigned type, uint64_t addr,
				     uint64_t size)
{
	return (Elf64_Sym){.st_name = name,
			   .st_info = (unsigned char)ELF64_ST_INFO(bind, type),
			   .st_shndx = 1,
			   .st_value = addr,
			   .st_size = size};
}

/* An ordinary library: .text of `code` bytes at MAKER_TEXT, one executable segment over the whole
 * file, .symtab with these symbols. */
#define MAKER_TEXT (0x10000 + MAKER_DATA)

static inline void maker_library(struct elfmaker *m, size_t code, const Elf64_Sym *symbols,
				 size_t count, const char *strings, size_t strings_len)
{
	struct strbuf text = {0};

	maker_init(m, ET_DYN);
	for (size_t i = 0; i < code; i++)
		strbuf_addch(&text, (char)0xcc);
	maker_section(m, ".text", SHT_PROGBITS, SHF_ALLOC | SHF_EXECINSTR, text.buf, code);
	maker_segment(m, PT_LOAD, PF_R | PF_X, 0, 0x10000, MAKER_DATA + code);
	strbuf_release(&text);
	if (!symbols)
		return;
	maker_section(m, ".symtab", SHT_SYMTAB, 0, symbols, count * sizeof(*symbols))->sh_link = 3;
	maker_section(m, ".strtab", SHT_STRTAB, 0, strings, strings_len);
}

#endif
