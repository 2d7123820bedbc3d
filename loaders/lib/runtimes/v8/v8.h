/* SPDX-License-Identifier: Apache-2.0 */
/*
 * v8: JavaScript's frames of a thread in user space (V8 as in Node 16, 18, 20, 22, 24 and 26). V8's
 * code keeps frame pointers, so native stacks continue through it; this finds which of their frames
 * are JavaScript's, and what they run.
 *
 * 1. A native frame may be JavaScript's if its code is V8's: in the block of builtins, or in memory
 *    without a file, in a code object (v8code.h). Its frame pointer is two words below the start of
 *    the next frame's stack.
 * 2. It is one if a Context and a JSFunction are in their places below the frame pointer.
 * 3. Interpreted: the frame has its bytecode and the place in it. Baseline: the return address
 *    gives the place. Optimised: the data for deoptimising says which functions were inlined there,
 *    with their places; if it has nothing for a return address, only the compiled function is
 *    reported. A builtin that is a JavaScript function (Array.map) has a name and no file.
 * 4. If V8 has not kept source positions (it does for functions that were on the stack of an Error,
 *    or are profiled), a frame has the line at which its function begins.
 *
 * The caller must make sure that the thread does not run meanwhile. The result for a running thread
 * is useless, but takes bounded time.
 */
#ifndef SONDE_RUNTIMES_V8_H
#define SONDE_RUNTIMES_V8_H

#include "loaders/lib/runtimes/script.h"

struct v8;
struct stack_object; /* probes/runtimes/object.h */

/* As struct runtime_walker says (runtimes.h). NULL also: a version that is not known. */
struct v8 *v8_open(const struct runtime_memory *m, const void *section, size_t size, uint64_t bias);
void v8_close(struct v8 *v); /* NULL is fine */
void v8_stack(struct v8 *v, const struct runtime_native *native, struct script_stack *out);

/* A sampled thread: the registers at the interruption, or those of a frame it has called from; and
 * the content at that time of pc and the frames' functions. `m` of v8_open must give the stack of
 * that time. */
struct v8_at {
	uint64_t pc, sp, fp;
	uint64_t vaddr;      /* of pc: as in struct runtime_native */
	const uint64_t *reg; /* all 16, by their DWARF numbers, where it was interrupted there;
				NULL: pc is a return address */
	const uint8_t *code; /* with `reg`: V8_CODE_BYTES at pc */
	const struct stack_object *objects;
	size_t n_objects;
};
#define V8_CODE_BYTES 32

/* Is this where its file is mapped? An address of the block of builtins; 0: it is not, or V8 has
 * not begun. */
uint64_t v8_builtins(struct v8 *v);
/* Before each sampled stack. */
void v8_sampled_begin(struct v8 *v);
/*
 * The JavaScript functions at that frame, innermost first, appended, and its caller. false: not
 * found, or not for certain: the frame is native code.
 *
 * 1. Its function is the object below the frame pointer when the sample was taken; `objects` has
 *    its content at that time, because V8 moves objects. The rest is read a moment later:
 *    the cache (v8.c) makes sure it fits.
 * 2. Interpreted: the frame's bytecode must be the function's; the place is that of the call, or,
 *    if a bytecode's handler was interrupted, r9: believed if r12 is that bytecode and pc is in the
 *    handler of the instruction at r9.
 * 3. Baseline and optimised: the code at pc must be the function's. Optimised code has its inlined
 *    functions at a return address; where it was interrupted, those that are certain from the
 *    descriptions around it (v8flow.h), the innermost without a line.
 * 4. A frame that was interrupted before it was set up or after it was removed: the code's own
 *    function, and the caller by its return address, if the instructions show where that is.
 */
bool v8_sampled(struct v8 *v, const struct v8_at *at, struct runtime_follow *to,
		struct script_stack *out);

#endif
