/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* perl.bpf: what runtime.bpf.h needs of Perl (perl.h): what tells subs apart, and what names them.
 */
#ifndef SONDE_PROBES_RUNTIMES_PERL_BPF_H
#define SONDE_PROBES_RUNTIMES_PERL_BPF_H

#include "probes/runtimes/script.bpf.h"

#define PERL_FILE_BYTES 128 /* of a file's name, that tell it from others */

static __always_inline void perl_look(struct perl_walk *p, __u64 addr)
{
	script_look(SCRIPT_WALK_OF(p), addr, PERL_CX_SIZE, true, true);
}

static __always_inline void perl_look_sub(struct perl_walk *p, __u64 addr, __u32 bytes)
{
	script_near(SCRIPT_WALK_OF(p), addr, bytes);
}

static __always_inline int perl_read(struct perl_walk *p, __u64 addr, __u64 *value)
{
	return script_word(SCRIPT_WALK_OF(p), addr, value);
}

static __always_inline bool perl_in_loop(const struct perl_layout *l, __u64 at)
{
	bool in = false;

	for (int i = 0; i < PERL_RANGES; i++)
		in |= at >= l->loop_start[i] && at < l->loop_end[i];
	return in;
}

/* ---- subs that are known by their statement ---- */

/*
 * Reading a sub takes two reads of other places; its statement is read anyhow, for the line. A sub
 * that is no closure has its code alone. So the process, the statement's address and the number
 * that Perl counts up at each block that it compiles tell which sub it was, even if another was
 * compiled in the same place since. Closures share their code: they are read each time. What is
 * kept counts for PERL_KNOWN_S, as a sub can get another name.
 */
#define PERL_KNOWN_S 1

static __always_inline struct script_perl *perl_kept(struct script_walk *w)
{
	__u64 i = script_mix(w->perl.at, w->key.start_ns) >> 40;

	asm volatile("" : "+r"(i)); /* as in script_word */
	return &w->perls[i & (SCRIPT_PERLS - 1)];
}

static __always_inline __u64 perl_process(const struct script_walk *w)
{
	return script_mix(w->key.start_ns, (__u64)w->key.tgid << 32 | w->key.exec_id);
}

static __always_inline __u32 perl_now_s(const struct script_walk *w)
{
	return (__u32)(w->now_ns >> 30);
}

/* Also takes the statement's line. */
static __always_inline int perl_knows(struct perl_walk *p)
{
	struct script_walk *w = SCRIPT_WALK_OF(p);
	const struct script_perl *k;

	p->kept = 0;
	if (!p->at || (p->at & 7) ||
	    script_near(w, p->at + PERL_COP_FROM, PERL_COP_SIZE - PERL_COP_FROM))
		return 0;
	p->line = w->near[(PERL_COP_LINE - PERL_COP_FROM) / 8] >> 32;
	p->line_of = p->at;
	p->cop_seq = w->near[(PERL_COP_SEQ - PERL_COP_FROM) / 8] >> 32;
	p->kept = 1;
	k = perl_kept(w);
	if (k->cop != p->at || k->cv != p->cv || k->cop_seq != p->cop_seq ||
	    k->process != perl_process(w) || perl_now_s(w) - k->read_s > PERL_KNOWN_S)
		return 0;
	p->root = k->root;
	p->name = k->name;
	p->seq = k->seq;
	p->known = p->cv;
	return 1;
}

static __always_inline void perl_keep(struct perl_walk *p)
{
	struct script_walk *w = SCRIPT_WALK_OF(p);
	struct script_perl *k;

	if (!p->kept || p->seq >> 32 & PERL_CV_APART)
		return;
	k = perl_kept(w);
	k->cop = p->at;
	k->cv = p->cv;
	k->root = p->root;
	k->name = p->name;
	k->seq = p->seq;
	k->process = perl_process(w);
	k->cop_seq = p->cop_seq;
	k->read_s = perl_now_s(w);
}

/* ---- what tells objects apart ---- */

