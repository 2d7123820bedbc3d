/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* python.bpf: what runtime.bpf.h needs of CPython (python.h): the thread's state, code objects and
 * what names them. */
#ifndef SONDE_PROBES_RUNTIMES_PYTHON_BPF_H
#define SONDE_PROBES_RUNTIMES_PYTHON_BPF_H

#include "probes/runtimes/script.bpf.h"

/* from PyVarObject.ob_size, which texts of bytes have too, to PyTypeObject.tp_basicsize */
#define PYTHON_BEHIND_SIZE       16
#define PYTHON_TEXT_WIDTH(state) ((state) >> 2 & 7)
#define PYTHON_TEXT_ASCII(state) ((state) >> 6 & 1)

static __always_inline int python_word(__u64 addr, __u64 *value)
{
	return script_read(addr, value);
}

static __always_inline void python_look(struct python_walk *p, __u64 addr)
{
	struct script_walk *w = SCRIPT_WALK_OF(p);

	script_look(w, addr, PYTHON_LOOK_BYTES, true, w->mode != PYTHON_OBJECTS);
}

static __always_inline int python_read(struct python_walk *p, __u64 addr, __u64 *value)
{
	struct script_walk *w = SCRIPT_WALK_OF(p);
	__u64 into = addr - w->window_at;

	if (into >= w->window_bytes || (into & 7))
		return python_word(addr, value);
	into >>= 3;
	asm volatile(""
		     : "+r"(into)); /* else the compiler knows better than to mask, and the verifier
				       does not */
	*value = w->window[into & (SCRIPT_WINDOW - 1)];
	return 0;
}

/* ---- the thread's state ---- */

static __always_inline bool python_is_thread(struct script_walk *w, const struct python_layout *l,
					     __u64 state, __u64 fs_base)
{
	__u64 id = 0;

	(void)w;
	return !python_word(state + l->thread_id, &id) && id == fs_base;
}

/* false: there is no interpreter (yet). */
static __always_inline bool python_search_begin(struct script_walk *w,
						const struct python_layout *l)
{
	__u64 basic = 0;

	w->look = w->interp = w->found = 0;
	if (python_word(l->code_type + w->bias + l->bytes_length + PYTHON_BEHIND_SIZE, &basic) ||
	    basic != l->code_size)
		return false;
	return !python_word(l->interpreters + w->bias, &w->interp) && w->interp;
}

static __always_inline int python_search(struct script_walk *w, const struct python_layout *l,
					 __u64 fs_base)
{
	__u64 interp = w->interp, look = w->look, id = 0;

	if (!look) {
		if (!interp || python_word(interp + l->interp_threads, &w->look) ||
		    python_word(interp + l->interp_next, &w->interp))
			return 0;
		w->several |= w->interp != 0;
		return 1;
	}
	if (python_word(look + l->thread_id, &id))
		return 0;
	if (id == fs_base) {
		w->found = look;
		return 0;
	}
	return !python_word(look + l->thread_next, &w->look);
}

/* The lock of the newest interpreter, or of all: who waits for it waits on one of its conditions.
 */
static __always_inline int python_is_gil(struct script_walk *w, const struct python_layout *l,
					 __u64 futex)
{
	__u64 gil = l->gil ? l->gil + w->bias : 0, interp = 0;

	if (l->interp_gil && (python_word(l->interpreters + w->bias, &interp) ||
			      python_word(interp + l->interp_gil, &gil)))
		return 0;
	return gil && futex - gil >= PYTHON_GIL_COND && futex - gil < PYTHON_GIL_SIZE;
}

/* ---- code objects ---- */

/* The code of the current frame: makes its key of what identifies it. The addresses of its name,
 * its file's name and its line table are adjacent in all versions (publish_runtimes.c checks that).
 */
static __always_inline bool python_object(struct script_walk *w, const struct python_layout *l)
{
	__u64 code = w->python.code, cookie = 0;
	__u32 last = ((__u32)l->code_lines - l->code_file) >> 3;

	if ((code & 7) || bpf_probe_read_user(w->identity, sizeof(w->identity),
					      (const void *)(code + l->code_file)))
		return false;
	for (__u32 i = 0; i < SCRIPT_IDENTITY; i++)
		if (i <= last)
			cookie = script_mix(cookie, w->identity[i]);
	w->key.object = code;
	w->key.cookie = cookie;
	return true;
}

