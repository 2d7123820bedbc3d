/* SPDX-License-Identifier: Apache-2.0 */
/* procs: the processes of the sums at hand: their rows in the store, also where sonde-maps has
 * forgotten them meanwhile. */
#ifndef SONDE_NET_PROCS_H
#define SONDE_NET_PROCS_H

#include <stdbool.h>
#include <stdint.h>
#include <uthash.h>

#include "loaders/lib/bpf/family.h"
#include "probes/net.h"

struct store_rows_proc {
	struct net_owner who; /* the key. {0}: unknown */
	struct net_owner as;  /* the process to store: the holder, if the owner has ended */
	char comm[16];
	uint32_t row, container, epoch, flows, singles;
	bool excluded, wanted, known;
	UT_hash_handle hh;
};

/* `holder` (may be NULL): the process that has it if the owner has ended. */
struct store_rows_proc *procs_get(struct store_rows_proc **all, struct family_host *h,
				  const struct net_owner *who, const struct net_owner *holder);
void procs_clear(struct store_rows_proc **all);
bool procs_excluded(const struct store_rows_proc *p);
/* Is it part of the capture? Of a row that is stored only then: one whose process is not known may
 * be, and counts as lost. */
bool procs_covered(const struct store_rows_proc *p, struct family_host *h);
/* Ids in the store, of its present epoch. NULL: 0. */
uint32_t procs_row(struct store_rows_proc *p, struct family_host *h);
uint32_t procs_container(struct store_rows_proc *p, struct family_host *h);
const char *procs_side(uint8_t side);

#endif
