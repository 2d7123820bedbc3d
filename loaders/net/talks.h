/* SPDX-License-Identifier: Apache-2.0 */
/*
 * talks: the traffic of Unix and UDP sockets since the last reading, from the sums of
 * probes/net_talk.bpf.h. A sum stays in the kernel's map while it changes; one that did not change
 * in TALKS_STILL readings is removed: only traffic at that exact moment is lost.
 */
#ifndef SONDE_NET_TALKS_H
#define SONDE_NET_TALKS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "probes/net.h"
#include "schema/base/idmap.h"

#define TALKS_STILL 6

struct talks_sum {
	struct net_talk_key key;
	struct net_talk now;   /* in all */
	uint64_t tx, rx;       /* bytes since the last reading */
	struct net_owner mate; /* {0}: not known */
};

struct talks_told;

struct talks {
	struct talks_told *told;   /* by key */
	struct net_talk_key *keys; /* room for a reading */
	struct net_talk *values;
	struct idmap speakers; /* of this reading: socket -> place in keys */
	uint32_t reading;
};

void talks_release(struct talks *t);
/* Each sum that moved, of processes that began up to `known_ns`: others' wait for the next time.
 * `fd`: of the map; -1: the kernel has no such tracepoints. */
void talks_read(struct talks *t, int fd, int64_t known_ns,
		void (*each)(void *ctx, const struct talks_sum *x), void *ctx);

/* Has that UDP socket's owner sent or received there what begins as QUIC does? */
bool talks_quic(int fd, const struct net_other *o);

#endif
