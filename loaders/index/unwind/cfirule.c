/* SPDX-License-Identifier: Apache-2.0 */
/* Numbers in comments are the header's conditions. */
#include "loaders/index/unwind/cfirule.h"

#include "loaders/index/unwind/cfiexpr.h"

#define RA_PLACE (-8) /* from the CFA */
/* struct ucontext: uc_mcontext at 40, its 15th word is RSP (Linux, x86-64) */
#define CONTEXT_RSP 160

/* Where the caller's RBP (or RBX) is, as an extension says it. */
struct saved_register {
	enum row_ext_bp how;
	int64_t n;
};

static uint32_t unsupported(enum row_unsupported why)
{
	return ROW_MAKE_SPECIAL(ROW_UNSUPPORTED, why);
}

static bool fits(int64_t v)
{
	return v == (int32_t)v;
}

/* ---- RBP and RBX (3) ---- */

/* `stack_known`: the CFA is RSP + depth. */
static struct saved_register saved_place(int64_t n, bool stack_known, int64_t depth)
{
	if (stack_known && (n >= 0 || n < -depth))
		return (struct saved_register){ROW_EXT_BP_SAME, 0};
	return fits(n) ? (struct saved_register){ROW_EXT_BP_CFA, n} :
			 (struct saved_register){ROW_EXT_BP_LOST, 0};
}

static struct saved_register expression_place(const struct cfi_value *v)
{
	const struct saved_register lost = {ROW_EXT_BP_LOST, 0};
	struct cfiexpr x;

	if (!cfiexpr_solve(v->expr, v->expr_len, true, &x) || x.deref || x.sum.reg8 >= 0 ||
	    !fits(x.sum.k))
		return lost;
	switch (x.sum.reg) {
	case ROW_REG_RBP:
		return (struct saved_register){ROW_EXT_BP_RBP, x.sum.k};
	case ROW_REG_RSP:
		return (struct saved_register){ROW_EXT_BP_RSP, x.sum.k};
	case CFIEXPR_CFA:
		return (struct saved_register){ROW_EXT_BP_CFA, x.sum.k};
	default:
		return lost;
	}
}

static struct saved_register saved_register_of(const struct cfi_value *v, uint64_t reg,
					       bool stack_known, int64_t depth)
{
	switch (v->how) {
	case CFI_UNSET:
	case CFI_SAME:
		return (struct saved_register){ROW_EXT_BP_SAME, 0};
	case CFI_OFFSET:
		return saved_place(v->n, stack_known, depth);
	case CFI_EXPRESSION:
		return expression_place(v);
	case CFI_REGISTER:
		return (struct saved_register){
			(uint64_t)v->n == reg ? ROW_EXT_BP_SAME : ROW_EXT_BP_LOST, 0};
	default:
		return (struct saved_register){ROW_EXT_BP_LOST, 0};
	}
}

/* What a rule says of RBX. */
static uint64_t bx_bits(const struct cfi_value *v, bool stack_known, int64_t depth)
{
	const struct saved_register p = saved_register_of(v, ROW_REG_RBX, stack_known, depth);

	if (p.how == ROW_EXT_BP_SAME)
		return ROW_MAKE_BX(ROW_BX_SAME, 0);
	if (p.how != ROW_EXT_BP_CFA || p.n > 0 || p.n % 8 || p.n < -8 * (int64_t)ROW_SAVED_MAX)
		return ROW_MAKE_BX(ROW_BX_LOST, 0);
	return ROW_MAKE_BX(ROW_BX_SAVED, -p.n / 8);
}

/* A rule of another kind than ROW_SPECIAL, with what it says of RBX. */
static uint64_t with_bx(uint32_t rule, uint64_t bits)
{
	return ROW_RULE_KIND(rule) == ROW_SPECIAL ? rule : rule | bits;
}

/* ---- CFA (2) ---- */

/* The place as a plain row's bits; false: only an extension holds it. */
static bool bp_plain(const struct saved_register *p, uint32_t *bp, uint32_t *saved)
{
	*saved = 0;
	switch (p->how) {
	case ROW_EXT_BP_SAME:
		*bp = ROW_BP_SAME;
		return true;
	case ROW_EXT_BP_LOST:
		*bp = ROW_BP_LOST;
		return true;
	case ROW_EXT_BP_CFA:
		if (p->n > 0 || p->n % 8 || p->n < -8 * (int64_t)ROW_SAVED_MAX)
			return false;
		*bp = ROW_BP_SAVED;
		*saved = (uint32_t)(-p->n / 8);
		return true;
	default:
		return false;
	}
}

static uint32_t rule_sum(uint64_t reg, int64_t offset, const struct saved_register *bp,
			 struct rows *r)
{
	uint32_t how, saved;
	bool plain = (reg == ROW_REG_RSP || reg == ROW_REG_RBP) && offset >= 0 && offset % 8 == 0 &&
		     offset <= 8 * (int64_t)ROW_OFFSET_MAX;

