/* SPDX-License-Identifier: Apache-2.0 */
/*
 * syncfile: the path of a file that a process waited for: what the descriptor shows, if it is still
 * that file, else the end of the path, as the program in the kernel read it: ".../base/5/1249".
 */
#ifndef SONDE_DISK_SYNCFILE_H
#define SONDE_DISK_SYNCFILE_H

#include "loaders/disk/filename.h"
#include "probes/disk.h"

#define SYNCFILE_PATH FILENAME_PATH

void syncfile_path(const struct disk_sync_key *key, const struct disk_sync *s,
		   char out[SYNCFILE_PATH]);
/* Pure: from the names alone. */
void syncfile_names(const struct disk_sync *s, char out[SYNCFILE_PATH]);

#endif
