/* SPDX-License-Identifier: Apache-2.0 */
#include "loaders/index/unwind/cfiexpr.h"

#include <string.h>

#include "loaders/index/unwind/leb.h"
#include "schema/base/cursor.h"

#define DEPTH 8

enum {
	OP_DEREF = 0x06,
	OP_CONST1U = 0x08,
	OP_CONST1S = 0x09,
	OP_CONST2U = 0x0a,
	OP_CONST2S = 0x0b,
	OP_CONST4U = 0x0c,
	OP_CONST4S = 0x0d,
	OP_CONST8U = 0x0e,
	OP_CONST8S = 0x0f,
	OP_CONSTU = 0x10,
	OP_CONSTS = 0x11,
	OP_MINUS = 0x1c,
	OP_MUL = 0x1e,
	OP_PLUS = 0x22,
	OP_PLUS_UCONST = 0x23,
	OP_SHL = 0x24,
	OP_LIT0 = 0x30,
	OP_BREG0 = 0x70,
	OP_BREGX = 0x92,
	OP_NOP = 0x96,
	OP_CALL_FRAME_CFA = 0x9c
};

struct machine {
	struct cfiexpr stack[DEPTH];
	size_t depth;
	bool stuck;
};

static void push(struct machine *m, struct cfiexpr v)
{
	if (m->depth == DEPTH)
		m->stuck = true;
	else
		m->stack[m->depth++] = v;
}

static struct cfiexpr pop(struct machine *m)
{
	if (!m->depth) {
		m->stuck = true;
		return (struct cfiexpr){0};
	}
	return m->stack[--m->depth];
}

static void push_sum(struct machine *m, int reg, int64_t k)
{
	push(m, (struct cfiexpr){.sum = {.k = k, .reg = reg, .reg8 = CFIEXPR_NO_REG}});
}

static void push_number(struct machine *m, uint64_t k)
{
	push_sum(m, CFIEXPR_NO_REG, (int64_t)k);
}

static bool is_number(const struct cfiexpr *v)
{
	return !v->deref && v->sum.reg == CFIEXPR_NO_REG && v->sum.reg8 == CFIEXPR_NO_REG;
}

/* Wraps as the machine's own addition does. */
static int64_t add(int64_t a, int64_t b)
{
	return (int64_t)((uint64_t)a + (uint64_t)b);
}

static struct cfiexpr shifted(struct cfiexpr v, int64_t k)
{
	if (v.deref)
		v.plus = add(v.plus, k);
	else
		v.sum.k = add(v.sum.k, k);
	return v;
}

static void op_plus(struct machine *m)
{
	struct cfiexpr b = pop(m), a = pop(m);

	if (is_number(&b)) {
		push(m, shifted(a, b.sum.k));
		return;
	}
	if (is_number(&a)) {
		push(m, shifted(b, a.sum.k));
		return;
	}
	if (a.deref || b.deref || (a.sum.reg >= 0 && b.sum.reg >= 0) ||
	    (a.sum.reg8 >= 0 && b.sum.reg8 >= 0)) {
		m->stuck = true;
		return;
	}
	push(m, (struct cfiexpr){.sum = {.k = add(a.sum.k, b.sum.k),
					 .reg = a.sum.reg >= 0 ? a.sum.reg : b.sum.reg,
					 .reg8 = a.sum.reg8 >= 0 ? a.sum.reg8 : b.sum.reg8}});
}

static void op_minus(struct machine *m)
{
	struct cfiexpr b = pop(m), a = pop(m);

	if (!is_number(&b))
		m->stuck = true;
	else
		push(m, shifted(a, (int64_t)(0 - (uint64_t)b.sum.k)));
}

/* Only what makes eight times one register. */
static void times(struct machine *m, const struct cfiexpr *v, int64_t factor)
{
	if (factor != 8 || v->deref || v->sum.reg < 0 || v->sum.reg8 >= 0) {
		m->stuck = true;
		return;
	}
	push(m, (struct cfiexpr){.sum = {.k = (int64_t)((uint64_t)v->sum.k * 8),
					 .reg = CFIEXPR_NO_REG,
					 .reg8 = v->sum.reg}});
}

