/* SPDX-License-Identifier: Apache-2.0 */
/* Numbers in comments are the header's conditions. */
#include "loaders/index/code/callsites.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "schema/base/cleanup.h"
#include "schema/base/mem.h"

#define ENDBR_BYTES 4u
#define AGAIN_MOST  48u /* instructions of Go that ask for more stack */

struct search {
	const struct callsites_host *h;
	struct callsites *out;
	uint64_t functions[CALLSITES_DEEP]; /* where they begin; the first is the one asked for */
	size_t n;
	bool go;
};

static const struct tlscode_asked RESULT = {
	.args = {0xff, 0xff, 0xff, 0xff}, .second = 0xff, .plain = true};

static const struct codeflow_insn *insn_of(const struct codeflow *f, uint64_t at)
{
	uint64_t n;

	return idmap_get(&f->by_address, at, &n) ? &f->insns[n] : NULL;
}

/* 5. false: the frame's place is not known there. */
static bool frame_of(const struct codeflow_insn *i, struct callsite *out)
{
	static const uint8_t bases[] = {X86_RSP, X86_RBP};

	for (size_t k = 0; k < sizeof(bases); k++) {
		const struct codeflow_value *v = &i->regs[bases[k]];

		if (v->holds != CODEFLOW_FRAME)
			continue;
		out->base = bases[k];
		out->frame = -v->number;
		return true;
	}
	return false;
}

static int site_add(struct search *s, const struct callsite *c)
{
	for (size_t i = 0; i < s->out->n; i++)
		if (s->out->at[i].at == c->at)
			return memcmp(&s->out->at[i].value, &c->value, sizeof(c->value)) ?
				       -EBADMSG :
				       0;
	if (s->out->n == CALLSITES_MOST)
		return -ENOSPC;
	s->out->at[s->out->n++] = *c;
	return 0;
}

/* ---- 1 ---- */

static int begin_plain(struct search *s, uint64_t start)
{
	static const uint8_t endbr[ENDBR_BYTES] = {0xf3, 0x0f, 0x1e, 0xfa};
	struct callsite c = {.begins = true, .base = X86_RSP};
	uint8_t bytes[X86INSN_MAX + 1] = {0};
	struct x86insn x;
	size_t n = s->h->reader->read(s->h->reader->ctx, start, bytes);

	c.at = start;
	if (n >= ENDBR_BYTES && !memcmp(bytes, endbr, sizeof(endbr))) {
		c.at += ENDBR_BYTES;
		memset(bytes, 0, sizeof(bytes));
		n = s->h->reader->read(s->h->reader->ctx, c.at, bytes);
	}
	if (!x86insn_read(bytes, n, &x))
		return -EBADMSG;
	c.len = x.len;
	memcpy(c.bytes, bytes, sizeof(c.bytes));
	return site_add(s, &c);
}

/* Does the code there ask for more stack and begin again? */
static bool begins_again(const struct codeflow *f, uint64_t at)
{
	for (unsigned n = 0; n < AGAIN_MOST; n++) {
		const struct codeflow_insn *i = insn_of(f, at);

		if (!i)
			return false;
		if (i->effect.flow == X86_JMP && i->target == f->start)
			return true;
		if (i->effect.flow != X86_ON && i->effect.flow != X86_CALL &&
		    i->effect.flow != X86_JMP)
			return false;
		at = i->effect.flow == X86_JMP ? i->target : i->at + i->x.len;
	}
	return false;
}

static int begin_go(struct search *s, const struct codeflow *f)
{
	struct callsite c = {.begins = true};
	const struct codeflow_insn *i;
	struct tlscode_site t;

	if (!tlscode_entry(f, &RESULT, &t) || t.slow)
		return begin_plain(s, f->start);
	i = insn_of(f, t.at);
	if (!i || !frame_of(i, &c))
		return begin_plain(s, f->start);
	if (i->effect.flow == X86_JCC) {
		if (!begins_again(f, i->target))
			return begin_plain(s, f->start);
		c.when = TLSCODE_NOT_TAKEN;
		c.condition = t.condition;
	} else if (i->effect.flow != X86_ON) {
		return begin_plain(s, f->start);
	}
	c.at = t.at;
	c.len = t.len;
	memcpy(c.bytes, t.bytes, sizeof(c.bytes));
	return site_add(s, &c);
}

