/* SPDX-License-Identifier: Apache-2.0 */
/*
 * latecode: stretches of a late stack (late.h) in code that a runtime has made: HotSpot's. Its
 * frames lie in the copy of the stack; what they mean is read in the process, a moment later:
 * methods are there as long as code that runs them, and what stood at pc must stand there still.
 */
#ifndef SONDE_HOST_LATE_JIT_H
#define SONDE_HOST_LATE_JIT_H

#include "loaders/lib/host/late/late.h"

struct late_jit;
struct naming;

struct late_jit *late_jit_new(struct naming *n); /* borrowed; gives frames their words */
void late_jit_free(struct late_jit *c);          /* NULL is fine */
/* As struct late_code wants it; ctx is a struct late_jit. */
int late_jit_step(void *ctx, struct hostmaps *hm, const struct stack_late *l,
		  struct unwind_code *c);

#endif
