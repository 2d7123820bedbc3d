/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cfiexpr: evaluates a DWARF expression with registers as unknowns. Rules can express a sum k + reg
 * + 8 * reg2, or the memory at such a sum, plus a number; anything else has no result. Pure over
 * (bytes, len). Operations: DWARF 5, 7.7.1.
 */
#ifndef SONDE_INDEX_CFIEXPR_H
#define SONDE_INDEX_CFIEXPR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define CFIEXPR_NO_REG (-1)
#define CFIEXPR_CFA    17 /* the CFA itself, as if it were a register */
/* bytes; those of real files have less than 32, and each row evaluates its own again */
#define CFIEXPR_LEN_MAX 256u

struct cfiexpr_sum {
	int64_t k;
	int reg;  /* once; CFIEXPR_NO_REG: none */
	int reg8; /* eight times */
};

struct cfiexpr {
	bool deref;
	struct cfiexpr_sum sum; /* the value; with `deref`, the address that it is read from */
	int64_t plus;           /* with `deref`: added to what was read */
};

/* `with_cfa`: the CFA lies on the stack at the start (a register's place). false: not of these
 * forms, or longer than CFIEXPR_LEN_MAX. */
bool cfiexpr_solve(const uint8_t *data, size_t len, bool with_cfa, struct cfiexpr *out);
/* The linker's expression for PLT entries. *threshold: from which byte of an entry on 8 more are on
 * the stack. */
bool cfiexpr_is_plt(const uint8_t *data, size_t len, unsigned *threshold);

#endif
