/* SPDX-License-Identifier: Apache-2.0 */
#include "loaders/index/unwind/rowprint.h"

#include <inttypes.h>

#include "loaders/index/unwind/rowtable.h"
#include "schema/base/array.h"

static const char *reg_name(unsigned reg)
{
	static const char *const names[] = {"rax", "rdx", "rcx", "rbx", "rsi", "rdi",
					    "rbp", "rsp", "r8",  "r9",  "r10", "r11",
					    "r12", "r13", "r14", "r15", "rip"};

	return reg < ARRAY_SIZE(names) ? names[reg] : "r?";
}

static const char *reason_name(unsigned why)
{
	switch (why) {
	case ROW_UNSUPPORTED_CFA_EXPRESSION:
		return "cfa-expression";
	case ROW_UNSUPPORTED_CFA_REGISTER:
		return "cfa-register";
	case ROW_UNSUPPORTED_RA:
		return "return-address";
	case ROW_UNSUPPORTED_RANGE:
		return "range";
	case ROW_UNSUPPORTED_BROKEN:
		return "broken";
	default:
		return "unknown";
	}
}

static void print_special(FILE *to, __u64 rule)
{
	const unsigned arg = ROW_RULE_ARG(rule);

	switch (ROW_RULE_SPECIAL(rule)) {
	case ROW_NONE:
		fputs("none", to);
		break;
	case ROW_ROOT:
		fputs("root", to);
		break;
	case ROW_SIGNAL:
		fputs("signal", to);
		break;
	case ROW_PLT:
		fprintf(to, "plt:%u", arg);
		break;
	case ROW_FP:
		fputs("fp", to);
		break;
	case ROW_UNSUPPORTED:
		fprintf(to, "unsupported:%s", reason_name(arg));
		break;
	default:
		fprintf(to, "unknown:%#" PRIx64, (uint64_t)rule);
	}
}

static void print_plain(FILE *to, __u64 rule)
{
	fprintf(to, "%s+%u ", ROW_RULE_KIND(rule) == ROW_RSP ? "rsp" : "rbp",
		8 * ROW_RULE_OFFSET(rule));
	switch (ROW_RULE_BP(rule)) {
	case ROW_BP_SAME:
		fputs("same", to);
		break;
	case ROW_BP_SAVED:
		fprintf(to, "c-%u", 8 * ROW_RULE_SAVED(rule));
		break;
	default:
		fputs("lost", to);
	}
	fputs(" c-8", to);
}

static void print_ext_bp(FILE *to, const struct row_ext *x)
{
	switch (x->bp) {
	case ROW_EXT_BP_SAME:
		fputs(" same", to);
		break;
	case ROW_EXT_BP_CFA:
		fprintf(to, " c%+d", x->bp_offset);
		break;
	case ROW_EXT_BP_RBP:
		fprintf(to, " [rbp%+d]", x->bp_offset);
		break;
	case ROW_EXT_BP_RSP:
		fprintf(to, " [rsp%+d]", x->bp_offset);
		break;
	default:
		fputs(" lost", to);
	}
}

static void print_ext(FILE *to, const struct row_ext *x)
{
	switch (x->kind) {
	case ROW_EXT_CFA:
	case ROW_EXT_SWITCH:
	case ROW_EXT_INJECTED:
	case ROW_EXT_RA_REG:
		fprintf(to, "%s%+d", reg_name(x->reg), x->a);
		break;
	case ROW_EXT_DEREF:
		fprintf(to, "*(%s%+d)%+d", reg_name(x->reg), x->a, x->b);
		break;
	case ROW_EXT_INDEX:
		fprintf(to, "*(%s+8*%s%+d)%+d", reg_name(x->reg), reg_name(x->reg2), x->a, x->b);
		break;
	case ROW_EXT_GO_DEPTH:
		fprintf(to, "*(*(%s%+d)+8)-*(%s%+d)%+d", reg_name(x->reg), x->a, reg_name(x->reg),
			x->b, 8 * x->reg2);
		break;
	case ROW_EXT_GO_STACK:
	case ROW_EXT_GO_SCHED:
		fprintf(to, "go-%s g=fs%+d curg%+d bp%+d",
			x->kind == ROW_EXT_GO_STACK ? "stack" : "sched", x->a, x->b, x->bp_offset);
		return;
	default:
		fputs("unknown", to);
		return;
	}
	print_ext_bp(to, x);
	fprintf(to, " %s", x->kind == ROW_EXT_RA_REG ? reg_name(x->reg2) : "c-8");
	fputs(x->kind == ROW_EXT_SWITCH || x->kind == ROW_EXT_GO_DEPTH ? " (other stack)" :
	      x->kind == ROW_EXT_INJECTED                              ? " (interrupted)" :
									 "",
	      to);
}

static void print_bx(FILE *to, __u64 rule)
{
	if (ROW_RULE_BX(rule) == ROW_BX_SAVED)
		fprintf(to, " rbx=c-%u", 8 * ROW_RULE_BX_SAVED(rule));
	else if (ROW_RULE_BX(rule) != ROW_BX_SAME)
		fputs(" rbx=lost", to);
}

void rowprint_rule(FILE *to, __u64 rule, const struct row_ext *exts, size_t count)
{
	switch (ROW_RULE_KIND(rule)) {
	case ROW_SPECIAL:
		print_special(to, rule);
		return;
	case ROW_EXT:
		if (ROW_RULE_EXT(rule) >= count) {
			fputs("unknown", to);
			return;
		}
		print_ext(to, &exts[ROW_RULE_EXT(rule)]);
		break;
	default:
		print_plain(to, rule);
	}
	print_bx(to, rule);
}

bool rowprint_table(FILE *to, const void *data, size_t size)
{
	struct rowtable t;
	const struct unwind_head *h;

	if (rowtable_init(&t, data, size))
		return false;
	h = t.head;
	fprintf(to,
		"# text-base %#" PRIx64
		" pages %u rules %u extensions %u rows %u unsupported %u%s%s\n",
		(uint64_t)h->text_base, h->page_count, h->rule_count, h->ext_count, h->row_count,
		h->unsupported, h->flags & UNWIND_F_GO ? " go" : "",
		h->flags & UNWIND_F_DEBUG_FRAME ? " debug-frame" : "");
	for (size_t i = 0; i < t.count; i++) {
		fprintf(to, "%016" PRIx64 " ", t.rows[i].addr);
		rowprint_rule(to, t.rows[i].rule, t.exts, h->ext_count);
		fputc('\n', to);
	}
	rowtable_release(&t);
	return true;
}
