/* SPDX-License-Identifier: Apache-2.0 */
/*
 * containernames: a container's name, image and labels, from the files of its runtime; without a
 * request to the runtime.
 *
 *   Docker             <root>/containers/ID/config.v2.json; for the snap
 *                      /var/snap/docker/common/var-lib-docker
 *   Podman, CRI-O      /var/lib/containers/storage/DRIVER-containers/containers.json, and
 *                      volatile-containers.json in the same folder: a list with id, names, and
 *                      metadata (JSON in a string) with image-name; and ID/userdata/config.json
 *                      there, an OCI bundle. DRIVER is overlay, vfs, btrfs or zfs
 *   containerd         STATE/io.containerd.runtime.v2.task/NAMESPACE/ID/config.json: the OCI
 *                      bundle, whose annotations Kubernetes and nerdctl fill. STATE is containerd
 *                      in /run, /run/k3s, /run/k0s, or microk8s'
 *   rootless           for the user under whose slice or manager it runs (container_ref.owner):
 *                      HOME/.local/share/docker, HOME/.local/share/containers/storage, and
 *                      /run/user/UID/containerd with the namespaces default, k8s.io and buildkit.
 *                      HOME from this host's /etc/passwd. Only files that belong to that user
 *
 * Some things are in no file: Podman keeps labels, and so compose's project, only in its database,
 * nerdctl the image and labels in containerd's, and LXC and LXD have databases too; a user's
 * annotations count as labels. If none of these files exists, the folders of the running engines
 * are searched (engines.h), below the engine's root.
 */
#ifndef SONDE_HOST_CONTAINERNAMES_H
#define SONDE_HOST_CONTAINERNAMES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "loaders/lib/host/proc/container.h"

struct container_names {
	char *name;              /* without the leading slash; NULL: unknown */
	char *image;             /* as the user gave it; NULL: unknown */
	char *project, *service; /* of compose; for Kubernetes the pod, and NULL. NULL: none */
	char *labels;      /* a JSON object of strings, its keys in order; NULL: none, or more than
			      CONTAINER_LABELS_MAX bytes */
	char *started;     /* its last start, as the runtime writes it; NULL: unknown */
	uint32_t restarts; /* restarts by its runtime */
	char *file;        /* the file that has its name, if root's engine wrote it; else NULL */
};
#define CONTAINER_LABELS_MAX 4096
void container_names_release(struct container_names *n);
/* `out` becomes a copy (free). */
void container_names_copy(struct container_names *out, const struct container_names *n);
bool container_names_same(const struct container_names *a, const struct container_names *b);

/* By its runtime. `root`: where / is ("" on a host; only then running engines are searched). Reads
 * regular files only, no links, at most 4 MiB; the name may be missing. -ENOENT, -EACCES, ... */
int containernames_find(const char *docker_root, const char *root, const struct container_ref *ref,
			struct container_names *out);
/* /var/lib/docker, or "data-root" of /etc/docker/daemon.json. Static buffer. */
const char *containernames_docker_root(void);

#endif
