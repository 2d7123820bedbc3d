/* SPDX-License-Identifier: Apache-2.0 */
/* region: a piece of a file's memory as the dynamic loader sets it up: bytes of one segment,
 * relative relocations applied. */
#ifndef SONDE_INDEX_REGION_H
#define SONDE_INDEX_REGION_H

#include "loaders/index/elf/elffile.h"

struct region {
	uint8_t *bytes; /* own */
	uint64_t vaddr;
	uint64_t len;
};

/* -ENOENT: these addresses are not in the file (it may lie); else as source_read. */
int region_read(struct elf_file *f, uint64_t vaddr, uint64_t len, struct region *out);
void region_release(struct region *r);
#define cleanup_region __attribute__((cleanup(region_release)))

/* The number of `size` (4 or 8) bytes at `offset`; 0 beyond the end. */
uint64_t region_word(const struct region *r, uint64_t offset, unsigned size);

#endif
