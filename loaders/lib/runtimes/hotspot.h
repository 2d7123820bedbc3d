/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hotspot: the Java part of a thread's stack in user space (HotSpot, JDK 11, 17, 21 and 25). Code
 * that HotSpot makes has no unwind rows, so native stacks end in it; this finds the Java frames
 * there, and where native ones go on.
 *
 * 1. A thread is the JavaThread whose OSThread has its pthread_self(), which is fs_base. While it
 *    is in native code or in the VM, its anchor says its innermost Java frame: sp, fp, pc.
 * 2. pc lies in the interpreter: method and place in it stand below fp (words -3, -8), the caller's
 *    pc and fp above it. It lies in a blob of the code cache (found by the heap's map of segments):
 *    its frame has a fixed size; compiled methods name themselves and what was inlined
 *    (hotspotcode.h). One that is being deoptimised has its pc in its frame. It is where
 *    StubRoutines::call_stub goes on: native code has called Java there. The frame of that stub
 *    leads to the caller's registers, and to the anchor of the Java frames before it.
 * 3. Chunks stand for the native frame that is the first in the code cache. Its sp and the anchor's
 *    lie near each other, else nothing is shown. Where a frame cannot be followed, the stack is cut
 *    there.
 *
 * The thread must not run meanwhile: who calls sees to that. What it says of a thread that ran is
 * void, but bounded.
 */
#ifndef SONDE_RUNTIMES_HOTSPOT_H
#define SONDE_RUNTIMES_HOTSPOT_H

#include "loaders/lib/runtimes/script.h"

struct hotspot;

/* As struct runtime_walker says (runtimes.h). NULL also: a JDK that is not known, or one that has
 * not begun. */
struct hotspot *hotspot_open(const struct runtime_memory *m, const void *section, size_t size,
			     uint64_t bias);
void hotspot_close(struct hotspot *h); /* NULL is fine */

/* A sampled thread: registers where it was interrupted, or those of a frame that native code has
 * called from; and its stack as it was then. Nothing else of the thread is read. */
struct hotspot_at {
	uint64_t pc, sp, fp;
	const uint64_t *reg; /* all 16, by their DWARF numbers, where it was interrupted there;
				NULL: pc is a return address */
	const uint8_t *code; /* with `reg`: HOTSPOT_CODE bytes that stood at pc */
};
#define HOTSPOT_CODE 32
/*
 * The Java frames from there on, innermost first, as far as to->pc, sp, bp where to->goes_on.
 * false: pc is not in code that HotSpot has made. The frame that was interrupted has a fixed size
 * but for its first and last instructions, which its return address tells, or how it ends; where
 * the interpreter is in a method says r13. What compiled code runs at any instruction is not
 * described: its own method is told, without a line, and nothing that may be inlined there. `m` of
 * hotspot_open must give the stack as it was.
 */
bool hotspot_sampled(struct hotspot *h, const struct hotspot_at *at, struct runtime_follow *to,
		     struct script_stack *out);
bool hotspot_follow(struct hotspot *h, const struct runtime_native *native,
		    struct runtime_follow *f, struct script_stack *out);

#endif
