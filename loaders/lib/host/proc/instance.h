/* SPDX-License-Identifier: Apache-2.0 */
/*
 * instance: when the instance of a container began that a process is of, where no file of its
 * runtime tells. Pure.
 *
 *   1. A container that has a pid namespace of its own lives as long as that namespace's first
 *      process, which was started from outside of it (nested ones are started from inside). A
 *      process is of the instance whose first process lived when it began.
 *   2. Any other process is of the stretch of time, without a gap in which nobody lived in the
 *      container, that it lived in: what a runtime has prepare the start, and all of a container
 *      that shares the host's pid namespace. If a first process began in that stretch after it, it
 *      is that one's.
 *   3. Stretches that overlap are one instance. One that begins after the end of all before is
 *      another: so neither more processes nor more cgroups make one, and neither does an end of the
 *      process that began it while others live.
 *
 * So whoever looks while it lives, and from whenever on, finds the same beginning. It is told in
 * UTC by the kernel's own time of boot, which is whole seconds and stays as it is while the clock
 * is not set, plus the process's start in hundredths (what /proc/PID/stat has too): everybody
 * writes the same text, right to the second.
 */
#ifndef SONDE_HOST_INSTANCE_H
#define SONDE_HOST_INSTANCE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A process in the container, by the boot clock. */
struct instance_life {
	uint64_t from_ns, to_ns; /* to_ns UINT64_MAX: it lives */
	uint32_t pid, ppid;
	bool first; /* it is number 1 in its pid namespace */
};

struct instance {
	uint64_t from_ns, to_ns; /* to_ns: as far as is known; from_ns 0: there is none */
	uint32_t leader;         /* the process that began it, by its pid; 0: it lives no more */
	bool sure;               /* by a first process */
};

/* Which one `p` is of. `all` may hold `p` too. */
void instance_find(const struct instance_life *all, size_t n, const struct instance_life *p,
		   struct instance *out);
/* What is known of a container's present instance and of the one before takes in what was found.
 * When the instance that was meant began. */
uint64_t instance_settle(struct instance *now, struct instance *before,
			 const struct instance *found);

/* "2026-11-21T03:10:00.50Z"; btime_s: as /proc/stat says it. Returns out. */
#define INSTANCE_TEXT 40
const char *instance_text(uint64_t btime_s, uint64_t began_ns, char out[INSTANCE_TEXT]);

#endif