/* A sub: its code, which closures share, when it was compiled, and where its name is. */
static __always_inline void perl_sub_object(struct script_walk *w)
{
	struct perl_walk *p = &w->perl;

	w->of = p->cv;
	w->key.object = p->root;
	w->key.cookie = script_mix(script_mix(PERL_SUB, p->seq), p->name);
}

/* Of what is no sub: its file. false: it has none. */
static __always_inline bool perl_file_object(struct script_walk *w, const struct perl_layout *l)
{
	__u64 file = perl_file(&w->perl, l), cookie = w->what;

	w->near_bytes = 0;
	for (int i = 0; i < PERL_FILE_BYTES / 8; i++)
		w->near[i] = 0;
	if (!file || bpf_probe_read_user_str(w->near, PERL_FILE_BYTES, (const void *)file) <= 1)
		return false;
	for (int i = 0; i < PERL_FILE_BYTES / 8; i++)
		cookie = script_mix(cookie, w->near[i]);
	w->of = file;
	w->key.object = w->what;
	w->key.cookie = cookie;
	return true;
}

/* ---- names ---- */

enum {
	PERL_PIECE_CV,
	PERL_PIECE_CV_BODY,
	PERL_PIECE_GV,
	PERL_PIECE_GV_BODY,
	PERL_PIECE_GP,
	PERL_PIECE_EGV,
	PERL_PIECE_EGV_BODY,
	PERL_PIECE_NAME,
	PERL_PIECE_STASH,
	PERL_PIECE_STASH_BODY,
	PERL_PIECE_AUX,
	PERL_PIECE_NAMES,
	PERL_PIECE_OWNER,
	PERL_PIECE_FILE
};
enum { PERL_PIECES_FIT = 1 / (PERL_PIECE_FILE < SCRIPT_PIECES) };

#define PERL_SLOT          64u
#define PERL_CV_FROM       0u
#define PERL_BODY_FROM     (PERL_CV_FROM + PERL_SLOT)
#define PERL_GV_FROM       (PERL_BODY_FROM + 2 * PERL_SLOT)
#define PERL_GV_BODY_FROM  (PERL_GV_FROM + PERL_SLOT)
#define PERL_GP_FROM       (PERL_GV_BODY_FROM + PERL_SLOT)
#define PERL_EGV_FROM      (PERL_GP_FROM + PERL_SLOT)
#define PERL_EGV_BODY_FROM (PERL_EGV_FROM + PERL_SLOT)
#define PERL_STASH_FROM    (PERL_EGV_BODY_FROM + PERL_SLOT)
#define PERL_HV_FROM       (PERL_STASH_FROM + PERL_SLOT)
#define PERL_AUX_FROM      (PERL_HV_FROM + PERL_SLOT)
#define PERL_NAMES_FROM    (PERL_AUX_FROM + PERL_SLOT)
#define PERL_NAME_FROM     (PERL_NAMES_FROM + PERL_SLOT)
#define PERL_OWNER_FROM    (PERL_NAME_FROM + SCRIPT_TEXT_BYTES)
#define PERL_FILE_FROM     (PERL_OWNER_FROM + SCRIPT_TEXT_BYTES)
#define PERL_TAKEN         (PERL_FILE_FROM + SCRIPT_TEXT_BYTES)
enum { PERL_DATA_FITS = 1 / (PERL_TAKEN <= SCRIPT_DATA_BYTES) };

/* A text that ends with 0. */
static __always_inline void perl_file_take(struct script_names *out, __u64 addr)
{
	long n = addr ? bpf_probe_read_user_str(out->data + PERL_FILE_FROM, SCRIPT_TEXT_BYTES,
						(const void *)addr) :
			0;

	out->piece[PERL_PIECE_FILE].at = addr;
	out->piece[PERL_PIECE_FILE].from = PERL_FILE_FROM;
	if (n > 0)
		out->piece[PERL_PIECE_FILE].size = (__u32)n & (2 * SCRIPT_TEXT_BYTES - 1);
}

