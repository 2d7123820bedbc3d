/* SPDX-License-Identifier: Apache-2.0 */
/* linecode: makes the sections LINE_FILES, LINES and INLINES (schema/image/format.h, 8 to 12) of
 * what a lineset collected. */
#ifndef SONDE_INDEX_LINECODE_H
#define SONDE_INDEX_LINECODE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "loaders/index/lines/lineset.h"

/* Puts strings into the index's STRINGS; each is asked for once. `mangled`: to be made readable. 0
 * or -errno. */
struct linecode_strings {
	void *ctx;
	int (*add)(void *ctx, const char *str, bool mangled, uint32_t *offset);
};

struct linecode {
	uint32_t *files; /* own: offsets in STRINGS */
	size_t file_count;
	uint8_t *lines; /* own */
	size_t lines_size;
	uint8_t *inlines; /* own */
	size_t inlines_size;
};

/* Sorts what is in `s`. -ENOMEM, -EFBIG, or what `strings` said; then `out` is empty. */
int linecode_make(struct lineset *s, const struct linecode_strings *strings, struct linecode *out);
void linecode_release(struct linecode *c);

#endif
