/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* ruby.bpf: what runtime.bpf.h needs of CRuby (ruby.h): the thread's context, what tells iseqs and
 * methods apart, and what names them. */
#ifndef SONDE_PROBES_RUNTIMES_RUBY_BPF_H
#define SONDE_PROBES_RUNTIMES_RUBY_BPF_H

#include "probes/runtimes/script.bpf.h"

#define RUBY_FRAME_BYTES  64
#define RUBY_TEXT_WORDS   5   /* of a text's object: a short one's bytes too */
#define RUBY_BODY_BYTES   152 /* with where its lines are */
#define RUBY_CLASS_BYTES  160
#define RUBY_OBJECT_BYTES 40

static __always_inline void ruby_look(struct ruby_walk *p, __u64 addr)
{
	script_look(SCRIPT_WALK_OF(p), addr, RUBY_FRAME_BYTES, false, true);
}

static __always_inline int ruby_read(struct ruby_walk *p, __u64 addr, __u64 *value)
{
	return script_word(SCRIPT_WALK_OF(p), addr, value);
}

static __always_inline bool ruby_in_loop(const struct ruby_layout *l, __u64 at)
{
	bool in = false;

	for (int i = 0; i < RUBY_RANGES; i++)
		in |= at >= l->loop_start[i] && at < l->loop_end[i];
	return in;
}

/* ---- the thread ---- */

/* 2.7: one thread further. 0: that was the last. */
__noinline int ruby_further(__u32 unused)
{
	struct script_walk *w = script_walk();
	struct stack_scratch *s = script_stack();
	struct tables_runtime *r = w ? script_layout(w, RUNTIME_RUBY) : NULL;

	SCRIPT_USED(unused);
	return r && s && runtime_kinds >> RUNTIME_RUBY & 1 ?
		       ruby_search(&w->ruby, &r->ruby, s->unwind.fs_base) :
		       0;
}

static __always_inline __u64 ruby_context_listed(struct script_walk *w, struct stack_scratch *s,
						 struct tables_runtime *r)
{
	struct script_thread *t = script_thread_at(s);
	bool known = script_thread_known(t, s);
	__u64 ec = known && t->state ?
			   ruby_context_of(&w->ruby, &r->ruby, t->state, s->unwind.fs_base) :
			   0;

	if (ec || (known && !t->state && s->ev.time_ns < t->until_ns))
		return ec;
	if (!ruby_search_begin(&w->ruby, &r->ruby, w->bias))
		return 0;
	for (int i = 0; i < SCRIPT_SEARCH; i++)
		if (!ruby_further(i))
			break;
	script_thread_keep(t, s, w->ruby.thread);
	return w->ruby.thread ?
		       ruby_context_of(&w->ruby, &r->ruby, w->ruby.thread, s->unwind.fs_base) :
		       0;
}

__noinline int ruby_start(__u32 unused)
{
	struct script_walk *w = script_walk();
	struct stack_scratch *s = script_stack();
	struct tables_runtime *r = w ? script_layout(w, RUNTIME_RUBY) : NULL;
	__u64 ec;

	SCRIPT_USED(unused);
	if (!r || !s || !(runtime_kinds >> RUNTIME_RUBY & 1))
		return 0;
	w->by = SCRIPT_BY_LOOPS;
	ec = r->ruby.vm ? ruby_context_listed(w, s, r) :
			  ruby_context_local(&w->ruby, &r->ruby, w->bias, s->unwind.fs_base);
	if (!ec) {
		script_miss(w, SCRIPT_NO_THREAD);
		return 0;
	}
	if (ruby_begin(&w->ruby, &r->ruby, ec))
		script_miss(w, SCRIPT_FAULT);
	else
		s->unwind.script = SCRIPT_POP;
	return 0;
}

/* ---- what tells objects apart ---- */

/* The words of an object; a short text is among them. */
static __always_inline __u64 ruby_words_mix(struct script_walk *w, __u64 cookie, __u64 object,
					    __u64 *first, __u64 *third)
{
	cookie = script_mix(cookie, object);
	if (script_near(w, object, 8 * RUBY_TEXT_WORDS))
		return cookie;
	*first = w->near[0];
	*third = w->near[2];
	for (int i = 1; i < RUBY_TEXT_WORDS; i++)
		cookie = script_mix(cookie, w->near[i]);
	return cookie;
}

