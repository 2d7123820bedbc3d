/* SPDX-License-Identifier: Apache-2.0 */
/*
 * container_life: when containers start and stop, from their processes alone. Pure over the
 * processes of hostmaps.
 *
 *   1. A container lives as long as its leader: the process that is number 1 in the container's pid
 *      namespace. If it has the host's, the first process that was met leads; it has stopped once
 *      no process runs in it, with its leader's exit status. The runtime's own processes are in the
 *      cgroup for some milliseconds before the first one of the namespace, and for some after it
 *      ends: so a process that is not number 1 leads only if it has run for
 *      CONTAINER_LIFE_WAY_IN_NS and does not have a runtime's name, and never in a container that a
 *      number 1 has led before.
 *   2. A process that is number 1 in a namespace made inside the container does not lead: the
 *      leader is older.
 *   3. A container that came and went between two rounds is reported by its leader's end. No start
 *      is reported for those that ran when the first round began.
 *   4. One that stopped and has a leader again is reported as restarted: `starts` counts, for as
 *      long as it is remembered.
 *
 * Use: container_life_ended for each end; container_life_meet for each process that runs, then
 * container_life_round.
 */
#ifndef SONDE_HOST_FAMILY_CONTAINER_LIFE_H
#define SONDE_HOST_FAMILY_CONTAINER_LIFE_H

#include <stdbool.h>
#include <stdint.h>

#include "loaders/lib/host/proc/container.h"
#include "loaders/lib/host/maps/hostmaps.h"

struct life;

/* A process, as it is found again in hostmaps and the store. */
struct container_life_leader {
	uint32_t tgid, exec_id;
	uint64_t start_ns;
	char comm[16];
};

struct container_life_event {
	const struct container_ref *ref;
	const char *path; /* the container's own cgroup */
	bool stopped;     /* else it started */
	uint32_t starts;  /* so often as is known: 1: for the first time */
	int64_t boot_ns;  /* when */
	struct container_life_leader leader;
	enum hostmaps_end end; /* stopped: how, and as in wait(2) */
	int status;
	uint32_t signal, from_tgid; /* hostmaps_process.sent */
	uint64_t signal_ns;
	char from_comm[17];
};

#define CONTAINER_LIFE_WAY_IN_NS 2000000000ull

struct container_life {
	struct life *all;         /* by path */
	uint64_t round, begun_ns; /* begun_ns: the first round's time */
	bool begun;
	void (*tell)(void *ctx, const struct container_life_event *e);
	void *ctx;
};

struct container_life_leader container_life_leader_of(const struct hostmaps_process *p);

void container_life_release(struct container_life *l);
void container_life_ended(struct container_life *l, const struct hostmaps_process *p);
void container_life_meet(struct container_life *l, const struct hostmaps_process *p);
void container_life_round(struct container_life *l, uint64_t now_ns);

#endif
