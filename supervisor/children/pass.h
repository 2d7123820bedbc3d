/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pass: one run of a helper that works on the store's files and prints one JSON object
 * (sonde-prune, sonde-seal). A damaged file can only harm that process, which is limited to half a
 * gigabyte of memory and to capabilities over files. At most one of each runs at a time.
 */
#ifndef SONDE_SUPERVISOR_PASS_H
#define SONDE_SUPERVISOR_PASS_H

#include <jansson.h>
#include <sys/types.h>

#include "schema/base/strbuf.h"
#include "supervisor/children/child.h"

struct pass {
	pid_t pid; /* 0: none runs */
	int fd;    /* its standard output; -1: nothing to read */
	struct strbuf out;
	uint64_t ended_ns; /* CPU time of those that have ended */
};

void pass_init(struct pass *p);
void pass_release(struct pass *p);
/* `argv`: its arguments, NULL-terminated; argv[0] is set here. */
int pass_start(struct pass *p, const char *program, char **argv, struct err *e);
void pass_read(struct pass *p);
/* CPU time of all its runs. */
uint64_t pass_cpu_ns(const struct pass *p);
/* It has ended with a status of wait4(2). Returns what it printed, owned by the caller; NULL: it
 * failed (*code: its exit code, or 128 + signal). */
json_t *pass_ended(struct pass *p, int status, int *code);

#endif
