/* SPDX-License-Identifier: Apache-2.0 */
/* Numbers in comments are the header's conditions. */
#include "loaders/index/unwind/stackdepth.h"

#include <errno.h>
#include <stdlib.h>

#include "loaders/lib/code/x86insn.h"
#include "schema/base/cleanup.h"

/*
 * The state at an instruction, in 32 bits: bit 31 set; 16-30 CFA - RSP in words (UNKNOWN: unknown);
 * 8-15 where the caller's RBP was saved, in words below the CFA (0: not yet); 0-7 CFA - RBP in
 * words while RBP points into the frame (0: it does not). Bytes at which no instruction begins have
 * INSIDE, or 0.
 */
#define KNOWN   0x80000000u
#define INSIDE  1u
#define UNKNOWN 0x7fffu
#define WORD    8

#define TRAP_STEPS 4u /* instructions of a function that is there to stop the program */

struct state {
	unsigned depth, saved, fp;
};

static uint32_t state_pack(const struct state *s)
{
	return KNOWN | s->depth << 16 | s->saved << 8 | s->fp;
}

static struct state state_unpack(uint32_t v)
{
	return (struct state){v >> 16 & UNKNOWN, v >> 8 & 0xff, v & 0xff};
}

static uint32_t state_rule(uint32_t v)
{
	const struct state s = state_unpack(v);

	if (!(v & KNOWN) || (s.depth == UNKNOWN && !s.fp))
		return ROW_MAKE_SPECIAL(ROW_NONE, 0);
	return ROW_MAKE_CFA(s.depth == UNKNOWN ? ROW_RBP : ROW_RSP,
			    s.saved ? ROW_BP_SAVED : ROW_BP_SAME, s.saved,
			    s.depth == UNKNOWN ? s.fp : s.depth);
}

/* ---- one instruction ---- */

enum { REG_SP = 4, REG_BP = 5 }; /* the processor's numbers, not DWARF's */

/* RSP moves down by this many bytes (up: negative). */
static void depth_move(struct state *s, int64_t bytes)
{
	int64_t words = (int64_t)s->depth + bytes / WORD;

	if (s->depth == UNKNOWN)
		return;
	s->depth = bytes % WORD || words < 1 || words >= UNKNOWN ? UNKNOWN : (unsigned)words;
}

/* RSP becomes RBP + n. */
static void depth_from_bp(struct state *s, int64_t n)
{
	s->depth = s->fp;
	if (!s->fp)
		s->depth = UNKNOWN;
	depth_move(s, -n);
}

static void bp_pushed(struct state *s)
{
	if (!s->saved && s->depth <= 0xff)
		s->saved = s->depth;
}

/* Does the instruction write that register? As far as compilers use it for RSP and RBP. */
static bool writes(const struct x86insn *x, unsigned reg)
{
	const bool to_rm = x->has_modrm && x->mod == 3 && x->rm == reg,
		   to_reg = x->has_modrm && x->reg == reg;
	const unsigned low = (x->opcode & 7u) | (x->rex & 1u) << 3;

	if (x->map == 1)
		return to_reg &&
		       ((x->opcode & 0xf0) == 0x40 || x->opcode == 0xaf ||
			(x->opcode & 0xf6) == 0xb6 || x->opcode == 0xbc || x->opcode == 0xbd);
	if (x->map)
		return false;
	if (x->opcode < 0x40)
		return (x->opcode >> 3) != 7 &&
		       ((x->opcode & 7) < 2 ? to_rm : (x->opcode & 7) < 4 && to_reg);
	if ((x->opcode & 0xf8) == 0xb8)
		return low == reg;
	switch (x->opcode) {
	case 0x63:
	case 0x69:
	case 0x6b:
	case 0x8b:
	case 0x8d:
		return to_reg;
	case 0x81:
	case 0x83:
		return to_rm && (x->reg & 7) != 7;
	case 0x87:
		return to_rm || to_reg;
	case 0x89:
	case 0xc1:
	case 0xc7:
	case 0xd1:
	case 0xd3:
	case 0x8f:
		return to_rm;
	case 0xf7:
		return to_rm && ((x->reg & 7) == 2 || (x->reg & 7) == 3);
	case 0xff:
		return to_rm && (x->reg & 7) < 2;
	default:
		return false;
	}
}

