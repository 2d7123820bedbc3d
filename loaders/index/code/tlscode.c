/* SPDX-License-Identifier: Apache-2.0 */
/* Numbers in comments are the header's conditions. */
#include "loaders/index/code/tlscode.h"

#include <stdlib.h>
#include <string.h>

#include "schema/base/mem.h"

#define STEPS_MAX 20000u
#define LOAD_BACK 16u /* instructions between the load of a pointer and the jump by it */

static bool inside(const struct codeflow *f, const struct codeflow_insn *i)
{
	return i->at >= f->start && i->at < f->end;
}

static struct tlscode_site site_of(const struct codeflow_insn *i)
{
	struct tlscode_site s = {.at = i->at,
				 .len = i->x.len,
				 .slow = !i->emulated,
				 .args = {0xff, 0xff, 0xff, 0xff}};

	memcpy(s.bytes, i->bytes, sizeof(s.bytes));
	if (i->effect.flow == X86_JCC)
		s.condition = x86effect_condition(&i->x);
	return s;
}

/* ---- 1 ---- */

/* The register that holds what was given in `arg`; its own one if it still does. 0xff: none. */
static uint8_t arg_where(const struct codeflow_insn *i, uint8_t arg)
{
	for (unsigned n = 0; n < 17; n++) {
		unsigned r = n ? n - 1 : arg;

		if (i->regs[r].holds == CODEFLOW_ARG && i->regs[r].arg == arg)
			return (uint8_t)r;
	}
	return 0xff;
}

static bool entry_at(const struct codeflow_insn *i, const struct tlscode_asked *asked,
		     struct tlscode_site *out)
{
	struct tlscode_site s = site_of(i);

	for (unsigned k = 0; k < TLSCODE_ARGS; k++) {
		if (asked->args[k] == 0xff)
			continue;
		s.args[k] = arg_where(i, asked->args[k]);
		if (s.args[k] == 0xff)
			return false;
	}
	*out = s;
	return true;
}

static void entry_find(const struct codeflow *f, const struct tlscode_asked *asked,
		       struct tlscode_site *out)
{
	uint64_t n = 0;

	for (unsigned steps = 0; steps < 200; steps++) {
		const struct codeflow_insn *i = &f->insns[n];

		if (i->emulated && inside(f, i) && entry_at(i, asked, out))
			return;
		if (i->effect.flow != X86_ON && i->effect.flow != X86_JMP)
			return;
		if (!idmap_get(&f->by_address,
			       i->effect.flow == X86_JMP ? i->target : i->at + i->x.len, &n))
			return;
	}
}

bool tlscode_entry(const struct codeflow *f, const struct tlscode_asked *asked,
		   struct tlscode_site *out)
{
	memset(out, 0, sizeof(*out));
	entry_find(f, asked, out);
	return out->len || entry_at(&f->insns[0], asked, out);
}

/* ---- 2 ---- */

struct at {
	uint32_t insn;
	struct tlscode_place value[2]; /* before it; STACK: from RSP at entry */
};

struct walk {
	const struct codeflow *f;
	bool plain;
	struct tlscode_found *out;
	struct at *seen; /* own */
	size_t n, cap, next;
};

static bool place_equal(const struct tlscode_place *a, const struct tlscode_place *b)
{
	return a->kind == b->kind && a->reg == b->reg && a->bytes == b->bytes && a->at == b->at;
}

static bool places_equal(const struct tlscode_place *a, const struct tlscode_place *b)
{
	return place_equal(&a[0], &b[0]) && place_equal(&a[1], &b[1]);
}

static void go_to(struct walk *w, uint32_t insn, const struct tlscode_place *value)
{
	for (size_t k = 0; k < w->n; k++)
		if (w->seen[k].insn == insn && places_equal(w->seen[k].value, value))
			return;
	mem_grow(w->seen, w->n, w->cap);
	w->seen[w->n].insn = insn;
	memcpy(w->seen[w->n++].value, value, 2 * sizeof(*value));
}

/* A memory operand that is written may be this word of the frame. */
static bool overwrites(const struct codeflow_insn *i, int32_t word)
{
	int32_t at;

	return i->effect.memory && codeflow_slot(i, &at) && at < word + 8 &&
	       word < at + i->effect.memory;
}

