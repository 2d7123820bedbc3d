/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* php.bpf: what runtime.bpf.h needs of PHP (php.h): what tells functions apart, and what names
 * them. */
#ifndef SONDE_PROBES_RUNTIMES_PHP_BPF_H
#define SONDE_PROBES_RUNTIMES_PHP_BPF_H

#include "probes/runtimes/script.bpf.h"

static __always_inline void php_look(struct php_walk *p, __u64 addr)
{
	script_look(SCRIPT_WALK_OF(p), addr, PHP_FRAME_SIZE, true, true);
}

static __always_inline void php_look_func(struct php_walk *p, __u64 addr)
{
	script_near(SCRIPT_WALK_OF(p), addr, PHP_FUNC_SIZE);
}

static __always_inline int php_read(struct php_walk *p, __u64 addr, __u64 *value)
{
	return script_word(SCRIPT_WALK_OF(p), addr, value);
}

static __always_inline bool php_in_loop(const struct php_layout *l, __u64 at)
{
	bool in = false;

	for (int i = 0; i < PHP_RANGES; i++)
		in |= at >= l->loop_start[i] && at < l->loop_end[i];
	return in;
}

/* ---- functions ---- */

/* Hash and length of a text: names that take each other's address after a request has ended have
 * different ones. */
static __always_inline __u64 php_text_mix(__u64 cookie, __u64 string)
{
	__u64 hash[2] = {0, 0};

	bpf_probe_read_user(hash, sizeof(hash), (const void *)(string + PHP_STRING_HASH));
	return script_mix(script_mix(cookie, string), hash[0] ^ hash[1] << 48);
}

/* The function of the frame at hand: what tells it from others is made its key. Closures, and
 * methods that are inherited, have their instructions in common. */
static __always_inline bool php_object(struct script_walk *w, const struct php_layout *l)
{
	struct php_walk *p = &w->php;
	__u64 name = 0, class = 0, file = 0, of = 0, cookie = p->type;

	if (php_read(p, p->func + PHP_FUNC_NAME, &name) ||
	    php_read(p, p->func + PHP_FUNC_CLASS, &class))
		return false;
	w->what = p->type;
	if (!name && !p->next)
		w->what |= SCRIPT_OUTERMOST;
	cookie = script_mix(w->what, class);
	if (name)
		cookie = php_text_mix(cookie, name);
	if (class && !script_read(class + PHP_CLASS_NAME, &of))
		cookie = php_text_mix(cookie, of);
	if (p->type != PHP_INTERNAL) {
		if (php_read(p, p->func + l->file, &file))
			return false;
		cookie = php_text_mix(cookie, file);
	}
	w->of = p->func;
	w->key.object = p->type == PHP_INTERNAL ? p->func : p->code;
	w->key.cookie = cookie;
	return true;
}

enum { PHP_PIECE_FUNC, PHP_PIECE_NAME, PHP_PIECE_FILE, PHP_PIECE_CLASS, PHP_PIECE_OWNER };
#define PHP_NAME_FROM  PHP_FUNC_SIZE
#define PHP_FILE_FROM  (PHP_NAME_FROM + SCRIPT_TEXT_BYTES)
#define PHP_OWNER_FROM (PHP_FILE_FROM + SCRIPT_TEXT_BYTES)
#define PHP_CLASS_FROM (PHP_OWNER_FROM + SCRIPT_TEXT_BYTES)
#define PHP_CLASS_SIZE 16u
#define PHP_TAKEN      (PHP_CLASS_FROM + PHP_CLASS_SIZE)

static __always_inline void php_text_take(struct script_names *out, __u32 i, __u64 string,
					  __u32 from)
{
	__u64 length = 0;

	if (string && !script_read(string + PHP_STRING_LENGTH, &length))
		script_text(out, i, string, from,
			    length < SCRIPT_TEXT_BYTES ? length + PHP_STRING_BYTES + 1 :
							 SCRIPT_TEXT_BYTES);
}

