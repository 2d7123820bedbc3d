/* SPDX-License-Identifier: Apache-2.0 */
/* inside: an open image index as the files of this room see it. Others use image.h and lines.h. */
#ifndef SONDE_IMAGE_INSIDE_H
#define SONDE_IMAGE_INSIDE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "schema/image/format.h"
#include "schema/image/image.h"

/* LINES or INLINES; all zero where the index has none. */
struct image_runs_part {
	const struct image_block *blocks;
	size_t block_count;
	size_t row_count;
	const uint8_t *rows;
	size_t rows_size;
	const uint8_t *nodes;
	size_t nodes_size;
};

struct image {
	struct image_ident ident;
	uint64_t symbol_base;
	const struct image_segment *segments;
	size_t segment_count;
	const struct image_symbol_record *symbols;
	size_t symbol_count;
	const char *strings;
	size_t strings_size;
	const uint32_t *line_files;
	size_t line_file_count;
	struct image_runs_part lines;
	struct image_runs_part inlines;
	uint32_t lines_note; /* in strings */
	const void *unwind;  /* NULL: none */
	size_t unwind_size;
	const struct image_go_record *go; /* NULL: none */
	const struct image_tls_site *tls; /* NULL: none */
	size_t tls_count;
	const void *parts[IMAGE_PARTS]; /* of runtimes, by kind - IMAGE_PART_FIRST; NULL: none */
	size_t part_sizes[IMAGE_PARTS];
	void *map; /* NULL: the bytes are the caller's */
	size_t map_size;
	uint64_t dev, ino; /* of the file that is mapped; 0: none is */
};

/* A run's bytes into its parts. false: they do not fit together (its rows are checked when they are
 * read). */
bool image_runs_load(struct image_runs_part *r, const void *data, size_t size);

/* Borrowed. NULL: `offset` is 0 or lies outside; the file could be changed under the mapping, so
 * ask each time. */
static inline const char *image_string(const struct image *img, uint32_t offset)
{
	return offset && offset < img->strings_size ? img->strings + offset : NULL;
}

#endif
