/* SPDX-License-Identifier: Apache-2.0 */
/*
 * child: runs one request in a child process. Its output goes to memory files (memfd), so nothing
 * is copied here; the kernel limits what it may use: CPU time, memory, length of the answer. It has
 * a separate process group, no open descriptors but its streams, gains no privileges by exec, and
 * is killed when the client hangs up, when the server ends, when its time is up, and when the
 * thread that waits for it dies. SIGKILL is safe because it only reads.
 */
#ifndef SONDE_BASE_CHILD_H
#define SONDE_BASE_CHILD_H

#include <stdint.h>

#include "schema/base/err.h"

#define CHILD_SPANS 3

struct child_limits {
	unsigned seconds;      /* wall time; for CPU time, one more */
	uint64_t memory_bytes; /* RLIMIT_DATA: its own memory, without the store that it maps */
	uint64_t answer_bytes;
	int in_fd;    /* its standard input, from its beginning; 0: it has none */
	int spans_fd; /* becomes descriptor CHILD_SPANS (schema/store/read/span_cache.h) of the
			 child; below that: none */
};

enum child_end {
	CHILD_EXITED, /* child_answer.exit */
	CHILD_OVER_TIME,
	CHILD_KILLED, /* by a signal that this program did not send: out of memory, most likely */
	CHILD_LEFT,   /* the client hung up */
	CHILD_STOPPED /* stop_fd became readable: the server ends */
};

struct child_answer {
	enum child_end end;
	int exit, signal;
	int out_fd; /* its output, to be closed by the caller; -1 if it was not started */
	uint64_t out_bytes;
	char said[4096]; /* the beginning of its stderr */
};

/* A file in which children remember the time spans of finished segments: otherwise each opens all
 * of them. Sets SONDE_SPANS. -1: then they do. One that the parent made is used again. */
int child_spans_make(void);

/* Runs argv[0] (a path) to its end. stop_fd and client_fd (a socket; readable at its end means that
 * the peer hung up): -1 for none. -errno with `e` if it could not be started; answer->out_fd is -1
 * then. */
int child_ask(const char *const *argv, const struct child_limits *limits, int stop_fd,
	      int client_fd, struct child_answer *answer, struct err *e);

#endif
