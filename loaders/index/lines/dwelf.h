/* SPDX-License-Identifier: Apache-2.0 */
/*
 * dwelf: only the debug sections of a file, as an ELF file in memory for libdw. So libdw sees
 * nothing but what is needed for lines and inlined functions (no code, no locations, no link to
 * another file that it might open), and each of these bytes was read, limited and hashed by
 * `source`.
 */
#ifndef SONDE_INDEX_DWELF_H
#define SONDE_INDEX_DWELF_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "loaders/index/elf/elffile.h"

/* Bytes of these sections in the file; 0: it has no .debug_info (nor .zdebug_info). */
uint64_t dwelf_size(const struct elf_file *f);
/* Own (free it); 64-bit, whatever the file's class. -ENOENT: no .debug_info; else as source_read.
 */
int dwelf_make(struct elf_file *f, void **out, size_t *size);

#endif
