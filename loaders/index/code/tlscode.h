/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tlscode: finds, in one function that reads or writes clear text, where a probe learns its
 * arguments and where it learns its result, on instructions that the kernel emulates. Pure over a
 * codeflow.
 *
 * 1. Entry: the first emulated instruction that every call passes, with each requested argument in
 *    a register.
 * 2. Result: backwards from each `ret`, along each path that leads there, following the returned
 *    value, to the first emulated instruction. The value is in a register, in a word of the frame,
 *    or, where the path decides it, a number; it may be the sum of two. Only one direction of a jcc
 *    may lead there: the site says which.
 * 3. A path is open if there is no such instruction between the value's origin (a call, arithmetic)
 *    and the `ret`, or if the function ends in a jump to another one: `leads` says where the value
 *    comes from, so that the caller may look there.
 * 4. Every site is inside the function's own bytes.
 * 5. If a jcc decides that nothing was read or written, the site is after it, on that path, even if
 *    the kernel cannot emulate that instruction: the site is only hit in this case, but the jcc
 *    each time. Never on a multi-byte no-op, which newer kernels replace by a call, which writes
 *    below the stack pointer.
 */
#ifndef SONDE_INDEX_TLSCODE_H
#define SONDE_INDEX_TLSCODE_H

#include "loaders/index/code/codeflow.h"

#define TLSCODE_ARGS      4u
#define TLSCODE_SITES_MAX 48u
#define TLSCODE_LEADS_MAX 16u

enum tlscode_kind { TLSCODE_NOWHERE, TLSCODE_REG, TLSCODE_STACK, TLSCODE_NUMBER };

struct tlscode_place {
	uint8_t kind; /* enum tlscode_kind */
	uint8_t reg;
	uint8_t bytes; /* 4: a signed number of 32 bits */
	int32_t at;    /* STACK: from RSP at the site; NUMBER: the number */
};

enum tlscode_when { TLSCODE_ALWAYS, TLSCODE_TAKEN, TLSCODE_NOT_TAKEN };

struct tlscode_site {
	uint64_t at;
	uint8_t bytes[X86INSN_MAX];
	uint8_t len;
	uint8_t when;                  /* enum tlscode_when, of `condition` */
	uint8_t condition;             /* of a jcc */
	bool slow;                     /* not emulated */
	uint8_t args[TLSCODE_ARGS];    /* entry: registers; 0xff: not asked for */
	struct tlscode_place value[2]; /* result: of rax; of the second register if that is
					  requested, else what must be added */
};

/* Whose result is returned. */
struct tlscode_lead {
	bool far;     /* by a pointer: at `displacement` of some structure */
	bool changed; /* what it returns is changed before it is returned */
	uint64_t target;
	int32_t displacement;           /* far; 0: not known */
	struct codeflow_value regs[16]; /* there */
};

struct tlscode_asked {
	uint8_t args[TLSCODE_ARGS]; /* registers in which they are given; 0xff: none */
	uint8_t second; /* the register of the result's second word; 0xff: it has none */
	bool plain;     /* each result counts alike: not 5; and only the ways to a `ret` */
};

struct tlscode_found {
	struct tlscode_site entry; /* .len 0: none */
	struct tlscode_site results[TLSCODE_SITES_MAX];
	size_t result_count;
	struct tlscode_lead leads[TLSCODE_LEADS_MAX];
	size_t lead_count;
	unsigned open; /* ways without a site */
	bool too_many; /* sites: none holds */
};

/* The entry alone; the first instruction where none that is emulated will do. false: not even that.
 */
bool tlscode_entry(const struct codeflow *f, const struct tlscode_asked *asked,
		   struct tlscode_site *out);
void tlscode_find(const struct codeflow *f, const struct tlscode_asked *asked,
		  struct tlscode_found *out);
/* The same by instructions that are not emulated: the function's first, and each `ret`. false: it
 * ends in jumps to others too. */
bool tlscode_find_slow(const struct codeflow *f, const struct tlscode_asked *asked,
		       struct tlscode_found *out);

#endif
