/* SPDX-License-Identifier: Apache-2.0 */
/*
 * netpeers: who is at the other end of a connection of which only the address is known
 * ("10.0.0.5:5432", "[::1]:80"), as recorded for a process that waits on it (view wait_objects).
 *
 * 1. The process opened connections to that address and port, and family net knows the other end:
 *    "container db", "postgres".
 * 2. It accepted one from there: by a single connection of that client's port, else by the address,
 *    where all of its clients there are the same.
 * 3. Else what the process calls that address (netnames.h).
 * If several match, none is named.
 */
#ifndef SONDE_TOOLS_NETPEERS_H
#define SONDE_TOOLS_NETPEERS_H

#include "schema/base/err.h"
#include "tools/net/netnames.h"
#include "tools/select/select.h"

struct netpeers {
	struct idmap by_key;  /* side, process, address, port -> place of its name + 1; UINT64_MAX:
				 several */
	struct idmap by_name; /* hash of a name -> its place + 1 */
	char **peers;
	size_t n, cap;
	struct netnames names;
	int64_t at; /* seconds: the last of the range */
};

/* Of the selection's time, whatever else it selects. Release in any case. */
int netpeers_read(const struct selection *sel, struct netpeers *out, struct err *e);
void netpeers_release(struct netpeers *n);
/* NULL: `object` is not an address with a port, or the other end is unknown. Borrowed. */
const char *netpeers_find(const struct netpeers *n, const struct store_process_row *p,
			  const char *object);

#endif
