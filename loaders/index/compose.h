/* SPDX-License-Identifier: Apache-2.0 */
/* compose: the index's bytes (schema/image/format.h) from the identity, the segments, the resolved
 * symbols, the lines, and sections that others have made. */
#ifndef SONDE_INDEX_COMPOSE_H
#define SONDE_INDEX_COMPOSE_H

#include "loaders/index/elf/elffile.h"
#include "loaders/index/lines/lineset.h"
#include "loaders/index/elf/symset.h"
#include "schema/image/format.h"

#define COMPOSE_EXTRA_MAX 8

/* A section whose bytes are ready. */
struct compose_section {
	uint32_t kind; /* enum image_section_kind */
	uint32_t stride;
	const void *data; /* borrowed */
	uint64_t size;
};

struct compose_input {
	const struct elf_file *elf;
	struct image_ident_record *ident; /* `symbol_base` and `lines_note` are filled in */
	struct symset *set;
	const uint64_t *edges; /* borrowed: symset.h, 4 */
	size_t edge_count;
	struct lineset *lines;               /* sorted; NULL: none */
	const char *lines_note;              /* NULL: nothing to say */
	const struct compose_section *extra; /* at most COMPOSE_EXTRA_MAX */
	size_t extra_count;
};

/* Names are demangled here, each once, until that has taken DEMANGLE_CPU_NS; from then on they stay
 * as they are. -EFBIG: more than INDEX_SIZE_MAX; -ENOMEM. */
#define DEMANGLE_CPU_NS 5000000000ll
int compose_index(const struct compose_input *in, void **out, size_t *out_len,
		  size_t *symbol_count);

#endif