static void push_pop(const struct x86insn *x, struct state *s)
{
	const unsigned reg = (x->opcode & 7u) | (x->rex & 1u) << 3;

	depth_move(s, x->opcode < 0x58 ? WORD : -WORD);
	if (reg == REG_BP && x->opcode < 0x58)
		bp_pushed(s);
	else if (reg == REG_BP)
		s->saved = s->fp = 0;
	else if (reg == REG_SP && x->opcode >= 0x58)
		s->depth = UNKNOWN;
}

static bool is_lea_of(const struct x86insn *x, unsigned base)
{
	return x->opcode == 0x8d && x->mod != 3 && x->mod != 0 && x->reg == REG_SP &&
	       (base == REG_SP ? x->sib_base == REG_SP && x->sib_index == 4 :
				 x->sib_base == 0xff && x->rm == base);
}

static bool is_move(const struct x86insn *x, unsigned to, unsigned from)
{
	return x->mod == 3 && ((x->opcode == 0x89 && x->rm == to && x->reg == from) ||
			       (x->opcode == 0x8b && x->reg == to && x->rm == from));
}

/* What RSP is, where the instruction makes it from itself or from RBP. false: it does not. */
static bool moves_stack(const struct x86insn *x, struct state *s)
{
	const bool immediate =
		(x->opcode == 0x81 || x->opcode == 0x83) && x->mod == 3 && x->rm == REG_SP;

	if (immediate && (x->reg & 7) == 0)
		depth_move(s, -x->imm);
	else if (immediate && (x->reg & 7) == 5)
		depth_move(s, x->imm);
	else if (is_lea_of(x, REG_SP))
		depth_move(s, -(int64_t)x->disp);
	else if (is_lea_of(x, REG_BP))
		depth_from_bp(s, x->disp);
	else if (is_move(x, REG_SP, REG_BP))
		depth_from_bp(s, 0);
	else
		return false;
	return true;
}

/* The state after an instruction that is no jump (1). */
static void follow(const struct x86insn *x, struct state *s)
{
	if (!x->map && (x->opcode & 0xf0) == 0x50) {
		push_pop(x, s);
	} else if (!x->map && (x->opcode == 0x68 || x->opcode == 0x6a || x->opcode == 0x9c)) {
		depth_move(s, WORD);
	} else if (!x->map && x->opcode == 0xff && (x->reg & 7) == 6) {
		depth_move(s, WORD);
	} else if (!x->map && (x->opcode == 0x9d || (x->opcode == 0x8f && x->mod != 3))) {
		depth_move(s, -WORD);
	} else if (!x->map && x->opcode == 0xc9) {
		depth_from_bp(s, WORD);
		s->saved = s->fp = 0;
	} else if (!x->map && (x->rex & 8) && is_move(x, REG_BP, REG_SP)) {
		s->fp = s->depth <= 0xff ? s->depth : 0;
	} else if (x->map || !(x->rex & 8) || !moves_stack(x, s)) {
		if (writes(x, REG_SP))
			s->depth = UNKNOWN;
		if (writes(x, REG_BP))
			s->fp = 0;
	}
}

/* ---- all of the code ---- */

struct code_place {
	uint32_t at;
	uint32_t state;
};

struct places {
	struct code_place *v; /* own */
	size_t n, cap;
};

struct walk {
	const struct stackdepth_input *in;
	uint32_t *states; /* own: by byte */
	uint8_t *starts;  /* own: a bit a byte: a function begins there */
	uint8_t *entered; /* own: a bit a byte: the code before runs on into it */
	struct places ways, calls, leas, tables;
	uint32_t function; /* where the one that is being followed begins */
	uint32_t table;    /* state at its jump through a table; 0: none yet */
	size_t named_leas; /* of the leas, those that are not words of data */
	bool failed;
};

static void walk_release(struct walk *w)
{
	free(w->states);
	free(w->starts);
	free(w->entered);
	free(w->ways.v);
	free(w->calls.v);
	free(w->leas.v);
	free(w->tables.v);
}
#define cleanup_walk __attribute__((cleanup(walk_release)))

static bool is_start(const struct walk *w, uint32_t at)
{
	return w->starts[at / 8] >> (at % 8) & 1;
}