static bool pushed_over(const struct codeflow_insn *i, int32_t word)
{
	const struct codeflow_value *sp = &i->regs[X86_RSP];

	return i->effect.pushes && sp->holds == CODEFLOW_FRAME && word < sp->number &&
	       word + 8 > sp->number - 8;
}

static uint8_t fewer(uint8_t a, uint8_t b)
{
	return a < b ? a : b;
}

static bool back_over_register(const struct codeflow_insn *i, struct tlscode_place *p)
{
	const struct x86effect *e = &i->effect;
	int32_t at;

	if (!(e->changes >> p->reg & 1))
		return true;
	if (e->move == X86_MOVE && e->to == p->reg) {
		*p = (struct tlscode_place){
			.kind = TLSCODE_REG, .reg = e->from, .bytes = fewer(p->bytes, e->bytes)};
		return true;
	}
	if (e->move == X86_LOAD && e->to == p->reg && codeflow_slot(i, &at)) {
		*p = (struct tlscode_place){
			.kind = TLSCODE_STACK, .at = at, .bytes = fewer(p->bytes, e->bytes)};
		return true;
	}
	if (e->move == X86_SET && e->to == p->reg && e->number == (int32_t)e->number) {
		*p = (struct tlscode_place){
			.kind = TLSCODE_NUMBER, .at = (int32_t)e->number, .bytes = p->bytes};
		return true;
	}
	if (!i->x.map && i->x.opcode == 0x98 && p->reg == X86_RAX) { /* cltq */
		p->bytes = 4;
		return true;
	}
	return false;
}

static bool back_over_word(const struct codeflow_insn *i, struct tlscode_place *p)
{
	const struct x86effect *e = &i->effect;
	int32_t at;

	if (pushed_over(i, p->at))
		return false;
	if (!overwrites(i, p->at))
		return true;
	if (!codeflow_slot(i, &at) || at != p->at || e->bytes < p->bytes)
		return false;
	if (e->move == X86_STORE) {
		*p = (struct tlscode_place){
			.kind = TLSCODE_REG, .reg = e->from, .bytes = fewer(p->bytes, e->bytes)};
		return true;
	}
	if (e->move == X86_STORE_SET && e->number == (int32_t)e->number) {
		*p = (struct tlscode_place){
			.kind = TLSCODE_NUMBER, .at = (int32_t)e->number, .bytes = p->bytes};
		return true;
	}
	return false;
}

static bool back_over(const struct codeflow_insn *i, struct tlscode_place *p)
{
	if (p->kind == TLSCODE_STACK)
		return back_over_word(i, p);
	if (p->kind != TLSCODE_REG)
		return true;
	if (i->effect.flow == X86_CALL || i->effect.flow == X86_CALL_FAR)
		return !(X86_CALLER_SAVED >> p->reg & 1);
	return back_over_register(i, p);
}

/* A sum is in two places. */
static bool back_over_sum(const struct codeflow_insn *i, struct tlscode_place *v)
{
	const struct x86effect *e = &i->effect;

	if (e->move != X86_SUM || v[0].kind != TLSCODE_REG || v[0].reg != e->to ||
	    v[1].kind != TLSCODE_NOWHERE)
		return false;
	v[0].reg = e->from;
	v[1] = (struct tlscode_place){.kind = TLSCODE_REG, .reg = e->other, .bytes = v[0].bytes};
	return true;
}

static bool back_over_both(const struct codeflow_insn *i, struct tlscode_place *v)
{
	return back_over_sum(i, v) || (back_over(i, &v[0]) && back_over(i, &v[1]));
}

/* The place as a probe there finds it. */
static bool place_at(const struct codeflow_insn *i, struct tlscode_place *p)
{
	const struct codeflow_value *sp = &i->regs[X86_RSP];

	if (p->kind != TLSCODE_STACK)
		return true;
	if (sp->holds != CODEFLOW_FRAME)
		return false;
	p->at -= sp->number;
	return true;
}

