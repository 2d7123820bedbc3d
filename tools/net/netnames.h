/* SPDX-License-Identifier: Apache-2.0 */
/*
 * netnames: what programs call the addresses that they talk to (view peer_names): names that they
 * resolved to that address, and those of /etc/hosts.
 *
 * Of several, in this order: an answer to the same process; one to its container (outside of
 * containers: to any process there, which may have its own resolver); the process's /etc/hosts. Of
 * one kind the newest that was valid at the time, else the next one.
 */
#ifndef SONDE_TOOLS_NETNAMES_H
#define SONDE_TOOLS_NETNAMES_H

#include <stddef.h>
#include <stdint.h>

#include "schema/base/err.h"
#include "schema/base/idmap.h"
#include "tools/select/select.h"

struct netnames_entry {
	char *name;
	int64_t first, last; /* seconds: when the answer came */
	size_t next;         /* of the same key: its place + 1, 0: none */
};

struct netnames {
	struct idmap by_key; /* kind, whose, address -> place + 1 */
	struct netnames_entry *entries;
	size_t n, cap;
};

/* Of the selection's time, and of what is before it in the same segments. Release in any case. */
int netnames_read(const struct selection *sel, struct netnames *out, struct err *e);
void netnames_release(struct netnames *n);
/* At that second; NULL: no name is known. Borrowed. */
const char *netnames_find(const struct netnames *n, const struct store_process_row *p,
			  const char *address, int64_t at);

#endif
