/* SPDX-License-Identifier: Apache-2.0 */
/* Numbers in comments are the header's conditions. */
#include "loaders/index/code/codeflow.h"

#include <stdlib.h>
#include <string.h>

#include "schema/base/mem.h"

#define MOST_FRAME (1 << 24)
#define ASIDE_MOST 4096u /* bytes */
#define TABLE_BACK 16u   /* instructions */
#define TABLE_MOST 256   /* entries */

struct work {
	uint32_t *todo; /* own: instructions whose state has changed */
	size_t n, cap;
};

static void todo_add(struct work *w, uint32_t i)
{
	mem_grow(w->todo, w->n, w->cap);
	w->todo[w->n++] = i;
}

/* ---- 2 ---- */

static bool value_equal(const struct codeflow_value *a, const struct codeflow_value *b)
{
	return a->holds == b->holds && a->arg == b->arg && a->number == b->number;
}

/* true: something became less. */
static bool regs_meet(struct codeflow_value *into, const struct codeflow_value *from)
{
	bool changed = false;

	for (unsigned r = 0; r < 16; r++) {
		if (into[r].holds == CODEFLOW_UNKNOWN || value_equal(&into[r], &from[r]))
			continue;
		into[r] = (struct codeflow_value){0};
		changed = true;
	}
	return changed;
}

static void frame_move(struct codeflow_value *v, int64_t by)
{
	int64_t to = v->number + by;

	if (v->holds != CODEFLOW_FRAME || to > MOST_FRAME || to < -MOST_FRAME)
		*v = (struct codeflow_value){0};
	else
		v->number = (int32_t)to;
}

static struct codeflow_value moved_value(const struct codeflow_insn *i)
{
	const struct x86effect *e = &i->effect;
	struct codeflow_value v = {0};
	int32_t at;

	switch (e->move) {
	case X86_MOVE:
		v = i->regs[e->from & 15];
		if (e->bytes < 8 && v.holds == CODEFLOW_FRAME)
			v = (struct codeflow_value){0};
		break;
	case X86_SET:
		if (e->number == (int32_t)e->number)
			v = (struct codeflow_value){.holds = CODEFLOW_NUMBER,
						    .number = (int32_t)e->number};
		break;
	case X86_ADDRESS:
		if (codeflow_slot(i, &at))
			v = (struct codeflow_value){.holds = CODEFLOW_FRAME, .number = at};
		break;
	case X86_ADD:
		v = i->regs[e->to & 15];
		frame_move(&v, e->number);
		break;
	default:
		break;
	}
	return v;
}

/* What the registers hold behind it. */
static void regs_after(const struct codeflow_insn *i, struct codeflow_value *out)
{
	const struct x86effect *e = &i->effect;
	uint16_t lost = e->changes;
	struct codeflow_value v = moved_value(i);

	memcpy(out, i->regs, sizeof(i->regs));
	if (e->flow == X86_CALL || e->flow == X86_CALL_FAR)
		lost = X86_CALLER_SAVED; /* 3 */
	for (unsigned r = 0; r < 16; r++)
		if (lost >> r & 1 && !(e->pops && r == X86_RSP))
			out[r] = (struct codeflow_value){0};
	if ((e->move == X86_MOVE || e->move == X86_SET || e->move == X86_ADDRESS ||
	     e->move == X86_ADD) &&
	    e->to < 16)
		out[e->to] = v;
	if (e->pushes)
		frame_move(&out[X86_RSP], -8);
	if (!e->pops)
		return;
	if (e->changes >> X86_RSP & 1) /* leave */
		out[X86_RSP] = i->regs[X86_RBP];
	frame_move(&out[X86_RSP], 8);
}

bool codeflow_slot(const struct codeflow_insn *i, int32_t *at)
{
	const struct codeflow_value *base = &i->regs[i->effect.base & 15];

	if (!i->effect.has_base || base->holds != CODEFLOW_FRAME || i->x.disp > MOST_FRAME ||
	    i->x.disp < -MOST_FRAME)
		return false;
	*at = base->number + i->x.disp;
	return true;
}

/* ---- 1 ---- */

static bool outside(const struct codeflow *f, uint64_t at)
{
	return at < f->start || at >= f->end;
}

/* CODEFLOW_NONE: no instruction there, or no room. */
static uint32_t insn_at(struct codeflow *f, const struct codeflow_reader *r, uint64_t at,
			bool *fresh)
{
	struct codeflow_insn *i;
	uint64_t found;
	uint8_t bytes[X86INSN_MAX + 1] = {0};
	struct x86insn x;

	*fresh = false;
	if (idmap_get(&f->by_address, at, &found))
		return (uint32_t)found;
	if (f->insn_count >= CODEFLOW_INSNS_MAX ||
	    !x86insn_read(bytes, r->read(r->ctx, at, bytes), &x))
		return CODEFLOW_NONE;
	mem_grow(f->insns, f->insn_count, f->insn_cap);
	i = &f->insns[f->insn_count];
	memset(i, 0, sizeof(*i));
	i->at = at;
	i->x = x;
	memcpy(i->bytes, bytes, sizeof(i->bytes));
	x86effect_of(bytes, &x, &i->effect);
	i->emulated = x86effect_emulated(bytes, &x);
	i->before = CODEFLOW_NONE;
	if (i->effect.flow == X86_JCC || i->effect.flow == X86_JMP || i->effect.flow == X86_CALL)
		i->target = at + x.len + (uint64_t)x.imm;
	i->away = i->target && outside(f, i->target);
	idmap_set(&f->by_address, at, f->insn_count);
	*fresh = true;
	return (uint32_t)f->insn_count++;
}

