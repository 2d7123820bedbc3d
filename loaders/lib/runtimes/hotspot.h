/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hotspot: the Java part of a thread's stack in user space (HotSpot, JDK 8 to 26; of later ones
 * what their own tables and methods prove). HotSpot's generated code has no unwind rows, so native
 * stacks end in it; this finds the Java frames there, and where the native ones continue.
 *
 * 1. A thread is the JavaThread whose OSThread has its pthread_self(), which is fs_base. While it
 *    is in native code or in the VM, its anchor has its innermost Java frame: sp, fp, pc.
 * 2. If pc is in the interpreter, the method and the place in it are below fp (words -3, and -8 or,
 *    in JDK 8, -7), the
 *    caller's pc and fp above it. If pc is in a blob of the code cache (found by the heap's map of
 *    segments), its frame has a fixed size; compiled methods name themselves and what was inlined
 *    (hotspotcode.h). A method being deoptimised has its pc in its frame. If pc is where
 *    StubRoutines::call_stub continues, native code called Java there: the frame of that stub leads
 *    to the caller's registers, and to the anchor of the Java frames before it.
 * 3. Chunks belong to the first native frame in the code cache. If its sp and the anchor's are not
 *    close to each other, nothing is shown. If a frame cannot be followed, the stack is cut there.
 *
 * The caller must make sure that the thread does not run meanwhile. The result for a running thread
 * is useless, but takes bounded time.
 */
#ifndef SONDE_RUNTIMES_HOTSPOT_H
#define SONDE_RUNTIMES_HOTSPOT_H

#include "loaders/lib/runtimes/script.h"

struct hotspot;

/* For struct runtime_walker (runtimes.h). NULL also: one that has not started.
 */
struct hotspot *hotspot_open(const struct runtime_memory *m, const void *section, size_t size,
			     uint64_t bias);
/* What frames of such a JVM lack, because its tables do not name what tells it; "": nothing. */
const char *hotspot_without(const void *section, size_t size);
void hotspot_close(struct hotspot *h); /* NULL is fine */

/* A sampled thread: the registers at the interruption, or those of a frame that native code was
 * called from; and its stack at that time. Nothing else of the thread is read. */
struct hotspot_at {
	uint64_t pc, sp, fp;
	const uint64_t *reg; /* all 16, by their DWARF numbers, at the interruption; NULL: pc is a
				return address */
	const uint8_t *code; /* with `reg`: HOTSPOT_CODE bytes at pc */
};
#define HOTSPOT_CODE 32
/*
 * The Java frames from there on, innermost first, up to to->pc, sp, bp if to->goes_on. false: pc is
 * not in code that HotSpot generated. An interrupted frame has a fixed size except in its first and
 * last instructions, where its return address, or the way it ends, gives the size; in the
 * interpreter r13 is the place in the method. Compiled code is only described at some instructions:
 * elsewhere its own method is reported, without a line and without what may be inlined there. `m`
 * of hotspot_open must give the stack of that time.
 */
bool hotspot_sampled(struct hotspot *h, const struct hotspot_at *at, struct runtime_follow *to,
		     struct script_stack *out);
bool hotspot_follow(struct hotspot *h, const struct runtime_native *native,
		    struct runtime_follow *f, struct script_stack *out);

#endif
