/* SPDX-License-Identifier: Apache-2.0 */
#include "loaders/index/unwind/unwind.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "loaders/index/unwind/codesearch.h"
#include "loaders/index/unwind/knowncode.h"
#include "loaders/index/elf/unpack.h"
#include "schema/base/array.h"
#include "schema/base/cleanup.h"
#include "schema/base/cursor.h"

#define PAGE        4096u
#define CRT_MAX     64u /* bytes of .init and of .fini */
#define PLT_MAX     (16u << 20)
#define EH_HDR_READ 64u /* version, three encodings, two pointers */

/* What the file itself got wrong is no error: it has no rows there. */
static int soften(int rc)
{
	return rc == -ERANGE || rc == -EFBIG || rc == -EBADMSG || rc == -EOPNOTSUPP ? -ENOENT : rc;
}

static int ignore_missing(int rc)
{
	return rc == -ENOENT ? 0 : rc;
}

/* ---- where code is ---- */

static int code_find(struct unwind *u, const struct elf_file *f)
{
	size_t n = 0;

	u->code = calloc(f->segment_count + 1, sizeof(*u->code));
	if (!u->code)
		return -ENOMEM;
	for (size_t i = 0; i < f->segment_count; i++) {
		const Elf64_Phdr *p = &f->segments[i];
		size_t k = n;

		if (p->p_type != PT_LOAD || !(p->p_flags & PF_X) || !p->p_memsz)
			continue;
		for (; k && u->code[k - 1].start > p->p_vaddr; k--)
			u->code[k] = u->code[k - 1];
		u->code[k] = (struct elf_range){p->p_vaddr, p->p_vaddr + p->p_memsz};
		n++;
	}
	u->code_count = n;
	return 0;
}

static uint64_t code_end(const struct unwind *u)
{
	uint64_t end = 0;

	for (size_t i = 0; i < u->code_count; i++)
		if (u->code[i].end > end)
			end = u->code[i].end;
	return end;
}

/* ---- .eh_frame ---- */

static void section_bases(const struct elf_file *f, struct cfi_section *s)
{
	const Elf64_Shdr *text = elf_section_by_name(f, ".text");

	s->text = text ? text->sh_addr : 0;
	if (!elf_dynamic_value(f, DT_PLTGOT, &s->got))
		s->got = 0;
}

static void section_use(struct unwind *u, struct cfi_section s, enum rows_source source)
{
	s.code = u->code;
	s.code_count = u->code_count;
	cfi_read(&s, source, &u->rows, &u->tally);
}

static int eh_frame_by_section(struct unwind *u, struct elf_file *f)
{
	const Elf64_Shdr *sh = elf_section_by_name(f, ".eh_frame");
	cleanup_free void *data = NULL;
	struct cfi_section s = {0};
	int rc;

	if (!sh)
		return -ENOENT;
	rc = soften(unpack_section(f, sh, &data, &s.len));
	if (rc)
		return rc;
	s.data = data;
	s.vaddr = sh->sh_addr;
	section_bases(f, &s);
	section_use(u, s, ROWS_EH_FRAME);
	return 0;
}

/* LSB 5.0, 10.6.2: version 1, encodings of the pointer, of the count and of the table, then the
 * pointer. */
static int eh_frame_address(struct elf_file *f, uint64_t *vaddr)
{
	const Elf64_Phdr *p = NULL;
	cleanup_free void *data = NULL;
	struct cursor c;
	uint8_t encoding;
	int rc;

	for (size_t i = 0; i < f->segment_count && !p; i++)
		if (f->segments[i].p_type == PT_GNU_EH_FRAME)
			p = &f->segments[i];
	if (!p || p->p_filesz < 8)
		return -ENOENT;
	rc = soften(elf_read_at(f, p->p_vaddr,
				p->p_filesz < EH_HDR_READ ? p->p_filesz : EH_HDR_READ, &data));
	if (rc)
		return rc;
	c = cursor_init(data, p->p_filesz < EH_HDR_READ ? (size_t)p->p_filesz : EH_HDR_READ);
	if (cursor_u8(&c) != 1)
		return -ENOENT;
	encoding = cursor_u8(&c);
	cursor_u16(&c);
	return cfi_pointer(&c, encoding, p->p_vaddr + c.pos, 0, p->p_vaddr, vaddr) ? 0 : -ENOENT;
}

static int eh_frame_by_segment(struct unwind *u, struct elf_file *f)
{
	cleanup_free void *data = NULL;
	struct cfi_section s = {.open_end = true};
	int rc = eh_frame_address(f, &s.vaddr);

	if (rc)
		return rc;
	s.len = (size_t)elf_bytes_at(f, s.vaddr);
	rc = soften(elf_read_at(f, s.vaddr, s.len, &data));
	if (rc)
		return rc;
	s.data = data;
	section_bases(f, &s);
	section_use(u, s, ROWS_EH_FRAME);
	return 0;
}

/* ---- .debug_frame ---- */

