/* SPDX-License-Identifier: Apache-2.0 */
#include "loaders/lib/runtimes/beam/beamcall.h"

#include "loaders/lib/code/x86insn.h"

#define CODE_BYTES 128u
#define OFFSET_MAX 4096
#define RAX        0
#define RSP        4
#define RBP        5
#define R13        13
#define REX_W      8u

/* MOV of 64 bits: 89 from `reg`, 8B to it. */
static bool is_mov(const struct x86insn *i, uint8_t opcode)
{
	return !i->map && i->opcode == opcode && i->rex & REX_W && i->has_modrm;
}

static bool is_move(const struct x86insn *i, uint8_t to, uint8_t from)
{
	return (is_mov(i, 0x89) && i->mod == 3 && i->rm == to && i->reg == from) ||
	       (is_mov(i, 0x8b) && i->mod == 3 && i->reg == to && i->rm == from);
}

static bool is_taken_back(const struct x86insn *i)
{
	return is_mov(i, 0x8b) && (i->mod == 1 || i->mod == 2) && i->reg == RSP && i->rm == R13 &&
	       i->disp > 0 && i->disp < OFFSET_MAX && !(i->disp & 7);
}

/* RET, JMP, UD2: what is behind it is something else. */
static bool is_end(const struct x86insn *i)
{
	return (!i->map &&
		(i->opcode == 0xc3 || i->opcode == 0xc2 || i->opcode == 0xe9 || i->opcode == 0xeb ||
		 (i->opcode == 0xff && i->has_modrm && (i->reg & 7) == 4))) ||
	       (i->map == 1 && i->opcode == 0x0b);
}

struct beamcall beamcall_read(const struct runtime_memory *m, uint64_t pc)
{
	uint8_t code[CODE_BYTES];
	size_t len = sizeof(code);
	struct x86insn i;

	while (len && !m->read(m->ctx, pc, code, len))
		len /= 2;
	for (size_t at = 0; x86insn_read(code + at, len - at, &i) && !is_end(&i); at += i.len) {
		if (is_move(&i, R13, RAX))
			return (struct beamcall){BEAMCALL_SCHEDULES, 0};
		if (is_taken_back(&i))
			return (struct beamcall){BEAMCALL_STORED, (uint32_t)i.disp};
		if (is_move(&i, RSP, RBP))
			return (struct beamcall){BEAMCALL_IN_RBP, 0};
	}
	return (struct beamcall){BEAMCALL_UNKNOWN, 0};
}
