/* SPDX-License-Identifier: Apache-2.0 */
/*
 * symbolizer: adds names and lines to frames in the store. A frame only gains, never loses: one
 * that has a function keeps it as its physical function, one that has a line is left alone. Stacks
 * do not change (a stack names the innermost function of a place, and that frame leads to those it
 * was inlined into), so this works while the segment is written: each symbolizer_image is one
 * transaction, with the folder's lock held.
 */
#ifndef SONDE_STORE_WRITE_SYMBOLIZER_H
#define SONDE_STORE_WRITE_SYMBOLIZER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "schema/base/err.h"

struct symbolizer;

/* Opens one segment of the store `dir` for writing. EXIT_STORE if its schema is newer, or older (a
 * file that is not written any more and was never migrated). */
int symbolizer_open(const char *dir, const char *path, struct symbolizer **out, struct err *e);
void symbolizer_close(struct symbolizer *r);

struct symbolizer_want {
	uint32_t image; /* its id in this segment */
	const char *path, *build_id, *key;
	uint64_t unnamed, lineless; /* frames without a name; with one, but without line */
};
/* ELF files with frames that could gain something. Strings are borrowed for the call. */
int symbolizer_wants(struct symbolizer *r, int (*each)(void *ctx, const struct symbolizer_want *w),
		     void *ctx, struct err *e);

struct symbolizer_frame {
	uint64_t offset;
	bool back;   /* a return address: look at the byte before */
	bool folded; /* a leaf folded to its function: its offset is the function's first byte, its
			line is lost */
	bool named;
};
struct symbolizer_name {
	const char *function;
	const char *file;    /* "" if not known */
	uint32_t line;       /* the line being executed; 0 */
	uint32_t first_line; /* of the function; 0 */
};
#define SYMBOLIZER_MAX 40
/* The functions at the frame: innermost first, the last is the physical function. 0: unknown. */
typedef size_t symbolizer_find(void *ctx, const struct symbolizer_frame *f,
			       struct symbolizer_name out[SYMBOLIZER_MAX]);

struct symbolizer_gain {
	uint64_t names, lines, inlined; /* frames that gained a name; a line; inlined functions */
};
/* Calls `find` for each frame of the image that could gain something, and writes the result. Adds
 * to *g. */
int symbolizer_image(struct symbolizer *r, uint32_t image, symbolizer_find *find, void *ctx,
		     struct symbolizer_gain *g, struct err *e);

#endif
