/* SPDX-License-Identifier: Apache-2.0 */
/*
 * command: the program after `--`. It is forked early, so that its pid can be put into the filter,
 * but runs only when it is released: the capture misses nothing of it. It belongs to the terminal
 * as if the user had started it directly.
 */
#ifndef SONDE_BPF_COMMAND_H
#define SONDE_BPF_COMMAND_H

#include <stdbool.h>
#include <sys/types.h>

#include "schema/base/err.h"

struct command {
	pid_t pid;     /* 0: none */
	int go_fd;     /* a byte releases it; closing ends it before its exec */
	int failed_fd; /* its exec's errno comes here, or the end of file */
	bool ended;
	int status; /* as a shell shows it: exit code, or 128 + signal */
};

#define COMMAND_NONE                         \
	{                                    \
		.go_fd = -1, .failed_fd = -1 \
	}

/* Fork; signals are as they were before this program blocked any (call before that, and before
 * threads). */
int command_start(struct command *c, char **argv, struct err *e);
/* Let it run. EXIT_USAGE if there is no such program. */
int command_release(struct command *c, const char *name, struct err *e);
/* True once, when it has ended since the last call. */
bool command_poll(struct command *c);
/* Send it a signal if it runs. */
void command_signal(const struct command *c, int sig);
/* Not yet released: it ends before its exec. Released: it keeps running. */
void command_close(struct command *c);

#endif
