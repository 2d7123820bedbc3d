/* SPDX-License-Identifier: Apache-2.0 */
/*
 * beam: frames of Erlang (and Elixir) processes in a sampled thread: in code that BEAM's JIT made,
 * on x86-64, OTP 24 and later, by the tables that the runtime has of it (beamcode.h).
 *
 * 1. In such code rsp is the stack of the Erlang process that runs, in its heap, except where C
 *    code is called: that has the thread's own stack. Without frame pointers (erts_frame_layout 0)
 *    a return address has 00 as its last bits, and no other value on the stack has: so the next
 *    such word is the caller's. Its end is beam_normal_exit.
 * 2. Code that modules share has no function: it counts as its caller's, where that is known. A
 * word at its rsp that is a return address into a module, with any last bits, is its caller's.
 * 3. C code that was called has the thread's own stack. The Erlang stack is not in the copy of
 * that, and what it holds later is not what it held: so the program that takes the sample copies
 * it, too, once it knows where the thread says which Erlang process it runs (beamrun.h). Before
 * that, only the function that called is known, by its return address. Of the two places where the
 *    stack may begin, the code behind the call says which one counts (beamcall.h).
 * 4. Where no Erlang process runs, the scheduler does: process_main, which is its whole stack.
 *
 * With frame pointers (+JPperf) native code walks there, and names are those of the perf map.
 */
#ifndef SONDE_RUNTIMES_BEAM_H
#define SONDE_RUNTIMES_BEAM_H

#include "loaders/lib/runtimes/script.h"

struct beam;

/* For struct runtime_walker (runtimes.h). NULL also: its tables are not there (yet). */
struct beam *beam_open(const struct runtime_memory *m, const void *section, size_t size,
		       uint64_t bias);
void beam_close(struct beam *b); /* NULL is fine */

/* A frame of a sampled thread. */
struct beam_at {
	uint64_t pc, sp, bp, fs_base;
	uint64_t copied;  /* bytes from sp on that are as they were at that time */
	bool interrupted; /* there; else pc is a return address */
	/* of code that called C: memory as it was at that time; size 0: none. `stored`: where the
	 * thread's process says that its stack begins; at_bp: where rbp points */
	struct beam_piece {
		uint64_t at, size;
	} stored, at_bp;
};
#define BEAM_REG_PROCESS 13 /* r13: the Erlang process, in code of the JIT */
/* How the Erlang frames of one sample end. */
enum beam_end {
	BEAM_WHOLE, /* where the Erlang process does */
	BEAM_SHORT, /* where what was copied ends */
	BEAM_CUT
};
/* The Erlang frames from there on, innermost first. to->unnamed: it is code that
 * modules share, whose caller is not known. false: pc is not in code that BEAM made. `m` of
 * beam_open must give the stack of that time. */
bool beam_sampled(struct beam *b, const struct beam_at *at, struct runtime_follow *to,
		  enum beam_end *end, struct script_stack *out);
/* Where the thread says which Erlang process it runs, and where in that the top of its stack is.
 * `process`: r13, if it was interrupted in code of the JIT; else 0. false: not known (yet). */
bool beam_thread(struct beam *b, uint64_t fs_base, uint64_t process, uint64_t *running,
		 uint32_t *top);

#endif
