/* SPDX-License-Identifier: Apache-2.0 */
/*
 * callsites: where probes see calls of one function: its begin and its ways out, with what it
 * returns. Pure over the bytes that the reader returns.
 *
 * 1. Begin: the first instruction, behind endbr64. Of Go: the first emulated instruction, which is
 *    most often the jump that looks whether the stack is large enough: only where it does not jump,
 *    as else the function begins again with more stack.
 * 2. Ways out, where all of them are so: by tlscode, on emulated instructions, none of which is in
 *    a loop, where it would be hit once for each turn, and none far from the return: CALLSITES_NEAR
 *    instructions, no call, nothing that may take long by itself.
 * 3. Else each `ret` of the function, found by decoding from its begin, and of parts put aside.
 * None within an instruction that control reaches.
 * 4. A jump to another function ends a call, too: that one's ways out are among the sites,
 * CALLSITES_DEEP of them deep at most. A jump that leads to no known function is counted as unseen.
 * 5. A site says where the frame began: the stack pointer at the function's first instruction.
 */
#ifndef SONDE_INDEX_CALLSITES_H
#define SONDE_INDEX_CALLSITES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "loaders/index/code/tlscode.h"

#define CALLSITES_MOST 63u
#define CALLSITES_DEEP 8u
#define CALLSITES_NEAR 32u

struct callsite {
	uint64_t at;
	bool begins;
	bool others; /* in a function that it jumps to */
	uint8_t len, bytes[X86INSN_MAX];
	uint8_t when, condition; /* enum tlscode_when */
	uint8_t base;            /* X86_RSP or X86_RBP */
	int32_t frame;           /* base + this: RSP at the first instruction */
	struct tlscode_place value[2];
};

struct callsites {
	struct callsite at[CALLSITES_MOST];
	size_t n;
	unsigned unseen; /* ways out that have no site */
};

struct callsites_host {
	void *ctx;
	const struct codeflow_reader *reader;
	/* Where the function ends that begins there; 0: none is known. */
	uint64_t (*end_of)(void *ctx, uint64_t start);
};

/* -EBADMSG: its code cannot be followed; -ENOSPC: it has too many ways out. */
int callsites_find(const struct callsites_host *h, uint64_t start, uint64_t end, bool go,
		   struct callsites *out);

#endif
