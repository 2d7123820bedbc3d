/* SPDX-License-Identifier: Apache-2.0 */
/*
 * lines: where an address of an image came from in the source: file, line, column, and the
 * functions that were inlined there. Read from the sections LINE_FILES, LINES and INLINES of an
 * image index, in place (format.h, 8 to 12).
 *
 * Cost of a question: two binary searches and at most 2 x IMAGE_BLOCK_ROWS short rows; nothing is
 * allocated. Names are borrowed from the image and live until image_close.
 */
#ifndef SONDE_IMAGE_LINES_H
#define SONDE_IMAGE_LINES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct image;

struct image_source_frame {
	const char *function; /* the inlined function, demangled; NULL: the physical function, which
				 image_symbol_at names */
	const char *file;     /* as the compiler was called, its directory before it where that was
				 told; NULL: not known */
	uint32_t line;        /* 0: not known */
	uint32_t column;      /* 0: not known */
	bool inlined;         /* function was inlined into the next frame's */
};

/* Does this index hold lines? false too where its file has none. */
bool image_has_lines(const struct image *img);

/* Does the index in `fd` leave out lines that its file has, because they take long to read? Looks
 * at its head alone and checks nothing but that. */
bool image_lines_later(int fd);

/* Why its lines are missing or not complete, for people ("..."); NULL: nothing to say. */
const char *image_lines_note(const struct image *img);

/* The frames at `vaddr`, innermost first: up to `max` of them into `out`. The last frame of the
 * whole chain is the physical function (function NULL, inlined false); of a chain longer than `max`
 * the innermost frames come. Each frame's line is the line being executed in that function: at the
 * address itself in the innermost one, at the call of the one before in the others. Returns how
 * many were written; 0: this address is unknown (or max is 0).
 *
 * For a return address, ask with the address less one. */
size_t image_lines_at(const struct image *img, uint64_t vaddr, struct image_source_frame *out,
		      size_t max);

/* The line of the physical function that starts at `vaddr`: where its body begins by the line
 * table. 0: not known. */
uint32_t image_function_line(const struct image *img, uint64_t vaddr);

/* How much there is, for people and tests. */
struct image_lines_size {
	size_t files, rows, row_bytes, inline_rows, inline_bytes;
};
struct image_lines_size image_lines_size(const struct image *img);

#endif