static __always_inline bool python_is_code(__u64 code, __u64 bias, const struct python_layout *l)
{
	__u64 type = 0;

	return !python_word(code + l->object_type, &type) && type == l->code_type + bias;
}

static __always_inline __u64 python_position(const struct script_walk *w,
					     const struct python_layout *l)
{
	__s64 bytes;

	if (l->shape == PYTHON_OBJECTS)
		bytes = (__s64)w->python.at < 0 ? -2 : (__s64)w->python.at * l->at_scale;
	else
		bytes = (__s64)(w->python.at - w->python.code - l->code_start);
	bytes += SCRIPT_PYTHON_NONE;
	return bytes > 0 && bytes <= (__s64)SCRIPT_POSITION_MAX ? (__u64)bytes : 0;
}

/* Does this address belong to the interpreter's loop? An address of its file; 3.10 and before. */
static __always_inline bool python_in_loop(const struct python_layout *l, __u64 at)
{
	bool in = false;

	for (int i = 0; i < PYTHON_RANGES; i++)
		in |= at >= l->loop_start[i] && at < l->loop_end[i];
	return in;
}

/* ---- names ---- */

/* Bytes of a text object, its head included. */
static __always_inline __u32 python_text_size(const struct python_layout *l, __u64 object)
{
	__u64 length = 0, state = 0, width = 1, head = l->bytes_data;

	if (python_word(object + (l->lines == PYTHON_LINES_27 ? l->bytes_length : l->text_length),
			&length))
		return 0;
	if (l->lines != PYTHON_LINES_27) {
		if (bpf_probe_read_user(&state, 4, (const void *)(object + l->text_state)))
			return 0;
		width = PYTHON_TEXT_WIDTH(state);
		head = PYTHON_TEXT_ASCII(state) ? l->text_ascii : l->text_compact;
	}
	if (length > SCRIPT_TEXT_BYTES)
		length = SCRIPT_TEXT_BYTES;
	head += length * width;
	return head < SCRIPT_TEXT_BYTES ? head : SCRIPT_TEXT_BYTES - 1;
}

enum { PYTHON_PIECE_HEAD, PYTHON_PIECE_NAME, PYTHON_PIECE_FILE, PYTHON_PIECE_LINES };
#define PYTHON_HEAD_BYTES 160u
#define PYTHON_NAME_FROM  PYTHON_HEAD_BYTES
#define PYTHON_FILE_FROM  (PYTHON_NAME_FROM + SCRIPT_TEXT_BYTES)
#define PYTHON_LINES_FROM (PYTHON_FILE_FROM + SCRIPT_TEXT_BYTES)
enum { PYTHON_PIECES_FIT = 1 / (PYTHON_LINES_FROM + SCRIPT_LINES_BYTES <= SCRIPT_DATA_BYTES) };

/* What names the current object, as it is in the process. Returns its size. */
static __always_inline __u32 python_take(struct script_names *out, const struct python_layout *l)
{
	__u64 code = out->key.object, name = 0, file = 0, lines = 0, length = 0;

	script_piece(out, PYTHON_PIECE_HEAD, code, 0, PYTHON_HEAD_BYTES);
	python_word(code + (l->code_qualname ? l->code_qualname : l->code_name), &name);
	python_word(code + l->code_file, &file);
	python_word(code + l->code_lines, &lines);
	script_text(out, PYTHON_PIECE_NAME, name, PYTHON_NAME_FROM,
		    name ? python_text_size(l, name) : 0);
	script_text(out, PYTHON_PIECE_FILE, file, PYTHON_FILE_FROM,
		    file ? python_text_size(l, file) : 0);
	python_word(lines + l->bytes_length, &length);
	return PYTHON_LINES_FROM + script_lines(out, PYTHON_PIECE_LINES, lines, PYTHON_LINES_FROM,
						length + l->bytes_data);
}