	if (plain && bp_plain(bp, &how, &saved))
		return ROW_MAKE_CFA(reg == ROW_REG_RSP ? ROW_RSP : ROW_RBP, how, saved,
				    (uint32_t)(offset / 8));
	if (reg >= 16)
		return unsupported(ROW_UNSUPPORTED_CFA_REGISTER);
	if (!fits(offset))
		return unsupported(ROW_UNSUPPORTED_RANGE);
	return rows_ext(r, &(struct row_ext){.kind = ROW_EXT_CFA,
					     .reg = (uint8_t)reg,
					     .bp = (uint8_t)bp->how,
					     .a = (int32_t)offset,
					     .bp_offset = (int32_t)bp->n});
}

static uint32_t rule_deref(const struct cfiexpr *x, const struct saved_register *bp, struct rows *r)
{
	struct row_ext e = {.kind = x->sum.reg8 >= 0 ? ROW_EXT_INDEX : ROW_EXT_DEREF,
			    .reg = (uint8_t)x->sum.reg,
			    .bp = (uint8_t)bp->how,
			    .reg2 = (uint8_t)(x->sum.reg8 >= 0 ? x->sum.reg8 : 0),
			    .a = (int32_t)x->sum.k,
			    .b = (int32_t)x->plus,
			    .bp_offset = (int32_t)bp->n};

	if (!fits(x->sum.k) || !fits(x->plus))
		return unsupported(ROW_UNSUPPORTED_RANGE);
	return rows_ext(r, &e);
}

static uint64_t rule_expression(const struct cfi_state *s, struct rows *r)
{
	struct cfiexpr x;
	struct saved_register bp;
	unsigned threshold;
	bool on_rsp;

	if (cfiexpr_is_plt(s->cfa_expr, s->cfa_expr_len, &threshold) &&
	    (s->rbp.how == CFI_UNSET || s->rbp.how == CFI_SAME))
		return ROW_MAKE_SPECIAL(ROW_PLT, threshold);
	if (!cfiexpr_solve(s->cfa_expr, s->cfa_expr_len, false, &x) || x.sum.reg < 0 ||
	    x.sum.reg >= 16 || (!x.deref && x.sum.reg8 >= 0))
		return unsupported(ROW_UNSUPPORTED_CFA_EXPRESSION);
	on_rsp = !x.deref && x.sum.reg == ROW_REG_RSP;
	bp = saved_register_of(&s->rbp, ROW_REG_RBP, on_rsp, x.sum.k);
	return with_bx(x.deref ? rule_deref(&x, &bp, r) :
				 rule_sum((uint64_t)x.sum.reg, x.sum.k, &bp, r),
		       bx_bits(&s->rbx, on_rsp, x.sum.k));
}

/* ---- return address (1) ---- */

static uint64_t rule_ra_register(const struct cfi_state *s, struct rows *r)
{
	const bool on_rsp = s->cfa_reg == ROW_REG_RSP;
	struct saved_register bp = saved_register_of(&s->rbp, ROW_REG_RBP, on_rsp, s->cfa_offset);
	struct row_ext x = {.kind = ROW_EXT_RA_REG,
			    .reg = (uint8_t)s->cfa_reg,
			    .bp = (uint8_t)bp.how,
			    .reg2 = (uint8_t)s->ra.n,
			    .a = (int32_t)s->cfa_offset,
			    .bp_offset = (int32_t)bp.n};

	if (s->cfa_expr || s->ra.n < 0 || s->ra.n >= 16)
		return unsupported(ROW_UNSUPPORTED_RA);
	if (s->cfa_reg >= 16)
		return unsupported(ROW_UNSUPPORTED_CFA_REGISTER);
	if (!fits(s->cfa_offset))
		return unsupported(ROW_UNSUPPORTED_RANGE);
	return with_bx(rows_ext(r, &x), bx_bits(&s->rbx, on_rsp, s->cfa_offset));
}

uint64_t cfi_rule(const struct cfi_state *s, struct rows *r)
{
	const bool on_rsp = !s->cfa_expr && s->cfa_reg == ROW_REG_RSP;
	struct saved_register bp;

	if (s->ra.how == CFI_UNDEFINED)
		return ROW_MAKE_SPECIAL(ROW_ROOT, 0);
	if (s->rsp.how != CFI_UNSET && !(s->rsp.how == CFI_VAL_OFFSET && s->rsp.n == 0)) /* (4) */
		return unsupported(ROW_UNSUPPORTED_CFA_REGISTER);
	if (s->ra.how == CFI_REGISTER)
		return rule_ra_register(s, r);
	if (s->ra.how != CFI_OFFSET || s->ra.n != RA_PLACE)
		return unsupported(ROW_UNSUPPORTED_RA);
	if (on_rsp && s->cfa_offset < -RA_PLACE)
		return ROW_MAKE_SPECIAL(ROW_ROOT, 0);
	if (s->cfa_expr)
		return rule_expression(s, r);
	bp = saved_register_of(&s->rbp, ROW_REG_RBP, on_rsp, s->cfa_offset);
	return with_bx(rule_sum(s->cfa_reg, s->cfa_offset, &bp, r),
		       bx_bits(&s->rbx, on_rsp, s->cfa_offset));
}

bool cfi_is_signal_context(const struct cfi_state *s)
{
	struct cfiexpr x;

	return s->cfa_expr && cfiexpr_solve(s->cfa_expr, s->cfa_expr_len, false, &x) && x.deref &&
	       x.plus == 0 && x.sum.reg == ROW_REG_RSP && x.sum.reg8 < 0 && x.sum.k == CONTEXT_RSP;
}
