/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * php: the frames of PHP's engine, innermost first. Compiled into BPF programs (php.bpf.h) and into
 * the loaders (loaders/lib/runtimes): no allocation, no recursion, bounded loops (the caller of
 * php_next has its own bound), reads of one word.
 *
 * Sources: php-src's Zend/zend_compile.h (struct _zend_execute_data, ZEND_CALL_*; alike from 7.4 to
 * 8.4), zend_globals.h, zend_generators.c.
 *
 * 1. executor_globals leads to the innermost frame, a struct _zend_execute_data; each leads to the
 *    one it returns to. Without thread safety (which layouts are made for) a process has one.
 * 2. A frame has a function: of a script (PHP_SCRIPT, PHP_EVAL), or of C (PHP_INTERNAL), which has
 *    no instructions. A frame without a function lies between a generator and its resumer, and
 *    names the generator that was resumed. The one that runs may be another one, for which that one
 *    waits (yield from): those that wait have frames, too, which lie between.
 * 3. One call of the engine's loop, execute_ex, runs frames of scripts that call each other. The
 *    outermost of them has PHP_CALL_TOP: the chunk closes there, and native frames go on with the
 *    loop's caller.
 * 4. An instruction has its line. One outside its function (an exception is being thrown) has none.
 *    A frame has the instruction that was last saved, which is right whenever it has called
 *    something; while the loop itself runs, the frame is in the register r14 and the instruction in
 *    r15.
 *
 * All of it is untrusted memory: any word may have any value. A walk over garbage ends by PHP_FAULT
 * or by the caller's bound.
 *
 * The includer defines, before php_next:
 *   int php_read(struct php_walk *w, __u64 addr, __u64 *value)
 *       a word of memory; != 0: not readable
 * and may define PHP_LOOK(w, addr) and PHP_LOOK_FUNC(w, addr): the next words that are read are
 * those of the frame, the function there.
 */
#ifndef SONDE_PROBES_RUNTIMES_PHP_H
#define SONDE_PROBES_RUNTIMES_PHP_H

#include "probes/runtimes/php_layout.h"

#ifndef __always_inline
#define __always_inline inline __attribute__((always_inline))
#endif

#ifndef PHP_LOOK
#define PHP_LOOK(w, addr) ((void)(w), (void)(addr))
#endif
#ifndef PHP_LOOK_FUNC
#define PHP_LOOK_FUNC(w, addr) ((void)(w), (void)(addr))
#endif

#define PHP_GENERATORS 32 /* that wait for one another */

struct php_walk {
	__u64 next;    /* 0: none is left */
	__u64 waiting; /* the generator that was resumed */
	void *ctx;     /* user space: the includer's */
	__u32 waits;   /* how many of the waiting ones are left */
	__u32 cut;     /* some could not be said */
	__u64 loop_frame,
		loop_at; /* r14 and r15, where the loop itself was interrupted; 0: it was not */

	/* of the frame that was popped last */
	__u64 frame, func, at;
	__u64 code; /* of a script's function: its instructions */
	__u32 type; /* enum php_function; 0: it has no function */
	__u32 line; /* 0: not known */
};

enum php_step {
	PHP_FRAME,  /* one was popped */
	PHP_CLOSES, /* one was popped, which is its chunk's outermost */
	PHP_END,
	PHP_FAULT
};

static __always_inline int php_read(struct php_walk *w, __u64 addr, __u64 *value);

static __always_inline int php_half(struct php_walk *w, __u64 addr, __u32 *value)
{
	__u64 word = 0;

	if (php_read(w, addr & ~7ull, &word))
		return -1;
	*value = (__u32)(word >> (addr & 4) * 8);
	return 0;
}

/* `globals`: address of executor_globals in this process. != 0: not readable. */
static __always_inline int php_begin(struct php_walk *w, const struct php_layout *l, __u64 globals)
{
	w->next = 0;
	w->waits = w->cut = 0;
	w->loop_frame = w->loop_at = 0;
	return php_read(w, globals + l->current, &w->next);
}

