// SPDX-License-Identifier: Apache-2.0
/* hostmaps_containers: the names of containers that sonde-maps told of. */
#include <stdlib.h>
#include <string.h>

#include "loaders/lib/host/maps/hostmaps_parts.h"
#include "schema/base/mem.h"

#define CONTAINERS_MAX 4096

static char *dup_or_null(const char *s)
{
	return *s ? mem_strdup(s) : NULL;
}

static struct told_container *find(const struct hostmaps *hm, const char *id)
{
	struct told_container *c;

	HASH_FIND_STR(hm->containers, id, c);
	return c;
}

void hostmaps_on_container(struct hostmaps *hm, const struct mapspack_msg *msg)
{
	struct told_container *c = find(hm, msg->str[0]);
	size_t n = strlen(msg->str[0]) + 1;

	if (!c && HASH_COUNT(hm->containers) >= CONTAINERS_MAX)
		hostmaps_containers_release(hm);
	if (!c) {
		c = mem_alloc(sizeof(*c) + n);
		memcpy(c->id, msg->str[0], n);
		HASH_ADD_KEYPTR(hh, hm->containers, c->id, n - 1, c);
	}
	container_names_release(&c->names);
	c->names = (struct container_names){.name = dup_or_null(msg->str[1]),
					    .image = dup_or_null(msg->str[2]),
					    .project = dup_or_null(msg->str[3]),
					    .service = dup_or_null(msg->str[4]),
					    .labels = dup_or_null(msg->str[5]),
					    .started = dup_or_null(msg->str[6]),
					    .restarts = msg->m.container.restarts};
}

const struct container_names *hostmaps_container(const struct hostmaps *hm, const char *id)
{
	const struct told_container *c = find(hm, id);

	return c ? &c->names : NULL;
}

void hostmaps_containers_release(struct hostmaps *hm)
{
	struct told_container *c, *next;

	HASH_ITER (hh, hm->containers, c, next) {
		HASH_DEL(hm->containers, c);
		container_names_release(&c->names);
		free(c);
	}
}
