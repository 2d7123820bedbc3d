/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * runtime.bpf: frames of scripts in the walk of a user stack (unwind.bpf.h). When the walk comes to
 * the first frame of a file that holds an interpreter, the thread's script frames are walked too, a
 * chunk at a time (python.h, 3), and emitted after the native frame that they belong to. The
 * language's own part is in NAME.bpf.h; frames and records for the loader are defined in runtime.h.
 *
 * A runtime is three global functions of NAME.bpf.h: NAME_start finds the thread's script frames,
 * NAME_pop walks some, NAME_meet copies what names an object that is met for the first time;
 * NAME.bpf.h also says which native frames belong to its loop. Each function has one scalar
 * argument and finds its state in a per-CPU map, so that the verifier checks each separately.
 * `runtimes_on` and `runtime_kinds` are constants of the program: what they leave out the verifier
 * does not follow.
 */
#ifndef SONDE_PROBES_RUNTIMES_RUNTIME_BPF_H
#define SONDE_PROBES_RUNTIMES_RUNTIME_BPF_H

#include "probes/runtimes/perl.bpf.h"
#include "probes/runtimes/php.bpf.h"
#include "probes/runtimes/python.bpf.h"
#include "probes/runtimes/ruby.bpf.h"
#include "probes/runtimes/script.bpf.h"

/* The functions of the runtimes. */
#define SCRIPT_OF(kind, what, i)                       \
	((kind) == RUNTIME_PYTHON ? python_##what(i) : \
	 (kind) == RUNTIME_PHP    ? php_##what(i) :    \
	 (kind) == RUNTIME_RUBY   ? ruby_##what(i) :   \
	 (kind) == RUNTIME_PERL   ? perl_##what(i) :   \
				    0)

/* The walk has come to an interpreter. */
__noinline int script_begin(__u32 unused)
{
	struct script_walk *w = script_walk();
	struct stack_scratch *s = script_stack();
	struct tables_runtime *r;
	__u32 i;

	SCRIPT_USED(unused);
	if (!w || !s)
		return 0;
	s->unwind.script = SCRIPT_OVER;
	if (s->unwind.script_free &&
	    !unwind_place(&s->unwind,
			  mappings_at(s->unwind.slice_first + s->unwind.script_home - 1)))
		return 0;
	i = w->runtime = s->unwind.map_runtime;
	w->image = s->unwind.map_image;
	w->n = w->at = w->several = w->loops = w->deep = 0;
	w->window_bytes = w->near_bytes = 0;
	w->of = 0;
	w->what = 0;
	w->tally.walks++; /* its low half tells this walk from others of its CPU */
	r = bpf_map_lookup_elem(&runtimes, &i);
	if (!r)
		return 0;
	w->kind = s->unwind.script_kind = r->kind;
	w->bias = -(s->unwind.map_row + r->text_base);
	w->now_ns = s->ev.time_ns;
	w->key.start_ns = s->ev.start_ns;
	w->key.tgid = s->ev.tgid;
	w->key.exec_id = s->ev.exec_id;
	return r->kind;
}

/* Does the native frame that was said last lie in the interpreter's loop? */
static __always_inline bool script_in_loop(const struct script_walk *w, __u64 pc)
{
	__u32 i = w->runtime;
	struct tables_runtime *r = bpf_map_lookup_elem(&runtimes, &i);

	if (!r)
		return false;
	if (r->kind == RUNTIME_PYTHON)
		return python_in_loop(&r->python, pc - w->bias);
	if (r->kind == RUNTIME_PHP)
		return php_in_loop(&r->php, pc - w->bias);
	if (r->kind == RUNTIME_PERL)
		return perl_in_loop(&r->perl, pc - w->bias);
	return r->kind == RUNTIME_RUBY && ruby_in_loop(&r->ruby, pc - w->bias);
}

enum script_place { SCRIPT_LATER, SCRIPT_HERE, SCRIPT_NOWHERE };

static __always_inline enum script_place script_place_marked(const struct script_walk *w,
							     const struct unwind *u)
{
	if (u->script_rest)
		return w->python.mark >= u->sp ? SCRIPT_HERE : SCRIPT_NOWHERE;
	if (w->python.mark < u->script_sp)
		return SCRIPT_NOWHERE;
	return w->python.mark < u->sp ? SCRIPT_HERE : SCRIPT_LATER;
}

/* PHP's frames are of the process's only thread that runs scripts: the one that is in the loop; or
 * the first, where machine code of the JIT ends its native stack. Those of Perl without threads are
 * of the one in the loop, too. */
