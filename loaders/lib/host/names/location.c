/* SPDX-License-Identifier: Apache-2.0 */
/*
 * location: the function and line at an offset of a file (source_location.h), as frames of the
 * store. A stack names the innermost frame; the functions it was inlined into are linked from it
 * (store_frame's `outer`), all at the same offset.
 *
 * A leaf is folded to its line: its frames get the offset of the physical function's first byte, so
 * that two leaves differ only if function or line differ. A function's row has its first line only
 * if that is in the file in which the function begins.
 */
#include "loaders/lib/host/names/private.h"
#include "loaders/lib/host/names/source_location.h"

static uint32_t function_of(struct naming *n, uint32_t image, const char *name, const char *file,
			    uint32_t line)
{
	return store_function(n->w, &(struct store_function){.name = name,
							     .image = image,
							     .file = file ? file : "",
							     .line = line});
}

bool naming_location(struct naming *n, const struct image *index, enum look look, bool fold,
		     struct store_frame *f)
{
	struct source_location p;
	size_t k;

	if (!source_location_find(index, f->offset, look_is_back(look), &p))
		return false;
	if (n->o.no_lines)
		source_location_without_lines(&p);
	k = p.n - 1;
	/* the other functions have separate frames in this stack */
	if (look == LOOK_LOGICAL && k) {
		f->function = function_of(n, f->image, p.at[0].function ? p.at[0].function : "",
					  p.at[0].file, 0);
		f->line = p.at[0].line;
		return f->function;
	}
	f->function = function_of(n, f->image, p.symbol.name, p.at[k].file, p.first_line);
	if (!f->function)
		return false;
	f->line = p.at[k].line;
	if (fold && f->leaf) {
		f->offset = p.start;
		f->exact = false;
	}
	while (k-- > 0) {
		const struct image_source_frame *at = &p.at[k];
		uint32_t function =
			function_of(n, f->image, at->function ? at->function : "", at->file, 0);

		if (!function)
			continue;
		f->outer = store_frame(n->w, f);
		f->function = function;
		f->line = at->line;
	}
	return true;
}
