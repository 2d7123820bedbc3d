/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ended: what processes used that have ended, as the kernel's sums at their end say (probes/maps.h,
 * struct maps_used): so that what one used after its last reading is not missed, nor one that no
 * reading met.
 *
 *   1. One that was read has the difference to its last reading, in the bucket in which it ended
 * (processes.h).
 *   2. One that began after the first round and was never read has a row of its own where it used
 * ENDED_OWN_US or more; all others are summed by their cgroup and command (ENDED_FACT): there may
 * be thousands a second.
 *   3. One that began before the first round and was never read is not told: nobody knows what of
 * it lies in the capture. Nor is what the rules leave out, nor a process that its parent collects
 * after it was forgotten. What is missing is missing in its cgroup's sum too, seen from the
 * processes: readers show the rest.
 *
 * Ends are noted as they are told, and stored between rounds.
 */
#ifndef SONDE_HOST_FAMILY_ENDED_H
#define SONDE_HOST_FAMILY_ENDED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "schema/base/idmap.h"

#define ENDED_OWN_US   200000
#define ENDED_OPEN_MAX 8192

struct cgroups;
struct ended_note;
struct ended_sum;
struct family_host;
struct hostmaps_process;
struct mp_used;
struct processes;

struct ended {
	struct cgroups *cgroups; /* are told too; borrowed */
	struct ended_note *notes;
	size_t n, cap;
	struct ended_sum *sums; /* of the bucket at hand */
	int64_t bucket_s;       /* its start, UTC */
	uint64_t dropped;       /* there were too many to be kept */
	struct idmap open;      /* by tgid: ended, and it is not told yet what it used; at most
				   ENDED_OPEN_MAX */
	int64_t last_ns;        /* the last end that was told, boot clock */
};

void ended_release(struct ended *x);
/* family.ended */
void ended_note(struct ended *x, const struct hostmaps_process *p);
/* family.used */
void ended_used(struct ended *x, const struct mp_used *u, const struct hostmaps_process *p);
/* Store what was noted. begun_ns: the first round (boot clock). */
void ended_poll(struct ended *x, struct processes *ps, struct family_host *h, int64_t begun_ns);
/* The capture ends: wait until what the last of those that ended used is told, at most until
 * `until_ns`. */
void ended_await(struct ended *x, struct family_host *h, int64_t until_ns);

#endif
