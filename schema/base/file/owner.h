/* SPDX-License-Identifier: Apache-2.0 */
/*
 * owner: what root makes in a folder of the store belongs to the folder's owner, so that this user
 * can go on recording there. Only what root made is given away: folders, links themselves, and
 * regular files that have no other name. No link is followed.
 */
#ifndef SONDE_BASE_OWNER_H
#define SONDE_BASE_OWNER_H

#include <sys/stat.h>

/* Gives an open file, the one at `path`, to the owner of the folder that it is in. Nothing to do
 * for users other than root. */
void owner_inherit(int fd, const char *path);
/* The same for `name` in an open folder. */
void owner_inherit_at(int dir, const char *name);
/* Gives `name` in an open folder to the owner of `folder`. 1: given; 0: not to be given; -errno. */
int owner_give(int dir, const struct stat *folder, const char *name);

#endif