/* The object at hand is met for the first time. */
__noinline int python_meet(__u32 unused)
{
	struct script_walk *w = script_walk();
	struct stack_scratch *s = script_stack();
	struct tables_runtime *r = w ? script_layout(w, RUNTIME_PYTHON) : NULL;
	struct script_names *out;

	SCRIPT_USED(unused);
	if (!w || !s)
		return 0;
	if (!r || !python_is_code(w->key.object, w->bias, &r->python)) {
		script_end(w, &s->unwind, SCRIPT_FAULT);
		return 0;
	}
	out = script_names_begin(w, r);
	script_named(w, &s->unwind,
		     out ? script_names_send(w, out, python_take(out, &r->python)) : 0);
	return 0;
}

/* ---- the walk ---- */

/* The thread's state is looked for: one thread or interpreter further. 0: that was the last. */
__noinline int python_further(__u32 unused)
{
	struct script_walk *w = script_walk();
	struct stack_scratch *s = script_stack();
	struct tables_runtime *r = w ? script_layout(w, RUNTIME_PYTHON) : NULL;

	SCRIPT_USED(unused);
	return r && s ? python_search(w, &r->python, s->unwind.fs_base) : 0;
}

/* The state of the thread at hand; 0: it has none. */
static __always_inline __u64 python_thread(struct script_walk *w, struct stack_scratch *s,
					   struct tables_runtime *r)
{
	struct script_thread *t = script_thread_at(s);
	bool known = script_thread_known(t, s);
	__u64 state = known ? t->state : 0;

	if (state && python_is_thread(w, &r->python, state, s->unwind.fs_base))
		return state;
	if (known && !state && s->ev.time_ns < t->until_ns)
		return 0;
	if (!python_search_begin(w, &r->python))
		return 0;
	for (int i = 0; i < SCRIPT_SEARCH; i++)
		if (!python_further(i))
			break;
	script_thread_keep(t, s, w->found);
	return w->found;
}

__noinline int python_start(__u32 unused)
{
	struct script_walk *w = script_walk();
	struct stack_scratch *s = script_stack();
	struct tables_runtime *r = w ? script_layout(w, RUNTIME_PYTHON) : NULL;
	__u64 state;

	SCRIPT_USED(unused);
	if (!r || !s)
		return 0;
	w->mode = r->python.shape;
	w->by = w->mode == PYTHON_OBJECTS ? SCRIPT_BY_LOOP : SCRIPT_BY_MARK;
	state = python_thread(w, s, r);
	if (!state || (w->several && w->mode == PYTHON_OBJECTS)) {
		script_miss(w, SCRIPT_NO_THREAD);
		return 0;
	}
	if (python_begin(&w->python, &r->python, state))
		script_miss(w, SCRIPT_FAULT);
	else
		s->unwind.script = SCRIPT_POP;
	/* what is kept of the thread may be a state that it has no more: it is looked for again */
	if (!w->python.next) {
		struct script_thread *t = script_thread_at(s);

		if (t)
			t->fs_base = 0;
	}
	return 0;
}

/* Pops a frame of the chunk at hand; false: something else is next. */
static __always_inline bool python_pop_one(struct script_walk *w, struct unwind *u,
					   const struct python_layout *l)
{
	__u32 step = python_next(&w->python, l), met;

	if (step == PYTHON_SHIM) {
		if (w->n)
			u->script = SCRIPT_SAY;
		return !w->n;
	}
	met = step > PYTHON_CLOSES ? 0 : script_met(w, w->python.code);
	if (step > PYTHON_CLOSES || (!met && !python_object(w, l))) {
		script_end(w, u, step == PYTHON_END && !w->n ? SCRIPT_WHOLE : SCRIPT_FAULT);
		return false;
	}
	w->more = script_goes_on(w, step == PYTHON_FRAME);
	if (!met)
		return script_found(w, u, RUNTIME_PYTHON, python_position(w, l));
	w->word = script_word_of(RUNTIME_PYTHON, python_position(w, l));
	return script_add(w, u, met);
}

/* Pops some. */
__noinline int python_pop(__u32 unused)
{
	struct script_walk *w = script_walk();
	struct stack_scratch *s = script_stack();
	struct tables_runtime *r;

	SCRIPT_USED(unused);
	if (!w || !s)
		return 0;
	r = script_layout(w, RUNTIME_PYTHON);
	if (!r) {
		script_end(w, &s->unwind, SCRIPT_FAULT);
		return 0;
	}
	for (int i = 0; i < SCRIPT_POPS; i++)
		if (!python_pop_one(w, &s->unwind, &r->python))
			break;
	return 0;
}

#endif
