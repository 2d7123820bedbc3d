/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * perl: Perl's own frames of one thread, innermost first. Compiled into BPF programs (perl.bpf.h)
 * and into the loaders (loaders/lib/runtimes): no allocation, no recursion, bounded loops, reads of
 * one word.
 *
 * Sources: perl's cop.h (struct context, struct stackinfo, CXt_*), cv.h, intrpvar.h; 5.32 to 5.42.
 *
 * 1. The interpreter (of a thread, in a build with threads: a value that pthread keeps for it) has
 *    the statement that runs (a COP: line and file), and the innermost of a chain of stackinfos.
 *    Each holds contexts, the innermost last; the outermost stackinfo is of type MAIN, and below
 *    its contexts is the program's file itself.
 * 2. A context of a sub, of an eval of a text or a required file, or of a format is a frame. Others
 *    are blocks within one. Each has the statement that was running when it was begun: the line of
 *    the frame around it.
 * 3. A sub's statement is its caller's until its own first one begins, and again when it ends. So
 *    the innermost frame has no line if its statement is its caller's; but a function that calls
 *    itself from the statement that runs has the same one rightly.
 * 4. One call of the interpreter's loop, runops, runs subs that call each other. The outermost of
 *    them has no place to return to: the chunk closes there, and native frames go on with the
 *    loop's caller. The program's file closes the last.
 *
 * All of it is untrusted memory: any word may have any value. A walk over garbage ends by
 * PERL_FAULT or by the caller's bound.
 *
 * The includer defines, before perl_next:
 *   int perl_read(struct perl_walk *w, __u64 addr, __u64 *value)
 *       a word of memory; != 0: not readable
 * and may define PERL_LOOK(w, addr): the next words that are read are those of the context there,
 * and of those below it; PERL_LOOK_SUB(w, addr, bytes): as many bytes there, 64 at most;
 * PERL_KNOWS(w): it has set what perl_function reads, from an earlier walk; PERL_KEEP(w): now it
 * may.
 */
#ifndef SONDE_PROBES_RUNTIMES_PERL_H
#define SONDE_PROBES_RUNTIMES_PERL_H

#include "probes/runtimes/perl_layout.h"

#ifndef __always_inline
#define __always_inline inline __attribute__((always_inline))
#endif

#ifndef PERL_LOOK
#define PERL_LOOK(w, addr) ((void)(w), (void)(addr))
#endif
#ifndef PERL_LOOK_SUB
#define PERL_LOOK_SUB(w, addr, bytes) ((void)(w), (void)(addr))
#endif

#ifndef PERL_KNOWS
#define PERL_KNOWS(w) ((void)(w), 0)
#endif
#ifndef PERL_KEEP
#define PERL_KEEP(w) ((void)(w))
#endif

#define PERL_AROUND 3 /* contexts that are looked at for a sub's caller; beyond, it has no line */

struct perl_walk {
	__u64 cop; /* of the next frame */
	__u64 info, contexts;
	void *ctx;   /* user space: the includer's */
	__s32 last;  /* context that is next; -1: none */
	__u32 begun; /* a frame was popped */

	/* of the frame that was popped last */
	__u64 at; /* its statement; 0: it has no line */
	__u64 cv, body;
	__u64 root, name, seq; /* what tells the sub from others; of `known` */
	__u64 known;           /* the sub that was read last: a recursion reads it once */
	__u64 line_of;         /* the statement whose line was read last */
	__u32 line, cop_seq;
	__u32 kind; /* enum perl_kind */
	__u32 over;
	__u32 kept, pad; /* the includer's, of PERL_KNOWS and PERL_KEEP */
};

enum perl_step {
	PERL_SKIPPED, /* no frame */
	PERL_FRAME,   /* one was popped */
	PERL_CLOSES,  /* one was popped, which is its chunk's outermost */
	PERL_END,
	PERL_FAULT
};

static __always_inline int perl_read(struct perl_walk *w, __u64 addr, __u64 *value);

