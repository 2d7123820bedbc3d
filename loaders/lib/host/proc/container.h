/* SPDX-License-Identifier: Apache-2.0 */
/*
 * container: from a cgroup's path to the container or systemd unit it belongs to, and back. For
 * names see containernames.h.
 *
 * Paths (each on v1, v2 and hybrid hosts; ID is 64 hex digits, or 32):
 *   docker    /docker/ID, /system.slice/docker-ID.scope, ...
 *   containerd, CRI   /kubepods/.../podUID/ID, .../cri-containerd-ID.scope, /NAMESPACE/ID (nerdctl,
 *                     ctr), NAMESPACE:cri-containerd:ID, nerdctl-ID.scope
 *   podman    /machine.slice/libpod-ID.scope, /libpod_parent/libpod-ID, libpod-conmon-... is the
 *             monitor and no container
 *   cri-o     crio-ID.scope, /crio-ID
 *   lxc       /lxc/NAME, /lxc.payload.NAME, /lxc.payload/NAME
 *   nspawn    /machine.slice/systemd-nspawn@NAME.service, machine-NAME.scope (nspawn and libvirt
 *             register those)
 *   garden, buildkit and others: a component of 64 hex digits counts as a container of runtime
 *     "container"
 * Nested containers: the innermost counts; container_outer finds those around it. A pod's UID is
 * kept. A unit is the innermost NAME.service, .scope or .slice-less timer name outside of
 * containers ("nginx.service"; also of a user's manager), with systemd's \x2d undone.
 */
#ifndef SONDE_HOST_CONTAINER_H
#define SONDE_HOST_CONTAINER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "schema/base/err.h"

#define CONTAINER_ID_MAX 129

struct container_ref {
	const char *runtime;       /* static: "docker", "containerd", ...; "": not in a container */
	char id[CONTAINER_ID_MAX]; /* full id, or name for lxc and nspawn; "" if none */
	char pod[64];              /* Kubernetes pod UID, "" if none */
	char unit[256];            /* systemd unit, "" if none */
	uint32_t owner; /* the user under whose slice or manager it runs; 0: root, or the system */
	size_t end;     /* the path up to here is the container's own cgroup; 0 if none */
};

/* Pure. True if the path belongs to a container; `out` is filled in either case. */
bool container_parse(const char *path, size_t len, struct container_ref *out);
/* Is its id a name (lxc, nspawn)? Then it has no other name, and no image. */
bool container_named_by_path(const struct container_ref *ref);
/* On a hybrid host a process has a path in each hierarchy. Returns the index of the most useful
 * one, in order of preference: the first that belongs to a container (containerd and old Dockers
 * put theirs on v1 alone, and leave their own unit on v2); else the first that is not the root;
 * else the first. Pure; NULL and "" are no path; n: there are no paths. */
size_t container_choose(const char *const *paths, const size_t *lens, size_t n);
/* The container around the one in `ref` (from the same path): true and *out, or false. */
bool container_outer(const char *path, const struct container_ref *ref, struct container_ref *out);

/* ---- the way back ---- */

struct container_found {
	struct container_ref ref; /* of one of them, if they are several */
	char name[256];           /* as requested, or from Docker; "" if none */
	uint64_t *cgroup_ids;
	size_t n_cgroup_ids; /* of its directories on the v2 hierarchy (with those below) */
	uint64_t *v1_ids;
	size_t n_v1_ids; /* of its directories on v1's memory hierarchy, else pids */
	uint32_t *pids;
	size_t n_pids; /* now in it */
};
void container_found_release(struct container_found *f);
/* `who` is a name (Docker's, lxc's, nspawn's), or the service, the project or "project/service" of
 * compose, which may be several containers, or the beginning of an id (at least 3 characters). If
 * none matches, or several ids: EXIT_USAGE with the existing names. */
int container_resolve(const char *who, struct container_found *out, struct err *e);
/* Each container that has a cgroup now, with its name; "": no file has one. */
void container_each(void (*each)(void *ctx, const struct container_ref *ref, const char *name),
		    void *ctx);

/* The path of the cgroup with this id on v2, or of `v1_id` on v1's memory hierarchy (else pids; 0:
 * none), whichever is more useful (container_choose), by file handle (needs CAP_DAC_READ_SEARCH).
 * "" for the root. 0 or -errno. */
int container_cgroup_path(uint64_t cgroup_id, uint64_t v1_id, char *out, size_t size);

#endif
