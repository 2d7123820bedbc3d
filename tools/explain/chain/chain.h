/* SPDX-License-Identifier: Apache-2.0 */
/*
 * chain: why it was slow, as at most CHAIN_LINKS sentences, each the cause of the one before.
 *
 *  1. The first link is what users feel: of the selection's services the one whose requests took
 *     longer or failed more (chain_requests.h), where several did the one that asked the others.
 *     Of a selection that answers no requests, what it asked of others.
 *  2. A walk begins there. Added time is compared in seconds each second: all requests of the
 *     window together took longer than as many before; what its threads lost more than
 *     before, by cause (chain_measures.h); and what it asked of others took more, by service.
 *  3. What it asked counts first, since its threads wait meanwhile: from CHAIN_GOES_ON of the added
 *     time on the walk goes on at the service that answered, if that was recorded and saw the
 *     added time too; else the cause is between the two: the network, or the server's queue. But
 *     where the server did not see it, and this one's threads had no CPU for half as long or more,
 *     they came late to read the answers: that counts, as in 4.
 *  4. Else the cause with the most added time counts, from CHAIN_COUNTS on. Waits for the network,
 *     pipes and children count only where nothing that was asked explains them. Time that a quota
 *     took is also time without a CPU: the quota counts. One that ran longer waits longer for a CPU
 *     in proportion, and for itself: that is time of what it ran. Threads that wait for a lock
 *     which their own program holds wait for what the holder does: that is the next link.
 *  5. How sure: `certain` where the link has CHAIN_CERTAIN of the added time, but not more than
 *     CHAIN_TOO_MUCH times as much (then most of it is not of these requests), no other cause has
 *     half as much, and all links before are certain; `likely` from CHAIN_LIKELY on; else
 *     `possible`. A cause that is guessed from what ran at the same time is `likely` at most. Of
 *     what is more than CHAIN_TOO_MUCH times the added time no share is said; waits that are idle
 * by nature (pipes, children, sleep) are then `possible`, and come after all other causes, the
 *     nearest to the added time first.
 *  6. A second cause with CHAIN_COUNTS of the added time or more is a link, too, and `likely` at
 *     most.
 *  7. Who was asked CHAIN_LOAD times as often as before, and does not fail (failures are asked
 *     again), is slower for that: that is a link, and what follows from it is `likely` at most.
 *     So is what follows where requests were not recorded in the time before.
 *  8. Where requests fail and a file system was full, without inodes or read-only, which it was not
 *     before, that is the last link, `likely` at most: who wrote to it is not known.
 *  9. Where nothing took longer or failed more, who answered all the time before and then no
 *     request (chain_silent.h) is felt: the next link is that it ended, or that requests have had
 *     no answer for long (and what its threads lost time to meanwhile); else why is not known.
 *     Where requests fail and take no longer, only what was asked and failed, or took longer, is a
 *     cause.
 * 10. Where requests are slower and the hypervisor took a tenth of the host's CPU time, and twice
 *     as much as before, that is a link, and what follows from it is `likely` at most.
 */
#ifndef SONDE_TOOLS_EXPLAIN_CHAIN_H
#define SONDE_TOOLS_EXPLAIN_CHAIN_H

#include <stdbool.h>
#include <stddef.h>

#include "schema/base/err.h"
#include "schema/base/strbuf.h"
#include "tools/explain/chain/chain_measures.h"
#include "tools/explain/chain/chain_requests.h"
#include "tools/explain/explain.h"

#define CHAIN_LINKS    5
#define CHAIN_GOES_ON  0.4
#define CHAIN_COUNTS   0.15
#define CHAIN_CERTAIN  0.6
#define CHAIN_LIKELY   0.3
#define CHAIN_TOO_MUCH 2
#define CHAIN_LOAD     1.5
#define CHAIN_FAILED_S 1.0 /* a failed request counts as added time, in seconds */

enum chain_sure { CHAIN_IS_CERTAIN, CHAIN_IS_LIKELY, CHAIN_IS_POSSIBLE };

struct chain_link {
	const char *what; /* static: "slower", "failing", "restarted", "stopped", "silent", "asked",
			     "lock", ... "unknown" */
	char *who, *text, *command;
	bool container;
	double before, after; /* before NAN: it was not recorded */
	const char *unit; /* static, of both: "seconds", "seconds each second", "share", "events" */
	double share;     /* of the added time, 0 to 1; -1: not known */
	enum chain_sure sure;
};

struct chain {
	struct chain_link links[CHAIN_LINKS];
	size_t n; /* 0: nothing was felt */
	bool requests_known;
	uint64_t answered;     /* requests of the selection in the window */
	struct strbuf missing; /* families that could tell more: "net (...), offcpu (...)" */
	struct strbuf others;  /* other services that were slower or failed more: "api, db" */
};

/* `windows` of explain_open; their requests, which take longest to read, are taken over. `x`: of
 * the same two, compared; NULL: nothing could be. hint_store: what commands must name, or NULL.
 * Release in any case. */
int chain_make(const char *store, struct explain *windows, const struct explain *x,
	       const char *hint_store, struct chain *out, struct err *e);
void chain_release(struct chain *c);
const char *chain_sure_name(enum chain_sure sure); /* "certain", "likely", "possible" */

#endif