static __always_inline int perl_half(struct perl_walk *w, __u64 addr, __u32 *value)
{
	__u64 word = 0;

	if (perl_read(w, addr & ~7ull, &word))
		return -1;
	*value = (__u32)(word >> (addr & 4) * 8);
	return 0;
}

/* ---- the interpreter ---- */

/* Takes a stackinfo. != 0: not one. */
static __always_inline int perl_enter(struct perl_walk *w, __u64 info)
{
	__u32 last = 0, room = 0;

	w->info = info;
	if (!info || (info & 7) || perl_read(w, info + PERL_SI_CONTEXTS, &w->contexts) ||
	    (w->contexts & 7) || perl_half(w, info + PERL_SI_LAST, &last) ||
	    perl_half(w, info + PERL_SI_ROOM, &room) || room >= PERL_CONTEXTS ||
	    (last != ~0u && last > room))
		return -1;
	w->last = (__s32)last;
	return 0;
}

static __always_inline int perl_take(struct perl_walk *w, __u64 cop_at, __u64 info_at)
{
	__u64 info = 0;

	w->begun = w->over = 0;
	w->known = w->line_of = 0;
	w->kind = PERL_NO_FRAME;
	return (cop_at & 7) || perl_read(w, cop_at, &w->cop) || perl_read(w, info_at, &info) ||
	       perl_enter(w, info);
}

/* != 0: the thread has no interpreter. */
static __always_inline int perl_begin(struct perl_walk *w, const struct perl_layout *l, __u64 bias,
				      __u64 fs_base)
{
	__u64 interp = 0, keys = 0;
	__u32 key = 0;

	if (!l->key)
		return perl_take(w, l->cop + bias, l->stackinfo + bias);
	if (perl_half(w, l->key + bias, &key) || key >= PERL_MUSL_MOST)
		return -1;
	if (key < PERL_GLIBC_FIRST &&
	    !perl_read(w, fs_base + PERL_GLIBC_KEYS + 16ull * key + 8, &interp) && interp &&
	    !perl_take(w, interp + l->interp_cop, interp + l->interp_stackinfo))
		return 0;
	return perl_read(w, fs_base + PERL_MUSL_KEYS, &keys) || (keys & 7) ||
	       perl_read(w, keys + 8ull * key, &interp) || !interp ||
	       perl_take(w, interp + l->interp_cop, interp + l->interp_stackinfo);
}

/* ---- frames ---- */

static __always_inline int perl_function(struct perl_walk *w)
{
	__u32 flags = 0;

	if ((w->cv && w->cv == w->known) || PERL_KNOWS(w))
		return 0;
	w->known = 0;
	if (!w->cv || (w->cv & 7))
		return -1;
	PERL_LOOK_SUB(w, w->cv, PERL_SV_U);
	if (perl_half(w, w->cv + PERL_SV_FLAGS, &flags) || (flags & PERL_SV_TYPE) != PERL_TYPE_CV ||
	    perl_read(w, w->cv + PERL_SV_BODY, &w->body) || !w->body || (w->body & 7))
		return -1;
	PERL_LOOK_SUB(w, w->body + PERL_CV_ROOT, PERL_CV_SIZE - PERL_CV_ROOT);
	if (perl_read(w, w->body + PERL_CV_ROOT, &w->root) ||
	    perl_read(w, w->body + PERL_CV_GV, &w->name) ||
	    perl_read(w, w->body + PERL_CV_SEQ, &w->seq) || !w->root || !w->name)
		return -1;
	w->known = w->cv;
	PERL_KEEP(w);
	return 0;
}

/* Is the innermost sub called by itself? 3. of the head. */
static __always_inline int perl_calls_itself(struct perl_walk *w)
{
	for (__s32 i = 0; i < PERL_AROUND; i++) {
		__u64 at = w->contexts + (__u64)(w->last - i) * PERL_CX_SIZE, head = 0, cv = 0;

		if (w->last < i || perl_read(w, at, &head))
			return 0;
		if ((head & PERL_CX_KIND) == PERL_CX_SUB)
			return !perl_read(w, at + PERL_CX_CV, &cv) && cv == w->cv;
		if ((head & PERL_CX_KIND) == PERL_CX_EVAL && !(head & PERL_CX_BLOCK))
			return 0;
	}
	return 0;
}

