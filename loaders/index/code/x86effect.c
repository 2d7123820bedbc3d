/* SPDX-License-Identifier: Apache-2.0 */
#include "loaders/index/code/x86effect.h"

#include <string.h>

#define BIT(reg) ((uint16_t)(1u << ((reg)&15)))

static bool has_prefix(const uint8_t *code, uint8_t which)
{
	for (unsigned i = 0; i < X86INSN_MAX - 1; i++) {
		if (code[i] == which)
			return true;
		if (code[i] != 0x66 && code[i] != 0xf2 && code[i] != 0xf3 && code[i] != 0xf0 &&
		    code[i] != 0x2e && code[i] != 0x3e && code[i] != 0x64 && code[i] != 0x65 &&
		    code[i] != 0x67 && code[i] != 0x26 && code[i] != 0x36)
			return false;
	}
	return false;
}

static bool is_vector(const uint8_t *code)
{
	return code[0] == 0xc4 || code[0] == 0xc5 || code[0] == 0x62;
}

static void operand_of(const uint8_t *code, const struct x86insn *x, struct x86effect *e)
{
	const bool segment = has_prefix(code, 0x64) || has_prefix(code, 0x65);

	if (!x->has_modrm || x->mod == 3 || segment)
		return;
	if (x->sib_base == 0xff) {
		e->relative = !x->mod && (x->rm & 7) == 5;
		e->has_base = !e->relative;
		e->base = x->rm;
		return;
	}
	e->has_base = x->sib_index == 4 && !(!x->mod && (x->sib_base & 7) == 5);
	e->base = x->sib_base;
}

static uint8_t width(const uint8_t *code, const struct x86insn *x)
{
	return x->rex & 8 ? 8 : has_prefix(code, 0x66) ? 2 : 4;
}

/* The operand of ModRM is changed: a register, or memory of this many bytes. */
static void changes_rm(const struct x86insn *x, struct x86effect *e, uint8_t bytes)
{
	if (x->mod == 3)
		e->changes |= BIT(x->rm);
	else
		e->memory = bytes;
}

/* One byte of a register is changed; without REX, 4 to 7 are the second bytes of 0 to 3. */
static void changes_byte(const struct x86insn *x, struct x86effect *e, uint8_t reg)
{
	e->changes |= BIT(reg);
	if (!x->rex && reg >= 4 && reg < 8)
		e->changes |= BIT(reg - 4);
}

static void move_of(const uint8_t *code, const struct x86insn *x, struct x86effect *e)
{
	const bool store = x->opcode == 0x89 || x->opcode == 0x88, byte = !(x->opcode & 1);

	e->bytes = byte ? 1 : width(code, x);
	e->from = store ? x->reg : x->rm;
	e->to = store ? x->rm : x->reg;
	if (store && x->mod != 3)
		e->memory = e->bytes;
	else if (byte)
		changes_byte(x, e, e->to);
	else
		e->changes |= BIT(e->to);
	if (e->bytes >= 4)
		e->move = x->mod == 3 ? X86_MOVE : store ? X86_STORE : X86_LOAD;
}

/* movslq: four bytes, as a signed number. */
static void extend_of(const struct x86insn *x, struct x86effect *e)
{
	e->move = x->mod == 3 ? X86_MOVE : X86_LOAD;
	e->bytes = 4;
	e->from = x->rm;
	e->to = x->reg;
	e->changes |= BIT(x->reg);
}

static void address_of(const uint8_t *code, const struct x86insn *x, struct x86effect *e)
{
	e->changes |= BIT(x->reg);
	e->to = x->reg;
	if (!(x->rex & 8))
		return;
	e->move = X86_ADDRESS;
	if (x->mod || x->sib_base == 0xff || (x->sib_base & 7) == 5 || x->sib_index == 4)
		return;
	if (code[x->len - 1] >> 6) /* the SIB byte, which is the last: a scale */
		return;
	e->move = X86_SUM;
	e->from = x->sib_base;
	e->other = x->sib_index;
}

static void set_of(const uint8_t *code, const struct x86insn *x, struct x86effect *e)
{
	e->bytes = x->opcode == 0xc6 ? 1 : width(code, x);
	e->number = x->imm;
	e->to = x->rm;
	changes_rm(x, e, e->bytes);
	if (x->mod == 3 && e->bytes < 4)
		changes_byte(x, e, x->rm);
	else if (e->bytes >= 4)
		e->move = x->mod == 3 ? X86_SET : X86_STORE_SET;
}

