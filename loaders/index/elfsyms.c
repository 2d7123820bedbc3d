/* SPDX-License-Identifier: Apache-2.0 */
#include "loaders/index/elfsyms.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "schema/base/cleanup.h"
#include "schema/base/cursor.h"
#include "schema/base/idmap.h"
#include "schema/image/format.h"

/* One symbol table with its strings. */
struct table {
	uint8_t *symbols; /* own */
	size_t size;      /* bytes */
	size_t stride;
	char *strings; /* own until given to the symset; NUL after the end */
	size_t strings_size;
};

static void table_release(struct table *t)
{
	free(t->symbols);
	free(t->strings);
}
#define cleanup_table __attribute__((cleanup(table_release)))

/* What does not fit is left out; only trouble with reading is an error. */
static int soften(int rc)
{
	return rc == -ERANGE || rc == -EFBIG ? -ENOENT : rc;
}

static int table_by_section(struct elf_file *f, uint32_t type, struct table *t)
{
	const Elf64_Shdr *s = elf_section_by_type(f, type), *str;
	void *p = NULL;
	int rc;

	if (!s || s->sh_link >= f->section_count)
		return -ENOENT;
	str = &f->sections[s->sh_link];
	rc = soften(elf_section_read(f, s, &p));
	if (rc)
		return rc;
	t->symbols = p;
	t->size = s->sh_size;
	rc = soften(elf_section_read(f, str, &p));
	if (rc)
		return rc;
	t->strings = p;
	t->strings_size = str->sh_size;
	return 0;
}

/* ---- .dynsym without sections: its length is said only by the hash tables ---- */

static bool count_by_hash(struct elf_file *f, uint64_t *count)
{
	cleanup_free void *p = NULL;
	uint64_t at;
	uint32_t words[2];

	if (!elf_dynamic_value(f, DT_HASH, &at) || elf_read_at(f, at, 8, &p))
		return false;
	memcpy(words, p, 8);
	*count = words[1];
	return true;
}

/* The chain that begins last ends with the last symbol, whose hash has bit 0 set. */
static bool count_by_gnu_hash(struct elf_file *f, uint64_t *count)
{
	const size_t bloom_word = f->is64 ? 8 : 4;
	cleanup_free void *p = NULL;
	uint64_t at, len;
	struct cursor c;
	uint32_t buckets, first, bloom, last = 0;

	if (!elf_dynamic_value(f, DT_GNU_HASH, &at))
		return false;
	len = elf_bytes_at(f, at);
	/* hash tables are small; the segment that holds them may not be */
	if (elf_read_at(f, at, len < (64u << 20) ? len : (64u << 20), &p))
		return false;
	c = cursor_init(p, (size_t)(len < (64u << 20) ? len : (64u << 20)));
	buckets = cursor_u32(&c);
	first = cursor_u32(&c);
	bloom = cursor_u32(&c);
	cursor_u32(&c);
	cursor_bytes(&c, (size_t)bloom * bloom_word);
	for (uint32_t i = 0; i < buckets && !c.bad; i++) {
		uint32_t b = cursor_u32(&c);

		last = b > last ? b : last;
	}
	if (c.bad || last < first)
		return false;
	cursor_bytes(&c, (size_t)(last - first) * 4);
	for (*count = last; !c.bad; ++*count)
		if (cursor_u32(&c) & 1) {
			++*count;
			return !c.bad;
		}
	return false;
}

static int table_by_dynamic(struct elf_file *f, struct table *t)
{
	uint64_t symbols, strings, strings_size, count, most;
	void *p = NULL;
	int rc;

	if (!elf_dynamic_value(f, DT_SYMTAB, &symbols) ||
	    !elf_dynamic_value(f, DT_STRTAB, &strings) ||
	    !elf_dynamic_value(f, DT_STRSZ, &strings_size))
		return -ENOENT;
	if (!count_by_hash(f, &count) && !count_by_gnu_hash(f, &count))
		return -ENOENT;
	most = elf_bytes_at(f, symbols) / t->stride;
	count = count < most ? count : most;
	rc = soften(elf_read_at(f, symbols, count * t->stride, &p));
	if (rc)
		return rc;
	t->symbols = p;
	t->size = count * t->stride;
	rc = soften(elf_read_at(f, strings, strings_size, &p));
	if (rc)
		return rc;
	t->strings = p;
	t->strings_size = strings_size;
	return 0;
}

