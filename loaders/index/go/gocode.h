/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gocode: finding the few instructions of amd64 that goframe wants to know, by their bytes, in
 * functions whose shape is known (Go's own assembler and compiler made them). No general decoder.
 * Pure over (bytes, len).
 */
#ifndef SONDE_INDEX_GOCODE_H
#define SONDE_INDEX_GOCODE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define GOCODE_NONE ((size_t)-1)

struct gocode {
	const uint8_t *bytes; /* borrowed */
	size_t len;
};

/* Is there, at `at`, the end of a push %rbp? */
bool gocode_pushed_bp(const struct gocode *c, size_t at);
/* mov %rbp, x(%rsp) at `at`: its length and x. 0: another instruction. */
size_t gocode_stores_bp(const struct gocode *c, size_t at, int32_t *x);
/* End of the first instruction at or after `from` that loads SP from memory or a register;
 * GOCODE_NONE: none. */
size_t gocode_loads_sp(const struct gocode *c, size_t from);
/* End of the first and $x, %rsp at or after `from`. */
size_t gocode_aligns_sp(const struct gocode *c, size_t from);
/* End of the first mov %REG, x(%rsp) at or after `from`, for x < 128; reg: 2 RDX, 7 RDI. */
size_t gocode_stores(const struct gocode *c, size_t from, unsigned reg, int32_t *x);
/* End of the instruction that makes RBP a frame pointer: mov %rsp, %rbp after push %rbp; lea
 * x(%rsp), %rbp. CFA is RBP + *cfa from there on: 16; x + 16 where mov %rsp, %rbp follows the lea
 * (Go 1.15's clocks). */
size_t gocode_frame_pointer(const struct gocode *c, int32_t *cfa);

struct gocode_exit {
	size_t bp_back; /* RBP is the caller's from here on */
	int32_t depth;  /* depth at bp_back; then, from `at_ret` on, 0 */
	size_t at_ret;  /* the last instruction (ret, or a jump away) */
	size_t after;
};

/* The first epilogue of a function with a frame pointer at or after `from`. false: none. */
bool gocode_exit(const struct gocode *c, size_t from, struct gocode_exit *out);
/* mov %fs:x, %REG, or mov $x, %rcx; mov %fs:(%rcx), %REG; or, with *got, mov GOT(%rip), %rcx; mov
 * %fs:(%rcx), %REG, where x is what the loader writes there. false: none. */
bool gocode_tls(const struct gocode *c, int32_t *x, bool *got);
/* cmp x(%rbx), %rax with a 32-bit x. false: none. */
bool gocode_curg(const struct gocode *c, int32_t *x);
/* mov %rbp, x(%rsi or %rdi). false: none. */
bool gocode_sched_bp(const struct gocode *c, int32_t *x);

#endif
