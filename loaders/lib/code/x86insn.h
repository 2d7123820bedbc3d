/* SPDX-License-Identifier: Apache-2.0 */
/*
 * x86insn: the length of an x86-64 instruction and its parts, as far as following code needs. Pure
 * over (bytes, len). Source: Intel SDM volume 2, chapter 2 and appendix A (opcode maps; VEX and
 * EVEX prefixes included). Checks nothing that does not change the length: bytes that are not an
 * instruction may be taken for one.
 */
#ifndef SONDE_BASE_X86INSN_H
#define SONDE_BASE_X86INSN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define X86INSN_MAX 15u /* bytes */

struct x86insn {
	uint8_t len;
	uint8_t map;    /* 0: one byte; 1: 0F; 2: 0F 38; 3: 0F 3A; 4 and above: of VEX and EVEX */
	uint8_t opcode; /* the last byte of it */
	uint8_t rex;    /* low four bits: W R X B; 0: none */
	bool has_modrm;
	uint8_t mod, reg, rm; /* with REX's R and B; without SIB */
	uint8_t sib_base;     /* of a memory operand with SIB, with REX's B; else 0xff */
	uint8_t sib_index;    /* 4: none */
	int32_t disp;
	int64_t imm; /* immediate, or the distance of a relative jump */
};

/* false: cut off, or no instruction. */
bool x86insn_read(const uint8_t *code, size_t len, struct x86insn *out);

#endif
