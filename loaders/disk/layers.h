/* SPDX-License-Identifier: Apache-2.0 */
/*
 * layers: one file as the host and as a container see it.
 *
 * 1. A container's root is mostly an overlay: a file that it has not changed lies in one of the
 *    lower folders, one that it has in the upper one; the disk has that file. The kernel's overlay
 *    has other inode numbers for both, so what programs call is joined with what disks do by path.
 * 2. Folders that are links (docker has short names for lower ones) are followed one step.
 * 3. Volumes are mounts in the container's namespace: there the container's mounts say its path.
 * 4. The mounts of a container are read once a minute, of LAYERS_SPACES containers at a time.
 */
#ifndef SONDE_DISK_LAYERS_H
#define SONDE_DISK_LAYERS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "loaders/disk/mounts.h"

#define LAYERS_SPACES 64

struct layers { /* {0} */
	struct layers_space {
		uint64_t ino; /* of the mount namespace */
		uint32_t used;
		struct mounts mounts;
	} spaces[LAYERS_SPACES];
	size_t n;
	uint32_t uses;
};

/* The mounts as this process sees them; NULL: it has ended. Borrowed until the next call. */
const struct mounts *layers_mounts(struct layers *l, uint32_t pid);
/* Does it see the same mounts as the first process? false, too: it has ended. */
bool layers_is_hosts(uint32_t pid);
/* Pure: where a folder's link leads, in `out`: "/a/l/X" and "../Y/diff": "/a/Y/diff". false: no
 * room. */
bool layers_follow(const char *folder, const char *link, char *out, size_t size);
/* The host's path of a file of an overlay: of the first folder that has it. false: none has. */
bool layers_host(const struct mounts_one *overlay, const char *below, char *out, size_t size);
/* Where these mounts have the file whose host's path is `path`, and which is `below` the root of
 * file system `dev`. false: nowhere. */
bool layers_seen(const struct mounts *m, uint32_t dev, const char *below, const char *path,
		 char *out, size_t size);
/* About once a minute. */
void layers_forget(struct layers *l);

#endif