static void op_mul(struct machine *m)
{
	struct cfiexpr b = pop(m), a = pop(m);

	if (is_number(&b))
		times(m, &a, b.sum.k);
	else if (is_number(&a))
		times(m, &b, a.sum.k);
	else
		m->stuck = true;
}

static void op_shl(struct machine *m)
{
	struct cfiexpr b = pop(m), a = pop(m);

	if (is_number(&b) && b.sum.k == 3)
		times(m, &a, 8);
	else
		m->stuck = true;
}

static void op_deref(struct machine *m)
{
	struct cfiexpr v = pop(m);

	if (v.deref || v.sum.reg < 0) {
		m->stuck = true;
		return;
	}
	v.deref = true;
	push(m, v);
}

static bool number_read(struct cursor *c, uint8_t op, uint64_t *v)
{
	switch (op) {
	case OP_CONST1U:
		*v = cursor_u8(c);
		return true;
	case OP_CONST1S:
		*v = (uint64_t)(int8_t)cursor_u8(c);
		return true;
	case OP_CONST2U:
		*v = cursor_u16(c);
		return true;
	case OP_CONST2S:
		*v = (uint64_t)(int16_t)cursor_u16(c);
		return true;
	case OP_CONST4U:
		*v = cursor_u32(c);
		return true;
	case OP_CONST4S:
		*v = (uint64_t)(int32_t)cursor_u32(c);
		return true;
	case OP_CONST8U:
	case OP_CONST8S:
		*v = cursor_u64(c);
		return true;
	case OP_CONSTU:
		*v = leb_unsigned(c);
		return true;
	case OP_CONSTS:
		*v = (uint64_t)leb_signed(c);
		return true;
	default:
		*v = (uint64_t)op - OP_LIT0;
		return op >= OP_LIT0 && op < OP_LIT0 + 32;
	}
}

static void step(struct machine *m, struct cursor *c, uint8_t op)
{
	uint64_t n;

	if (op >= OP_BREG0 && op < OP_BREG0 + 16) {
		push_sum(m, op - OP_BREG0, leb_signed(c));
		return;
	}
	if (number_read(c, op, &n)) {
		push_number(m, n);
		return;
	}
	switch (op) {
	case OP_BREGX:
		n = leb_unsigned(c);
		if (n < 16)
			push_sum(m, (int)n, leb_signed(c));
		else
			m->stuck = true;
		break;
	case OP_PLUS_UCONST:
		push_number(m, leb_unsigned(c));
		op_plus(m);
		break;
	case OP_CALL_FRAME_CFA:
		push_sum(m, CFIEXPR_CFA, 0);
		break;
	case OP_PLUS:
		op_plus(m);
		break;
	case OP_MINUS:
		op_minus(m);
		break;
	case OP_MUL:
		op_mul(m);
		break;
	case OP_SHL:
		op_shl(m);
		break;
	case OP_DEREF:
		op_deref(m);
		break;
	case OP_NOP:
		break;
	default:
		m->stuck = true;
	}
}

bool cfiexpr_solve(const uint8_t *data, size_t len, bool with_cfa, struct cfiexpr *out)
{
	struct cursor c = cursor_init(data, len);
	struct machine m = {0};

	if (len > CFIEXPR_LEN_MAX)
		return false;
	if (with_cfa)
		push_sum(&m, CFIEXPR_CFA, 0);
	while (!m.stuck && cursor_left(&c))
		step(&m, &c, cursor_u8(&c));
	if (m.stuck || c.bad || !m.depth)
		return false;
	*out = m.stack[m.depth - 1];
	return true;
}

bool cfiexpr_is_plt(const uint8_t *data, size_t len, unsigned *threshold)
{
	/* breg7 8, breg16 0, lit15, and, lit N, ge, lit3, shl, plus */
	static const uint8_t form[] = {0x77, 8, 0x80, 0, 0x3f, 0x1a, 0x30, 0x2a, 0x33, 0x24, 0x22};
	uint8_t copy[sizeof(form)];

	if (len != sizeof(form))
		return false;
	memcpy(copy, data, len);
	if (copy[6] < 0x30 || copy[6] > 0x3f)
		return false;
	*threshold = copy[6] - 0x30u;
	copy[6] = 0x30;
	return !memcmp(copy, form, sizeof(form));
}
