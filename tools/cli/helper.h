/* SPDX-License-Identifier: Apache-2.0 */
/*
 * helper: running the programs of the capture side (found by schema/base/sibling.h). sonde itself
 * neither records nor reads ELF.
 */
#ifndef SONDE_TOOLS_HELPER_H
#define SONDE_TOOLS_HELPER_H

#include <stddef.h>
#include <stdio.h>
#include <sys/types.h>

#include "schema/base/err.h"
#include "schema/base/strbuf.h"

/* Start argv[0] (a path). `keep_fd` (or -1) stays open in it under the same number; all else is as
 * in this process, but that SIGPIPE has its default. */
int helper_start(char *const *argv, int keep_fd, pid_t *pid, struct err *e);
/* The same, in a group of its own: what a terminal or timeout(1) sends to ours does not reach it.
 * It must end by keep_fd. */
int helper_start_apart(char *const *argv, int keep_fd, pid_t *pid, struct err *e);
/* Run to its end with this process's streams; *exit is its exit code. EXIT_RUNTIME where a signal
 * ended it. */
int helper_run(char *const *argv, int *exit, struct err *e);
/* Start it with a pipe as its standard input, whose other end is *in; after fclose(*in),
 * helper_wait. */
int helper_feed(char *const *argv, FILE **in, pid_t *pid, struct err *e);
/* *exit is its exit code. EXIT_RUNTIME where a signal ended it. */
int helper_wait(pid_t pid, const char *name, int *exit, struct err *e);
/* Run to its end: what it wrote to stdout (1 MiB at most) goes to `out`; *status as of wait(2). */
int helper_output(char *const *argv, struct strbuf *out, int *status, struct err *e);

#endif
