/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pclntab: the function table that every Go program has, stripped or not. Pure over (bytes, len).
 * Sources: golang.org/s/go12symtab, src/debug/gosym/pclntab.go and src/cmd/link/internal/ld/pcln.go
 * of Go 1.26.
 *
 *   u32 magic, u8 0, u8 0, u8 quantum (1, 2, 4), u8 ptrsize (4, 8); then words of ptrsize:
 *
 *   generation  magic       functab     _func begins         words
 *   2           0xfffffffb  word, word  word entry, i32 name  nfunc, functab at once
 *   16          0xfffffffa  word, word  word entry, i32 name  nfunc, nfiles, names, cu, files,
 *                                                             pctab, pcln
 *   18          0xfffffff0  u32, u32    u32 entry, i32 name   nfunc, nfiles, textStart, names, cu,
 *                                                             files, pctab, pcln
 *   20          0xfffffff1  u32, u32    u32 entry, i32 name   as 18; from Go 1.26 on textStart is 0
 *
 * names ... pcln are offsets from the magic. functab is at pcln: pairs (entry, offset of _func),
 * and one more entry, which is the end of the last function. In 2, offsets of _func and names are
 * relative to the magic, later to pcln and names. In 2 and 16 entries are addresses, later
 * distances from runtime.text.
 *
 * _func after entry (E bytes) and name: i32 args, u32 deferreturn, u32 pcsp, u32 pcfile, u32 pcln,
 * u32 npcdata;
 * - 16 and later: u32 cu; 20: i32 start_line; then u8 funcID, u8 flags (0 before Go 1.17), u8 0, u8
 *   nfuncdata;
 * - u32 pcdata[npcdata]; then funcdata[nfuncdata]: 2, 16: words, aligned, addresses (0: none); 18
 *   and later: u32, distances from go.func (0xffffffff: none). Before Go 1.12 the four bytes after
 *   npcdata are a u32 nfuncdata: no funcdata is reported if they cannot be the later form.
 *
 * pcsp, pcfile, pcln and pcdata are places of pc tables (gopc.h): in 2 relative to the magic, later
 * to pctab; 0: none. A value of pcfile is a file number: 2: from 1 on, files[number] is the name's
 * offset from the magic; the array follows functab's end, where a u32 has its offset from the
 * magic, and its first element is its length. 16 and later: from 0 on, cu[_func.cu + number] (u32)
 * is the name's offset from files; 0xffffffff: none.
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
	size_t pctab;
	size_t cutab;     /* 16 and later */
	size_t files;     /* 2: the array; later: the names */
	unsigned quantum; /* addresses in pc tables count in this many bytes */
};

struct pclntab_func {
	uint64_t start, end;
	const char *name; /* borrowed, NUL-terminated within the table */
};

#define PCLNTAB_FLAG_TOP      1u /* outermost on its stack */
#define PCLNTAB_FLAG_SP_WRITE 2u /* changes SP in ways that pcsp does not say */

/* The rest of a function's record. */
struct pclntab_record {
	uint32_t pcsp, pcfile, pcln; /* pc tables, see gopc.h; 0: none */
	uint32_t cu;
	int32_t start_line; /* 0: not told */
	uint8_t flags;      /* PCLNTAB_FLAG_* */
	uint32_t pcdata_count, funcdata_count;
	size_t pcdata, funcdata; /* places in data */
};

/* -EBADMSG: not a table, or one whose parts do not fit in `len`. `len` may be more than the table's
 * own length. */
int pclntab_parse(const void *data, size_t len, struct pclntab *out);
/* Function i, with `text` the address of runtime.text (not used unless `relative`). false: not
 * sound, skip it. */
bool pclntab_func(const struct pclntab *t, uint64_t text, uint32_t i, struct pclntab_func *out);
/* false: not sound. What it points to is checked when it is followed. */
bool pclntab_record(const struct pclntab *t, uint32_t i, struct pclntab_record *out);
/* Place of the k-th pcdata table; 0: none. */
uint32_t pclntab_pcdata(const struct pclntab *t, const struct pclntab_record *r, uint32_t k);
/* The k-th funcdata as it is written (see above). false: none. */
bool pclntab_funcdata(const struct pclntab *t, const struct pclntab_record *r, uint32_t k,
		      uint64_t *out);
/* A name of `names`, by its offset. NULL: out of range, or empty. */
const char *pclntab_name(const struct pclntab *t, uint32_t offset);
/* The file of a number that pcfile told; its place in data goes to *key (equal for equal names).
 * NULL: none. */
const char *pclntab_file(const struct pclntab *t, const struct pclntab_record *r, int32_t number,
			 size_t *key);
/* First place at or after `from` where eight bytes look like the beginning of a table; `len` if
 * none. */
size_t pclntab_scan(const void *data, size_t len, size_t from);

#endif
