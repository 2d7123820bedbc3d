/* SPDX-License-Identifier: Apache-2.0 */
/*
 * opening: opens the file of an image through the processes that map it. It returns the file that
 * was mapped, or none. It skips roots that did not answer before.
 */
#ifndef SONDE_MAPS_OPENING_H
#define SONDE_MAPS_OPENING_H

#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>

#include "loaders/maps/world/exec_race.h"
#include "loaders/maps/world/world.h"

#define OPENING_MUTE_MAX 32
#define OPENING_BORN_MAX 64 /* a power of two */

#define OPENING_PIN_NS (10 * NSEC_PER_SEC)

/* When a file was born: a program that starts maps the same libraries as the one before it. It
 * holds for the present reading of the side-band, whose records are all older than the reading, so
 * that a second look would find the same; and as long as the file is pinned, because meanwhile no
 * other file has its inode number. */
struct opening_known {
	struct root_id root;
	uint64_t ino, path; /* the path's hash */
	uint32_t major, minor;
	uint64_t reading; /* world.readings then; 0: free */
	int64_t born_ns;
	int pin; /* of a file on our root file system, for OPENING_PIN_NS; 0: not pinned */
	uint64_t pinned_ns;
};

struct opening {
	struct world *world;
	struct root_id mute[OPENING_MUTE_MAX]; /* roots that did not answer */
	size_t n_mute;
	struct exec_race *early; /* borrowed; NULL: no descriptors were held */
	int own_root;            /* our root, once it was needed; 0: not yet */
	struct opening_known known[OPENING_BORN_MAX];
};

/* Through one process: the path below the process's root; else (deleted, replaced, memfd) the
 * mapped file itself, if start < end; else the descriptors that exec_race holds, if the process is
 * gone. If *root_fd is -1 it becomes the root in which the file was found. A descriptor, or -errno.
 */
int opening_through(struct opening *op, const struct mimage *img, const struct proc *p,
		    uint64_t start, uint64_t end, struct stat *st, int *root_fd);
/* Through any live process that maps it, then any with the same root, then our own root if that is
 * the same. */
int opening_anyhow(struct opening *op, struct mimage *img, struct stat *st, int *root_fd);
/* A stand-in for the generation of a file that the process has just mapped: FILE_BORN if the file
 * system knows the birth time; FILE_NOBODYS if the file is not accessible any more (the one at its
 * path was born after time_ns, when it was mapped). Does not block. */
uint64_t opening_born(struct opening *op, const struct proc *p, const char *path,
		      const struct file_id *f, uint64_t time_ns);
/* From time to time: lets files go that have been pinned for long. */
void opening_tick(struct opening *op, uint64_t now_ns);
void opening_release(struct opening *op);
/* A copy of our vDSO in a file; it is the same in every process. */
int opening_vdso(const struct world *w);

#endif
