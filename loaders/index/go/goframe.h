/* SPDX-License-Identifier: Apache-2.0 */
/*
 * goframe: the unwind rows of one Go function (amd64), from its pcsp table and its code. Pure over
 * bytes.
 *
 * CFA: pcsp says for each address by how much the function has lowered SP: CFA = RSP + depth + 8.
 * Exact in prologues and epilogues too. RBP: two forms of code save it; after such an instruction
 * it is saved as long as SP does not go above the slot:
 *   from Go 1.21 on, and by hand:  push %rbp (depth grows by 8)
 *   before Go 1.21:                mov %rbp, x(%rsp) right after the frame was opened, x = depth
 *                                  - 8
 * Everywhere else it is still the caller's, or is used as a scratch register; then the next Go
 * frame, which always saves it, has the right value.
 *
 * Functions for which pcsp is not enough, by name (symbols of the runtime, 1.2 to 1.27) or by their
 * flag SP_WRITE:
 *   outermost      goexit, mstart, rt0_go and the process's entry: ROW_ROOT
 *   no way back    gogo, mcall, clone's child, switchToCrashStack0: ordinary until they load SP,
 *                  then ROW_ROOT. (mcall's function never returns to mcall's caller, which may be
 *                  running elsewhere by then.)
 *   sigreturn      ROW_SIGNAL, from one byte before (the caller of a handler is looked up at the
 *                  return address - 1)
 *   injected       sigpanic, asyncPreempt, debugCall: entered as if called from the interrupted
 *                  instruction
 *   morestack      after it loads SP: the goroutine's saved state
 *   systemstack    with a frame pointer (Go 1.21): RBP stays on the goroutine's stack, so CFA = RBP
 *                  + 16 throughout; before, after it loads SP and until it loads it back: the
 *                  goroutine's saved state
 *   asmcgocall     between the loads of SP: from what it left on the system stack; in its other
 *                  branch, which only aligns SP: from the saved SP
 *   others of runtime and time that write SP and have a frame pointer: CFA = RBP + 16 throughout
 *                  (the clocks of 1.15 keep SP itself in RBP: gocode_frame_pointer)
 *   anything else that writes SP: unsupported from there on
 */
#ifndef SONDE_INDEX_GOFRAME_H
#define SONDE_INDEX_GOFRAME_H

#include "loaders/index/go/gopc.h"
#include "loaders/index/go/pclntab.h"
#include "loaders/index/unwind/rows.h"

struct goframe_func {
	uint64_t start, end;
	const char *name;
	const uint8_t *code; /* from start on */
	size_t code_len;     /* up to end - start; less: the rest cannot be read */
	struct pclntab_record rec;
};

/* Where the runtime keeps what leads from a thread to its goroutine; from the code of systemstack
 * and morestack. */
struct goframe_runtime {
	bool known;
	int32_t tls;      /* g = *(FS base + tls) */
	bool tls_by_got;  /* `tls` is not in the code: what the loader writes into the GOT */
	int32_t curg;     /* curg = *(m + curg) */
	int32_t sched_bp; /* gobuf.bp, from gobuf's beginning */
};

void goframe_runtime_learn(const struct goframe_func *systemstack,
			   const struct goframe_func *morestack, struct goframe_runtime *out);
void goframe_rows(const struct pclntab *t, const struct goframe_func *f,
		  const struct goframe_runtime *rt, struct rows *rows);

#endif