/* The method around the frame at hand: an environment further out. 0: that was the last. */
__noinline int ruby_outwards(__u32 unused)
{
	struct script_walk *w = script_walk();

	SCRIPT_USED(unused);
	return w && runtime_kinds >> RUNTIME_RUBY & 1 ? ruby_around(&w->ruby) : 0;
}

/* A frame with instructions: what tells its iseq from others is made its key. */
static __always_inline bool ruby_iseq(struct script_walk *w, const struct ruby_layout *l,
				      __u64 *position)
{
	struct ruby_walk *p = &w->ruby;
	__u64 flags = 0, body = 0, code = 0, size = 0, path = 0, label = 0, owner = 0, cookie,
	      type = 0, element = 0;

	if (!ruby_is_of_type(p, p->iseq, RUBY_TYPE_MEMO, &flags) ||
	    RUBY_MEMO_KIND(flags) != RUBY_MEMO_ISEQ ||
	    ruby_read(p, p->iseq + RUBY_ISEQ_BODY, &body) || (body & 7) ||
	    script_near(w, body, RUBY_BODY_BYTES) || ruby_read(p, body, &size) ||
	    ruby_read(p, body + RUBY_BODY_CODE, &code) ||
	    ruby_read(p, body + RUBY_BODY_PATH, &path) ||
	    ruby_read(p, body + RUBY_BODY_LABEL, &label))
		return false;
	size >>= 32;
	code = p->at - code;
	*position = code / 8 <= size && !(code & 7) && code / 8 < SCRIPT_POSITION_MAX ?
			    code / 8 + 1 :
			    0;
	cookie = script_mix(script_mix(p->at - code, body), size);
	cookie = ruby_words_mix(w, cookie, label, &type, &element);
	type = 0;
	cookie = ruby_words_mix(w, cookie, path, &type, &element);
	if ((type & RUBY_TYPE_MASK) == RUBY_TYPE_ARRAY && type & RUBY_ARRAY_SHORT)
		cookie = ruby_words_mix(w, cookie, element, &type, &element);
	ruby_around_begin(p);
	for (int i = 0; l->class_path && i < RUBY_ENVS; i++)
		if (!ruby_outwards(i))
			break;
	w->of = p->method;
	if (w->of && !script_read(w->of + RUBY_METHOD_OWNER, &owner))
		cookie = script_mix(cookie, owner);
	w->what = 0;
	w->key.object = p->iseq;
	w->key.cookie = cookie;
	return true;
}

/* A function of C: its method. false: it is not known. */
static __always_inline bool ruby_native(struct script_walk *w)
{
	struct ruby_walk *p = &w->ruby;
	__u64 def = 0, owner = 0, id = 0;

	w->of = ruby_method_of(p, p->env);
	if (!w->of || script_near(w, w->of, RUBY_OBJECT_BYTES) ||
	    ruby_read(p, w->of + RUBY_METHOD_DEF, &def) ||
	    ruby_read(p, w->of + RUBY_METHOD_OWNER, &owner) ||
	    script_read(def + RUBY_DEF_NAME, &id))
		return false;
	w->what = SCRIPT_NATIVE;
	w->key.object = w->of;
	w->key.cookie = script_mix(script_mix(script_mix(SCRIPT_NATIVE, def), owner), id);
	return true;
}

/* ---- names ---- */

enum {
	RUBY_PIECE_OBJECT,
	RUBY_PIECE_BODY,
	RUBY_PIECE_NAME,
	RUBY_PIECE_NAME_TEXT,
	RUBY_PIECE_METHOD,
	RUBY_PIECE_CLASS,
	RUBY_PIECE_ATTACHED,
	RUBY_PIECE_OWNER,
	RUBY_PIECE_OWNER_TEXT,
	RUBY_PIECE_10,
	RUBY_PIECE_11,
	RUBY_PIECE_12,
	RUBY_PIECE_13,
	RUBY_PIECE_14
};
/* a script's */
#define RUBY_PIECE_ARRAY     RUBY_PIECE_10
#define RUBY_PIECE_FILE      RUBY_PIECE_11
#define RUBY_PIECE_FILE_TEXT RUBY_PIECE_12
#define RUBY_PIECE_INDEX     RUBY_PIECE_13
#define RUBY_PIECE_LINES     RUBY_PIECE_14
/* of a function of C */
#define RUBY_PIECE_TABLE  RUBY_PIECE_10
#define RUBY_PIECE_IDS    RUBY_PIECE_11
#define RUBY_PIECE_ID     RUBY_PIECE_12
#define RUBY_PIECE_UNIT   RUBY_PIECE_13
#define RUBY_PIECE_PAIR   RUBY_PIECE_14
#define RUBY_PIECE_SYMBOL (RUBY_PIECE_14 + 1)
enum { RUBY_PIECES_ENOUGH = 1 / (RUBY_PIECE_SYMBOL < SCRIPT_PIECES) };

