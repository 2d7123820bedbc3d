/* SPDX-License-Identifier: Apache-2.0 */
/* opts: the command line of sonde-pstack, and which processes it means. */
#ifndef SONDE_PSTACK_OPTS_H
#define SONDE_PSTACK_OPTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "schema/base/cli/options.h"

struct opts {
	const char *store;
	struct option_numbers pid;
	struct option_list container;
	bool json, quiet, kernel_threads, no_lines, keep;
	uint64_t recording;
	int64_t at_ns;  /* with --keep: as of then, UTC; 0: now */
	bool gone;      /* with --keep: a process or container that was named is there no more */
	uint32_t *pids; /* processes of either; none: all */
	size_t n_pids, cap_pids;
};

/* 1: help was requested and printed. A process or container that does not exist: EXIT_USAGE; with
 * --keep: see `gone`. */
int opts_read(int argc, char **argv, struct opts *o, struct err *e);
void opts_release(struct opts *o);
bool opts_wants(const struct opts *o, uint32_t pid);

#endif
