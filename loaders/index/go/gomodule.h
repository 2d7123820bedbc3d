/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gomodule: runtime.moduledata, the addresses of a program's parts, written by Go's linker.
 * Found by its first word, which points to the pclntab, and by the address of the text, which must
 * be code: word 12 in Go 1.2 to 1.15, 22 from 1.16 to 1.27. Later words move from version to
 * version: gofunc (1.18 on), the base of funcdata, is word 38 to 1.19, 40 to 1.26, 43
 * in 1.27; callers try them all (goline.h).
 */
#ifndef SONDE_INDEX_GOMODULE_H
#define SONDE_INDEX_GOMODULE_H

#include "loaders/index/elf/elffile.h"
#include "loaders/index/go/pclntab.h"

#define GO_MODULE_WORDS 64u

struct go_module {
	uint64_t addr; /* 0: not found */
	uint64_t text;
	uint64_t words[GO_MODULE_WORDS];
};

/* Section .go.module (Go 1.26 on), else in the writable segments. 0 also if there is none; else as
 * source_read. */
int go_module_find(struct elf_file *f, const struct pclntab *t, uint64_t table,
		   struct go_module *out);
/* Does an executable segment hold this address? */
bool go_is_code(const struct elf_file *f, uint64_t vaddr);

#endif