static __always_inline int php_is_among(const struct php_walk *w, __u64 at, __u32 count)
{
	return at >= w->code && !((at - w->code) & (PHP_OP_SIZE - 1)) &&
	       (at - w->code) / PHP_OP_SIZE < count;
}

/* Of a script's function, by the instruction at hand. != 0: not readable. */
static __always_inline int php_place(struct php_walk *w, const struct php_layout *l)
{
	__u32 count = 0;

	if (php_read(w, w->func + l->code, &w->code) ||
	    php_half(w, w->func + l->code_count, &count))
		return -1;
	if (w->loop_frame == w->frame && php_is_among(w, w->loop_at, count))
		w->at = w->loop_at;
	if (php_is_among(w, w->at, count) && php_half(w, w->at + PHP_OP_LINE, &w->line))
		w->line = 0;
	return 0;
}

/* Its function. != 0: it has none. */
static __always_inline int php_function(struct php_walk *w, const struct php_layout *l)
{
	__u64 head = 0;

	w->code = 0;
	w->line = 0;
	PHP_LOOK_FUNC(w, w->func);
	if ((w->func & 7) || php_read(w, w->func, &head))
		return -1;
	w->type = (__u32)(head & 0xff);
	if (w->type == PHP_INTERNAL)
		return 0;
	return w->type != PHP_SCRIPT && w->type != PHP_EVAL ? -1 : php_place(w, l);
}

/* Finds out how many generators wait for the one that runs. If unknown, 0. */
static __always_inline void php_resumed(struct php_walk *w, const struct php_layout *l, __u64 info)
{
	__u64 generator = 0, parent = 0;
	__u32 n = 0;

	w->cut = 1;
	if (!l->generator_parent || (info & 0xff) != PHP_THIS_OBJECT ||
	    php_read(w, w->frame + PHP_FRAME_THIS, &generator))
		return;
	w->waiting = generator;
	for (; n < PHP_GENERATORS; n++) {
		if (php_read(w, generator + l->generator_parent, &parent))
			return;
		if (!parent)
			break;
		generator = parent;
	}
	if (n == PHP_GENERATORS)
		return;
	w->cut = 0;
	w->waits = n;
}

/* The next one of those that wait. */
static __always_inline enum php_step php_waits(struct php_walk *w, const struct php_layout *l)
{
	__u64 generator = w->waiting;

	w->waits--;
	for (__u32 i = 0; i < PHP_GENERATORS; i++) {
		__u64 parent = 0;

		if (i >= w->waits)
			break;
		if (php_read(w, generator + l->generator_parent, &parent))
			return PHP_FAULT;
		generator = parent;
	}
	if (php_read(w, generator + l->generator_frame, &w->frame) || (w->frame & 7) ||
	    php_read(w, w->frame + PHP_FRAME_FUNC, &w->func) ||
	    php_read(w, w->frame + PHP_FRAME_AT, &w->at) || !w->func || php_function(w, l) ||
	    w->type != PHP_SCRIPT)
		return PHP_FAULT;
	return PHP_FRAME;
}

/* Pops one frame. */
static __always_inline enum php_step php_next(struct php_walk *w, const struct php_layout *l)
{
	__u64 info = 0;

	if (w->waits)
		return php_waits(w, l);
	w->frame = w->next;
	w->type = 0;
	if (!w->frame)
		return PHP_END;
	PHP_LOOK(w, w->frame);
	if ((w->frame & 7) || php_read(w, w->frame + PHP_FRAME_FUNC, &w->func) ||
	    php_read(w, w->frame + PHP_FRAME_AT, &w->at) ||
	    php_read(w, w->frame + PHP_FRAME_INFO, &info) ||
	    php_read(w, w->frame + PHP_FRAME_BACK, &w->next))
		return PHP_FAULT;
	if (!w->func) {
		php_resumed(w, l, info);
		return PHP_FRAME;
	}
	if (php_function(w, l))
		return PHP_FAULT;
	return w->type != PHP_INTERNAL && (__u32)info & PHP_CALL_TOP ? PHP_CLOSES : PHP_FRAME;
}

#endif
