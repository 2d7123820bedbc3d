/* SPDX-License-Identifier: Apache-2.0 */
/*
 * beamrun: where a thread of BEAM says which Erlang process it runs. Sources: OTP's erl_process.h,
 * of 24 to 29.
 *
 * 1. Three arrays hold the data of all schedulers; that of one has its thread's id (pthread_t,
 * which is fs_base), and further on a pointer to the process that it runs.
 * 2. A process begins with its id, an immediate value of a pid (last four bits 0011). The word at
 *    `top` (beamcall.h) is the top of its stack, the one before that of its heap; behind them come
 *    the heap's beginning and end, one word of another kind, and its size in words.
 * 3. How far behind the thread's id that pointer is: where such a process was seen twice, and at no
 *    nearer place. If the process that a thread ran is known (r13 in code of the JIT), once is
 *    enough.
 *
 * Pure over a reader of memory.
 */
#ifndef SONDE_RUNTIMES_BEAMRUN_H
#define SONDE_RUNTIMES_BEAMRUN_H

#include "loaders/lib/runtimes/script.h"
#include "probes/runtimes/beam_layout.h"

#define BEAMRUN_THREADS 256
#define BEAMRUN_WORDS   160 /* behind the thread's id, of one scheduler's data */

struct beamrun {
	const struct runtime_memory *m; /* borrowed */
	const struct beam_layout *l;    /* borrowed */
	uint64_t bias;
	uint32_t top;                /* 0: not known yet */
	uint32_t distance;           /* words from the thread's id; 0: not known yet */
	uint8_t seen[BEAMRUN_WORDS]; /* how often each place held a process */
	uint32_t tries;              /* that are left */
	struct beamrun_thread {
		uint64_t fs_base;
		uint64_t at; /* its id in the scheduler's data; 0: it is no scheduler */
	} threads[BEAMRUN_THREADS];
	size_t n;
};

/* `m` and `l` must stay. */
void beamrun_begin(struct beamrun *r, const struct runtime_memory *m, const struct beam_layout *l,
		   uint64_t bias);
/* The code that follows a call says where the top of a stack is stored. false: it does not agree
 * with other code. */
bool beamrun_top(struct beamrun *r, uint32_t offset);
/* Where the thread says which process it runs. `process`: which one it ran a moment ago, or 0.
 * false: not known (yet). */
bool beamrun_find(struct beamrun *r, uint64_t fs_base, uint64_t process, uint64_t *running);

#endif
