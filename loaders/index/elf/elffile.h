/* SPDX-License-Identifier: Apache-2.0 */
/*
 * elffile: the skeleton of one ELF file (32 and 64 bit, little endian): header, segments, sections,
 * and access to their bytes. Parts outside of the file are ignored. Interprets only these tables.
 */
#ifndef SONDE_INDEX_ELFFILE_H
#define SONDE_INDEX_ELFFILE_H

#include <elf.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "loaders/index/elf/note.h"
#include "loaders/index/elf/source.h"
#include "schema/base/err.h"

#define ELF_SEGMENTS_MAX 4096
#define ELF_SECTIONS_MAX 65536

/* Tables are kept in their 64-bit shape, whatever the file's class. */
struct elf_file {
	struct source src;
	bool is64;
	uint16_t type;
	uint16_t machine;
	uint64_t entry;       /* where a program begins; 0: nowhere */
	Elf64_Phdr *segments; /* own */
	size_t segment_count;
	Elf64_Shdr *sections; /* own */
	size_t section_count;
	char *names; /* own: section names, NUL after the end; NULL: none */
	size_t names_size;
	struct note_facts notes;
	Elf64_Dyn *dynamic; /* own: entries before DT_NULL */
	size_t dynamic_count;
};

/* A range of addresses. */
struct elf_range {
	uint64_t start, end;
};

/* Reads header, tables and notes. -ENOEXEC: no ELF file of a kind that runs here; else as
 * source_read. */
int elf_open(struct elf_file *f, const struct source *src, struct err *e);
/* The same for a file of debug information alone, which may be a relocatable one (dwz writes such).
 */
int elf_open_debug(struct elf_file *f, const struct source *src, struct err *e);
void elf_release(struct elf_file *f);

/* The first entry of that tag. false: none. */
bool elf_dynamic_value(const struct elf_file *f, int64_t tag, uint64_t *value);
/* "" if it has none. */
const char *elf_section_name(const struct elf_file *f, const Elf64_Shdr *s);
/* NULL: none. */
const Elf64_Shdr *elf_section_by_name(const struct elf_file *f, const char *name);
const Elf64_Shdr *elf_section_by_type(const struct elf_file *f, uint32_t type);
/* -ERANGE for what has no bytes in the file (SHT_NOBITS), compressed sections too: none that we
 * read may be. */
int elf_section_read(struct elf_file *f, const Elf64_Shdr *s, void **out);
/* Bytes by address; they must lie in one segment's part of the file. */
int elf_read_at(struct elf_file *f, uint64_t vaddr, uint64_t len, void **out);
/* How many bytes of the file follow `vaddr` within its segment; 0: none. */
uint64_t elf_bytes_at(const struct elf_file *f, uint64_t vaddr);
/* Write the addends of relative relocations that fall into `buf`, which holds [vaddr, vaddr + len):
 * a linker leaves zeros in the file of a position independent program where the loader puts
 * addresses. */
int elf_relocate(struct elf_file *f, void *buf, uint64_t vaddr, uint64_t len);
/* What holds code: executable sections, or executable segments in a file without sections; sorted,
 * not overlapping, inside executable segments. Own (free it). */
int elf_code_ranges(const struct elf_file *f, struct elf_range **out, size_t *count);

#endif
