/* SPDX-License-Identifier: Apache-2.0 */
#include "loaders/index/go/goframe.h"

#include <string.h>

#include "loaders/index/go/gocode.h"
#include "schema/base/array.h"

#define REG_RDX 1 /* DWARF numbers */
#define REG_R12 12
#define ENC_RDX 2 /* as instructions number it */
#define ENC_RDI 7
#define BP_SLOT 16 /* CFA - 16: where functions with a frame pointer keep the caller's */

/* ---- one rule ---- */

/* Where RBP is saved once a function has got that far. */
struct saved {
	int32_t depth; /* as long as SP is at least this deep; 0: nowhere */
	int32_t slot;  /* CFA - slot */
};

static uint32_t rule_ext(struct rows *r, uint8_t kind, uint8_t reg, int32_t a,
			 const struct saved *s)
{
	return rows_ext(r, &(struct row_ext){.kind = kind,
					     .reg = reg,
					     .a = a,
					     .bp = s->depth ? ROW_EXT_BP_CFA : ROW_EXT_BP_SAME,
					     .bp_offset = s->depth ? -s->slot : 0});
}

/* The ordinary rule: CFA = RSP + depth + 8. */
static uint32_t rule_depth(struct rows *r, int32_t depth, const struct saved *saved)
{
	const struct saved none = {0}, *s = saved->depth && depth >= saved->depth ? saved : &none;
	uint32_t words = (uint32_t)depth / 8 + 1, slot = (uint32_t)s->slot / 8;

	if (depth < 0 || depth > INT32_MAX - 8)
		return ROW_MAKE_SPECIAL(ROW_UNSUPPORTED, ROW_UNSUPPORTED_RA);
	if (depth % 8 || words > ROW_OFFSET_MAX || s->slot % 8 || slot > ROW_SAVED_MAX)
		return rule_ext(r, ROW_EXT_CFA, ROW_REG_RSP, depth + 8, s);
	return ROW_MAKE_CFA(ROW_RSP, s->depth ? ROW_BP_SAVED : ROW_BP_SAME, slot, words);
}

static uint32_t rule_injected(struct rows *r, int32_t depth, const struct saved *saved)
{
	const struct saved none = {0};

	if (depth < 0 || depth > INT32_MAX - 8)
		return ROW_MAKE_SPECIAL(ROW_UNSUPPORTED, ROW_UNSUPPORTED_RA);
	return rule_ext(r, ROW_EXT_INJECTED, ROW_REG_RSP, depth + 8,
			saved->depth && depth >= saved->depth ? saved : &none);
}

/* CFA = RBP + cfa, whatever SP is. */
static uint32_t rule_frame_pointer(struct rows *r, int32_t cfa)
{
	return rule_ext(r, ROW_EXT_SWITCH, ROW_REG_RBP, cfa,
			&(struct saved){.depth = 8, .slot = BP_SLOT});
}

/* ---- ordinary functions ---- */

/* Does the step that begins at `at`, `depth` deep after `before`, save RBP? The end of the saving
 * instruction, or 0. */
static size_t save_found(const struct gocode *c, size_t at, int32_t before, int32_t depth,
			 struct saved *out)
{
	int32_t x;
	size_t n;

	if (depth < 8 || depth > INT32_MAX - 8)
		return 0;
	if (depth - 8 == before && gocode_pushed_bp(c, at)) {
		*out = (struct saved){.depth = depth, .slot = depth + 8};
		return at;
	}
	n = gocode_stores_bp(c, at, &x);
	if (!n || x < 0 || x > depth - 8)
		return 0;
	*out = (struct saved){.depth = depth, .slot = depth + 8 - x};
	return at + n;
}

/* Rows from the span's beginning to `stop` (from the function's entry), by pcsp. */
static void rows_by_depth(const struct pclntab *t, const struct goframe_func *f, struct rows *rows,
			  uint64_t stop,
			  uint32_t (*rule)(struct rows *, int32_t, const struct saved *))
{
	const struct gocode code = {f->code, f->code_len};
	struct gopc p = gopc_open(t, f->rec.pcsp, f->end - f->start);
	struct saved saved = {0};
	int32_t before = 0;

	while (gopc_next(&p) && p.start < stop) {
		const struct saved none = {0};
		struct saved s;
		size_t from = 0;

		if (!saved.depth && p.value > before)
			from = save_found(&code, (size_t)p.start, before, p.value, &s);
		rows_add(rows, f->start + p.start,
			 rule(rows, p.value,
			      from > p.start ? &none :
			      from           ? &s :
					       &saved));
		if (from > p.start && from < p.end && from < stop)
			rows_add(rows, f->start + from, rule(rows, p.value, &s));
		if (from)
			saved = s;
		before = p.value;
	}
}

