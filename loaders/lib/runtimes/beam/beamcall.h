/* SPDX-License-Identifier: Apache-2.0 */
/*
 * beamcall: where BEAM's code has the Erlang stack while C code runs that it called: what its next
 * instructions do says it. Source: OTP's jit/x86/beam_asm.hpp, process_main.cpp, of 24 to 29.
 *
 * C code has the thread's own stack. Before the call the top of the Erlang stack is stored in the
 * Erlang process (register r13), or kept in rbp; after it, it is taken back from there:
 *   mov rsp, [r13 + offset]
 *   mov rsp, rbp
 * The scheduler is called from one place, process_main, which takes another process:
 *   mov r13, rax
 * Whichever comes first counts, before the code jumps away.
 *
 * Pure over a reader of memory.
 */
#ifndef SONDE_RUNTIMES_BEAMCALL_H
#define SONDE_RUNTIMES_BEAMCALL_H

#include "loaders/lib/runtimes/script.h"

enum beamcall_stack {
	BEAMCALL_UNKNOWN,
	BEAMCALL_STORED, /* in the process, at `offset` */
	BEAMCALL_IN_RBP,
	BEAMCALL_SCHEDULES /* no Erlang process runs */
};

struct beamcall {
	enum beamcall_stack stack;
	uint32_t offset;
};

/* Of the call that returns to pc. */
struct beamcall beamcall_read(const struct runtime_memory *m, uint64_t pc);

#endif
