/* SPDX-License-Identifier: Apache-2.0 */
#include "loaders/lib/code/x86insn.h"

#include "schema/base/cursor.h"

/* What follows an opcode. */
enum {
	M = 1,  /* ModRM */
	I1 = 2, /* an immediate of 1 byte */
	I2 = 4,
	IZ = 8,    /* of 2 bytes with prefix 66, else 4 */
	IV = 16,   /* as IZ; 8 with REX.W */
	R4 = 32,   /* 4 bytes, whatever the prefixes */
	OFFS = 64, /* an address of 8 bytes, 4 with prefix 67 */
	BAD = 128
};

/* clang-format off */
static const uint8_t one_byte[256] = {
	/* 00 */ M, M, M, M, I1, IZ, BAD, BAD, M, M, M, M, I1, IZ, BAD, 0,
	/* 10 */ M, M, M, M, I1, IZ, BAD, BAD, M, M, M, M, I1, IZ, BAD, BAD,
	/* 20 */ M, M, M, M, I1, IZ, 0, BAD, M, M, M, M, I1, IZ, 0, BAD,
	/* 30 */ M, M, M, M, I1, IZ, 0, BAD, M, M, M, M, I1, IZ, 0, BAD,
	/* 40 */ 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,
	/* 50 */ 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,
	/* 60 */ BAD, BAD, BAD, M, 0, 0, 0, 0, R4, M | IZ, I1, M | I1, 0, 0, 0, 0,
	/* 70 */ I1, I1, I1, I1, I1, I1, I1, I1, I1, I1, I1, I1, I1, I1, I1, I1,
	/* 80 */ M | I1, M | IZ, BAD, M | I1, M, M, M, M, M, M, M, M, M, M, M, M,
	/* 90 */ 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, BAD, 0, 0, 0, 0, 0,
	/* a0 */ OFFS, OFFS, OFFS, OFFS, 0, 0, 0, 0, I1, IZ, 0, 0, 0, 0, 0, 0,
	/* b0 */ I1, I1, I1, I1, I1, I1, I1, I1, IV, IV, IV, IV, IV, IV, IV, IV,
	/* c0 */ M | I1, M | I1, I2, 0, BAD, BAD, M | I1, M | IZ, I2 | I1, 0, I2, 0, 0, I1, BAD, 0,
	/* d0 */ M, M, M, M, BAD, BAD, BAD, 0, M, M, M, M, M, M, M, M,
	/* e0 */ I1, I1, I1, I1, I1, I1, I1, I1, R4, R4, BAD, I1, 0, 0, 0, 0,
	/* f0 */ 0, 0, 0, 0, 0, 0, M, M, 0, 0, 0, 0, 0, 0, M, M,
};
/* clang-format on */

/* 0F: ModRM follows all but these. */
static uint8_t two_byte(uint8_t op)
{
	if ((op & 0xf0) == 0x80)
		return R4;
	if ((op >= 0x30 && op <= 0x37) || (op >= 0xc8 && op <= 0xcf))
		return 0;
	switch (op) {
	case 0x04:
	case 0x0a:
	case 0x0c:
	case 0x24:
	case 0x25:
	case 0x26:
	case 0x27:
		return BAD;
	case 0x05:
	case 0x06:
	case 0x07:
	case 0x08:
	case 0x09:
	case 0x0b:
	case 0x0e:
	case 0x77:
	case 0xa0:
	case 0xa1:
	case 0xa2:
	case 0xa8:
	case 0xa9:
	case 0xaa:
		return 0;
	case 0x0f:
	case 0x70:
	case 0x71:
	case 0x72:
	case 0x73:
	case 0xa4:
	case 0xac:
	case 0xba:
	case 0xc2:
	case 0xc4:
	case 0xc5:
	case 0xc6:
		return M | I1;
	default:
		return M;
	}
}

static uint8_t map_follows(unsigned map, uint8_t op)
{
	switch (map) {
	case 1:
		return two_byte(op);
	case 2:
		return M;
	case 3:
		return M | I1;
	default:
		return map == 5 || map == 6 ? M : BAD; /* AVX512-FP16 */
	}
}

struct prefixes {
	bool operand16, address32;
};