/* A call that a value survives, or what changes nothing that counts. */
static bool survives(const struct codeflow_insn *i, const struct tlscode_place *value)
{
	struct tlscode_place v[2] = {value[0], value[1]};

	return back_over(i, &v[0]) && back_over(i, &v[1]) && places_equal(v, value);
}

static bool is_nop(const struct codeflow_insn *i)
{
	return (i->x.map == 1 && (i->x.opcode == 0x1e || i->x.opcode == 0x1f)) ||
	       (!i->x.map && i->x.opcode == 0x90);
}

/* 5. The first instruction from `n` on that is not a multi-byte no-op. NULL: none within the
 *    function. */
static const struct codeflow_insn *beyond(const struct codeflow *f, uint64_t n)
{
	for (unsigned k = 0; k < 8; k++) {
		const struct codeflow_insn *i = &f->insns[n];

		if (!inside(f, i) || (i->effect.flow != X86_ON && !is_nop(i)))
			return NULL;
		if (!is_nop(i))
			return i;
		if (!idmap_get(&f->by_address, i->at + i->x.len, &n))
			return NULL;
	}
	return NULL;
}

static bool says_nothing(const struct tlscode_place *value)
{
	return value[0].kind == TLSCODE_NUMBER && value[0].at <= 0 &&
	       value[1].kind == TLSCODE_NOWHERE;
}

/* `to`: where the edge leads. */
static bool site_add(struct walk *w, const struct codeflow_insn *i, const struct codeflow_edge *e,
		     uint32_t to, const struct tlscode_place *value)
{
	const struct codeflow_insn *there =
		i->effect.flow == X86_JCC && !w->plain && says_nothing(value) ? beyond(w->f, to) :
										NULL;
	struct tlscode_site s = site_of(there ? there : i);

	memcpy(s.value, value, sizeof(s.value));
	if (!place_at(i, &s.value[0]) || !place_at(i, &s.value[1]))
		return false;
	if (i->effect.flow == X86_JCC && !there)
		s.when = e->jumps ? TLSCODE_TAKEN : TLSCODE_NOT_TAKEN;
	for (size_t k = 0; k < w->out->result_count; k++) {
		struct tlscode_site *o = &w->out->results[k];

		if (o->at != s.at || !places_equal(o->value, s.value))
			continue;
		if (o->when != s.when)
			o->when = TLSCODE_ALWAYS;
		return true;
	}
	if (w->out->result_count == TLSCODE_SITES_MAX)
		w->out->too_many = true;
	else
		w->out->results[w->out->result_count++] = s;
	return true;
}

/* ---- 3 ---- */

/* The pointer in `reg` was loaded from a structure just before. 0: not seen. */
static int32_t loaded_from(const struct codeflow *f, uint32_t n, uint8_t reg)
{
	for (unsigned k = 0; k < LOAD_BACK; k++) {
		const struct codeflow_insn *i = &f->insns[n];
		const struct codeflow_edge *e =
			i->before == CODEFLOW_NONE ? NULL : &f->edges[i->before];

		if (!e || e->jumps)
			return 0;
		n = e->from;
		i = &f->insns[n];
		if (i->effect.changes >> reg & 1)
			return i->effect.move == X86_LOAD && i->effect.to == reg &&
					       i->effect.has_base ?
				       i->x.disp :
				       0;
	}
	return 0;
}

static void lead_add(struct walk *w, uint32_t n, bool changed)
{
	const struct codeflow_insn *i = &w->f->insns[n];
	struct tlscode_lead l = {.changed = changed,
				 .far = i->effect.flow == X86_CALL_FAR ||
					i->effect.flow == X86_JMP_FAR,
				 .target = i->target};

	if (i->effect.flow == X86_ON || i->effect.flow == X86_RET ||
	    w->out->lead_count == TLSCODE_LEADS_MAX)
		return;
	if (l.far)
		l.displacement = i->effect.from == 0xff ? i->effect.has_base ? i->x.disp : 0 :
							  loaded_from(w->f, n, i->effect.from);
	memcpy(l.regs, i->regs, sizeof(l.regs));
	for (size_t k = 0; k < w->out->lead_count; k++)
		if (w->out->leads[k].far == l.far && w->out->leads[k].target == l.target &&
		    w->out->leads[k].displacement == l.displacement) {
			w->out->leads[k].changed |= changed;
			return;
		}
	w->out->leads[w->out->lead_count++] = l;
}

