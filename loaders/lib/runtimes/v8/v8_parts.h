/* SPDX-License-Identifier: Apache-2.0 */
/* v8_parts: what v8.c (threads that stand) and v8sampled.c (threads that were sampled) have in
 * common. */
#ifndef SONDE_RUNTIMES_V8_PARTS_H
#define SONDE_RUNTIMES_V8_PARTS_H

#include "loaders/lib/runtimes/v8/v8.h"
#include "loaders/lib/runtimes/v8/v8code.h"
#include "loaders/lib/runtimes/v8/v8_cache.h"
#include "loaders/lib/runtimes/v8/v8running.h"

struct v8 {
	struct runtime_budget memory;
	struct v8heap heap;
	struct v8codes codes;
	uint64_t bias, builtins, builtins_end;
	/* of sampled stacks */
	struct v8_cache places;
	struct v8running running;
	uint64_t handlers; /* the table of the bytecodes' handlers, as read last; 0: none */
	uint64_t handler[V8_BYTECODES_MAX];
};

/* Where its builtins are; they may not have been there before. */
bool v8_builtins_find(struct v8 *v);
/* An address in the file: of the block of builtins. */
bool v8_is_builtin(const struct v8 *v, uint64_t vaddr);
/* The bytecode that stands in the frame; 0: it is not this function's. */
uint64_t v8_frame_bytecodes(struct v8 *v, uint64_t fp, uint64_t shared);
/* Where in that bytecode an interpreted frame says it is; V8_NOWHERE: it does not. */
int64_t v8_frame_offset(struct v8 *v, uint64_t fp);

#endif