#define RUBY_SLOT            40u /* of an object */
#define RUBY_OBJECT_FROM     0u
#define RUBY_NAME_FROM       (RUBY_OBJECT_FROM + RUBY_SLOT)
#define RUBY_METHOD_FROM     (RUBY_NAME_FROM + RUBY_SLOT)
#define RUBY_OWNER_FROM      (RUBY_METHOD_FROM + RUBY_SLOT)
#define RUBY_ARRAY_FROM      (RUBY_OWNER_FROM + RUBY_SLOT)
#define RUBY_FILE_FROM       (RUBY_ARRAY_FROM + RUBY_SLOT)
#define RUBY_UNIT_FROM       (RUBY_FILE_FROM + RUBY_SLOT)
#define RUBY_PAIR_FROM       (RUBY_UNIT_FROM + RUBY_SLOT)
#define RUBY_SYMBOL_FROM     (RUBY_PAIR_FROM + RUBY_SLOT)
#define RUBY_ID_FROM         (RUBY_SYMBOL_FROM + RUBY_SLOT)
#define RUBY_TABLE_FROM      (RUBY_ID_FROM + RUBY_SLOT)
#define RUBY_BODY_FROM       (RUBY_TABLE_FROM + RUBY_SLOT)
#define RUBY_CLASS_FROM      (RUBY_BODY_FROM + RUBY_BODY_BYTES)
#define RUBY_ATTACHED_FROM   (RUBY_CLASS_FROM + RUBY_CLASS_BYTES)
#define RUBY_NAME_TEXT_FROM  (RUBY_ATTACHED_FROM + RUBY_CLASS_BYTES)
#define RUBY_OWNER_TEXT_FROM (RUBY_NAME_TEXT_FROM + SCRIPT_TEXT_BYTES)
#define RUBY_NATIVE_TAKEN    (RUBY_OWNER_TEXT_FROM + SCRIPT_TEXT_BYTES)
#define RUBY_FILE_TEXT_FROM  (RUBY_OWNER_TEXT_FROM + SCRIPT_TEXT_BYTES)
#define RUBY_INDEX_FROM      (RUBY_FILE_TEXT_FROM + SCRIPT_TEXT_BYTES)
#define RUBY_INDEX_BYTES     1024u
#define RUBY_LINES_FROM      (RUBY_INDEX_FROM + RUBY_INDEX_BYTES)
enum { RUBY_PIECES_FIT = 1 / (RUBY_LINES_FROM + SCRIPT_LINES_BYTES <= SCRIPT_DATA_BYTES) };

/* A text's object, `from` in the data, and what it holds. */
static __always_inline void ruby_text_take(struct script_names *out, const struct ruby_layout *l,
					   __u32 i, __u64 object, __u32 from, __u32 i_text,
					   __u32 from_text)
{
	__u64 flags, length, at;

	if (script_piece(out, i, object, from, RUBY_SLOT))
		return;
	flags = script_copied(out, from);
	length = flags & RUBY_TEXT_LONG || l->text_length ?
			 script_copied(out, from + RUBY_TEXT_LENGTH) :
			 flags >> 14 & 0x1f;
	at = flags & RUBY_TEXT_LONG ? script_copied(out, from + RUBY_TEXT_AT) :
				      object + l->text_short;
	script_text(out, i_text, at, from_text,
		    length < SCRIPT_TEXT_BYTES ? length + 1 : SCRIPT_TEXT_BYTES);
}

/* Address of the elements of a copied array of `size` bytes of data. */
static __always_inline __u64 ruby_elements(const struct script_names *out, __u32 from, __u64 object)
{
	return script_copied(out, from) & RUBY_ARRAY_SHORT ?
		       object + RUBY_ARRAY_DATA :
		       script_copied(out, from + RUBY_ARRAY_AT);
}