static int debug_frame_add(struct unwind *u, struct elf_file *f)
{
	const Elf64_Shdr *sh = elf_section_by_name(f, ".debug_frame");
	cleanup_free void *data = NULL;
	struct cfi_section s = {.debug_frame = true};
	size_t before = u->tally.fdes;
	int rc;

	if (!sh)
		sh = elf_section_by_name(f, ".zdebug_frame");
	if (!sh)
		return 0;
	rc = soften(unpack_section(f, sh, &data, &s.len));
	if (rc)
		return ignore_missing(rc);
	s.data = data;
	section_use(u, s, ROWS_DEBUG_FRAME);
	if (u->tally.fdes > before)
		u->rows.flags |= UNWIND_F_DEBUG_FRAME;
	return 0;
}

int unwind_init(struct unwind *u, struct elf_file *f)
{
	int rc;

	*u = (struct unwind){0};
	if (f->machine != EM_X86_64 || !f->is64)
		return 0;
	rc = code_find(u, f);
	if (rc || !u->code_count ||
	    rows_init(&u->rows, u->code[0].start & ~(uint64_t)(PAGE - 1), code_end(u)))
		return rc;
	u->on = true;
	rc = eh_frame_by_section(u, f);
	if (rc == -ENOENT)
		rc = ignore_missing(eh_frame_by_segment(u, f));
	return rc;
}

void unwind_release(struct unwind *u)
{
	if (u->on)
		rows_release(&u->rows);
	free(take_ptr(u->code));
	u->on = false;
}

bool unwind_wants_debug(const struct unwind *u)
{
	return u->on && u->tally.fdes < UNWIND_FEW && !(u->rows.flags & UNWIND_F_GO);
}

int unwind_add_debug(struct unwind *u, struct elf_file *f)
{
	return unwind_wants_debug(u) ? debug_frame_add(u, f) : 0;
}

/* ---- known code ---- */

static int known_entry(struct unwind *u, struct elf_file *f)
{
	cleanup_free void *code = NULL;
	uint64_t len = elf_bytes_at(f, f->entry);
	int rc;

	if (len > KNOWNCODE_ENTRY_MAX)
		len = KNOWNCODE_ENTRY_MAX;
	if (!f->entry || !len)
		return 0;
	rc = soften(elf_read_at(f, f->entry, len, &code));
	if (!rc)
		knowncode_entry(code, (size_t)len, f->entry, &u->rows);
	return ignore_missing(rc);
}

static int known_plt(struct unwind *u, struct elf_file *f)
{
	static const char *const names[] = {".plt", ".plt.sec", ".plt.got", ".plt.bnd", ".iplt"};

	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		const Elf64_Shdr *s = elf_section_by_name(f, names[i]);
		cleanup_free void *code = NULL;
		int rc;

		if (!s || s->sh_size > PLT_MAX)
			continue;
		rc = soften(elf_section_read(f, s, &code));
		if (!rc)
			knowncode_plt(code, (size_t)s->sh_size, s->sh_addr, &u->rows);
		else if (rc != -ENOENT)
			return rc;
	}
	return 0;
}

static int known_crt(struct unwind *u, struct elf_file *f)
{
	static const struct {
		const char *section;
		int64_t tag; /* where there are no section headers */
	} both[] = {{".init", DT_INIT}, {".fini", DT_FINI}};

	for (size_t i = 0; i < ARRAY_SIZE(both); i++) {
		const Elf64_Shdr *s = elf_section_by_name(f, both[i].section);
		uint64_t at = s ? s->sh_addr : 0, len;
		cleanup_free void *code = NULL;
		int rc;

		if (!s && !elf_dynamic_value(f, both[i].tag, &at))
			continue;
		len = elf_bytes_at(f, at);
		if (len > CRT_MAX)
			len = CRT_MAX;
		if (!at || !len)
			continue;
		rc = soften(elf_read_at(f, at, len, &code));
		if (!rc)
			knowncode_crt(code, (size_t)len, at, &u->rows);
		else if (rc != -ENOENT)
			return rc;
	}
	return 0;
}

/* A program's first function, by name: if nothing better describes it. */
static void known_start(struct unwind *u, const struct symset *set)
{
	for (size_t i = 0; i < set->count; i++) {
		const struct symset_symbol *s = &set->symbols[i];

		if (s->kind == SYMSET_STUB || strcmp(s->name, "_start"))
			continue;
		rows_span(&u->rows, s->addr, s->addr + s->size, ROWS_GUESS);
		rows_add(&u->rows, s->addr, ROW_MAKE_SPECIAL(ROW_ROOT, 0));
	}
}

int unwind_finish(struct unwind *u, struct elf_file *f, const struct symset *set, void **out,
		  uint64_t *size)
{
	size_t made = 0;
	int rc;

	*out = NULL;
	*size = 0;
	if (!u->on)
		return 0;
	rc = known_entry(u, f);
	if (!rc)
		rc = known_plt(u, f);
	known_start(u, set);
	if (!rc)
		rc = known_crt(u, f);
	if (!rc)
		rc = codesearch(f, set, &u->rows);
	if (!rc)
		rc = rows_finish(&u->rows, out, &made);
	*size = made;
	return rc == -EFBIG ? 0 : rc;
}
