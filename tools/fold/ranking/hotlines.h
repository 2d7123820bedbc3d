/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hotlines: self and total of each source line of functions. A function is (name, module),
 * including its inlined copies.
 *
 * Self of a line: time spent in the function right there. Total: also in what was called (or
 * inlined) from there. A function that is in a stack several times counts once in its total, and so
 * does each of its lines: so with recursion the lines' totals may add up to more than the
 * function's.
 */
#ifndef SONDE_TOOLS_HOTLINES_H
#define SONDE_TOOLS_HOTLINES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "schema/base/err.h"
#include "tools/fold/fold.h"

struct hotline {
	const char *file; /* the fold's */
	uint32_t line;    /* 0: not known */
	uint64_t self_ns, total_ns, self_samples, total_samples;
};

struct hotfunction {
	uint32_t frame; /* one of its frames */
	bool inlined;   /* also as a caller */
	bool has_lines;
	uint64_t self_ns, total_ns, self_samples, total_samples;
	struct hotline *lines; /* by file and line; what is not known comes last */
	size_t n_lines, cap_lines;
};

struct hotlines {
	struct hotfunction *functions; /* those with lines first, then the most time */
	size_t n, cap;
};

/* Functions as tools/fold/ranking/match.h has it. The fold must be one without groups, and outlive
 * the answer. */
int hotlines_init(struct hotlines *h, const struct fold *f, const char *text, struct err *e);
void hotlines_release(struct hotlines *h);

#endif