static void place_add(struct walk *w, struct places *p, uint32_t at, uint32_t state)
{
	if (p->n == p->cap) {
		size_t cap = p->cap ? 2 * p->cap : 1024;
		void *v = realloc(p->v, cap * sizeof(*p->v));

		if (!v) {
			w->failed = true;
			return;
		}
		p->v = v;
		p->cap = cap;
	}
	p->v[p->n++] = (struct code_place){at, state};
}

static const uint32_t at_entry = KNOWN | 1u << 16;

static bool in_code(const struct walk *w, uint64_t addr, uint32_t *at)
{
	if (addr < w->in->vaddr || addr - w->in->vaddr >= w->in->len)
		return false;
	*at = (uint32_t)(addr - w->in->vaddr);
	return true;
}

/* A function begins here: to be followed in its turn. */
static void start_add(struct walk *w, struct places *p, uint64_t addr)
{
	uint32_t at;

	if (!in_code(w, addr, &at) || is_start(w, at) || w->states[at])
		return;
	w->starts[at / 8] |= (uint8_t)(1u << (at % 8));
	place_add(w, p, at, at_entry);
}

/* One more way to an instruction. */
static void way_add(struct walk *w, uint64_t addr, uint32_t state)
{
	uint32_t at;

	if (in_code(w, addr, &at) && !w->states[at] && (!is_start(w, at) || at == w->function))
		place_add(w, &w->ways, at, state);
}

/* Does the function at `addr` run straight into hlt or ud2 (musl's __stack_chk_fail, which ends
 * many others)? */
static bool traps(const struct walk *w, uint64_t addr)
{
	struct x86insn x;
	uint32_t at;

	if (!in_code(w, addr, &at))
		return false;
	for (unsigned i = 0; i < TRAP_STEPS && x86insn_read(w->in->code + at, w->in->len - at, &x);
	     i++, at += x.len) {
		if ((!x.map && x.opcode == 0xf4) || (x.map == 1 && x.opcode == 0x0b))
			return true;
		if ((x.map == 1 && (x.opcode & 0xf0) == 0x80) ||
		    (!x.map && ((x.opcode & 0xf0) == 0x70 || x.opcode >= 0xc0) && x.opcode != 0xc7))
			return false;
	}
	return false;
}

/* Jumps and calls: where they go. Returns whether the next instruction is reached. */
static bool branch(struct walk *w, const struct x86insn *x, uint64_t next, uint32_t state)
{
	const uint64_t to = next + (uint64_t)x->imm;
	const unsigned way = x->has_modrm ? x->reg & 7u : 0;

	if (x->map == 1 && (x->opcode & 0xf0) == 0x80) {
		way_add(w, to, state);
		return true;
	}
	if (x->map)
		return !(x->map == 1 && x->opcode == 0x0b); /* ud2 */
	if ((x->opcode & 0xf0) == 0x70 || (x->opcode >= 0xe0 && x->opcode <= 0xe3)) {
		way_add(w, to, state);
		return true;
	}
	switch (x->opcode) {
	case 0xe8:
		return !traps(w, to);
	case 0xe9:
	case 0xeb:
		way_add(w, to, state);
		return false;
	case 0xc2:
	case 0xc3:
	case 0xcb:
	case 0xca:
	case 0xcf:
	case 0xcc:
	case 0xf4:
		return false;
	case 0xff:
		if (way == 4)
			w->table = state;
		return way != 4;
	default:
		return true;
	}
}

static bool is_address_taken(const struct x86insn *x)
{
	return !x->map && x->opcode == 0x8d && x->mod == 0 && x->sib_base == 0xff &&
	       (x->rm & 7) == 5;
}

/* Where functions begin (3), before any is followed: one that ends in a call that does not return
 * must not run on into the next. From first byte to last, one instruction after another: compilers
 * put nothing but code there. */
static void starts_find(struct walk *w)
{
	const struct stackdepth_input *in = w->in;
	struct x86insn x;

	for (size_t at = 0; at < in->len; at += x.len) {
		if (!x86insn_read(in->code + at, in->len - at, &x)) {
			x.len = 1;
			continue;
		}
		if (!x.map && x.opcode == 0xe8)
			start_add(w, &w->calls, in->vaddr + at + x.len + (uint64_t)x.imm);
		else if (is_address_taken(&x))
			start_add(w, &w->leas, in->vaddr + at + x.len + (uint64_t)(int64_t)x.disp);
	}
	w->named_leas = w->leas.n;
	for (size_t i = 0; i < in->word_count; i++)
		start_add(w, &w->leas, in->words[i]);
}