/* A name, with its length before it and its flags behind. */
static __always_inline void perl_hek_take(struct script_names *out, __u32 i, __u64 hek, __u32 from)
{
	__u64 head = 0;

	if (hek && !script_read(hek, &head))
		script_text(out, i, hek, from,
			    head >> 32 < SCRIPT_TEXT_BYTES ? (head >> 32) + PERL_HEK_TEXT + 2 :
							     SCRIPT_TEXT_BYTES);
}

static __always_inline void perl_stash_take(struct script_names *out, const struct perl_layout *l,
					    __u64 stash)
{
	__u64 body, aux, name, most;

	if (script_piece(out, PERL_PIECE_STASH, stash, PERL_STASH_FROM, PERL_SV_SIZE))
		return;
	body = script_copied(out, PERL_STASH_FROM + PERL_SV_BODY);
	if (script_piece(out, PERL_PIECE_STASH_BODY, body, PERL_HV_FROM, PERL_HV_MAX + 8))
		return;
	most = script_copied(out, PERL_HV_FROM + PERL_HV_MAX);
	aux = l->aux ? body + l->aux :
		       script_copied(out, PERL_STASH_FROM + PERL_SV_U) + (most + 1) * 8;
	if (script_piece(out, PERL_PIECE_AUX, aux, PERL_AUX_FROM, PERL_AUX_SIZE))
		return;
	name = script_copied(out, PERL_AUX_FROM + PERL_AUX_NAME);
	if (script_copied(out, PERL_AUX_FROM + PERL_AUX_NAMES - 4) >> 32) {
		if (script_piece(out, PERL_PIECE_NAMES, name, PERL_NAMES_FROM, 8))
			return;
		name = script_copied(out, PERL_NAMES_FROM);
	}
	perl_hek_take(out, PERL_PIECE_OWNER, name, PERL_OWNER_FROM);
}

/* By the glob that names the sub, or the one that it was defined for. */
static __always_inline void perl_glob_take(struct script_names *out, const struct perl_layout *l,
					   __u64 gv)
{
	__u64 egv = 0;
	__u32 from = PERL_GV_BODY_FROM;

	if (script_piece(out, PERL_PIECE_GV, gv, PERL_GV_FROM, PERL_SV_SIZE) ||
	    script_piece(out, PERL_PIECE_GV_BODY, script_copied(out, PERL_GV_FROM + PERL_SV_BODY),
			 PERL_GV_BODY_FROM, PERL_GV_SIZE))
		return;
	if (!script_piece(out, PERL_PIECE_GP, script_copied(out, PERL_GV_FROM + PERL_SV_U),
			  PERL_GP_FROM, PERL_GP_EGV + 8))
		egv = script_copied(out, PERL_GP_FROM + PERL_GP_EGV);
	if (egv && egv != gv) {
		if (script_piece(out, PERL_PIECE_EGV, egv, PERL_EGV_FROM, PERL_SV_SIZE) ||
		    script_piece(out, PERL_PIECE_EGV_BODY,
				 script_copied(out, PERL_EGV_FROM + PERL_SV_BODY),
				 PERL_EGV_BODY_FROM, PERL_GV_SIZE))
			return;
		from = PERL_EGV_BODY_FROM;
	}
	if (from == PERL_EGV_BODY_FROM) {
		perl_hek_take(out, PERL_PIECE_NAME,
			      script_copied(out, PERL_EGV_BODY_FROM + PERL_GV_NAME),
			      PERL_NAME_FROM);
		perl_stash_take(out, l, script_copied(out, PERL_EGV_BODY_FROM + PERL_GV_STASH));
		return;
	}
	perl_hek_take(out, PERL_PIECE_NAME, script_copied(out, PERL_GV_BODY_FROM + PERL_GV_NAME),
		      PERL_NAME_FROM);
	perl_stash_take(out, l, script_copied(out, PERL_GV_BODY_FROM + PERL_GV_STASH));
}