/* End of what pcsp describes: behind it is padding. */
static uint64_t depth_end(const struct pclntab *t, const struct goframe_func *f)
{
	struct gopc p = gopc_open(t, f->rec.pcsp, f->end - f->start);

	while (gopc_next(&p))
		;
	return p.end;
}

/* ---- functions that pcsp does not describe ---- */

static void shape_root(const struct goframe_func *f, struct rows *rows)
{
	rows_add(rows, f->start, ROW_MAKE_SPECIAL(ROW_ROOT, 0));
}

static void shape_frame_pointer(const struct pclntab *t, const struct goframe_func *f,
				struct rows *rows)
{
	const struct gocode code = {f->code, f->code_len};
	const struct saved none = {0};
	int32_t cfa;
	size_t at = gocode_frame_pointer(&code, &cfa);
	struct gocode_exit x;

	if (at == GOCODE_NONE) {
		at = gocode_aligns_sp(&code, 0);
		if (at == GOCODE_NONE || at > gocode_loads_sp(&code, 0))
			at = gocode_loads_sp(&code, 0);
		rows_by_depth(t, f, rows, at, rule_depth);
		if (at != GOCODE_NONE)
			rows_add(rows, f->start + at,
				 ROW_MAKE_SPECIAL(ROW_UNSUPPORTED, ROW_UNSUPPORTED_CFA_REGISTER));
		return;
	}
	rows_by_depth(t, f, rows, at, rule_depth);
	rows_add(rows, f->start + at, rule_frame_pointer(rows, cfa));
	while (gocode_exit(&code, at, &x)) {
		rows_add(rows, f->start + x.bp_back, rule_depth(rows, x.depth, &none));
		rows_add(rows, f->start + x.at_ret, rule_depth(rows, 0, &none));
		rows_add(rows, f->start + x.after, rule_frame_pointer(rows, cfa));
		at = x.after;
	}
}

/* Not by Go's toolchain: RBP may be a scratch register in it. */
static void shape_unknown(const struct pclntab *t, const struct goframe_func *f, struct rows *rows)
{
	const struct gocode code = {f->code, f->code_len};
	size_t load = gocode_loads_sp(&code, 0), align = gocode_aligns_sp(&code, 0);
	size_t at = align < load ? align : load;

	rows_by_depth(t, f, rows, at == GOCODE_NONE ? 1 : at, rule_depth);
	rows_add(rows, f->start + (at == GOCODE_NONE ? 0 : at),
		 ROW_MAKE_SPECIAL(ROW_UNSUPPORTED, ROW_UNSUPPORTED_CFA_REGISTER));
}

/* Ordinary until SP is loaded, then `rule`; `back`: until it is loaded again. */
static void shape_switch(const struct pclntab *t, const struct goframe_func *f, struct rows *rows,
			 uint32_t rule, bool back)
{
	const struct gocode code = {f->code, f->code_len};
	const struct saved none = {0};
	size_t away = gocode_loads_sp(&code, 0);
	size_t home = back && away != GOCODE_NONE ? gocode_loads_sp(&code, away) : GOCODE_NONE;

	rows_by_depth(t, f, rows, away, rule_depth);
	if (away != GOCODE_NONE)
		rows_add(rows, f->start + away, rule);
	if (home != GOCODE_NONE)
		rows_add(rows, f->start + home, rule_depth(rows, 0, &none));
}

static uint32_t rule_goroutine(struct rows *r, const struct goframe_runtime *rt, uint8_t kind)
{
	if (!rt->known)
		return ROW_MAKE_SPECIAL(ROW_UNSUPPORTED, ROW_UNSUPPORTED_RA);
	return rows_ext(
		r, &(struct row_ext){
			   .kind = kind, .a = rt->tls, .b = rt->curg, .bp_offset = rt->sched_bp});
}

static void shape_systemstack(const struct pclntab *t, const struct goframe_func *f,
			      const struct goframe_runtime *rt, struct rows *rows)
{
	const struct gocode code = {f->code, f->code_len};
	int32_t cfa;

	if (gocode_frame_pointer(&code, &cfa) != GOCODE_NONE)
		shape_frame_pointer(t, f, rows);
	else
		shape_switch(t, f, rows, rule_goroutine(rows, rt, ROW_EXT_GO_STACK), true);
}

/* ---- asmcgocall ---- */

/* Its two branches, by ends of instructions. In both RDX is the caller's SP, from before the first
 * until the call. */
struct cgocall {
	size_t away, home; /* SP loaded from g0, and back */
	size_t kept;       /* {g, depth} are on the system stack */
	int32_t g, depth;
	size_t align, kept_sp; /* the other branch: SP aligned, the old one kept */
	size_t home_sp;
	int32_t sp;
};