/* Instruction by instruction, until the way ends or meets another (2). */
static void way_follow(struct walk *w, uint32_t at, uint32_t packed)
{
	const size_t len = w->in->len;
	struct x86insn x;

	while (at < len && !w->states[at] && (!is_start(w, at) || at == w->function)) {
		struct state s = state_unpack(packed);
		uint64_t next;

		if (!x86insn_read(w->in->code + at, len - at, &x) || (s.depth == UNKNOWN && !s.fp))
			return;
		w->states[at] = packed;
		for (uint32_t i = at + 1; i < at + x.len; i++)
			if (!w->states[i])
				w->states[i] = INSIDE;
		at += x.len;
		next = w->in->vaddr + at;
		if (!branch(w, &x, next, packed)) {
			if (w->table && at < len && !w->states[at])
				place_add(w, &w->tables, at, w->table);
			return;
		}
		follow(&x, &s);
		packed = state_pack(&s);
		if (at < len && is_start(w, at))
			w->entered[at / 8] |= (uint8_t)(1u << (at % 8));
	}
}

/* All ways from there. `table`: the state at the function's jump through a table, where it had one.
 */
static void place_follow(struct walk *w, struct code_place p, uint32_t table)
{
	w->function = p.at;
	w->table = table;
	place_add(w, &w->ways, p.at, p.state);
	while (w->ways.n && !w->failed) {
		struct code_place way = w->ways.v[--w->ways.n];

		way_follow(w, way.at, way.state);
	}
}

/* Better known ones first (3). */
static void places_follow(struct walk *w)
{
	for (size_t i = 0; i < w->calls.n && !w->failed; i++)
		place_follow(w, w->calls.v[i], 0);
	for (size_t i = 0; i < w->leas.n && !w->failed; i++)
		place_follow(w, w->leas.v[i], 0);
}

/* (4): what is found behind one may end in another. */
static void tables_follow(struct walk *w)
{
	for (size_t i = 0; i < w->tables.n && !w->failed; i++) {
		struct code_place p = w->tables.v[i];

		if (!w->states[p.at] && !is_start(w, p.at))
			place_follow(w, p, p.state);
	}
}

static void rows_emit(const struct walk *w, struct rows *r)
{
	const uint64_t base = w->in->vaddr;
	uint32_t last = INSIDE;

	rows_span(r, base, base + w->in->len, ROWS_FOLLOWED);
	for (size_t i = 0; i < w->in->len; i++) {
		if (w->states[i] == INSIDE || w->states[i] == last)
			continue;
		last = w->states[i];
		rows_add(r, base + i, state_rule(last));
	}
}

/* Not where the code before runs on into it (musl's expm1l calls into the middle of exp2l). */
static void start_emit(const struct walk *w, uint32_t at, struct rows *r)
{
	if (!(w->entered[at / 8] >> (at % 8) & 1))
		rows_start(r, w->in->vaddr + at);
}

/* Not what only a word of data points at: that may be a way within a function, or a number. */
static void starts_emit(const struct walk *w, struct rows *r)
{
	for (size_t i = 0; i < w->calls.n; i++)
		start_emit(w, w->calls.v[i].at, r);
	for (size_t i = 0; i < w->named_leas; i++)
		start_emit(w, w->leas.v[i].at, r);
}

int stackdepth_rows(const struct stackdepth_input *in, struct rows *r)
{
	cleanup_walk struct walk w = {.in = in};

	if (in->len > STACKDEPTH_CODE_MAX)
		return -EFBIG;
	w.states = calloc(in->len + 1, sizeof(*w.states));
	w.starts = calloc(in->len / 8 + 1, 1);
	w.entered = calloc(in->len / 8 + 1, 1);
	if (!w.states || !w.starts || !w.entered)
		return -ENOMEM;
	for (size_t i = 0; i < in->function_count; i++)
		start_add(&w, &w.calls, in->functions[i]);
	starts_find(&w);
	places_follow(&w);
	tables_follow(&w);
	if (w.failed)
		return -ENOMEM;
	rows_emit(&w, r);
	starts_emit(&w, r);
	return 0;
}
