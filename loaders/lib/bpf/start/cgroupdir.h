/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cgroupdir: from a cgroup's path to the kernel's ids for it. A cgroup's id is its directory's
 * inode number. On a host with v1 hierarchies several of them may have the same path, each with its
 * own id.
 */
#ifndef SONDE_BPF_CGROUPDIR_H
#define SONDE_BPF_CGROUPDIR_H

#include <stdbool.h>
#include <stddef.h>

#include "loaders/lib/bpf/family.h"

/* One line of /proc/self/mountinfo: the mount point of a cgroup hierarchy. Pure; false: the line is
 * something else. `point` keeps the kernel's octal escapes. */
bool cgroupdir_mount(const char *line, char *point, size_t size, enum family_hierarchy *hierarchy);

/* Call `found` for each hierarchy that has it. `path` is a directory below a mount point, or a
 * cgroup's path as /proc/PID/cgroup shows it. 0, what `found` returned if not 0, or -errno. */
int cgroupdir_find(const char *path, int (*found)(void *ctx, const struct family_cgroup *cgroup),
		   void *ctx);

#endif
