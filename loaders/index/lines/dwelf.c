/* SPDX-License-Identifier: Apache-2.0 */
#include "loaders/index/lines/dwelf.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "schema/base/array.h"
#include "schema/base/cleanup.h"

/* Behind ".debug_", or ".zdebug_" for what old tools compressed. */
static const char *const wanted[] = {"info",        "abbrev", "line",   "str",     "line_str",
				     "str_offsets", "addr",   "ranges", "rnglists"};
#define WANTED_COUNT ARRAY_SIZE(wanted)
#define NAME_MAX_LEN 32

static const char *debug_part(const char *name)
{
	if (!strncmp(name, ".debug_", 7))
		return name + 7;
	return strncmp(name, ".zdebug_", 8) ? NULL : name + 8;
}

static bool is_wanted(const struct elf_file *f, const Elf64_Shdr *s)
{
	const char *part = debug_part(elf_section_name(f, s));

	if (!part || s->sh_type == SHT_NOBITS || !s->sh_size)
		return false;
	for (size_t i = 0; i < WANTED_COUNT; i++)
		if (!strcmp(part, wanted[i]))
			return true;
	return false;
}

uint64_t dwelf_size(const struct elf_file *f)
{
	uint64_t sum = 0;
	bool info = false;

	for (size_t i = 0; i < f->section_count; i++) {
		const Elf64_Shdr *s = &f->sections[i];

		if (!is_wanted(f, s))
			continue;
		info |= !strcmp(debug_part(elf_section_name(f, s)), "info");
		sum += s->sh_size < f->src.size ? s->sh_size : f->src.size;
	}
	return info ? sum : 0;
}

/* ---- writing ---- */

struct build {
	uint8_t *buf; /* own */
	size_t size, at;
	Elf64_Shdr sections[WANTED_COUNT + 2]; /* none, the debug sections, names */
	size_t count;
	char names[(WANTED_COUNT + 2) * NAME_MAX_LEN];
	size_t names_len;
};

static size_t align8(size_t n)
{
	return (n + 7) & ~(size_t)7;
}

static Elf64_Shdr *section_add(struct build *b, const char *name)
{
	Elf64_Shdr *s = &b->sections[b->count++];
	size_t len = strlen(name) + 1;

	*s = (Elf64_Shdr){.sh_name = (Elf64_Word)b->names_len,
			  .sh_type = SHT_PROGBITS,
			  .sh_offset = b->at,
			  .sh_addralign = 1};
	memcpy(b->names + b->names_len, name, len);
	b->names_len += len;
	return s;
}

/* How a section's bytes begin: as they are; with a 32-bit file's header of compressed bytes; or as
 * ".zdebug_..." did. */
enum packing { PLAIN, PACKED_32, PACKED_OLD };

#define OLD_MAGIC       "ZLIB"
#define OLD_HEADER_SIZE 12 /* the magic, and the size as 64 bits, big-endian */

static_assert(sizeof(Elf32_Chdr) == OLD_HEADER_SIZE, "both headers take the same room");

static enum packing packing_of(const struct elf_file *f, const Elf64_Shdr *s)
{
	if (s->sh_size < OLD_HEADER_SIZE)
		return PLAIN;
	if (!strncmp(elf_section_name(f, s), ".zdebug_", 8))
		return PACKED_OLD;
	return !f->is64 && (s->sh_flags & SHF_COMPRESSED) ? PACKED_32 : PLAIN;
}

/* The 64-bit header of compressed bytes that says what this other one says. */
static Elf64_Chdr header_widen(const uint8_t *from, enum packing packing)
{
	Elf32_Chdr narrow;
	uint64_t size;

	if (packing == PACKED_32) {
		memcpy(&narrow, from, sizeof(narrow));
		return (Elf64_Chdr){.ch_type = narrow.ch_type,
				    .ch_size = narrow.ch_size,
				    .ch_addralign = narrow.ch_addralign};
	}
	memcpy(&size, from + sizeof(OLD_MAGIC) - 1, sizeof(size));
	return (Elf64_Chdr){
		.ch_type = memcmp(from, OLD_MAGIC, sizeof(OLD_MAGIC) - 1) ? 0 : ELFCOMPRESS_ZLIB,
		.ch_size = __builtin_bswap64(size),
		.ch_addralign = 1};
}

