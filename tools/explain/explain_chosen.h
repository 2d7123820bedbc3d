/* SPDX-License-Identifier: Apache-2.0 */
/*
 * explain_chosen: which kept requests `explain --request` is about, each once.
 *
 *  1. One exchange has two rows, the client's and the server's: the server's counts. The client's
 *     counts where no server's was kept in the selection.
 *  2. A request that is passed on (a proxy, and the server behind it) is kept at both. Only one
 *     service counts (container and command): the one whose requests take the least time, which is
 *     the last that it is passed on to. The others are named.
 *  3. A request below another one of the same name and service is a part of that.
 */
#ifndef SONDE_TOOLS_EXPLAIN_CHOSEN_H
#define SONDE_TOOLS_EXPLAIN_CHOSEN_H

#include "schema/base/idmap.h"
#include "tools/requests/reqtags.h"
#include "tools/requests/traces.h"

struct explain_service {
	char *container, *comm; /* owned */
	uint64_t n, took_ns;
};

struct explain_chosen {
	struct traces traces;
	uint32_t *nodes; /* of traces */
	size_t n;
	bool server; /* the time is that of servers, else of clients */
	uint64_t took_ns;
	struct idmap pids; /* of the servers */
	/* explain_chosen_key -> ns between the first and the last byte of its answer */
	struct idmap answering;
	struct explain_service *services; /* [0]: the chosen one */
	size_t n_services, cap_services;
};

/* slower_us, most_us: as in reqtags; -1: no matter. n 0: none was kept. Release in any case. */
int explain_chosen(const struct selection *sel, const char *request, int64_t slower_us,
		   int64_t most_us, struct explain_chosen *out, struct err *e);
void explain_chosen_release(struct explain_chosen *c);
/* Of a request that this process answered, in all `total_us`. */
uint64_t explain_chosen_key(uint32_t pid, int64_t total_us);

#endif