/* A call's result may be changed a little on its way (cmov): the call straight before leads on. */
static void open_way(struct walk *w, uint32_t n)
{
	const bool changed = w->f->insns[n].effect.flow == X86_ON;

	w->out->open++;
	for (unsigned k = 0; k < LOAD_BACK && w->f->insns[n].effect.flow == X86_ON; k++) {
		const struct codeflow_insn *i = &w->f->insns[n];

		if (i->before == CODEFLOW_NONE || w->f->edges[i->before].jumps)
			return;
		n = w->f->edges[i->before].from;
	}
	lead_add(w, n, changed);
}

static void back_along(struct walk *w, const struct at *a, const struct codeflow_edge *e)
{
	const struct codeflow_insn *i = &w->f->insns[e->from];
	struct tlscode_place v[2] = {a->value[0], a->value[1]};

	if (i->emulated && inside(w->f, i) && survives(i, a->value) &&
	    site_add(w, i, e, a->insn, a->value))
		return;
	if (i->effect.flow == X86_JCC || i->effect.flow == X86_JMP_FAR)
		w->out->open++; /* before it the way is not decided */
	else if (back_over_both(i, v))
		go_to(w, e->from, v);
	else
		open_way(w, e->from);
}

static void walk_back(struct walk *w)
{
	for (unsigned steps = 0; w->next < w->n; steps++) {
		const struct at a = w->seen[w->next++];

		if (steps == STEPS_MAX) {
			w->out->too_many = true;
			return;
		}
		if (!a.insn)
			w->out->open++; /* from the function's first byte without one */
		for (uint32_t e = w->f->insns[a.insn].before; e != CODEFLOW_NONE;
		     e = w->f->edges[e].next)
			back_along(w, &a, &w->f->edges[e]);
	}
}

static bool is_exit(const struct codeflow *f, const struct codeflow_insn *i)
{
	uint64_t n;

	return (i->effect.flow == X86_JMP_FAR && !i->table) ||
	       (i->effect.flow == X86_JMP && i->away && !idmap_get(&f->by_address, i->target, &n));
}

static void result_places(const struct tlscode_asked *asked, struct tlscode_place *out)
{
	out[0] = (struct tlscode_place){.kind = TLSCODE_REG, .reg = X86_RAX, .bytes = 8};
	out[1] = (struct tlscode_place){.kind = TLSCODE_NOWHERE};
	if (asked->second != 0xff)
		out[1] = (struct tlscode_place){
			.kind = TLSCODE_REG, .reg = asked->second, .bytes = 8};
}

void tlscode_find(const struct codeflow *f, const struct tlscode_asked *asked,
		  struct tlscode_found *out)
{
	struct walk w = {.f = f, .plain = asked->plain, .out = out};
	struct tlscode_place value[2];

	memset(out, 0, sizeof(*out));
	result_places(asked, value);
	entry_find(f, asked, &out->entry);
	for (uint32_t n = 0; n < f->insn_count; n++) {
		if (f->insns[n].effect.flow == X86_RET)
			go_to(&w, n, value);
		else if (!asked->plain && is_exit(f, &f->insns[n]))
			open_way(&w, n);
	}
	walk_back(&w);
	free(w.seen);
}

bool tlscode_find_slow(const struct codeflow *f, const struct tlscode_asked *asked,
		       struct tlscode_found *out)
{
	bool whole = true;

	memset(out, 0, sizeof(*out));
	if (!tlscode_entry(f, asked, &out->entry))
		return false;
	for (size_t n = 0; n < f->insn_count; n++) {
		const struct codeflow_insn *i = &f->insns[n];
		struct tlscode_site s = site_of(i);

		whole &= !is_exit(f, i);
		if (i->effect.flow != X86_RET || !inside(f, i))
			continue;
		result_places(asked, s.value);
		if (out->result_count == TLSCODE_SITES_MAX)
			return false;
		out->results[out->result_count++] = s;
	}
	return whole && out->result_count;
}