static __always_inline enum perl_step perl_sub(struct perl_walk *w, __u64 at, __u64 caller,
					       int inner)
{
	__u64 back = 0;

	if (perl_read(w, at + PERL_CX_RETURN, &back) || perl_read(w, at + PERL_CX_CV, &w->cv))
		return PERL_FAULT;
	if (inner && w->at == caller && !perl_calls_itself(w))
		w->at = 0;
	if (perl_function(w))
		return PERL_FAULT;
	w->kind = PERL_SUB;
	return back ? PERL_FRAME : PERL_CLOSES;
}

/* The next stackinfo; below the outermost is the program's file. */
static __always_inline enum perl_step perl_outwards(struct perl_walk *w)
{
	__u64 outer = 0;
	__u32 type = 0;

	if (w->over)
		return PERL_END;
	if (perl_half(w, w->info + PERL_SI_TYPE, &type) ||
	    perl_read(w, w->info + PERL_SI_OUTER, &outer) || type + 1 > PERL_SI_TYPES)
		return PERL_FAULT;
	if (type != PERL_SI_MAIN && outer)
		return perl_enter(w, outer) ? PERL_FAULT : PERL_SKIPPED;
	w->over = 1;
	w->kind = PERL_TOP;
	w->at = w->cop;
	return PERL_CLOSES;
}

/* Looks at one context. */
static __always_inline enum perl_step perl_next(struct perl_walk *w)
{
	__u64 at, head = 0, caller = 0;
	int inner = !w->begun;

	w->kind = PERL_NO_FRAME;
	if (w->last < 0)
		return perl_outwards(w);
	at = w->contexts + (__u64)w->last * PERL_CX_SIZE;
	PERL_LOOK(w, at);
	w->last--;
	if (perl_read(w, at, &head))
		return PERL_FAULT;
	if ((head & PERL_CX_KIND) < PERL_CX_SUB || (head & PERL_CX_KIND) > PERL_CX_EVAL ||
	    ((head & PERL_CX_KIND) == PERL_CX_SUB && head & PERL_CX_FAKE) ||
	    ((head & PERL_CX_KIND) == PERL_CX_EVAL && head & PERL_CX_BLOCK))
		return PERL_SKIPPED;
	if (perl_read(w, at + PERL_CX_CALLER, &caller))
		return PERL_FAULT;
	w->begun = 1;
	w->at = w->cop;
	w->cop = caller;
	if ((head & PERL_CX_KIND) == PERL_CX_SUB)
		return perl_sub(w, at, caller, inner);
	if (inner && w->at == caller) /* its file has not begun to run */
		return PERL_SKIPPED;
	w->kind = (head & PERL_CX_KIND) == PERL_CX_EVAL ? PERL_EVAL : PERL_FORM;
	return PERL_FRAME;
}

/* The frame's line; 0: not known. */
static __always_inline __u32 perl_line(struct perl_walk *w)
{
	if (!w->at || (w->at & 7))
		return 0;
	if (w->at == w->line_of)
		return w->line;
	w->line_of = 0;
	if (perl_half(w, w->at + PERL_COP_LINE, &w->line))
		return 0;
	w->line_of = w->at;
	return w->line;
}

/* The text of its statement's file; 0: not known. */
static __always_inline __u64 perl_file(struct perl_walk *w, const struct perl_layout *l)
{
	__u64 file = 0, body = 0, hek = 0;

	if (!w->at || (w->at & 7) || perl_read(w, w->at + PERL_COP_FILE, &file) || !file)
		return 0;
	if (l->key)
		return file;
	if ((file & 7) || perl_read(w, file + PERL_SV_BODY, &body) || (body & 7) ||
	    perl_read(w, body + PERL_GV_NAME, &hek) || !hek)
		return 0;
	return hek + PERL_HEK_TEXT + 2; /* "_<" */
}

#endif
