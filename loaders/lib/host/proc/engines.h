/* SPDX-License-Identifier: Apache-2.0 */
/*
 * engines: which container engines run on this host, and where they keep what they know of their
 * containers, wherever their users have put that. By their processes alone:
 *
 *   dockerd                --data-root (-g, --graph) of its command line, else "data-root" of its
 *                          --config-file, of /etc/docker/daemon.json if it names none; read through
 *                          its own root. (Its --exec-root holds no names.)
 *   conmon                 of Podman and CRI-O: -b BUNDLE is STORAGE/DRIVER-containers/ID/userdata,
 *                          or a folder of CRI-O's in /run
 *   containerd-shim*       its working folder is STATE/io.containerd.runtime.v2.task/NAMESPACE/ID
 *
 * What runs inside of a container is none of this host's engines; whose user is not root names that
 * user's containers alone.
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
	char folder[512]; /* as the engine's process sees it: Docker's data root ("": the usual
			   * one), DRIVER-containers, STATE/io.containerd.runtime.v2.task/NAMESPACE
			   */
};

/* Of the bytes of /proc/PID/cmdline. False: it names none, or no absolute path that is short
 * enough. Pure. */
bool engines_data_root(const char *args, size_t len, char *out, size_t size);
bool engines_config_file(const char *args, size_t len, char *out, size_t size);
bool engines_storage(const char *args, size_t len, char *out, size_t size);
/* Of a shim's working folder. Pure. */
bool engines_tasks(const char *cwd, char *out, size_t size);

#define ENGINES_MAX 32
/* Each place once, at most ENGINES_MAX. All of /proc is looked at: some microseconds a process. */
size_t engines_find(struct engine out[ENGINES_MAX]);
/* The same as of the last look, none before the first; any thread may ask. engines_look_again:
 * looks, unless that was done in the last ENGINES_KEEP_NS (false). */
#define ENGINES_KEEP_NS 5000000000ll
size_t engines_known(struct engine out[ENGINES_MAX]);
bool engines_look_again(void);

#endif
