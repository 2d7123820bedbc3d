/* SPDX-License-Identifier: Apache-2.0 */
/*
 * v8: JavaScript's frames of a thread in user space (V8 as in Node 16, 18, 20, 22 and 24). V8's own
 * code keeps frame pointers, so native stacks go on through it; this says which of their frames are
 * JavaScript's, and what they run.
 *
 * 1. A native frame may be JavaScript's if its code is V8's: of the block of builtins, or in memory
 *    without a file, in an object of code (v8code.h). Its frame pointer is two words below where
 *    the stack of the next one begins.
 * 2. It is one if a Context and a JSFunction stand in their places below the frame pointer.
 * 3. Interpreted: its bytecode and the place in it stand in the frame. Baseline: the place is found
 *    by the return address. Optimised: what is needed for deoptimising says which functions were
 *    inlined there, with their places; where a return address has none, only the function that was
 *    compiled is said. A builtin that is a function of JavaScript (Array.map) has its name and no
 *    file.
 * 4. Where V8 has not kept source positions (it does for functions that were on the stack of an
 *    Error, or are profiled), a frame has the line at which its function begins.
 *
 * The thread must not run meanwhile: who calls sees to that. What it says of a thread that ran is
 * void, but bounded.
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

/* A sampled thread: registers where it was interrupted, or those of a frame that it has called
 * from; and what stood then where pc and the frames' functions are. `m` of v8_open must give the
 * stack as it was. */
struct v8_at {
	uint64_t pc, sp, fp;
	uint64_t vaddr;      /* of pc: as in struct runtime_native */
	const uint64_t *reg; /* all 16, by their DWARF numbers, where it was interrupted there;
				NULL: pc is a return address */
	const uint8_t *code; /* with `reg`: V8_CODE_BYTES that stood at pc */
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
 * The functions of JavaScript at that frame, innermost first, appended, and its caller. false: none
 * stands there, or none that is certain: the frame is native code.
 *
 * 1. Its function is what stood below the frame pointer when the sample was taken; `objects` has it
 *    as it was, for V8 moves it. What it says is read a moment later: v8places.h sees to that.
 * 2. Interpreted: the bytecode that stands in the frame must be the function's; the place is that
 *    of the call, or, where a bytecode's handler was interrupted, what r9 says: believed if r12 is
 *    that bytecode and the handler that pc lies in is the one of the instruction at r9.
 * 3. Baseline and optimised: the code that pc lies in must be the function's. Optimised code has
 *    its inlined functions at a return address; where it was interrupted, those that are sure by
 *    what is described around it (v8flow.h), the innermost without a line.
 * 4. A frame that was interrupted before it stood or when it no longer did: the code's own
 *    function, and the caller by its return address, where the instructions say where that is.
 */
bool v8_sampled(struct v8 *v, const struct v8_at *at, struct runtime_follow *to,
		struct script_stack *out);

#endif
