/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cgroups: the path of a cgroup from its id, also for processes that are gone. Learned from the
 * side-band, from open_by_handle_at on the cgroup file systems (a kernfs handle is the id), and
 * where neither knows, from /proc.
 */
#ifndef SONDE_MAPS_CGROUPS_H
#define SONDE_MAPS_CGROUPS_H

#include <stdint.h>

struct cgroups;

struct cgroups *cgroups_new(void);
void cgroups_free(struct cgroups *c);
/* A record of the side-band. */
void cgroups_learn(struct cgroups *c, uint64_t id, const char *path);
/* Of the v2 path and that of the v1 memory hierarchy the one that tells more (container_choose); on
 * a host with v1 hierarchies but without that one, what /proc shows. Borrowed until the next call;
 * "" where nothing is known. */
const char *cgroups_path(struct cgroups *c, uint64_t id, uint64_t id1, uint32_t tgid);

#endif
