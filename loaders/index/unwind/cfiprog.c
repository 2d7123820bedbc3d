/* SPDX-License-Identifier: Apache-2.0 */
#include "loaders/index/unwind/cfiprog.h"

#include "loaders/index/unwind/leb.h"
#include "schema/base/cursor.h"

/* The upper two bits, with an operand in the lower six. */
enum { CFA_ADVANCE = 1, CFA_OFFSET = 2, CFA_RESTORE = 3 };

enum {
	CFA_NOP = 0x00,
	CFA_SET_LOC = 0x01,
	CFA_ADVANCE1 = 0x02,
	CFA_ADVANCE2 = 0x03,
	CFA_ADVANCE4 = 0x04,
	CFA_OFFSET_EXTENDED = 0x05,
	CFA_RESTORE_EXTENDED = 0x06,
	CFA_UNDEFINED = 0x07,
	CFA_SAME_VALUE = 0x08,
	CFA_REGISTER = 0x09,
	CFA_REMEMBER = 0x0a,
	CFA_RESTORE_STATE = 0x0b,
	CFA_DEF_CFA = 0x0c,
	CFA_DEF_CFA_REGISTER = 0x0d,
	CFA_DEF_CFA_OFFSET = 0x0e,
	CFA_DEF_CFA_EXPRESSION = 0x0f,
	CFA_EXPRESSION = 0x10,
	CFA_OFFSET_EXTENDED_SF = 0x11,
	CFA_DEF_CFA_SF = 0x12,
	CFA_DEF_CFA_OFFSET_SF = 0x13,
	CFA_VAL_OFFSET = 0x14,
	CFA_VAL_OFFSET_SF = 0x15,
	CFA_VAL_EXPRESSION = 0x16,
	CFA_ADVANCE8 = 0x1d,
	CFA_GNU_WINDOW_SAVE = 0x2d,
	CFA_GNU_ARGS_SIZE = 0x2e,
	CFA_GNU_NEGATIVE_OFFSET = 0x2f
};

#define REG_RA 16

struct run {
	const struct cfi_program *p;
	struct cursor c;
	struct cfi_state state;
	struct cfi_state *remembered; /* CFI_REMEMBER_MAX */
	size_t depth;
	uint64_t loc;
	bool changed; /* since the last row */
	bool broken;
};

/* NULL: a register that does not matter. */
static struct cfi_value *value_of(struct cfi_state *s, uint64_t reg)
{
	switch (reg) {
	case ROW_REG_RBP:
		return &s->rbp;
	case ROW_REG_RBX:
		return &s->rbx;
	case ROW_REG_RSP:
		return &s->rsp;
	case REG_RA:
		return &s->ra;
	default:
		return NULL;
	}
}

static void set(struct run *x, uint64_t reg, enum cfi_how how, int64_t n)
{
	struct cfi_value *v = value_of(&x->state, reg);

	if (!v)
		return;
	*v = (struct cfi_value){.how = how, .n = n};
	x->changed = true;
}

static void restore(struct run *x, uint64_t reg)
{
	struct cfi_value *v = value_of(&x->state, reg);
	struct cfi_state initial = x->p->cie->initial;

	if (!v)
		return;
	*v = *value_of(&initial, reg);
	x->changed = true;
}

static void row_emit(struct run *x)
{
	if (x->changed && x->p->rows)
		rows_add(x->p->rows, x->loc, cfi_rule(&x->state, x->p->rows));
	x->changed = false;
}

static void advance(struct run *x, uint64_t delta)
{
	uint64_t by = delta * x->p->cie->code_align;

	if (!by)
		return;
	row_emit(x);
	if (x->loc + by < x->loc)
		x->broken = true;
	else
		x->loc += by;
}

static void set_loc(struct run *x)
{
	const struct cfi_section *s = x->p->section;
	uint64_t at = s->vaddr + (uint64_t)(x->p->data - s->data) + x->c.pos, to;

	if (!cfi_pointer(&x->c, x->p->cie->encoding, at, s->text, s->got, &to) || to < x->loc) {
		x->broken = true;
		return;
	}
	if (to > x->loc)
		row_emit(x);
	x->loc = to;
}

static int64_t scaled(const struct run *x, uint64_t n)
{
	return (int64_t)(n * (uint64_t)x->p->cie->data_align);
}

static void offset_set(struct run *x, uint64_t reg, enum cfi_how how, uint64_t n)
{
	set(x, reg, how, scaled(x, n));
}

static void cfa_set(struct run *x, uint64_t reg, int64_t offset)
{
	x->state.cfa_expr = NULL;
	x->state.cfa_expr_len = 0;
	x->state.cfa_reg = reg;
	x->state.cfa_offset = offset;
	x->changed = true;
}

static void cfa_offset_set(struct run *x, int64_t offset)
{
	x->state.cfa_offset = offset;
	x->changed = true;
}

/* A block: its length, then its bytes. */
static const uint8_t *block(struct run *x, size_t *len)
{
	uint64_t n = leb_unsigned(&x->c);

	if (n > cursor_left(&x->c)) {
		x->broken = true;
		return NULL;
	}
	*len = (size_t)n;
	return cursor_bytes(&x->c, *len);
}

static void cfa_expression(struct run *x)
{
	size_t len = 0;
	const uint8_t *expr = block(x, &len);

	if (!expr)
		return;
	x->state.cfa_expr = expr;
	x->state.cfa_expr_len = len;
	x->changed = true;
}

