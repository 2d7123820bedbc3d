/* SPDX-License-Identifier: Apache-2.0 */
/* perfmap_parts: what a perfmap is made of, for perfmap.c, which makes and searches it, and
 * perfmap_pack.c, which hands it from one process to another. */
#ifndef SONDE_HOST_PERFMAP_PARTS_H
#define SONDE_HOST_PERFMAP_PARTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct map_line {
	uint64_t start, size;
	uint32_t name; /* offset in the pool; NAMELESS */
	uint32_t first_place, n_places;
};
#define NAMELESS UINT32_MAX

struct map_place {
	uint32_t at;   /* bytes after the function's start */
	uint32_t file; /* offset in the pool */
	uint32_t line;
};

struct piece {
	uint64_t start, end;
	uint32_t line;
};

struct perfmap {
	struct map_line *lines;
	size_t n_lines, cap_lines;
	struct piece *pieces;
	size_t n_pieces, cap_pieces;
	struct map_place *places;
	size_t n_places, cap_places;
	uint32_t last_file; /* offset of the last file name, + 1: most places have the same file as
			       the one before */
	char *pool;
	size_t pool_len, pool_cap;
	void *block; /* NULL: each array is allocated alone; else they all lie in it */
	size_t skipped;
	size_t looked; /* lines, good and bad */
	bool full;
};

#endif
