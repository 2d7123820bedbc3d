/* SPDX-License-Identifier: Apache-2.0 */
/*
 * chain_silent: who answered requests all the time before, and then none: it ended, hangs, or was
 * not asked. Latency and failures say nothing of that: there is no request that has any.
 *
 *   1. Before, it answered in CHAIN_SILENT_PARTS - 1 of CHAIN_SILENT_PARTS equal parts of the time.
 *   2. In the window the longest time without an answer is CHAIN_SILENT_S or longer, and as often
 *      as before it would have answered CHAIN_SILENT_N requests in it.
 */
#ifndef SONDE_TOOLS_EXPLAIN_CHAIN_SILENT_H
#define SONDE_TOOLS_EXPLAIN_CHAIN_SILENT_H

#include <stdbool.h>
#include <stdint.h>

#include "tools/explain/chain/chain_requests.h"

#define CHAIN_SILENT_PARTS 10
#define CHAIN_SILENT_S     25
#define CHAIN_SILENT_N     30

struct chain_silence {
	const char *who; /* borrowed from the requests */
	bool container, server;
	double rate;            /* requests a second, before */
	int64_t from_ns, to_ns; /* to_ns: when it answered again, or the window's end */
	bool whole, ends;       /* it did not answer before that in the window, it answered again */
	bool wanted;            /* it is of the selection */
};

/* Of the selection, the one that had answered (without `server`: asked) most. False: there is
 * none. */
bool chain_silence_find(const struct chain_requests *r, bool server, struct chain_silence *out);

#endif