static __always_inline bool script_is_its_thread(const struct script_walk *w,
						 const struct stack_scratch *s)
{
	struct tables_runtime *r;

	if ((w->kind != RUNTIME_PHP && w->kind != RUNTIME_PERL) || w->loops)
		return true;
	if (w->kind == RUNTIME_PERL) {
		r = script_layout(w, RUNTIME_PERL);
		return r && r->perl.key;
	}
	r = script_layout(w, RUNTIME_PHP);
	return r && r->php.program && s->ev.tid == s->ev.tgid && s->unwind.end != STACK_END_ROOT;
}

/* Does the native frame that was said last hold the chunk at hand? */
static __always_inline enum script_place script_place(struct script_walk *w,
						      const struct stack_scratch *s)
{
	const struct unwind *u = &s->unwind;

	if (w->deep)
		return SCRIPT_HERE;
	if (w->by == SCRIPT_BY_MARK)
		return script_place_marked(w, u);
	if (u->script_rest)
		return script_is_its_thread(w, s) ? SCRIPT_HERE : SCRIPT_NOWHERE;
	if (u->script_said || !script_in_loop(w, u->script_pc))
		return SCRIPT_LATER;
	w->loops++;
	return SCRIPT_HERE;
}

/* Some frames of the current chunk, if it belongs here. 0: a native one is next. */
__noinline int script_say(__u32 unused)
{
	struct script_walk *w = script_walk();
	struct stack_scratch *s = script_stack();
	enum script_place place;

	SCRIPT_USED(unused);
	if (!w || !s)
		return 0;
	place = w->at ? SCRIPT_HERE : script_place(w, s);
	if (place == SCRIPT_LATER)
		return 0;
	if (place == SCRIPT_HERE) {
		for (int i = 0; i < SCRIPT_SAYS && w->at < w->n && s->unwind.n < STACK_USER_MAX;
		     i++) {
			unwind_emit(&s->unwind, w->words[w->at & (SCRIPT_FRAMES - 1)]);
			w->tally.frames++;
			w->at++;
		}
	} else {
		script_miss(w, SCRIPT_NO_PLACE);
		w->at = w->n;
	}
	if (w->at >= w->n) {
		s->unwind.script_said = place == SCRIPT_HERE;
		s->unwind.script_deep = w->deep;
		w->n = w->at = 0;
		s->unwind.script = w->deep ? SCRIPT_OVER : SCRIPT_POP;
	}
	return 1;
}

/* Of the process whose stack was walked last: is the futex its interpreter's lock? */
__noinline int script_is_lock(__u64 futex)
{
	struct script_walk *w = script_walk();
	struct stack_scratch *s = script_stack();
	struct tables_runtime *r =
		w && s && s->unwind.script != SCRIPT_OFF ? script_layout(w, RUNTIME_PYTHON) : NULL;

	return r ? python_is_gil(w, &r->python, futex) : 0;
}

/* ---- called by the walk ---- */

static __always_inline bool script_is_next(const struct unwind *u)
{
	return u->script - SCRIPT_BEGIN <= SCRIPT_SAY - SCRIPT_BEGIN;
}

/* A step of the script's. 0: a native frame is next. */
static __always_inline int script_step(struct unwind *u, __u32 i)
{
	__u32 kind;

	if (u->n >= STACK_USER_MAX)
		return 0;
	if (u->script == SCRIPT_SAY)
		return script_say(i);
	if (u->script == SCRIPT_BEGIN) {
		script_begin(i);
		kind = u->script_kind;
		SCRIPT_OF(kind, start, i);
		return 1;
	}
	kind = u->script_kind;
	if (u->script == SCRIPT_POP)
		SCRIPT_OF(kind, pop, i);
	else
		SCRIPT_OF(kind, meet, i);
	return 1;
}

/* A native frame is next. */
static __always_inline void script_native(struct unwind *u)
{
	u->script_sp = u->sp;
	u->script_pc = u->pc - !u->exact;
	u->script_said = 0;
}

/* It was said. Machine code that PHP and Ruby make for hot functions leads to no caller: the native
 * frames end there, before the interpreter's file is met. */
static __always_inline int script_after(struct unwind *u, int more)
{
	if (u->script == SCRIPT_OFF && u->map_runtime && u->map_image &&
	    u->map_state == TABLES_IMAGE_READY)
		u->script = SCRIPT_BEGIN;
	if (!more && u->script_home && u->map_state == TABLES_IMAGE_FREE) {
		u->script_free = 1;
		if (u->script == SCRIPT_OFF)
			u->script = SCRIPT_BEGIN;
	}
	if (more || u->script == SCRIPT_OFF || u->script == SCRIPT_OVER ||
	    (u->end == STACK_END_ROOT && u->script_kind == RUNTIME_PYTHON))
		return more;
	u->script_rest = 1;
	return 1;
}

#endif
