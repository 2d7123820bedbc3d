/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * ruby: CRuby's own frames of one thread, innermost first. Compiled into BPF programs (ruby.bpf.h)
 * and into the loaders (loaders/lib/runtimes): no allocation, no recursion, bounded loops (the
 * callers of ruby_next and ruby_search have their own bounds), reads of one word.
 *
 * Sources: Ruby's vm_core.h (struct rb_execution_context_struct, rb_control_frame_struct,
 * VM_FRAME_*, VM_ENV_*), method.h, 2.7 to 3.3.
 *
 * 1. A thread (a fiber, while it runs) has an execution context, with its own stack. Control frames
 *    grow from its end downwards, one next to the other; the context points to the innermost. It is
 *    the thread-local variable ruby_current_ec (3.0 on), by way of fs_base; in 2.7 that of the
 *    thread in the VM's list whose pthread_self() is fs_base. Either must belong to a thread whose
 *    context it is.
 * 2. A frame with instructions has an iseq and says how far in it is; one of a function of C has
 *    RUBY_FLAG_C.
 * 3. One call of the interpreter's loop, vm_exec_core, runs frames that call each other. The
 *    outermost of them has RUBY_FLAG_FINISH: the chunk closes there, and native frames go on with
 *    the loop's caller.
 *    The lowest frame runs nothing and is left out (that of the main thread has the name "<main>",
 *    like the program's).
 * 4. A frame's environment leads to its method; that of a block by way of those around it.
 *
 * All of it is untrusted memory: any word may have any value. A walk over garbage ends by
 * RUBY_FAULT or by the caller's bound.
 *
 * The includer defines, before ruby_next:
 *   int ruby_read(struct ruby_walk *w, __u64 addr, __u64 *value)
 *       a word of memory; != 0: not readable
 * and may define RUBY_LOOK(w, addr): the next words that are read are those of the frame there, and
 * of those above it.
 */
#ifndef SONDE_PROBES_RUNTIMES_RUBY_H
#define SONDE_PROBES_RUNTIMES_RUBY_H

#include "probes/runtimes/ruby_layout.h"

#ifndef __always_inline
#define __always_inline inline __attribute__((always_inline))
#endif

#ifndef RUBY_LOOK
#define RUBY_LOOK(w, addr) ((void)(w), (void)(addr))
#endif

#define RUBY_STACK_MAX (1ull << 32) /* bytes of a stack */
#define RUBY_MODULES   4096         /* with thread-local variables */
#define RUBY_ENVS      16           /* blocks in blocks */

struct ruby_walk {
	__u64 next, end;  /* frames: next == end: none is left */
	__u64 node, head; /* of the search for the thread */
	__u64 thread;     /* that was found; 0: none */
	__u64 around, method;
	void *ctx; /* user space: the includer's */

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

/* ---- the thread's context ---- */

static __always_inline int ruby_is_context(struct ruby_walk *w, const struct ruby_layout *l,
					   __u64 ec)
{
	__u64 thread = 0, same = 0;

	return ec && !(ec & 7) && !ruby_read(w, ec + l->ec_thread, &thread) && thread &&
	       !ruby_read(w, thread + l->thread_ec, &same) && same == ec;
}

/* By the thread-local variable; 0: it has none. glibc's table has two words for a module, musl's
 * one. */
static __always_inline __u64 ruby_context_local(struct ruby_walk *w, const struct ruby_layout *l,
						__u64 bias, __u64 fs_base)
{
	__u64 module = 0, offset = 0, table = 0, block = 0, ec = 0;

	if (!l->tls_slot)
		return !ruby_read(w, fs_base + (__u64)l->tls_offset, &ec) &&
				       ruby_is_context(w, l, ec) ?
			       ec :
			       0;
	if (ruby_read(w, l->tls_slot + bias, &module) ||
	    ruby_read(w, l->tls_slot + bias + 8, &offset) || !module || module > RUBY_MODULES ||
	    ruby_read(w, fs_base + RUBY_DTV, &table))
		return 0;
	if (!ruby_read(w, table + module * 16, &block) && !ruby_read(w, block + offset, &ec) &&
	    ruby_is_context(w, l, ec))
		return ec;
	if (!ruby_read(w, table + module * 8, &block) && !ruby_read(w, block + offset, &ec) &&
	    ruby_is_context(w, l, ec))
		return ec;
	return 0;
}

/* 2.7: of the thread; 0: it is not that one's, or has none. */
static __always_inline __u64 ruby_context_of(struct ruby_walk *w, const struct ruby_layout *l,
					     __u64 thread, __u64 fs_base)
{
	__u64 id = 0, ec = 0;

	if (ruby_read(w, thread + l->thread_id, &id) || id != fs_base ||
	    ruby_read(w, thread + l->thread_ec, &ec) || !ruby_is_context(w, l, ec))
		return 0;
	return ec;
}

/* 2.7: by the list of threads, whose head is in the VM. 0: not found. */
static __always_inline int ruby_search_begin(struct ruby_walk *w, const struct ruby_layout *l,
					     __u64 bias)
{
	__u64 vm = 0;

	w->thread = 0;
	if (ruby_read(w, l->vm + bias, &vm))
		return 0;
	w->head = vm + l->vm_threads;
	return !ruby_read(w, w->head, &w->node);
}

/* One thread further. 0: that was the last, or the one. */
static __always_inline int ruby_search(struct ruby_walk *w, const struct ruby_layout *l,
				       __u64 fs_base)
{
	__u64 id = 0;

	if (w->node == w->head)
		return 0;
	if (!ruby_read(w, w->node - l->thread_node + l->thread_id, &id) && id == fs_base) {
		w->thread = w->node - l->thread_node;
		return 0;
	}
	return !ruby_read(w, w->node, &w->node);
}

/* ---- frames ---- */

/* `ec`: an execution context. != 0: it is not one. */
static __always_inline int ruby_begin(struct ruby_walk *w, const struct ruby_layout *l, __u64 ec)
{
	__u64 stack = 0, size = 0;

	w->next = w->end = 0;
	if (ruby_read(w, ec + RUBY_EC_STACK, &stack) ||
	    ruby_read(w, ec + RUBY_EC_STACK_SIZE, &size) ||
	    ruby_read(w, ec + RUBY_EC_FRAME, &w->next))
		return -1;
	if (!w->next) /* it has no stack any more */
		return 0;
	w->end = stack + size * 8;
	if (size > RUBY_STACK_MAX / 8 || w->next < stack || w->next > w->end || !l->frame_size ||
	    (w->end - w->next) % l->frame_size)
		return -1;
	return 0;
}

/* Pops one frame. */
static __always_inline enum ruby_step ruby_next(struct ruby_walk *w, const struct ruby_layout *l)
{
	w->frame = w->next;
	if (w->frame >= w->end)
		return RUBY_END;
	RUBY_LOOK(w, w->frame);
	if (ruby_read(w, w->frame + RUBY_FRAME_AT, &w->at) ||
	    ruby_read(w, w->frame + RUBY_FRAME_ISEQ, &w->iseq) ||
	    ruby_read(w, w->frame + RUBY_FRAME_ENV, &w->env) || (w->env & 7) ||
	    ruby_read(w, w->env, &w->flags))
		return RUBY_FAULT;
	if ((w->flags & RUBY_MAGIC_MASK) == RUBY_MAGIC_DUMMY && w->next + l->frame_size >= w->end)
		return RUBY_END;
	w->next += l->frame_size;
	return w->flags & RUBY_FLAG_FINISH && !(w->flags & RUBY_FLAG_C) ? RUBY_CLOSES : RUBY_FRAME;
}

/* What the frame at hand is. */
static __always_inline int ruby_is_script(const struct ruby_walk *w)
{
	return !(w->flags & RUBY_FLAG_C) && w->iseq && w->at;
}

static __always_inline int ruby_is_native(const struct ruby_walk *w)
{
	return (w->flags & RUBY_MAGIC_MASK) == RUBY_MAGIC_C;
}

/* ---- methods ---- */

static __always_inline int ruby_is_of_type(struct ruby_walk *w, __u64 object, __u32 type,
					   __u64 *flags)
{
	return object && !(object & 7) && !ruby_read(w, object, flags) &&
	       (*flags & RUBY_TYPE_MASK) == type;
}

/* The method that an environment's word leads to; 0: none. */
static __always_inline __u64 ruby_method_of(struct ruby_walk *w, __u64 env)
{
	__u64 object = 0, flags = 0;

	if (ruby_read(w, env + (__u64)(__s64)RUBY_ENV_METHOD, &object) ||
	    !ruby_is_of_type(w, object, RUBY_TYPE_MEMO, &flags))
		return 0;
	if (RUBY_MEMO_KIND(flags) == RUBY_MEMO_SVAR &&
	    (ruby_read(w, object + RUBY_SVAR_METHOD, &object) ||
	     !ruby_is_of_type(w, object, RUBY_TYPE_MEMO, &flags)))
		return 0;
	return RUBY_MEMO_KIND(flags) == RUBY_MEMO_METHOD ? object : 0;
}

/* The method in which a block lies, by way of the environments around it: w->method, once
 * ruby_around says 0; 0: none. */
static __always_inline void ruby_around_begin(struct ruby_walk *w)
{
	w->around = w->env;
	w->method = 0;
}

/* One environment further out. 0: that was the last. Who calls it bounds it by RUBY_ENVS. */
static __always_inline int ruby_around(struct ruby_walk *w)
{
	__u64 env = w->around, flags = 0;

	w->method = ruby_method_of(w, env);
	if (w->method || ruby_read(w, env, &flags) || flags & RUBY_ENV_LOCAL ||
	    ruby_read(w, env + (__u64)(__s64)RUBY_ENV_PARENT, &env))
		return 0;
	w->around = env & ~3ull;
	return w->around && !(w->around & 7);
}

#endif
