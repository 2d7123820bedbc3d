/* SPDX-License-Identifier: Apache-2.0 */
#include "loaders/index/go/gopart.h"

#include <errno.h>
#include <string.h>

#include "loaders/index/go/govars.h"
#include "loaders/index/elf/region.h"
#include "schema/base/cursor.h"

#define BUILD_MAGIC  "\xff Go buildinf:"
#define BUILD_ALIGN  16
#define BUILD_INLINE 2u
#define BUILD_WITHIN 65536 /* bytes of a writable segment that are searched */

#define MODULES_MAX  (4u << 20)
#define MODULES_MARK 16u /* bytes before and after the text */
/* moduledata.bss, by generation of the pclntab; enoptrbss is three words on */
#define BSS_WORD_2  18u
#define BSS_WORD_16 28u
#define CODE_MAX    16384u /* bytes of one function that are looked at */

static size_t varint(struct cursor *c)
{
	size_t v = 0;

	for (unsigned shift = 0; shift < 35 && !c->bad; shift += 7) {
		uint8_t b = cursor_u8(c);

		v |= (size_t)(b & 0x7f) << shift;
		if (!(b & 0x80))
			return v;
	}
	c->bad = true;
	return 0;
}

bool gopart_build_find(const void *data, size_t len, struct gopart_build *out)
{
	const uint8_t *p = data;

	for (size_t at = 0; len >= 32 && at <= len - 32; at += BUILD_ALIGN) {
		struct cursor c = cursor_init(p + at, len - at);
		struct gopart_build b = {0};
		uint8_t flags;

		if (memcmp(p + at, BUILD_MAGIC, sizeof(BUILD_MAGIC) - 1))
			continue;
		cursor_seek(&c, 14);
		b.ptr_size = cursor_u8(&c);
		flags = cursor_u8(&c);
		if (flags & BUILD_INLINE) {
			cursor_seek(&c, 32);
			b.len = varint(&c);
			b.version = cursor_bytes(&c, b.len);
			b.modules_len = varint(&c);
			b.modules = cursor_bytes(&c, b.modules_len);
		} else if (b.ptr_size == 8 || b.ptr_size == 4) {
			b.pointer = b.ptr_size == 8 ? cursor_u64(&c) : cursor_u32(&c);
			b.modules_pointer = b.ptr_size == 8 ? cursor_u64(&c) : cursor_u32(&c);
		}
		if (!b.version && !b.pointer)
			return false;
		*out = b;
		return true;
	}
	return false;
}

static void text_take(const void *bytes, size_t len, char *out, size_t size)
{
	if (len >= size)
		len = size - 1;
	if (len)
		memcpy(out, bytes, len);
}

/* ---- modules ---- */

/* The next word of a line, which ends at a tab or at the line's end. */
static size_t word_take(const char **at, const char *end, const char **word)
{
	const char *tab = memchr(*at, '\t', (size_t)(end - *at)), *stop = tab ? tab : end;

	*word = *at;
	*at = tab ? tab + 1 : end;
	return (size_t)(stop - *word);
}

static void modules_line(const char *at, const char *end, struct image_go_record *out)
{
	const char *word, *value;
	const size_t n = word_take(&at, end, &word), len = word_take(&at, end, &value);

	if (n == 4 && !memcmp(word, "path", 4) && !*out->main_path)
		text_take(value, len, out->main_path, sizeof(out->main_path));
	if (n == 5 && !memcmp(word, "build", 5) && len == 13 && !memcmp(value, "CGO_ENABLED=1", 13))
		out->flags |= IMAGE_GO_CGO;
	if (n != 3 || memcmp(word, "mod", 3))
		return;
	memset(out->main_path, 0, sizeof(out->main_path));
	text_take(value, len, out->main_path, sizeof(out->main_path));
	text_take(value, word_take(&at, end, &value), out->main_version, sizeof(out->main_version));
}

void gopart_modules(const char *text, size_t len, struct image_go_record *out)
{
	const char *at = text, *end = text + len;

	if (len < 2 * MODULES_MARK)
		return;
	for (at += MODULES_MARK, end -= MODULES_MARK; at < end;) {
		const char *nl = memchr(at, '\n', (size_t)(end - at)), *stop = nl ? nl : end;

		modules_line(at, stop, out);
		at = nl ? nl + 1 : end;
	}
}

/* ---- where they stand ---- */

/* The text behind a pointer to a Go string. -ENOENT: none. */
static int string_follow(struct elf_file *f, uint64_t pointer, unsigned ptr_size, uint64_t max,
			 struct region *text)
{
	cleanup_region struct region head = {0};
	uint64_t len;
	int rc = pointer ? region_read(f, pointer, 2 * ptr_size, &head) : -ENOENT;

	if (rc)
		return rc;
	len = region_word(&head, ptr_size, ptr_size);
	if (!len || len >= max)
		return -ENOENT;
	return region_read(f, region_word(&head, 0, ptr_size), len, text);
}

static int build_follow(struct elf_file *f, const struct gopart_build *b,
			struct image_go_record *out)
{
	cleanup_region struct region version = {0};
	cleanup_region struct region modules = {0};
	int rc = string_follow(f, b->pointer, b->ptr_size, sizeof(out->version), &version);

	if (rc)
		return rc == -ENOENT ? 0 : rc;
	text_take(version.bytes, (size_t)version.len, out->version, sizeof(out->version));
	rc = string_follow(f, b->modules_pointer, b->ptr_size, MODULES_MAX, &modules);
	if (rc)
		return rc == -ENOENT ? 0 : rc;
	gopart_modules((const char *)modules.bytes, (size_t)modules.len, out);
	return 0;
}