/* The bytes of a section of the file, with the header that a 64-bit file would have. */
static int section_copy(struct build *b, struct elf_file *f, const Elf64_Shdr *from)
{
	const enum packing packing = packing_of(f, from);
	const size_t room = packing == PLAIN ? 0 : sizeof(Elf64_Chdr) - OLD_HEADER_SIZE;
	const char *part = debug_part(elf_section_name(f, from));
	char name[NAME_MAX_LEN];
	Elf64_Shdr *to;
	int rc;

	snprintf(name, sizeof(name), ".debug_%s", part);
	to = section_add(b, name);
	rc = source_read_into(&f->src, from->sh_offset, from->sh_size, b->buf + b->at + room);
	if (rc)
		return rc;
	if (packing != PLAIN) {
		const Elf64_Chdr wide = header_widen(b->buf + b->at + room, packing);

		memcpy(b->buf + b->at, &wide, sizeof(wide));
	}
	to->sh_size = from->sh_size + room;
	to->sh_flags = packing == PACKED_OLD ? SHF_COMPRESSED : from->sh_flags & SHF_COMPRESSED;
	b->at = align8(b->at + to->sh_size);
	return 0;
}

static void finish(struct build *b, uint16_t machine)
{
	Elf64_Ehdr h = {.e_type = ET_EXEC,
			.e_machine = machine,
			.e_version = EV_CURRENT,
			.e_ehsize = sizeof(h),
			.e_shentsize = sizeof(Elf64_Shdr)};
	Elf64_Shdr *names = section_add(b, ".shstrtab");

	memcpy(h.e_ident, ELFMAG, SELFMAG);
	h.e_ident[EI_CLASS] = ELFCLASS64;
	h.e_ident[EI_DATA] = ELFDATA2LSB;
	h.e_ident[EI_VERSION] = EV_CURRENT;
	names->sh_type = SHT_STRTAB;
	names->sh_size = b->names_len;
	memcpy(b->buf + b->at, b->names, b->names_len);
	b->at = align8(b->at + b->names_len);
	h.e_shoff = b->at;
	h.e_shnum = (Elf64_Half)b->count;
	h.e_shstrndx = (Elf64_Half)(b->count - 1);
	memcpy(b->buf, &h, sizeof(h));
	memcpy(b->buf + b->at, b->sections, b->count * sizeof(*b->sections));
	b->at += b->count * sizeof(*b->sections);
}

/* A section of this name is there already: a file that repeats itself. */
static bool have_already(const struct build *b, const char *name)
{
	for (size_t i = 1; i < b->count; i++)
		if (!strcmp(debug_part(b->names + b->sections[i].sh_name), debug_part(name)))
			return true;
	return false;
}

int dwelf_make(struct elf_file *f, void **out, size_t *size)
{
	const uint64_t bytes = dwelf_size(f);
	cleanup_free uint8_t *buf = NULL;
	struct build b = {.names_len = 1, .count = 1, .at = sizeof(Elf64_Ehdr)};

	if (!bytes)
		return -ENOENT;
	if (bytes > *f->src.left)
		return -EFBIG;
	b.size = sizeof(Elf64_Ehdr) + bytes + sizeof(b.sections) + sizeof(b.names) +
		 WANTED_COUNT * 32;
	b.buf = buf = calloc(1, b.size);
	if (!buf)
		return -ENOMEM;
	for (size_t i = 0; i < f->section_count; i++) {
		int rc;

		if (!is_wanted(f, &f->sections[i]) ||
		    have_already(&b, elf_section_name(f, &f->sections[i])))
			continue;
		rc = section_copy(&b, f, &f->sections[i]);
		if (rc)
			return rc;
	}
	finish(&b, f->machine);
	*size = b.at;
	*out = take_ptr(buf);
	return 0;
}
