/* SPDX-License-Identifier: Apache-2.0 */
/* compose: the index's bytes (schema/image/format.h) from the identity, the segments and the resolved symbols. */
#ifndef SONDE_INDEX_COMPOSE_H
#define SONDE_INDEX_COMPOSE_H

#include "loaders/index/elffile.h"
#include "loaders/index/symset.h"
#include "schema/image/format.h"

/* Names are demangled here, each once, until that has taken DEMANGLE_CPU_NS; from then on they stay as they are.
 * -EFBIG: more than INDEX_SIZE_MAX; -ENOMEM. `ident.symbol_base` is filled in. */
#define DEMANGLE_CPU_NS 5000000000ll
int compose_index(const struct elf_file *f, struct image_ident_record *ident, struct symset *set, void **out,
		  size_t *out_len, size_t *symbol_count);

#endif
