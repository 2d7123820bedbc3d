/* SPDX-License-Identifier: Apache-2.0 */
#include "loaders/lib/host/names/source_location.h"

#include <string.h>

static bool symbol_at(const struct image *index, uint64_t offset, struct image_symbol *sym,
		      uint64_t *vaddr)
{
	return image_offset_to_vaddr(index, offset, vaddr) && image_symbol_at(index, *vaddr, sym);
}

static bool is_trampoline(const char *name)
{
	return !strcmp(name, "__restore_rt") || !strcmp(name, "__restore") ||
	       !strcmp(name, "__kernel_rt_sigreturn") || !strcmp(name, "__vdso_rt_sigreturn") ||
	       !strcmp(name, "runtime.sigreturn__sigaction");
}

static bool find_symbol(const struct image *index, uint64_t offset, bool back,
			struct source_location *p, uint64_t *vaddr)
{
	uint64_t at = back && offset ? offset - 1 : offset, here_vaddr;
	bool found = symbol_at(index, at, &p->symbol, vaddr);
	struct image_symbol here;

	if (found)
		p->start = at - (*vaddr - p->symbol.addr);
	if (back && symbol_at(index, offset, &here, &here_vaddr) && here.addr == here_vaddr &&
	    is_trampoline(here.name)) {
		p->symbol = here;
		p->start = offset;
		*vaddr = here_vaddr;
		found = true;
	}
	return found;
}

static size_t sources_at(const struct image *index, uint64_t vaddr,
			 struct image_source_frame at[SOURCE_LOCATION_MAX + 1])
{
	size_t n = image_lines_at(index, vaddr, at, SOURCE_LOCATION_MAX);

	if (!n || at[n - 1].inlined)
		at[n++] = (struct image_source_frame){0};
	return n;
}

/* The line that the function begins in, if that is in `file`. */
static uint32_t first_line(const struct image *index, uint64_t vaddr, const char *file)
{
	struct image_source_frame at[SOURCE_LOCATION_MAX + 1];
	const char *begins = at[sources_at(index, vaddr, at) - 1].file;

	return file && begins && !strcmp(file, begins) ? image_function_line(index, vaddr) : 0;
}

bool source_location_find(const struct image *index, uint64_t offset, bool back,
			  struct source_location *out)
{
	uint64_t vaddr;

	if (!find_symbol(index, offset, back, out, &vaddr))
		return false;
	out->n = sources_at(index, vaddr, out->at);
	out->first_line = first_line(index, out->symbol.addr, out->at[out->n - 1].file);
	return true;
}

void source_location_without_lines(struct source_location *p)
{
	p->at[0] = (struct image_source_frame){0};
	p->n = 1;
	p->first_line = 0;
}
