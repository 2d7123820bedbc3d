/* SPDX-License-Identifier: Apache-2.0 */
/*
 * child: one question, asked of a child process. What it prints goes into memory files (memfd), so
 * nothing is copied through here; what it may use is limited by the kernel: time on the CPU, memory
 * of its own, length of its answer. It is in a process group of its own, has nothing open but its
 * streams, gains no right by exec, and is killed when whoever asked hangs up, when the server ends,
 * when its time is up, and when the thread that waits for it dies. SIGKILL: it only reads.
 */
#ifndef SONDE_SERVE_CHILD_H
#define SONDE_SERVE_CHILD_H

#include <stdint.h>

#include "schema/base/err.h"

#define CHILD_SPANS 3

struct child_limits {
	unsigned seconds;      /* by the clock; on the CPU as many, and one more */
	uint64_t memory_bytes; /* RLIMIT_DATA: what is its own, not the store that it maps */
	uint64_t answer_bytes;
	int spans_fd; /* becomes its descriptor CHILD_SPANS (schema/store/read/span_cache.h); less
			 than that: none */
};

enum child_end {
	CHILD_EXITED, /* child_answer.exit */
	CHILD_OVER_TIME,
	CHILD_KILLED, /* by a signal that is not ours: out of memory, most likely */
	CHILD_LEFT,   /* whoever asked hung up */
	CHILD_STOPPED /* stop_fd became readable: the server ends */
};

struct child_answer {
	enum child_end end;
	int exit, signal;
	int out_fd; /* what it printed, to be closed; -1 if it was not started */
	uint64_t out_bytes;
	char said[4096]; /* the beginning of what it said on stderr */
};

/* Runs argv[0] (a path) to its end. stop_fd, client_fd (a socket, readable end of which means that
 * its peer hung up): -1 for none. -errno with `e` where it could not be started; answer->out_fd is
 * -1 then. */
int child_ask(const char *const *argv, const struct child_limits *limits, int stop_fd,
	      int client_fd, struct child_answer *answer, struct err *e);

#endif