/* add, or, adc, sbb, and, sub, xor, cmp in their six forms. */
static void arithmetic_of(const uint8_t *code, const struct x86insn *x, struct x86effect *e)
{
	const unsigned form = x->opcode & 7;

	if ((x->opcode & 0x38) == 0x38)
		return;
	if (form < 2)
		changes_rm(x, e, form ? width(code, x) : 1);
	else
		e->changes |= (uint16_t)(form < 4 ? BIT(x->reg) : BIT(X86_RAX));
	if (form == 0 && x->mod == 3)
		changes_byte(x, e, x->rm);
	if (form == 2)
		changes_byte(x, e, x->reg);
	if ((x->opcode == 0x01 || x->opcode == 0x03) && x->mod == 3 && width(code, x) == 8) {
		e->move = X86_SUM;
		e->to = e->other = x->opcode == 0x01 ? x->rm : x->reg;
		e->from = x->opcode == 0x01 ? x->reg : x->rm;
	}
	if ((x->opcode == 0x31 || x->opcode == 0x33 || x->opcode == 0x29 || x->opcode == 0x2b) &&
	    x->mod == 3 && x->reg == x->rm) {
		e->move = X86_SET;
		e->to = x->reg;
		e->bytes = 8;
	}
}

static void group1_of(const uint8_t *code, const struct x86insn *x, struct x86effect *e)
{
	const unsigned way = x->reg & 7;

	if (way == 7)
		return;
	changes_rm(x, e, x->opcode == 0x80 ? 1 : width(code, x));
	if (x->opcode == 0x80 && x->mod == 3)
		changes_byte(x, e, x->rm);
	if (x->opcode != 0x80 && x->mod == 3 && x->rex & 8 && (way == 0 || way == 5)) {
		e->move = X86_ADD;
		e->to = x->rm;
		e->number = way ? -x->imm : x->imm;
	} else if (x->opcode == 0x83 && x->mod == 3 && way == 1 && x->imm == -1) { /* or $-1 */
		e->move = X86_SET;
		e->to = x->rm;
		e->bytes = width(code, x);
		e->number = -1;
	}
}

static void group5_of(const struct x86insn *x, struct x86effect *e)
{
	const unsigned way = x->reg & 7;

	if (way < 2) {
		changes_rm(x, e, 8);
	} else if (way == 2 || way == 3) {
		e->flow = X86_CALL_FAR;
		e->from = x->mod == 3 ? x->rm : 0xff;
	} else if (way == 4 || way == 5) {
		e->flow = X86_JMP_FAR;
		e->from = x->mod == 3 ? x->rm : 0xff;
	} else {
		e->pushes = true;
	}
}

static void group3_of(const uint8_t *code, const struct x86insn *x, struct x86effect *e)
{
	const unsigned way = x->reg & 7;

	if (way == 2 || way == 3)
		changes_rm(x, e, x->opcode == 0xf6 ? 1 : width(code, x));
	if (way > 3)
		e->changes |= BIT(X86_RAX) | BIT(X86_RDX);
}

static void one_byte_rest(const uint8_t *code, const struct x86insn *x, struct x86effect *e)
{
	const uint8_t op = x->opcode;

	switch (op) {
	case 0x84:
	case 0x85:
	case 0xa8:
	case 0xa9:
	case 0x68:
	case 0x6a:
	case 0x9b:
	case 0xf4:
	case 0xf5:
	case 0xf8:
	case 0xf9:
	case 0xfc:
	case 0xfd:
		e->pushes = op == 0x68 || op == 0x6a;
		e->flow = op == 0xf4 ? X86_STOP : X86_ON;
		break;
	case 0x63:
		extend_of(x, e);
		break;
	case 0x69:
	case 0x6b:
		e->changes |= BIT(x->reg);
		break;
	case 0x86:
	case 0x87:
		e->changes |= BIT(x->reg);
		changes_rm(x, e, 8);
		break;
	case 0x88:
	case 0x89:
	case 0x8a:
	case 0x8b:
		move_of(code, x, e);
		break;
	case 0x8d:
		address_of(code, x, e);
		break;
	case 0x98:
		e->changes |= BIT(X86_RAX);
		break;
	case 0x99:
		e->changes |= BIT(X86_RDX);
		break;
	case 0xc0:
	case 0xc1:
	case 0xd0:
	case 0xd1:
	case 0xd2:
	case 0xd3:
		changes_rm(x, e, 8);
		break;
	case 0xc2:
	case 0xc3:
		e->flow = X86_RET;
		break;
	case 0xc6:
	case 0xc7:
		set_of(code, x, e);
		break;
	case 0xc9:
		e->changes |= BIT(X86_RSP) | BIT(X86_RBP);
		e->pops = true;
		break;
	case 0xcc:
		e->flow = X86_STOP;
		break;
	case 0xe8:
		e->flow = X86_CALL;
		break;
	case 0xe9:
	case 0xeb:
		e->flow = X86_JMP;
		break;
	case 0xf6:
	case 0xf7:
		group3_of(code, x, e);
		break;
	case 0xfe:
		changes_rm(x, e, 1);
		break;
	case 0xff:
		group5_of(x, e);
		break;
	case 0xa4:
	case 0xa5:
	case 0xaa:
	case 0xab:
		e->changes |= BIT(X86_RCX) | BIT(X86_RSI) | BIT(X86_RDI);
		break;
	default:
		e->changes = X86_ALL;
	}
}

