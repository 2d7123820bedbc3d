/* SPDX-License-Identifier: Apache-2.0 */
#include "loaders/lib/runtimes/perl/perl.h"

#include <stdlib.h>
#include <string.h>

#include "loaders/lib/runtimes/chunks.h"
#include "loaders/lib/runtimes/perl/perlcode.h"
#include "probes/runtimes/perl.h"
#include "schema/base/mem.h"

#define STEPS_MAX 8192

struct perl {
	struct runtime_budget memory;
	struct perl_layout layout;
	uint64_t bias;
};

static int perl_read(struct perl_walk *w, __u64 addr, __u64 *value)
{
	uint64_t word = 0;

	if (!runtime_word(w->ctx, addr, &word))
		return -1;
	*value = word;
	return 0;
}

struct perl *perl_open(const struct runtime_memory *m, const void *section, size_t size,
		       uint64_t bias)
{
	struct perl_layout l;
	struct perl *p;

	if (!runtime_layout_take(&l, sizeof(l), PERL_FORMAT, section, size))
		return NULL;
	p = mem_alloc(sizeof(*p));
	*p = (struct perl){.layout = l, .bias = bias};
	runtime_budget_begin(&p->memory, m);
	return p;
}

void perl_close(struct perl *p)
{
	free(p);
}

/* ---- walking ---- */

/* A frame as it was walked. */
struct raw {
	uint64_t cv, file;
	uint32_t kind, line;
};

struct raws {
	struct raw frames[SCRIPT_STACK_MAX];
	struct chunks chunks;
	bool cut;
};

static void walk(struct perl *p, uint64_t fs_base, struct raws *r)
{
	struct perl_walk w = {.ctx = &p->memory.counted};
	enum perl_step step = PERL_FAULT;

	if (perl_begin(&w, &p->layout, p->bias, fs_base))
		return;
	for (int i = 0; i < STEPS_MAX; i++) {
		step = perl_next(&w);
		if (step == PERL_END || step == PERL_FAULT || (w.kind && !chunks_add(&r->chunks)))
			break;
		if (w.kind)
			r->frames[r->chunks.n - 1] = (struct raw){
				w.cv, w.kind == PERL_SUB ? 0 : perl_file(&w, &p->layout), w.kind,
				perl_line(&w)};
		if (step == PERL_CLOSES)
			chunks_close(&r->chunks);
	}
	r->cut = step != PERL_END;
	chunks_end(&r->chunks, step == PERL_END);
}

void perl_stack(struct perl *p, const struct runtime_native *native, struct script_stack *out)
{
	static struct raws r; /* too large for a stack; one thread walks */
	const struct chunks_loop loop = {p->layout.loop_start, p->layout.loop_end, PERL_RANGES,
					 p->bias};
	const struct perlcode code = {.m = &p->memory.counted, .l = &p->layout};
	size_t at[SCRIPT_STACK_MAX];

	runtime_budget_fresh(&p->memory);
	r.chunks = (struct chunks){0};
	r.cut = false;
	if (!native->fs_base || !native->n || (!p->layout.key && !chunks_in_loop(&loop, native)))
		return;
	walk(p, native->fs_base, &r);
	chunks_place(&r.chunks, &loop, native, at);
	out->cut |= r.cut;
	for (size_t i = 0; i < r.chunks.n; i++) {
		const struct raw *f = &r.frames[i];
		struct script_place place = {.line = f->line};

		if (!perlcode_read(&code, f->kind, f->cv, f->file, &place)) {
			out->cut |= f->kind == PERL_SUB;
			continue;
		}
		script_stack_add(out, at[i])->place = place;
	}
}
