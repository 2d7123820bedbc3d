/* SPDX-License-Identifier: Apache-2.0 */
/* report: prints threads for people, those with the same stack in one process folded into one; or
 * as JSON, each alone. */
#ifndef SONDE_PSTACK_REPORT_H
#define SONDE_PSTACK_REPORT_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "loaders/pstack/thread.h"

struct report {
	struct thread *threads;
	size_t n, cap;
	int64_t utc_ns;    /* when they had these stacks */
	size_t running;    /* threads in scope that do not wait, and are not shown */
	char warning[256]; /* "" */
};

/* The first `most` of them, 0: all. The order of `threads` is changed: by process, then those that
 * have waited longest first. */
void report_text(struct report *r, uint64_t most, FILE *out);
int report_json(struct report *r, uint64_t most, FILE *out); /* 0 or -EIO */
void report_release(struct report *r);

#endif
