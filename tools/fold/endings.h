/* SPDX-License-Identifier: Apache-2.0 */
/* endings: how many user stacks reached their root, and by program why the others did not. Summed
 * over segments. */
#ifndef SONDE_TOOLS_ENDINGS_H
#define SONDE_TOOLS_ENDINGS_H

#include <jansson.h>
#include <stddef.h>
#include <stdint.h>

#include "schema/base/strbuf.h"
#include "schema/store/read/reader.h"

struct endings_program {
	char *executable; /* path, "" if not known */
	uint64_t n, cut;  /* user stacks; of those, cut short */
	struct endings_cut {
		char *module, *reason;
		uint64_t n;
	} * cuts; /* most first after endings_sort */
	size_t n_cuts, cap_cuts;
};

struct endings {
	uint64_t n, complete; /* of stacks that there were: not of processes in the last part of an
				 exec or exit */
	struct endings_program *programs; /* most cut short first after endings_sort */
	size_t n_programs, cap_programs;
};

/* For store_endings: `ctx` is a struct endings. */
int endings_add(void *ctx, const struct store_ending_row *r);
void endings_sort(struct endings *x);
void endings_release(struct endings *x);

double endings_share(const struct endings *x); /* that is complete, 0 to 1; 0 without stacks */
/* "compile, where 12.3 % end early, in libc.so.6: the chain of frame pointers ended": the i-th
 * program's share of cut stacks and its first cause. */
void endings_say(const struct endings *x, size_t i, struct strbuf *out);
/* [{executable, samples, complete_share, cuts: [{module, reason, samples}]}]: the first `max`
 * programs with a cut stack. */
json_t *endings_json(const struct endings *x, size_t max);

#endif
