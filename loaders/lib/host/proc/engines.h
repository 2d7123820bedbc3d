/* SPDX-License-Identifier: Apache-2.0 */
/*
 * engines: the container engines that run on this host, and the folders where they keep their
 * containers' data, even if a user has moved them. From their processes alone:
 *
 *   dockerd                --data-root (-g, --graph) of its command line, else "data-root" of its
 *                          --config-file, or of /etc/docker/daemon.json if it names none; read
 *                          below its root. (Its --exec-root has no names.) Of a user other than
 * root: .config/docker/daemon.json and .local/share/docker, below HOME conmon                 of
 * Podman and CRI-O: -b BUNDLE is STORAGE/DRIVER-containers/ID/userdata, or a folder of CRI-O's in
 * /run containerd-shim*       its working folder is
 * STATE/io.containerd.runtime.v2.task/NAMESPACE/ID
 *
 * An engine inside a container is not one of this host's engines. An engine of a user other than
 * root only has that user's containers.
 */
#ifndef SONDE_HOST_ENGINES_H
#define SONDE_HOST_ENGINES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum engine_kind { ENGINE_DOCKER, ENGINE_STORAGE /* Podman, CRI-O */, ENGINE_CONTAINERD };

struct engine {
	enum engine_kind kind;
	uint32_t pid, uid;
	char folder[512]; /* as the engine's process sees it: Docker's data root ("": the default),
			     DRIVER-containers, STATE/io.containerd.runtime.v2.task/NAMESPACE */
};

/* From the bytes of /proc/PID/cmdline. False: no data root, or not an absolute path that is short
 * enough. Pure. */
bool engines_data_root(const char *args, size_t len, char *out, size_t size);
bool engines_config_file(const char *args, size_t len, char *out, size_t size);
bool engines_storage(const char *args, size_t len, char *out, size_t size);
/* From a shim's working folder. Pure. */
bool engines_tasks(const char *cwd, char *out, size_t size);

#define ENGINES_MAX 32
/* Each folder once, at most ENGINES_MAX. Scans /proc: a few microseconds a process. */
size_t engines_find(struct engine out[ENGINES_MAX]);
/* The result of the last scan, none before the first; callable by any thread. engines_look_again
 * scans, unless the last scan is younger than ENGINES_KEEP_NS (false). */
#define ENGINES_KEEP_NS 5000000000ll
size_t engines_known(struct engine out[ENGINES_MAX]);
bool engines_look_again(void);

#endif
