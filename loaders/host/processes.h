/* SPDX-License-Identifier: Apache-2.0 */
/*
 * processes: what each process used. One with a single thread that has not run since the reading before, as schedstat says to the
 * nanosecond, has used nothing: it is read no further, but once a minute.
 *
 * CPU time is that of all its threads, those that ended too, as the kernel tells it in ticks; the time
 * that it could run and waited for a CPU is told by thread only, and here of those that have one. What one used after the last reading
 * before its end is in its cgroup's row alone.
 */
#ifndef SONDE_HOST_FAMILY_PROCESSES_H
#define SONDE_HOST_FAMILY_PROCESSES_H

#include <stdint.h>

#include "loaders/lib/bpf/meter.h"
#include "schema/base/strbuf.h"

struct hostmaps_process;
struct processes_known;

struct processes {
	struct meter meter, files; /* files: of those that have half of what they may have */
	struct processes_known *known;
	uint64_t round;
	struct strbuf text;
	bool swapping;          /* something is in swap: how much of each is asked */
};

void processes_init(struct processes *ps, int64_t idle_ns);
void processes_release(struct processes *ps);
/* One of them; `since_ns`: the round before (boot clock). */
void processes_read(struct processes *ps, const struct meter_round *r, struct hostmaps_process *p, int64_t since_ns);
void processes_end(struct processes *ps);

#endif