/* ---- 2 ---- */

/* Does control come back to it? */
static bool in_loop(const struct codeflow *f, const struct codeflow_insn *i)
{
	cleanup_free uint32_t *todo = mem_array(f->insn_count, sizeof(*todo));
	cleanup_free bool *seen = mem_array(f->insn_count, sizeof(*seen));
	const uint32_t self = (uint32_t)(i - f->insns);
	size_t n = 0;

	memset(seen, 0, f->insn_count * sizeof(*seen));
	todo[n++] = self;
	while (n) {
		const uint32_t at = todo[--n];

		for (uint32_t e = f->insns[at].before; e != CODEFLOW_NONE; e = f->edges[e].next) {
			const uint32_t from = f->edges[e].from;

			if (from == self)
				return true;
			if (seen[from])
				continue;
			seen[from] = true;
			todo[n++] = from;
		}
	}
	return false;
}

/* Repeated moves of memory, and what enters the kernel. */
static bool is_long(const struct codeflow_insn *i)
{
	const uint8_t op = i->x.opcode;
	const bool string = !i->x.map && ((op >= 0xa4 && op <= 0xa7) ||
					  (op >= 0xaa && op <= 0xaf) || (op >= 0x6c && op <= 0x6f));

	return string || (i->x.map == 1 && (op == 0x05 || op == 0x34 || op == 0xa2)) ||
	       (!i->x.map && (op == 0xcc || op == 0xcd || op == 0x9b));
}

/* From `at` on there is soon a `ret`. */
static bool returns_soon(const struct codeflow *f, uint64_t at)
{
	for (unsigned n = 0; n < CALLSITES_NEAR; n++) {
		const struct codeflow_insn *i = insn_of(f, at);

		if (!i || is_long(i))
			return false;
		if (i->effect.flow == X86_RET)
			return true;
		if (i->effect.flow != X86_ON && i->effect.flow != X86_JMP)
			return false;
		at = i->effect.flow == X86_JMP ? i->target : i->at + i->x.len;
	}
	return false;
}

static bool is_near(const struct codeflow *f, const struct codeflow_insn *i, uint8_t when)
{
	const uint64_t next = i->at + i->x.len;

	switch (i->effect.flow) {
	case X86_ON:
		return returns_soon(f, next);
	case X86_JMP:
		return returns_soon(f, i->target);
	case X86_JCC:
		return (when == TLSCODE_NOT_TAKEN || returns_soon(f, i->target)) &&
		       (when == TLSCODE_TAKEN || returns_soon(f, next));
	default:
		return false;
	}
}

static bool site_of(const struct codeflow *f, const struct tlscode_site *t, struct callsite *out)
{
	const struct codeflow_insn *i = insn_of(f, t->at);

	*out = (struct callsite){.at = t->at,
				 .len = t->len,
				 .when = t->when,
				 .condition = t->condition,
				 .value = {t->value[0], t->value[1]}};
	memcpy(out->bytes, t->bytes, sizeof(out->bytes));
	return i && !t->slow && is_near(f, i, t->when) && frame_of(i, out) && !in_loop(f, i);
}

/* false: not all ways out have one. */
static bool ways_cheap(const struct codeflow *f, const struct tlscode_found *found,
		       struct callsite *out)
{
	if (found->open || found->too_many || !found->result_count)
		return false;
	for (size_t k = 0; k < found->result_count; k++)
		if (!site_of(f, &found->results[k], &out[k]))
			return false;
	return true;
}

/* ---- 3 ---- */

static int ret_add(struct search *s, uint64_t at, const uint8_t *bytes, uint8_t len)
{
	struct callsite c = {.at = at,
			     .len = len,
			     .others = s->n > 1,
			     .base = X86_RSP,
			     .value = {{.kind = TLSCODE_REG, .reg = X86_RAX, .bytes = 8}}};

	memcpy(c.bytes, bytes, sizeof(c.bytes));
	return site_add(s, &c);
}

