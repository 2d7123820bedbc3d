/* SPDX-License-Identifier: Apache-2.0 */
/* gopart: see the header. */
#include "loaders/index/gopart.h"

#include <errno.h>
#include <string.h>

#include "loaders/index/region.h"
#include "schema/base/cursor.h"

#define BUILD_MAGIC  "\xff Go buildinf:"
#define BUILD_ALIGN  16
#define BUILD_INLINE 2u
#define BUILD_WITHIN 65536 /* bytes of a writable segment that are searched */

bool gopart_build_find(const void *data, size_t len, struct gopart_build *out)
{
	const uint8_t *p = data;

	for (size_t at = 0; len >= 32 && at <= len - 32; at += BUILD_ALIGN) {
		struct cursor c = cursor_init(p + at, len - at);
		struct gopart_build b = {0};
		uint8_t flags, size;

		if (memcmp(p + at, BUILD_MAGIC, sizeof(BUILD_MAGIC) - 1))
			continue;
		cursor_seek(&c, 14);
		b.ptr_size = cursor_u8(&c);
		flags = cursor_u8(&c);
		if (flags & BUILD_INLINE) {
			cursor_seek(&c, 32);
			size = cursor_u8(&c); /* versions are shorter than 128 */
			b.version = size < 128 ? cursor_bytes(&c, size) : NULL;
			b.len = size;
		} else if (b.ptr_size == 8 || b.ptr_size == 4) {
			b.pointer = b.ptr_size == 8 ? cursor_u64(&c) : cursor_u32(&c);
		}
		if (!b.version && !b.pointer)
			return false;
		*out = b;
		return true;
	}
	return false;
}

static void version_take(const void *bytes, size_t len, struct image_go_record *out)
{
	if (len >= sizeof(out->version))
		len = sizeof(out->version) - 1;
	if (len)
		memcpy(out->version, bytes, len);
}

/* A version behind a pointer to a string. */
static int version_follow(struct elf_file *f, const struct gopart_build *b, struct image_go_record *out)
{
	cleanup_region struct region head = {0};
	cleanup_region struct region text = {0};
	uint64_t len;
	int rc = region_read(f, b->pointer, 2 * b->ptr_size, &head);

	if (rc)
		return rc == -ENOENT ? 0 : rc;
	len = region_word(&head, b->ptr_size, b->ptr_size);
	if (!len || len >= sizeof(out->version))
		return 0;
	rc = region_read(f, region_word(&head, 0, b->ptr_size), len, &text);
	if (!rc)
		version_take(text.bytes, (size_t)text.len, out);
	return rc == -ENOENT ? 0 : rc;
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
		return version_follow(f, &b, out);
	version_take(b.version, b.len, out);
	return 0;
}

static int version_find(struct elf_file *f, struct image_go_record *out)
{
	const Elf64_Shdr *s = elf_section_by_name(f, ".go.buildinfo");
	int rc = s && s->sh_type != SHT_NOBITS ? version_in(f, s->sh_addr, s->sh_size, out) : 0;

	for (size_t i = 0; !rc && !*out->version && i < f->segment_count; i++) {
		const Elf64_Phdr *p = &f->segments[i];

		if (p->p_type == PT_LOAD && (p->p_flags & PF_W) && p->p_filesz)
			rc = version_in(f, p->p_vaddr, p->p_filesz < BUILD_WITHIN ? p->p_filesz : BUILD_WITHIN, out);
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

int gopart_make(struct elf_file *f, const struct go_table *t, const struct go_symbols *syms,
		struct image_go_record *out)
{
	struct image_go_record r = {.generation = t->tab.generation, .pclntab = t->vaddr,
				    .module_data = t->module.addr};
	int rc = version_find(f, &r);

	if (rc)
		return rc;
	text_find(t, &r);
	memcpy(r.variables, syms->variables, sizeof(r.variables));
	*out = r;
	return 0;
}
