/* SPDX-License-Identifier: Apache-2.0 */
#include "loaders/lib/bpf/start/target.h"

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "loaders/lib/bpf/start/cgroupdir.h"
#include "loaders/lib/bpf/start/targetfeed.h"
#include "loaders/lib/host/proc/container.h"
#include "loaders/lib/host/maps/hostmaps.h"
#include "schema/base/cleanup.h"
#include "schema/base/mem.h"

static void pid_add(struct target *t, uint32_t pid)
{
	for (size_t i = 0; i < t->n_pids; i++)
		if (t->pids[i] == pid)
			return;
	mem_grow(t->pids, t->n_pids, t->cap_pids);
	t->pids[t->n_pids++] = pid;
}

static void cgroup_add(struct target *t, const struct family_cgroup *cgroup)
{
	for (size_t i = 0; i < t->n_cgroups; i++)
		if (t->cgroups[i].id == cgroup->id && t->cgroups[i].hierarchy == cgroup->hierarchy)
			return;
	mem_grow(t->cgroups, t->n_cgroups, t->cap_cgroups);
	t->cgroups[t->n_cgroups++] = *cgroup;
}

/* The process that a process or thread id belongs to, 0: none. */
static uint32_t pid_process(uint32_t pid)
{
	char path[64], line[128];
	uint32_t tgid = 0;

	snprintf(path, sizeof(path), "/proc/%u/status", pid);
	cleanup_file FILE *f = fopen(path, "re");
	while (f && fgets(line, sizeof(line), f))
		if (sscanf(line, "Tgid: %" SCNu32, &tgid) == 1)
			break;
	return tgid;
}

static int resolve_pids(struct target *t, const struct options *o, struct err *e)
{
	for (size_t i = 0; i < o->pids.n; i++) {
		uint32_t pid = (uint32_t)o->pids.items[i], tgid = pid_process(pid);

		if (!tgid) {
			err_set(e, -ESRCH, EXIT_USAGE, "no process has the id %u", pid);
			err_fix(e, "pgrep -a NAME");
			return -ESRCH;
		}
		pid_add(t, tgid);
	}
	return 0;
}

static int cgroup_found(void *ctx, const struct family_cgroup *cgroup)
{
	cgroup_add(ctx, cgroup);
	return 0;
}

static int hierarchy_memory(void *ctx, const struct family_cgroup *cgroup)
{
	*(bool *)ctx |= cgroup->hierarchy == FAMILY_CGROUP_V1_MEMORY;
	return 0;
}

static int resolve_cgroups(struct target *t, const struct options *o, struct err *e)
{
	for (size_t i = 0; i < o->cgroups.n; i++) {
		size_t before = t->n_cgroups;

		cgroupdir_find(o->cgroups.items[i], cgroup_found, t);
		if (t->n_cgroups == before) {
			err_set(e, -ENOENT, EXIT_USAGE,
				"no cgroup '%s' in the v2, memory or pids hierarchy",
				o->cgroups.items[i]);
			err_fix(e, "cat /proc/PID/cgroup shows the path of a process's cgroup");
			return -ENOENT;
		}
	}
	return 0;
}

/* Ids of v1 are those of the memory hierarchy where there is one, else of pids (container.h). */
static enum family_hierarchy hierarchy_v1(void)
{
	bool memory = false;

	cgroupdir_find("/", hierarchy_memory, &memory);
	return memory ? FAMILY_CGROUP_V1_MEMORY : FAMILY_CGROUP_V1_PIDS;
}

/* By its cgroups, so that later processes are included; by its processes if it has no known cgroup.
 */
static int resolve_container(struct target *t, const char *who, struct err *e)
{
	struct container_found found = {0};
	enum family_hierarchy v1 = hierarchy_v1();
	int err = container_resolve(who, &found, e);

	if (err)
		return err;
	for (size_t i = 0; i < found.n_cgroup_ids; i++)
		cgroup_add(t, &(struct family_cgroup){found.cgroup_ids[i], FAMILY_CGROUP_V2});
	for (size_t i = 0; i < found.n_v1_ids; i++)
		cgroup_add(t, &(struct family_cgroup){found.v1_ids[i], v1});
	if (!found.n_cgroup_ids && !found.n_v1_ids)
		for (size_t i = 0; i < found.n_pids; i++)
			pid_add(t, found.pids[i]);
	container_found_release(&found);
	return 0;
}

