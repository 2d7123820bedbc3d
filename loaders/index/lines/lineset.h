/* SPDX-License-Identifier: Apache-2.0 */
/*
 * lineset: collects lines and inlined functions of addresses from any source (DWARF, Go's pclntab);
 * linecode.h makes the index's sections of them. Addresses are the file's own virtual ones;
 * addresses outside of its code are silently ignored (a linker leaves the lines of functions that
 * it dropped at address 0).
 *
 * 1. Rows come in sequences: lineset_row with ascending or equal addresses (others are ignored),
 *    then lineset_end with the first address behind. Each row holds up to the next row; of several
 *    at one address the last counts. A sequence without an end is ignored. Sequences come in any
 *    order; of two that overlap, the one that begins first (of two that begin together, the first
 *    reported) wins.
 * 2. Inlined functions are a forest of nodes: one node for each call that was inlined, its parent
 *    the inlined call around it, 0 the physical function. Each range of addresses is given to one
 *    node; where ranges overlap, the last one counts: so add a node's ranges before those of its
 *    children. A range of node 0 removes.
 * 3. More than IMAGE_INLINE_DEPTH_MAX functions in one another: the deeper ones count as part of
 *    the deepest kept.
 * 4. The first failure stays: after it everything is ignored, and lineset_status returns it.
 *    -ENOSPC: one of the limits below is reached; what was collected is sound, and may be kept.
 *    -EFBIG: too many bytes of names. -ENOMEM.
 *
 *   lineset_init(&s, code, n);
 *   file = lineset_file(&s, "/src/a.c");
 *   lineset_row(&s, 0x1000, file, 12, 5); ... lineset_end(&s, 0x1040);
 *   node = lineset_inline(&s, &(struct lineset_call){.name = lineset_name(&s, "f", false), .file =
 *     file, .line = 13});
 *   lineset_range(&s, node, 0x1004, 0x1010);
 *   ... compose_index(..., &s, ...); lineset_release(&s);
 */
#ifndef SONDE_INDEX_LINESET_H
#define SONDE_INDEX_LINESET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "loaders/index/elf/elffile.h"
#include "loaders/index/elf/strtab.h"

#define LINESET_ROWS_MAX   16000000u
#define LINESET_NODES_MAX  8000000u
#define LINESET_RANGES_MAX 12000000u

/* Kept by linecode; addresses are distances from the first byte of code. */
struct lineset_row_record {
	uint32_t addr, file, line;
	uint16_t column;
	uint16_t pad;
};

struct lineset_sequence {
	uint32_t lo, hi;
	uint32_t first, count; /* rows */
};

struct lineset_node {
	uint32_t parent; /* 0: none */
	uint32_t name, file, line;
	uint16_t column;
	uint16_t depth; /* 1: inlined into the physical function */
};

struct lineset_range_record {
	uint32_t lo, hi;
	uint32_t node;
	uint32_t order;
};

struct lineset {
	const struct elf_range *code; /* borrowed */
	size_t code_count;
	uint64_t base;
	struct strtab files, names; /* names: the first byte says 'm' or 'p', see lineset_name */
	struct lineset_row_record *rows; /* own */
	size_t row_count, row_cap;
	struct lineset_sequence *sequences; /* own */
	size_t sequence_count, sequence_cap;
	struct lineset_node *nodes; /* own; nodes[0] is unused */
	size_t node_count, node_cap;
	struct lineset_range_record *ranges; /* own */
	size_t range_count, range_cap;
	size_t open_first; /* first row of the open sequence */
	bool dead;         /* the open sequence is left out */
	int status;
};

/* An inlined call. */
struct lineset_call {
	uint32_t parent;       /* node, or 0 */
	uint32_t name;         /* of lineset_name: the function that was inlined */
	uint32_t file;         /* of lineset_file: where it is called; 0: not known */
	uint32_t line, column; /* of the call; 0: not known */
};

/* `code` (symset.code, elf_code_ranges) is sorted and borrowed until lineset_release. */
void lineset_init(struct lineset *s, const struct elf_range *code, size_t code_count);
void lineset_release(struct lineset *s);
/* 0, or the first failure. */
int lineset_status(const struct lineset *s);
bool lineset_empty(const struct lineset *s);
/* Is this address in the file's code? For leaving out early what would be left out anyway. */
bool lineset_wants(const struct lineset *s, uint64_t addr);

/* A number for this name, the same for the same name; 0: "" or a failure. */
uint32_t lineset_file(struct lineset *s, const char *name);
/* `mangled`: made readable as the symbols are when the index is composed; else shown as it is (Go).
 */
uint32_t lineset_name(struct lineset *s, const char *name, bool mangled);

void lineset_row(struct lineset *s, uint64_t addr, uint32_t file, uint32_t line, uint32_t column);
void lineset_end(struct lineset *s, uint64_t end);
/* The open sequence, if any, has no end: it is left out. */
void lineset_abandon(struct lineset *s);

/* The new node, never 0 but after a failure. */
uint32_t lineset_inline(struct lineset *s, const struct lineset_call *call);
void lineset_range(struct lineset *s, uint32_t node, uint64_t lo, uint64_t hi);

#endif
