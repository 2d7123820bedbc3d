/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * runtime.bpf: frames of scripts in the walk of a user stack (unwind.bpf.h). When the walk comes to the first
 * frame of a file that holds an interpreter, the thread's script frames are walked too, a chunk at a time (python.h, 3), and said
 * behind the native frame that they stand for. What is the language's own stands in NAME.bpf.h; the words, and what goes to
 * the loader, in runtime.h.
 *
 * Each step is a global function with one scalar argument, and finds its state in a per-CPU map; `runtimes_on` is a constant of the
 * program: where it is false the verifier sees none of this.
 */
#ifndef SONDE_PROBES_RUNTIMES_RUNTIME_BPF_H
#define SONDE_PROBES_RUNTIMES_RUNTIME_BPF_H

#include "probes/runtimes/python.bpf.h"
#include "probes/runtimes/script.bpf.h"

/* Names of the object at hand go to the loader, with an id that is not known to anybody yet. 0: there was no room; -1: it is no object of
 * the kind that it should be. */
__noinline int script_take(__u32 runtime)
{
	__u32 zero = 0, cpu = bpf_get_smp_processor_id(), size;
	struct script_names *out = bpf_map_lookup_elem(&names_scratch, &zero);
	struct script_walk *w = script_walk();
	struct tables_runtime *r = bpf_map_lookup_elem(&runtimes, &runtime);
	__u64 flags = bpf_ringbuf_query(&names, BPF_RB_AVAIL_DATA) > names_bytes / 2 ? BPF_RB_FORCE_WAKEUP : BPF_RB_NO_WAKEUP;

	if (!out || !w || !r || cpu >= 1024 || w->next_id >= (1u << 22) - 1)
		return 0;
	out->key = w->key;
	out->id = (w->next_id + 1) << 10 | cpu;
	out->image = w->image;
	out->bias = w->bias;
	out->time_ns = bpf_ktime_get_boot_ns();
	bpf_probe_read_kernel(&out->layout, sizeof(out->layout), r);
	if (!python_is_code(w->key.object, w->bias, &r->python))
		return -1;
	size = python_take(out, &r->python);
	if (size > SCRIPT_LINES_BYTES)
		size = SCRIPT_LINES_BYTES;
	if (bpf_ringbuf_output(&names, out, __builtin_offsetof(struct script_names, data) + SCRIPT_LINES_AT + size, flags))
		return 0;
	w->next_id++;
	w->tally.taken++;
	return (int)out->id;
}

/* ---- phases ---- */

static __always_inline void script_end(struct script_walk *w, struct unwind *u, __u32 why)
{
	script_miss(w, why);
	w->n = w->at = 0;
	u->script = SCRIPT_OVER;
}

/* The frame at hand has its word: it is the chunk's next. false: the chunk is whole. */
static __always_inline bool script_add(struct script_walk *w, struct unwind *u, __u32 id)
{
	__u32 n = w->n;

	w->words[n & (SCRIPT_FRAMES - 1)] = w->word | (__u64)id << SCRIPT_POSITION_BITS;
	w->n = n + 1;
	u->script = w->step == PYTHON_FRAME ? SCRIPT_POP : SCRIPT_SAY;
	return w->step == PYTHON_FRAME;
}

/* Pops a frame of the chunk at hand; false: something else is next. */
static __always_inline bool script_pop_one(struct script_walk *w, struct unwind *u, const struct python_layout *l)
{
	__u32 *known;

	w->step = python_next(&w->python, l);
	if (w->step == PYTHON_SHIM) {
		if (w->n)
			u->script = SCRIPT_SAY;
		return !w->n;
	}
	if (w->step > PYTHON_CLOSES || w->n >= SCRIPT_FRAMES || !python_object(w, l)) {
		script_end(w, u, w->step == PYTHON_END && !w->n ? SCRIPT_WHOLE : w->n >= SCRIPT_FRAMES ? SCRIPT_DEEP : SCRIPT_FAULT);
		return false;
	}
	w->word = FRAME_SCRIPT | (__u64)RUNTIME_PYTHON << SCRIPT_KIND_SHIFT | python_position(w, l);
	known = bpf_map_lookup_elem(&objects, &w->key);
	if (known)
		return script_add(w, u, *known);
	u->script = SCRIPT_TAKE;
	return false;
}

