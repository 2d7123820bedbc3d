/* SPDX-License-Identifier: Apache-2.0 */
/*
 * containerfile: parsers for the files in which container runtimes describe a container. Pure
 * functions over the bytes of a file; containernames knows where the files are.
 */
#ifndef SONDE_HOST_CONTAINERFILE_H
#define SONDE_HOST_CONTAINERFILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "loaders/lib/host/proc/containernames.h"

/* On failure all of these leave `out` unchanged (free it with container_names_release). */

/* Docker's config.v2.json. 0, or -EBADMSG. */
int containerfile_docker(const char *json, size_t len, struct container_names *out);
/* The container's state in the same file. Texts are "" if missing, and cut if too long. 0, or
 * -EBADMSG. */
struct container_state {
	char name[256], image[256];
	char created[40], started[40], finished[40]; /* RFC 3339 */
	char health[24];                             /* "healthy", "unhealthy", "starting", ... */
	char said[120]; /* the output of the last health check, if that failed */
	uint32_t restarts;
	int exit_code;
	bool runs, oom_killed;
};
int containerfile_state(const char *json, size_t len, struct container_state *out);
/* "2026-11-21T03:10:00.123456789Z", or with "+01:00": UTC ns. False: it is not such a time, or Go's
 * "never". */
bool containerfile_time(const char *text, int64_t *out_ns);
/* A line of the log of Podman's events (events_logger = file):
 * {"ID","Name","Image","Status","Time","Type","ContainerExitCode","health_status"}. 0, -ENOENT: not
 * about a container, -EBADMSG. */
struct container_happened {
	char id[65], name[256], image[256];
	char status[24]; /* "create", "start", "died", "restart", "remove", "health_status", ... */
	char health[24];
	int exit_code;
	int64_t at_ns;
};
int containerfile_podman_event(const char *json, size_t len, struct container_happened *out);
/* Podman's and CRI-O's containers.json: the entry of `id`. 0, -ENOENT: no such entry, -EBADMSG. */
int containerfile_storage(const char *json, size_t len, const char *id,
			  struct container_names *out);
/* An OCI bundle's config.json: annotations of containerd, nerdctl, CRI-O, Podman and their users;
 * the name may be missing. 0, -ENOENT: nothing in it, -EBADMSG. */
int containerfile_bundle(const char *json, size_t len, struct container_names *out);
/* A user's home from /etc/passwd. 0, -ENOENT: none that begins with '/'. */
int containerfile_home(const char *passwd, size_t len, uint32_t uid, char *out, size_t size);

#endif