static int version_in(struct elf_file *f, uint64_t vaddr, uint64_t len, struct image_go_record *out)
{
	cleanup_region struct region r = {0};
	struct gopart_build b;
	int rc = region_read(f, vaddr, len, &r);

	if (rc)
		return rc == -ENOENT ? 0 : rc;
	if (!gopart_build_find(r.bytes, (size_t)r.len, &b))
		return 0;
	if (!b.version)
		return build_follow(f, &b, out);
	text_take(b.version, b.len, out->version, sizeof(out->version));
	if (b.modules)
		gopart_modules(b.modules, b.modules_len, out);
	return 0;
}

static int version_find(struct elf_file *f, struct image_go_record *out)
{
	const Elf64_Shdr *s = elf_section_by_name(f, ".go.buildinfo");
	int rc = s && s->sh_type != SHT_NOBITS ? version_in(f, s->sh_addr, s->sh_size, out) : 0;

	for (size_t i = 0; !rc && !*out->version && i < f->segment_count; i++) {
		const Elf64_Phdr *p = &f->segments[i];

		if (p->p_type == PT_LOAD && (p->p_flags & PF_W) && p->p_filesz)
			rc = version_in(f, p->p_vaddr,
					p->p_filesz < BUILD_WITHIN ? p->p_filesz : BUILD_WITHIN,
					out);
	}
	return rc;
}

static void text_find(const struct go_table *t, struct image_go_record *out)
{
	struct pclntab_func f;

	for (uint32_t i = 0; i < t->tab.func_count; i++)
		if (pclntab_func(&t->tab, t->text, i, &f)) {
			if (!out->text_end || f.start < out->text_start)
				out->text_start = f.start;
			if (f.end > out->text_end)
				out->text_end = f.end;
		}
}

static bool is_data(const struct elf_file *f, uint64_t start, uint64_t end)
{
	for (size_t i = 0; i < f->segment_count; i++) {
		const Elf64_Phdr *p = &f->segments[i];

		if (p->p_type == PT_LOAD && (p->p_flags & PF_W) && start >= p->p_vaddr &&
		    end - p->p_vaddr <= p->p_memsz)
			return true;
	}
	return false;
}

static void bss_find(const struct elf_file *f, const struct go_table *t,
		     struct image_go_record *out)
{
	const unsigned word = t->tab.generation == 2 ? BSS_WORD_2 : BSS_WORD_16;
	const uint64_t start = t->module.words[word], end = t->module.words[word + 3];

	if (!t->module.addr || start >= end || !is_data(f, start, end))
		return;
	out->bss_start = start;
	out->bss_end = end;
}

/* ---- variables that no symbol names ---- */

static int function_read(struct elf_file *f, const struct pclntab_func *p, struct govars *g)
{
	cleanup_region struct region r = {0};
	const uint64_t size = p->end - p->start;
	int rc = region_read(f, p->start, size < CODE_MAX ? size : CODE_MAX, &r);

	if (!rc)
		govars_note(g, p->name, r.bytes, (size_t)r.len, r.vaddr);
	return rc == -ENOENT ? 0 : rc;
}

struct file {
	struct elf_file *elf;
	int rc;
};

static bool file_begins(void *ctx, uint64_t addr)
{
	struct file *file = ctx;
	cleanup_region struct region value = {0};
	int rc = region_read(file->elf, addr, 8, &value);

	if (rc && rc != -ENOENT)
		file->rc = rc;
	return !rc && region_word(&value, 0, 8) == GOVARS_RATE;
}

static int vars_find(struct elf_file *f, const struct go_table *t, struct image_go_record *out)
{
	struct file file = {.elf = f};
	struct govars g = {0};

	if (f->machine != EM_X86_64 || !out->bss_start ||
	    (out->variables[IMAGE_GO_MBUCKETS] && out->variables[IMAGE_GO_MEM_PROFILE_RATE]))
		return 0;
	for (uint32_t i = 0; i < t->tab.func_count && !file.rc; i++) {
		struct pclntab_func p;

		if (pclntab_func(&t->tab, t->text, i, &p) && govars_wants(p.name))
			file.rc = function_read(f, &p, &g);
	}
	if (!file.rc)
		govars_settle(&g, file_begins, &file, out);
	return file.rc;
}

int gopart_make_unread(struct elf_file *f, const struct go_symbols *syms,
		       struct image_go_record *out)
{
	struct image_go_record r = {0};
	int rc = f->notes.go || elf_section_by_name(f, ".go.buildinfo") ? version_find(f, &r) :
									  -ENOENT;

	if (rc)
		return rc;
	if (!*r.version)
		return -ENOENT;
	memcpy(r.variables, syms->variables, sizeof(r.variables));
	*out = r;
	return 0;
}

int gopart_make(struct elf_file *f, const struct go_table *t, const struct go_symbols *syms,
		struct image_go_record *out)
{
	struct image_go_record r = {.generation = t->tab.generation,
				    .pclntab = t->vaddr,
				    .module_data = t->module.addr};
	int rc = version_find(f, &r);

	if (rc)
		return rc;
	text_find(t, &r);
	bss_find(f, t, &r);
	memcpy(r.variables, syms->variables, sizeof(r.variables));
	rc = vars_find(f, t, &r);
	if (!rc)
		*out = r;
	return rc;
}
