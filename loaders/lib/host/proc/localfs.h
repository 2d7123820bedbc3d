/* SPDX-License-Identifier: Apache-2.0 */
/*
 * localfs: file systems that answer by themselves: this kernel's own, in memory or on a block
 * device. Who opens a file of theirs waits for no server (NFS, FUSE), nor for another file system
 * below (overlayfs).
 *
 * Known are those of our own mount namespace, from /proc/self/mountinfo, which is read again when a
 * mount has come or gone. A device that is not among them (btrfs gives its files another one) is
 * none.
 */
#ifndef SONDE_HOST_LOCALFS_H
#define SONDE_HOST_LOCALFS_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

/* `device`: st_dev of a file. May be called by any thread. */
bool localfs_has(dev_t device);
/* The device of one line of mountinfo, if its file system is such a one. */
bool localfs_line(const char *line, dev_t *device);

#endif
