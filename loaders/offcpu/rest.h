/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rest: stretches of threads that the program's tables had no room for, as more threads came and
 * went than the loader could read. How long they were is exact, by class; whose they were is not
 * known. They are stored as those of one process, REST_COMM, without a thread's number; where
 * stacks are taken of waits that are over, also without a stack, so that sums over stacks are
 * complete.
 */
#ifndef SONDE_OFFCPU_REST_H
#define SONDE_OFFCPU_REST_H

#include <linux/types.h>
#include <stdbool.h>
#include <stdint.h>

#include "probes/offcpu.h"
#include "schema/store/write/waits.h"

struct family_host;

#define REST_COMM "[no room]"

struct rest {
	int fd;         /* of the map `rests` */
	uint32_t *made; /* the program's: see mapread_made */
	bool at_end;    /* the program's */
	bool said;
	struct offcpu_rest seen[OFFCPU_RESTS]; /* of all CPUs, as read last */
};

/* What was added since the last reading, for the bucket of `utc_ns`. */
void rest_read(struct rest *r, struct family_host *h, int64_t utc_ns);
/* One more, found elsewhere. */
void rest_put(struct rest *r, struct family_host *h, int64_t utc_ns, const struct store_wait *x);

#endif
