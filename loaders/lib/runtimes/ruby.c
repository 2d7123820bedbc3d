/* SPDX-License-Identifier: Apache-2.0 */
#include "loaders/lib/runtimes/ruby.h"

#include <stdlib.h>
#include <string.h>

#include "loaders/lib/runtimes/chunks.h"
#include "loaders/lib/runtimes/rubycode.h"
#include "probes/runtimes/ruby.h"
#include "schema/base/mem.h"

#define STEPS_MAX   4096
#define THREADS_MAX 32768

struct ruby {
	struct runtime_budget memory;
	struct ruby_layout layout;
	uint64_t bias;
};

static int ruby_read(struct ruby_walk *w, __u64 addr, __u64 *value)
{
	uint64_t got = 0;

	if (!runtime_word(w->ctx, addr, &got))
		return -1;
	*value = got;
	return 0;
}

struct ruby *ruby_open(const struct runtime_memory *m, const void *section, size_t size,
		       uint64_t bias)
{
	struct ruby_layout l;
	struct ruby *r;

	if (!runtime_layout_take(&l, sizeof(l), RUBY_FORMAT, section, size))
		return NULL;
	r = mem_alloc(sizeof(*r));
	*r = (struct ruby){.layout = l, .bias = bias};
	runtime_budget_begin(&r->memory, m);
	return r;
}

void ruby_close(struct ruby *r)
{
	free(r);
}

/* The thread's context; 0: it has none. */
static uint64_t context_find(struct ruby *r, uint64_t fs_base)
{
	struct ruby_walk w = {.ctx = &r->memory.counted};

	if (!r->layout.vm)
		return ruby_context_local(&w, &r->layout, r->bias, fs_base);
	if (!ruby_search_begin(&w, &r->layout, r->bias))
		return 0;
	for (int i = 0; i < THREADS_MAX && ruby_search(&w, &r->layout, fs_base); i++)
		;
	return w.thread ? ruby_context_of(&w, &r->layout, w.thread, fs_base) : 0;
}

/* ---- walking ---- */

struct raw {
	uint64_t iseq, at, method; /* iseq 0: a function of C */
};

struct raws {
	struct raw frames[SCRIPT_STACK_MAX];
	struct chunks chunks;
	bool cut;
};

static struct raw raw_of(struct ruby_walk *w, const struct ruby_layout *l)
{
	if (!ruby_is_script(w))
		return (struct raw){.method = ruby_method_of(w, w->env)};
	ruby_around_begin(w);
	for (int i = 0; l->class_path && i < RUBY_ENVS && ruby_around(w); i++)
		;
	return (struct raw){w->iseq, w->at, w->method};
}

static void walk(struct ruby *r, uint64_t ec, struct raws *f)
{
	struct ruby_walk w = {.ctx = &r->memory.counted};
	enum ruby_step step = RUBY_FAULT;

	for (int i = ruby_begin(&w, &r->layout, ec) ? STEPS_MAX : 0; i < STEPS_MAX; i++) {
		step = ruby_next(&w, &r->layout);
		if (step == RUBY_END || step == RUBY_FAULT)
			break;
		if (ruby_is_script(&w) || ruby_is_native(&w)) {
			if (!chunks_add(&f->chunks))
				break;
			f->frames[f->chunks.n - 1] = raw_of(&w, &r->layout);
		}
		if (step == RUBY_CLOSES)
			chunks_close(&f->chunks);
	}
	f->cut = step != RUBY_END;
	chunks_end(&f->chunks, step == RUBY_END);
}

static void tell(const struct ruby *r, const struct raws *f, const size_t *at,
		 struct script_stack *out)
{
	const struct rubycode code = {.m = &r->memory.counted, .l = &r->layout, .bias = r->bias};

	for (size_t i = 0; i < f->chunks.n; i++) {
		const struct raw *raw = &f->frames[i];
		struct script_place place = {0};

		if (raw->iseq && !rubycode_iseq(&code, raw->iseq, raw->at, raw->method, &place)) {
			out->cut = true;
			return;
		}
		/* the native frame of a function of C is there all the same */
		if (raw->iseq || rubycode_method(&code, raw->method, &place))
			script_stack_add(out, at[i])->place = place;
	}
}

void ruby_stack(struct ruby *r, const struct runtime_native *native, struct script_stack *out)
{
	static struct raws f; /* too large for a stack; one thread walks */
	const struct chunks_loop loop = {r->layout.loop_start, r->layout.loop_end, RUBY_RANGES,
					 r->bias};
	size_t at[SCRIPT_STACK_MAX];
	uint64_t ec;

	runtime_budget_fresh(&r->memory);
	f.chunks = (struct chunks){0};
	ec = native->fs_base && native->n ? context_find(r, native->fs_base) : 0;
	if (!ec)
		return;
	walk(r, ec, &f);
	chunks_place(&f.chunks, &loop, native, at);
	out->cut |= f.cut;
	tell(r, &f, at, out);
}
