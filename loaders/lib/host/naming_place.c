/* SPDX-License-Identifier: Apache-2.0 */
/*
 * naming_place: what stands at a place of a file, by its image index: the function, the line, and the functions that were
 * inlined there. The frame that a stack names is the innermost; the ones it was inlined into hang on it (store_frame's
 * `outer`), all at the same place.
 *
 * A leaf is folded to its line: its frames get the offset of the physical function's first byte, so that two leaves
 * differ only where function or line differ. A function's row tells its first line only in the file that it begins in.
 */
#include <string.h>

#include "loaders/lib/host/naming_parts.h"
#include "schema/image/lines.h"

#define INLINED_MAX 32 /* functions at one place; of more the innermost */

static bool symbol_at(const struct image *index, uint64_t offset, struct image_symbol *sym, uint64_t *vaddr)
{
	return image_offset_to_vaddr(index, offset, vaddr) && image_symbol_at(index, *vaddr, sym);
}

static bool is_trampoline(const char *name)
{
	return !strcmp(name, "__restore_rt") || !strcmp(name, "__restore") || !strcmp(name, "__kernel_rt_sigreturn") ||
	       !strcmp(name, "__vdso_rt_sigreturn") || !strcmp(name, "runtime.sigreturn__sigaction");
}

struct found {
	struct image_symbol sym;
	uint64_t start; /* file offset of the function's first byte */
	uint64_t vaddr; /* of the place */
};

/* Rules 2 to 4 of naming.h. */
static bool look_up(const struct image *index, uint64_t offset, enum look look, struct found *f)
{
	bool back = look_is_back(look);
	uint64_t at = back && offset ? offset - 1 : offset, vaddr;
	struct image_symbol here;
	bool found = symbol_at(index, at, &f->sym, &f->vaddr);

	if (found)
		f->start = at - (f->vaddr - f->sym.addr);
	if (back && symbol_at(index, offset, &here, &vaddr) && here.addr == vaddr && is_trampoline(here.name)) {
		*f = (struct found){.sym = here, .start = offset, .vaddr = vaddr};
		found = true;
	}
	return found;
}

/* Where execution stands, innermost first; the last one is the physical function. At least that one. */
static size_t sources_at(const struct image *index, uint64_t vaddr, struct image_source_frame src[INLINED_MAX + 1])
{
	size_t k = image_lines_at(index, vaddr, src, INLINED_MAX);

	if (!k || src[k - 1].inlined)
		src[k++] = (struct image_source_frame){0};
	return k;
}

/* The line that the function begins in, if that is in `file`. */
static uint32_t first_line(const struct image *index, uint64_t vaddr, const char *file)
{
	struct image_source_frame src[INLINED_MAX + 1];
	const char *begins = src[sources_at(index, vaddr, src) - 1].file;

	return file && begins && !strcmp(file, begins) ? image_function_line(index, vaddr) : 0;
}

static uint32_t function_of(struct naming *n, uint32_t image, const char *name, const char *file, uint32_t line)
{
	return store_function(n->w, &(struct store_function){.name = name, .image = image, .file = file ? file : "",
							     .line = line});
}

bool naming_place(struct naming *n, const struct image *index, enum look look, bool fold, struct store_frame *f)
{
	struct image_source_frame src[INLINED_MAX + 1];
	struct found at;
	size_t k;

	if (!look_up(index, f->offset, look, &at))
		return false;
	k = sources_at(index, at.vaddr, src) - 1;
	f->function = function_of(n, f->image, at.sym.name, src[k].file, first_line(index, at.sym.addr, src[k].file));
	if (!f->function)
		return false;
	f->line = src[k].line;
	if (fold && f->leaf) {
		f->offset = at.start;
		f->exact = false;
	}
	while (k-- > 0) {
		uint32_t function = function_of(n, f->image, src[k].function ? src[k].function : "", src[k].file, 0);

		if (!function)
			continue;
		f->outer = store_frame(n->w, f);
		f->function = function;
		f->line = src[k].line;
	}
	return true;
}