static __always_inline void perl_sub_take(struct script_names *out, const struct perl_layout *l)
{
	if (script_piece(out, PERL_PIECE_CV, out->of, PERL_CV_FROM, PERL_SV_SIZE) ||
	    script_piece(out, PERL_PIECE_CV_BODY, script_copied(out, PERL_CV_FROM + PERL_SV_BODY),
			 PERL_BODY_FROM, PERL_CV_SIZE))
		return;
	perl_file_take(out, script_copied(out, PERL_BODY_FROM + PERL_CV_FILE));
	if (script_copied(out, PERL_BODY_FROM + PERL_CV_SEQ) >> 32 & PERL_CV_NAMED) {
		perl_hek_take(out, PERL_PIECE_NAME, script_copied(out, PERL_BODY_FROM + PERL_CV_GV),
			      PERL_NAME_FROM);
		perl_stash_take(out, l, script_copied(out, PERL_BODY_FROM + PERL_CV_STASH));
		return;
	}
	perl_glob_take(out, l, script_copied(out, PERL_BODY_FROM + PERL_CV_GV));
}

/* The object at hand is met for the first time. */
__noinline int perl_meet(__u32 unused)
{
	struct script_walk *w = script_walk();
	struct stack_scratch *s = script_stack();
	struct tables_runtime *r = w ? script_layout(w, RUNTIME_PERL) : NULL;
	struct script_names *out;

	SCRIPT_USED(unused);
	if (!w || !s || !(runtime_kinds >> RUNTIME_PERL & 1))
		return 0;
	out = r ? script_names_begin(w, r) : NULL;
	if (out && out->what == PERL_SUB)
		perl_sub_take(out, &r->perl);
	else if (out)
		perl_file_take(out, out->of);
	script_named(w, &s->unwind, out ? script_names_send(w, out, PERL_TAKEN) : 0);
	return 0;
}

/* ---- the walk ---- */

__noinline int perl_start(__u32 unused)
{
	struct script_walk *w = script_walk();
	struct stack_scratch *s = script_stack();
	struct tables_runtime *r = w ? script_layout(w, RUNTIME_PERL) : NULL;

	SCRIPT_USED(unused);
	if (!r || !s || !(runtime_kinds >> RUNTIME_PERL & 1))
		return 0;
	w->by = SCRIPT_BY_LOOPS;
	if (perl_begin(&w->perl, &r->perl, w->bias, s->unwind.fs_base))
		script_miss(w, SCRIPT_NO_THREAD);
	else
		s->unwind.script = SCRIPT_POP;
	return 0;
}

/* Looks at a context. */
static __always_inline void perl_pop_one(struct script_walk *w, struct unwind *u,
					 const struct perl_layout *l)
{
	__u32 step = perl_next(&w->perl), line;

	if (step == PERL_SKIPPED)
		return;
	if (step == PERL_FAULT || (step == PERL_END && !w->n)) {
		script_end(w, u, step == PERL_END ? SCRIPT_WHOLE : SCRIPT_FAULT);
		return;
	}
	w->more = script_goes_on(w, step == PERL_FRAME);
	w->what = w->perl.kind;
	if (w->what == PERL_SUB)
		perl_sub_object(w);
	if (step == PERL_END || (w->what != PERL_SUB && !perl_file_object(w, l))) {
		script_skip(w, u);
		return;
	}
	line = perl_line(&w->perl);
	script_found(w, u, RUNTIME_PERL, line <= SCRIPT_POSITION_MAX ? line : 0);
}

/* One, so that what it needs of the stack is least. 0: something else is next. */
__noinline int perl_pop(__u32 unused)
{
	struct script_walk *w = script_walk();
	struct stack_scratch *s = script_stack();
	struct tables_runtime *r;

	SCRIPT_USED(unused);
	if (!w || !s || !(runtime_kinds >> RUNTIME_PERL & 1))
		return 0;
	r = script_layout(w, RUNTIME_PERL);
	if (r)
		perl_pop_one(w, &s->unwind, &r->perl);
	else
		script_end(w, &s->unwind, SCRIPT_FAULT);
	return 0;
}

#endif
