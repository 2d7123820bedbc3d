/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * python: CPython's own frames of one thread, innermost first. Compiled into the loaders
 * (loaders/lib/runtimes) and made for BPF programs too: no allocation, no recursion, no loop (the
 * caller of python_next bounds it), reads of one word.
 *
 * Sources: CPython's Include/cpython/frameobject.h and code.h (2.7 to 3.10),
 * Include/internal/pycore_frame.h (3.11 to 3.13), pycore_interpframe_structs.h (3.14 on),
 * pycore_debug_offsets.h (3.13 on). struct python_layout (python_layout.h) has the offset of each
 * member in each version.
 *
 * 1. A thread has a struct PyThreadState, which leads to its innermost frame; each frame leads to
 *    the one it returns to.
 * 2. PYTHON_OBJECTS (2.7 to 3.10): frames are objects, in order of the calls. Each is run by its
 *    own call of the interpreter's loop: the k-th frame belongs to the k-th native frame that lies
 *    in the loop's code.
 * 3. From 3.11 on the loop runs calls from Python to Python itself. Frames that one call of the
 *    loop runs are a chunk, and something in the loop's own native frame leads to them: so a
 *    chunk's native frame is the one whose part of the stack holds that address, `mark`. Nothing
 *    needs to be known of the loop's code. PYTHON_CFRAMES (3.11): mark is a struct _PyCFrame, whose
 *    current_frame is the chunk's innermost frame; its outermost has is_entry set; the _PyCFrame
 *    leads to the one before it. PYTHON_SHIMS (3.12 on): a frame without code of a program, whose
 *    owner is PYTHON_OWNER_SHIM or more, closes the chunk; mark is its address.
 * 4. A frame has a code object and says how far in it is: an index (2.7 to 3.9 in bytes, 3.10 in
 *    instructions) or a pointer into the code. What code objects say is for user space
 *    (loaders/lib/runtimes/pycode.h).
 *
 * All of it is untrusted memory: any word may have any value. A walk over garbage ends by
 * PYTHON_FAULT or by the caller's bound.
 *
 * The includer defines, before python_next:
 *   int python_read(struct python_walk *w, __u64 addr, __u64 *value)
 *       a word of memory; != 0: not readable
 * and may define PYTHON_LOOK(w, addr): the next words that are read lie behind addr, within
 * PYTHON_LOOK_BYTES mostly.
 */
#ifndef SONDE_PROBES_RUNTIMES_PYTHON_H
#define SONDE_PROBES_RUNTIMES_PYTHON_H

#include "probes/runtimes/python_layout.h"

#ifndef __always_inline
#define __always_inline inline __attribute__((always_inline))
#endif

#ifndef PYTHON_LOOK
#define PYTHON_LOOK(w, addr) ((void)(w), (void)(addr))
#endif
#define PYTHON_LOOK_BYTES 128

/* FRAME_OWNED_BY_CSTACK, from 3.14 on FRAME_OWNED_BY_INTERPRETER; what is above is no program's
 * either */
#define PYTHON_OWNER_SHIM 3
#define PYTHON_TAGS       7ull /* low bits of a _PyStackRef, which are no part of the address */

struct python_walk {
	__u64 next;   /* frame; 0: none is left */
	__u64 cframe; /* PYTHON_CFRAMES */
	void *ctx;    /* user space: the includer's */

	/* of the frame that was popped last */
	__u64 frame, code, at; /* at: what frame_at holds: f_lasti, or a pointer into the code */
	__u64 mark;            /* with PYTHON_CLOSES and PYTHON_SHIM */
};

enum python_step {
	PYTHON_FRAME,  /* one was popped */
	PYTHON_CLOSES, /* one was popped, which is its chunk's outermost: native frames go on with
			  who called the loop */
	PYTHON_SHIM,   /* the chunk ends, and nothing of a program was popped */
	PYTHON_END,
	PYTHON_FAULT
};

static __always_inline int python_read(struct python_walk *w, __u64 addr, __u64 *value);

static __always_inline int python_byte(struct python_walk *w, __u64 addr, __u8 *value)
{
	__u64 word = 0;

	if (python_read(w, addr & ~7ull, &word))
		return -1;
	*value = (__u8)(word >> (addr & 7) * 8);
	return 0;
}

/* From a thread's state to its innermost frame. != 0: not readable. */
static __always_inline int python_begin(struct python_walk *w, const struct python_layout *l,
					__u64 thread)
{
	w->next = w->cframe = 0;
	if (python_read(w, thread + l->thread_frame, &w->next))
		return -1;
	if (l->cframe_frame == PYTHON_NO_CFRAME)
		return 0;
	w->cframe = w->next;
	w->next = 0;
	return w->cframe ? python_read(w, w->cframe + l->cframe_frame, &w->next) : 0;
}

/* 3.11: the chunk that was left was this _PyCFrame's; the one before it has the next. */
static __always_inline int python_cframe_leave(struct python_walk *w, const struct python_layout *l)
{
	w->mark = w->cframe;
	return w->cframe ? python_read(w, w->cframe + l->cframe_back, &w->cframe) : -1;
}

/* Pops one frame. */
static __always_inline enum python_step python_next(struct python_walk *w,
						    const struct python_layout *l)
{
	__u8 owner = 0;

	w->frame = w->next;
	w->mark = 0;
	if (!w->frame)
		return PYTHON_END;
	PYTHON_LOOK(w, w->frame);
	if ((w->frame & 7) || python_read(w, w->frame + l->frame_code, &w->code) ||
	    python_read(w, w->frame + l->frame_at, &w->at) ||
	    python_read(w, w->frame + l->frame_back, &w->next))
		return PYTHON_FAULT;
	w->code &= ~PYTHON_TAGS;
	if (l->shape == PYTHON_OBJECTS) {
		w->at = (__u64)(__s64)(__s32)w->at; /* an int; f_lineno is next to it */
		return PYTHON_CLOSES;
	}
	if (python_byte(w, w->frame + l->frame_owner, &owner))
		return PYTHON_FAULT;
	if (l->shape == PYTHON_SHIMS) {
		w->mark = w->frame;
		return owner >= PYTHON_OWNER_SHIM ? PYTHON_SHIM : PYTHON_FRAME;
	}
	if (!owner)
		return PYTHON_FRAME;
	return python_cframe_leave(w, l) ? PYTHON_FAULT : PYTHON_CLOSES;
}

#endif
