/* SPDX-License-Identifier: Apache-2.0 */
/*
 * v8: JavaScript's frames of a thread in user space (V8 as in Node 16, 18, 20, 22 and 24). V8's own code keeps frame pointers, so native stacks go
 * on through it; this says which of their frames are JavaScript's, and what they run.
 *
 * 1. A native frame may be JavaScript's if its code is V8's: of the block of builtins, or in memory without a file, in an object of code
 *    (v8code.h). Its frame pointer is two words below where the stack of the next one begins.
 * 2. It is one if a Context and a JSFunction stand in their places below the frame pointer.
 * 3. Interpreted: its bytecode and the place in it stand in the frame. Baseline: the place is found by the return address. Optimised: what is needed for
 *    deoptimising says which functions were inlined there, with their places; where a return address has none, only the function
 *    that was compiled is said. A builtin that is a function of JavaScript (Array.map) has its name and no file.
 * 4. Where V8 has not kept source positions (it does for functions that were on the stack of an Error, or are profiled), a frame has the line at
 *    which its function begins.
 *
 * The thread must not run meanwhile: who calls sees to that. What it says of a thread that ran is void, but bounded.
 */
#ifndef SONDE_RUNTIMES_V8_H
#define SONDE_RUNTIMES_V8_H

#include "loaders/lib/runtimes/script.h"

struct v8;

/* As struct runtime_walker says (runtimes.h). NULL also: a version that is not known. */
struct v8 *v8_open(const struct runtime_memory *m, const void *section, size_t size, uint64_t bias);
void v8_close(struct v8 *v); /* NULL is fine */
void v8_stack(struct v8 *v, const struct runtime_native *native, struct script_stack *out);

#endif
