/* SPDX-License-Identifier: Apache-2.0 */
/*
 * instance: when the instance (one run) of a container began that a process belongs to, if no file
 * of the runtime says so. Pure.
 *
 *   1. A container with a separate pid namespace lives as long as that namespace's first process,
 *      which was started from outside (nested ones are started from inside). A process belongs to
 *      the instance whose first process was alive when it began.
 *   2. Any other process belongs to a period of time in which the container always had a process:
 *      helpers that a runtime starts first, and containers that share the host's pid namespace. If
 *      a first process began in that period after the process did, the process belongs to that
 *      instance.
 *   3. Overlapping periods are one instance. A period that begins after all earlier ones have ended
 *      is a new one: neither more processes nor more cgroups start an instance, nor does the end of
 *      the process that began it while others live.
 *
 * So every observer finds the same beginning, whenever it starts to look. The text is in UTC: the
 * kernel's boot time, in whole seconds and constant while the clock is not set, plus the process's
 * start in hundredths (as in /proc/PID/stat), so that every observer writes the same text.
 */
#ifndef SONDE_HOST_INSTANCE_H
#define SONDE_HOST_INSTANCE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A process in the container, by the boot clock. */
struct instance_life {
	uint64_t from_ns, to_ns; /* to_ns UINT64_MAX: alive */
	uint32_t pid, ppid;
	bool first; /* number 1 in its pid namespace */
};

struct instance {
	uint64_t from_ns, to_ns; /* to_ns: as far as known; from_ns 0: no instance */
	uint32_t leader;         /* pid of the process that began it; 0: it has ended */
	bool sure;               /* found by a first process */
};

/* The instance of `p`. `all` may include `p`. */
void instance_find(const struct instance_life *all, size_t n, const struct instance_life *p,
		   struct instance *out);
/* Updates the container's present and previous instance with what was found. Returns when the found
 * instance began. */
uint64_t instance_settle(struct instance *now, struct instance *before,
			 const struct instance *found);

/* "2026-11-21T03:10:00.50Z"; btime_s: from /proc/stat. Returns out. */
#define INSTANCE_TEXT 40
const char *instance_text(uint64_t btime_s, uint64_t began_ns, char out[INSTANCE_TEXT]);

#endif
