/* SPDX-License-Identifier: Apache-2.0 */
/*
 * load_limit: decides when sonde's load calls for a step (load_shed.h): after it exceeded a limit
 * for all of a while (a minute), or stayed below half of it for five times as long (for memory:
 * load_shed.h works out how much CPU would fit again). Pure, except for the process_ functions and
 * host_switches.
 */
#ifndef SONDE_SUPERVISOR_LOAD_LIMIT_H
#define SONDE_SUPERVISOR_LOAD_LIMIT_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#define LOAD_LIMIT_WHILE_NS 60000000000ll
#define LOAD_LIMIT_ROOM     5
#define LOAD_LIMIT_NEXT     3

struct load_limit {
	int64_t over_ns, under_ns; /* since when; 0: it is not */
	bool again;                /* it has been over since the last step */
};

/* One look at the use (cores, bytes) and its limit (0: none). +1: shed load; -1: there is room for
 * more; 0: neither. The time starts again after each step; if one step was not enough, the next is
 * due after a third of it. Without a limit there is room at once. */
int load_limit_look(struct load_limit *g, double used, double limit, int64_t while_ns,
		    int64_t now_ns);

/* Before load_limit_look for CPU: true while sonde starts, for as long as it may be over a limit.
 * What it takes then (names and tables of all that runs already) is taken once; it is not counted.
 */
bool load_limit_starts(struct load_limit *g, int64_t began_ns, int64_t while_ns, int64_t now_ns);

/* The same for one service, whenever it begins: it was not ready yet, or has been for less than a
 * while. One that fails again and again (`failures` in a row) does not start up, it costs. */
bool load_limit_begins(int64_t ready_ns, unsigned int failures, int64_t while_ns, int64_t now_ns);

/* CPU time of a process and of its children that have ended, user and system; 0: it is gone. */
int64_t process_cpu_ns(pid_t pid);
/* How often threads of this host have switched since it was booted; 0: not known. */
uint64_t host_switches(void);
/* Its private memory, approximately; 0: it is gone. */
uint64_t process_private_bytes(pid_t pid);
/* The same of its children. */
uint64_t process_children_bytes(pid_t pid);

#endif
