/* SPDX-License-Identifier: Apache-2.0 */
/*
 * beam: frames of Erlang (and Elixir) processes in a sampled thread: in code that BEAM's JIT made,
 * on x86-64, OTP 24 and later, by the tables that the runtime has of it (beamcode.h).
 *
 * 1. In such code rsp is the stack of the Erlang process that runs, in its heap, except where C
 *    code is called: that has the thread's own stack. Without frame pointers (erts_frame_layout 0)
 *    a return address has 00 as its last bits, and no other value on the stack has: so the next
 *    such word is the caller's. Its end is beam_normal_exit.
 * 2. Code that modules share has no function. A word at its rsp that is a return address into a
 *    module, with any last bits, is its caller's.
 * 3. Of C code that was called, only the function that called it is known: its return address. The
 *    Erlang stack is not in the copy then, and what it holds later is not what it held.
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
	uint64_t pc, sp, fs_base;
	uint64_t copied;  /* bytes from sp on that are as they were at that time */
	bool interrupted; /* there; else pc is a return address */
};
/* How the Erlang frames of one sample end. */
enum beam_end {
	BEAM_WHOLE, /* where the Erlang process does */
	BEAM_SHORT, /* where what was copied ends */
	BEAM_CUT
};
/* The Erlang frames from there on, innermost first. to->unnamed: the first one is code that
 * modules share. false: pc is not in code that BEAM made. `m` of beam_open must give the stack of
 * that time. */
bool beam_sampled(struct beam *b, const struct beam_at *at, struct runtime_follow *to,
		  enum beam_end *end, struct script_stack *out);

#endif