static bool cgocall_read(const struct gocode *c, struct cgocall *out)
{
	struct cgocall k = {0};
	size_t at;

	k.away = gocode_loads_sp(c, 0);
	at = k.away == GOCODE_NONE ? k.away : gocode_stores(c, k.away, ENC_RDI, &k.g);
	k.kept = at == GOCODE_NONE ? at : gocode_stores(c, at, ENC_RDI, &k.depth);
	k.home = k.kept == GOCODE_NONE ? k.kept : gocode_loads_sp(c, k.kept);
	k.align = k.home == GOCODE_NONE ? k.home : gocode_aligns_sp(c, k.home);
	k.kept_sp = k.align == GOCODE_NONE ? k.align : gocode_stores(c, k.align, ENC_RDX, &k.sp);
	k.home_sp = k.kept_sp == GOCODE_NONE ? k.kept_sp : gocode_loads_sp(c, k.kept_sp);
	*out = k;
	return k.home_sp != GOCODE_NONE;
}

/* From `home` on SP is as after the prologue again, up to the function's ret. */
static void cgocall_return(const struct goframe_func *f, struct rows *rows, size_t home,
			   int32_t depth, const struct saved *saved)
{
	const struct gocode code = {f->code, f->code_len};
	const struct saved none = {0};
	struct gocode_exit x;

	rows_add(rows, f->start + home, rule_depth(rows, depth, saved));
	if (!depth || !gocode_exit(&code, home, &x))
		return;
	rows_add(rows, f->start + x.bp_back, rule_depth(rows, 0, &none));
	rows_add(rows, f->start + x.after, rule_depth(rows, depth, saved));
}

static void shape_cgocall(const struct pclntab *t, const struct goframe_func *f, struct rows *rows)
{
	const struct gocode code = {f->code, f->code_len};
	int32_t cfa;
	const bool framed = gocode_frame_pointer(&code, &cfa) != GOCODE_NONE;
	const int32_t depth = framed ? 8 : 0;
	const struct saved saved = {.depth = depth, .slot = framed ? BP_SLOT : 0};
	struct cgocall k;

	if (!cgocall_read(&code, &k)) {
		shape_unknown(t, f, rows);
		return;
	}
	rows_by_depth(t, f, rows, k.away, rule_depth);
	rows_add(rows, f->start + k.away,
		 rule_ext(rows, ROW_EXT_SWITCH, REG_RDX, depth + 8, &saved));
	rows_add(rows, f->start + k.kept,
		 rows_ext(rows, &(struct row_ext){.kind = ROW_EXT_GO_DEPTH,
						  .reg = ROW_REG_RSP,
						  .a = k.g,
						  .b = k.depth,
						  .reg2 = (uint8_t)(depth / 8 + 1),
						  .bp = framed ? ROW_EXT_BP_CFA : ROW_EXT_BP_SAME,
						  .bp_offset = framed ? -BP_SLOT : 0}));
	cgocall_return(f, rows, k.home, depth, &saved);
	/* sub, and: the branch's first instructions with SP already moved */
	rows_add(rows, f->start + k.align - 4,
		 rule_ext(rows, ROW_EXT_CFA, REG_RDX, depth + 8, &saved));
	rows_add(rows, f->start + k.kept_sp,
		 rows_ext(rows, &(struct row_ext){.kind = ROW_EXT_DEREF,
						  .reg = ROW_REG_RSP,
						  .a = k.sp,
						  .b = depth + 8,
						  .bp = framed ? ROW_EXT_BP_CFA : ROW_EXT_BP_SAME,
						  .bp_offset = framed ? -BP_SLOT : 0}));
	cgocall_return(f, rows, k.home_sp, depth, &saved);
}

/* ---- which is which ---- */

enum shape {
	ORDINARY,
	ROOT,
	SIGNAL,
	INJECTED,
	ENDS,
	MORESTACK,
	SYSTEMSTACK,
	CGOCALL,
	FRAME_POINTER,
	VFORK
};

