/* SPDX-License-Identifier: Apache-2.0 */
/*
 * starved: how long a child's main thread, the one that gives signs of life, has waited for a CPU.
 *
 * /proc/PID/schedstat counts a wait when it is over. A wait that is not over is seen by the state:
 * a runnable thread whose CPU time does not grow is waiting. A kernel without schedstat has only
 * the second.
 */
#ifndef SONDE_SUPERVISOR_STARVED_H
#define SONDE_SUPERVISOR_STARVED_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct starved_look {
	uint64_t ran_ns, waited_ns; /* since it was started */
	bool runnable, stopped;     /* stopped: by a signal */
	bool blocked; /* it waits in the kernel and takes no signal: as a rule for a disk */
};

struct starved {
	uint64_t ran_ns, waited_ns; /* at the last look */
	int64_t looked_ns;          /* monotonic clock; 0: not yet */
	int64_t ran_at_ns;          /* the last look that saw it run, or not runnable */
	int64_t since_ns;           /* what it has waited is counted from here */
	uint64_t before_ns;         /* waited_ns at that time */
	int64_t blocked_ns; /* how long it has been blocked since then, as far as looks saw it; time
			       without a look counts as such */
};

/* false: it is gone. */
bool starved_read(pid_t pid, struct starved_look *out);
/* Pure: takes a look; returns how long it has waited for a CPU since `since_ns`, as far as known; s
 * has how long it was blocked. A later `since_ns` than at the last look starts both again. */
int64_t starved_take(struct starved *s, const struct starved_look *l, int64_t since_ns,
		     int64_t now_ns);

#endif