/* The class that the method out->of belongs to. */
static __always_inline void ruby_class_take(struct script_names *out, const struct ruby_layout *l)
{
	__u64 class, path = 0;

	if (!l->class_path || !out->of ||
	    script_piece(out, RUBY_PIECE_METHOD, out->of, RUBY_METHOD_FROM, RUBY_SLOT))
		return;
	class = script_copied(out, RUBY_METHOD_FROM + RUBY_METHOD_OWNER);
	if (script_piece(out, RUBY_PIECE_CLASS, class, RUBY_CLASS_FROM, RUBY_CLASS_BYTES))
		return;
	if ((script_copied(out, RUBY_CLASS_FROM) & RUBY_TYPE_MASK) == RUBY_TYPE_CLASS &&
	    script_copied(out, RUBY_CLASS_FROM) & RUBY_USER(l->singleton & 1)) {
		class = script_copied(out, RUBY_CLASS_FROM + RUBY_ATTACHED);
		if (script_piece(out, RUBY_PIECE_ATTACHED, class, RUBY_ATTACHED_FROM,
				 RUBY_CLASS_BYTES))
			return;
	}
	if (!script_read(class + l->class_path, &path))
		ruby_text_take(out, l, RUBY_PIECE_OWNER, path, RUBY_OWNER_FROM,
			       RUBY_PIECE_OWNER_TEXT, RUBY_OWNER_TEXT_FROM);
}

/* What names an iseq. How many bytes there are. */
static __always_inline __u32 ruby_iseq_take(struct script_names *out, const struct ruby_layout *l)
{
	__u64 body, path, at, lines = 0, index = 0, count = 0;

	if (script_piece(out, RUBY_PIECE_OBJECT, out->key.object, RUBY_OBJECT_FROM, 24))
		return RUBY_LINES_FROM;
	body = script_copied(out, RUBY_OBJECT_FROM + RUBY_ISEQ_BODY);
	if (script_piece(out, RUBY_PIECE_BODY, body, RUBY_BODY_FROM, RUBY_BODY_BYTES))
		return RUBY_LINES_FROM;
	ruby_text_take(out, l, RUBY_PIECE_NAME,
		       script_copied(out, RUBY_BODY_FROM + RUBY_BODY_LABEL), RUBY_NAME_FROM,
		       RUBY_PIECE_NAME_TEXT, RUBY_NAME_TEXT_FROM);
	path = script_copied(out, RUBY_BODY_FROM + RUBY_BODY_PATH);
	if (!script_piece(out, RUBY_PIECE_ARRAY, path, RUBY_ARRAY_FROM, RUBY_SLOT)) {
		at = ruby_elements(out, RUBY_ARRAY_FROM, path);
		if ((script_copied(out, RUBY_ARRAY_FROM) & RUBY_TYPE_MASK) == RUBY_TYPE_ARRAY &&
		    script_read(at, &path))
			path = 0;
		ruby_text_take(out, l, RUBY_PIECE_FILE, path, RUBY_FILE_FROM, RUBY_PIECE_FILE_TEXT,
			       RUBY_FILE_TEXT_FROM);
	}
	script_read(body + l->lines, &lines);
	script_read(body + l->lines_count, &count);
	script_read(body + l->lines_index, &index);
	if ((__u32)count > 1 &&
	    script_piece(out, RUBY_PIECE_INDEX, index, RUBY_INDEX_FROM, RUBY_INDEX_BYTES))
		script_piece(out, RUBY_PIECE_INDEX, index, RUBY_INDEX_FROM,
			     48); /* it is shorter, and nothing is behind it */
	return RUBY_LINES_FROM + script_lines(out, RUBY_PIECE_LINES, lines, RUBY_LINES_FROM,
					      (count & 0xffffffff) * l->line_size);
}

