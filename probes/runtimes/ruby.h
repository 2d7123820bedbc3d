/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * ruby: CRuby's own frames of one thread, innermost first. Compiled into the loaders (loaders/lib/runtimes) and made for BPF
 * programs too: no allocation, no recursion, no loop (who calls ruby_next bounds it), reads of one word.
 *
 * Sources: Ruby's vm_core.h (struct rb_execution_context_struct, rb_control_frame_struct, VM_FRAME_*), 2.7 to 3.3.
 *
 * 1. A thread (a fiber, while it runs) has an execution context, with a stack of its own. Control frames grow from its end
 *    downwards, one beside the other; the context says which is the innermost.
 * 2. A frame with instructions has an iseq and says how far in it is; one of a function of C has RUBY_FLAG_C.
 * 3. One call of the interpreter's loop, vm_exec_core, runs frames that call each other. The outermost of them has
 *    RUBY_FLAG_FINISH: the chunk closes there, and native frames go on with who called the loop.
 *
 * All of it is a stranger's memory: any word may be anything. A walk over garbage ends by RUBY_FAULT or by the caller's bound.
 *
 * The includer defines, before ruby_next:
 *   int ruby_read(struct ruby_walk *w, __u64 addr, __u64 *value)   a word of memory; != 0: not readable
 */
#ifndef SONDE_PROBES_RUNTIMES_RUBY_H
#define SONDE_PROBES_RUNTIMES_RUBY_H

#include "probes/runtimes/ruby_layout.h"

#ifndef __always_inline
#define __always_inline inline __attribute__((always_inline))
#endif

#define RUBY_STACK_MAX (1ull << 32) /* bytes of a stack */

struct ruby_walk {
	__u64 next, end; /* frames: next == end: none is left */
	void *ctx;       /* user space: the includer's */

	/* of the frame that was popped last */
	__u64 frame, iseq, at, env;
	__u64 flags;
};

enum ruby_step {
	RUBY_FRAME,  /* one was popped */
	RUBY_CLOSES, /* one was popped, which is its chunk's outermost */
	RUBY_END,
	RUBY_FAULT
};

static __always_inline int ruby_read(struct ruby_walk *w, __u64 addr, __u64 *value);

/* `ec`: an execution context. != 0: it is none. */
static __always_inline int ruby_begin(struct ruby_walk *w, const struct ruby_layout *l, __u64 ec)
{
	__u64 stack = 0, size = 0;

	w->next = w->end = 0;
	if (ruby_read(w, ec + RUBY_EC_STACK, &stack) || ruby_read(w, ec + RUBY_EC_STACK_SIZE, &size) || ruby_read(w, ec + RUBY_EC_FRAME, &w->next))
		return -1;
	if (!w->next) /* it has no stack any more */
		return 0;
	w->end = stack + size * 8;
	if (size > RUBY_STACK_MAX / 8 || w->next < stack || w->next > w->end || !l->frame_size || (w->end - w->next) % l->frame_size)
		return -1;
	return 0;
}

/* Pops one frame. */
static __always_inline enum ruby_step ruby_next(struct ruby_walk *w, const struct ruby_layout *l)
{
	w->frame = w->next;
	if (w->frame >= w->end)
		return RUBY_END;
	if (ruby_read(w, w->frame + RUBY_FRAME_AT, &w->at) || ruby_read(w, w->frame + RUBY_FRAME_ISEQ, &w->iseq) ||
	    ruby_read(w, w->frame + RUBY_FRAME_ENV, &w->env) || (w->env & 7) || ruby_read(w, w->env, &w->flags))
		return RUBY_FAULT;
	w->next += l->frame_size;
	return w->flags & RUBY_FLAG_FINISH && !(w->flags & RUBY_FLAG_C) ? RUBY_CLOSES : RUBY_FRAME;
}

#endif