static void edge_add(struct codeflow *f, uint32_t from, uint32_t to, bool jumps)
{
	for (uint32_t e = f->insns[to].before; e != CODEFLOW_NONE; e = f->edges[e].next)
		if (f->edges[e].from == from && f->edges[e].jumps == jumps)
			return;
	mem_grow(f->edges, f->edge_count, f->edge_cap);
	f->edges[f->edge_count] =
		(struct codeflow_edge){.from = from, .next = f->insns[to].before, .jumps = jumps};
	f->insns[to].before = (uint32_t)f->edge_count++;
}

/* Control may go from `from` to the instruction at `at`. false: it cannot be followed. */
static bool follow(struct codeflow *f, const struct codeflow_reader *r, struct work *w,
		   uint32_t from, uint64_t at, bool jumps)
{
	struct codeflow_value after[16];
	bool fresh;
	uint32_t to = insn_at(f, r, at, &fresh);

	if (to == CODEFLOW_NONE)
		return false;
	regs_after(&f->insns[from], after);
	edge_add(f, from, to, jumps);
	if (fresh)
		memcpy(f->insns[to].regs, after, sizeof(after));
	if (fresh || (!(f->restarts && !to) && regs_meet(f->insns[to].regs, after)))
		todo_add(w, to);
	return true;
}

/* A jump to another function. From a part put aside jumps lead back, or within it. */
static bool leaves(const struct codeflow *f, const struct codeflow_insn *i)
{
	return i->away && !(outside(f, i->at) && i->target - i->at + ASIDE_MOST < 2 * ASIDE_MOST);
}

/* ---- 4 ---- */

struct table {
	uint64_t at;
	int64_t last; /* the last entry's number; -1: not known */
};

static bool is_compare(const struct codeflow_insn *i)
{
	return !i->x.map && (i->x.opcode == 0x83 || i->x.opcode == 0x81) && (i->x.reg & 7) == 7;
}

/* What the instructions straight before a jump say of its table. */
static struct table table_before(const struct codeflow *f, uint32_t n)
{
	struct table t = {.last = -1};
	bool above = false;

	for (unsigned k = 0; k < TABLE_BACK && t.last < 0; k++) {
		const struct codeflow_insn *i = &f->insns[n];
		const struct codeflow_edge *e =
			i->before == CODEFLOW_NONE ? NULL : &f->edges[i->before];

		if (!e || e->jumps)
			break;
		n = e->from;
		i = &f->insns[n];
		if (!t.at && !i->x.map && i->x.opcode == 0x8d && i->effect.relative)
			t.at = i->at + i->x.len + (uint64_t)(int64_t)i->x.disp;
		above |= i->effect.flow == X86_JCC && x86effect_condition(&i->x) == 7;
		if (above && is_compare(i))
			t.last = i->x.imm;
	}
	return t;
}

static bool follow_table(struct codeflow *f, const struct codeflow_reader *r, struct work *w,
			 uint32_t n)
{
	const struct table t = table_before(f, n);
	uint8_t bytes[X86INSN_MAX];
	int32_t distance;

	if (!t.at || t.last < 0 || t.last >= TABLE_MOST)
		return true;
	for (int64_t k = 0; k <= t.last; k++) {
		uint64_t to;

		if (r->read(r->ctx, t.at + 4 * (uint64_t)k, bytes) < 4)
			return true;
		memcpy(&distance, bytes, 4);
		to = t.at + (uint64_t)(int64_t)distance;
		if (outside(f, to) || !follow(f, r, w, n, to, true))
			return true;
	}
	f->insns[n].table = true;
	return true;
}

static bool step(struct codeflow *f, const struct codeflow_reader *r, struct work *w, uint32_t n)
{
	const struct codeflow_insn i = f->insns[n];
	const uint64_t next = i.at + i.x.len;
	const bool aside = outside(f, i.at);
	bool good = true;

	if (i.effect.flow == X86_JCC || (i.effect.flow == X86_JMP && !leaves(f, &i)))
		good = follow(f, r, w, n, i.target, true);
	if (i.effect.flow == X86_JMP_FAR && i.effect.from != 0xff)
		good = follow_table(f, r, w, n);
	if (good &&
	    (i.effect.flow == X86_ON || i.effect.flow == X86_JCC || i.effect.flow == X86_CALL ||
	     i.effect.flow == X86_CALL_FAR) &&
	    (aside || !outside(f, next)))
		good = follow(f, r, w, n, next, false);
	return good;
}

static void regs_at_entry(struct codeflow_value *regs)
{
	for (unsigned r = 0; r < 16; r++)
		regs[r] = (struct codeflow_value){.holds = CODEFLOW_ARG, .arg = (uint8_t)r};
	regs[X86_RSP] = (struct codeflow_value){.holds = CODEFLOW_FRAME};
	regs[X86_RBP] = (struct codeflow_value){0};
}

bool codeflow_make(struct codeflow *f, const struct codeflow_reader *r, uint64_t start,
		   uint64_t end)
{
	struct work w = {0};
	bool good = start < end, fresh;

	f->start = start;
	f->end = end;
	if (good && insn_at(f, r, start, &fresh) == CODEFLOW_NONE)
		good = false;
	if (good) {
		regs_at_entry(f->insns[0].regs);
		todo_add(&w, 0);
	}
	while (good && w.n)
		good = step(f, r, &w, w.todo[--w.n]);
	free(w.todo);
	return good;
}

void codeflow_release(struct codeflow *f)
{
	free(f->insns);
	free(f->edges);
	idmap_release(&f->by_address);
	memset(f, 0, sizeof(*f));
}
