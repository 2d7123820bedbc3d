/* SPDX-License-Identifier: Apache-2.0 */
/*
 * late_jit: walks the frames of a late stack (late.h) in code that a runtime generated: HotSpot, V8
 * or BEAM. The frames are in the copy of the stack; what they mean is read from the process a
 * moment later: methods exist as long as code that runs them, and the code at pc must still be the
 * same.
 */
#ifndef SONDE_HOST_LATE_JIT_H
#define SONDE_HOST_LATE_JIT_H

#include "loaders/lib/host/late/late.h"

struct late_jit;
struct naming;

struct late_jit *late_jit_new(struct naming *n); /* borrowed; makes the frames' words */
void late_jit_free(struct late_jit *c);          /* NULL is fine */
/* For struct late_code; ctx is a struct late_jit. */
int late_jit_step(void *ctx, struct hostmaps *hm, const struct stack_late *l,
		  const struct late_aside aside[STACK_ASIDE_N], struct unwind_code *c);

/* Tells the program of a thread that runs Erlang (struct stack_erlang); NULL: forget it. */
typedef void (*late_jit_tell)(void *ctx, uint32_t tgid, uint32_t tid,
			      const struct stack_erlang *erlang);
void late_jit_on_erlang(struct late_jit *c, late_jit_tell tell, void *ctx);

#endif
