/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * php: the frames of PHP's engine, innermost first. Compiled into the loaders (loaders/lib/runtimes) and made for BPF programs
 * too: no allocation, no recursion, no loop (who calls php_next bounds it), reads of one word.
 *
 * Sources: php-src's Zend/zend_compile.h (struct _zend_execute_data, ZEND_CALL_*; alike from 7.4 to 8.4), zend_globals.h,
 * zend_generators.c.
 *
 * 1. executor_globals leads to the innermost frame, a struct _zend_execute_data; each leads to the one it returns to. Without
 *    thread safety (which layouts are made for) a process has one.
 * 2. A frame has a function: of a script (PHP_SCRIPT, PHP_EVAL), or of C (PHP_INTERNAL), which has no instructions. A frame
 *    without a function stands between a generator and who resumed it.
 * 3. One call of the engine's loop, execute_ex, runs frames of scripts that call each other. The outermost of them has
 *    PHP_CALL_TOP: the chunk closes there, and native frames go on with who called the loop.
 *
 * All of it is a stranger's memory: any word may be anything. A walk over garbage ends by PHP_FAULT or by the caller's bound.
 *
 * The includer defines, before php_next:
 *   int php_read(struct php_walk *w, __u64 addr, __u64 *value)   a word of memory; != 0: not readable
 */
#ifndef SONDE_PROBES_RUNTIMES_PHP_H
#define SONDE_PROBES_RUNTIMES_PHP_H

#include "probes/runtimes/php_layout.h"

#ifndef __always_inline
#define __always_inline inline __attribute__((always_inline))
#endif

struct php_walk {
	__u64 next; /* 0: none is left */
	void *ctx;  /* user space: the includer's */

	/* of the frame that was popped last */
	__u64 frame, func, at;
	__u32 type; /* enum php_function; 0: it has no function */
};

enum php_step {
	PHP_FRAME,  /* one was popped */
	PHP_CLOSES, /* one was popped, which is its chunk's outermost */
	PHP_END,
	PHP_FAULT
};

static __always_inline int php_read(struct php_walk *w, __u64 addr, __u64 *value);

/* `globals`: where executor_globals stands in this process. != 0: not readable. */
static __always_inline int php_begin(struct php_walk *w, const struct php_layout *l, __u64 globals)
{
	w->next = 0;
	return php_read(w, globals + l->current, &w->next);
}

/* Pops one frame. */
static __always_inline enum php_step php_next(struct php_walk *w)
{
	__u64 info = 0, head = 0;

	w->frame = w->next;
	w->type = 0;
	if (!w->frame)
		return PHP_END;
	if ((w->frame & 7) || php_read(w, w->frame + PHP_FRAME_FUNC, &w->func) || php_read(w, w->frame + PHP_FRAME_AT, &w->at) ||
	    php_read(w, w->frame + PHP_FRAME_INFO, &info) || php_read(w, w->frame + PHP_FRAME_BACK, &w->next))
		return PHP_FAULT;
	if (!w->func)
		return PHP_FRAME;
	if ((w->func & 7) || php_read(w, w->func, &head))
		return PHP_FAULT;
	w->type = (__u32)(head & 0xff);
	if (w->type == PHP_INTERNAL)
		return PHP_FRAME;
	if (w->type != PHP_SCRIPT && w->type != PHP_EVAL)
		return PHP_FAULT;
	return (__u32)info & PHP_CALL_TOP ? PHP_CLOSES : PHP_FRAME;
}

#endif
