/* SPDX-License-Identifier: Apache-2.0 */
/*
 * v8_cache: names and places of JavaScript functions, kept from one sampled stack to the next.
 *
 * 1. The key of a place is the function's SharedFunctionInfo and the offset in its bytecode.
 * 2. It is valid as long as its sources are unchanged: the function's name, script and literal's
 *    number, the script's number, source and name, the bytecode and whether it has source
 *    positions. If an object was moved or freed and another took its place, these differ: the
 *    script's number is not reused.
 * 3. The sources are read before and after the place: if they change in between, there is no place.
 */
#ifndef SONDE_RUNTIMES_V8_CACHE_H
#define SONDE_RUNTIMES_V8_CACHE_H

#include "loaders/lib/runtimes/v8/v8object.h"

#define V8_CACHE_MAX 8192u

struct v8_place;
struct v8_cache {
	struct v8_place *all; /* own */
};

void v8_cache_release(struct v8_cache *p);
/* Borrowed until the next call; its function is NULL: it has no name and is left out. NULL: it is
 * not to be had, or changed while it was read. `b` is what `h` reads by. */
const struct script_place *v8_cache_get(struct v8_cache *p, struct v8heap *h,
					struct runtime_budget *b, uint64_t shared,
					int64_t bytecode);

#endif
