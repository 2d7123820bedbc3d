/* SPDX-License-Identifier: Apache-2.0 */
/* cgroups_parts: what the files of cgroups share: the tree and its readings (cgroups.c), and
 * cgroups that are gone (cgroups_ended.c). */
#ifndef SONDE_HOST_FAMILY_CGROUPS_PARTS_H
#define SONDE_HOST_FAMILY_CGROUPS_PARTS_H

#include <uthash.h>

#include "loaders/host/cgroups.h"
#include "loaders/host/events/change_detect.h"
#include "loaders/lib/host/proc/container.h"

/* A process, as it is found again in hostmaps. */
struct cgroups_process {
	uint32_t tgid, exec_id;
	uint64_t start_ns;
};

/* Of processes that ended. */
struct cgroups_ends {
	uint64_t user_us, system_us, oom_kills;
	int64_t last_ns;            /* the newest of them, boot clock; 0: there was none */
	struct cgroups_process who; /* that one */
	uint32_t container, epoch;  /* its container's row, as it was then, and the store's epoch
				       (writer.h) that it is of */
};

struct cgroups_group {
	enum cgroups_hierarchy in; /* the first one that has it */
	uint64_t inode;            /* of its directory there */
	uint64_t serial;           /* another one where it was made anew */
	uint64_t round;            /* in which it was listed last */
	uint64_t user, system;     /* CPU time in ns, as told last; of v1 */
	uint64_t netns;            /* 0: not known, or the host's */
	bool own_net, young;       /* netns is told here; it came to be since the round before */
	bool born;  /* it came to be after the first round: its counters began at 0 */
	bool quiet; /* has no rows */
	struct container_ref ref;
	bool is_container;          /* it is the container's own */
	struct hostmaps_process *p; /* that runs in it; NULL: nobody was met */
	struct change_throttle throttle;
	struct change_limits limits;
	struct fact_row reading; /* the last one: counters as the kernel has them; nothing set:
				    there was none */
	int64_t read_ns;         /* when it began, boot clock */
	uint64_t oom_before; /* kills that the first reading had told, of one that is not born */
	struct cgroups_ends ends; /* CPU time: since that reading; oom_kills: all */
	UT_hash_handle hh;
	char path[];
};

struct cgroups_device {
	uint64_t number; /* major << 32 | minor */
	bool stacked;    /* lies over others */
	char name[64];
	UT_hash_handle hh;
};

/* Its own unit, or that of a cgroup around it? */
bool cgroups_is_unit(const struct cgroups_group *g);
/* The row of the container in which those ended; 0: none did, or it is not known any more. */
uint32_t cgroups_ends_container(const struct cgroups *c, const struct cgroups_ends *x);
/* It was read. */
void cgroups_read_note(struct cgroups_group *g, const struct fact_row *reading, int64_t begin_ns);
/* It is gone: its last row. */
void cgroups_close(struct cgroups *c, struct cgroups_group *g);
/* The tree was listed: those of a cgroup that is there are told by its reading, all others have a
 * row. */
void cgroups_orphans_take(struct cgroups *c);
void cgroups_orphans_drop(struct cgroups *c);

#endif
