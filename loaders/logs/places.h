/* SPDX-License-Identifier: Apache-2.0 */
/*
 * places: where logs are on this host, found again in each round: the files of container engines,
 * the journal's, and those that a person names. It opens nothing.
 *
 *   Docker       ROOT/containers/ID/ID-json.log, ROOT/containers/ID/local-logs/container.log; ROOT
 *                as dockerfiles has it: the usual one, the snap's, those of running engines
 *   Podman       STORAGE/DRIVER-containers/ID/userdata/ctr.log
 *                Engines of other users (rootless): PLACES_USER logs each
 *   Kubernetes   /var/log/pods/NAMESPACE_POD_UID/CONTAINER/N.log
 *   journal      (/var/log|/run/log)/journal/MACHINE/system.journal, user-N.journal; the host's, as
 *                seen from a container, where this root has none
 *   files        patterns of a shell; what is compressed is left out, and what was rotated: PATH.1,
 *                PATH-20261129 next to PATH
 */
#ifndef SONDE_LOGS_PLACES_H
#define SONDE_LOGS_PLACES_H

#include <stdbool.h>
#include <stdint.h>

#include "loaders/logs/forms.h"

#define PLACES_MOST 4096 /* of a round; that more are left out is said once */
#define PLACES_USER 64

struct place {
	const char *kind; /* static: "docker", "podman", "cri", "journal", "file" */
	const char *path;
	enum log_form form;
	char id[72];    /* the container's, "": none, or not known */
	char name[256]; /* of a pod's container: NAMESPACE/POD/CONTAINER; of a file its path */
	uint32_t uid;   /* whose engine it is, who chose this path: only files of that user are
			   read; 0: root's */
};

struct places {
	const char *files; /* patterns, separated by blanks or commas; NULL: none */
	int inotify;       /* readable when a container came; -1: none */
	int64_t engines_ns, watched_ns;
	uint32_t n;     /* of this round, with those past PLACES_MOST */
	bool told_many; /* that there are more */
};

void places_init(struct places *p, const char *files);
void places_release(struct places *p);
void places_look(struct places *p, int64_t now_ns, void (*found)(void *ctx, const struct place *x),
		 void *ctx);
/* Did a container come since the last call? */
bool places_changed(struct places *p);

/* The id of the container that writes this file of a pod, "": not known. */
void places_pod_container(const char *path, char out[72]);

#endif