/* Pops some. */
__noinline int script_pop(__u32 unused)
{
	struct script_walk *w = script_walk();
	struct stack_scratch *s = script_stack();
	struct tables_runtime *r;

	asm volatile("" ::"r"(unused)); /* else the compiler does not pass it, and the verifier wants it */
	if (!w || !s)
		return 0;
	r = script_layout(w);
	if (!r) {
		script_end(w, &s->unwind, SCRIPT_FAULT);
		return 0;
	}
	for (int i = 0; i < SCRIPT_POPS; i++)
		if (!script_pop_one(w, &s->unwind, &r->python))
			break;
	return 0;
}

/* The object at hand is met for the first time. */
__noinline int script_meet(__u32 unused)
{
	struct script_walk *w = script_walk();
	struct stack_scratch *s = script_stack();
	__u32 id;

	asm volatile("" ::"r"(unused)); /* else the compiler does not pass it, and the verifier wants it */
	if (!w || !s)
		return 0;
	id = (__u32)script_take(w->runtime);
	if (id == (__u32)-1) {
		script_end(w, &s->unwind, SCRIPT_FAULT);
		return 0;
	}
	if (id)
		bpf_map_update_elem(&objects, &w->key, &id, BPF_NOEXIST); /* where another CPU was first, both ids are right */
	else
		script_miss(w, SCRIPT_UNNAMED);
	script_add(w, &s->unwind, id);
	return 0;
}

/* The thread's state is looked for: one thread or interpreter further. 0: that was the last. */
__noinline int script_search(__u32 unused)
{
	struct script_walk *w = script_walk();
	struct stack_scratch *s = script_stack();
	struct tables_runtime *r = w ? script_layout(w) : NULL;

	asm volatile("" ::"r"(unused)); /* else the compiler does not pass it, and the verifier wants it */
	return r && s ? python_search(w, &r->python, s->unwind.fs_base) : 0;
}

static __always_inline struct script_thread *script_thread_at(const struct stack_scratch *s)
{
	__u32 i = script_mix(s->unwind.fs_base, s->ev.tgid) >> 40 & (SCRIPT_THREADS - 1);

	return bpf_map_lookup_elem(&script_threads, &i);
}

/* The state of the thread at hand; 0: it has none. */
static __always_inline __u64 script_thread(struct script_walk *w, struct stack_scratch *s, struct tables_runtime *r)
{
	struct script_thread *t = script_thread_at(s);
	bool known = t && t->fs_base == s->unwind.fs_base && t->tgid == s->ev.tgid;
	__u64 state = known ? t->state : 0;

	if (state && python_is_thread(w, &r->python, state, s->unwind.fs_base))
		return state;
	if (known && !state && s->ev.time_ns < t->until_ns)
		return 0;
	if (!python_search_begin(w, &r->python))
		return 0;
	for (int i = 0; i < SCRIPT_SEARCH; i++)
		if (!script_search(i))
			break;
	if (!t)
		return w->found;
	t->fs_base = s->unwind.fs_base;
	t->tgid = s->ev.tgid;
	t->until_ns = s->ev.time_ns + SCRIPT_NONE_NS;
	t->state = w->found;
	return w->found;
}

