/* SPDX-License-Identifier: Apache-2.0 */
/*
 * helper: runs the programs of the capture side (schema/base/sibling.h finds them). sonde itself
 * neither records nor reads ELF.
 */
#ifndef SONDE_TOOLS_HELPER_H
#define SONDE_TOOLS_HELPER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/types.h>

#include "schema/base/err.h"
#include "schema/base/strbuf.h"

/* Starts argv[0] (a path). `keep_fd` (or -1) stays open in the child under the same number;
 * everything else is inherited, except SIGPIPE, which has its default action. */
int helper_start(char *const *argv, int keep_fd, pid_t *pid, struct err *e);
/* The same in a new session: signals from the terminal or timeout(1) to this group do not
 * reach it. The child must end when keep_fd closes. */
int helper_start_apart(char *const *argv, int keep_fd, pid_t *pid, struct err *e);
/* Runs it to its end with this process's streams; *exit is its exit code, or EXIT_RUNTIME if a
 * signal ended it. */
int helper_run(char *const *argv, int *exit, struct err *e);
/* Starts it with a pipe as its standard input, whose other end is *in; call fclose(*in), then
 * helper_wait. */
int helper_feed(char *const *argv, FILE **in, pid_t *pid, struct err *e);
/* Waits for it; *exit is its exit code, or EXIT_RUNTIME if a signal ended it. */
int helper_wait(pid_t pid, const char *name, int *exit, struct err *e);
/* Runs it to its end: its stdout (1 MiB at most) goes to `out`; *status is that of wait(2). */
int helper_output(char *const *argv, struct strbuf *out, int *status, struct err *e);

#define HELPER_AT_ONCE 16 /* at most */

struct helper_job {
	char *const *argv; /* the caller sets this */
	struct strbuf out; /* its stdout, 1 MiB at most; release it */
	int status;        /* that of wait(2) */
	bool late; /* it did not end in time, and was killed: `out` is what it said by then */
	int rc;    /* -errno: it was not started, and `e` says why */
	struct err e;
	/* while it runs */
	pid_t pid;
	int fd;
	int64_t until_ns;
};

/* Runs all of them to their ends, in their order, `at_once` at a time. Each has `patience_ns` from
 * when it is started; 0: as long as it takes. */
void helper_outputs(struct helper_job *jobs, size_t n, size_t at_once, int64_t patience_ns);

#endif
