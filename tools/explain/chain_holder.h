/* SPDX-License-Identifier: Apache-2.0 */
/*
 * chain_holder: for which statement a lock was held. Servers with a process for each connection
 * (PostgreSQL) hold locks of a transaction in the process that serves it: of the process that ended
 * most of the waits, the request that took longest in the window is named, but for those that only
 * begin and end transactions; and who asks such requests, where only one does.
 */
#ifndef SONDE_TOOLS_EXPLAIN_CHAIN_HOLDER_H
#define SONDE_TOOLS_EXPLAIN_CHAIN_HOLDER_H

#include <stdbool.h>

#include "tools/explain/chain_measures.h"
#include "tools/explain/chain_requests.h"

struct chain_holder {
	char *operation;   /* NULL: not known */
	const char *asker; /* borrowed from the requests; NULL: not known, or several */
};

/* Release it. */
void chain_holder_find(struct chain_measures *m, const struct chain_requests *r, const char *who,
		       bool container, struct chain_holder *out);
void chain_holder_release(struct chain_holder *h);

#endif