/* The walk has come to an interpreter. */
__noinline int script_begin(__u32 unused)
{
	struct script_walk *w = script_walk();
	struct stack_scratch *s = script_stack();
	struct tables_runtime *r;
	__u64 state;

	asm volatile("" ::"r"(unused)); /* else the compiler does not pass it, and the verifier wants it */
	if (!w || !s)
		return 0;
	s->unwind.script = SCRIPT_OVER;
	w->runtime = s->unwind.map_runtime;
	w->image = s->unwind.map_image;
	w->n = w->at = w->several = 0;
	w->window_bytes = 0;
	w->tally.walks++;
	r = script_layout(w);
	if (!r)
		return 0;
	w->mode = r->python.shape;
	w->bias = -(s->unwind.map_row + r->text_base);
	w->key.start_ns = s->ev.start_ns;
	w->key.tgid = s->ev.tgid;
	w->key.exec_id = s->ev.exec_id;
	state = script_thread(w, s, r);
	if (!state || (w->several && w->mode == PYTHON_OBJECTS)) {
		script_miss(w, SCRIPT_NO_THREAD);
		return 0;
	}
	if (python_begin(&w->python, &r->python, state))
		script_miss(w, SCRIPT_FAULT);
	else
		s->unwind.script = SCRIPT_POP;
	if (!w->python.next) { /* what is kept of the thread may be a state that it has no more: it is looked for again */
		struct script_thread *t = script_thread_at(s);

		if (t)
			t->fs_base = 0;
	}
	return 0;
}

enum script_place { SCRIPT_LATER, SCRIPT_HERE, SCRIPT_NOWHERE };

/* Does the native frame that was said last hold the chunk at hand? */
static __always_inline enum script_place script_place(struct script_walk *w, const struct unwind *u)
{
	struct tables_runtime *r;

	if (w->mode != PYTHON_OBJECTS) {
		if (u->script_rest)
			return w->python.mark >= u->sp ? SCRIPT_HERE : SCRIPT_NOWHERE;
		if (w->python.mark < u->script_sp)
			return SCRIPT_NOWHERE;
		return w->python.mark < u->sp ? SCRIPT_HERE : SCRIPT_LATER;
	}
	if (u->script_rest)
		return SCRIPT_HERE;
	if (u->script_said)
		return SCRIPT_LATER;
	r = script_layout(w);
	return r && python_in_loop(&r->python, u->script_pc - w->bias) ? SCRIPT_HERE : SCRIPT_LATER;
}

/* Some frames of the chunk at hand, if it stands here. 0: a native one is next. */
__noinline int script_say(__u32 unused)
{
	struct script_walk *w = script_walk();
	struct stack_scratch *s = script_stack();
	enum script_place place;

	asm volatile("" ::"r"(unused)); /* else the compiler does not pass it, and the verifier wants it */
	if (!w || !s)
		return 0;
	place = w->at ? SCRIPT_HERE : script_place(w, &s->unwind);
	if (place == SCRIPT_LATER)
		return 0;
	if (place == SCRIPT_HERE) {
		for (int i = 0; i < SCRIPT_SAYS && w->at < w->n && s->unwind.n < STACK_USER_MAX; i++) {
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
		w->n = w->at = 0;
		s->unwind.script = SCRIPT_POP;
	}
	return 1;
}

/* Of the process whose stack was walked last: is the futex its interpreter's lock? */
__noinline int script_is_lock(__u64 futex)
{
	struct script_walk *w = script_walk();
	struct stack_scratch *s = script_stack();
	struct tables_runtime *r = w && s && s->unwind.script != SCRIPT_OFF ? script_layout(w) : NULL;

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
	if (u->n >= STACK_USER_MAX)
		return 0;
	if (u->script == SCRIPT_SAY)
		return script_say(i);
	if (u->script == SCRIPT_POP)
		script_pop(i);
	else if (u->script == SCRIPT_BEGIN)
		script_begin(i);
	else
		script_meet(i);
	return 1;
}

/* A native frame is next. */
static __always_inline void script_native(struct unwind *u)
{
	u->script_sp = u->sp;
	u->script_pc = u->pc - !u->exact;
	u->script_said = 0;
}

/* It was said. */
static __always_inline int script_after(struct unwind *u, int more)
{
	if (u->script == SCRIPT_OFF && u->map_runtime && u->map_image && u->map_state == TABLES_IMAGE_READY)
		u->script = SCRIPT_BEGIN;
	if (more || u->end == STACK_END_ROOT || u->script == SCRIPT_OFF || u->script == SCRIPT_OVER)
		return more;
	u->script_rest = 1;
	return 1;
}

#endif
