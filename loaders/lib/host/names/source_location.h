/* SPDX-License-Identifier: Apache-2.0 */
/*
 * source_location: the function and line at an offset of a file, and the functions inlined there,
 * from the file's image index. Used by naming, which names frames as they come, and by
 * sonde-symbolize, which does so later.
 */
#ifndef SONDE_HOST_SOURCE_LOCATION_H
#define SONDE_HOST_SOURCE_LOCATION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "schema/image/image.h"
#include "schema/image/lines.h"

#define SOURCE_LOCATION_MAX \
	32 /* inlined functions at one address; if there are more, the innermost */

struct source_location {
	struct image_symbol symbol; /* the physical function */
	uint64_t start;             /* file offset of its first byte */
	uint32_t first_line; /* the line in which it begins, if that is in the same file as this
				line; else 0 */
	struct image_source_frame
		at[SOURCE_LOCATION_MAX + 1]; /* innermost first; the last is the physical function
				       (its `function` is NULL: `symbol` names it) */
	size_t n;                            /* at least 1 */
};

/* `back`: `offset` is a return address, looked up at the byte before; but a signal trampoline,
 * which is reached by returning to its first byte, is found there. false: no symbol holds it.
 * Everything is borrowed from the index. */
bool source_location_find(const struct image *index, uint64_t offset, bool back,
			  struct source_location *out);
/* Forget all but the physical function. */
void source_location_without_lines(struct source_location *p);

#endif
