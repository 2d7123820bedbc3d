/* SPDX-License-Identifier: Apache-2.0 */
/*
 * dockerfiles: what Docker writes about its containers in its folder
 * (containers/ID/config.v2.json): which exist, how often it restarted each, whether it was killed
 * for memory, its health. A file is read again when it changes; no engine is asked.
 *
 * Where: the usual root, the snap's, and those of running engines of root's (engines.h), each
 * folder once. If a folder cannot be listed any more (it was below the own root of an engine that
 * stopped), its containers do not count as removed.
 */
#ifndef SONDE_HOST_FAMILY_DOCKERFILES_H
#define SONDE_HOST_FAMILY_DOCKERFILES_H

#include <stdbool.h>
#include <stdint.h>

#include "loaders/lib/host/proc/containerfile.h"

struct dockerfile {
	const char *id;
	const struct container_state *state; /* as it is now, or was at last */
	const struct container_state *was;   /* before; NULL: it was not there */
	const char *old_image; /* of the container that had this name before, where that is another
				  one; else NULL */
	bool gone;
	int64_t since_ns; /* UTC; what was made after this was not there at the look before */
};

struct dockerfiles {
	struct dockerfile_known *all;  /* by id */
	struct dockerfile_name *names; /* image by name */
	uint64_t round;
	bool begun;
	int64_t engines_ns;        /* when engines were looked for */
	int64_t look_ns, first_ns; /* UTC; of the last look, and of the first */
};

void dockerfiles_release(struct dockerfiles *d);
/* What is another one than at the look before; the first one tells nothing. */
void dockerfiles_look(struct dockerfiles *d, int64_t now_ns,
		      void (*changed)(void *ctx, const struct dockerfile *f), void *ctx);
/* The folder in which that of this container is, as it was listed; NULL: Docker has none of this
 * id. */
const char *dockerfiles_folder(const struct dockerfiles *d, const char *id);
/* NULL: Docker has none of this id, as far as the last look found. */
const struct container_state *dockerfiles_state(const struct dockerfiles *d, const char *id);

#endif
