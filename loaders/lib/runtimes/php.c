/* SPDX-License-Identifier: Apache-2.0 */
#include "loaders/lib/runtimes/php.h"

#include <stdlib.h>
#include <string.h>

#include "loaders/lib/runtimes/chunks.h"
#include "loaders/lib/runtimes/phpcode.h"
#include "probes/runtimes/php.h"
#include "schema/base/mem.h"

#define STEPS_MAX 4096

struct php {
	struct runtime_budget memory;
	struct php_layout layout;
	uint64_t bias;
};

static int php_read(struct php_walk *w, __u64 addr, __u64 *value)
{
	uint64_t word = 0;

	if (!runtime_word(w->ctx, addr, &word))
		return -1;
	*value = word;
	return 0;
}

struct php *php_open(const struct runtime_memory *m, const void *section, size_t size,
		     uint64_t bias)
{
	struct php_layout l;
	struct php *p;

	if (!runtime_layout_take(&l, sizeof(l), PHP_FORMAT, section, size))
		return NULL;
	p = mem_alloc(sizeof(*p));
	*p = (struct php){.layout = l, .bias = bias};
	runtime_budget_begin(&p->memory, m);
	return p;
}

void php_close(struct php *p)
{
	free(p);
}

/* ---- walking ---- */

/* A frame as it was walked. */
struct raw {
	uint64_t func;
	uint32_t type, line;
	bool outermost;
};

struct raws {
	struct raw frames[SCRIPT_STACK_MAX];
	struct chunks chunks;
	bool cut;
};

static void walk(struct php *p, struct raws *r)
{
	struct php_walk w = {.ctx = &p->memory.counted};
	enum php_step step = PHP_FAULT;

	for (int i = php_begin(&w, &p->layout, p->layout.globals + p->bias) ? STEPS_MAX : 0;
	     i < STEPS_MAX; i++) {
		step = php_next(&w, &p->layout);
		if (step == PHP_END || step == PHP_FAULT || (w.type && !chunks_add(&r->chunks)))
			break;
		if (w.type)
			r->frames[r->chunks.n - 1] = (struct raw){w.func, w.type, w.line, !w.next};
		if (step == PHP_CLOSES)
			chunks_close(&r->chunks);
	}
	r->cut = step != PHP_END || w.cut;
	chunks_end(&r->chunks, step == PHP_END);
}

/* 1. of the header */
static bool is_its_thread(const struct php *p, const struct chunks_loop *loop,
			  const struct runtime_native *n)
{
	return chunks_in_loop(loop, n) ||
	       (p->layout.program && !n->complete && n->tid && n->tid == n->tgid);
}

void php_stack(struct php *p, const struct runtime_native *native, struct script_stack *out)
{
	static struct raws r; /* too large for a stack; one thread walks */
	const struct chunks_loop loop = {p->layout.loop_start, p->layout.loop_end, PHP_RANGES,
					 p->bias};
	const struct phpcode code = {.m = &p->memory.counted, .l = &p->layout};
	size_t at[SCRIPT_STACK_MAX];

	runtime_budget_fresh(&p->memory);
	r.chunks = (struct chunks){0};
	if (!is_its_thread(p, &loop, native))
		return;
	walk(p, &r);
	chunks_place(&r.chunks, &loop, native, at);
	out->cut |= r.cut;
	for (size_t i = 0; i < r.chunks.n; i++) {
		struct script_place place = {.line = r.frames[i].line};

		if (!phpcode_read(&code, r.frames[i].func, r.frames[i].type, r.frames[i].outermost,
				  &place)) {
			if (r.frames[i].type == PHP_INTERNAL)
				continue; /* a fiber's own has no name */
			out->cut = true;
			break;
		}
		script_stack_add(out, at[i])->place = place;
	}
}
