/* SPDX-License-Identifier: Apache-2.0 */
/*
 * containernames: what a container is called, by its runtime's own files; no runtime is asked.
 *
 *   Docker             <root>/containers/ID/config.v2.json; of the snap
 *                      /var/snap/docker/common/var-lib-docker
 *   Podman, CRI-O      /var/lib/containers/storage/DRIVER-containers/containers.json, and
 *                      volatile-containers.json beside it: a list with id, names, and metadata
 *                      (JSON in a string) with image-name; and there ID/userdata/config.json, an
 *                      OCI bundle. DRIVER is overlay, vfs, btrfs or zfs
 *   containerd         STATE/io.containerd.runtime.v2.task/NAMESPACE/ID/config.json: the OCI
 *                      bundle, whose annotations Kubernetes and nerdctl fill. STATE is containerd
 *                      in /run, /run/k3s, /run/k0s, or microk8s'
 *   rootless           of the user under whose slice or manager it runs (container_ref.owner):
 *                      HOME/.local/share/docker, HOME/.local/share/containers/storage, and
 *                      /run/user/UID/containerd with the namespaces default, k8s.io and buildkit.
 *                      HOME by this host's /etc/passwd. Only files that are that user's own
 *
 * What stands in no file is not told: Podman has labels, and so compose's project, in its database
 * alone, nerdctl the image and labels in containerd's, and LXC and LXD theirs in their own;
 * annotations that a user gave count as labels. What is in none of these is looked for where an
 * engine that runs has put it (engines.h), by the engine's own root.
 */
#ifndef SONDE_HOST_CONTAINERNAMES_H
#define SONDE_HOST_CONTAINERNAMES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "loaders/lib/host/proc/container.h"

struct container_names {
	char *name;              /* without the leading slash; NULL: not known */
	char *image;             /* as the user gave it; NULL: not known */
	char *project, *service; /* of compose; of Kubernetes the pod, and NULL. NULL: none */
	char *labels;      /* a JSON object of strings, its keys in order; NULL: none, or more than
			      CONTAINER_LABELS_MAX bytes */
	char *started;     /* when its runtime started it last, as the runtime writes it; NULL: not
			      known */
	uint32_t restarts; /* how often its runtime started it again by itself */
};
#define CONTAINER_LABELS_MAX 4096
void container_names_release(struct container_names *n);
/* `out` becomes a copy (free). */
void container_names_copy(struct container_names *out, const struct container_names *n);
bool container_names_same(const struct container_names *a, const struct container_names *b);

/* By its runtime. `root`: where / is ("" on a host, and only there engines that run are asked for).
 * Files are regular, no links, at most 4 MiB; the name may be missing. -ENOENT, -EACCES, ... */
int containernames_find(const char *docker_root, const char *root, const struct container_ref *ref,
			struct container_names *out);
/* /var/lib/docker, or "data-root" of /etc/docker/daemon.json. Static buffer. */
const char *containernames_docker_root(void);

#endif
