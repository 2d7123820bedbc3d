/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gotable: finds Go's pclntab in an ELF file, and the address its entries are relative to.
 *
 * The table, in this order: section .gopclntab or .data.rel.ro.gopclntab; the symbol
 * runtime.pclntab; its magic, in the loaded data of a file made by Go's linker (programs linked by
 * the C linker as PIE keep it inside .data.rel.ro; others have no section table left).
 * runtime.text, in this order: the table's header (Go 1.18 to 1.25; in a PIE only after
 * relocation); the module data (gomodule.h); the symbol.
 */
#ifndef SONDE_INDEX_GOTABLE_H
#define SONDE_INDEX_GOTABLE_H

#include "loaders/index/elf/elffile.h"
#include "loaders/index/go/gomodule.h"
#include "loaders/index/go/pclntab.h"
#include "schema/image/format.h"

struct go_table {
	struct pclntab tab; /* borrows from `bytes` */
	uint64_t vaddr;     /* of the table */
	uint64_t text;
	struct go_module module;
	void *bytes; /* own */
};

/* Addresses of symbols that the file's tables name; 0: not there. */
struct go_symbols {
	uint64_t pclntab;
	uint64_t text;
	uint64_t variables[IMAGE_GO_VARIABLES]; /* by enum image_go_variable */
};

/* A symbol that may be one of these. */
void go_symbols_note(struct go_symbols *go, const char *name, uint64_t addr);

/* -ENOENT: no Go table. Else as source_read. */
int go_table_find(struct elf_file *f, const struct go_symbols *syms, struct go_table *out);
void go_table_release(struct go_table *t);

#endif
