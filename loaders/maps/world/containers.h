/* SPDX-License-Identifier: Apache-2.0 */
/*
 * containers: what Docker calls the containers in which something was executed. Its file goes with
 * the container, often before the first sample of a short one has been named: so it is read when
 * the exec is heard of, and told.
 */
#ifndef SONDE_MAPS_CONTAINERS_H
#define SONDE_MAPS_CONTAINERS_H

#include <stdbool.h>

struct containers;
struct hub;

struct containers *containers_new(void);
void containers_free(struct containers *cs); /* NULL is fine */
/* Something runs in this cgroup: read the name of its container, and of the one around that, the
 * first time. From any thread. */
void containers_read(struct containers *cs, const char *cgroup);
/* Tell what was read since the last call; all: everything, for a client that has just come. */
void containers_tell(struct containers *cs, struct hub *hub, bool all);

#endif
