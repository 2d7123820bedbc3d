/* SPDX-License-Identifier: Apache-2.0 */
/* pressure: is a process near its cgroup's memory limit? Then it may be killed soon, and is read
 * more often. */
#ifndef SONDE_GOHEAP_PRESSURE_H
#define SONDE_GOHEAP_PRESSURE_H

#include <stdbool.h>
#include <stdint.h>

struct hostmaps_process;

/* More than 70 % of the nearest limit above it is used: of the v2 hierarchy, or v1's for memory.
 * false: no limit. */
bool pressure_near(const struct hostmaps_process *p);
/* The same over a hierarchy's directory and a cgroup's path. */
bool pressure_near_at(const char *root, const char *cgroup, bool v2);

#endif
