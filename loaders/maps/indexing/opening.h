/* SPDX-License-Identifier: Apache-2.0 */
/*
 * opening: the file of an image, through the processes that map it. It is the one that was mapped,
 * or none; a root that did not answer is left alone.
 */
#ifndef SONDE_MAPS_OPENING_H
#define SONDE_MAPS_OPENING_H

#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>

#include "loaders/maps/world/exec_race.h"
#include "loaders/maps/world/world.h"

#define OPENING_MUTE_MAX 32

struct opening {
	struct world *world;
	struct root_id mute[OPENING_MUTE_MAX]; /* roots that did not answer */
	size_t n_mute;
	struct exec_race *early; /* borrowed; NULL: nothing was held */
	int own_root;            /* our own, once it was asked for; 0: not yet */
};

/* Through one process: its path below the process's root, else (deleted, replaced, memfd) the
 * mapped file itself, where start < end; the same by what was held of it, if it is gone. *root_fd,
 * where it is -1, becomes the root it was found in. A descriptor, or -errno. */
int opening_through(struct opening *op, const struct mimage *img, const struct proc *p,
		    uint64_t start, uint64_t end, struct stat *st, int *root_fd);
/* Through any live process that maps it, then any that sees the same root, then our own root if
 * that is it. */
int opening_anyhow(struct opening *op, struct mimage *img, struct stat *st, int *root_fd);
/* What stands for the generation of a file that the process has mapped just now: FILE_BORN, if its
 * file system tells when it was born, FILE_NOBODYS if it cannot be asked any more (what is at its
 * path was born after time_ns, when it was mapped). Waits for nobody. */
uint64_t opening_born(struct opening *op, const struct proc *p, const char *path, uint64_t ino,
		      uint64_t time_ns);
/* The vDSO as a file: a copy of our own, which is the same in every process. */
int opening_vdso(const struct world *w);

#endif