static int table_read(struct elf_file *f, enum elfsyms_table which, struct table *t)
{
	int rc;

	t->stride = f->is64 ? sizeof(Elf64_Sym) : sizeof(Elf32_Sym);
	rc = table_by_section(f, which == ELFSYMS_SYMTAB ? SHT_SYMTAB : SHT_DYNSYM, t);
	if (rc == -ENOENT && which == ELFSYMS_DYNSYM && !elf_section_by_type(f, SHT_DYNSYM))
		rc = table_by_dynamic(f, t);
	return rc;
}

static Elf64_Sym table_get(const struct elf_file *f, const struct table *t, size_t i)
{
	Elf64_Sym s;
	Elf32_Sym n;

	if (f->is64) {
		memcpy(&s, t->symbols + i * t->stride, sizeof(s));
		return s;
	}
	memcpy(&n, t->symbols + i * t->stride, sizeof(n));
	return (Elf64_Sym){.st_name = n.st_name,
			   .st_info = n.st_info,
			   .st_other = n.st_other,
			   .st_shndx = n.st_shndx,
			   .st_value = n.st_value,
			   .st_size = n.st_size};
}

static const char *table_name(const struct table *t, const Elf64_Sym *s)
{
	return s->st_name < t->strings_size ? t->strings + s->st_name : "";
}

/* ---- which symbols are functions ---- */

static int bind_of(const Elf64_Sym *s)
{
	switch (ELF64_ST_BIND(s->st_info)) {
	case STB_LOCAL:
		return SYMSET_LOCAL;
	case STB_WEAK:
		return SYMSET_WEAK;
	default:
		return SYMSET_GLOBAL;
	}
}

/* Marks of assemblers, compilers and linkers, not names of code. */
static bool is_mark(const char *name)
{
	return !*name || *name == '.' || *name == '$' || !strcmp(name, "runtime.text") ||
	       !strcmp(name, "runtime.etext") || !strcmp(name, "etext") ||
	       !strcmp(name, "_etext") || !strcmp(name, "__etext");
}

/* enum symset_kind, -1: no function */
static int kind_of(const Elf64_Sym *s, const char *name)
{
	unsigned type = ELF64_ST_TYPE(s->st_info);

	if (s->st_shndx == SHN_UNDEF || s->st_shndx == SHN_ABS || s->st_shndx == SHN_COMMON)
		return -1;
	if (is_mark(name))
		return -1;
	if (type == STT_FUNC || type == STT_GNU_IFUNC)
		return s->st_size ? SYMSET_FUNC : SYMSET_FUNC_ANY;
	return type == STT_NOTYPE ? SYMSET_LABEL : -1;
}

long elfsyms_add(struct elf_file *f, enum elfsyms_table which, struct symset *set,
		 struct elfsyms_noted *noted)
{
	cleanup_table struct table t = {0};
	long functions = 0;
	int rc = table_read(f, which, &t);

	if (rc)
		return rc == -ENOENT ? 0 : rc;
	for (size_t i = 1; i < t.size / t.stride && !rc; i++) {
		Elf64_Sym s = table_get(f, &t, i);
		const char *name = table_name(&t, &s);
		int kind;

		if (noted && s.st_shndx != SHN_UNDEF) {
			go_symbols_note(&noted->go, name, s.st_value);
			py_symbols_note(&noted->py, name, s.st_value, s.st_size);
			runsyms_note(&noted->run, name, s.st_value, s.st_size);
			tls_symbols_note(&noted->tls, name, s.st_value, s.st_size, 0);
			v8_symbols_note(&noted->v8, name, s.st_value, s.st_size);
		}
		kind = kind_of(&s, name);
		if (kind < 0)
			continue;
		functions += kind != SYMSET_LABEL;
		if (f->machine == EM_ARM)
			s.st_value &= ~1ull; /* Thumb code is marked by bit 0 */
		rc = symset_add(set, &(struct symset_symbol){.addr = s.st_value,
							     .size = s.st_size,
							     .name = name,
							     .kind = (uint8_t)kind,
							     .bind = (uint8_t)bind_of(&s)});
	}
	symset_keep(set, take_ptr(t.strings));
	return rc && rc != -ENOSPC ? rc : functions;
}

/* ---- PLT ---- */

