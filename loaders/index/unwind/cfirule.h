/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cfirule: from call-frame information at one address to the unwind rule (probes/lib/tables.h) that
 * expresses it.
 *
 * Of all the registers four count: the CFA, where the caller's RBP and RBX are, where the return
 * address is (and RSP, which must be the CFA itself). Conditions, x86-64 (System V psABI 1.0,
 * figure 3.36; DWARF 5, 6.4):
 *
 * 1. Return address: undefined -> ROW_ROOT. In a register -> ROW_EXT_RA_REG. At CFA - 8 -> as
 *    below; where the CFA is RSP + n with n < 8 that would lie below the stack: its author popped
 *    everything (musl's __clone in the new thread) -> ROW_ROOT. Anywhere else ->
 *    ROW_UNSUPPORTED_RA.
 * 2. CFA: RSP or RBP + 8 * n, 0 <= n <= ROW_OFFSET_MAX -> ROW_RSP, ROW_RBP. Other registers and
 *    offsets -> ROW_EXT_CFA. An expression: the PLT's (psABI-independent, by GNU and LLVM linkers:
 *    breg7 8, breg16 0, lit15, and, lit N, ge, lit3, shl, plus) -> ROW_PLT; what comes down to reg
 *    + a, *(reg + a) + b, *(reg + 8 * reg2 + a) + b -> ROW_EXT_*. Else
 *    ROW_UNSUPPORTED_CFA_EXPRESSION.
 * 3. RBP: no rule, or same value -> same. Saved at CFA + n -> there; but below the top of a stack
 *    that is known by RSP nothing can be saved: it was popped already -> same. Saved at RBP + n,
 *    RSP + n by an expression -> ROW_EXT_BP_*. Undefined, in another register, a value instead of a
 *    place, another expression -> lost. RBX: the same; lost unless it is unchanged or at CFA - 8 *
 *    n.
 * 4. RSP: no rule, or value CFA + 0. Else ROW_UNSUPPORTED_CFA_REGISTER: the CFA is not the caller's
 *    stack pointer.
 */
#ifndef SONDE_INDEX_CFIRULE_H
#define SONDE_INDEX_CFIRULE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "loaders/index/unwind/rows.h"

enum cfi_how {
	CFI_UNSET = 0,
	CFI_SAME,
	CFI_UNDEFINED,
	CFI_OFFSET,     /* at CFA + n */
	CFI_VAL_OFFSET, /* is CFA + n */
	CFI_REGISTER,   /* is in register n */
	CFI_EXPRESSION, /* at the address that the expression gives */
	CFI_VAL_EXPRESSION
};

/* Where one register of the caller is. */
struct cfi_value {
	enum cfi_how how;
	int64_t n;
	const uint8_t *expr; /* borrowed */
	size_t expr_len;
};

struct cfi_state {
	uint64_t cfa_reg;
	int64_t cfa_offset;
	const uint8_t *cfa_expr; /* NULL: cfa_reg + cfa_offset; borrowed */
	size_t cfa_expr_len;
	struct cfi_value rbp, rbx, rsp, ra;
};

/* The rule for this state. */
uint64_t cfi_rule(const struct cfi_state *s, struct rows *r);
/* Is the CFA the stack pointer in the context that the kernel left above a signal handler's frame:
 * *(RSP + 160)? */
bool cfi_is_signal_context(const struct cfi_state *s);

#endif
