/* SPDX-License-Identifier: Apache-2.0 */
/*
 * x86effect: what an x86-64 instruction does to the general registers and to memory, as far as
 * following a value needs: where it continues, which registers it may change, and whether it moves
 * one value unchanged. An unknown instruction changes everything. Pure. Source: Intel SDM volume 2,
 * appendix A.
 */
#ifndef SONDE_INDEX_X86EFFECT_H
#define SONDE_INDEX_X86EFFECT_H

#include <stdbool.h>
#include <stdint.h>

#include "loaders/lib/code/x86insn.h"

enum {
	X86_RAX,
	X86_RCX,
	X86_RDX,
	X86_RBX,
	X86_RSP,
	X86_RBP,
	X86_RSI,
	X86_RDI
}; /* the processor's numbers; r8 to r15 follow */
#define X86_ALL 0xffffu
/* What a function of the System V ABI may change: rax, rcx, rdx, rsi, rdi, r8 to r11. */
#define X86_CALLER_SAVED 0x0fc7u

enum x86flow {
	X86_ON,  /* the next instruction follows */
	X86_JCC, /* or the target */
	X86_JMP,
	X86_CALL,
	X86_JMP_FAR, /* by a register or memory */
	X86_CALL_FAR,
	X86_RET,
	X86_STOP /* ud2, int3, hlt */
};

enum x86move {
	X86_NO_MOVE,
	X86_MOVE,      /* register `from` -> register `to` */
	X86_LOAD,      /* memory -> register `to` */
	X86_STORE,     /* register `from` -> memory */
	X86_SET,       /* number -> register `to` */
	X86_STORE_SET, /* number -> memory */
	X86_ADDRESS,   /* lea: address of the memory operand -> register `to` */
	X86_ADD,       /* register `to` += number (sub: the negative) */
	X86_SUM        /* register `to` = register `from` + register `other` */
};

struct x86effect {
	enum x86flow flow;
	enum x86move move;
	uint16_t changes; /* registers, by bit, those of `move` and push, pop among them */
	uint8_t from, to, other;
	uint8_t bytes;     /* that are moved: 1, 2, 4, 8 */
	uint8_t memory;    /* bytes that may be written at the memory operand; 0: none */
	bool pushes, pops; /* eight bytes */
	bool has_base;     /* the memory operand is disp(base), without an index */
	uint8_t base;
	bool relative;  /* disp(%rip) */
	int64_t number; /* of SET, STORE_SET, ADD */
};

/* `code`: the instruction's bytes, for its prefixes. */
void x86effect_of(const uint8_t *code, const struct x86insn *x, struct x86effect *out);
/* The kernel emulates it when a probe is hit there (arch/x86/kernel/uprobes.c, since 5.0): push of
 * a register, nop of one byte, jcc, jmp and call to an address in the instruction. All others are
 * single-stepped out of line, which costs a debug trap. */
bool x86effect_emulated(const uint8_t *code, const struct x86insn *x);
/* Of a jcc: its condition, 0 to 15. */
static inline uint8_t x86effect_condition(const struct x86insn *x)
{
	return x->opcode & 0xf;
}

#endif