static const struct {
	const char *name;
	enum shape shape;
} known[] = {
	{"runtime.goexit", ROOT},
	{"runtime.mstart", ROOT},
	{"runtime.rt0_go", ROOT},
	{"_rt0_amd64", ROOT},
	{"_rt0_amd64_linux", ROOT},
	{"runtime.sigreturn", SIGNAL},
	{"runtime.sigreturn__sigaction", SIGNAL},
	{"runtime.sigpanic", INJECTED},
	{"runtime.sigpanic0", INJECTED},
	{"runtime.asyncPreempt", INJECTED},
	{"runtime.debugCallV1", INJECTED},
	{"runtime.debugCallV2", INJECTED},
	{"gogo", ENDS},
	{"runtime.gogo", ENDS},
	{"runtime.mcall", ENDS},
	{"runtime.clone", ENDS},
	{"runtime.switchToCrashStack0", ENDS},
	{"runtime.morestack", MORESTACK},
	{"runtime.systemstack", SYSTEMSTACK},
	{"runtime.asmcgocall", CGOCALL},
	{"runtime.asmcgocall_no_g", FRAME_POINTER},
	{"runtime.nanotime1", FRAME_POINTER},
	{"runtime.walltime1", FRAME_POINTER},
	{"runtime.walltime", FRAME_POINTER},
	{"time.now", FRAME_POINTER},
	{"runtime.vgetrandom1", FRAME_POINTER},
	{"runtime.callCgoSigaction", FRAME_POINTER},
	{"runtime.callCgoMmap", FRAME_POINTER},
	{"runtime.callCgoMunmap", FRAME_POINTER},
	{"runtime.sigfwd", FRAME_POINTER},
	{"runtime.cgocallback", FRAME_POINTER},
	{"runtime.cgocallback_gofunc", FRAME_POINTER},
	{"syscall.rawVforkSyscall", VFORK},
	{"runtime/internal/syscall.rawVforkSyscall", VFORK},
};

static enum shape shape_of(const struct goframe_func *f)
{
	const struct gocode code = {f->code, f->code_len};

	for (size_t i = 0; i < ARRAY_SIZE(known); i++)
		if (!strcmp(f->name, known[i].name)) {
			/* a wrapper between calling conventions has the same name, and loads
			 * nothing into SP */
			if (known[i].shape >= ENDS && known[i].shape <= FRAME_POINTER &&
			    gocode_loads_sp(&code, 0) == GOCODE_NONE)
				return ORDINARY;
			return known[i].shape;
		}
	return ORDINARY;
}

/* The return address is in R12 while the child of vfork uses its parent's stack. */
static uint32_t rule_vfork(struct rows *r, int32_t depth, const struct saved *saved)
{
	if (depth != -8)
		return rule_depth(r, depth, saved);
	return rows_ext(
		r, &(struct row_ext){.kind = ROW_EXT_RA_REG, .reg = ROW_REG_RSP, .reg2 = REG_R12});
}

static void rows_by_shape(const struct pclntab *t, const struct goframe_func *f,
			  const struct goframe_runtime *rt, enum shape shape, struct rows *rows)
{
	switch (shape) {
	case ROOT:
		shape_root(f, rows);
		break;
	case ENDS:
		shape_switch(t, f, rows, ROW_MAKE_SPECIAL(ROW_ROOT, 0), false);
		break;
	case MORESTACK:
		shape_switch(t, f, rows, rule_goroutine(rows, rt, ROW_EXT_GO_SCHED), false);
		break;
	case SYSTEMSTACK:
		shape_systemstack(t, f, rt, rows);
		break;
	case CGOCALL:
		shape_cgocall(t, f, rows);
		break;
	case FRAME_POINTER:
		shape_frame_pointer(t, f, rows);
		break;
	case INJECTED:
		rows_by_depth(t, f, rows, UINT64_MAX, rule_injected);
		break;
	case VFORK:
		rows_by_depth(t, f, rows, UINT64_MAX, rule_vfork);
		break;
	default:
		rows_by_depth(t, f, rows, UINT64_MAX, rule_depth);
	}
}

void goframe_rows(const struct pclntab *t, const struct goframe_func *f,
		  const struct goframe_runtime *rt, struct rows *rows)
{
	enum shape shape = shape_of(f);
	uint64_t end = f->start + depth_end(t, f);

	if (shape == SIGNAL && f->start) {
		rows_span(rows, f->start - 1, f->end, ROWS_SURE);
		rows_add(rows, f->start - 1, ROW_MAKE_SPECIAL(ROW_SIGNAL, 0));
		return;
	}
	if (end == f->start)
		return;
	rows_span(rows, f->start, end, ROWS_SURE);
	if (shape == ORDINARY && (f->rec.flags & PCLNTAB_FLAG_SP_WRITE))
		shape_unknown(t, f, rows);
	else
		rows_by_shape(t, f, rt, shape, rows);
}

void goframe_runtime_learn(const struct goframe_func *systemstack,
			   const struct goframe_func *morestack, struct goframe_runtime *out)
{
	const struct gocode s = {systemstack->code, systemstack->code_len};
	const struct gocode m = {morestack->code, morestack->code_len};
	struct goframe_runtime rt = {0};

	rt.known = gocode_tls(&m, &rt.tls, &rt.tls_by_got) && gocode_curg(&s, &rt.curg) &&
		   gocode_sched_bp(&m, &rt.sched_bp);
	rt.sched_bp -= 56; /* gobuf's place in g, all versions */
	if (rt.known && rt.sched_bp >= 0 && rt.curg > 0)
		*out = rt;
}
