/* SPDX-License-Identifier: Apache-2.0 */
/* happened_parts: what the two files of happened share: containers and the host (happened.c), kills for want of memory (happened_oom.c). */
#ifndef SONDE_HOST_FAMILY_HAPPENED_PARTS_H
#define SONDE_HOST_FAMILY_HAPPENED_PARTS_H

#include "loaders/host/events/container_events.h"
#include "loaders/host/events/container_life.h"
#include "loaders/lib/host/proc/container.h"

struct happened_end {
	struct lives_event e;
	struct container_ref ref;
	char path[512];
};

struct happened_oom {
	struct lives_leader who;
	int64_t boot_ns;
};

/* The process, as hostmaps has it; NULL: not any more. */
struct hostmaps_process *happened_process(const struct happened *x, const struct lives_leader *l);
int64_t happened_utc(const struct happened *x, int64_t boot_ns);
/* What people call the container. */
void happened_name(const struct happened *x, const struct container_ref *ref, char *out, size_t size);
/* All kills that were noted. */
void happened_ooms_tell(struct happened *x);

#endif
