/* SPDX-License-Identifier: Apache-2.0 */
/*
 * elfsyms: the symbols of one ELF file's tables into a symset: .symtab, .dynsym (through the
 * dynamic section where there is no section table), and names for PLT stubs.
 */
#ifndef SONDE_INDEX_ELFSYMS_H
#define SONDE_INDEX_ELFSYMS_H

#include "loaders/index/elf/elffile.h"
#include "loaders/index/go/gotable.h"
#include "loaders/index/runtimes/pypart.h"
#include "loaders/index/elf/runsyms.h"
#include "loaders/index/runtimes/v8part.h"
#include "loaders/index/elf/symset.h"
#include "loaders/index/code/tlspart.h"

enum elfsyms_table { ELFSYMS_SYMTAB, ELFSYMS_DYNSYM };

/* What runtimes are found by. */
struct elfsyms_noted {
	struct go_symbols go;
	struct py_symbols py;
	struct runsyms run;
	struct tls_symbols tls;
	struct v8_symbols v8;
};

/* Adds the functions of one table, and notes in `noted` (may be NULL) what runtimes are found by.
 * Returns how many functions the table offered, or -errno of source_read or symset_add. */
long elfsyms_add(struct elf_file *f, enum elfsyms_table which, struct symset *set,
		 struct elfsyms_noted *noted);
/* Names "f@plt" for the stubs (x86-64): each is read as the jump it is, through the slot's
 * relocation to the symbol. */
int elfsyms_add_plt(struct elf_file *f, struct symset *set);

#endif
