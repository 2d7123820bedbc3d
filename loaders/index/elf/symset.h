/* SPDX-License-Identifier: Apache-2.0 */
/*
 * symset: from all symbols in a file's tables to one function for each address.
 *
 * 1. Only symbols in code count; a size is cut at the end of its code range.
 * 2. Of several at one address the best is kept: by kind (enum below, lower is better), then
 *    global, local, weak, then fewer leading underscores, then the shorter, then the smaller by
 *    bytes. So the choice does not depend on order.
 * 3. A sized function holds [addr, addr + size). A function that begins inside another one replaces
 *    it up to its own end, then the outer one continues.
 * 4. A symbol without a size, or that is not a function by type (hand-written assembler), or is a
 *    PLT stub not confirmed by a table, counts only where no sized function is, and ends, at the
 *    latest, at the next symbol, at the end of the code range (never across a gap), and at the next
 *    edge: where another table (.eh_frame, code that calls a function) says that one function ends
 *    or another begins. So musl's memset, which has no size, does not name the functions behind it.
 */
#ifndef SONDE_INDEX_SYMSET_H
#define SONDE_INDEX_SYMSET_H

#include <stddef.h>
#include <stdint.h>

#include "loaders/index/elf/elffile.h"

#define SYMSET_MAX 6000000u

enum symset_kind {
	SYMSET_GO,       /* pclntab: the names that Go itself shows */
	SYMSET_FUNC,     /* a function with a size */
	SYMSET_FUNC_ANY, /* a function without one */
	SYMSET_LABEL,    /* no type */
	SYMSET_STUB,     /* PLT */
	SYMSET_END       /* no name: something else begins here */
};

enum symset_bind { SYMSET_GLOBAL, SYMSET_LOCAL, SYMSET_WEAK };

struct symset_symbol {
	uint64_t addr;
	uint64_t size;
	const char *name; /* borrowed */
	uint8_t kind;     /* enum symset_kind */
	uint8_t bind;     /* enum symset_bind */
};

/* A piece of a function. */
struct symset_piece {
	uint64_t start, end;
	uint32_t symbol; /* in symset.symbols */
};

struct symset {
	struct elf_range *code; /* own */
	size_t code_count;
	struct symset_symbol *symbols; /* own */
	size_t count, cap;
	void **kept; /* own: the buffers that names borrow from */
	size_t kept_count, kept_cap;
};

/* Takes over `code` (malloc'ed). */
void symset_init(struct symset *s, struct elf_range *code, size_t code_count);
void symset_release(struct symset *s);
/* Takes over a buffer that names are borrowed from. */
void symset_keep(struct symset *s, void *buf);
/* -ENOSPC: SYMSET_MAX is reached, -ENOMEM. What lies outside of code is left out silently. */
int symset_add(struct symset *s, const struct symset_symbol *sym);
/* Sorts, chooses, cuts: pieces by address, none overlapping. Own (free it). `edges`: rule 4, in any
 * order. -ENOMEM. */
int symset_resolve(struct symset *s, const uint64_t *edges, size_t edge_count,
		   struct symset_piece **out, size_t *count);

#endif
