/* SPDX-License-Identifier: Apache-2.0 */
/*
 * stackdepth: unwind rows for compiled code without call-frame information, by following it: how
 * far the stack pointer is from the return address at each instruction. Pure over (bytes, len). For
 * musl (Alpine's and Debian's are built without call-frame information and without frame pointers);
 * other compilers' code of that kind works too.
 *
 * 1. A function starts with CFA = RSP + 8. It follows push, pop, call, add and sub of RSP, lea of
 *    it, leave; RBP is saved where it was pushed first, and can replace the CFA's base after mov
 *    %rsp, %rbp until it is written. If RSP becomes unknown (and, alloca), RBP is used; without RBP
 *    there are no rows from there on.
 * 2. Both ways of a branch are followed; a jump to another function's first byte ends the path. Of
 *    two paths to one instruction the first one counts.
 * 3. Functions begin where the caller says, at targets of calls, at addresses taken by lea, and
 *    (last, weakest) at addresses in words of data. Better known ones are followed first.
 * 4. The targets of a jump through a table have the depth of the jump.
 * 5. Code that nothing reaches gets no rows.
 */
#ifndef SONDE_INDEX_STACKDEPTH_H
#define SONDE_INDEX_STACKDEPTH_H

#include <stddef.h>
#include <stdint.h>

#include "loaders/index/unwind/rows.h"

/* bytes; four bytes of memory for each, for as long as it takes */
#define STACKDEPTH_CODE_MAX (4u << 20)

struct stackdepth_input {
	const uint8_t *code; /* borrowed */
	size_t len;
	uint64_t vaddr;
	const uint64_t
		*functions; /* borrowed: addresses of functions; those outside are passed over */
	size_t function_count;
	const uint64_t *words; /* borrowed: what data holds, addresses of functions among it */
	size_t word_count;
};

/* One span of ROWS_FOLLOWED over all of the code, and rows_start where functions begin (3, without
 * the words of data). -EFBIG: too much of it; -ENOMEM. */
int stackdepth_rows(const struct stackdepth_input *in, struct rows *r);

#endif
