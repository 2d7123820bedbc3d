/* SPDX-License-Identifier: Apache-2.0 */
/* container_events_parts: what the two files of happened share: containers and the host
 * (happened.c), kills for want of memory (container_events_oom.c). */
#ifndef SONDE_HOST_FAMILY_CONTAINER_EVENTS_PARTS_H
#define SONDE_HOST_FAMILY_CONTAINER_EVENTS_PARTS_H

#include "loaders/host/events/container_events.h"
#include "loaders/host/events/container_life.h"
#include "loaders/lib/host/proc/container.h"

struct container_events_end {
	struct container_life_event e;
	struct container_ref ref;
	char path[512];
};

struct container_events_oom {
	struct container_life_leader who;
	int64_t boot_ns;
};

/* The process, as hostmaps has it; NULL: not any more. */
struct hostmaps_process *container_events_process(const struct container_events *x,
						  const struct container_life_leader *l);
int64_t container_events_utc(const struct container_events *x, int64_t boot_ns);
/* What people call the container. */
void container_events_name(const struct container_events *x, const struct container_ref *ref,
			   char *out, size_t size);
/* All kills that were noted. */
void container_events_ooms_tell(struct container_events *x);

#endif