/* What names the object at hand. */
static __always_inline void php_take(struct script_names *out, const struct php_layout *l)
{
	__u64 func = out->of, name = 0, class = 0, file = 0;
	bool native = (out->what & 0xff) == PHP_INTERNAL;

	if (script_piece(out, PHP_PIECE_FUNC, func, 0, PHP_FUNC_SIZE) && !native)
		return;
	if (!out->piece[PHP_PIECE_FUNC].size) /* it is shorter, and nothing is behind it */
		script_piece(out, PHP_PIECE_FUNC, func, 0, PHP_FUNC_CLASS + 8);
	script_read(func + PHP_FUNC_NAME, &name);
	script_read(func + PHP_FUNC_CLASS, &class);
	php_text_take(out, PHP_PIECE_NAME, name, PHP_NAME_FROM);
	if (class && !script_piece(out, PHP_PIECE_CLASS, class, PHP_CLASS_FROM, PHP_CLASS_SIZE))
		php_text_take(out, PHP_PIECE_OWNER,
			      script_copied(out, PHP_CLASS_FROM + PHP_CLASS_NAME), PHP_OWNER_FROM);
	if (!native && !script_read(func + l->file, &file))
		php_text_take(out, PHP_PIECE_FILE, file, PHP_FILE_FROM);
}

/* The object at hand is met for the first time. */
__noinline int php_meet(__u32 unused)
{
	struct script_walk *w = script_walk();
	struct stack_scratch *s = script_stack();
	struct tables_runtime *r = w ? script_layout(w, RUNTIME_PHP) : NULL;
	struct script_names *out;

	SCRIPT_USED(unused);
	if (!w || !s || !(runtime_kinds >> RUNTIME_PHP & 1))
		return 0;
	out = r ? script_names_begin(w, r) : NULL;
	if (out)
		php_take(out, &r->php);
	script_named(w, &s->unwind, out ? script_names_send(w, out, PHP_TAKEN) : 0);
	return 0;
}

/* ---- the walk ---- */

__noinline int php_start(__u32 unused)
{
	struct script_walk *w = script_walk();
	struct stack_scratch *s = script_stack();
	struct tables_runtime *r = w ? script_layout(w, RUNTIME_PHP) : NULL;

	SCRIPT_USED(unused);
	if (!r || !s || !(runtime_kinds >> RUNTIME_PHP & 1))
		return 0;
	w->by = SCRIPT_BY_LOOPS;
	if (php_begin(&w->php, &r->php, r->php.globals + w->bias)) {
		script_miss(w, SCRIPT_FAULT);
		return 0;
	}
	if (s->unwind.n == 1 && php_in_loop(&r->php, s->unwind.script_pc - w->bias)) {
		w->php.loop_frame = s->unwind.regs[14];
		w->php.loop_at = s->unwind.regs[15];
	}
	s->unwind.script = SCRIPT_POP;
	return 0;
}

/* Pops a frame of the chunk at hand; false: something else is next. */
static __always_inline bool php_pop_one(struct script_walk *w, struct unwind *u,
					const struct php_layout *l)
{
	__u32 step = php_next(&w->php, l);

	if (step == PHP_FAULT || (step == PHP_END && !w->n)) {
		script_end(w, u, step == PHP_END ? SCRIPT_WHOLE : SCRIPT_FAULT);
		return false;
	}
	w->more = script_goes_on(w, step == PHP_FRAME);
	if (step == PHP_END || !w->php.type)
		return script_skip(w, u);
	if (!php_object(w, l)) {
		script_end(w, u, SCRIPT_FAULT);
		return false;
	}
	return script_found(w, u, RUNTIME_PHP,
			    w->php.line <= SCRIPT_POSITION_MAX ? w->php.line : 0);
}

/* One, so that what it needs of the stack is least. 0: something else is next. */
__noinline int php_pop(__u32 unused)
{
	struct script_walk *w = script_walk();
	struct stack_scratch *s = script_stack();
	struct tables_runtime *r;

	SCRIPT_USED(unused);
	if (!w || !s || !(runtime_kinds >> RUNTIME_PHP & 1))
		return 0;
	r = script_layout(w, RUNTIME_PHP);
	if (r)
		return php_pop_one(w, &s->unwind, &r->php);
	script_end(w, &s->unwind, SCRIPT_FAULT);
	return 0;
}

#endif
