/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ended: what processes used that have ended, by the kernel's sums at their end (probes/maps.h,
 * struct maps_used): so that use after the last reading is counted, and processes that no reading
 * met are, too.
 *
 *   1. One that was read has the difference to its last reading, in the bucket in which it ended
 *      (processes.h).
 *   2. One that began after the first round and was never read has its own row if it used
 *      ENDED_OWN_US or more; all others are summed by cgroup and command (ENDED_FACT): there may be
 *      thousands a second.
 *   3. One that began before the first round and was never read is left out: how much of its use
 *      lies in the capture is unknown. So are excluded processes, and a process that its parent
 *      reaps after it was forgotten. The cgroup's sum still contains them: readers show the
 *      difference as the rest.
 *
 * Ends are noted when sonde-maps reports them, and stored between rounds.
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
	struct cgroups *cgroups; /* gets the ends, too; borrowed */
	struct ended_note *notes;
	size_t n, cap;
	struct ended_sum *sums; /* of the bucket at hand */
	int64_t bucket_s;       /* its start, UTC */
	uint64_t dropped;       /* there were too many to be kept */
	struct idmap
		open; /* by tgid: ended, and its use is not reported yet; at most ENDED_OPEN_MAX */
	int64_t last_ns; /* the last end reported, boot clock */
};

void ended_release(struct ended *x);
/* family.ended */
void ended_note(struct ended *x, const struct hostmaps_process *p);
/* family.used */
void ended_used(struct ended *x, const struct mp_used *u, const struct hostmaps_process *p);
/* Store what was noted. begun_ns: the first round (boot clock). */
void ended_poll(struct ended *x, struct processes *ps, struct family_host *h, int64_t begun_ns);
/* The capture ends: waits until the use of all processes that ended by now is reported, at most
 * until `until_ns`. */
void ended_await(struct ended *x, struct family_host *h, int64_t until_ns);

#endif
