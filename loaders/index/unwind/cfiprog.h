/* SPDX-License-Identifier: Apache-2.0 */
/* cfiprog: executes call-frame instructions (DWARF 5, 6.4.2) step by step, for CFA, RBP, RBX, RSP
 * and return address only. */
#ifndef SONDE_INDEX_CFIPROG_H
#define SONDE_INDEX_CFIPROG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "loaders/index/unwind/cfi.h"
#include "loaders/index/unwind/cfirule.h"

/* What a CIE says. */
struct cfi_cie {
	uint64_t at; /* its place in the section */
	bool usable;
	bool sized;       /* 'z': augmentation data has a length */
	bool signal;      /* 'S' */
	uint8_t encoding; /* of the addresses in its FDEs */
	uint8_t segment_size;
	uint64_t code_align;
	int64_t data_align;
	struct cfi_state initial;
};

struct cfi_program {
	const struct cfi_section *section;
	const struct cfi_cie *cie;
	const uint8_t *data; /* borrowed; inside the section */
	size_t len;
	uint64_t loc;      /* where it begins */
	struct rows *rows; /* its open span takes the rows; NULL: none wanted */
	uint64_t *steps;   /* instructions that may still be done */
};

/* Runs it; *state is the state at the begin, then at the end. false: damaged, or no steps left;
 * what came before the damage is in `rows`, and ROW_UNSUPPORTED_BROKEN after it. */
bool cfiprog_run(const struct cfi_program *p, struct cfi_state *state);

#endif
