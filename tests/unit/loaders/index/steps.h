/* SPDX-License-Identifier: Apache-2.0 */
/*
 * steps: a program executed one instruction at a time, together with a list of the calls that it
 * has not returned from: by what call, ret and signals really do, not by any table. A test holds
 * its own idea of the stack against that.
 *
 * The list is one for a thread, whatever stack it is on: Go's systemstack and cgo switch SP inside
 * of a call. Only jumps out of it end it: Go's scheduler (gogo). Then the list is put aside, and
 * comes back when gogo resumes one of its frames; also at another place, when Go has moved the
 * goroutine's stack meanwhile.
 */
#ifndef TESTS_INDEX_STEPS_H
#define TESTS_INDEX_STEPS_H

#include <sched.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include <sys/user.h>

#define STEPS_DEPTH 1024
#define STEPS_ASIDE 16
#define STEPS_PAGES 8
/* one of this many SIGURG is delivered; Go sends them to preempt goroutines that run for long */
#define STEPS_URG 60

struct steps_frame {
	uint64_t cfa;     /* SP before the call */
	uint64_t ra;      /* where it goes on */
	uint64_t bp;      /* the caller's RBP */
	bool interrupted; /* by a signal: ra is no return address, and this frame is not a call */
};

struct steps_list {
	struct steps_frame at[STEPS_DEPTH]; /* innermost last */
	size_t n;
};

struct steps {
	pid_t pid;
	int mem;
	cpu_set_t before; /* where this process ran until it stepped */
	struct user_regs_struct regs;
	struct steps_list now;
	struct steps_list aside[STEPS_ASIDE];
	size_t aside_next;
	uint64_t gogo_start, gogo_end; /* the function whose jump ends a list */
	bool over;                     /* the program has ended */
	int signal;                    /* to be delivered by the next step */
	size_t signals, resumed, moved;
	struct steps_page {  /* of this instruction's memory */
		uint64_t at; /* 0: none */
		uint64_t words[512];
	} pages[STEPS_PAGES];
	size_t page_next, preempted;
};

/* Starts `path` with SONDE_STEPS=1 in its environment, and runs it until it sends its own thread
 * SIGSTOP. */
void steps_start(struct steps *s, const char *path);
/* One instruction. */
void steps_next(struct steps *s);
void steps_end(struct steps *s);
/* A word of its memory, as it is at this instruction. */
bool steps_read(struct steps *s, uint64_t addr, uint64_t *value);

#endif
