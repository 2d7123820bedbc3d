/* SPDX-License-Identifier: Apache-2.0 */
/*
 * unwind: the unwind rows of one ELF file, from everything the file has about them. x86-64 only;
 * files for other machines have none.
 *
 * 1. .eh_frame by its section; without one, by PT_GNU_EH_FRAME, up to the end of its
 *    segment at most.
 * 2. .debug_frame, also packed, of the file itself, then of its separate debug file, where there
 *    are fewer than UNWIND_FEW FDEs and no Go tables; where both have rows, .eh_frame's count.
 * 3. Known pieces of code that none of them describes (knowncode.h): the entry point, PLT sections;
 *    and, in a program linked statically or a C library that does not describe its signal return
 *    (musl), clone, signal return, and the rest of the code by following it (stackdepth.h).
 * 4. Go's tables, added to `rows` by their reader, after 1 and before 2.
 *
 * A file whose code spans more than ROWS_SIZE_MAX, or that has more rows than ROWS_MAX, is refused
 * for rows only.
 */
#ifndef SONDE_INDEX_UNWIND_H
#define SONDE_INDEX_UNWIND_H

#include <stdbool.h>
#include <stddef.h>

#include "loaders/index/unwind/cfi.h"
#include "loaders/index/elf/elffile.h"
#include "loaders/index/unwind/rows.h"
#include "loaders/index/elf/symset.h"

#define UNWIND_FEW 8u

struct unwind {
	bool on; /* there may be rows; else `rows` must not be touched */
	struct rows rows;
	struct elf_range *code; /* own: executable segments, sorted */
	size_t code_count;
	struct cfi_tally tally;
};

/* 1. Errors are those of source_read that say something of this host, not of the file. */
int unwind_init(struct unwind *u, struct elf_file *f);
void unwind_release(struct unwind *u);
/* Is .debug_frame of use? */
bool unwind_wants_debug(const struct unwind *u);
/* 2, of the file itself or of its debug file; does nothing where it is of no use. */
int unwind_add_debug(struct unwind *u, struct elf_file *f);
/* 3, then the section's bytes (free them); *size 0: none. `set`: the file's symbols. */
int unwind_finish(struct unwind *u, struct elf_file *f, const struct symset *set, void **out,
		  uint64_t *size);

#endif
