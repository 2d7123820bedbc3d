/* SPDX-License-Identifier: Apache-2.0 */
/* ruby: see the header. */
#include "loaders/lib/runtimes/ruby.h"

#include <stdlib.h>
#include <string.h>

#include "loaders/lib/runtimes/chunks.h"
#include "loaders/lib/runtimes/rubycode.h"
#include "probes/runtimes/ruby.h"
#include "schema/base/mem.h"

#define STEPS_MAX   4096
#define THREADS_MAX 32768
#define MODULES_MAX 4096 /* with thread-local variables */
#define DTV         8    /* of fs_base: the table of thread-local blocks */

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

static bool word(const struct ruby *r, uint64_t addr, uint64_t *value)
{
	return runtime_word(&r->memory.counted, addr, value);
}

struct ruby *ruby_open(const struct runtime_memory *m, const void *section, size_t size, uint64_t bias)
{
	struct ruby_layout l;
	struct ruby *r;

	if (size != sizeof(l))
		return NULL;
	memcpy(&l, section, sizeof(l));
	if (l.format != RUBY_FORMAT)
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

/* ---- the thread's context ---- */

static bool is_context(const struct ruby *r, uint64_t ec)
{
	uint64_t thread = 0, same = 0;

	return ec && !(ec & 7) && word(r, ec + r->layout.ec_thread, &thread) && thread && word(r, thread + r->layout.thread_ec, &same) && same == ec;
}

/* By the thread-local variable. glibc's table has two words for a module, musl's one. */
static bool context_local(const struct ruby *r, uint64_t fs_base, uint64_t *ec)
{
	const struct ruby_layout *l = &r->layout;
	uint64_t module = 0, offset = 0, table = 0, block = 0;

	if (!l->tls_slot)
		return word(r, fs_base + (uint64_t)l->tls_offset, ec) && is_context(r, *ec);
	if (!word(r, l->tls_slot + r->bias, &module) || !word(r, l->tls_slot + r->bias + 8, &offset) || !module || module > MODULES_MAX ||
	    !word(r, fs_base + DTV, &table))
		return false;
	for (unsigned words = 2; words; words--)
		if (word(r, table + module * 8 * words, &block) && word(r, block + offset, ec) && is_context(r, *ec))
			return true;
	return false;
}

/* 2.7: by the list of threads, whose head is in the VM. */
static bool context_listed(const struct ruby *r, uint64_t fs_base, uint64_t *ec)
{
	const struct ruby_layout *l = &r->layout;
	uint64_t vm = 0, head, node = 0;

	if (!word(r, l->vm + r->bias, &vm))
		return false;
	head = vm + l->vm_threads;
	if (!word(r, head, &node))
		return false;
	for (int i = 0; i < THREADS_MAX && node != head; i++) {
		uint64_t id = 0;

		if (word(r, node - l->thread_node + l->thread_id, &id) && id == fs_base)
			return word(r, node - l->thread_node + l->thread_ec, ec) && is_context(r, *ec);
		if (!word(r, node, &node))
			return false;
	}
	return false;
}

/* ---- walking ---- */

struct raw {
	uint64_t iseq, at, env;
};

struct raws {
	struct raw frames[SCRIPT_STACK_MAX];
	uint32_t chunk[SCRIPT_STACK_MAX];
	size_t n;
	uint32_t chunks;
	bool cut, full;
};

static void walk(struct ruby *r, uint64_t ec, struct raws *f)
{
	struct ruby_walk w = {.ctx = &r->memory.counted};
	enum ruby_step step = RUBY_FAULT;
	size_t whole = 0;

	for (int i = ruby_begin(&w, &r->layout, ec) ? STEPS_MAX : 0; i < STEPS_MAX; i++) {
		bool c;

		step = ruby_next(&w, &r->layout);
		if (step == RUBY_END || step == RUBY_FAULT)
			break;
		c = w.flags & RUBY_FLAG_C;
		if ((!c && w.iseq && w.at) || (w.flags & RUBY_MAGIC_MASK) == RUBY_MAGIC_C) {
			f->full = f->n == SCRIPT_STACK_MAX;
			if (f->full)
				break;
			f->chunk[f->n] = f->chunks;
			f->frames[f->n++] = (struct raw){c ? 0 : w.iseq, w.at, w.env};
		}
		if (step == RUBY_CLOSES) {
			f->chunks++;
			whole = f->n;
		}
	}
	f->cut |= step != RUBY_END;
	if (!f->full && step != RUBY_END) /* what does not close has no place; functions of C that no script called come last */
		f->n = whole;
}

static void tell(const struct ruby *r, const struct raws *f, const size_t *at, struct script_stack *out)
{
	const struct rubycode code = {.m = &r->memory.counted, .l = &r->layout, .bias = r->bias};

	for (size_t i = 0; i < f->n; i++) {
		const struct raw *raw = &f->frames[i];
		struct script_place place = {0};

		if (raw->iseq && !rubycode_iseq(&code, raw->iseq, raw->at, raw->env, &place)) {
			out->cut = true;
			return;
		}
		if (raw->iseq || rubycode_method(&code, raw->env, &place)) /* the native frame of a function of C is there all the same */
			script_stack_add(out, at[i])->place = place;
	}
}

void ruby_stack(struct ruby *r, const struct runtime_native *native, struct script_stack *out)
{
	static struct raws f; /* too large for a stack; one thread walks */
	const struct chunks_loop loop = {r->layout.loop_start, r->layout.loop_end, RUBY_RANGES, r->bias};
	size_t at[SCRIPT_STACK_MAX];
	uint64_t ec = 0;

	runtime_budget_fresh(&r->memory);
	f.n = f.chunks = 0;
	f.cut = f.full = false;
	if (!native->fs_base || !native->n ||
	    !(r->layout.vm ? context_listed(r, native->fs_base, &ec) : context_local(r, native->fs_base, &ec)))
		return;
	walk(r, ec, &f);
	chunks_place(&loop, native, f.chunk, f.n, f.chunks, f.full, at);
	out->cut |= f.cut;
	tell(r, &f, at, out);
}
