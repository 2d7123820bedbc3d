/* SPDX-License-Identifier: Apache-2.0 */
/* mounts: where file systems are mounted, by the device that the kernel knows them by: from a path
 * below a file system's root to one of the host. */
#ifndef SONDE_DISK_MOUNTS_H
#define SONDE_DISK_MOUNTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define MOUNTS_PATH 256 /* longer ones are not taken */

struct mounts_one {
	uint32_t dev;           /* the kernel's dev_t: major << 20 | minor */
	bool waits;             /* a server or a process answers for it, or does not (NFS, FUSE) */
	char root[MOUNTS_PATH]; /* which folder of the file system is mounted, "/": all of it */
	char point[MOUNTS_PATH];
	char *layers; /* of an overlay: its folders, the upper one first, with ':'; NULL: none */
};

struct mounts {                  /* {0} */
	struct mounts_one *list; /* as the kernel lists them */
	size_t n, cap;
};

/* Reads them again: as the first process sees them, else as this one does. */
void mounts_read(struct mounts *m);
/* The same as process `pid` sees them. */
void mounts_read_of(struct mounts *m, uint32_t pid);
void mounts_release(struct mounts *m);
/* Pure: a line of mountinfo; the caller frees out->layers. */
bool mounts_parse(const char *line, struct mounts_one *out);
/* A path of the host for one below the file system's root: by the mount of its root, else by the
 * first that has it. false: none has, or there is no room: out is "". */
bool mounts_path(const struct mounts *m, uint32_t dev, const char *below, char *out, size_t size);
/* The mount of mounts_path; NULL: none. Borrowed until mounts_read. */
const struct mounts_one *mounts_find(const struct mounts *m, uint32_t dev, const char *below);
/* Where the file system is mounted, by the same rule; borrowed until mounts_read. "": nowhere. */
const char *mounts_point(const struct mounts *m, uint32_t dev);
/* Was it mounted when they were read? */
bool mounts_has(const struct mounts *m, uint32_t dev);
/* May a look at a file there wait without end? */
bool mounts_waits(const struct mounts *m, uint32_t dev);

#endif
