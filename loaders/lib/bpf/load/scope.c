/* SPDX-License-Identifier: Apache-2.0 */
#include "loaders/lib/bpf/load/scope.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <string.h>

#include "probes/lib/stack.h"

#define FOLLOW_MAX 16384 /* live processes of `-- command` at one time */

_Static_assert((int)SCOPE_V2 == FAMILY_CGROUP_V2, "same numbers");
_Static_assert((int)SCOPE_V1_MEMORY == FAMILY_CGROUP_V1_MEMORY, "same numbers");
_Static_assert((int)SCOPE_V1_PIDS == FAMILY_CGROUP_V1_PIDS, "same numbers");

static void map_size(struct bpf_object *obj, const char *name, size_t n)
{
	struct bpf_map *map = bpf_object__find_map_by_name(obj, name);

	if (map && n)
		bpf_map__set_max_entries(map, (uint32_t)n);
}

void scope_configure(struct bpf_object *obj, const struct family_target *t,
		     struct scope_config *config)
{
	config->pids = t->n_pids > 0;
	config->cgroups = t->n_cgroups > 0;
	config->comms = t->n_comms > 0;
	for (size_t i = 0; i < t->n_cgroups; i++)
		config->hierarchy_used[t->cgroups[i].hierarchy] = true;
	map_size(obj, "pids", t->follow_children ? FOLLOW_MAX : t->n_pids);
	map_size(obj, "cgroups", t->n_cgroups);
	map_size(obj, "comms", t->n_comms);
}

static int map_add(struct bpf_object *obj, const char *name, const void *key)
{
	uint8_t one = 1;
	int fd = bpf_object__find_map_fd_by_name(obj, name);

	if (fd < 0)
		return fd;
	return bpf_map_update_elem(fd, key, &one, BPF_ANY) ? -errno : 0;
}

int scope_fill(struct bpf_object *obj, const struct family_target *t)
{
	int err = 0;

	for (size_t i = 0; i < t->n_pids && !err; i++)
		err = map_add(obj, "pids", &t->pids[i]);
	for (size_t i = 0; i < t->n_cgroups && !err; i++) {
		struct scope_cgroup key = {.id = t->cgroups[i].id,
					   .hierarchy = t->cgroups[i].hierarchy};

		err = map_add(obj, "cgroups", &key);
	}
	for (size_t i = 0; i < t->n_comms && !err; i++) {
		char key[STACK_COMM_LEN] = {0};

		strncpy(key, t->comms[i], sizeof(key) - 1);
		err = map_add(obj, "comms", key);
	}
	return err;
}
