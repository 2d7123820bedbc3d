/* SPDX-License-Identifier: Apache-2.0 */
/*
 * codeflow: the instructions of one x86-64 function that control can reach, the content of the
 * argument registers at each, and their predecessors. Pure over the bytes that the reader returns.
 *
 * 1. Starts at the function's first byte and follows both ways of a jcc, and the code after each
 *    call. A jump to a target outside of [start, end) leaves the function; but a jcc's leads to a
 *    part that the compiler moved away, which is followed and may come back.
 * 2. At each instruction each register holds: an argument as it was passed; a number; the place of
 *    the frame (RSP at entry plus something); or is unknown. Where two paths meet, registers that
 *    differ are unknown.
 * 3. After a call the registers that the called function may change are unknown; rax is its result.
 * 4. A jump through a table is followed if the instructions before it give the table and its
 *    length: a comparison with a number and ja, lea of the table, whose entries are distances from
 *    the table. Other indirect jumps leave the function.
 */
#ifndef SONDE_INDEX_CODEFLOW_H
#define SONDE_INDEX_CODEFLOW_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "loaders/index/code/x86effect.h"
#include "schema/base/idmap.h"

#define CODEFLOW_INSNS_MAX 6000u
#define CODEFLOW_NONE      UINT32_MAX

struct codeflow_reader {
	void *ctx;
	/* Up to X86INSN_MAX bytes at that address, of code or of constants, into `out`; how many
	 * there are. */
	size_t (*read)(void *ctx, uint64_t vaddr, uint8_t *out);
};

enum codeflow_holds { CODEFLOW_UNKNOWN, CODEFLOW_ARG, CODEFLOW_NUMBER, CODEFLOW_FRAME };

struct codeflow_value {
	uint8_t holds;  /* enum codeflow_holds */
	uint8_t arg;    /* the register in which it was given */
	int32_t number; /* NUMBER; FRAME: from RSP at entry */
};

struct codeflow_insn {
	uint64_t at;
	struct x86insn x;
	struct x86effect effect;
	uint8_t bytes[X86INSN_MAX];
	bool emulated;
	bool away;                      /* its target lies outside of the function */
	bool table;                     /* a jump through a table that was followed */
	uint64_t target;                /* of a direct jump or call */
	struct codeflow_value regs[16]; /* before it */
	uint32_t before;                /* the first of `edges` that leads here; CODEFLOW_NONE */
};

struct codeflow_edge {
	uint32_t from; /* an instruction */
	uint32_t next; /* the next edge to the same one */
	bool jumps;    /* as its target */
};

struct codeflow {
	bool restarts; /* set before: a jump to the first byte starts the function again with its
			  arguments (Go, with more stack) */
	uint64_t start, end;
	struct codeflow_insn *insns; /* own; the first is the function's first */
	size_t insn_count, insn_cap;
	struct codeflow_edge *edges; /* own */
	size_t edge_count, edge_cap;
	struct idmap by_address;
};

/* A zeroed one is filled in. false: nothing at `start`, or too many instructions. Release it in any
 * case. */
bool codeflow_make(struct codeflow *f, const struct codeflow_reader *r, uint64_t start,
		   uint64_t end);
void codeflow_release(struct codeflow *f);
#define cleanup_codeflow __attribute__((cleanup(codeflow_release)))

/* The place of an instruction's memory operand, from RSP at entry. false: it has none, or not in
 * the frame. */
bool codeflow_slot(const struct codeflow_insn *i, int32_t *at);

#endif
