/* SPDX-License-Identifier: Apache-2.0 */
/* Containers without a name are remembered too, so that its file is looked for once. */
#include "loaders/maps/world/containers.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <uthash.h>

#include "loaders/lib/host/proc/container.h"
#include "loaders/lib/host/proc/containernames.h"
#include "loaders/lib/host/maps/mapsproto.h"
#include "loaders/maps/hub/hub.h"
#include "schema/base/mem.h"

#define CONTAINERS_MAX 4096

struct known {
	char id[CONTAINER_ID_MAX];
	struct container_names names;
	bool told;
	UT_hash_handle hh;
};

struct containers {
	const char *docker_root;
	pthread_mutex_t lock;
	struct known *known;
	bool news; /* some are not told yet */
};

struct containers *containers_new(void)
{
	struct containers *cs = mem_alloc(sizeof(*cs));

	cs->docker_root = containernames_docker_root();
	pthread_mutex_init(&cs->lock, NULL);
	return cs;
}

static void known_free(struct known *k)
{
	container_names_release(&k->names);
	free(k);
}

static void forget_all(struct containers *cs)
{
	struct known *k, *next;

	HASH_ITER (hh, cs->known, k, next) {
		HASH_DEL(cs->known, k);
		known_free(k);
	}
}

void containers_free(struct containers *cs)
{
	if (!cs)
		return;
	forget_all(cs);
	pthread_mutex_destroy(&cs->lock);
	free(cs);
}

static bool is_known(struct containers *cs, const char *id)
{
	struct known *k;

	pthread_mutex_lock(&cs->lock);
	HASH_FIND_STR(cs->known, id, k);
	pthread_mutex_unlock(&cs->lock);
	return k;
}

static void add(struct containers *cs, struct known *k)
{
	struct known *old;

	pthread_mutex_lock(&cs->lock);
	HASH_FIND_STR(cs->known, k->id, old);
	if (!old) { /* no other thread was faster */
		if (HASH_COUNT(cs->known) >= CONTAINERS_MAX)
			forget_all(cs);
		HASH_ADD_STR(cs->known, id, k);
		cs->news |= k->names.name != NULL;
	}
	pthread_mutex_unlock(&cs->lock);
	if (old)
		known_free(k);
}

static void read_one(struct containers *cs, const struct container_ref *ref)
{
	struct known *k;

	if (is_known(cs, ref->id))
		return;
	k = mem_alloc(sizeof(*k));
	memcpy(k->id, ref->id, sizeof(k->id));
	containernames_find(cs->docker_root, "", ref, &k->names); /* or it has no name */
	add(cs, k);
}

void containers_read(struct containers *cs, const char *cgroup)
{
	struct container_ref ref, outer;

	if (!container_parse(cgroup, strlen(cgroup), &ref))
		return;
	read_one(cs, &ref);
	if (container_outer(cgroup, &ref, &outer))
		read_one(cs, &outer);
}

void containers_tell(struct containers *cs, struct hub *hub, bool all)
{
	pthread_mutex_lock(&cs->lock);
	for (struct known *k = all || cs->news ? cs->known : NULL; k; k = k->hh.next) {
		struct mp_container m = {.restarts = k->names.restarts};
		const char *str[] = {k->id,
				     k->names.name,
				     k->names.image,
				     k->names.project,
				     k->names.service,
				     k->names.labels,
				     k->names.started};

		if (k->names.name && (all || !k->told))
			hub_emit(hub, MP_CONTAINER, &m, str);
		k->told |= !all; /* `all` is for one client alone */
	}
	cs->news &= all;
	pthread_mutex_unlock(&cs->lock);
}