int target_resolve(struct target *out, const struct options *o, pid_t command, struct err *e)
{
	struct target t = {0};
	int err = resolve_pids(&t, o, e);

	if (!err)
		err = resolve_cgroups(&t, o, e);
	for (size_t i = 0; i < o->containers.n && !err; i++)
		err = resolve_container(&t, o->containers.items[i], e);
	if (err) {
		target_release(&t);
		return err;
	}
	if (command)
		pid_add(&t, (uint32_t)command);
	t.family = (struct family_target){.pids = t.pids,
					  .n_pids = t.n_pids,
					  .cgroups = t.cgroups,
					  .n_cgroups = t.n_cgroups,
					  .comms = o->comms.items,
					  .n_comms = o->comms.n,
					  .follow_children = command != 0};
	*out = t;
	return 0;
}

void target_release(struct target *t)
{
	free(t->pids);
	free(t->cgroups);
	*t = (struct target){0};
}

enum store_scope target_scope(const struct target *t)
{
	if (t->family.n_comms)
		return STORE_SCOPE_PARTIAL;
	return t->n_pids || t->n_cgroups ? STORE_SCOPE_NARROW : STORE_SCOPE_HOST;
}

bool target_is_narrow(const struct family_target *t)
{
	return t && (t->n_pids || t->n_cgroups || t->n_comms);
}

bool target_gone(const struct target *t)
{
	if (!t->n_pids || t->family.follow_children)
		return false;
	for (size_t i = 0; i < t->n_pids; i++)
		if (!kill((pid_t)t->pids[i], 0) || errno != ESRCH)
			return false;
	return true;
}

/* ---- one process ---- */

#define PARENTS_MAX 64

static bool pid_listed(const struct family_target *t, uint32_t pid)
{
	for (size_t i = 0; i < t->n_pids; i++)
		if (t->pids[i] == pid)
			return true;
	return false;
}

bool target_may_cover(const struct family_target *t, uint32_t tgid)
{
	return !t || !t->n_pids || t->follow_children || pid_listed(t, tgid);
}

/* The process, or (for a command) one of its ancestors. */
static bool pids_cover(const struct family_target *t, struct hostmaps *hm,
		       const struct hostmaps_process *p)
{
	for (int i = 0; p && i < PARENTS_MAX; i++) {
		if (pid_listed(t, p->tgid))
			return true;
		if (!t->follow_children || !p->ppid || p->ppid == p->tgid)
			return false;
		if (pid_listed(t, p->ppid))
			return true;
		p = hostmaps_running(hm, p->ppid);
	}
	return false;
}

static int cgroup_listed(void *ctx, const struct family_cgroup *cgroup)
{
	const struct family_target *t = ctx;

	for (size_t i = 0; i < t->n_cgroups; i++)
		if (t->cgroups[i].id == cgroup->id && t->cgroups[i].hierarchy == cgroup->hierarchy)
			return 1;
	return 0;
}

/* By the ids that its cgroups had: its container may be removed. */
static bool ids_cover(const struct family_target *t, const struct hostmaps_process *p)
{
	bool memory = false;

	for (size_t i = 0; i < t->n_cgroups; i++)
		memory |= t->cgroups[i].hierarchy == FAMILY_CGROUP_V1_MEMORY;
	for (size_t i = 0; i < t->n_cgroups; i++) {
		const struct family_cgroup *g = &t->cgroups[i];
		bool v2 = g->hierarchy == FAMILY_CGROUP_V2;

		if (!v2 && (g->hierarchy == FAMILY_CGROUP_V1_MEMORY) != memory)
			continue; /* as hierarchy_v1 has it */
		if (g->id && g->id == (v2 ? p->cgroup_id : p->cgroup1_id))
			return true;
	}
	return false;
}

/* Its cgroup, or one of that cgroup's parents. */
static bool cgroups_cover(const struct family_target *t, const struct hostmaps_process *p)
{
	cleanup_free char *path = mem_strdup(p->cgroup);
	char *slash;

	if (ids_cover(t, p))
		return true;

	while (*path) {
		if (cgroupdir_find(path, cgroup_listed, (void *)(uintptr_t)t) == 1)
			return true;
		slash = strrchr(path, '/');
		if (!slash)
			break;
		*slash = '\0';
	}
	return false;
}

static bool comms_cover(const struct family_target *t, const struct hostmaps_process *p)
{
	for (size_t i = 0; i < t->n_comms; i++)
		if (!strncmp(t->comms[i], p->comm, 15))
			return true;
	return false;
}

bool target_covers(const struct family_target *t, struct hostmaps *hm,
		   const struct hostmaps_process *p)
{
	if (t->feed && !targetfeed_has(t->feed, p->tgid, p->start_ns, p->exec_id))
		return false;
	return (!t->n_pids || pids_cover(t, hm, p)) && (!t->n_cgroups || cgroups_cover(t, p)) &&
	       (!t->n_comms || comms_cover(t, p));
}
