/* SPDX-License-Identifier: Apache-2.0 */
/*
 * goinline: the trees of inlined calls that Go keeps for each function. Pure over (bytes, len).
 *
 * pcdata InlTreeIndex says for each address the innermost inlined call, a number in the function's
 * tree; -1: none. The tree is funcdata InlTree, an array of records, little endian:
 *   to Go 1.19 (20 bytes)  i16 parent (a number in the tree; < 0: the function itself), u8 funcID,
 *                          u8 0, i32 file (as pcfile's values), i32 line of the call, i32 name, i32
 *                          parentPc
 *   from 1.20  (16 bytes)  u8 funcID, u8 0[3], i32 name, i32 parentPc, i32 start line
 * name is an offset from the names (pclntab.h). parentPc, from the function's entry, is an
 * instruction whose own line and innermost call are those of the calling place: from 1.20 on they
 * are looked up there. (Before 1.12 records are of another form; pclntab_record reports no funcdata
 * then.) The numbers of the pcdata and funcdata tables moved from version to version, and so does
 * the base of funcdata: `struct goinline` has the values for a file, and goinline_fits whether a
 * function contradicts it.
 */
#ifndef SONDE_INDEX_GOINLINE_H
#define SONDE_INDEX_GOINLINE_H

#include "loaders/index/go/gopc.h"
#include "loaders/index/go/pclntab.h"

#define GOINLINE_CALLS_MAX 65536 /* of one function */

struct goinline {
	uint32_t pcdata, funcdata; /* numbers of the tables */
	uint64_t base;             /* what funcdata counts from; 0 where it is an address */
	const uint8_t *bytes;      /* borrowed: the memory that holds the trees */
	size_t len;
	uint64_t vaddr;
};

struct goinline_call {
	const char *name;   /* borrowed */
	uint32_t name_key;  /* equal for equal names */
	bool by_pc;         /* parent, file and line are those at parent_pc; else they are here */
	uint64_t parent_pc; /* from the function's entry; inside the function */
	int32_t parent, file, line;
};

/* Address of a function's tree. 0: none. */
uint64_t goinline_tree(const struct goinline *g, const struct pclntab *t,
		       const struct pclntab_record *r);
/* Bytes of one record. */
size_t goinline_stride(const struct pclntab *t);
/* How many calls its pcdata speaks of; parents may lie above that in a damaged table only. */
uint32_t goinline_count(const struct goinline *g, const struct pclntab *t,
			const struct pclntab_record *r, uint64_t size);
/* Call `i` of the tree at `tree`, of a function of `size` bytes. false: not sound. */
bool goinline_call(const struct goinline *g, const struct pclntab *t, uint64_t tree, uint64_t size,
		   int32_t i, struct goinline_call *out);

#endif
