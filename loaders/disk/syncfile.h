/* SPDX-License-Identifier: Apache-2.0 */
/*
 * syncfile: the path of a file that a process waited for: what the descriptor shows, if it is still
 * that file; else the names that the program in the kernel read, as a path of the host if they
 * begin at the file system's root, else as the end of one: ".../base/5/1249".
 */
#ifndef SONDE_DISK_SYNCFILE_H
#define SONDE_DISK_SYNCFILE_H

#include "loaders/disk/filename.h"
#include "loaders/disk/mounts.h"
#include "probes/disk.h"

#define SYNCFILE_PATH FILENAME_PATH
#define SYNCFILE_NONE (~0u) /* a descriptor that shows nothing: it is of other mounts */

/* `s` may be NULL: then by the descriptor alone, `fd`; "" where it shows another file. `mounts`
 * may be NULL, as for a container's file: then such a path begins at its file system's root. */
void syncfile_path(const struct disk_sync_key *key, __u32 fd, const struct disk_sync *s,
		   const struct mounts *mounts, char out[SYNCFILE_PATH]);
/* By the names alone; pure. */
void syncfile_names(const struct disk_sync *s, const struct mounts *mounts, __u32 dev,
		    char out[SYNCFILE_PATH]);

#endif
