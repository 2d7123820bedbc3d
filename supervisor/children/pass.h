/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pass: one run of a helper that works on the store's files and answers with one JSON object
 * (sonde-prune, sonde-seal), so that a damaged file can hurt nobody but it: half a gigabyte of
 * memory is its limit, and it has no rights but over files. At most one at a time each.
 */
#ifndef SONDE_SUPERVISOR_PASS_H
#define SONDE_SUPERVISOR_PASS_H

#include <jansson.h>
#include <sys/types.h>

#include "schema/base/strbuf.h"
#include "supervisor/children/child.h"

struct pass {
	pid_t pid; /* 0: none runs */
	int fd;    /* what it says; -1: nothing to read */
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
/* It has ended, as wait4 said: what it answered, the caller's; NULL: it failed (*code: its exit
 * code, or 128 + signal). */
json_t *pass_ended(struct pass *p, int status, int *code);

#endif
