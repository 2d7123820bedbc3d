/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gopc: Go's pc tables, which give a number for each address of a function (depth of the stack,
 * file, line, inlined call). Pure over (bytes, len). Source: golang.org/s/go12symtab, "PC-value
 * tables".
 *
 * A table is a sequence of steps {value delta, pc delta}, each a varint of up to 32 bits, low seven
 * bits first; the value delta is zigzag-coded and starts from -1; the pc delta counts in quanta and
 * says how far, from the end of the step before (first: the function's entry), the new value holds.
 * A value delta of 0, but for the first step's, ends the table. Steps of no length are not written
 * by any linker: GOPC_EMPTY_MAX of them in a row end it too.
 */
#ifndef SONDE_INDEX_GOPC_H
#define SONDE_INDEX_GOPC_H

#include "loaders/index/go/pclntab.h"

#define GOPC_EMPTY_MAX 64

/* One step, and where the next one is. */
struct gopc {
	uint64_t start, end; /* from the function's entry; end > start, never beyond the function */
	int32_t value;
	const uint8_t *at, *stop; /* the rest is the reader's own */
	uint64_t limit, next;
	unsigned quantum;
	bool first;
};

/* A reader at the beginning of the table at `place` (of struct pclntab_record; 0: an empty table)
 * of a function of `size` bytes. gopc_next tells steps until it returns false; steps that cover
 * nothing are left out. */
struct gopc gopc_open(const struct pclntab *t, uint32_t place, uint64_t size);
bool gopc_next(struct gopc *p);

/* The value at one address, and where that step ends. -1 where the table says nothing. `p` is a
 * reader that is moved on: ask in ascending order. */
int32_t gopc_value(struct gopc *p, uint64_t at);

#endif
