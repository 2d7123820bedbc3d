/* SPDX-License-Identifier: Apache-2.0 */
/*
 * who: the answer of `sonde ps` and `sonde containers`: who ran in a window, also long ago and ended since, with the CPU that
 * each used and the function that it was in most. As a table or as JSON.
 */
#ifndef SONDE_TOOLS_WHO_H
#define SONDE_TOOLS_WHO_H

#include "tools/procs.h"
#include "tools/verb.h"

struct who_args {
	uint64_t rows;
	const char *sort;
};
extern const struct option WHO_OPTIONS[];

int who_run(struct verb_call *call, enum procs_by by, struct err *e);

#endif
