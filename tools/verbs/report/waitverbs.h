/* SPDX-License-Identifier: Apache-2.0 */
/* waitverbs: what `sonde waits --neighbours` and `--wakers` share with the words that they had as
 * verbs. */
#ifndef SONDE_TOOLS_WAITVERBS_H
#define SONDE_TOOLS_WAITVERBS_H

#include <stdbool.h>
#include <stdint.h>

#include "schema/base/err.h"
#include "tools/waits/waitpairs.h"

struct verb_call;

struct waitverbs_args {
	uint64_t rows;
	const char *by;
	bool stacks, idle; /* for wakers */
};

int waitverbs_pairs(struct verb_call *call, enum waitpairs_what what,
		    const struct waitverbs_args *a, struct err *e);

#endif