/* Slots: address of the GOT entry -> index of the dynamic symbol that it is for. */
static int slots_read(struct elf_file *f, struct idmap *slots)
{
	for (size_t i = 1; i < f->section_count; i++) {
		const Elf64_Shdr *s = &f->sections[i];
		cleanup_free void *raw = NULL;
		const Elf64_Rela *r;
		int rc;

		if (s->sh_type != SHT_RELA || !(s->sh_flags & SHF_ALLOC))
			continue;
		rc = elf_section_read(f, s, &raw);
		if (rc && soften(rc) != -ENOENT)
			return rc;
		if (rc)
			continue;
		r = raw;
		for (size_t k = 0; k < s->sh_size / sizeof(*r); k++) {
			uint64_t type = ELF64_R_TYPE(r[k].r_info);

			if ((type == R_X86_64_JUMP_SLOT || type == R_X86_64_GLOB_DAT) &&
			    ELF64_R_SYM(r[k].r_info))
				idmap_set(slots, r[k].r_offset, ELF64_R_SYM(r[k].r_info));
		}
	}
	return 0;
}

/* The slot that a stub jumps through: [endbr64] [bnd] jmp *disp(%rip). 0: not such a stub. */
static uint64_t stub_slot(const uint8_t *p, size_t len, uint64_t addr)
{
	static const uint8_t endbr[] = {0xf3, 0x0f, 0x1e, 0xfa};
	size_t at = 0;
	int32_t disp;

	if (len >= 4 && !memcmp(p, endbr, 4))
		at = 4;
	if (at < len && p[at] == 0xf2)
		at++;
	if (len - at < 6 || p[at] != 0xff || p[at + 1] != 0x25)
		return 0;
	memcpy(&disp, p + at + 2, 4);
	return addr + at + 6 + (uint64_t)(int64_t)disp;
}

static int stub_add(struct symset *set, uint64_t addr, uint64_t size, const char *target)
{
	size_t len = strnlen(target, IMAGE_NAME_MAX);
	size_t plain = strcspn(target, "@");
	cleanup_free char *name = NULL;
	int rc;

	len = plain < len ? plain : len;
	name = malloc(len + 5);
	if (!name)
		return -ENOMEM;
	memcpy(name, target, len);
	memcpy(name + len, "@plt", 5);
	rc = symset_add(set,
			&(struct symset_symbol){
				.addr = addr, .size = size, .name = name, .kind = SYMSET_STUB});
	symset_keep(set, take_ptr(name));
	return rc;
}

#define STUBS_MAX (16u << 20) /* bytes of one PLT section */

static int stubs_add(struct elf_file *f, const Elf64_Shdr *s, const struct table *t,
		     const struct idmap *slots, struct symset *set)
{
	const uint64_t step = s->sh_entsize == 8 ? 8 : 16;
	cleanup_free void *raw = NULL;
	int rc = s->sh_size > STUBS_MAX ? -EFBIG : elf_section_read(f, s, &raw);

	if (rc)
		return soften(rc) == -ENOENT ? 0 : rc;
	for (uint64_t at = 0; at + step <= s->sh_size && !rc; at += step) {
		uint64_t addr = s->sh_addr + at, index;
		uint64_t slot = stub_slot((const uint8_t *)raw + at, (size_t)step, addr);

		if (slot && idmap_get(slots, slot, &index) && index < t->size / t->stride) {
			Elf64_Sym sym = table_get(f, t, (size_t)index);

			if (*table_name(t, &sym))
				rc = stub_add(set, addr, step, table_name(t, &sym));
		}
	}
	return rc;
}

int elfsyms_add_plt(struct elf_file *f, struct symset *set)
{
	cleanup_table struct table t = {0};
	struct idmap slots = {0};
	int rc;

	if (f->machine != EM_X86_64 || !f->is64)
		return 0;
	rc = table_read(f, ELFSYMS_DYNSYM, &t);
	if (rc)
		return rc == -ENOENT ? 0 : rc;
	rc = slots_read(f, &slots);
	for (size_t i = 1; i < f->section_count && !rc && slots.n; i++)
		if (!strncmp(elf_section_name(f, &f->sections[i]), ".plt", 4) &&
		    (f->sections[i].sh_flags & SHF_EXECINSTR))
			rc = stubs_add(f, &f->sections[i], &t, &slots, set);
	idmap_release(&slots);
	return rc == -ENOSPC ? 0 : rc;
}
