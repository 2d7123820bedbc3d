/* SPDX-License-Identifier: Apache-2.0 */
/*
 * governor: when what sonde takes calls for a step (relief.h): over a limit for all of a while (a
 * minute), or below half of it for five times as long (of memory: how much CPU would fit again
 * relief.h works out). Pure but for the process_ functions and host_switches.
 */
#ifndef SONDE_SUPERVISOR_GOVERNOR_H
#define SONDE_SUPERVISOR_GOVERNOR_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#define GOVERNOR_WHILE_NS 60000000000ll
#define GOVERNOR_ROOM     5
#define GOVERNOR_NEXT     3

struct governor {
	int64_t over_ns, under_ns; /* since when; 0: it is not */
	bool again;                /* it has been over since a step was asked for */
};

/* One look: what is used (cores, bytes) and its limit (0: none). +1: less is to be done; -1: there
 * is room for more; 0. The time begins anew after each; one step was not enough: the next is asked
 * for after a third of it. Without a limit there is room at once. */
int governor_look(struct governor *g, double used, double limit, int64_t while_ns, int64_t now_ns);

/* CPU time of a process and of its children that have ended, user and system; 0: it is gone. */
int64_t process_cpu_ns(pid_t pid);
/* How often threads of this host have switched since it was booted; 0: not known. */
uint64_t host_switches(void);
/* Memory that it shares with nobody, about; 0: it is gone. */
uint64_t process_private_bytes(pid_t pid);
/* The same of its children. */
uint64_t process_children_bytes(pid_t pid);

#endif