/* Is it part of an instruction that control reaches? Then decoding from the begin has lost its step
 * there, by data among the code. */
static bool is_part(const struct codeflow *f, uint64_t at, uint8_t len)
{
	if (insn_of(f, at))
		return false;
	for (size_t k = 0; k < f->insn_count; k++)
		if (f->insns[k].at < at + len && at < f->insns[k].at + f->insns[k].x.len)
			return true;
	return false;
}

static int rets_within(struct search *s, const struct codeflow *f, uint64_t start, uint64_t end)
{
	int rc = 0;

	for (uint64_t at = start; !rc && at < end;) {
		uint8_t bytes[X86INSN_MAX + 1] = {0};
		struct x86effect effect;
		struct x86insn x;
		size_t n = s->h->reader->read(s->h->reader->ctx, at, bytes);

		if (!x86insn_read(bytes, n, &x))
			return -EBADMSG;
		x86effect_of(bytes, &x, &effect);
		if (effect.flow == X86_RET && !is_part(f, at, x.len))
			rc = ret_add(s, at, bytes, x.len);
		at += x.len;
	}
	return rc;
}

/* In parts put aside, and where decoding had lost its step; the others are there already. */
static int rets_reached(struct search *s, const struct codeflow *f)
{
	int rc = 0;

	for (size_t k = 0; !rc && k < f->insn_count; k++) {
		const struct codeflow_insn *i = &f->insns[k];

		if (i->effect.flow == X86_RET)
			rc = ret_add(s, i->at, i->bytes, i->x.len);
	}
	return rc;
}

/* ---- 4 ---- */

static void function_add(struct search *s, uint64_t start)
{
	for (size_t i = 0; i < s->n; i++)
		if (s->functions[i] == start)
			return;
	if (!s->h->end_of(s->h->ctx, start) || s->n == CALLSITES_DEEP)
		s->out->unseen++;
	else
		s->functions[s->n++] = start;
}

static void leaves(struct search *s, const struct codeflow *f)
{
	for (size_t k = 0; k < f->insn_count; k++) {
		const struct codeflow_insn *i = &f->insns[k];

		if (i->effect.flow == X86_JMP_FAR && !i->table)
			s->out->unseen++;
		else if (i->effect.flow == X86_JMP && i->away && !insn_of(f, i->target))
			function_add(s, i->target);
	}
}

/* ---- the whole ---- */

static int function_find(struct search *s, uint64_t start, uint64_t end, bool first)
{
	cleanup_codeflow struct codeflow f = {.restarts = s->go};
	const bool good = codeflow_make(&f, s->h->reader, start, end);
	cleanup_free struct tlscode_found *found = mem_alloc(sizeof(*found));
	struct callsite cheap[TLSCODE_SITES_MAX];
	int rc = 0;

	if (first)
		rc = s->go && good ? begin_go(s, &f) : begin_plain(s, start);
	if (rc || !good)
		return rc ? rc : -EBADMSG;
	tlscode_find(&f, &RESULT, found);
	if (ways_cheap(&f, found, cheap)) {
		for (size_t k = 0; !rc && k < found->result_count; k++) {
			cheap[k].others = !first;
			rc = site_add(s, &cheap[k]);
		}
	} else {
		rc = rets_within(s, &f, start, end);
		if (!rc)
			rc = rets_reached(s, &f);
	}
	leaves(s, &f);
	return rc;
}

int callsites_find(const struct callsites_host *h, uint64_t start, uint64_t end, bool go,
		   struct callsites *out)
{
	struct search s = {.h = h, .out = out, .functions = {start}, .n = 1, .go = go};
	int rc;

	*out = (struct callsites){0};
	rc = function_find(&s, start, end, true);
	for (size_t i = 1; !rc && i < s.n; i++)
		rc = function_find(&s, s.functions[i], h->end_of(h->ctx, s.functions[i]), false);
	return rc;
}
