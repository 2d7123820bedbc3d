/* SPDX-License-Identifier: Apache-2.0 */
/*
 * v8flow_graph: the instructions of optimised code, their predecessors, and the loops. Part of
 * v8flow.
 *
 * Instructions are numbered in the order of their addresses. Instructions that are not reachable
 * from the first one (exception handlers, padding) are left out, and so are paths from there.
 * Leaving out a path does no harm: which inlined function an instruction belongs to does not depend
 * on the path, and a loop keeps its head.
 */
#ifndef SONDE_RUNTIMES_V8FLOW_GRAPH_H
#define SONDE_RUNTIMES_V8FLOW_GRAPH_H

#include "loaders/lib/runtimes/v8/v8flow.h"

#define V8_FLOW_NO_REGISTER 0xff

/* How a loop asks whether it is to stop: cmp rsp,[r13+n], where it goes on if that is above; the
 * byte at [r13-0x4f] (V8 12.4 and 13.6), where it does if that is 0. */
enum v8flow_asks { V8_FLOW_ASKS_STACK = 1, V8_FLOW_ASKS_BYTE };

struct v8flow_insn {
	uint32_t at;       /* offset */
	uint32_t target;   /* the instruction it jumps to; V8_FLOW_NONE */
	int32_t says;      /* its description; -1: none */
	uint8_t condition; /* of a conditional jump, as x86 has it */
	bool falls;        /* the next instruction may follow it */
	bool calls, returns;
	bool stops;      /* int3 */
	uint32_t table;  /* a jump through a table: the table's offset; V8_FLOW_NONE */
	uint8_t entries; /* of the table */
	uint8_t asks;    /* enum v8flow_asks */
	uint8_t sets;  /* seta, sete, or what keeps that byte: the register; V8_FLOW_NO_REGISTER */
	uint8_t tests; /* test r,r; cmp r,0 */
	uint16_t changes; /* registers that it may change, a bit each */
};

struct v8flow_graph {
	struct v8flow_insn *insns; /* own */
	uint32_t n;
	uint32_t *after, *next;   /* own; those that may follow instruction i: next[after[i]] to
				     next[after[i + 1] - 1] */
	uint32_t *before, *edges; /* own; those before it, alike */
	uint32_t *order; /* own; by instruction: its place in reverse postorder; V8_FLOW_NONE: not
			    reached */
	uint32_t *by_order; /* own */
	uint32_t reached;
	uint32_t *above; /* own; by instruction: the nearest one that is on every way to it; itself:
			    a root */
	bool *root;      /* own; nothing is above it */
	uint32_t *loop,
		*outer; /* own; by instruction: the head of the innermost loop that it is in (a
			   head: itself); of a head: that of the loop around. V8_FLOW_NONE */
};

/* A zeroed one is filled. false: it cannot be followed. Release it in any case. */
bool v8flow_graph_make(struct v8flow_graph *g, const struct v8flow_code *c);
void v8flow_graph_release(struct v8flow_graph *g);
/* The instruction that begins there; V8_FLOW_NONE: none. */
uint32_t v8flow_insn_at(const struct v8flow_graph *g, uint32_t offset);

#endif