/* What names the method of a function of C: by Ruby's table of ids. */
static __always_inline void ruby_native_take(struct script_names *out, const struct ruby_layout *l)
{
	__u64 id, serial, ids, unit, symbol;

	if (script_piece(out, RUBY_PIECE_OBJECT, out->of, RUBY_OBJECT_FROM, RUBY_SLOT) ||
	    script_piece(out, RUBY_PIECE_BODY,
			 script_copied(out, RUBY_OBJECT_FROM + RUBY_METHOD_DEF), RUBY_BODY_FROM,
			 RUBY_SLOT) ||
	    !l->symbols ||
	    script_piece(out, RUBY_PIECE_TABLE, l->symbols + out->bias + RUBY_SYMBOLS_IDS,
			 RUBY_TABLE_FROM, 8))
		return;
	id = script_copied(out, RUBY_BODY_FROM + RUBY_DEF_NAME);
	serial = id > l->last_op ? id >> RUBY_ID_SHIFT : id;
	ids = script_copied(out, RUBY_TABLE_FROM);
	if (script_piece(out, RUBY_PIECE_IDS, ids, RUBY_FILE_FROM, RUBY_SLOT) ||
	    script_piece(out, RUBY_PIECE_ID,
			 ruby_elements(out, RUBY_FILE_FROM, ids) + serial / RUBY_IDS_UNIT * 8,
			 RUBY_ID_FROM, 8))
		return;
	unit = script_copied(out, RUBY_ID_FROM);
	if (script_piece(out, RUBY_PIECE_UNIT, unit, RUBY_UNIT_FROM, RUBY_SLOT) ||
	    script_piece(out, RUBY_PIECE_PAIR,
			 ruby_elements(out, RUBY_UNIT_FROM, unit) + serial % RUBY_IDS_UNIT * 16,
			 RUBY_PAIR_FROM, 16))
		return;
	symbol = script_copied(out, RUBY_PAIR_FROM + 8);
	ruby_text_take(out, l, RUBY_PIECE_NAME, script_copied(out, RUBY_PAIR_FROM), RUBY_NAME_FROM,
		       RUBY_PIECE_NAME_TEXT, RUBY_NAME_TEXT_FROM);
	if (!(symbol & 7))
		script_piece(out, RUBY_PIECE_SYMBOL, symbol, RUBY_SYMBOL_FROM, RUBY_SLOT);
}

/* The object at hand is met for the first time. */
__noinline int ruby_meet(__u32 unused)
{
	struct script_walk *w = script_walk();
	struct stack_scratch *s = script_stack();
	struct tables_runtime *r = w ? script_layout(w, RUNTIME_RUBY) : NULL;
	struct script_names *out;
	__u32 bytes = RUBY_NATIVE_TAKEN;

	SCRIPT_USED(unused);
	if (!w || !s || !(runtime_kinds >> RUNTIME_RUBY & 1))
		return 0;
	out = r ? script_names_begin(w, r) : NULL;
	if (out) {
		ruby_class_take(out, &r->ruby);
		if (out->what & SCRIPT_NATIVE)
			ruby_native_take(out, &r->ruby);
		else
			bytes = ruby_iseq_take(out, &r->ruby);
	}
	script_named(w, &s->unwind, out ? script_names_send(w, out, bytes) : 0);
	return 0;
}

/* ---- the walk ---- */

/* Pops a frame of the chunk at hand; false: something else is next. */
static __always_inline bool ruby_pop_one(struct script_walk *w, struct unwind *u,
					 const struct ruby_layout *l)
{
	__u32 step = ruby_next(&w->ruby, l);
	__u64 position = 0;

	if (step == RUBY_FAULT || (step == RUBY_END && !w->n)) {
		script_end(w, u, step == RUBY_END ? SCRIPT_WHOLE : SCRIPT_FAULT);
		return false;
	}
	w->more = script_goes_on(w, step == RUBY_FRAME);
	if (step == RUBY_END)
		return script_skip(w, u);
	if (ruby_is_script(&w->ruby)) {
		if (!ruby_iseq(w, l, &position)) {
			script_end(w, u, SCRIPT_FAULT);
			return false;
		}
	} else if (!ruby_is_native(&w->ruby) || !ruby_native(w)) {
		return script_skip(
			w, u); /* the native frame of a function of C is there all the same */
	}
	return script_found(w, u, RUNTIME_RUBY, position);
}

/* One, so that what it needs of the stack is least. 0: something else is next. */
__noinline int ruby_pop(__u32 unused)
{
	struct script_walk *w = script_walk();
	struct stack_scratch *s = script_stack();
	struct tables_runtime *r;

	SCRIPT_USED(unused);
	if (!w || !s || !(runtime_kinds >> RUNTIME_RUBY & 1))
		return 0;
	r = script_layout(w, RUNTIME_RUBY);
	if (r)
		return ruby_pop_one(w, &s->unwind, &r->ruby);
	script_end(w, &s->unwind, SCRIPT_FAULT);
	return 0;
}

#endif
