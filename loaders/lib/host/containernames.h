/* SPDX-License-Identifier: Apache-2.0 */
/*
 * containernames: name and image of a container from its runtime's own files; no runtime is asked.
 *
 *   Docker             <root>/containers/ID/config.v2.json (container.h)
 *   Podman, CRI-O      /var/lib/containers/storage/overlay-containers/containers.json, and volatile-containers.json
 *                      beside it: a list with id, names, and metadata (JSON in a string) with image-name
 *   containerd         /run/containerd/io.containerd.runtime.v2.task/NAMESPACE/ID/config.json: the OCI bundle, whose
 *                      annotations Kubernetes and nerdctl fill
 */
#ifndef SONDE_HOST_CONTAINERNAMES_H
#define SONDE_HOST_CONTAINERNAMES_H

#include <stddef.h>

#include "loaders/lib/host/container.h"

/* Pure. The entry of `id`. 0, -ENOENT: it is not in it, -EBADMSG. */
int containernames_parse_storage(const char *json, size_t len, const char *id, struct container_names *out);
/* Pure. 0, -ENOENT: nobody named it, -EBADMSG. */
int containernames_parse_bundle(const char *json, size_t len, struct container_names *out);

/* By its runtime. `root`: where / is ("" on a host). Files are regular, no links, at most 4 MiB. -ENOENT, -EACCES, ... */
int containernames_find(const char *docker_root, const char *root, const struct container_ref *ref,
			struct container_names *out);

#endif
