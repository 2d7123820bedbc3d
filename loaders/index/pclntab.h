/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pclntab: the function table that every Go program carries, stripped or not. Pure over (bytes, len).
 * Sources: golang.org/s/go12symtab, src/debug/gosym/pclntab.go and src/cmd/link/internal/ld/pcln.go of Go 1.26.
 *
 *   u32 magic, u8 0, u8 0, u8 quantum (1, 2, 4), u8 ptrsize (4, 8); then words of ptrsize:
 *   generation  magic       words                                                     functab        _func begins
 *   2           0xfffffffb  nfunc, functab at once                                    word, word     word entry, i32 name
 *   16          0xfffffffa  nfunc, nfiles, names, cu, files, pctab, pcln              word, word     word entry, i32 name
 *   18          0xfffffff0  nfunc, nfiles, textStart, names, cu, files, pctab, pcln   u32, u32       u32 entry, i32 name
 *   20          0xfffffff1  as 18; from Go 1.26 on textStart is always 0              u32, u32       u32 entry, i32 name
 *
 * names ... pcln are offsets from the magic. functab lies at pcln: pairs (entry, offset of _func), and one more entry,
 * which is the end of the last function. In 2 offsets of _func and names count from the magic, later from pcln and
 * names. In 2 and 16 entries are addresses, later distances from runtime.text.
 */
#ifndef SONDE_INDEX_PCLNTAB_H
#define SONDE_INDEX_PCLNTAB_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct pclntab {
	const uint8_t *data; /* borrowed */
	size_t len;
	unsigned generation; /* 2, 16, 18, 20 */
	unsigned ptr_size;
	uint32_t func_count;
	bool relative;       /* entries are distances from runtime.text */
	uint64_t text_start; /* as the header says; 0: look elsewhere */
	size_t functab;      /* offsets in data */
	size_t funcs;
	size_t names;
};

struct pclntab_func {
	uint64_t start, end;
	const char *name; /* borrowed, NUL-terminated within the table */
};

/* -EBADMSG: not a table, or one whose parts do not fit in `len`. `len` may be more than the table's own length. */
int pclntab_parse(const void *data, size_t len, struct pclntab *out);
/* Function i, with `text` the address of runtime.text (not used unless `relative`). false: not sound, skip it. */
bool pclntab_func(const struct pclntab *t, uint64_t text, uint32_t i, struct pclntab_func *out);
/* First place at or after `from` where eight bytes look like a table's beginning; `len` if there is none. */
size_t pclntab_scan(const void *data, size_t len, size_t from);

#endif
