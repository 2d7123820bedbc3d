/* SPDX-License-Identifier: Apache-2.0 */
/*
 * v8running: which functions were running when optimised code was interrupted, including inlined
 * ones (v8flow.h finds them). The result for a piece of code is kept from one sampled stack to the
 * next: V8 does not change code, and numbers each piece.
 */
#ifndef SONDE_RUNTIMES_V8RUNNING_H
#define SONDE_RUNTIMES_V8RUNNING_H

#include "loaders/lib/runtimes/v8/v8code.h"

#define V8_RUNNING_KEPT 256u

struct v8_followed; /* a piece of code */
struct v8running {
	struct v8_followed *kept[V8_RUNNING_KEPT]; /* own; by where the code begins */
};

void v8running_release(struct v8running *r);
/* Outermost first, which is `shared`; the last one's place is not known. 0: nothing but the
 * function that was compiled is known. */
size_t v8running_at(struct v8running *r, struct v8heap *h, const struct v8_code *code,
		    uint64_t shared, uint64_t pc, struct v8_function out[V8_INLINED_MAX]);

#endif