static void reg_expression(struct run *x, enum cfi_how how)
{
	struct cfi_value *v = value_of(&x->state, leb_unsigned(&x->c));
	size_t len = 0;
	const uint8_t *expr = block(x, &len);

	if (!expr || !v)
		return;
	*v = (struct cfi_value){.how = how, .expr = expr, .expr_len = len};
	x->changed = true;
}

static void remember(struct run *x)
{
	if (x->depth == CFI_REMEMBER_MAX)
		x->broken = true;
	else
		x->remembered[x->depth++] = x->state;
}

static void restore_state(struct run *x)
{
	if (!x->depth) {
		x->broken = true;
		return;
	}
	x->state = x->remembered[--x->depth];
	x->changed = true;
}

static void step_register(struct run *x, uint8_t op)
{
	uint64_t reg = leb_unsigned(&x->c);

	switch (op) {
	case CFA_OFFSET_EXTENDED:
		offset_set(x, reg, CFI_OFFSET, leb_unsigned(&x->c));
		break;
	case CFA_OFFSET_EXTENDED_SF:
		offset_set(x, reg, CFI_OFFSET, (uint64_t)leb_signed(&x->c));
		break;
	case CFA_GNU_NEGATIVE_OFFSET:
		offset_set(x, reg, CFI_OFFSET, 0 - leb_unsigned(&x->c));
		break;
	case CFA_VAL_OFFSET:
		offset_set(x, reg, CFI_VAL_OFFSET, leb_unsigned(&x->c));
		break;
	case CFA_VAL_OFFSET_SF:
		offset_set(x, reg, CFI_VAL_OFFSET, (uint64_t)leb_signed(&x->c));
		break;
	case CFA_RESTORE_EXTENDED:
		restore(x, reg);
		break;
	case CFA_UNDEFINED:
		set(x, reg, CFI_UNDEFINED, 0);
		break;
	case CFA_SAME_VALUE:
		set(x, reg, CFI_SAME, 0);
		break;
	case CFA_REGISTER:
		set(x, reg, CFI_REGISTER, (int64_t)leb_unsigned(&x->c));
		break;
	case CFA_DEF_CFA:
		cfa_set(x, reg, (int64_t)leb_unsigned(&x->c));
		break;
	case CFA_DEF_CFA_SF:
		cfa_set(x, reg, scaled(x, (uint64_t)leb_signed(&x->c)));
		break;
	case CFA_DEF_CFA_REGISTER:
		cfa_set(x, reg, x->state.cfa_offset);
		break;
	default:
		x->broken = true;
	}
}

static void step(struct run *x, uint8_t op)
{
	switch (op >> 6) {
	case CFA_ADVANCE:
		advance(x, op & 0x3f);
		return;
	case CFA_OFFSET:
		offset_set(x, op & 0x3f, CFI_OFFSET, leb_unsigned(&x->c));
		return;
	case CFA_RESTORE:
		restore(x, op & 0x3f);
		return;
	default:
		break;
	}
	switch (op) {
	case CFA_NOP:
	case CFA_GNU_WINDOW_SAVE:
		break;
	case CFA_SET_LOC:
		set_loc(x);
		break;
	case CFA_ADVANCE1:
		advance(x, cursor_u8(&x->c));
		break;
	case CFA_ADVANCE2:
		advance(x, cursor_u16(&x->c));
		break;
	case CFA_ADVANCE4:
		advance(x, cursor_u32(&x->c));
		break;
	case CFA_ADVANCE8:
		advance(x, cursor_u64(&x->c));
		break;
	case CFA_REMEMBER:
		remember(x);
		break;
	case CFA_RESTORE_STATE:
		restore_state(x);
		break;
	case CFA_DEF_CFA_OFFSET:
		cfa_offset_set(x, (int64_t)leb_unsigned(&x->c));
		break;
	case CFA_DEF_CFA_OFFSET_SF:
		cfa_offset_set(x, scaled(x, (uint64_t)leb_signed(&x->c)));
		break;
	case CFA_DEF_CFA_EXPRESSION:
		cfa_expression(x);
		break;
	case CFA_EXPRESSION:
		reg_expression(x, CFI_EXPRESSION);
		break;
	case CFA_VAL_EXPRESSION:
		reg_expression(x, CFI_VAL_EXPRESSION);
		break;
	case CFA_GNU_ARGS_SIZE:
		leb_unsigned(&x->c);
		break;
	default:
		step_register(x, op);
	}
}

bool cfiprog_run(const struct cfi_program *p, struct cfi_state *state)
{
	struct cfi_state
		remembered[CFI_REMEMBER_MAX]; /* not cleared: it costs more than most programs */
	struct run x = {
		.p = p, .loc = p->loc, .state = *state, .remembered = remembered, .changed = true};

	x.c = cursor_init(p->data, p->len);
	while (cursor_left(&x.c)) {
		if (!*p->steps)
			x.broken = true;
		else
			--*p->steps;
		if (!x.broken)
			step(&x, cursor_u8(&x.c));
		if (x.broken || x.c.bad)
			break;
	}
	if (x.broken || x.c.bad) {
		if (p->rows)
			rows_add(p->rows, x.loc,
				 ROW_MAKE_SPECIAL(ROW_UNSUPPORTED, ROW_UNSUPPORTED_BROKEN));
		return false;
	}
	row_emit(&x);
	*state = x.state;
	return true;
}