/* Prefixes, REX, escapes; leaves the opcode in `x`. Returns what follows it. */
static uint8_t opcode_read(struct cursor *c, struct prefixes *p, struct x86insn *x)
{
	uint8_t b = cursor_u8(c);

	for (;; b = cursor_u8(c)) {
		if (b == 0x66)
			p->operand16 = true;
		else if (b == 0x67)
			p->address32 = true;
		else if (b != 0xf0 && b != 0xf2 && b != 0xf3 && b != 0x2e && b != 0x36 &&
			 b != 0x3e && b != 0x26 && b != 0x64 && b != 0x65)
			break;
		if (c->bad || c->pos >= X86INSN_MAX)
			return BAD;
	}
	if ((b & 0xf0) == 0x40) {
		x->rex = b & 0xf;
		b = cursor_u8(c);
	}
	if (b == 0xc5 || b == 0xc4 || b == 0x62) {
		uint8_t p0 = cursor_u8(c);

		x->rex = (uint8_t)((~p0 & 0x80) >> 5); /* R, inverted */
		x->map = 1;
		if (b != 0xc5) {
			x->rex |= (uint8_t)((~p0 & 0x60) >> 5);
			x->map = p0 & (b == 0x62 ? 7 : 0x1f);
			cursor_u8(c);
		}
		if (b == 0x62)
			cursor_u8(c);
		x->opcode = cursor_u8(c);
		if (x->map == 1 && (x->opcode & 0xf0) == 0x80)
			return M; /* mask registers: no jumps there */
		return b == 0x62 && x->map == 1 && x->opcode == 0x77 ?
			       M :
			       map_follows(x->map, x->opcode);
	}
	if (b != 0x0f) {
		x->opcode = b;
		return one_byte[b];
	}
	x->map = 1;
	b = cursor_u8(c);
	if (b == 0x38 || b == 0x3a) {
		x->map = b == 0x38 ? 2 : 3;
		b = cursor_u8(c);
	}
	x->opcode = b;
	return map_follows(x->map, b);
}

static void modrm_read(struct cursor *c, struct x86insn *x)
{
	uint8_t b = cursor_u8(c), base;

	x->has_modrm = true;
	x->mod = b >> 6;
	x->reg = (uint8_t)((b >> 3 & 7) | (x->rex & 4) << 1);
	base = b & 7;
	x->rm = (uint8_t)(base | (x->rex & 1) << 3);
	if (x->mod == 3)
		return;
	if (base == 4) {
		b = cursor_u8(c);
		base = b & 7;
		x->sib_base = (uint8_t)(base | (x->rex & 1) << 3);
		x->sib_index = (uint8_t)((b >> 3 & 7) | (x->rex & 2) << 2);
	}
	if (x->mod == 1)
		x->disp = (int8_t)cursor_u8(c);
	else if (x->mod == 2 || base == 5)
		x->disp = (int32_t)cursor_u32(c);
}

static void immediate_read(struct cursor *c, uint8_t follows, const struct prefixes *p,
			   struct x86insn *x)
{
	const bool wide = x->rex & 8;

	if (follows & I2)
		x->imm = cursor_u16(c);
	if (follows & I1)
		x->imm = (int8_t)cursor_u8(c);
	if (follows & R4)
		x->imm = (int32_t)cursor_u32(c);
	if (follows & OFFS)
		x->imm = p->address32 ? cursor_u32(c) : (int64_t)cursor_u64(c);
	if ((follows & IV) && wide)
		x->imm = (int64_t)cursor_u64(c);
	else if ((follows & (IZ | IV)) && p->operand16 && !wide)
		x->imm = (int16_t)cursor_u16(c);
	else if (follows & (IZ | IV))
		x->imm = (int32_t)cursor_u32(c);
}

bool x86insn_read(const uint8_t *code, size_t len, struct x86insn *out)
{
	struct cursor c = cursor_init(code, len < X86INSN_MAX ? len : X86INSN_MAX);
	struct x86insn x = {.sib_base = 0xff, .sib_index = 4};
	struct prefixes p = {false, false};
	uint8_t follows = opcode_read(&c, &p, &x);

	if (c.bad || (follows & BAD))
		return false;
	if (follows & M)
		modrm_read(&c, &x);
	if (!x.map && (x.opcode == 0xf6 || x.opcode == 0xf7) && (x.reg & 7) < 2)
		follows |= x.opcode == 0xf6 ? I1 : IZ; /* test */
	immediate_read(&c, follows, &p, &x);
	if (c.bad)
		return false;
	x.len = (uint8_t)c.pos;
	*out = x;
	return true;
}