static void one_byte(const uint8_t *code, const struct x86insn *x, struct x86effect *e)
{
	const uint8_t op = x->opcode, reg = (uint8_t)((op & 7) | (x->rex & 1) << 3);

	if (op < 0x40 && (op & 7) < 6) {
		arithmetic_of(code, x, e);
	} else if (op >= 0x50 && op < 0x58) {
		e->pushes = true;
		e->from = reg;
	} else if (op >= 0x58 && op < 0x60) {
		e->pops = true;
		e->to = reg;
		e->changes |= BIT(reg);
	} else if (op >= 0x70 && op < 0x80) {
		e->flow = X86_JCC;
	} else if (op == 0x80 || op == 0x81 || op == 0x83) {
		group1_of(code, x, e);
	} else if (op >= 0x90 && op < 0x98) {
		e->changes |= (uint16_t)(op == 0x90 && !(x->rex & 1) ? 0 : BIT(X86_RAX) | BIT(reg));
	} else if (op >= 0xb0 && op < 0xb8) {
		changes_byte(x, e, reg);
	} else if (op >= 0xb8 && op < 0xc0) {
		e->move = X86_SET;
		e->to = reg;
		e->bytes = width(code, x);
		e->number = x->imm;
		e->changes |= BIT(reg);
	} else {
		one_byte_rest(code, x, e);
	}
}

static void two_bytes(const uint8_t *code, const struct x86insn *x, struct x86effect *e)
{
	const uint8_t op = x->opcode;

	if (op >= 0x80 && op < 0x90) {
		if (!is_vector(code))
			e->flow = X86_JCC;
		return;
	}
	if ((op >= 0x40 && op < 0x50 && !is_vector(code)) || (op >= 0xb6 && op < 0xb8) ||
	    (op >= 0xbc && op < 0xc0) || op == 0xaf) {
		e->changes |= BIT(x->reg);
		return;
	}
	if (op >= 0x90 && op < 0xa0) {
		changes_rm(x, e, 1);
		if (x->mod == 3)
			changes_byte(x, e, x->rm);
		return;
	}
	if (op >= 0xc8 && op < 0xd0) {
		e->changes |= BIT((op & 7) | (x->rex & 1) << 3);
		return;
	}
	switch (op) {
	case 0x05:
		e->changes |= BIT(X86_RAX) | BIT(X86_RCX) | BIT(11);
		break;
	case 0x0b:
		e->flow = X86_STOP;
		break;
	case 0xa2:
	case 0x01:
		e->changes = X86_ALL;
		break;
	case 0x31:
		e->changes |= BIT(X86_RAX) | BIT(X86_RDX);
		break;
	case 0x50:
	case 0x2c:
	case 0x2d:
	case 0xc5:
	case 0xd7:
		e->changes |= BIT(x->reg);
		break;
	case 0x7e:
		changes_rm(x, e, 8);
		break;
	case 0xa3:
		break;
	case 0xa4:
	case 0xa5:
	case 0xac:
	case 0xad:
	case 0xab:
	case 0xb3:
	case 0xba:
	case 0xbb:
		changes_rm(x, e, 8);
		break;
	case 0xb0:
	case 0xb1:
		e->changes |= BIT(X86_RAX);
		changes_rm(x, e, 8);
		break;
	case 0xc0:
	case 0xc1:
		e->changes |= BIT(x->reg);
		changes_rm(x, e, 8);
		break;
	case 0xc7:
		e->changes = X86_ALL;
		break;
	case 0x11:
	case 0x13:
	case 0x17:
	case 0x29:
	case 0x2b:
	case 0x7f:
	case 0xd6:
	case 0xe7:
		if (x->mod != 3)
			e->memory = is_vector(code) ? 64 : 16;
		break;
	default:
		break; /* vectors, hints: no general register, and memory is read */
	}
}

void x86effect_of(const uint8_t *code, const struct x86insn *x, struct x86effect *out)
{
	*out = (struct x86effect){.from = 0xff, .to = 0xff};
	operand_of(code, x, out);
	if (!x->map)
		one_byte(code, x, out);
	else if (x->map == 1)
		two_bytes(code, x, out);
	else if (x->opcode >= 0xf0)
		out->changes = X86_ALL;
	else
		out->memory = x->has_modrm && x->mod != 3 ? 64 : 0;
}

bool x86effect_emulated(const uint8_t *code, const struct x86insn *x)
{
	const uint8_t op = x->opcode;

	if (x->map == 1)
		return op >= 0x80 && op < 0x90 && x->len == 6 && code[0] == 0x0f;
	if (x->map)
		return false;
	if (op >= 0x50 && op < 0x58)
		return x->len == 1 || (x->len == 2 && code[0] == 0x41);
	if (op == 0x90)
		return x->len == 1;
	return code[0] == op &&
	       ((op >= 0x70 && op < 0x80) || op == 0xe8 || op == 0xe9 || op == 0xeb);
}
